"""Accuracy legs whose log is damaged, or whose data set is another: what is said, and that nothing is lost."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness import benchmarks, rules
from harness.benchmarks.base import Dataset
from harness.benchmarks.gpt_oss_120b.benchmark import GptOss120b
from harness.clients.loadgen.job import OUTCOME, Outcome
from harness.engines.base import PromptTable
from harness.errors import HarnessError, MissingError
from harness.events import Event, LegFinished, ignore
from harness.ledger import ResultsStore, RunRecord, State, StoredRun, read_record, write_record
from harness.ledger.hashes import sha256
from harness.ledger.record import Counts, DatasetEcho
from harness.ledger.samples import SCHEMA, write_samples
from harness.runs.endings import end_dead_runs
from harness.runs.judging import judge_later
from tests.gate.full_length import ACCURACY_LOG
from tests.ledger.made_records import add, record
from tests.runs.made_legs import leg

RULES = rules.load("v6.1").token_benchmark("gpt-oss-120b")
SUBSETS = {name: subset.samples for name, subset in RULES.accuracy_subsets.value.items()}
ROWS = sum(SUBSETS.values())
GRADED_BEFORE = pytest.mark.harmony
"""Other rows are decoded before the damage shows."""


def table(truth: str = "204") -> Dataset:
    subsets = tuple(name for name, samples in SUBSETS.items() for _ in range(samples))
    return Dataset("d", "accuracy", PromptTable.from_lists([[1]] * ROWS), subsets, (truth,) * ROWS, (), stand_in=True)


def outcome() -> Outcome:
    counts = Counts(issued=ROWS, answered=ROWS, failed=0, outstanding=0, output_tokens=4 * ROWS)
    return Outcome(counts=counts, failures=[], error=None, exit_code=0, library_rows=ROWS, loaded_rows=ROWS)


@pytest.fixture
def store(tmp_path: Path) -> ResultsStore:
    return ResultsStore(tmp_path / "results")


@pytest.fixture
def folder(store: ResultsStore, loadgen_runs: dict[tuple[str, str], Path]) -> Path:
    """The folder of an accuracy leg whose LoadGen has ended; a finished leg of the same row lies beside it."""
    planned = leg("Offline", "accuracy")
    add(store)
    run_id, made = store.new_attempt("BOX", "gpt-oss-120b", "Offline", "accuracy")
    shutil.copytree(loadgen_runs["Offline", "accuracy"], made / "logs", ignore=shutil.ignore_patterns("*.conf*"))
    (made / "user.conf").write_text("*.Offline.target_qps = 10\n")
    columns = {column.name: np.ones(4, np.int64) for column in SCHEMA}
    write_samples(made / "samples.arrow", columns, np.zeros(4, np.int16), ["0"])
    (made / OUTCOME).write_text(outcome().model_dump_json())
    data = DatasetEcho(name="d", rows=ROWS, sha256=table().sha256, stand_in=True)
    write_record(made, record(run_id, config=planned.config.model_dump(mode="json"), dataset=data))
    return made


@pytest.fixture(autouse=True)
def _benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    """The real scorer over a table in memory, which no tests of programs lie beside."""
    real = GptOss120b(RULES)
    made: Any = SimpleNamespace(
        table=lambda which, _: which,
        dataset=lambda *_: table(),
        deviations=lambda _: (),
        ready_to_score=lambda _: (),
        score=real.score,
        accuracy_text=real.accuracy_text,
    )
    monkeypatch.setattr(benchmarks, "get", lambda *_: made)


def damage(folder: Path, change: Callable[[list[str]], list[str]]) -> None:
    """Changes the lines of the accuracy log before anything looked at it."""
    log = folder / "logs" / ACCURACY_LOG
    log.write_text("".join(change(log.read_text().splitlines(keepends=True))))


def judged(store: ResultsStore, folder: Path, told: list[Event]) -> RunRecord:
    end_dead_runs(store, ignore)
    return judge_later(StoredRun(folder, read_record(folder / "run.json")), Path(), told.append)


def cut_in_an_entry(lines: list[str]) -> list[str]:
    return [*lines[:1000], lines[1000][:40]]


def cut_between_entries(lines: list[str]) -> list[str]:
    return lines[:1000]


def odd_hex(lines: list[str]) -> list[str]:
    return [re.sub(r'("data" : "\w+)\w"', r'\1"', line) if i == 7 else line for i, line in enumerate(lines)]


def bytes_of_no_whole_ids(lines: list[str]) -> list[str]:
    return [re.sub(r'("data" : "\w+)\w\w"', r'\1"', line) if i == 7 else line for i, line in enumerate(lines)]


def without_a_subset(lines: list[str]) -> list[str]:
    """Without the answers to AIME's rows, which are the first; the array is whole."""
    kept = [line for line in lines[1:-1] if int(re.search(r'"qsl_idx" : (\d+)', line)[1]) >= SUBSETS["aime25"]]  # type: ignore[index]  # each line has one
    return ["[\n", *kept[:-1], kept[-1].rstrip().rstrip(",") + "\n", "]\n"]


