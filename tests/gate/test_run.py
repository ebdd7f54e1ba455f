from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.gate import Coverage, Expectation, Severity, check_run, mean_answer_tokens, result_metric
from harness.ledger.record import Counts
from harness.logs import AccuracyLog, DetailLog, LogError, SummaryLog
from harness.rules import load
from tests.gate.full_length import ACCURACY_LOG, BENCHMARK, DETAIL, MEAN, SUMMARY, copy, facts
from tests.logs.loadgen_runs import edit

REAL = Path(__file__).parents[3] / "shared" / "data" / "real_v6.0" / "closed"
LEGS = [(s, leg) for s in ("Offline", "Server") for leg in ("performance", "accuracy")]
TTFT = "result_first_token_p99_latency_ns"
TPOT = "result_time_per_output_token_p99_ns"


@pytest.fixture
def run(loadgen_runs, tmp_path):
    """Makes the logs of a passing run and changes values in its detail log."""

    def make(scenario: str, leg: str, **changes: object) -> Path:
        folder = copy(loadgen_runs[scenario, leg], tmp_path / "run", scenario, leg)
        edit(folder / DETAIL, **changes)
        return folder

    return make


def rules_of(findings: list, *ignored: str) -> set[str]:
    return {f.rule for f in findings} - {"LG-WARNINGS", *ignored}


def severity_of(findings: list, rule: str) -> Severity:
    """The severity of the first finding of a rule; it must be there."""
    return next(f.severity for f in findings if f.rule == rule)


@pytest.mark.parametrize(("scenario", "leg"), LEGS)
def test_a_run_of_full_length_has_nothing_against_it(run, scenario, leg):
    findings = check_run(facts(run(scenario, leg), scenario, leg))
    assert rules_of(findings) == set()
    assert all(f.severity is Severity.NOTE for f in findings)


