from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.clients.endpoints.events import EVENTS, INDEX, read_phases
from harness.clients.endpoints.progress import Progress, last_progress
from harness.clients.endpoints.report import find_report, read_report, report_files
from harness.errors import ConfigError, HarnessError, MissingError
from harness.logs import LogError
from tests.clients.endpoints.reports import DATASET, MS, Report, old_report


def test_both_forms_are_read(tmp_path: Path) -> None:
    new = read_report(Report().write(tmp_path / "new"))
    assert (new.form, new.issued, new.completed, new.failed) == ("split", 80, 80, 0)
    assert new.figures["latency.early_stopping_percentiles.99.0"] == 5 * MS
    assert [(one.name, one.score, one.samples, one.scored, one.missing) for one in new.scored] == [
        (DATASET, 0.8, 4, 4, 0)
    ]
    old = read_report(old_report(tmp_path / "old"))
    assert (old.form, old.issued, old.failed, old.version) == ("single", 48289, 0, None)
    assert old.samples_per_second == pytest.approx(48289 / 695.7)
    assert [(one.name, one.score, one.samples, one.scored) for one in old.scored] == [(DATASET, 0.7879, 48289, None)]


def test_a_runs_folder_stands_for_the_report_in_it(tmp_path: Path) -> None:
    Report().write(tmp_path / "report")
    assert find_report(tmp_path) == tmp_path / "report"
    assert find_report(tmp_path / "report") == tmp_path / "report"


def test_what_is_no_report_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no report of the endpoints client"):
        find_report(tmp_path)
    with pytest.raises(MissingError, match="no such folder"):
        find_report(tmp_path / "absent")


def test_links_and_hidden_files_are_none_of_the_reports(tmp_path: Path) -> None:
    folder = Report().write(tmp_path / "r")
    (folder / ".ready").touch()
    (folder / "link.json").symlink_to(folder / "report.txt")
    names = {str(path) for path in report_files(folder)}
    assert "performance/result_summary.json" in names
    assert not names & {".ready", "link.json"}


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ("[]", "a JSON list"),
        ("{", "not JSON"),
        ('{"results": 3}', "results is 3"),
        ('{"results": {"total": "many"}}', "results.total"),
        ('{"results": {"total": 1}, "accuracy_scores": {"d": 1}}', "accuracy_scores.d"),
        ('{"results": {"total": 1}, "accuracy_scores": {"d": {"score": "high"}}}', "score"),
    ],
)
def test_an_old_report_that_is_broken_is_told(tmp_path: Path, change: str, what: str) -> None:
    (tmp_path / "results.json").write_text(change, encoding="utf-8")
    with pytest.raises(LogError) as raised:
        read_report(tmp_path)
    assert what in str(raised.value)


def test_samples_are_counted_and_timed_a_second_time(tmp_path: Path) -> None:
    phases = read_phases(Report(texts=("ab", None, "", "d")).write(tmp_path))
    measured, scored = phases["performance"], phases[DATASET]
    assert (measured.issued, measured.completed, len(measured.errors)) == (80, 80, 20)
    assert set(measured.latencies_ns.tolist()) == {5 * MS}
    assert len(measured.ttft_ns) == 60
    assert scored.texts == ("ab", None, "", "d")
    assert scored.errors == {1: "error: HTTP 500"}
    assert scored.rows.tolist() == [0, 1, 2, 3]


def test_a_stream_that_was_cut_shows(tmp_path: Path) -> None:
    report = Report()
    del report.events[2]["finish_reason"]
    assert read_phases(report.write(tmp_path))["performance"].unfinished == 1


def test_an_answer_without_a_text_shows(tmp_path: Path) -> None:
    phases = read_phases(Report(texts=("ab", None, "", "d")).write(tmp_path))
    assert (phases["performance"].empty, phases[DATASET].empty) == (20, 1)  # one that failed is told of as that


def test_the_span_is_from_the_first_issue_to_the_last_completion(tmp_path: Path) -> None:
    report = Report()
    assert read_phases(report.write(tmp_path / "whole"))["performance"].span_ns == report.summary["duration_ns"]
    report.events = []
    assert read_phases(report.write(tmp_path / "empty"))["performance"].span_ns is None


def test_a_sample_that_never_came_back_shows(tmp_path: Path) -> None:
    report = Report()
    report.events = [e for e in report.events if e["event_type"] != "sample.complete" or e is report.events[2]]
    phases = read_phases(report.write(tmp_path))
    assert (phases["performance"].completed, phases[DATASET].completed) == (1, 0)
    assert phases[DATASET].texts == (None,) * 4


