"""Running figures: from notes as they grow, as numpy has them of all at once."""

from __future__ import annotations

import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.clients.loadgen.live import (
    GROWTH,
    HIGHEST_NS,
    LOWEST_NS,
    Grown,
    Histogram,
    Latencies,
    LiveFigures,
)
from harness.clients.loadgen.record import Record, pack_done, pack_first, pack_issued
from harness.clients.loadgen.turn_order import Trajectory
from harness.clients.loadgen.turn_record import TurnRecord
from harness.engines.base import NOT_TOLD, Failure

MS = 1_000_000
ERROR = GROWTH**0.5 - 1
DURATIONS = st.lists(st.integers(LOWEST_NS, HIGHEST_NS - 1), min_size=1, max_size=200)


def test_the_error_that_is_said_is_that_of_half_a_bucket() -> None:
    assert ERROR <= 0.01


@settings(deadline=None)
@given(durations=DURATIONS, share=st.sampled_from([0.01, 0.5, 0.9, 0.99, 1.0]), pieces=st.integers(1, 4))
def test_a_percentile_is_that_of_numpy_within_the_error(durations: list[int], share: float, pieces: int) -> None:
    histogram = Histogram()
    for piece in np.array_split(np.array(durations, np.int64), pieces):
        histogram.add(piece)
    exact = np.percentile(np.array(durations, np.float64), 100 * share, method="inverted_cdf")
    assert histogram.percentiles([share])[0] == pytest.approx(exact, rel=ERROR * 1.0001)
    assert histogram.count == len(durations)


def test_what_is_beyond_the_scale_is_counted_at_its_ends() -> None:
    histogram = Histogram()
    histogram.add(np.array([-5, 0, 3, HIGHEST_NS * 10], np.int64))
    assert histogram.percentiles([0.5])[0] == pytest.approx(LOWEST_NS, rel=GROWTH - 1)
    assert histogram.percentiles([1.0])[0] == pytest.approx(HIGHEST_NS, rel=GROWTH - 1)


def test_there_is_no_percentile_of_nothing() -> None:
    with pytest.raises(ValueError, match="of nothing"):
        Histogram().percentiles([0.5])


def test_notes_are_read_once_and_may_grow_meanwhile() -> None:
    record = Record(tells_first_tokens=True)
    grown = Grown(record.firsts, 2)
    assert grown.columns().shape == (2, 0)
    total = 20_000

    def append() -> None:
        for number in range(total):
            record.firsts.frombytes(pack_first(number, number + 1))

    thread = threading.Thread(target=append)
    thread.start()
    seen: list[int] = []
    while thread.is_alive() or len(seen) < total:
        columns = grown.columns()
        assert (columns[1] == columns[0] + 1).all()
        seen += columns[0].tolist()
    thread.join()
    assert seen == list(range(total))


class Notes:
    """A record as a SUT writes it."""

    def __init__(self, *, tells: bool = True) -> None:
        self.record = Record(tells_first_tokens=tells)

    def issue(self, number: int, at: int) -> None:
        self.record.issued.frombytes(pack_issued(number, 0, at))

    def first(self, number: int, at: int) -> None:
        self.record.firsts.frombytes(pack_first(number, at))

    def done(self, number: int, tokens: int, at: int) -> None:
        self.record.dones.frombytes(pack_done(number, tokens, 0, 1, 2, at))

    def fail(self, number: int) -> None:
        self.record.failures.append(Failure(number, "x", "y"))

    def figures(self, scenario: str = "Server") -> LiveFigures:
        return LiveFigures(self.record, None, scenario=scenario)


def running(told: dict[str, object]) -> dict[str, tuple[float, float]]:
    assert isinstance(told["running"], list)
    return {each["name"]: (each["p50_ns"], each["p99_ns"]) for each in told["running"]}


def about(duration_ns: float) -> object:
    return pytest.approx(duration_ns, rel=ERROR * 1.0001)


def test_a_first_token_told_by_itself_counts_before_its_answer() -> None:
    notes = Notes()
    figures = notes.figures()
    notes.issue(7, 1000 * MS)
    notes.first(7, 1020 * MS)
    told = figures.look(0)
    assert running(told) == {"TTFT": (about(20 * MS), about(20 * MS))}
    assert (told["samples_per_s"], told["tokens_per_s"]) == (None, None)
    notes.done(7, 5, 1060 * MS)
    told = figures.look(1)
    assert running(told)["TTFT"] == (about(20 * MS), about(20 * MS))
    assert running(told)["TPOT"] == (about(10 * MS), about(10 * MS))
    assert running(told)["latency"] == (about(60 * MS), about(60 * MS))
    assert told["samples_per_s"] is not None
    assert told["tokens_per_s"] is not None


def test_a_first_token_that_nobody_told_came_with_the_answer() -> None:
    notes = Notes()
    figures = notes.figures()
    notes.issue(7, 1000 * MS)
    notes.done(7, 1, 1020 * MS)
    told = running(figures.look(1))
    assert told == {"TTFT": (about(20 * MS), about(20 * MS)), "latency": (about(20 * MS), about(20 * MS))}