BREACHES = [
    ("Server", "performance", {"result_validity": "INVALID"}, "LG-VALID"),
    ("Server", "performance", {"result_validity": ...}, "LG-VALID"),
    ("Server", "performance", {"result_perf_constraints_met": False}, "LG-VALID"),
    ("Offline", "performance", {"result_min_queries_met": False}, "LG-VALID"),
    ("Server", "performance", {"early_stopping_met": False}, "LG-EARLY-STOPPING"),
    ("Server", "performance", {"early_stopping_met": ...}, "LG-EARLY-STOPPING"),
    ("Server", "performance", {"effective_test_mode": "AccuracyOnly"}, "LG-MODE"),
    ("Server", "performance", {"effective_scenario": "SingleStream"}, "LG-SCENARIO"),
    ("Offline", "accuracy", {"effective_scenario": "Server"}, "LG-SCENARIO"),
    ("Server", "performance", {"effective_min_duration_ms": 599_999}, "LG-DURATION-SETTING"),
    ("Server", "performance", {"effective_min_duration_ms": ...}, "LG-DURATION-SETTING"),
    ("Server", "performance", {"result_scheduled_samples_per_sec": 6395 / 599.9}, "LG-DURATION"),
    ("Server", "performance", {"result_scheduled_samples_per_sec": ...}, "LG-DURATION"),
    ("Offline", "performance", {"result_max_latency_ns": 599_900_000_000}, "LG-DURATION"),
    ("Offline", "performance", {"result_max_latency_ns": ...}, "LG-DURATION"),
    ("Offline", "performance", {"power_end": "08-20-2026 10:00:04.000"}, "LG-CLOCK"),
    ("Server", "performance", {"power_begin": ...}, "LG-CLOCK"),
    ("Server", "performance", {"effective_qsl_rng_seed": 1}, "LG-SEEDS"),
    ("Server", "performance", {"effective_sample_index_rng_seed": 1}, "LG-SEEDS"),
    ("Offline", "performance", {"effective_schedule_rng_seed": ...}, "LG-SEEDS"),
    ("Server", "accuracy", {"effective_qsl_rng_seed": 0}, "LG-SEEDS"),
    ("Server", "performance", {"qsl_reported_total_count": 64}, "LG-LIBRARY"),
    ("Server", "performance", {"loaded_qsl_set": [*range(6395)]}, "LG-LIBRARY"),
    ("Server", "performance", {"loaded_qsl_set": [*range(6396), 5]}, "LG-LIBRARY"),
    ("Server", "performance", {"loaded_qsl_set": [*range(6395), 5]}, "LG-LIBRARY"),
    ("Offline", "accuracy", {"qsl_reported_total_count": 6396}, "LG-LIBRARY"),
    ("Server", "performance", {"effective_performance_sample_count": 6395}, "LG-SAMPLE-COUNT"),
    ("Server", "performance", {"effective_performance_sample_count": ...}, "LG-SAMPLE-COUNT"),
    ("Offline", "accuracy", {"effective_accuracy_sample_count": 4396}, "LG-SAMPLE-COUNT"),
    ("Server", "accuracy", {"effective_accuracy_sample_count": 4394}, "LG-SAMPLE-COUNT"),
    ("Offline", "performance", {"generated_samples_per_query": 6395}, "LG-COVERAGE"),
    ("Server", "performance", {"generated_query_count": 6397}, "LG-GENERATED"),
    ("Server", "performance", {"generated_query_count": ...}, "LG-GENERATED"),
    ("Offline", "performance", {"effective_samples_per_query": 6395}, "LG-MIN-QUERIES"),
    ("Offline", "performance", {"requested_use_token_latencies": False}, "LG-TOKEN-LATENCIES"),
    ("Offline", "accuracy", {"requested_use_token_latencies": ...}, "LG-TOKEN-LATENCIES"),
    ("Server", "performance", {TTFT: 3_000_000_000}, "LG-TTFT"),
    ("Server", "performance", {TTFT: ...}, "LG-TTFT"),
    ("Server", "performance", {TPOT: 80_000_000}, "LG-TPOT"),
    ("Server", "performance", {"requested_server_tpot_latency": 90_000_000}, "LG-LIMIT-SETTING"),
    ("Server", "performance", {"effective_target_latency_ns": 60_000_000_001}, "LG-LIMIT-SETTING"),
    ("Offline", "performance", {"effective_min_query_count": 0}, "LG-MIN-QUERIES"),
    ("Server", "performance", {"effective_performance_issue_unique": True}, "LG-AUDIT-SETTINGS"),
    ("Offline", "performance", {"effective_accuracy_log_sampling_target": 990}, "LG-AUDIT-SETTINGS"),
    ("Server", "accuracy", {"effective_performance_issue_same": True}, "LG-AUDIT-SETTINGS"),
    ("Server", "performance", {"effective_sample_concatenate_permutation": False}, "LG-EQUAL-ISSUE"),
    ("Offline", "performance", {"effective_sample_concatenate_permutation": ...}, "LG-EQUAL-ISSUE"),
    ("Server", "performance", {"effective_max_duration_ms": 1000}, "LG-CUT-SHORT"),
    ("Server", "performance", {"effective_max_async_queries": 4}, "LG-CUT-SHORT"),
    ("Server", "performance", {"requested_server_coalesce_queries": True}, "LG-COALESCED"),
    ("Server", "performance", {"result_completed_tokens_per_second": 0}, "LG-METRIC"),
    ("Offline", "performance", {"result_tokens_per_second": ...}, "LG-METRIC"),
    ("Server", "performance", {"result_completed_tokens_per_second": 6396 / 601}, "LG-TOKENS"),
    ("Server", "performance", {"result_completed_tokens_per_second": 10_300 * 6396 / 601}, "LG-TOKENS"),
    ("Server", "performance", {"result_completed_samples_per_sec": ...}, "LG-METRIC"),
    ("Offline", "performance", {"result_samples_per_second": "fast"}, "LG-METRIC"),
    ("Offline", "performance", {"result_samples_per_second": 12792 / 601 * 1.2}, "LG-TOKENS"),
    ("Offline", "performance", {"result_tokens_per_second": 12792 / 601 * 1407}, "LG-TOKENS"),
    ("Server", "performance", {"loadgen_version": "6.0.17 @ NA"}, "LG-VERSION"),
    ("Server", "performance", {"effective_min_duration_ms": "long"}, "LG-LOG"),
    ("Server", "performance", {"power_end": "noon"}, "LG-LOG"),
]


