"""A results folder as a book, whatever is in it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from harness.config.models import SubmissionFile
from harness.ledger import Fingerprint, ResultsStore, State, StoredRun
from harness.ledger.record import (
    AccuracyEcho,
    AuditConfigEcho,
    AuditEcho,
    Comparison,
    Counts,
    FailedSample,
    Result,
    SubsetScore,
    TurnCounts,
    Verdict,
    VerdictFinding,
)
from harness.ledger.store import RECORD, SAMPLES
from harness.report.book.content import Book, Distribution, Missing, RowView, RunView
from harness.report.book.results import Wanted, gather_results
from tests.ledger.made_records import VALID, add, finished, record
from tests.report.book.made import made_columns, made_run, write_columns

GPT = "gpt-oss-120b"
REJECT = VerdictFinding(
    rule="LG-TTFT", severity="reject", path="detail:3", found="5 s", expected="less", mend="lower it", source="rules"
)
INVALID = Verdict(valid=False, loadgen="INVALID", findings=[REJECT])
ACCURACY = AccuracyEcho(
    key="exact_match",
    value=83.5,
    subsets={
        "aime25": SubsetScore(samples=4, correct=2, wrong=1, failed=1, unscored=0, mean_output_tokens=12.0),
        "gpqa": SubsetScore(samples=2, correct=0, wrong=0, failed=0, unscored=2, mean_output_tokens=None),
    },
    evaluator="ours",
    also={"tokens_per_sample": 9000.0},
)
AUDIT = AuditEcho(
    key="exact_match", value=60.5, at_least=60.0, at_most=None, passed=True, verdict_file="verify_accuracy.txt",
    verifier="ours", harness_value=60.5,
)  # fmt: skip
AUDIT_CONFIG = AuditConfigEcho(name="compliance/TEST07", sha256="ab", approved_sha256="ab")


def gathered(root: Path, **more: Any) -> Book:
    book = gather_results(ResultsStore(root), **more)
    keys = [run.key for run in book.runs]
    assert len(set(keys)) == len(keys) and all(set(row.runs) <= set(keys) for row in book.rows)
    for run in book.runs:
        names = [figure.key for figure in run.figures]
        assert len(set(names)) == len(names)
    return book


def only(book: Book) -> RunView:
    (run,) = book.runs
    return run


def whys(run: RunView) -> set[str]:
    return {figure.why for figure in run.figures if isinstance(figure, Missing)}


def test_a_run_with_all_that_is_known_of_it(tmp_path: Path) -> None:
    made_run(
        tmp_path,
        500,
        failed=2,
        verdict=INVALID,
        not_submittable=["failed samples"],
        deviations=["another cap"],
        failures=[FailedSample(index=7, kind="timeout", message="no answer")],
        failure_kinds={"cut": 1, "timeout": 4},
        comparisons=[Comparison(figure="result_query_count", loadgen=500, harness=500, ratio=1)],
        client_counters={"retries": 3},
    )
    book = gathered(tmp_path)
    run = only(book)
    assert (run.title, run.key) == (f"BOX/{GPT}/Server/performance#1", "BOX-gpt-oss-120b-Server-performance-1")
    assert (run.word, run.headline, run.leg, run.seconds) == ("INVALID", "12.50 Tokens/s", "performance", 600.0)
    assert run.place == f"BOX/{GPT}/Server/performance/attempt_01"
    assert dict(run.counts)["issued"] == 500 and dict(run.counts)["failed"] == 2
    assert run.failure_kinds == (("timeout", 4), ("cut", 1))
    assert run.failures == ("row 7, timeout: no answer",)
    assert run.comparisons == (("result_query_count", 500, 500, 1),)
    (said,) = run.findings
    assert (said.rule, said.severity, said.place) == ("LG-TTFT", "reject", "detail:3")
    facts = {group: dict(pairs) for group, pairs in run.facts}
    assert facts["run"]["target_qps"] == "5 (configured)" and facts["versions"] == {"harness": "0"}
    assert facts["client"] == {"retries": "3"} and facts["machine"] == {"cores": "2"}
    assert facts["fingerprint"]["system"] == "BOX"
    assert isinstance(run.figures[0], Distribution) and run.figures[0].count == 498
    assert run.notes == ("no margins from LoadGen's log: there is no mlperf_log_detail.txt",)
    (row,) = book.rows
    assert row.word == "INVALID" and row.demonstration and row.runs == (run.key,)
    assert row.reasons == ("the accuracy leg has no finished run", "failed samples", "LG-TTFT: 5 s", "another cap")
    assert (book.round, book.source, book.findings, book.notes) == ("v6.1", "results", (), ())


def cut(path: Path, share: float = 0.5) -> None:
    content = path.read_bytes()
    path.write_bytes(content[: int(len(content) * share)])


@pytest.mark.parametrize(
    ("value", "word", "headline", "why"),
    [
        (State.RUNNING, "interrupted", "killed while it ran", "killed while it ran"),
        (State.MEASURED, "measured", "measured and not judged", "there is no samples.arrow"),
        (State.BROKEN, "broken", "it broke", "the run broke and left no samples.arrow"),
        (State.INTERRUPTED, "interrupted", "it was interrupted", "the run was interrupted and left no samples.arrow"),
    ],
)
def test_runs_that_did_not_end(tmp_path: Path, value: State, word: str, headline: str, why: str) -> None:
    unended(made_run(tmp_path, 20), value).joinpath(SAMPLES).unlink()
    book = gathered(tmp_path)
    run = only(book)
    assert run.word == word and run.headline.startswith(headline)
    assert len(whys(run)) == 1 and why in whys(run).pop() and not run.margins
    (row,) = book.rows
    assert row.word == "incomplete" and row.value is None and "the performance leg has no finished run" in row.reasons


def unended(run: StoredRun, value: State) -> Path:
    """Makes a finished run one that is not; a run's record is never written again by the ledger itself."""
    changes = {"state": value.value, "verdict": None, "result": None, "ended_at": None, "counts": None}
    path = run.folder / RECORD
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return run.folder


