"""What a leg comes to, from a real LoadGen run's logs: its verdict is no better than the worst that they say."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.benchmarks.base import Answer, Dataset, Score, SubsetScore
from harness.clients.loadgen.job import FAILED_MARKER, Outcome
from harness.engines.base import PromptTable
from harness.gate import Expectation
from harness.ledger import ResultsStore, RunRecord, State, read_record, write_record
from harness.ledger.record import Counts, FailedSample
from harness.ledger.samples import SCHEMA, write_samples
from harness.logs import DetailLog
from harness.logs.errors import LogError
from harness.runs.verdict import _expectation, conclude
from tests.gate import full_length
from tests.ledger.made_records import record
from tests.logs.loadgen_runs import edit
from tests.runs.made_legs import AGENTIC, PACK, agentic, leg

CONF = "*.Offline.target_qps = 10\n*.Offline.min_query_count = 6396\n"
QPS = {"accuracy": "10", "TEST07": "8000", "TEST09": "8000"}
ERROR_LINE = (
    ':::MLLOG {"key": "error_runtime", "value": "made up", "time_ms": 1.0, "namespace": "mlperf::logging", '
    '"event_type": "POINT_IN_TIME", "metadata": {"is_error": true, "is_warning": false, "file": "a", "line_no": 1}}\n'
)


@dataclass
class Grader:
    """A benchmark that calls every answer right but the failed ones, and keeps what it was given."""

    failed: set[int] = field(default_factory=set)
    rows: int = 0
    value: float | None = None

    def score(self, answers: Iterable[Answer], dataset: Dataset, *, failed: set[int], where: object = None) -> Score:
        answered = [row for row, _ in answers]
        self.failed, self.rows = failed, dataset.rows
        subset = SubsetScore(
            "aime25",
            len(answered),
            correct=len(answered) - len(failed),
            wrong=0,
            failed=len(failed),
            unscored=0,
            output_tokens=4 * len(answered),
        )
        return Score(
            key="exact_match", value=self.value, subsets=(subset,), evaluator="a grader of tests", stand_in=True
        )

    def accuracy_text(self, score: Score) -> str:
        return f"{score.evaluator}\n"


@dataclass
class Attempt:
    """A leg that ran to its end and has not been judged."""

    folder: Path
    record: RunRecord
    name: str
    grader: Grader = field(default_factory=Grader)

    @property
    def detail(self) -> Path:
        return self.folder / "logs" / full_length.DETAIL

    def conclude(self, rows: int, **counts: int) -> RunRecord:
        differ = counts.pop("differ", 0)
        issued = counts.pop("issued", rows)
        failed = counts.pop("failed", 0)
        short = bool(counts.pop("short", 0))
        outcome = Outcome(
            counts=Counts(issued=issued, answered=issued - failed, failed=failed, outstanding=0, output_tokens=4),
            failures=[FailedSample(index=0, kind="fault", message="it failed")] * failed,
            error=None,
            exit_code=0,
            library_rows=rows,
            loaded_rows=rows,
            engine_counters={"requests": issued, "prompt_lengths_differ": differ},
        )
        benchmark: Any = self.grader
        return conclude(
            leg("Offline", self.name, short=short), self.folder, self.record, outcome, rows, dataset(rows), benchmark
        )

    def performance(self, **counts: int) -> RunRecord:
        return self.conclude(6396, issued=counts.pop("issued", self.issued), **counts)

    @property
    def issued(self) -> int:
        """Samples of the run's one query: it repeats the data set until the duration is filled."""
        return int(DetailLog.read(self.detail).values["generated_samples_per_query"])


def dataset(rows: int) -> Dataset:
    prompts = PromptTable.from_lists([[1]] * rows)
    return Dataset("d", "accuracy", prompts, ("aime25",) * rows, (None,) * rows, (), stand_in=True)


