"""Runs of the endpoints client: what its report holds, and what of it is not there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from harness.ledger import ResultsStore, State
from harness.ledger.record import AccuracyEcho, Result, Verdict
from harness.ledger.store import RECORD
from harness.logs import Document
from harness.report.book import endpoints_run
from harness.report.book.client_figures import client_figures, no_client_figures
from harness.report.book.content import Distribution, Limit, Missing, RunView, TimeLine
from harness.report.book.limits import Limits
from harness.report.book.results import gather_results
from tests.clients.endpoints.reports import Report
from tests.gate import made_endpoints as made
from tests.ledger.made_records import finished

ACCURACY = AccuracyEcho(key="f1", value=0.8, subsets={}, evaluator="theirs", also={})
RESULT = Result(key="qps", value=3.0, units="Queries/s")
LIMIT = Limit(99.0, 12000.0, inclusive=True, source="a rule")


def made_run(root: Path, report: Report | None, scenario: str = "Server", **changes: Any) -> Path:
    """A finished run of the client with a report, or without one; its folder."""
    run_id, folder = ResultsStore(root).new_attempt("BOX", made.QWEN, scenario, "endpoints")
    fields = {
        "result": RESULT,
        "verdict": Verdict(valid=True, loadgen=None, findings=[]),
        "accuracy": ACCURACY,
        **changes,
    }
    (folder / RECORD).write_text(finished(run_id, **fields).model_dump_json())
    if report is not None:
        report.write(folder / "report")
    return folder


def view(root: Path) -> RunView:
    (run,) = gather_results(ResultsStore(root)).runs
    return run


def whys(run: RunView) -> dict[str, str]:
    return {figure.key: figure.why for figure in run.figures if isinstance(figure, Missing)}


def test_a_whole_report(tmp_path: Path) -> None:
    made_run(tmp_path, Report())
    run = view(tmp_path)
    assert (run.word, run.headline, run.scores) == ("VALID", "3.00 Queries/s", (("f1", 0.8),))
    figures = {figure.key: figure for figure in run.figures}
    latency = figures["latency"]
    assert isinstance(latency, Distribution)
    assert (latency.count, latency.p99, latency.max, latency.counts) == (80, 5.0, 10.0, (80,))
    assert latency.limit is not None and latency.limit.inclusive and latency.limit.percentile == 99
    assert "early-stopping estimates: p50" in latency.about and "p99 5.00" in latency.about
    line = figures["throughput"]
    assert isinstance(line, TimeLine)
    assert sum(line.values) * line.span_s == pytest.approx(80)
    assert isinstance(figures["ttft_over_time_p99"], TimeLine)
    assert set(whys(run)) <= {"tpot", "tpot_over_time", "input_tokens", "output_tokens", "token_throughput"}
    assert [margin.name for margin in run.margins] == ["latency p99", "duration", "samples issued", "f1"]
    assert [margin.met for margin in run.margins] == [True, False, False, True]
    (row,) = gather_results(ResultsStore(tmp_path)).rows
    assert row.word == "VALID" and row.runs == (run.key,) and row.audits == ()
    assert dict(row.boundary)["client"] == "endpoints client"


def test_a_run_without_a_report(tmp_path: Path) -> None:
    made_run(tmp_path, None, result=None, accuracy=None)
    run = view(tmp_path)
    assert whys(run)["latency"] == "the client left no performance/result_summary.json"
    assert whys(run)["throughput"] == "there is no events.jsonl in the report"
    assert not run.margins


def test_a_run_that_goes_on_or_was_killed(tmp_path: Path) -> None:
    folder = made_run(tmp_path, None, result=None, accuracy=None)
    changes = {"state": State.RUNNING.value, "verdict": None, "ended_at": None}
    (folder / RECORD).write_text(json.dumps(json.loads((folder / RECORD).read_text()) | changes))
    assert "killed while it ran" in whys(view(tmp_path))["latency"]
    with ResultsStore(tmp_path).lock():
        assert "the run goes on" in whys(view(tmp_path))["latency"]


@pytest.mark.parametrize(
    ("name", "content", "key", "why"),
    [
        ("performance/result_summary.json", b'{"latency": ', "latency", "not JSON"),
        ("performance/result_summary.json", b"[]", "ttft", "a JSON list"),
        ("performance/result_summary.json", b'{"latency": 3}', "latency", "latency is 3"),
        ("events.jsonl", b'{"sample_uuid', "throughput", "events.jsonl cannot be read: no event"),
        ("sample_idx_map.json", b"{", "concurrency", "events.jsonl cannot be read: not JSON"),
        ("sample_idx_map.json", b"{}", "concurrency", "has no measured phase"),
    ],
)
def test_files_that_are_none(tmp_path: Path, name: str, content: bytes, key: str, why: str) -> None:
    folder = made_run(tmp_path, Report())
    (folder / "report" / name).write_bytes(content)
    assert why in whys(view(tmp_path))[key]


def test_an_old_report_has_no_percentiles(tmp_path: Path) -> None:
    folder = made_run(tmp_path, None) / "report"
    folder.mkdir()
    (folder / "results.json").write_text("{}")
    assert "old form" in whys(view(tmp_path))["ttft"]


def test_another_round(tmp_path: Path) -> None:
    made_run(tmp_path, Report(), round="v0.5")
    run = view(tmp_path)
    assert "v0.5, of which there are no rules" in run.notes[0] and not run.margins
    assert isinstance(run.figures[0], Distribution) and run.figures[0].limit is None


def test_many_events_are_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made_run(tmp_path, Report())
    monkeypatch.setattr(endpoints_run, "MAX_EVENTS_BYTES", 10)
    assert "MiB, of which no more than" in whys(view(tmp_path))["throughput"]


def test_failed_answers_are_not_in_the_lines(tmp_path: Path) -> None:
    made_run(tmp_path, Report(texts=("a", None, "c", "d")))
    line = {figure.key: figure for figure in view(tmp_path).figures}["throughput"]
    assert isinstance(line, TimeLine)
    assert sum(line.values) * line.span_s == pytest.approx(60)


def test_a_first_chunk_stamped_after_its_end_is_none(tmp_path: Path) -> None:
    report = Report()
    for event in report.events:
        event["timestamp_ns"] += 10_000_000 * (event["event_type"] == "sample.recv_first")
    made_run(tmp_path, report)
    run = view(tmp_path)
    assert "came whole" in whys(run)["ttft_over_time"] and "throughput" not in whys(run)


def figure_of(series: dict[str, Any]) -> Distribution | Missing:
    document = Document(Path("result_summary.json"), {"n_samples_completed": 4, "latency": series})
    figure = client_figures(document, Limits(latency=LIMIT))[0]
    assert isinstance(figure, Distribution | Missing)
    return figure


SERIES = {
    "min": 1e6, "max": 4e6, "avg": 2e6,
    "percentiles": {"99.9": 4.1e6, "99.0": 3e6, "90.0": 3e6, "50.0": 2e6, "1.0": 0.9e6},
    "histogram": {"buckets": [[1e6, 2e6], [2e6, 4e6], [4e6, 8e6]], "counts": [1, 3, 0]},
}  # fmt: skip


def test_the_clients_histogram() -> None:
    figure = figure_of(SERIES)
    assert isinstance(figure, Distribution)
    assert figure.edges == (1.0, 2.0, 4.0) and figure.counts == (1, 3) and figure.count == 4
    assert figure.quantiles[0] == (0.0, 1.0) and figure.quantiles[-1] == (1.0, 4.0), "percentiles lie within the values"
    assert figure.limit == LIMIT and "estimates" not in figure.about


@pytest.mark.parametrize(
    "histogram",
    [
        None, {}, {"buckets": [0, 1], "counts": [1]}, {"buckets": [[2e6, 1e6]], "counts": [4]},
        {"buckets": [[1e6, 2e6]], "counts": [-4]}, {"buckets": [[1e6, 2e6]], "counts": [0]},
        {"buckets": [[1e6, "x"]], "counts": [4]}, {"buckets": [[1e6, 2e6, 3e6]], "counts": [4]},
    ],
)  # fmt: skip
def test_without_a_histogram_there_is_a_line(histogram: object) -> None:
    figure = figure_of({**SERIES, "histogram": histogram})
    assert isinstance(figure, Distribution)
    assert figure.counts == () and figure.count == 4 and figure.p50 == 2.0


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"min": None}, "no values of latency"),
        ({"avg": "x"}, "avg is"),
        ({"percentiles": {"50.0": 1e6}}, "no percentile 90, 99"),
        ({"percentiles": {"50.0": 3e6, "90.0": 2e6, "99.0": 4e6}}, "do not rise"),
        ({"percentiles": {"50.0": [1], "90.0": 2e6, "99.0": 4e6}}, "percentiles.50.0 is"),
        ({"percentiles": [1]}, "percentiles is"),
    ],
)
def test_series_that_are_none(change: dict[str, Any], why: str) -> None:
    figure = figure_of(SERIES | change)
    assert isinstance(figure, Missing) and why in figure.why


def test_estimates_that_there_are_not() -> None:
    figure = figure_of({**SERIES, "early_stopping_percentiles": {"99.0": None, "50.0": None}})
    assert isinstance(figure, Distribution) and "estimates: none, too few samples" in figure.about


def test_all_of_them_are_missing_for_one_reason() -> None:
    assert {figure.why for figure in no_client_figures("gone") if isinstance(figure, Missing)} == {"gone"}
    none = client_figures(Document(Path("x"), {}), Limits())
    assert [figure.key for figure in none] == [figure.key for figure in no_client_figures("x")]
