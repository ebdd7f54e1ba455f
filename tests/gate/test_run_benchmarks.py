"""Runs of the benchmarks that are none of token ids: another metric, other limits, another data set in a scenario."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path

import pytest

from harness.gate import Coverage, Expectation, Finding, Severity, check_run, result_metric
from harness.gate.run_facts import applied
from harness.logs import DetailLog
from harness.rules import load
from tests.gate.full_length import DETAIL, facts
from tests.logs.loadgen_runs import Leg, edit

VLM, AGENTIC = "qwen3-vl-235b-a22b", "qwen3.6-27b"
OF = {"Offline": VLM, "Server": VLM, "Interactive": VLM, "SingleStream": AGENTIC, "MultiStream": AGENTIC}
LATENCY = "result_p99_latency_ns"
CLOCK = {"power_begin": "08-20-2026 10:00:00.000", "power_end": "08-20-2026 10:10:01.000"}
LONG = {"effective_min_duration_ms": 600_000, **CLOCK}

# Answers are instant, so SingleStream is told to expect them at once: LoadGen then generates enough queries.
LEGS = {
    ("Offline", "performance"): Leg("Offline", "PerformanceOnly", 48289, {"*.Offline.target_qps": "10"}, model=VLM),
    ("Interactive", "performance"): Leg(
        "Server",
        "PerformanceOnly",
        8000,
        {"*.Server.target_qps": "8000", "*.Server.min_duration": "1000", "*.Server.target_latency": "1500"},
        model=VLM,
    ),
    ("Interactive", "accuracy"): Leg("Server", "AccuracyOnly", 8000, {"*.Server.target_qps": "20000"}, model=VLM),
    ("SingleStream", "performance"): Leg(
        "SingleStream",
        "PerformanceOnly",
        1000,
        {"*.SingleStream.min_duration": "20", "*.SingleStream.target_latency": "0.001"},
        model=AGENTIC,
    ),
    ("SingleStream", "accuracy"): Leg("SingleStream", "AccuracyOnly", 995, model=AGENTIC),
}
MULTI = Leg(
    "MultiStream",
    "PerformanceOnly",
    1000,
    {
        "*.MultiStream.min_duration": "20",
        "*.MultiStream.target_latency": "0.001",
        "*.MultiStream.min_query_count": "1000",
    },
    model=AGENTIC,
)
"""Of a scenario that only open has."""
# What a run of full length would differ in.
CHANGES = {
    ("Offline", "performance"): {
        "result_validity": "VALID",
        "result_min_duration_met": True,
        "result_invalid_reason": ...,
        "result_max_latency_ns": 601_000_000_000,
        **CLOCK,
    },
    ("Interactive", "performance"): {"result_scheduled_samples_per_sec": 7999 / 601, **LONG},
    ("SingleStream", "performance"): LONG,
}


@pytest.fixture(scope="session")
def short_runs(tmp_path_factory) -> dict[tuple[str, str], Path]:
    root = tmp_path_factory.mktemp("benchmarks")
    return {key: leg.run(root / "_".join(key)) for key, leg in LEGS.items()}


@pytest.fixture
def run(short_runs, tmp_path):
    """Makes the logs of a passing run and changes values in its detail log."""

    def make(scenario: str, leg: str, **changes: object) -> Path:
        folder = shutil.copytree(short_runs[scenario, leg], tmp_path / "run")
        edit(folder / DETAIL, **CHANGES.get((scenario, leg), {}))
        if (scenario, leg) == ("SingleStream", "performance"):
            edit(folder / DETAIL, result_qps_with_loadgen_overhead=(queries(folder) - 1) / 601)
        edit(folder / DETAIL, **changes)
        return folder

    return make


def queries(folder: Path) -> int:
    return DetailLog.read(folder / DETAIL).value("result_query_count")


def check(folder: Path, scenario: str, leg: str, **given: object) -> list[Finding]:
    found = check_run(facts(folder, scenario, leg, **{"benchmark": OF[scenario], "summary": None, **given}))
    return [f for f in found if f.severity is not Severity.NOTE]


@pytest.mark.parametrize(("scenario", "leg"), LEGS)
def test_a_run_of_full_length_has_nothing_against_it(run, scenario, leg):
    assert check(run(scenario, leg), scenario, leg) == []


def test_single_stream_lasts_until_its_last_query_is_issued(run):
    """As LoadGen has it: it tells the rate of all but the first, and few queries that take long are the test of it."""
    folder = run("SingleStream", "performance", result_query_count=3, result_qps_with_loadgen_overhead=2 / 601)
    assert [each.rule for each in check(folder, "SingleStream", "performance")] == ["LG-COVERAGE"]
    edit(folder / DETAIL, result_qps_with_loadgen_overhead=2 / 599)
    assert {each.rule for each in check(folder, "SingleStream", "performance")} == {"LG-COVERAGE", "LG-DURATION"}


# Each breaks a run in one place: scenario, leg, the change, the rule, its severity in closed and in open.
BREACHES = [
    ("Interactive", "performance", {LATENCY: 1_500_000_001}, "LG-LATENCY", "reject", "review"),
    ("Interactive", "performance", {LATENCY: 12_000_000_001}, "LG-LATENCY", "reject", "review"),
    ("Interactive", "performance", {LATENCY: ...}, "LG-LATENCY", "reject", "review"),
    ("Interactive", "performance", {"effective_target_latency_ns": 12e9}, "LG-LIMIT-SETTING", "review", "review"),
    ("Interactive", "performance", {"effective_target_latency_ns": 13e9}, "LG-LIMIT-SETTING", "reject", "reject"),
    ("Interactive", "performance", {"effective_performance_sample_count": 8000}, "LG-SAMPLE-COUNT", "reject", "reject"),
    ("Interactive", "performance", {"qsl_reported_total_count": 48289}, "LG-LIBRARY", "reject", "reject"),
    ("Interactive", "accuracy", {"effective_accuracy_sample_count": 48289}, "LG-SAMPLE-COUNT", "reject", "reject"),
    ("Offline", "performance", {"effective_samples_per_query": 48288}, "LG-MIN-QUERIES", "reject", "review"),
    ("Offline", "performance", {"result_samples_per_second": ...}, "LG-METRIC", "reject", "reject"),
    ("SingleStream", "performance", {"early_stopping_met": False}, "LG-EARLY-STOPPING", "reject", "reject"),
    ("SingleStream", "performance", {"early_stopping_latency_ss": 0}, "LG-METRIC", "reject", "reject"),
    ("SingleStream", "performance", {"result_qps_with_loadgen_overhead": 1e6}, "LG-DURATION", "reject", "reject"),
    ("SingleStream", "performance", {"result_qps_with_loadgen_overhead": 0}, "LG-DURATION", "reject", "reject"),
    ("SingleStream", "performance", {"result_qps_with_loadgen_overhead": ...}, "LG-DURATION", "reject", "reject"),
    ("SingleStream", "performance", {"result_query_count": ...}, "LG-DURATION", "reject", "reject"),
    ("SingleStream", "performance", {"qsl_reported_total_count": 994}, "LG-LIBRARY", "reject", "reject"),
    ("SingleStream", "performance", {"qsl_reported_total_count": 1020}, "LG-LIBRARY", "reject", "reject"),
    ("SingleStream", "accuracy", {"qsl_reported_total_count": 1000}, "LG-LIBRARY", "reject", "reject"),
    ("SingleStream", "accuracy", {"effective_sample_index_rng_seed": 0}, "LG-SEEDS", "review", "review"),
]


@pytest.mark.parametrize(("scenario", "leg", "changes", "rule", "closed", "open_"), BREACHES)
def test_one_change_breaks_one_rule(run, scenario, leg, changes, rule, closed, open_):
    folder = run(scenario, leg, **changes)
    for division, severity in (("closed", closed), ("open", open_)):
        findings = check(folder, scenario, leg, division=division)
        assert {(f.rule, f.severity.value) for f in findings} == {(rule, severity)}


@pytest.mark.parametrize(
    ("scenario", "changes"),
    [
        ("Interactive", {LATENCY: 1_500_000_000}),
        ("SingleStream", {"generated_query_count": 10**6}),
        ("SingleStream", {"effective_sample_concatenate_permutation": False}),
        ("Offline", {"result_p99_latency_ns": 10**12}),
    ],
)
def test_what_is_allowed(run, scenario, changes):
    assert check(run(scenario, "performance", **changes), scenario, "performance") == []


@pytest.mark.parametrize(("longest", "found"), [(150, {}), (151, {"ACC-TOKENS": "review"})])
def test_answers_of_text_are_held_to_the_cap_by_their_counts_alone(run, longest, found):
    coverage = Coverage(8000, 8000, 0, 0, longest=longest, miscounted=8000)
    assert severities(check(run("Interactive", "accuracy"), "Interactive", "accuracy", coverage=coverage)) == found


def test_a_round_without_a_cap_holds_text_to_none(run):
    coverage = Coverage(48289, 48289, 0, 0, longest=10**6)
    found = check(run("Interactive", "accuracy"), "Server", "accuracy", pack=load("v6.0"), coverage=coverage)
    assert "ACC-TOKENS" not in severities(found)


def test_a_library_of_the_shortest_replay_passes(run):
    """The checker asks 995 of a log; how many rows the turns are made into is the submitter's."""
    rows = {"qsl_reported_total_count": 995, "loaded_qsl_set": [*range(995)]}
    assert check(run("SingleStream", "performance", **rows), "SingleStream", "performance") == []