def test_a_run_that_goes_on(tmp_path: Path) -> None:
    unended(made_run(tmp_path, 20), State.RUNNING).joinpath(SAMPLES).unlink()
    with ResultsStore(tmp_path).lock():
        run = only(gathered(tmp_path))
    assert (run.word, run.headline) == ("running", "it runs")
    assert whys(run) == {"the run goes on: samples.arrow is written at its end"}


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_samples_that_were_cut(tmp_path: Path, share: float) -> None:
    cut(made_run(tmp_path, 300).folder / SAMPLES, share)
    run = only(gathered(tmp_path))
    assert run.word == "VALID" and len(whys(run)) == 1 and "not a readable samples file" in whys(run).pop()


@pytest.mark.parametrize(
    ("content", "note"),
    [
        (b"", "no margins from LoadGen's log"),
        (b':::MLLOG {"key": "loadgen_ver', "no margins from LoadGen's log"),
        (b"\xff\xfe\x00", "no margins from LoadGen's log"),
    ],
)
def test_logs_that_were_cut(tmp_path: Path, content: bytes, note: str) -> None:
    (made_run(tmp_path, 300).logs / "mlperf_log_detail.txt").write_bytes(content)
    run = only(gathered(tmp_path))
    assert run.word == "VALID" and not whys(run) and not any(margin.met for margin in run.margins)
    assert all(each.startswith(note) for each in run.notes)


def test_an_empty_log_has_no_figures(tmp_path: Path) -> None:
    """A line of LoadGen's and nothing measured: each margin is there, and none is met."""
    line = b':::MLLOG {"key": "loadgen_version", "value": "6", "time_ms": 0.1, "namespace": "mlperf::logging", '
    line += b'"event_type": "POINT_IN_TIME", "metadata": {"is_error": false, "is_warning": false}}\n'
    (made_run(tmp_path, 300).logs / "mlperf_log_detail.txt").write_bytes(line)
    run = only(gathered(tmp_path))
    of_samples = [margin for margin in run.margins if margin.measured is not None]
    assert {margin.name for margin in of_samples} == {"TTFT, early stopping", "TPOT, early stopping"}
    assert len(run.margins) == 7 and not any(margin.met for margin in run.margins)
    assert run.notes == ()


