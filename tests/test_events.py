"""How far a piece of work is: told now and then, and at its end."""

from __future__ import annotations

import pytest

from harness import events
from harness.events import Event, StepProgress, Steps, counted


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [0.0]
    monkeypatch.setattr(events.time, "monotonic", lambda: now[0])
    return now


def test_steps_are_told_twice_a_second_at_most(now: list[float]) -> None:
    told: list[Event] = []
    steps = Steps(told.append, "reading", 100, "files")
    for done in range(100):
        now[0] = done / 40
        steps.at(done)
    steps.end(100)
    assert told == [StepProgress("reading", done, 100, "files") for done in (0, 20, 40, 60, 80, 100)]


def test_items_are_counted_as_they_come(now: list[float]) -> None:
    told: list[Event] = []
    for item in counted("abc", told.append, "reading", None):
        assert item in "abc"
        now[0] += 1
    assert told == [StepProgress("reading", done, total) for done, total in ((1, None), (2, None), (3, None), (3, 3))]


def test_nothing_is_done_at_once(now: list[float]) -> None:
    told: list[Event] = []
    assert list(counted([], told.append, "reading", 0)) == []
    assert told == [StepProgress("reading", 0, 0)]