def test_a_failed_sample_is_in_no_figure_but_its_own() -> None:
    notes = Notes()
    figures = notes.figures()
    notes.issue(7, 1000 * MS)
    notes.first(7, 9000 * MS)  # as the SUT notes it with the marker
    notes.fail(7)
    notes.issue(8, 1000 * MS)
    notes.done(8, 2, 1010 * MS)
    told = figures.look(2)
    assert running(told)["TTFT"] == (about(10 * MS), about(10 * MS))
    assert (told["issued"], told["completed"], told["failed"]) == (2, 2, 1)


def test_a_first_token_of_what_failed_before_disturbs_nothing() -> None:
    notes = Notes()
    figures = notes.figures()
    notes.issue(7, 0)
    notes.fail(7)
    figures.look(1)
    notes.first(7, 5)
    notes.issue(6, 1000 * MS)
    notes.done(6, 1, 1010 * MS)
    assert running(figures.look(2))["latency"] == (about(10 * MS), about(10 * MS))


def test_offline_tells_rates_and_no_latency() -> None:
    notes = Notes(tells=False)
    figures = notes.figures("Offline")
    notes.record.issued_many.append(([1, 2, 3], [0, 0, 0], 5))
    notes.record.dones_many.append(([1, 2], [10, 20], (0, 0), (1, 1), (2, 2), 1000))
    told = figures.look(2)
    assert told["running"] == []
    assert (told["issued"], told["completed"]) == (3, 2)
    assert told["samples_per_s"] is not None


def test_columns_of_many_samples_count_as_single_ones_do() -> None:
    notes = Notes(tells=False)
    figures = notes.figures("SingleStream")
    notes.record.issued_many.append(([1, 2], [0, 0], 1000 * MS))
    notes.record.dones_many.append(([2, 1], [10, 20], (0, 0), (1, 1), (2, 2), 1030 * MS))
    assert running(figures.look(2)) == {"latency": (about(30 * MS), about(30 * MS))}


def test_tokens_that_nobody_counts_make_no_rate() -> None:
    notes = Notes()
    figures = notes.figures()
    notes.issue(7, 1000 * MS)
    notes.done(7, NOT_TOLD, 1020 * MS)
    told = figures.look(1)
    assert told["tokens_per_s"] is None
    assert "TPOT" not in running(told)


@settings(deadline=None)
@given(
    lives=st.lists(
        st.tuples(st.integers(1, 10**9), st.integers(1, 10**9), st.integers(1, 50), st.booleans()), max_size=60
    ),
    looks=st.integers(1, 5),
)
def test_looks_in_pieces_tell_what_one_at_the_end_does(lives: list[tuple[int, int, int, bool]], looks: int) -> None:
    ids = np.random.default_rng(1).permutation(len(lives)) * 64
    notes, pieces = Notes(), []
    figures = notes.figures()
    for place, (number, (first, rest, tokens, told)) in enumerate(zip(ids.tolist(), lives, strict=True)):
        notes.issue(number, place)
        if told:
            notes.first(number, place + first)
        if place % looks == 0:
            pieces.append(figures.look(0))
        notes.done(number, tokens, place + first + rest)
    at_once = notes.figures().look(len(lives))
    assert figures.look(len(lives))["running"] == at_once["running"]
    exact = [first if told else first + rest for first, rest, _, told in lives]
    if exact:
        wanted = np.percentile(np.clip(exact, LOWEST_NS, None), 99, method="inverted_cdf")
        assert running(at_once)["TTFT"][1] == about(float(wanted))


def test_of_what_was_answered_nothing_is_kept() -> None:
    latencies = Latencies()
    for piece in range(50):
        ids = np.arange(1000, dtype=np.int64) + 1000 * piece
        latencies.issue(ids, ids)
        latencies.done(ids, ids + 5, ids + 9, np.full(1000, 2))
    assert len(latencies._ids) == len(latencies._issued_ns) == len(latencies._first_ns) == 0
    assert latencies._names["latency"].count == 50_000


def test_turns_have_figures_of_their_own(tmp_path: Path) -> None:
    notes, turns = Notes(), TurnRecord(tmp_path / "replies")
    figures = LiveFigures(notes.record, turns, scenario="Server")
    one = Trajectory(7, 0, 0, 0, 2, 0)
    notes.issue(7, 1000 * MS)
    turns.answered(turns.issued(one, 1000 * MS), one, b"{}", 1010 * MS, 1030 * MS, 3, 9, 9, 0)
    turns.failed(turns.issued(one, 1040 * MS), one, "x", "y")
    told = figures.look(0)
    assert running(told) == {
        "turn TTFT": (about(10 * MS), about(10 * MS)),
        "turn TPOT": (about(10 * MS), about(10 * MS)),
        "turn latency": (about(30 * MS), about(30 * MS)),
    }
    assert (told["turns"], told["completed"]) == (1, 0)
    assert told["tokens_per_s"] is not None
    turns.close()