@pytest.mark.parametrize(
    "line",
    ["{", "[]", "3", '{"event_type": "sample.issued"}', '{"event_type": 1, "sample_uuid": "", "timestamp_ns": 1}',
     '{"event_type": "x", "sample_uuid": "", "timestamp_ns": -1}',
     '{"event_type": "x", "sample_uuid": "", "timestamp_ns": 99999999999999999999}',
     '{"event_type": "x", "sample_uuid": "", "timestamp_ns": true}'],
)  # fmt: skip
def test_a_line_that_is_no_event_is_told_with_its_number(tmp_path: Path, line: str) -> None:
    folder = Report().write(tmp_path)
    with (folder / EVENTS).open("a", encoding="utf-8") as file:
        file.write(line + "\n")
    with pytest.raises(LogError, match="no event") as raised:
        read_phases(folder)
    assert raised.value.line == len(Report().events) + 1


@pytest.mark.parametrize("content", ["", "[]", '{"performance": 1}', '{"performance": {"a": "b"}}', '{"p": {"a": -1}}'])
def test_an_index_that_is_none_is_told(tmp_path: Path, content: str) -> None:
    folder = Report().write(tmp_path)
    (folder / INDEX).write_text(content, encoding="utf-8")
    with pytest.raises(LogError):
        read_phases(folder)


def test_a_report_without_its_events_is_told(tmp_path: Path) -> None:
    folder = Report().write(tmp_path)
    (folder / EVENTS).unlink()
    with pytest.raises(LogError, match="cannot be read"):
        read_phases(folder)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(
    data=JSON | st.lists(JSON, min_size=4, max_size=6),  # as long as what is asked and answered
    kind=st.sampled_from(["sample.complete", "error.x", "sample.issued"]),
    finish=JSON,
    whole=st.booleans(),
)
def test_whatever_an_event_carries_is_read_or_told(
    tmp_path: Path, data: Any, kind: str, finish: Any, whole: bool
) -> None:
    report = Report(performance=1, texts=("a",))
    sample = next(iter(report.index[DATASET]))
    report.events.append(
        {"event_type": kind, "timestamp_ns": 5, "sample_uuid": sample, "data": data, "finish_reason": finish}
    )
    folder = report.write(tmp_path)
    try:
        phase = read_phases(folder, whole=whole)[DATASET]
    except HarnessError:
        return
    assert phase.rows.dtype == np.int64
    assert all(text is None or isinstance(text, str) for text in phase.texts)


def test_what_is_nested_without_end_is_no_request_of_ours(tmp_path: Path) -> None:
    report = Report(performance=1, texts=("a",))
    sample, deep = next(iter(report.index[DATASET])), "[" * 400 + "]" * 400
    report.events.append({"event_type": "sample.issued", "timestamp_ns": 5, "sample_uuid": sample, "data": "DEEP"})
    folder = report.write(tmp_path)
    path = folder / EVENTS
    path.write_text(path.read_text(encoding="utf-8").replace('"DEEP"', f"[0, 0, 0, {deep}]"), encoding="utf-8")
    assert read_phases(folder, whole=True)[DATASET].asked == (None,)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(content=JSON, name=st.sampled_from(["results.json", "performance/result_summary.json"]))
def test_whatever_a_report_holds_is_read_or_told(tmp_path: Path, content: Any, name: str) -> None:
    for old in tmp_path.rglob("*.json"):
        old.unlink()
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")
    try:
        assert read_report(tmp_path).folder == tmp_path
    except HarnessError:
        return


def test_the_newest_bar_tells_how_far_it_is(tmp_path: Path) -> None:
    log = tmp_path / "client.log"
    assert last_progress(log) is None
    log.write_text("INFO - Draining 2/3 things\n", encoding="utf-8")
    assert last_progress(log) is None
    log.write_text(
        "m (Streaming: True):   1%|          | 1/120 [00:10<20:58, 10.58s/it]"
        "\rm (Streaming: True):  98%|█████████▊| 117/120 [00:14<00:00,  8.16it/s, errors=4]\n",
        encoding="utf-8",
    )
    assert last_progress(log) == Progress(117, 120, 4)
    assert not Progress(117, 120, 4).over


def test_files_are_named_from_the_reports_folder(tmp_path: Path) -> None:
    assert PurePosixPath("accuracy/accuracy_results.json") in report_files(Report().write(tmp_path))