def write_some_samples(path: Path) -> None:
    """Four answered samples; Offline's figures are only for review."""
    columns = {column.name: np.zeros(4, np.int64) for column in SCHEMA}
    columns["done_ns"] += 10**9
    columns["answer_tokens"] += 4
    write_samples(path, columns, np.zeros(4, np.int16), ["0"])


Make = Callable[[str], Attempt]


@pytest.fixture
def attempt(tmp_path: Path, loadgen_runs: dict[tuple[str, str], Path]) -> Make:
    def make(name: str) -> Attempt:
        run_id, folder = ResultsStore(tmp_path).new_attempt("BOX", "gpt-oss-120b", "Offline", name)
        full_length.copy(loadgen_runs["Offline", name], folder / "logs", "Offline", name)
        (folder / "user.conf").write_text(CONF if name == "performance" else "*.Offline.target_qps = " + QPS[name])
        write_some_samples(folder / "samples.arrow")
        running = record(run_id)
        write_record(folder, running)
        return Attempt(folder, running, name)

    return make


def rejects(ended: RunRecord) -> set[str]:
    assert ended.verdict is not None
    found = {finding.rule for finding in ended.verdict.findings if finding.severity == "reject"}
    assert ended.verdict.valid == (not found)
    return found


def test_a_run_as_it_should_be(attempt: Make) -> None:
    made = attempt("performance")
    ended = made.performance()
    assert rejects(ended) == set()
    assert ended.state is State.FINISHED
    assert ended.verdict is not None
    assert ended.verdict.loadgen == "VALID"
    metric = PACK.benchmark("gpt-oss-120b").scenario("Offline").metric.value
    assert ended.result is not None
    assert (ended.result.key, ended.result.units) == (metric.key, metric.units)
    assert ended.result.value == DetailLog.read(made.detail).values[metric.key]
    assert set(ended.hashes) >= {"user.conf", "samples.arrow", f"logs/{full_length.DETAIL}"}
    assert ended.not_submittable == ["stand-in data set"]
    write_record(made.folder, ended)
    assert read_record(made.folder / "run.json") == ended


def test_an_error_line_of_loadgens_makes_it_invalid(attempt: Make) -> None:
    made = attempt("performance")
    with made.detail.open("a") as log:
        log.write(ERROR_LINE)
    ended = made.performance()
    assert rejects(ended) == {"LG-ERRORS", "LG-SUMMARY"}  # the summary still says that there were none
    assert ended.verdict is not None
    assert ended.verdict.loadgen == "VALID"


def test_a_user_conf_that_loadgen_took_otherwise_makes_it_invalid(attempt: Make) -> None:
    made = attempt("performance")
    (made.folder / "user.conf").write_text(CONF.replace("6396", "6397").replace("= 10", "= 11"))
    ended = made.performance()
    assert rejects(ended) == {"HN-USER-CONF"}
    assert ended.verdict is not None
    assert len([finding for finding in ended.verdict.findings if finding.rule == "HN-USER-CONF"]) == 2


def test_failed_samples_make_it_invalid_and_mark_it(attempt: Make) -> None:
    ended = attempt("performance").performance(failed=2)
    assert "RUN-FAILED" in rejects(ended)
    assert ended.not_submittable == ["stand-in data set", "failed samples"]
    assert len(ended.failures) == 2


def test_samples_that_loadgen_did_not_issue_make_it_invalid(attempt: Make) -> None:
    made = attempt("performance")
    assert rejects(made.performance(issued=made.issued + 1)) == {"RUN-ISSUED"}


def test_figures_that_differ_are_for_review_alone(attempt: Make) -> None:
    ended = attempt("performance").performance()
    assert ended.comparisons
    assert ended.verdict is not None
    assert {finding.rule for finding in ended.verdict.findings} >= {"HN-COMPARISON"}


