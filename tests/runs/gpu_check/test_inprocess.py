"""The questions to an engine in process: asked of TensorRT-LLM's double, through the engine host's socket."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.engines.host import Host
from harness.engines.remote import RemoteEngine
from harness.engines.trtllm import build
from harness.runs.gpu_check import inprocess
from harness.runs.gpu_check.inprocess import QUESTIONS, Asked, ask_all
from harness.runs.gpu_check.report import Outcome, Status
from tests.engines.trtllm_double import double_in_place, make_checkpoint

Ask = Callable[..., Outcome]


@pytest.fixture
def double(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    with double_in_place(monkeypatch) as llmapi:
        llmapi.script.default = llmapi.Answer(tokens=1000)
        yield llmapi


@pytest.fixture
def ask(double: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ask]:
    """One question to a core that a thread hosts."""
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    core = build(
        {
            "checkpoint": str(make_checkpoint(tmp_path / "tiny-llm")),
            "options": {"max_seq_len": 256, "max_batch_size": 8, "stream_interval": 20},
        }
    )
    hold, end = os.pipe()
    path = tmp_path / "socket"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        host = threading.Thread(target=Host(core, listener, hold).serve)
        host.start()
        engine = RemoteEngine(path, log=tmp_path / "log")
        asked = Asked(engine, {"max_batch_size": 8, "stream_interval": 20})

        def question(name: str) -> Outcome:
            (finding,) = ask_all(asked, [each for each in QUESTIONS if each.name == name])
            assert (finding.where, finding.name) == ("in process", name)
            return finding.outcome

        yield question
        engine.close()
        os.close(end)
        host.join()
    os.close(hold)
    core.close()


def test_the_double_passes_them_all(ask: Ask) -> None:
    for question in QUESTIONS:
        outcome = ask(question.name)
        assert outcome.status is Status.PASSED, f"{question.name}: {outcome.seen}"


def test_what_is_seen_of_settings_tokens_and_seeds(ask: Ask) -> None:
    assert "max_batch_size=8, stream_interval=20" in ask("settings").seen
    assert "100 tokens in 6 pieces of [1, 19, 20, 20, 20, 20]" in ask("first tokens").seen
    assert "8 different answers; asked again with the same seeds: the same answers" in ask("seeds").seen
    assert "256 tokens: [prompt_too_long]; the request beside it: answered" in ask("too long").seen


@pytest.mark.parametrize(("in_ids", "told"), [(False, "not there"), (True, "there, and cut")])
def test_both_ways_of_the_stop_token_are_well_and_told(ask: Ask, double: Any, in_ids: bool, told: str) -> None:
    double.script.end_id_in_token_ids = in_ids
    outcome = ask("end token")
    assert outcome.status is Status.PASSED
    assert outcome.seen.count(f": {told}") == 2


def test_a_library_that_does_not_stop(ask: Ask, double: Any) -> None:
    double.script.deaf = True
    outcome = ask("end token")
    assert outcome.status is Status.FAILED
    assert "finish length" in outcome.seen


def test_a_library_of_one_seed(ask: Ask, double: Any) -> None:
    double.script.one_seed = True
    outcome = ask("seeds")
    assert outcome.status is Status.FAILED
    assert "1 different answers" in outcome.seen


def test_a_library_whose_first_chunk_is_all(ask: Ask, double: Any) -> None:
    double.script.whole = True
    outcome = ask("first tokens")
    assert outcome.status is Status.FAILED


def test_a_library_that_fails_requests(ask: Ask, double: Any) -> None:
    double.script.refused = "no room"
    for question in QUESTIONS:
        if question.name != "settings":
            assert ask(question.name).status is Status.FAILED


def test_a_library_that_hangs(ask: Ask, double: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inprocess, "_PATIENCE_S", 0.2)
    monkeypatch.setattr(inprocess, "_POLL_S", 0.1)
    double.script.held = True
    outcome = ask("seeds")
    assert outcome.status is Status.FAILED
    assert "0 of 8 answers, then nothing" in outcome.seen
    double.script.held = False
