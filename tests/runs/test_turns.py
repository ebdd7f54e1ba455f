"""What the turns of a run came to: no failed one is lost, and none flatters a figure."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness import benchmarks, rules
from harness.benchmarks.base import Dataset
from harness.clients.loadgen.job import Outcome
from harness.config.models import HttpEngine, ScriptedEngine, TorchEngine, TrtllmEngine
from harness.errors import MissingError, RunBroke
from harness.ledger.hashes import hash_files
from harness.ledger.record import Counts, RunId, TurnCounts
from harness.ledger.samples import Int64
from harness.ledger.turn_report import read_turn_report
from harness.ledger.turns import COLUMNS, TURN_REPLIES, TURNS, TurnState, failure_line, reply_line, write_turns
from harness.runs.turns import JudgedTurns, judge_turns, tokenizer_of
from tests.ledger.made_records import record
from tests.runs.made_legs import AGENTIC, agentic

MS = 1_000_000
RUN = record(RunId(system="BOX", benchmark=AGENTIC, scenario="SingleStream", leg="performance", attempt=1))
A, F, S = TurnState.ANSWERED, TurnState.FAILED, TurnState.SKIPPED


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Dataset:
    """A stand-in of three trajectories, in 50 repeats."""
    folder = tmp_path_factory.mktemp("data")
    benchmark = benchmarks.get(AGENTIC, rules.load("v6.1"))
    benchmark.make_dataset(folder, seed=0)
    return benchmark.dataset(folder, "trajectories")


@pytest.fixture(scope="module")
def turns_each(dataset: Dataset) -> list[int]:
    """How many turns each of the three has."""
    from harness.benchmarks.qwen3_6_27b.tables import source_of

    return [len(trajectory.turns) for trajectory in source_of(dataset).trajectories]


def columns(samples: list[tuple[int, list[TurnState]]]) -> dict[str, Int64]:
    """Turns of (library row, states) one after the other: the n-th of all took 10 ms times n, where it was answered."""
    flat = [(place, row, turn, state) for place, (row, own) in enumerate(samples) for turn, state in enumerate(own)]
    made = {name: np.full(len(flat), -1, np.int64) for name in COLUMNS}
    for at, name in enumerate(("sample", "row", "turn", "state")):
        made[name] = np.array([each[at] for each in flat], np.int64)
    made["chat"] = np.arange(len(flat))
    asked = made["state"] < TurnState.SKIPPED
    made["issued_ns"][asked] = 1000 * MS * np.arange(len(flat))[asked]
    answered = made["state"] == TurnState.ANSWERED
    made["done_ns"][answered] = made["issued_ns"][answered] + 10 * MS * np.arange(1, len(flat) + 1)[answered]
    made["first_token_ns"][answered] = made["done_ns"][answered]
    for name in ("answer_tokens", "prompt_tokens", "finish"):
        made[name][answered] = 1
    return made


def write(folder: Path, turns: dict[str, Int64]) -> TurnCounts:
    """The two files that a run leaves of its turns, and the counts that its worker tells."""
    write_turns(folder / TURNS, turns)
    with (folder / TURN_REPLIES).open("wb") as replies:
        for sample, row, turn, state in zip(
            *(turns[n].tolist() for n in ("sample", "row", "turn", "state")), strict=True
        ):
            if state == TurnState.ANSWERED:
                replies.write(reply_line(sample, row, turn, b'{"content":"x"}'))
            elif state == TurnState.FAILED:
                replies.write(failure_line(sample, row, turn, "reset", "the connection was lost"))
    of = np.bincount(turns["state"], minlength=4).tolist()
    return TurnCounts(issued=of[0] + of[1], answered=of[0], failed=of[1], skipped=of[2], outstanding=of[3])


def outcome(turns: TurnCounts | None) -> Outcome:
    counts = Counts(issued=2, answered=2, failed=0, outstanding=0, output_tokens=4)
    return Outcome(counts=counts, turns=turns, failures=[], error=None, exit_code=0, library_rows=150, loaded_rows=150)


def judged(folder: Path, dataset: Dataset, told: TurnCounts | None) -> JudgedTurns:
    found = judge_turns(agentic(), folder, RUN, outcome(told), dataset)
    assert found is not None
    return found


def test_figures_are_over_answered_turns_alone(tmp_path: Path, dataset: Dataset, turns_each: list[int]) -> None:
    first, second, _ = turns_each
    turns = columns([(0, [A] * first), (4, [A, F] + [S] * (second - 2))])
    found = judged(tmp_path, dataset, write(tmp_path, turns))
    answered = first + 1
    assert found.figures.mean_latency_ns == 10 * MS * (answered + 1) / 2
    assert found.figures.turns_per_s == pytest.approx(answered / (first + 0.01 * answered))
    assert list(found.figures.issued.values()) == [1, 1, 0]
    assert [name.split("-")[-1] for name in found.figures.issued] == ["1", "2", "3"]
    skipped, asked = second - 2, answered + 1
    assert [(finding.rule, finding.severity.value, finding.found) for finding in found.findings] == [
        ("RUN-TURNS-FAILED", "reject", f"1 of {asked} issued turns failed"),
        (
            "RUN-TURNS-SKIPPED",
            "reject",
            f"{skipped} of {first + second} turns were never asked: one before them had failed",
        ),
    ]
    assert read_turn_report(tmp_path).turns.skipped == skipped
    assert set(hash_files(tmp_path)) == {"turns.arrow", "turn_replies.jsonl", "turns.json"}


def test_turns_as_they_should_be(tmp_path: Path, dataset: Dataset, turns_each: list[int]) -> None:
    turns = columns([(row, [A] * turns_each[row % 3]) for row in (1, 4, 2)])
    found = judged(tmp_path, dataset, write(tmp_path, turns))
    assert found.findings == ()
    assert list(found.figures.issued.values()) == [0, 2, 1]
    assert found.figures.inline_score == 0  # no answer runs anything


def test_the_worker_and_the_file_must_tell_the_same(tmp_path: Path, dataset: Dataset, turns_each: list[int]) -> None:
    many = turns_each[0]
    write(tmp_path, columns([(0, [A] * (many - 1) + [F])]))
    told = TurnCounts(issued=many, answered=many, failed=0, skipped=0, outstanding=0)
    (finding,) = judged(tmp_path, dataset, told).findings
    assert (finding.rule, finding.severity.value) == ("RUN-TURNS-COUNT", "reject")
    assert f"answered {many - 1}, failed 1" in finding.found


def test_where_nothing_was_answered_there_is_no_figure(tmp_path: Path, dataset: Dataset, turns_each: list[int]) -> None:
    turns = columns([(0, [F] + [S] * (turns_each[0] - 1))])
    figures = judged(tmp_path, dataset, write(tmp_path, turns)).figures
    assert (figures.mean_latency_ns, figures.turns_per_s) == (None, None)


def test_no_turns_where_a_sample_is_one_request(tmp_path: Path, dataset: Dataset) -> None:
    benchmark = benchmarks.get(AGENTIC, rules.load("v6.1"))
    questions = benchmark.dataset(dataset.files[0].path.parents[1], "bfcl")
    assert judge_turns(agentic(name="accuracy"), tmp_path, RUN, outcome(None), questions) is None


def test_turns_that_were_not_counted_or_are_gone(tmp_path: Path, dataset: Dataset) -> None:
    with pytest.raises(RunBroke, match="counted no turns"):
        judged(tmp_path, dataset, None)
    with pytest.raises(MissingError):
        judged(tmp_path, dataset, TurnCounts(issued=0, answered=0, failed=0, skipped=0, outstanding=0))


def test_whose_tokenizer_counts(tmp_path: Path) -> None:
    made = {"make": "tiny-deepseek-v3"}
    own = {"name": "moonshotai/Kimi-K2.6", "path": str(tmp_path), "weight_data_type": "int4"}
    http = {"kind": "http", "server": "sglang", "version": "0.5", "checkpoint": own}
    assert tokenizer_of(ScriptedEngine(kind="scripted")) is None
    assert tokenizer_of(TorchEngine.model_validate({"kind": "torch", "checkpoint": made})) is None
    assert tokenizer_of(TorchEngine.model_validate({"kind": "torch", "checkpoint": str(tmp_path)})) == tmp_path
    assert tokenizer_of(HttpEngine.model_validate(http)) == tmp_path
    trtllm = {"kind": "trtllm", "version": "1.2", "checkpoint": own}
    assert tokenizer_of(TrtllmEngine.model_validate(trtllm)) == tmp_path
