"""What stands beside the figures: limits of the round, and an engine that is asked now and then."""

from __future__ import annotations

import threading
import time

from harness import rules
from harness.clients import watching
from harness.clients.watching import OccupancyWatch, asked_for, limits_ns, nobody_tells
from harness.events import Occupancy, ignore
from tests.harness_process import wait_until


def test_limits_are_those_of_the_round() -> None:
    pack = rules.load("v6.1")
    server = pack.benchmark("gpt-oss-120b").scenario("Server")
    assert server.ttft_p99_below_ms is not None and server.tpot_p99_below_ms is not None
    limits = {"TTFT": server.ttft_p99_below_ms.value * 1e6, "TPOT": server.tpot_p99_below_ms.value * 1e6}
    assert limits_ns(server) == limits
    pictures = pack.benchmark("qwen3-vl-235b-a22b").scenario("Server")
    assert pictures.latency_p99_at_most_ms is not None
    assert limits_ns(pictures) == {"latency": pictures.latency_p99_at_most_ms.value * 1e6}
    assert limits_ns(pack.benchmark("gpt-oss-120b").scenario("Offline")) == {}


def test_an_engine_is_asked_now_and_then() -> None:
    asked: list[float] = []

    def ask() -> Occupancy | None:
        asked.append(time.monotonic())
        return Occupancy(len(asked)) if len(asked) < 3 else None

    with OccupancyWatch(ask, first_s=0.0, every_s=0.01) as watch:
        wait_until(lambda: len(asked) >= 4, "four questions", 10)
        assert watch.latest == Occupancy(2)  # the last that was answered
    seen = len(asked)
    time.sleep(0.05)
    assert len(asked) <= seen + 1


def test_what_was_said_long_ago_is_not_shown() -> None:
    with OccupancyWatch(lambda: Occupancy(1), first_s=0.0, every_s=60.0) as watch:
        wait_until(lambda: watch.latest, "an answer", 10)
        watch._seen = time.monotonic() - watching._STALE_S, Occupancy(1)
        assert watch.latest is None


def test_one_that_never_answers_holds_nothing_up() -> None:
    over = threading.Event()

    def ask() -> Occupancy | None:
        over.wait(20)
        return None

    began = time.monotonic()
    with OccupancyWatch(ask, first_s=0.0) as watch:
        time.sleep(0.02)
        assert watch.latest is None
    assert time.monotonic() - began < 5
    over.set()


def test_for_nobody_nothing_is_asked() -> None:
    def ask() -> Occupancy | None:
        return Occupancy(1)

    assert asked_for(ignore, ask) is nobody_tells
    assert asked_for(lambda event: None, ask) is ask


def test_where_nobody_tells_nobody_is_asked() -> None:
    before = threading.active_count()
    with OccupancyWatch(nobody_tells) as watch:
        assert (threading.active_count(), watch.latest) == (before, None)