BREAKS = {"ACC-TOKENS"}


@pytest.mark.parametrize(("scenario", "leg", "changes", "rule"), BREACHES)
def test_one_change_breaks_one_rule(run, scenario, leg, changes, rule):
    folder = run(scenario, leg, **changes)
    findings = check_run(facts(folder, scenario, leg, summary=None))
    assert rule in rules_of(findings)
    assert rules_of(findings, rule) <= KIN.get(rule, set())
    finding = next(f for f in findings if f.rule == rule)
    assert finding.path.startswith(str(folder / DETAIL))


# What cannot break alone: the scenario decides what is measured, and a cut query is also a short one.
KIN = {
    "LG-SCENARIO": {"LG-METRIC"},
    "LG-LIBRARY": {"LG-COVERAGE"},
    "LG-LOG": {"LG-DURATION"},
    "LG-COVERAGE": {"LG-TOKENS"},
}


def test_limits_are_strict(run):
    folder = run("Server", "performance", **{TTFT: 2_999_999_999, TPOT: 79_999_999})
    assert rules_of(check_run(facts(folder, "Server", "performance"))) == set()


def test_interactive_is_held_to_its_own_limits(run):
    """The official checker takes Server's limits, since LoadGen calls both Server."""
    folder = run("Server", "performance", **{TTFT: 2_500_000_000, TPOT: 20_000_000})
    findings = check_run(facts(folder, "Interactive", "performance"))
    assert rules_of(findings) == {"LG-TTFT", "LG-TPOT", "LG-LIMIT-SETTING"}
    assert severity_of(findings, "LG-TTFT") is Severity.REJECT


def test_open_is_refused_by_the_limits_that_the_tools_enforce(run):
    """They take Server's for Interactive; between the two a peer may ask."""
    folder = run("Server", "performance", **{TTFT: 2_500_000_000, TPOT: 80_000_000})
    findings = check_run(facts(folder, "Interactive", "performance", division="open"))
    assert severity_of(findings, "LG-TTFT") is severity_of(findings, "LG-LIMIT-SETTING") is Severity.REVIEW
    assert severity_of(findings, "LG-TPOT") is Severity.REJECT
    edit(folder / DETAIL, **{TPOT: ...})
    assert severity_of(check_run(facts(folder, "Interactive", "performance", division="open")), "LG-TPOT") is (
        Severity.REJECT
    )


def test_more_rows_than_asked_pass_in_performance_alone(run):
    """A peer may override LoadGen's count upwards; the accuracy leg asks each row once."""
    folder = run("Server", "performance", effective_performance_sample_count=6397)
    assert rules_of(check_run(facts(folder, "Server", "performance"))) == set()


def test_an_older_loadgen_logs_no_accuracy_count(run):
    folder = run("Server", "accuracy", effective_accuracy_sample_count=...)
    assert rules_of(check_run(facts(folder, "Server", "accuracy"))) == set()


def test_an_accuracy_leg_is_asked_about_its_settings(run):
    changes = {"effective_schedule_rng_seed": 0, "effective_performance_issue_unique": True}
    findings = check_run(facts(run("Server", "accuracy", **changes), "Server", "accuracy"))
    assert rules_of(findings) == {"LG-SEEDS", "LG-AUDIT-SETTINGS"}
    assert all(f.severity is not Severity.REJECT for f in findings)


