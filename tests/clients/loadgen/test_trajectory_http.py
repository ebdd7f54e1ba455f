"""Real LoadGen over the HTTP engine and a server that plays a part: in a process of its own, and in the worker's."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness.clients.loadgen.job import LegJob
from harness.engines.address import EngineAddress, lanes_before
from harness.engines.base import NOT_TOLD, Finish
from harness.engines.bodies import BodyStore
from harness.engines.group import Member, start_group
from harness.engines.start import EngineSpec
from harness.ledger.turns import TurnState
from tests.clients.loadgen.trajectory_legs import Ran, job, run
from tests.engines.http.play import DONE, END, HEAD, MODEL, Peer, chunk, frame, info, response, server

pytestmark = pytest.mark.e2e

ANSWERED, FAILED, SKIPPED, _ = TurnState
TURNS = 3
CALL = {"index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": "{}"}}
NOBODY = EngineAddress(("/nobody",), ("/nobody.log",), lanes_before(1, 1))


def said(finish: str | None = None, **delta: object) -> bytes:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return chunk(frame({"object": "chat.completion.chunk", "model": MODEL, "choices": [choice]}))


def usage(row: int) -> bytes:
    counts = {"prompt_tokens": 100 + row, "completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": row}}
    return chunk(frame({"model": MODEL, "choices": [], "usage": counts}))


def playing(bad: int, uncounted: int, seen: list[tuple[int, str]]) -> Callable[[Peer], None]:
    """Reasons, then calls a tool; fails one row, and does not count the tokens of another."""

    def play(peer: Peer) -> None:
        while True:
            head, body = peer.request()
            row = int(body["messages"][0]["content"])
            (session,) = re.findall(rb"\r\nX-Session-ID: ([^\r]+)", head + b"\r\n")
            seen.append((row, session.decode()))
            if row == bad:
                peer.send(response(b"oh no", "500 Oh"))
                continue
            counts = b"" if row == uncounted else usage(row)
            peer.send(HEAD, said(reasoning_content="hm"), pause_s=0.01)
            peer.send(said(tool_calls=[CALL]), said("tool_calls"), counts, chunk(DONE), END)

    return play


def spec(url: str) -> EngineSpec:
    return EngineSpec(
        "http",
        {
            "server": "trtllm-serve",
            "model": MODEL,
            "endpoints": [{"name": "r0", "url": url}],
            "connections": 8,
            "info": dataclasses.asdict(info()),
        },
    )


def leg(folder: Path, url: str, store: BodyStore, inside: bool) -> Ran:
    conf = {"min_query_count": 8}
    if inside:
        return run(asked(folder, NOBODY, store, conf, spec(url)))
    with start_group([Member(spec(url))], log=folder / "engine.log", timeout_s=60, lanes=lanes_before(1, 1)) as group:
        return run(asked(folder, group.address, store, conf, None))


def asked(
    folder: Path, address: EngineAddress, store: BodyStore, conf: dict[str, int], inside: EngineSpec | None
) -> LegJob:
    core = None if inside is None else inside.to_json()
    return job(folder / "leg", address, store, "Offline", 4, conf=conf, inside=core)


@pytest.mark.parametrize("inside", [True, False], ids=["in the worker", "in a process"])
def test_turns_over_http(tmp_path: Path, inside: bool) -> None:
    sessions = [session for session in range(4) for _ in range(TURNS)]
    bodies = ({"messages": [{"role": "user", "content": str(row)}]} for row in range(len(sessions)))
    names = [f"task {session}" for session in range(4)]
    store = BodyStore.write(tmp_path / "chats", bodies, sessions, session_names=names)
    seen: list[tuple[int, str]] = []
    with server(playing(bad=4, uncounted=11, seen=seen)) as running:
        ran = leg(tmp_path, running.url, store, inside)
    outcome, turns, samples = ran.outcome, ran.turns, ran.samples
    assert outcome.error is None
    assert ran.detail.error_count == 0
    assert outcome.turns is not None
    assert outcome.turns.model_dump() == {"issued": 22, "answered": 20, "failed": 2, "skipped": 2, "outstanding": 0}
    assert outcome.failure_kinds == {"http_500": 2}
    assert outcome.engine_counters["requests"] == 22
    assert {(row, session) for row, session in seen} == {(row, f"task {row // TURNS}") for row in range(12) if row != 5}
    good, chat = turns["state"] == ANSWERED, turns["chat"]
    counted = good & (chat != 11)
    assert (turns["prompt_tokens"][counted] == 100 + chat[counted]).all()
    assert (turns["cached_tokens"][counted] == chat[counted]).all()
    assert (turns["answer_tokens"] == np.where(counted, 2, NOT_TOLD)).all()
    assert (turns["finish"][good] == Finish.TOOL_CALLS).all()
    assert ((turns["done_ns"] - turns["first_token_ns"])[good] > 5_000_000).any()  # told as it came
    row = samples["index"]
    assert (samples["answer_tokens"] == np.where((row == 1) | (row == 3), -1, 6)).all()
    assert (samples["prompt_tokens"][row == 3] == -1).all()
    assert outcome.counts.output_tokens == 4 * 6
    replies = [each.reply for each in ran.replies if each.reply is not None]
    assert {(reply["reasoning"], len(reply["tool_calls"])) for reply in replies} == {("hm", 1)}