def test_a_run_of_another_round(tmp_path: Path) -> None:
    made_run(tmp_path, 50, round="v9.9")
    made_run(tmp_path, 50, scenario="Offline", round="v6.1")
    book = gathered(tmp_path)
    other, known = (next(run for run in book.runs if word in run.title) for word in ("Server", "Offline"))
    assert not other.margins and "v9.9, of which there are no rules here" in other.notes[0]
    assert "v9.9" not in "".join(known.notes)
    assert book.round == "v6.1, v9.9" and book.notes == (
        "there are no rules of the round v9.9 here: its runs are shown without limits",
    )
    server = next(row for row in book.rows if row.scenario == "Server")
    assert server.word == "incomplete" and server.audits == () and server.value == 12.5


def test_the_newest_round_makes_the_row(tmp_path: Path) -> None:
    made_run(tmp_path, 50, round="v6.1", result=Result(key="k", value=2.0, units="Tokens/s"))
    made_run(tmp_path, 50, round="v6.0")
    book = gathered(tmp_path)
    (row,) = book.rows
    assert row.value == 2.0 and len(row.runs) == 1 and len(book.runs) == 2


def test_a_benchmark_that_the_round_does_not_know(tmp_path: Path) -> None:
    run_id, folder = ResultsStore(tmp_path).new_attempt("BOX", "bert", "Server", "performance")
    write_record_of(folder, finished(run_id))
    run = only(gathered(tmp_path))
    assert run.notes == ("the round v6.1 has no rules of bert: no limits and no margins",)


def write_record_of(folder: Path, made: Any) -> None:
    (folder / RECORD).write_text(made.model_dump_json())


def test_records_that_cannot_be_read(tmp_path: Path) -> None:
    made_run(tmp_path, 10)
    lost = made_run(tmp_path, 10, scenario="Offline").folder / RECORD
    cut(lost)
    book = gathered(tmp_path)
    unread = next(run for run in book.runs if run.word == "unread")
    assert unread.title == f"BOX/{GPT}/Offline/performance#1" and unread.leg == "performance"
    assert "not a readable run record" in unread.headline
    assert book.notes == (f"{unread.place}: {unread.headline}",)
    assert [row.scenario for row in book.rows] == ["Server"]
    assert str(tmp_path) not in unread.place


def test_an_attempt_without_a_record(tmp_path: Path) -> None:
    made_run(tmp_path, 10)
    (made_run(tmp_path, 10, scenario="Offline").folder / RECORD).unlink()
    (tmp_path / "BOX" / GPT / "Offline" / "performance" / "attempt_99").write_text("no folder")
    book = gathered(tmp_path)
    (unread,) = (run for run in book.runs if run.word == "unread")
    assert unread.title == f"BOX/{GPT}/Offline/performance#1" and unread.headline == "there is no run.json"
    assert book.notes == (f"{unread.place}: there is no run.json",) and len(book.rows) == 1


def test_nothing_at_all(tmp_path: Path) -> None:
    for root in (tmp_path, tmp_path / "nowhere"):
        book = gathered(root)
        assert (book.rows, book.runs, book.round) == ((), (), "none")
        assert book.notes == (f"there are no runs in {root}",)
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        ({"n": 0}, "there are no samples"),
        ({"n": 5, "failed": 5}, "none of 5 samples was answered, 5 failed"),
    ],
)
def test_runs_of_nothing(tmp_path: Path, changes: dict[str, int], why: str) -> None:
    made_run(tmp_path, **changes, result=None, verdict=INVALID)
    run = only(gathered(tmp_path))
    assert whys(run) == {why} and run.headline == "no result: LG-TTFT 5 s"


def test_answers_without_counted_tokens(tmp_path: Path) -> None:
    run = made_run(tmp_path, 10)
    columns = made_columns(10)
    columns["answer_tokens"][:] = -1
    write_columns(run.folder, columns)
    assert whys(only(gathered(tmp_path))) == {
        "no answer has more than one counted token",
        "nobody counted the tokens of the answers",
        "nobody counted the tokens of 10 answers",
    }


def test_accuracy_by_subset_and_also(tmp_path: Path) -> None:
    made_run(tmp_path, 6, leg="accuracy", result=None, accuracy=ACCURACY)
    run = only(gathered(tmp_path))
    assert run.scores == (("exact_match", 83.5), ("tokens_per_sample", 9000.0))
    assert [(part.name, part.correct, part.unscored) for part in run.subsets] == [("aime25", 2, 0), ("gpqa", 0, 2)]
    assert [(m.name, m.met) for m in run.margins] == [("exact_match", True), ("tokens_per_sample", True)]
    assert all(figure.limit is None for figure in run.figures if isinstance(figure, Distribution))