def test_loadgens_reasons_are_told(run):
    folder = run("Server", "performance", result_validity="INVALID", result_min_queries_met=False)
    (found,) = [
        f.found for f in check_run(facts(folder, "Server", "performance", summary=None)) if f.rule == "LG-VALID"
    ]
    assert found == "LoadGen says INVALID: result_min_queries_met false"


def test_answers_of_another_length_are_a_note_in_open(run):
    """Open may run another model."""
    folder = run("Offline", "performance", result_tokens_per_second=12792 / 601 * 100)
    for division, severity in (("closed", Severity.REVIEW), ("open", Severity.NOTE)):
        findings = check_run(facts(folder, "Offline", "performance", division=division))
        assert severity_of(findings, "LG-TOKENS") is severity


@pytest.mark.parametrize(("division", "severity"), [("closed", "reject"), ("network", "review"), ("open", "review")])
def test_samples_a_query_are_asked_of_closed_alone(run, division, severity):
    folder = run("Offline", "performance", effective_samples_per_query=6395)
    findings = check_run(facts(folder, "Offline", "performance", division=division))
    assert severity_of(findings, "LG-MIN-QUERIES") == severity
    edit(folder / DETAIL, effective_samples_per_query=...)
    findings = check_run(facts(folder, "Offline", "performance", division=division))
    assert severity_of(findings, "LG-MIN-QUERIES") is Severity.REJECT


def test_a_scenario_without_rules_is_judged_by_what_holds_for_any(run):
    """Open may run whatever LoadGen has."""
    folder = run("Server", "performance", effective_scenario="MultiStream", effective_qsl_rng_seed=1)
    edit(folder / DETAIL, effective_min_duration_ms=1, early_stopping_met=False, result_validity="INVALID")
    findings = check_run(facts(folder, "MultiStream", "performance", division="open", summary=None))
    # Server's log has no result of MultiStream
    assert rules_of(findings) == {"LG-SEEDS", "LG-DURATION-SETTING", "LG-EARLY-STOPPING", "LG-VALID", "LG-METRIC"}


def test_a_run_without_rules_that_keeps_what_holds_for_any(run):
    folder = run("Server", "performance", effective_scenario="SingleStream", effective_max_async_queries=1)
    detail = (folder / DETAIL).read_text()
    for key, value in {"early_stopping_latency_ss": 7_000_000, "result_qps_with_loadgen_overhead": 6396 / 601}.items():
        detail += (
            f':::MLLOG {{"key": "{key}", "value": {value}, "metadata": {{"is_error": false, "is_warning": false}}}}\n'
        )
    (folder / DETAIL).write_text(detail)
    assert rules_of(check_run(facts(folder, "SingleStream", "performance", division="open", summary=None))) == set()


def test_the_short_runs_themselves_are_not_valid(loadgen_runs):
    found = rules_of(check_run(facts(loadgen_runs["Offline", "performance"], "Offline", "performance")))
    assert found == {"LG-VALID", "LG-DURATION", "LG-TOKENS"}
    found = rules_of(check_run(facts(loadgen_runs["Server", "performance"], "Server", "performance")))
    assert found == {"LG-DURATION", "LG-DURATION-SETTING", "LG-TOKENS"}


def test_a_short_run_meets_its_own_expectation(loadgen_runs):
    expectation = dataclasses.replace(
        Expectation.of_round(load("v6.1"), BENCHMARK, "Server", "performance"),
        min_duration_ms=1000,
        measured_duration_ms=1000,
        mean_tokens=None,
    )
    folder = loadgen_runs["Server", "performance"]
    assert rules_of(check_run(facts(folder, "Server", "performance", expectation=expectation))) == set()


def test_error_records_reject(broken_run):
    findings = check_run(facts(broken_run, "Server", "performance"))
    assert {"LG-ERRORS", "LG-VALID", "LG-LIBRARY", "LG-METRIC"} <= rules_of(findings)
    error = next(f for f in findings if f.rule == "LG-ERRORS")
    assert "error_runtime" in error.found
    assert error.path.rpartition(":")[2].isdigit()


