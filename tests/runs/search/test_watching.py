"""When a probe is ended before its time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from harness.events import Event, LegProgress, LegStarted, Note, Running
from harness.runs.search.watching import Hopeless, Watch, hopeless, never, overrun, too_long


def progress(elapsed_s: float, issued: float, completed: float, *running: Running) -> LegProgress:
    return LegProgress("a leg", elapsed_s, int(issued), int(completed), 0, running=running)


def seen(seconds: int, came: float, answered: Callable[[float], float]) -> list[LegProgress]:
    """One look a second; ``answered`` is how many were by then."""
    return [progress(t, came * t, answered(t)) for t in range(1, seconds + 1)]


def test_more_comes_than_is_answered_and_the_answers_become_no_more() -> None:
    why = hopeless(seen(30, 100, lambda t: 60 * t), queries=12_000)
    assert why == "100 queries/s come and 60 are answered"
    assert hopeless(seen(29, 100, lambda t: 60 * t), queries=12_000) is None  # not a quarter of it yet
    assert hopeless(seen(4, 100, lambda t: 60 * t), queries=100) is None  # nor five seconds


@pytest.mark.parametrize(
    "answered",
    [
        lambda t: 95 * t,  # within a tenth
        lambda t: max(0.0, 100 * (t - 20)),  # batches that fill: answers take 20 s, and come as fast as queries
        lambda t: t * t,  # answers that become more and more
        lambda t: 0.0,  # the first answers are still to come
    ],
    ids=["a little", "long answers", "rising", "none yet"],
)
def test_what_may_yet_keep_up_goes_on(answered: Callable[[float], float]) -> None:
    assert hopeless(seen(30, 100, answered), queries=12_000) is None


def test_few_queries_may_lag_by_chance() -> None:
    assert hopeless(seen(30, 1, lambda t: 0.7 * t), queries=100) is None


def test_half_of_the_answers_over_a_limit() -> None:
    late = Running("TPOT", p50_ns=90e6, p99_ns=99e6, limit_ns=80e6)
    fine = Running("TTFT", p50_ns=1e9, p99_ns=4e9, limit_ns=3e9)
    free = Running("latency", p50_ns=1e12, p99_ns=1e12)
    assert hopeless([progress(30, 3000, 3000, fine, free)], queries=12_000) is None
    assert hopeless([progress(30, 3000, 2999, late)], queries=12_000) is None
    assert hopeless([progress(30, 3000, 3000, fine, late)], queries=12_000) == (
        "half of the answers or more are over the limit of TPOT"
    )


def test_a_watch_hands_all_on_and_raises_with_the_reason() -> None:
    told: list[Event] = []
    watch = Watch(told.append, overrun(12_000))
    watch(LegStarted("a leg", "/results/a", None))
    looks = seen(30, 100, lambda t: 60 * t)
    for look in looks[:-1]:
        watch(look)
    watch(Note("by the way"))
    with pytest.raises(Hopeless) as caught:
        watch(looks[-1])
    assert caught.value.what == "ended early: 100 queries/s come and 60 are answered"
    assert caught.value.exit_code == 130
    assert str(watch.folder) == caught.value.where == "/results/a"
    assert told == [LegStarted("a leg", "/results/a", None), *looks[:-1], Note("by the way"), looks[-1]]


def test_a_run_of_offline_that_takes_too_long() -> None:
    ends = too_long(20)
    assert ends([progress(20, 9000, 10)]) is None
    assert ends([progress(21, 9000, 0)]) is None  # nothing would be known of it
    assert ends([progress(21, 9000, 1)]) == "longer than 20 s; what was answered tells the rate"
    assert never([progress(1e9, 9000, 0)]) is None
