"""What the turns of a run came to: no failed one is lost, and none flatters a figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness import benchmarks, rules
from harness.benchmarks.base import Dataset
from harness.clients.loadgen.job import Outcome
from harness.errors import MissingError, RunBroke
from harness.ledger.record import Counts, TurnCounts
from harness.ledger.samples import Int64
from harness.ledger.turns import COLUMNS, TURNS, TurnState, write_turns
from harness.runs.turns import counted, judge_turns
from tests.runs.made_legs import AGENTIC

MS = 1_000_000


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A stand-in of three trajectories, in 50 repeats."""
    folder = tmp_path_factory.mktemp("data")
    benchmark = benchmarks.get(AGENTIC, rules.load("v6.1"))
    benchmark.make_dataset(folder, seed=0)
    return benchmark.dataset(folder, "trajectories")


def columns(states: list[list[TurnState]], rows: list[int]) -> dict[str, Int64]:
    """Turns of samples one after the other: each answered one took 10 ms more than the one before it."""
    flat = [(sample, turn, state) for sample, own in enumerate(states) for turn, state in enumerate(own)]
    made = {name: np.full(len(flat), -1, np.int64) for name in COLUMNS}
    made["sample"] = np.array([sample for sample, _, _ in flat])
    made["row"] = np.array([rows[sample] for sample, _, _ in flat])
    made["turn"] = np.array([turn for _, turn, _ in flat])
    made["chat"] = np.arange(len(flat))
    made["state"] = np.array([state for _, _, state in flat], np.int64)
    asked = made["state"] < TurnState.SKIPPED
    made["issued_ns"][asked] = 1000 * MS * np.arange(len(flat))[asked]
    answered = made["state"] == TurnState.ANSWERED
    made["done_ns"][answered] = made["issued_ns"][answered] + 10 * MS * np.arange(1, len(flat) + 1)[answered]
    return made


A, F, S = TurnState.ANSWERED, TurnState.FAILED, TurnState.SKIPPED


def outcome(turns: TurnCounts | None) -> Outcome:
    counts = Counts(issued=2, answered=2, failed=0, outstanding=0, output_tokens=4)
    return Outcome(counts=counts, turns=turns, failures=[], error=None, exit_code=0, library_rows=150, loaded_rows=150)


def test_figures_are_over_answered_turns_alone(tmp_path: Path, dataset: Dataset) -> None:
    turns = columns([[A, A], [A, F, S]], [0, 4])
    write_turns(tmp_path / TURNS, turns)
    judged = judge_turns(tmp_path, outcome(counted(turns)), dataset)
    assert judged is not None
    assert judged.figures.mean_latency_ns == 20 * MS
    assert judged.figures.turns_per_s == pytest.approx(3 / 2.03)
    assert list(judged.figures.issued.values()) == [1, 1, 0]
    assert [name.split("-")[-1] for name in judged.figures.issued] == ["1", "2", "3"]
    assert [(finding.rule, finding.severity.value, finding.found) for finding in judged.findings] == [
        ("RUN-TURNS-FAILED", "reject", "1 of 4 issued turns failed"),
        ("RUN-TURNS-SKIPPED", "reject", "1 of 5 turns were never asked: one before them had failed"),
    ]


def test_turns_as_they_should_be(tmp_path: Path, dataset: Dataset) -> None:
    turns = columns([[A, A], [A, A, A], [A]], [1, 1, 2])
    write_turns(tmp_path / TURNS, turns)
    judged = judge_turns(tmp_path, outcome(counted(turns)), dataset)
    assert judged is not None
    assert judged.findings == ()
    assert list(judged.figures.issued.values()) == [0, 2, 1]


def test_the_worker_and_the_file_must_tell_the_same(tmp_path: Path, dataset: Dataset) -> None:
    turns = columns([[A, F], [A, A]], [0, 1])
    told = TurnCounts(issued=4, answered=4, failed=0, skipped=0, outstanding=0)
    write_turns(tmp_path / TURNS, turns)
    judged = judge_turns(tmp_path, outcome(told), dataset)
    assert judged is not None
    (finding,) = judged.findings
    assert (finding.rule, finding.severity.value) == ("RUN-TURNS-COUNT", "reject")
    assert "answered 3, failed 1" in finding.found


def test_where_nothing_was_answered_there_is_no_figure(tmp_path: Path, dataset: Dataset) -> None:
    turns = columns([[F, S]], [0])
    write_turns(tmp_path / TURNS, turns)
    judged = judge_turns(tmp_path, outcome(counted(turns)), dataset)
    assert judged is not None
    assert (judged.figures.mean_latency_ns, judged.figures.turns_per_s) == (None, None)


def test_no_turns_where_a_sample_is_one_request(tmp_path: Path, dataset: Dataset) -> None:
    benchmark = benchmarks.get(AGENTIC, rules.load("v6.1"))
    questions = benchmark.dataset(dataset.files[0].path.parents[1], "bfcl")
    assert judge_turns(tmp_path, outcome(None), questions) is None


def test_turns_that_were_not_counted_or_are_gone(tmp_path: Path, dataset: Dataset) -> None:
    with pytest.raises(RunBroke, match="counted no turns"):
        judge_turns(tmp_path, outcome(None), dataset)
    with pytest.raises(MissingError):
        judge_turns(tmp_path, outcome(TurnCounts(issued=0, answered=0, failed=0, skipped=0, outstanding=0)), dataset)