def test_stray_lines_are_a_review(run):
    folder = run("Server", "performance")
    with (folder / DETAIL).open("a") as handle:
        handle.write("a line of somebody's\n")
    assert rules_of(check_run(facts(folder, "Server", "performance"))) == {"LG-STRAY-LINES"}


@pytest.mark.parametrize(
    "change", [("VALID", "INVALID"), ("Server", "Offline"), ("No errors", "7 ERRORS"), ("Max latency", "x")]
)
def test_a_summary_of_another_run(run, change):
    folder = run("Server", "performance")
    (folder / SUMMARY).write_text((folder / SUMMARY).read_text().replace(*change))
    assert rules_of(check_run(facts(folder, "Server", "performance"))) == {"LG-SUMMARY"}


def counts(**changes: int) -> Counts:
    return Counts(
        **{"issued": 6396, "answered": 6396, "failed": 0, "outstanding": 0, "output_tokens": 25584, **changes}
    )


@pytest.mark.parametrize(
    ("changes", "rule"),
    [
        ({"answered": 6395, "failed": 1}, "RUN-FAILED"),
        ({"answered": 6394, "outstanding": 2}, "RUN-OUTSTANDING"),
        ({"issued": 6400, "answered": 6400}, "RUN-ISSUED"),
        ({"answered": 6395}, "RUN-SUM"),
        ({}, None),
    ],
)
def test_counts_of_the_harness(run, changes, rule):
    folder = run("Server", "performance")
    found = rules_of(check_run(facts(folder, "Server", "performance", counts=counts(**changes))))
    assert found == ({rule} if rule else set())


def test_coverage_of_a_real_accuracy_log(loadgen_runs):
    log = AccuracyLog(loadgen_runs["Server", "accuracy"] / ACCURACY_LOG)
    assert Coverage.of(log, 4395) == Coverage(4395, distinct=4395, outside=0, empty=0, longest=4)
    assert Coverage.of(log, 4000) == Coverage(4395, distinct=4000, outside=395, empty=0, longest=4)


@pytest.mark.parametrize(
    ("coverage", "rule"),
    [
        (Coverage(4394, 4394, 0, 0), "ACC-COVERAGE"),
        (Coverage(4395, 4394, 0, 0), "ACC-COVERAGE"),
        (Coverage(4396, 4395, 1, 0), "ACC-COVERAGE"),
        (Coverage(4395, 4395, 0, 3), "ACC-EMPTY"),
        (Coverage(4395, 4395, 0, 0, longest=32769), "ACC-TOKENS"),
        (Coverage(4395, 4395, 0, 0, longest=32768, miscounted=1), "ACC-TOKENS"),
    ],
)
def test_coverage_rules(run, coverage, rule):
    folder = run("Server", "accuracy")
    assert rules_of(check_run(facts(folder, "Server", "accuracy", coverage=coverage))) == {rule}


def test_the_metric_and_the_mean_answer(run):
    folder = run("Offline", "performance")
    detail, rules = DetailLog.read(folder / DETAIL), load("v6.1").benchmark(BENCHMARK).scenario("Offline")
    metric = result_metric(detail, rules)
    assert (metric.key, metric.units) == ("result_tokens_per_second", "Tokens/s")
    assert metric.value == pytest.approx(MEAN * 12792 / 601)
    assert mean_answer_tokens(detail, rules) == pytest.approx(MEAN)
    with pytest.raises(LogError, match="no result_tokens_per_second"):
        result_metric(DetailLog.read(edit(folder / DETAIL, result_tokens_per_second=...)), rules)


def test_findings_name_a_label(run):
    folder = run("Server", "performance", effective_qsl_rng_seed=1)
    (finding,) = check_run(facts(folder, "Server", "performance", label="open/X/detail.txt"))
    assert finding.path.startswith("open/X/detail.txt:")
    assert finding.expected == "2085463073848966840"


