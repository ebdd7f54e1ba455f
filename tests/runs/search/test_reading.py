"""What samples say of a rate."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from harness.rules import load
from harness.runs.search.limits import LATENCY, TPOT, TTFT, Limit, limits_of
from harness.runs.search.reading import Measured, read
from tests.runs.search.made import LIMIT, TOKENS, columns

PACK = load("v6.1")


def test_the_limits_are_the_round_s() -> None:
    server = limits_of(PACK.benchmark("gpt-oss-120b").scenario("Server"))
    assert server == (Limit(TTFT, 3e9, strict=True), Limit(TPOT, 80e6, strict=True))
    images = limits_of(PACK.benchmark("qwen3-vl-235b-a22b").scenario("Interactive"))
    assert images == (Limit(LATENCY, 1.5e9, strict=False),)
    assert limits_of(PACK.benchmark("gpt-oss-120b").scenario("Offline")) == ()
    with pytest.raises(ValueError, match="limit of speed"):
        Limit("speed", 1, strict=True)


def test_what_came_while_the_queue_filled_is_not_judged() -> None:
    """Ten a second for thirty seconds; all of the first third is late."""
    issued = np.arange(300) / 10
    ttft = np.where(issued < 9.9, 5.0, 0.1)
    found = read(columns(issued, ttft), [LIMIT, TOKENS])
    first, tokens = found.measured
    assert (first.queries, first.over, first.bursts) == (200, 0, 0)
    assert first.p99_ns == pytest.approx(0.1e9)
    assert tokens.p50_ns == pytest.approx(0.014e9 / 7)
    assert found.rate == pytest.approx(10, rel=0.01)
    assert found.queries == 300
    whole = read(columns(issued, ttft), [LIMIT], 0.0).measured[0]
    assert (whole.over, whole.bursts) == (99, 1)


def test_bursts_are_counted_in_the_order_in_which_queries_came() -> None:
    issued = np.arange(300) / 10
    ttft = np.full(300, 0.1)
    ttft[[150, 151, 152, 200, 250, 251]] = 3.0
    part = read(columns(issued, ttft), [LIMIT]).measured[0]
    assert (part.over, part.bursts) == (6, 3)
    assert part.share == pytest.approx(6 / 200)


@pytest.mark.parametrize(("strict", "over"), [(True, 200), (False, 0)])
def test_at_the_limit_is_over_it_where_it_must_be_below(strict: bool, over: int) -> None:
    found = read(columns(np.arange(300) / 8, np.full(300, 3.0)), [Limit(TTFT, 3e9, strict=strict)])
    assert found.measured[0].over == over


def test_a_queue_that_grows() -> None:
    """Twelve come a second, ten are answered."""
    issued = np.arange(1200) / 12
    done = np.maximum(issued + 0.1, np.arange(1200) / 10 + 0.1)
    found = read(columns(issued, done - issued, 0.0), [LIMIT]).queue
    assert found.came == pytest.approx(12, rel=0.01)
    assert found.answered == pytest.approx(10, rel=0.01)
    assert found.lag == pytest.approx(0.2, rel=0.05)
    assert found.sigmas == pytest.approx((800 - 800 / 1.2) / 800**0.5, rel=0.05)
    steady = read(columns(issued, np.full(1200, 0.1)), [LIMIT]).queue
    assert abs(steady.grew) <= 1
    assert steady.lag < 0.01


def test_failed_samples_are_counted_and_have_no_times() -> None:
    found = read(columns(np.arange(300) / 10, np.full(300, 0.1), failed=[50, 290]), [LIMIT])
    assert found.failed == 2
    assert found.measured[0].queries == 199


def test_what_waits_when_a_run_is_cut_is_over_each_limit_that_it_has_waited_for() -> None:
    issued = np.arange(300) / 10
    unanswered = list(range(250, 300))
    ttft, tokens = read(columns(issued, np.full(300, 0.1), outstanding=unanswered), [LIMIT, TOKENS]).measured
    assert (ttft.over, ttft.bursts, ttft.queries) == (19, 1, 169)
    assert tokens.over == 0


def test_nothing_was_answered() -> None:
    found = read(columns(np.arange(300) / 10, np.full(300, 0.1), outstanding=list(range(300))), [TOKENS])
    assert found.measured[0].share == 1.0
    assert found.queue.answered == 0
    assert found.queue.lag == float("inf")
    with pytest.raises(ValueError, match="1 samples"):
        read(columns(np.zeros(1), np.ones(1)), [LIMIT])


def test_counts_that_cannot_be() -> None:
    part = Measured(LIMIT, 10, 2, 1, 1.0, 2.0)
    for changes in ({"over": 11}, {"bursts": 3}, {"bursts": 0}):
        with pytest.raises(ValueError, match="bursts"):
            dataclasses.replace(part, **changes)
