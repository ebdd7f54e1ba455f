"""Chats with images over real HTTP, to a server with either's manners: what is sent, told and counted."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.engines.base import Finish, Sampling, TokenEvents, Workload
from harness.engines.bodies import BodyStore
from harness.engines.chats import qwen3_vl, qwen3_vocab
from tests.engines.http.play import core_of, drive, requests
from tests.serve.client import Server
from tests.serve.test_chat import url

image = pytest.importorskip("PIL.Image", reason="needs the [qwen3-vl] extra")

MODEL = "scripted"
LIMIT = 2_000
pytestmark = pytest.mark.qwen3vl

TEXTS = tuple(f'{{"category": "Möbel > {i}", "brand": "木村 😀"}}' for i in range(6))
TOO_LONG_ROW, BROKEN_ROW, LARGE_ROW = 3, 4, 5


def chat(row: int) -> dict[str, Any]:
    file = io.BytesIO()
    if row == LARGE_ROW:  # noise hardly compresses: a body of about half a megabyte
        pixels = np.random.default_rng(row).integers(0, 256, (384, 320, 3), dtype=np.uint8)
        image.fromarray(pixels).save(file, "PNG")
    else:
        image.new("RGB", (200 + row, 100), (row, 0, 9)).save(file, "JPEG")
    data = file.getvalue()[:-60] if row == BROKEN_ROW else file.getvalue()
    text = "long " * LIMIT if row == TOO_LONG_ROW else f"Was ist das? {row}"
    parts = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url(data, "JPEG")}}]
    return {"messages": [{"role": "system", "content": "be brief"}, {"role": "user", "content": parts}]}


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> BodyStore:
    bodies = [chat(row) for row in range(len(TEXTS))]
    counted = [len(qwen3_vl.prompt_ids(body)) for body in bodies]
    return BodyStore.write(tmp_path_factory.mktemp("chats") / "chats", bodies, tokens=counted)


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> str:
    path: Path = tmp_path_factory.mktemp("serve") / "answers.npz"
    answers = list(map(qwen3_vocab.encode, TEXTS))
    tokens = np.array([token for each in answers for token in each], np.int32)
    np.savez(path, tokens=tokens, ends=np.cumsum([len(each) for each in answers]).astype(np.int64))
    return json.dumps({"answers": {"serve": str(path)}, "vocab_size": qwen3_vocab.VOCAB_SIZE})


@pytest.fixture(scope="module", params=["trtllm-serve", "vllm"])
def served(request: pytest.FixtureRequest, script: str) -> Iterator[tuple[str, Server]]:
    options = ("--engine=scripted", f"--like={request.param}", f"--max_total_tokens={LIMIT}", "--stream_interval=3")
    with Server(*options, "--script", script) as server:
        yield request.param, server


def asked(store: BodyStore, events: TokenEvents, rows: list[int]) -> Any:
    sampling = Sampling(0.7, 0.8, 20, 150, (), 5)
    return requests(0, Workload("catalogue", sampling, events, str(store.path)), rows=rows)


@pytest.mark.parametrize("events", [TokenEvents.NONE, TokenEvents.FIRST])
def test_chats_with_images(served: tuple[str, Server], store: BodyStore, events: TokenEvents) -> None:
    kind, server = served
    rows = [0, 1, 2, LARGE_ROW, 0]
    with core_of(f"http://127.0.0.1:{server.port}", server=kind, model=MODEL) as core:
        core.submit(asked(store, events, rows))
        told = drive(core, len(rows))
        assert not told.failures
        texts = {number: reply["content"] for number, reply in told.replies.items()}
        assert set(texts.values()) <= set(TEXTS)
        assert texts[100] == texts[104]  # the same row: a script answers by the prompt's hash
        assert told.usage == {number: len(qwen3_vocab.encode(text)) for number, text in texts.items()}
        assert set(told.finish.values()) == {Finish.STOP}
        assert core.counters()["prompt_lengths_differ"] == 0
        assert core.counters()["retries"] == 0
        if events is TokenEvents.FIRST:
            assert all(told.first_ns[number] <= told.done_ns[number] for number in texts)


@pytest.mark.parametrize("events", [TokenEvents.NONE, TokenEvents.FIRST])
def test_chats_that_are_refused(served: tuple[str, Server], store: BodyStore, events: TokenEvents) -> None:
    kind, server = served
    with core_of(f"http://127.0.0.1:{server.port}", server=kind, model=MODEL) as core:
        core.submit(asked(store, events, [TOO_LONG_ROW, BROKEN_ROW, 0]))
        told = drive(core, 3)
        assert told.failures[100].kind == "prompt_too_long"
        assert told.failures[101].kind == "http_400" and "cannot be decoded" in told.failures[101].message
        assert list(told.replies) == [102]


def test_an_answer_that_the_cap_cut_is_an_answer(served: tuple[str, Server], store: BodyStore) -> None:
    kind, server = served
    of = Workload("catalogue", Sampling(0.7, 0.8, 20, 4, (), 5), TokenEvents.NONE, str(store.path))
    with core_of(f"http://127.0.0.1:{server.port}", server=kind, model=MODEL) as core:
        core.submit(requests(0, of, rows=[0]))
        told = drive(core, 1)
        assert told.finish == {100: Finish.LENGTH} and told.usage == {100: 4}


FAULTS = {
    "too_long": "prompt_too_long",
    "content_filter": "content_filter",
    "429": "http_429",
    "500": "http_500",
    "reset": "reset",
    "cut": "truncated",
    "half_frame": "truncated",
    "wrong_model": "wrong_model",
    "sse_error": "sse_error",
    "stall": "timeout",
    "hang": "timeout",
    "no_done": "truncated",
}


@pytest.mark.parametrize("kind", ["trtllm-serve", "vllm"])
def test_no_fault_looks_like_an_answer(script: str, store: BodyStore, kind: str) -> None:
    """Each is followed by a request that is answered: nothing of it is left behind."""
    planned = [f"--fault={fault}@{1 + 2 * place}" for place, fault in enumerate(FAULTS)]
    options = ("--engine=scripted", f"--like={kind}", f"--max_total_tokens={LIMIT}", *planned)
    of = asked(store, TokenEvents.FIRST, [0]).workload
    with (
        Server(*options, "--script", script) as server,
        core_of(f"http://127.0.0.1:{server.port}", server=kind, model=MODEL, request_timeout_s=2.0) as core,
    ):
        for number, fault in enumerate(FAULTS):
            core.submit(requests(0, of, first=2 * number, rows=[0]))
            told = drive(core, 1)
            assert not told.replies
            assert told.failures[2 * number].kind == FAULTS[fault], told.failures
            core.submit(requests(0, of, first=2 * number + 1, rows=[1]))
            assert list(drive(core, 1).replies) == [2 * number + 1]
        assert core.counters()["retries"] == 0
        assert core.counters()["failures"] == len(FAULTS)


@pytest.mark.parametrize("kind", ["trtllm-serve", "vllm"])
@pytest.mark.parametrize("events", [TokenEvents.NONE, TokenEvents.FIRST])
def test_an_answer_that_says_nothing_is_none(script: str, store: BodyStore, kind: str, events: TokenEvents) -> None:
    options = ("--engine=scripted", f"--like={kind}", f"--max_total_tokens={LIMIT}", "--fault=empty@1")
    with (
        Server(*options, "--script", script) as server,
        core_of(f"http://127.0.0.1:{server.port}", server=kind, model=MODEL) as core,
    ):
        core.submit(asked(store, events, [0]))
        told = drive(core, 1)
        assert not told.replies and told.failures[100].kind == "empty_answer"