def test_another_scenario_of_the_same_benchmark_has_the_larger_library(run):
    findings = check(run("Interactive", "performance"), "Server", "performance")
    assert {f.rule for f in findings} == {"LG-LIBRARY", "LG-COVERAGE"}


def test_what_interactive_is_expected_to_do():
    pack = load("v6.1")
    expectation = Expectation.of_round(pack, VLM, "Interactive", "performance")
    assert (expectation.dataset_rows, expectation.logged_rows) == (8000, 48289)
    assert Expectation.of_round(pack, VLM, "Interactive", "accuracy").logged_rows == 8000
    assert Expectation.of_round(pack, AGENTIC, "SingleStream", "performance").more_rows
    assert not Expectation.of_round(pack, AGENTIC, "SingleStream", "accuracy").more_rows


def test_interactive_of_a_round_without_it_is_held_to_what_loadgen_calls_it(run):
    """The v6.0 tools knew no Interactive of this benchmark, and judged such a log of open by Server's limits."""
    pack, changes = load("v6.0"), {"effective_target_latency_ns": 12_000_000_001}
    findings = check(
        run("Interactive", "performance", **changes), "Interactive", "performance", pack=pack, division="open"
    )
    assert {f.rule for f in findings} == {"LG-SEEDS", "LG-LIBRARY", "LG-COVERAGE", "LG-LIMIT-SETTING"}
    assert all(f.severity is Severity.REJECT for f in findings)


