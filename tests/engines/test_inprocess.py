from __future__ import annotations

import threading
import time

from harness.engines.base import Answers, Tokens
from harness.engines.inprocess import InProcessEngine
from harness.engines.scripted import ScriptedCore
from harness.engines.scripted_settings import ScriptedSettings, ServiceTime
from tests.engines.test_scripted import answers_of, requests


def test_submit_on_one_thread_poll_on_another() -> None:
    engine = InProcessEngine(ScriptedCore(ScriptedSettings()))
    seen: dict[int, list[int]] = {}

    def complete() -> None:
        while len(seen) < 500:
            seen.update(answers_of(engine.poll(5)))

    completion = threading.Thread(target=complete)
    completion.start()
    for i in range(500):
        engine.submit(requests([i], first_number=i))
    completion.join(10)
    assert seen == {i: [i, i + 1] for i in range(500)}


def test_submit_runs_nothing_of_the_engine() -> None:
    core = ScriptedCore(ScriptedSettings())
    engine = InProcessEngine(core)
    engine.submit(requests([1]))
    assert core.wait_s() is None


def test_poll_waits_for_what_is_due_later() -> None:
    engine = InProcessEngine(ScriptedCore(ScriptedSettings(first_token=ServiceTime(0.03))))
    engine.submit(requests([1]))
    start = time.monotonic()
    (first, *rest) = engine.poll(5)
    assert time.monotonic() - start >= 0.03
    assert isinstance(first, Tokens)
    (answers,) = rest or engine.poll(5)
    assert isinstance(answers, Answers)


def test_poll_ends_in_time_without_events() -> None:
    engine = InProcessEngine(ScriptedCore(ScriptedSettings(first_token=ServiceTime(60))))
    assert engine.poll(0) == []
    engine.submit(requests([1]))
    start = time.monotonic()
    assert engine.poll(0.05) == []
    assert 0.05 <= time.monotonic() - start < 5


def test_wake_ends_a_waiting_poll() -> None:
    engine = InProcessEngine(ScriptedCore(ScriptedSettings()))
    threading.Timer(0.05, engine.wake).start()
    start = time.monotonic()
    assert engine.poll(60) == []
    assert time.monotonic() - start < 30


def test_close_forgets_all() -> None:
    engine = InProcessEngine(ScriptedCore(ScriptedSettings()))
    engine.submit(requests([1]))
    engine.close()
    assert engine.poll(0) == []