def row_of(root: Path, **more: Any) -> RowView:
    (row,) = gathered(root, **more).rows
    return row


def test_a_row_of_all_its_legs(tmp_path: Path) -> None:
    good = {"not_submittable": [], "deviations": []}
    made_run(tmp_path, 20, **good)
    made_run(tmp_path, 6, leg="accuracy", result=None, accuracy=ACCURACY, **good)
    made_run(tmp_path, 6, leg="TEST07", result=None, audit=AUDIT, audit_config=AUDIT_CONFIG, **good)
    row = row_of(tmp_path)
    assert (row.word, row.value, row.unit, row.metric) == ("VALID", 12.5, "Tokens/s", "result_tokens_per_second")
    assert row.accuracy.startswith("exact_match 83.5") and row.reasons == () and not row.demonstration
    assert row.audits == (("TEST07", "PASS, exact_match 60.500 (at least 60.0)"), ("TEST09", "not run"))
    assert [key.split("-")[-2] for key in row.runs] == ["performance", "accuracy", "TEST07"]
    assert "TEST07 exact_match" in [margin.name for margin in row.margins]
    assert (row.division, row.submitter, row.verified, row.higher_is_better) == (None, None, None, True)
    assert dict(row.boundary)["benchmark"] == GPT


ENTRY = {"category": "datacenter", "availability": "available", "system": "BOX", "benchmark": GPT}
SUBMISSION = SubmissionFile.model_validate(
    {
        "round": "v6.1",
        "submitter": "Acme",
        "entries": [
            {**ENTRY, "division": "closed", "scenarios": ["Server"]},
            {**ENTRY, "division": "open", "scenarios": ["Server", "Offline"]},
        ],
    }
)


def test_rows_of_several_divisions(tmp_path: Path) -> None:
    good = {"not_submittable": [], "deviations": []}
    for scenario in ("Server", "Offline", "Interactive"):
        made_run(tmp_path, 20, scenario=scenario, **good)
        made_run(tmp_path, 6, scenario=scenario, leg="accuracy", result=None, accuracy=ACCURACY, **good)
    rows = gathered(tmp_path, submission=SUBMISSION).rows
    assert [(row.scenario, row.division, row.word) for row in rows] == [
        ("Offline", "open", "VALID"),
        ("Interactive", None, "VALID"),
        ("Server", "closed", "incomplete"),
        ("Server", "open", "VALID"),
    ]
    closed = rows[2]
    assert closed.submitter == "Acme" and closed.category == "datacenter"
    assert closed.reasons == ("the TEST07 leg has no finished run", "the TEST09 leg has no finished run")
    assert len({row.key for row in rows}) == 4
    assert dict(closed.boundary)["division"] == "closed"


def test_the_newest_finished_attempt_counts_full_before_short(tmp_path: Path) -> None:
    values = {}
    for value, short in ((1.0, False), (2.0, False), (3.0, True)):
        run = made_run(tmp_path, 10, test_run=short, result=Result(key="k", value=value, units="Tokens/s"))
        values[value] = run
    unended(made_run(tmp_path, 10), State.BROKEN)
    row = row_of(tmp_path)
    assert row.value == 2.0 and row.runs == ("BOX-gpt-oss-120b-Server-performance-2",)
    shutil.rmtree(values[1.0].folder)
    shutil.rmtree(values[2.0].folder)
    assert row_of(tmp_path).value == 3.0


def probe() -> dict[str, Any]:
    return {"search": "1", "number": 2, "rate": 3.5, "purpose": "bracket", "outcome": "pass", "reason": ""}


def test_probes_are_shown_and_are_never_the_rows(tmp_path: Path) -> None:
    made_run(tmp_path, 10, leg="probe", probe=probe(), test_run=True)
    book = gathered(tmp_path)
    assert only(book).probe and book.rows == ()
    ttft = only(book).figures[1]
    assert isinstance(ttft, Distribution) and ttft.limit is not None, "it is a performance leg"
    assert only(book).notes == ("no margins from LoadGen's log: there is no mlperf_log_detail.txt",)
    assert dict(dict(only(book).facts)["run"])["probe.rate"] == "3.5"
    made_run(tmp_path, 10)
    assert row_of(tmp_path).runs == ("BOX-gpt-oss-120b-Server-performance-1",)


