"""Real tokens: the torch engine behind the protocol."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from harness import env
from harness.engines.base import Answers, PromptTable, Requests, Sampling, TokenEvents, Workload
from harness.engines.metrics import of_server
from harness.events import Occupancy
from tests.harness_process import wait_until
from tests.serve.client import Server

pytestmark = pytest.mark.torch

SLOTS = 4
PROMPTS = [[1, 2, 3], [200_006, 17_360, 200_008, 25], list(range(40))]
CAP = 24


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    with Server("--tiny-gpt-oss", f"--slots={SLOTS}", "--max_total_tokens=256") as server:
        yield server


@pytest.fixture(scope="module")
def greedy(served: Server) -> list[list[int]]:
    """What the core itself answers in this process."""
    from harness.engines.torch_cpu import TorchCore, TorchSettings

    name = served.get("/v1/models").json["data"][0]["id"]
    folder: Path = env.cache_dir() / "checkpoints" / name
    core = TorchCore(TorchSettings(checkpoint=folder, slots=SLOTS, max_total_tokens=256))
    sampling = Sampling(0.0, 1.0, 0, CAP, (), 0)
    core.submit(
        Requests(
            Workload("x", sampling, TokenEvents.NONE), range(3), range(3), PromptTable.from_lists(PROMPTS), range(3)
        )
    )
    found: dict[int, list[int]] = {}
    while len(found) < len(PROMPTS):
        for event in core.step():
            assert isinstance(event, Answers)
            for number, tokens in zip(event.numbers, np.split(event.tokens, event.ends[:-1]), strict=True):
                found[number] = tokens.tolist()
    return [found[i] for i in range(3)]


def ask(server: Server, prompt: list[int], **body: object) -> list[int]:
    answer = server.complete(prompt, **{"detokenize": False, "temperature": 0.0, "max_tokens": CAP} | body)
    assert answer.status == 200, answer.body
    if body.get("stream"):
        return [token for each in answer.events[:-1] for token in each["choices"][0]["token_ids"]]
    ids: list[int] = answer.json["choices"][0]["token_ids"]
    return ids


@pytest.mark.parametrize("stream", [True, False])
def test_greedy_ids_are_the_cores(served: Server, greedy: list[list[int]], stream: bool) -> None:
    assert [ask(served, prompt, stream=stream) for prompt in PROMPTS] == greedy


def test_its_cache_fills_with_what_it_works_on(served: Server) -> None:
    url = f"http://127.0.0.1:{served.port}"
    assert of_server("torch", url) == Occupancy(0, 0, 0.0)
    seen: list[Occupancy | None] = []
    asker = threading.Thread(target=ask, args=(served, PROMPTS[2]), kwargs={"max_tokens": 200})
    asker.start()
    while asker.is_alive():
        seen.append(of_server("torch", url))
    asker.join()
    caches = [told.kv_cache for told in seen if told is not None and told.running == 1 and told.kv_cache]
    assert caches == sorted(caches) and caches
    assert 40 / (SLOTS * 256) <= caches[0] <= caches[-1] <= 240 / (SLOTS * 256)


def test_an_answer_that_nobody_reads_is_worked_on_no_longer() -> None:
    """The engine has one slot and 20 times as much to do for the answer that is left as for the first, whole one."""
    with Server("--tiny-gpt-oss", "--slots=1", "--max_total_tokens=4096") as server:

        def used() -> float:
            times = server.engine.cpu_times()
            return times.user + times.system

        ask(server, [1], max_tokens=4)
        begin = used()
        ask(server, [1], max_tokens=150)
        whole = used() - begin
        for stream in (True, False):
            begin = used()
            raw = server.open_completion([1, 2, 3], max_tokens=3000, stream=stream)
            if stream:
                raw.until(b"token_ids")
            else:
                wait_until(lambda: server.active() == 1, "the request is there")
            raw.close()
            ask(server, [1], max_tokens=1)
            assert used() - begin < whole


def test_requests_at_once_are_worked_on_together(served: Server, greedy: list[list[int]]) -> None:
    """Every answer has begun before the first ends, and each is what it is alone."""
    first, last, bodies = [0.0] * 3, [0.0] * 3, [b""] * 3

    def stream(i: int) -> None:
        raw = served.open_completion(PROMPTS[i])
        raw.until(b"token_ids")
        first[i] = time.monotonic()
        bodies[i] = raw.until(b"[DONE]")
        last[i] = time.monotonic()
        raw.close()

    threads = [threading.Thread(target=stream, args=(i,)) for i in range(3)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert max(first) < min(last)
    assert all(bodies)
    together = []
    workers = [threading.Thread(target=lambda p=p: together.append(ask(served, p))) for p in PROMPTS]
    for each in workers:
        each.start()
    for each in workers:
        each.join()
    assert sorted(together) == sorted(greedy)


def test_a_stop_token_ends_an_answer_and_is_not_part_of_it(served: Server, greedy: list[list[int]]) -> None:
    answer = greedy[0]
    stop = answer[5]
    body = {"stop_token_ids": [stop], "detokenize": False, "temperature": 0.0, "max_tokens": CAP}
    choice = served.complete(PROMPTS[0], **body).json["choices"][0]
    assert choice["token_ids"] == answer[: answer.index(stop)]
    assert choice["finish_reason"] == "stop"
    events = served.complete(PROMPTS[0], stream=True, **body).events
    assert events[-2]["choices"][0]["token_ids"] == [] and events[-2]["choices"][0]["finish_reason"] == "stop"


def test_sampling_is_the_requests_own(served: Server, greedy: list[list[int]]) -> None:
    assert ask(served, PROMPTS[0], temperature=1.0, top_k=1) == greedy[0]
    assert ask(served, PROMPTS[0], temperature=1.0, seed=3) != greedy[0]


def test_the_name_and_the_marks_of_a_stand_in(served: Server) -> None:
    assert served.get("/v1/models").json["data"][0]["id"] == "tiny-gpt-oss-64x2-0"
    said = served.get("/engine").json
    assert said["not_submittable"] == ["stand-in checkpoint"] and said["slots"] == SLOTS


@pytest.mark.harmony
def test_a_chat_of_gpt_oss(served: Server) -> None:
    body = {"max_tokens": 6, "temperature": 0.0}
    whole = served.chat("hi", **body).json
    message = whole["choices"][0]["message"]
    assert message["content"] and message["reasoning_content"] is None
    assert whole["usage"]["prompt_tokens_details"] is None
    role, *middle, end, usage, done = served.chat("hi", stream=True, **body).events
    assert role["choices"][0]["delta"] == {"role": "assistant"} and done == "[DONE]"
    assert "".join(each["choices"][0]["delta"]["content"] for each in middle) == message["content"]
    assert end["choices"] == [{"index": 0, "delta": {}, "finish_reason": "length"}]
    assert usage["choices"] == [] and usage["usage"]["completion_tokens"] == 6


@pytest.mark.harmony
def test_what_a_chat_of_gpt_oss_cannot_be_has_a_type_of_its_own(served: Server) -> None:
    for stream in (True, False):
        answer = served.chat("hi", stream=stream, prompt_token_ids=[1] * 256)
        assert (answer.status, answer.json["type"], answer.json["code"]) == (400, "internal_error", 400)
    assert served.chat("hi", n=2).json["type"] == "BadRequestError"
