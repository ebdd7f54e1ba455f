"""Runs that were measured and wait for their verdict: what judges them, what leaves them waiting, what breaks them."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness import benchmarks
from harness.benchmarks.base import Dataset
from harness.clients.loadgen.job import OUTCOME, Outcome
from harness.engines.base import PromptTable
from harness.errors import MissingError, RunBroke
from harness.events import Event, LegFinished, ignore
from harness.ledger import ResultsStore, RunRecord, State, StoredRun, read_record, write_record
from harness.ledger.record import AuditConfigEcho, Counts, DatasetEcho
from harness.ledger.samples import SCHEMA, write_samples
from harness.runs import judging
from harness.runs.endings import end_dead_runs, measured
from harness.runs.judging import judge_later
from tests.gate import full_length
from tests.ledger.made_records import record
from tests.runs.made_legs import leg

ROWS = 6396


def outcome(error: str | None = None) -> Outcome:
    counts = Counts(issued=ROWS, answered=ROWS, failed=0, outstanding=0, output_tokens=4 * ROWS)
    return Outcome(counts=counts, failures=[], error=error, exit_code=0, library_rows=ROWS, loaded_rows=ROWS)


def table() -> Dataset:
    prompts = PromptTable.from_lists([[1]] * ROWS)
    return Dataset("d", "performance", prompts, ("",) * ROWS, (None,) * ROWS, (), stand_in=True)


@pytest.fixture
def store(tmp_path: Path) -> ResultsStore:
    return ResultsStore(tmp_path / "results")


@pytest.fixture
def running(store: ResultsStore, loadgen_runs: dict[tuple[str, str], Path]) -> Path:
    """The folder of a TEST09 whose LoadGen has ended and whose harness was killed just then."""
    planned = leg("Offline", "TEST09")
    assert planned.audit is not None
    run_id, folder = store.new_attempt("BOX", "gpt-oss-120b", "Offline", "TEST09")
    shutil.copytree(loadgen_runs["Offline", "TEST09"], folder / "logs", ignore=shutil.ignore_patterns("*.conf*"))
    (folder / "user.conf").write_text("*.Offline.target_qps = 8000\n")
    (folder / "audit.config").write_bytes(planned.audit.content)
    columns = {column.name: np.ones(4, np.int64) for column in SCHEMA}
    write_samples(folder / "samples.arrow", columns, np.zeros(4, np.int16), ["0"])
    (folder / OUTCOME).write_text(outcome().model_dump_json())
    echo = AuditConfigEcho(name=planned.audit.name, sha256=planned.audit.sha256, approved_sha256="ab" * 32)
    data = DatasetEcho(name="d", rows=ROWS, sha256=table().sha256, stand_in=True)
    config = planned.config.model_dump(mode="json")
    write_record(folder, record(run_id, config=config, dataset=data, audit_config=echo))
    return folder


@pytest.fixture(autouse=True)
def _benchmark(monkeypatch: pytest.MonkeyPatch) -> None:
    made: Any = SimpleNamespace(
        table=lambda which, _: which, dataset=lambda *_: table(), deviations=lambda _: ("judged otherwise",)
    )
    monkeypatch.setattr(benchmarks, "get", lambda *_: made)


def stored(folder: Path) -> StoredRun:
    return StoredRun(folder, read_record(folder / "run.json"))


def as_measured(store: ResultsStore, folder: Path) -> StoredRun:
    end_dead_runs(store, ignore)
    found = stored(folder)
    assert found.record.state is State.MEASURED
    return found


def test_a_harness_that_was_killed_after_loadgen_ended_loses_nothing(store: ResultsStore, running: Path) -> None:
    waiting = as_measured(store, running)
    assert waiting.record.counts == outcome().counts
    assert waiting.record.verdict is None
    told: list[Event] = []
    ended = judge_later(waiting, Path(), told.append)
    assert ended.state is State.FINISHED
    assert ended.audit is not None
    assert (ended.audit.passed, ended.audit.value) == (False, 4)
    assert stored(running).record == ended
    assert ended.fingerprint == waiting.record.fingerprint
    assert ended.ended_at == waiting.record.ended_at
    assert ended.deviations == ["judged otherwise"]
    assert isinstance(told[-1], LegFinished)
    assert told[-1].detail.startswith("FAIL, mean_output_tokens 4.000 (1150.38 to 1406.02)")


@pytest.mark.parametrize("left", ["an error", "half a file", "nothing"])
def test_a_loadgen_that_had_not_ended_well_leaves_nothing_to_judge(
    store: ResultsStore, running: Path, left: str
) -> None:
    path = running / OUTCOME
    path.write_text(outcome("it broke").model_dump_json() if left == "an error" else path.read_text()[:40])
    if left == "nothing":
        path.unlink()
    end_dead_runs(store, ignore)
    assert stored(running).record.state is State.INTERRUPTED


@pytest.mark.parametrize(
    "stop", [KeyboardInterrupt(), MissingError("no tokenizer"), OSError("disk"), ZeroDivisionError("a fault of ours")]
)
def test_what_is_not_the_logs_fault_leaves_it_waiting(
    store: ResultsStore, running: Path, monkeypatch: pytest.MonkeyPatch, stop: BaseException
) -> None:
    waiting = as_measured(store, running)

    def stopped(*_: object) -> RunRecord:
        raise stop

    with monkeypatch.context() as patch:
        patch.setattr(judging, "conclude", stopped)
        told: list[Event] = []
        with pytest.raises(type(stop)):
            judge_later(waiting, Path(), told.append)
    assert "--resume judges it" in str(told[-1])
    assert stored(running).record == waiting.record
    assert judge_later(waiting, Path(), ignore).state is State.FINISHED


def test_a_log_that_is_cut_breaks_the_run(store: ResultsStore, running: Path) -> None:
    log = running / "logs" / full_length.ACCURACY_LOG
    log.write_bytes(log.read_bytes()[:-300])
    waiting = as_measured(store, running)
    told: list[Event] = []
    with pytest.raises(Exception, match="cut"):
        judge_later(waiting, Path(), told.append)
    broken = stored(running).record
    assert broken.state is State.BROKEN
    assert broken.note is not None
    assert "cut" in broken.note
    assert isinstance(told[-1], LegFinished)
    assert told[-1].verdict == "broken"


def test_files_that_were_edited_while_they_waited(store: ResultsStore, running: Path) -> None:
    waiting = as_measured(store, running)
    log = running / "logs" / full_length.DETAIL
    log.write_text(log.read_text() + "\n")
    with pytest.raises(RunBroke, match="changed after it was measured") as caught:
        judge_later(waiting, Path(), ignore)
    assert caught.value.where == str(log)
    assert stored(running).record == waiting.record


def test_another_data_set_than_the_one_that_was_asked(store: ResultsStore, running: Path) -> None:
    waiting = as_measured(store, running)
    other = waiting.record.dataset.model_copy(update={"sha256": "ef" * 32})
    run = StoredRun(running, waiting.record.model_copy(update={"dataset": other}))
    with pytest.raises(MissingError, match="asked another data set") as caught:
        judge_later(run, Path(), ignore)
    assert "--data_dir" in (caught.value.mend or "")


def test_an_outcome_that_is_gone(store: ResultsStore, running: Path) -> None:
    waiting = as_measured(store, running)
    (running / OUTCOME).unlink()
    with pytest.raises(MissingError, match="outcome is not there"):
        judge_later(waiting, Path(), ignore)


def test_what_is_measured_is_written_with_the_hashes_of_its_files(running: Path) -> None:
    kept = measured(running, stored(running).record, outcome())
    assert stored(running).record == kept
    assert set(kept.hashes) >= {"audit.config", "user.conf", "samples.arrow", f"logs/{full_length.ACCURACY_LOG}"}
