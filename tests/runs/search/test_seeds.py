"""The whole search on a queue of which the right answer is known otherwise: by a simulation of millions of queries."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from harness.runs.search.steps import Found, Settings
from tests.runs.search.queues import Queue, Simulated, arrivals, highest_rate

pytestmark = pytest.mark.slow

SEEDS = range(20)
SCRIPTED = Simulated(Queue(places=8, service_s=0.034, first_s=0.02), limit_s=3.0, probe_s=20)
"""The engine of the end-to-end test."""
FAST = Simulated(Queue(places=32, service_s=0.1, first_s=0.02), limit_s=3.0, probe_s=120)
SLOW = Simulated(Queue(places=8, service_s=0.1, first_s=0.02), limit_s=3.0, probe_s=120)


@functools.cache
def limit(simulated: Simulated) -> float:
    return highest_rate(simulated.queue, simulated.limit_s)


@pytest.mark.parametrize("guess", [0.1, 0.5, 1.3, 4.0], ids=lambda share: f"guess-{share}")
@pytest.mark.parametrize("simulated", [SCRIPTED, FAST, SLOW], ids=["scripted", "fast", "slow"])
def test_twenty_seeds_end_within_two_percent_of_the_limit(simulated: Simulated, guess: float) -> None:
    found, probes, full = [], [], []
    for seed in SEEDS:
        end, state = simulated.search(guess * simulated.queue.capacity, seed)
        assert isinstance(end, Found), (seed, end)
        found.append(end.rate)
        probes.append(len(state.probes))
        full.append(len(state.full))
    off = np.array(found) / limit(simulated) - 1
    assert np.abs(off).max() < 0.02, off.round(4)
    assert max(probes) <= 10
    assert np.mean(probes) < 9
    assert max(full) <= 3


@pytest.mark.parametrize("seed", SEEDS)
def test_where_the_tail_of_a_short_queue_is_the_limit_the_run_s_own_limit_is_found(seed: int) -> None:
    """Waiting is limited to far less than a probe lasts: what is over comes in bursts, at a rate below the capacity.

    Of such a limit even a full run knows no more than a few percent; LoadGen's arrivals are always the same, though,
    and so is the highest rate whose full run is VALID.
    """
    tight = Simulated(Queue(places=32, service_s=0.1, first_s=0.02), limit_s=0.15, probe_s=120)
    end, state = tight.search(0.6 * tight.queue.capacity, seed)
    assert isinstance(end, Found), end
    low, high = 0.5 * tight.queue.capacity, tight.queue.capacity
    while high / low > 1.002:
        rate = (low * high) ** 0.5
        low, high = (rate, high) if tight.full(rate, seed).valid else (low, rate)
    assert -0.05 < end.rate / low - 1 < 0.005
    assert len(state.probes) <= Settings().max_probes


def test_the_queue_is_the_one_of_the_textbook() -> None:
    """Pollaczek and Khinchine's mean wait of M/D/1, and one place after the other by hand."""
    one = Queue(places=1, service_s=1.0, first_s=0.0)
    waits = one.ttft_s(arrivals(0.7, 400_000, seed=1))
    assert waits.mean() == pytest.approx(0.7 / (2 * 0.3), rel=0.05)
    two = Queue(places=2, service_s=10.0, first_s=1.0)
    assert two.ttft_s(np.array([0.0, 1.0, 2.0, 3.0, 40.0])).tolist() == [1.0, 1.0, 9.0, 9.0, 1.0]