@pytest.mark.parametrize("differ", [0, 3])
def test_prompts_that_the_server_counts_otherwise_are_for_review(attempt: Make, differ: int) -> None:
    made = attempt("performance")
    ended = made.performance(differ=differ)
    assert rejects(ended) == set()
    assert ended.verdict is not None
    found = [finding for finding in ended.verdict.findings if finding.rule == "HN-PROMPTS"]
    assert [(each.severity, each.found) for each in found] == [
        ("review", f"{differ} of {made.issued} prompts differ")
    ] * bool(differ)


def test_a_log_that_was_cut(attempt: Make) -> None:
    made = attempt("performance")
    made.detail.write_text(made.detail.read_text()[:-30])
    with pytest.raises(LogError):
        made.performance()


def test_an_accuracy_leg_is_scored(attempt: Make) -> None:
    made = attempt("accuracy")
    ended = made.conclude(4395)
    assert rejects(ended) == set()
    assert ended.result is None
    assert ended.accuracy is not None
    assert ended.accuracy.subsets["aime25"].correct == 4395
    assert ended.accuracy.evaluator == "a grader of tests"
    assert (made.folder / "accuracy.txt").read_text() == "a grader of tests\n"
    assert "accuracy.txt" in ended.hashes
    assert made.grader.rows == 4395


def test_a_marker_in_the_accuracy_log_is_a_failed_sample(attempt: Make) -> None:
    made = attempt("accuracy")
    log = made.folder / "logs" / full_length.ACCURACY_LOG
    answer, marker = (np.array(ids, np.int32).tobytes().hex() for ids in ([1, 2, 3, 4], FAILED_MARKER))
    text = log.read_text()
    assert answer in text
    log.write_text(text.replace(answer, marker.upper(), 1))
    ended = made.conclude(4395, failed=1)
    assert len(made.grader.failed) == 1
    assert ended.accuracy is not None
    assert ended.accuracy.subsets["aime25"].failed == 1
    assert "RUN-FAILED" in rejects(ended)


def test_a_stand_in_of_fewer_rows_is_judged_by_them_and_by_the_rounds_duration() -> None:
    ruled = Expectation.of_round(PACK, "gpt-oss-120b", "Offline", "performance")
    fewer = _expectation(leg(), 512, whole=False)
    assert (fewer.dataset_rows, fewer.logged_rows, fewer.min_query_count) == (512, 512, 512)
    assert fewer.mean_tokens is None
    assert fewer.min_duration_ms == ruled.min_duration_ms
    assert fewer.measured_duration_ms == ruled.measured_duration_ms
    assert _expectation(leg(), 6396, whole=True) == ruled
    assert _expectation(leg(name="TEST07"), 990, whole=False) == Expectation.of_round(
        PACK, "gpt-oss-120b", "Offline", "TEST07"
    )
    short = _expectation(leg(short=True), 64, whole=False)
    assert short.min_duration_ms == leg(short=True).config.test_run.min_duration_ms < ruled.min_duration_ms


def test_trajectories_are_judged_by_their_own_library_whole_or_not() -> None:
    ruled = Expectation.of_round(PACK, AGENTIC, "SingleStream", "performance")
    assert (ruled.dataset_rows, ruled.more_rows) == (995, True)
    own = _expectation(agentic(), 1000, whole=True, different=20)
    assert (own.dataset_rows, own.logged_rows, own.more_rows, own.issued_rows) == (1000, 1000, False, 20)
    assert own.min_duration_ms == own.measured_duration_ms == ruled.min_duration_ms
    short = _expectation(agentic("Offline", short=True), 3, whole=False, different=3)
    assert (short.dataset_rows, short.issued_rows) == (3, 3)
    assert short.min_duration_ms == agentic(short=True).config.test_run.min_duration_ms
    questions = _expectation(agentic("SingleStream", "accuracy"), 995, whole=True)
    assert questions == Expectation.of_round(PACK, AGENTIC, "SingleStream", "accuracy")


# -- audits ------------------------------------------------------------------------------------------------------------


