"""The core in a host process, against the real server with real tokens."""

from __future__ import annotations

import dataclasses
import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import env
from harness.engines.base import EngineInfo, Event, Finish, PromptTable, Requests, Sampling, TokenEvents, Workload
from harness.engines.bodies import BodyStore
from harness.engines.remote import RemoteEngine
from harness.engines.replicas import ReplicasEngine
from harness.engines.start import EngineProcess, EngineSpec, start_engine
from tests.engines.http.play import Told
from tests.serve.client import Server

pytestmark = pytest.mark.torch

SLOTS, CAP, ROOM = 4, 24, 256
PROMPTS = [[1, 2, 3], [200_006, 17_360, 200_008, 25], list(range(40)), [9] * 7, [100_000, 5], [77]]


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    with Server("--tiny-gpt-oss", f"--slots={SLOTS}", f"--max_total_tokens={ROOM}", "--stream_interval=5") as server:
        yield server


@pytest.fixture(scope="module")
def client(served: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    info = EngineInfo("http", 201_088, ROOM, SLOTS, None, {}, {}, ("stand-in checkpoint",))
    settings = {
        "server": "torch",
        "model": model_of(served),
        "endpoints": [{"name": "0", "url": f"http://127.0.0.1:{served.port}"}],
        "connections": 3,
        "info": json.loads(json.dumps(dataclasses.asdict(info))),
    }
    log = tmp_path_factory.mktemp("client") / "client.log"
    with start_engine(EngineSpec("http", settings), log=log, timeout_s=60) as process:
        yield process


def model_of(served: Server) -> str:
    name: str = served.get("/v1/models").json["data"][0]["id"]
    return name


@pytest.fixture(scope="module")
def greedy(served: Server) -> dict[int, list[int]]:
    """What the torch engine answers in this process."""
    from harness.engines.torch_cpu import TorchCore, TorchSettings

    folder: Path = env.cache_dir() / "checkpoints" / model_of(served)
    core = TorchCore(TorchSettings(checkpoint=folder, slots=SLOTS, max_total_tokens=ROOM))
    core.submit(asked(TokenEvents.NONE))
    told = Told()
    while told.over < len(PROMPTS):
        for event in core.step():
            told.take(event)
    return told.answers


def asked(events: TokenEvents, stop: tuple[int, ...] = (), bodies: str = "") -> Requests:
    of = Workload("x", Sampling(0.0, 1.0, 0, CAP, stop, 0), events, bodies)
    every = range(len(PROMPTS))
    return Requests(of, every, every, PromptTable.from_lists([[]] * len(PROMPTS) if bodies else PROMPTS), every)


def answered(engine: RemoteEngine | ReplicasEngine, requests: Requests) -> Told:
    engine.submit(requests)
    told = Told()
    deadline = time.monotonic() + 60
    while told.over < len(requests):
        assert time.monotonic() < deadline
        events: list[Event] = engine.poll(1)
        for event in events:
            told.take(event)
    return told


@pytest.mark.parametrize("events", list(TokenEvents))
def test_ids_are_those_of_the_engine_itself(
    client: EngineProcess, greedy: dict[int, list[int]], events: TokenEvents
) -> None:
    engine = client.connect()
    try:
        told = answered(engine, asked(events))
        assert told.answers == greedy and not told.failures
        assert set(told.finish.values()) == {Finish.LENGTH}
        if events is TokenEvents.ALL:
            assert told.tokens == greedy
        if events is TokenEvents.FIRST:
            assert all(tokens == greedy[number][:1] for number, tokens in told.tokens.items()) and told.tokens
        counters = engine.counters(10)
        assert counters["retries"] == counters["failures"] == 0
    finally:
        engine.close()


@pytest.mark.parametrize("events", [TokenEvents.NONE, TokenEvents.FIRST])
def test_a_stop_token_ends_an_answer_and_is_no_part_of_it(
    client: EngineProcess, greedy: dict[int, list[int]], events: TokenEvents
) -> None:
    stop = greedy[0][10]
    engine = client.connect()
    try:
        told = answered(engine, asked(events, (stop,)))
        for number, whole in greedy.items():
            ended = whole.index(stop) if stop in whole else None
            assert told.answers[number] == whole[:ended]
            assert told.finish[number] == (Finish.LENGTH if ended is None else Finish.STOP)
    finally:
        engine.close()


@pytest.mark.parametrize("events", [TokenEvents.NONE, TokenEvents.FIRST])
def test_chats(client: EngineProcess, tmp_path: Path, events: TokenEvents) -> None:
    chats = [{"messages": [{"role": "user", "content": f"{n}?"}]} for n in range(len(PROMPTS))]
    store = BodyStore.write(tmp_path / "chats", chats, range(len(PROMPTS)))
    engine = client.connect()
    try:
        told = answered(engine, asked(events, bodies=str(store.path)))
        assert not told.failures and set(told.replies) == set(range(len(PROMPTS)))
        assert set(told.usage.values()) == {CAP} and set(told.finish.values()) == {Finish.LENGTH}
    finally:
        engine.close()


def test_a_prompt_that_is_too_long(client: EngineProcess) -> None:
    engine = client.connect()
    try:
        of = Workload("x", Sampling(0.0, 1.0, 0, CAP, (), 0), TokenEvents.FIRST)
        told = answered(engine, Requests(of, [5], [0], PromptTable.from_lists([[1] * ROOM]), [0]))
        assert told.failures[5].kind == "prompt_too_long", told.failures
    finally:
        engine.close()