@pytest.mark.parametrize(
    ("change", "said", "where"),
    [
        (cut_in_an_entry, "cut in the middle", ":1001"),
        (cut_between_entries, "the log is cut: it ends before the array does", ":1000"),
        (odd_hex, "data of 31 hexadecimal digits", ":8"),
        pytest.param(bytes_of_no_whole_ids, "has 15 bytes", "", marks=GRADED_BEFORE),
        pytest.param(
            without_a_subset,
            "240 of 4395 rows have no answer: 0, 1, 2, 3, 4, ...",
            "",
            marks=GRADED_BEFORE,
        ),
    ],
)
def test_a_damaged_log_breaks_the_run_and_loses_nothing(
    store: ResultsStore, folder: Path, change: Callable[[list[str]], list[str]], said: str, where: str
) -> None:
    damage(folder, change)
    log, finished = folder / "logs" / ACCURACY_LOG, folder.parents[1] / "performance" / "attempt_01" / "run.json"
    kept = {path: sha256(path) for path in [*(folder / "logs").iterdir(), folder / "samples.arrow", finished]}
    told: list[Event] = []
    with pytest.raises(HarnessError) as caught:
        judged(store, folder, told)
    assert said in str(caught.value)
    assert f"{log}{where}" in str(caught.value)
    broken = read_record(folder / "run.json")
    assert broken.state is State.BROKEN
    assert said in (broken.note or "")
    assert isinstance(told[-1], LegFinished)
    assert (told[-1].verdict, broken.accuracy) == ("broken", None)
    assert not (folder / "accuracy.txt").exists(), "no score of a part"
    assert {path: sha256(path) for path in kept} == kept
    assert store.new_attempt("BOX", "gpt-oss-120b", "Offline", "accuracy")[1].name == "attempt_02"


@pytest.mark.harmony
@pytest.mark.parametrize("bad", [RULES.vocab_size.value, -5, 2**31 - 1])
def test_ids_outside_the_vocabulary_are_failed_answers_and_make_no_score(
    store: ResultsStore, folder: Path, bad: int
) -> None:
    """Neither wrong nor right: the row is counted as failed, no metric is written, and what was logged stays."""
    row = SUBSETS["aime25"] - 1
    ids = np.array([5, bad, 6, 7], "<i4").tobytes().hex().upper()

    def change(lines: list[str]) -> list[str]:
        return [
            re.sub(r'"data" : "\w+"', f'"data" : "{ids}"', line) if f'"qsl_idx" : {row},' in line else line
            for line in lines
        ]

    damage(folder, change)
    assert ids in (folder / "logs" / ACCURACY_LOG).read_text()
    found = judged(store, folder, []).accuracy
    assert found is not None
    assert found.value is None
    assert found.subsets["aime25"].failed == 1
    assert sum(subset.failed for subset in found.subsets.values()) == 1
    text = (folder / "accuracy.txt").read_text()
    assert "failed: 1\n" in text
    assert f"1 answers are no text; the first, to row {row}: token id {bad} at position 1 is not in 0..201087" in text
    assert "exact_match" not in text


def test_a_data_set_of_the_same_counts_and_other_content(
    store: ResultsStore, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows and subsets are those that were asked; the hash of the files tells them apart, and the run waits."""
    other = SimpleNamespace(
        table=lambda which, _: which, dataset=lambda *_: SimpleNamespace(rows=ROWS, sha256="ef" * 32)
    )
    with monkeypatch.context() as patch:
        patch.setattr(benchmarks, "get", lambda *_: other)
        with pytest.raises(MissingError, match="asked another data set") as caught:
            judged(store, folder, [])
    assert table().sha256 in (caught.value.expected or "")
    assert read_record(folder / "run.json").state is State.MEASURED