def lengthen(made: Attempt, totals: int, rows: int) -> None:
    """Writes the accuracy log anew: answers whose lengths sum to ``totals``."""
    log = made.folder / "logs" / full_length.ACCURACY_LOG
    least, more = divmod(totals, rows)
    entries = [
        {
            "seq_id": row,
            "qsl_idx": row,
            "data": "01000000" * (least + (row < more)),
            "token_count": least + (row < more),
        }
        for row in range(rows)
    ]
    log.write_text("[\n" + ",\n".join(map(json.dumps, entries)) + "\n]\n")


@pytest.mark.parametrize(("total", "passed"), [(7_357_831, True), (7_357_830, False), (32 * 6396, False)])
def test_an_audit_of_lengths(attempt: Make, total: int, passed: bool) -> None:
    made = attempt("TEST09")
    lengthen(made, total, 6396)
    ended = made.conclude(6396)
    assert ended.audit is not None
    assert ended.audit.passed is passed
    assert ended.audit.value == total / 6396
    assert ended.audit.verifier == "mlperf-inference-harness"
    assert (ended.verdict is not None and ended.verdict.valid) is passed
    assert (rejects(ended) == set()) is passed
    text = (made.folder / "verify_output_len.txt").read_text()
    assert ("TEST PASS" in text) is passed
    assert "verify_output_len.txt" in ended.hashes
    assert made.grader.rows == 0  # nothing is scored
    assert ended.accuracy is None


@pytest.mark.parametrize(("value", "passed"), [(60.70707, True), (60.60606, False)])
def test_an_audit_of_accuracy(attempt: Make, value: float, passed: bool) -> None:
    made = attempt("TEST07")
    made.grader.value = value
    ended = made.conclude(990)
    assert ended.audit is not None
    assert (ended.audit.passed, ended.audit.value, ended.audit.at_least) == (passed, value, 60.698)
    assert rejects(ended) == (set() if passed else {"AUDIT-SCORE", "AUDIT-VERDICT"})
    assert ("TEST PASS" in (made.folder / "verify_accuracy.txt").read_text()) is passed
    assert ended.accuracy is not None
    assert ended.accuracy.value == value
    assert not (made.folder / "accuracy.txt").exists()


def test_an_audit_that_did_not_ask_each_row_once_is_not_scored(attempt: Make) -> None:
    """Rows drawn with replacement: some are there twice, and others never."""
    made = attempt("TEST07")
    made.grader.value = 99.0
    log = made.folder / "logs" / full_length.ACCURACY_LOG
    log.write_text(log.read_text().replace('"qsl_idx" : 7,', '"qsl_idx" : 8,'))
    ended = made.conclude(990)
    assert ended.audit is not None
    assert ended.audit.value is None
    assert not ended.audit.passed
    assert "AUDIT-COVERAGE" in rejects(ended)
    assert made.grader.rows == 0
    assert "TEST PASS" not in (made.folder / "verify_accuracy.txt").read_text()


def test_an_audit_log_that_was_cut(attempt: Make) -> None:
    made = attempt("TEST09")
    log = made.folder / "logs" / full_length.ACCURACY_LOG
    log.write_text(log.read_text()[:-400])
    with pytest.raises(LogError):
        made.conclude(6396)


def test_an_audit_whose_settings_were_not_obeyed(attempt: Make) -> None:
    made = attempt("TEST07")
    made.grader.value = 99.0
    edit(made.detail, effective_performance_issue_unique=False)
    assert "AUDIT-CONFIG" in rejects(made.conclude(990))


def test_a_short_run_does_not_shorten_its_audits(attempt: Make) -> None:
    made = attempt("TEST07")
    made.grader.value = 99.0
    assert rejects(made.conclude(990, short=1)) == set()
    made.folder.joinpath("verify_accuracy.txt").unlink()
    assert "AUDIT-COVERAGE" in rejects(made.conclude(64, short=1))