def test_legs_that_were_not_run_alike(tmp_path: Path) -> None:
    made_run(tmp_path, 10)
    made_run(tmp_path, 6, leg="accuracy", result=None, fingerprint=Fingerprint.of({"system": "BOX", "scenario": "x"}))
    assert "the accuracy leg was not run like the performance leg: scenario" in row_of(tmp_path).reasons


def test_a_leg_that_nobody_knows_is_shown(tmp_path: Path) -> None:
    made_run(tmp_path, 10, leg="TEST99")
    book = gathered(tmp_path)
    assert only(book).notes == () and not only(book).margins
    assert book.rows[0].word == "incomplete" and book.rows[0].runs == (only(book).key,)


def test_a_latency_is_better_when_it_is_less(tmp_path: Path) -> None:
    made_run(tmp_path, 10, result=Result(key="early_stopping_latency_ss", value=2.0, units="Latency (ms)"))
    assert not row_of(tmp_path).higher_is_better


def test_what_is_wanted(tmp_path: Path) -> None:
    for scenario in ("Server", "Offline"):
        add(ResultsStore(tmp_path), scenario)
    wanted = Wanted(systems=["BOX"], scenarios=["Offline"])
    book = gathered(tmp_path, wanted=wanted)
    assert only(book).title.endswith("Offline/performance#1") and len(book.rows) == 1
    assert gathered(tmp_path, wanted=Wanted(benchmarks=["other"])).runs == ()
    cut(tmp_path / "BOX" / GPT / "Offline" / "performance" / "attempt_01" / RECORD)
    assert gathered(tmp_path, wanted=Wanted(scenarios=["Server"])).notes == ()
    assert only(gathered(tmp_path, wanted=wanted)).word == "unread"


def test_names_that_only_differ_in_signs(tmp_path: Path) -> None:
    for system in ("A.B", "A-B"):
        run_id, folder = ResultsStore(tmp_path).new_attempt(system, GPT, "Server", "performance")
        write_record_of(folder, finished(run_id))
    book = gathered(tmp_path)
    assert {run.key for run in book.runs} == {
        "A-B-gpt-oss-120b-Server-performance-1",
        "A-B-gpt-oss-120b-Server-performance-1-2",
    }
    assert len({row.runs for row in book.rows}) == len({row.key for row in book.rows}) == 2


TURN_COUNTS = TurnCounts(issued=3, answered=3, failed=0, skipped=0, outstanding=0)


def test_trajectories_whose_turns_are_gone(tmp_path: Path) -> None:
    made_run(tmp_path, 5, turns=TURN_COUNTS)
    run = only(gathered(tmp_path))
    assert dict(run.counts)["turns answered"] == 3 and run.turns is None
    assert "there is no turns.arrow in the run's folder" in whys(run)
    assert any("there is no turns.json" in why for why in whys(run))


@pytest.mark.parametrize("times", [("soon", None), ("2026-01-01T00:00:00", "2026-01-01T00:00:00+00:00")])
def test_times_that_are_none(tmp_path: Path, times: tuple[str, str | None]) -> None:
    made_run(tmp_path, 5, started_at=times[0], ended_at=times[1])
    assert only(gathered(tmp_path)).seconds is None


def test_a_record_while_it_runs_is_a_row_in_progress(tmp_path: Path) -> None:
    run_id, folder = ResultsStore(tmp_path).new_attempt("BOX", GPT, "Server", "performance")
    write_record_of(
        folder, record(run_id, counts=Counts(issued=9, answered=4, failed=1, outstanding=4, output_tokens=2))
    )
    with ResultsStore(tmp_path).lock():
        book = gathered(tmp_path)
    assert dict(only(book).counts)["outstanding"] == 4
    assert book.rows[0].word == "incomplete"


def test_runs_are_had_by_their_keys(tmp_path: Path) -> None:
    made_run(tmp_path, 5, verdict=VALID)
    run = only(gathered(tmp_path))
    assert gathered(tmp_path).run(run.key) == run
    with pytest.raises(KeyError):
        gathered(tmp_path).run("none")