def severities(findings: list[Finding]) -> dict[str, str]:
    return {f.rule: f.severity.value for f in findings}


def test_nobody_says_how_many_samples_a_scenario_of_open_alone_issues(run):
    folder = run("SingleStream", "performance")
    found = severities(check(folder, "SingleStream", "performance", benchmark=VLM, division="open"))
    assert found["LG-COVERAGE"] == "review"
    assert found["LG-LIBRARY"] == "reject"


def test_a_query_of_several_samples_loads_some_rows_twice(tmp_path):
    folder = MULTI.run(tmp_path / "run")
    edit(folder / DETAIL, **LONG)
    detail = DetailLog.read(folder / DETAIL)
    assert detail.loaded_samples > detail.loaded_distinct == MULTI.rows
    assert check(folder, "MultiStream", "performance", division="open") == []
    edit(folder / DETAIL, effective_samples_per_query=9)
    findings = check(folder, "MultiStream", "performance", division="open")
    assert severities(findings) == {"LG-LIBRARY": "reject"}


@pytest.mark.parametrize(("ran", "said"), [("Interactive", False), ("SingleStream", True)])
def test_interactive_is_loadgen_s_server_where_the_round_rules_neither(run, ran, said):
    findings = check(run(ran, "performance"), "Interactive", "performance", benchmark=AGENTIC, division="open")
    assert ("LG-SCENARIO" in severities(findings)) is said


def test_a_run_for_analysis_has_its_own_library_and_need_not_ask_all_of_it(run):
    """Twenty trajectories in fifty repeats: each of the twenty may well have been asked once, and no more."""
    folder = run("SingleStream", "performance")
    issued = queries(folder)
    ruled = Expectation.of_round(load("v6.1"), AGENTIC, "SingleStream", "performance")
    own = dataclasses.replace(ruled, dataset_rows=1000, logged_rows=1000, more_rows=False)
    few = check(folder, "SingleStream", "performance", expectation=dataclasses.replace(own, issued_rows=issued))
    assert few == []
    more = check(folder, "SingleStream", "performance", expectation=dataclasses.replace(own, issued_rows=issued + 1))
    assert severities(more) == {"LG-COVERAGE": "reject"}
    larger = dataclasses.replace(own, dataset_rows=1001, issued_rows=20)
    assert "LG-LIBRARY" in severities(check(folder, "SingleStream", "performance", expectation=larger))


def test_a_scenario_for_analysis_is_none_that_the_round_rules():
    """In a tree such a row is judged as any that open alone runs."""
    pack = load("v6.1")
    rules = pack.benchmark(AGENTIC)
    assert applied(rules, "Server") is rules.analysis_scenarios["Server"]
    assert applied(rules, "MultiStream") is None
    assert Expectation.of_round(pack, AGENTIC, "Offline", "performance").dataset_rows == 995


def test_single_stream_is_measured_in_milliseconds(run):
    detail = DetailLog.read(run("SingleStream", "performance", early_stopping_latency_ss=2_500_000) / DETAIL)
    metric = result_metric(detail, load("v6.1").benchmark(AGENTIC).scenario("SingleStream"))
    assert (metric.value, metric.units) == (2.5, "Latency (ms)")