@settings(max_examples=50, deadline=None)
@given(data=st.data())
def test_whatever_can_be_read_can_be_checked(loadgen_runs, tmp_path_factory, data):
    scenario, leg = data.draw(st.sampled_from(LEGS))
    original = (loadgen_runs[scenario, leg] / DETAIL).read_bytes()
    mutated = bytearray(original)
    for _ in range(
        data.draw(st.integers(1, 30))
    ):  # digits stay digits more often than not: JSON that means another thing
        at = data.draw(st.integers(4000, len(mutated) - 1))
        mutated[at] = data.draw(st.sampled_from(b'0123456789"-.tefn'))
    path = tmp_path_factory.mktemp("mutated") / DETAIL
    path.write_bytes(bytes(mutated))
    try:
        detail = DetailLog.read(path)
    except LogError:
        return
    folder = loadgen_runs[scenario, leg]
    summary = SummaryLog.read(folder / SUMMARY)
    check_run(facts(folder, scenario, leg, detail=detail, summary=summary, coverage=None))


HOSTILE = (
    "1" + 400 * "0",
    "-1",
    "0",
    "NaN",
    "-Infinity",
    "1e999",
    "true",
    "null",
    '""',
    '"\\ud800"',
    "[]",
    "{}",
    "0.5",
)


@pytest.mark.parametrize("scenario", ["Offline", "Server"])
def test_no_value_of_any_key_breaks_the_checks(run, scenario):
    """What the reader refuses is told as a finding; whatever it takes can be checked."""
    path = run(scenario, "performance") / DETAIL
    lines = path.read_text().splitlines(keepends=True)
    for number, line in enumerate(lines):
        value = re.search(r'"value": (.*?), "time_ms"', line)
        if value is None or "loadgen_file" in line:
            continue
        hostile = HOSTILE[number % len(HOSTILE)]
        changed = line[: value.start(1)] + hostile + line[value.end(1) :]
        path.write_text("".join([*lines[:number], changed, *lines[number + 1 :]]))
        try:
            detail = DetailLog.read(path)
        except LogError:
            continue
        check_run(facts(path.parent, scenario, "performance", detail=detail))


@pytest.mark.shared
@pytest.mark.skipif(not REAL.exists(), reason="the shared data folder is not beside the repository")
@pytest.mark.parametrize(
    ("submitter", "benchmark", "scenario", "value"),
    [
        ("CoreWeave", BENCHMARK, "Server", 956523),
        ("CoreWeave", BENCHMARK, "Offline", 910468),
        ("Google", "qwen3-vl-235b-a22b", "Server", 35.5625),
        ("Google", "qwen3-vl-235b-a22b", "Offline", 42.4736),
    ],
)
def test_published_runs_have_nothing_against_them(submitter, benchmark, scenario, value):
    """Both legs, by the pack of their round; by that of the next one the seeds differ."""
    pack = load("v6.0")
    (row,) = REAL.glob(f"{submitter}/results/*/{benchmark}/{scenario}")
    for leg, folder in (("performance", row / "performance" / "run_1"), ("accuracy", row / "accuracy")):
        given = {"benchmark": benchmark, "division": "closed", "coverage": None}
        assert {f.rule for f in check_run(facts(folder, scenario, leg, pack=pack, **given))} == {"LG-VERSION"}
        assert "LG-SEEDS" in rules_of(check_run(facts(folder, scenario, leg, **given)))
    detail = DetailLog.read(row / "performance" / "run_1" / DETAIL)
    assert result_metric(detail, pack.benchmark(benchmark).scenario(scenario)).value == value


def test_warnings_are_notes(loadgen_runs):
    """LoadGen itself warns of its log buffers in every large Offline run."""
    folder = loadgen_runs["Offline", "accuracy"]
    (finding,) = check_run(facts(folder, "Offline", "accuracy"))
    assert (finding.rule, finding.severity) == ("LG-WARNINGS", Severity.NOTE)
    assert "Logging allocation" in finding.found
