"""Real tokens of chats with images: the small Qwen3-VL behind the protocol, and what its checkpoint says."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import env
from harness.engines.base import EngineInfo, PromptTable, Replies, Requests, Sampling, TokenEvents, Workload
from harness.engines.bodies import BodyStore
from harness.engines.chats import qwen3_vl, qwen3_vocab
from harness.engines.start import EngineSpec
from harness.errors import ConfigError
from harness.serve.requests import ChatRequest
from harness.serve.sampling import Defaults, Limits
from harness.serve.tongues import defaults, end_ids
from tests.serve.client import Server
from tests.serve.test_qwen3_vl import content, part, picture

pytestmark = [pytest.mark.torch, pytest.mark.qwen3vl]

CAP = 12
ROOM = 1_024
CHATS: list[list[dict[str, Any]]] = [content("JPEG"), content("PNG", "木村?"), [part("WEBP")], content("JPEG", "again")]
GREEDY = {"temperature": 0.0, "max_completion_tokens": CAP}


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    with Server("--tiny_qwen3_vl", "--slots=4", f"--max_total_tokens={ROOM}", "--stream_interval=5") as server:
        yield server


def checkpoint(server: Server) -> Path:
    return env.cache_dir() / "checkpoints" / str(server.get("/v1/models").json["data"][0]["id"])


@pytest.fixture(scope="module")
def greedy(served: Server, tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """What the core itself answers in this process to chats of a store."""
    from harness.engines.torch_cpu import TorchCore, TorchSettings

    bodies = [{"messages": [{"role": "user", "content": chat}]} for chat in CHATS]
    store = BodyStore.write(tmp_path_factory.mktemp("chats") / "chats", bodies)
    core = TorchCore(TorchSettings(checkpoint=checkpoint(served), slots=4, max_total_tokens=ROOM))
    rows = range(len(CHATS))
    workload = Workload("catalogue", Sampling(0.0, 1.0, 0, CAP, (), 0), TokenEvents.NONE, str(store.path))
    core.submit(Requests(workload, rows, rows, PromptTable.empty(1), [0] * len(CHATS)))
    found: dict[int, str] = {}
    while len(found) < len(CHATS):
        for event in core.step():
            assert isinstance(event, Replies)
            start = 0
            for number, end in zip(event.numbers, event.ends, strict=True):
                found[number] = json.loads(bytes(event.data[start:end]))["content"]
                start = end
    return [found[row] for row in rows]


def text_of(server: Server, chat: list[dict[str, Any]], **body: object) -> str:
    answer = server.chat(chat, **body)
    assert answer.status == 200, answer.body
    if body.get("stream"):
        chunks = [each["choices"][0]["delta"] for each in answer.events[:-1] if each["choices"]]
        return "".join(each.get("content") or "" for each in chunks)
    return str(answer.json["choices"][0]["message"]["content"])


@pytest.mark.parametrize("stream", [True, False])
def test_greedy_texts_are_the_cores(served: Server, greedy: list[str], stream: bool) -> None:
    assert [text_of(served, chat, stream=stream, **GREEDY) for chat in CHATS] == greedy
    assert len(set(greedy)) == len(CHATS)


def test_an_answer_depends_on_what_is_seen(served: Server, greedy: list[str]) -> None:
    other = [CHATS[0][0], part("JPEG", picture("JPEG", shade=250))]
    assert text_of(served, other, **GREEDY) != greedy[0]


def test_counts(served: Server) -> None:
    for chat in CHATS:
        counts = served.chat(chat, **GREEDY).json["usage"]
        wanted = len(qwen3_vl.prompt_ids({"messages": [{"role": "user", "content": chat}]}))
        assert (counts["prompt_tokens"], counts["completion_tokens"]) == (wanted, CAP)


def test_text_alone(served: Server) -> None:
    body = served.chat("hi", **GREEDY).json
    assert text_of(served, [{"type": "text", "text": "hi"}], **GREEDY) == body["choices"][0]["message"]["content"]
    assert served.get("/health_generate").status == 200


def test_sampling_is_the_checkpoints_where_a_request_has_none(served: Server) -> None:
    spec = EngineSpec("torch", {"checkpoint": str(checkpoint(served))})
    own = defaults(spec)
    assert own == Defaults(temperature=0.7, top_p=0.8, top_k=20)
    assert set(end_ids(spec)) == {qwen3_vocab.END_OF_TURN, qwen3_vocab.END_OF_TEXT}
    info = EngineInfo("torch", qwen3_vocab.VOCAB_SIZE, ROOM, 4, None, {}, {})
    limits = Limits(info, end_ids(spec), 0, own)

    def chosen(**stated: object) -> tuple[float, float, int]:
        body = ChatRequest.model_validate({"model": "m", "messages": [{"role": "user", "content": "hi"}]} | stated)
        found = limits.sampling(body, [1])
        return found.temperature, found.top_p, found.top_k

    assert chosen() == (0.7, 0.8, 20)
    assert chosen(top_k=0) == (0.7, 0.8, 0)
    assert chosen(temperature=0.0, top_p=1.0) == (0.0, 1.0, 20)
    cold = [text_of(served, CHATS[0], max_completion_tokens=CAP, top_k=1, seed=seed) for seed in (1, 2)]
    own_way = [text_of(served, CHATS[0], max_completion_tokens=CAP, seed=seed) for seed in (1, 2)]
    assert cold[0] == cold[1] and own_way[0] != own_way[1]


def test_what_a_checkpoint_may_say_of_sampling(tmp_path: Path) -> None:
    spec = EngineSpec("torch", {"checkpoint": str(tmp_path)})
    assert defaults(spec) == Defaults()
    assert defaults(EngineSpec("scripted", {})) == Defaults() and end_ids(EngineSpec("scripted", {})) == ()
    for told, words in (
        ({"repetition_penalty": 1.05}, "repetition_penalty is 1.05"),
        ({"top_p": "most"}, "sampling that is none"),
        ([], "no JSON object"),
    ):
        (tmp_path / "generation_config.json").write_text(json.dumps(told))
        with pytest.raises(ConfigError, match=words):
            defaults(spec)
    (tmp_path / "generation_config.json").write_bytes(b"{")
    with pytest.raises(ConfigError, match="cannot be read"):
        defaults(spec)
    (tmp_path / "generation_config.json").write_text('{"temperature": 0.5, "eos_token_id": 7}')
    assert defaults(spec) == Defaults(temperature=0.5)


@pytest.mark.parametrize("model", ["--tiny_gpt_oss", "--checkpoint=."])
def test_one_model_at_a_time(model: str) -> None:
    from tests.serve.client import run_serve

    ended = run_serve("--tiny_qwen3_vl", model)
    assert ended.returncode == 2 and "needs weights, and of one model" in ended.stderr
