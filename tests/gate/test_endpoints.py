from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
import yaml

from harness.gate import Severity, TreeReport, Verdict, check_tree
from harness.gate.official import OfficialVerdict, run_official
from harness.gate.row_endpoints import check_endpoints_run
from harness.gate.row_layout import RowPlace
from harness.rules import load
from tests.gate.made_endpoints import (
    AGENT,
    GPT,
    QWEN,
    REVISIONS,
    ROUND,
    SCENARIOS,
    change_data,
    endpoints_row,
    entry,
    make_endpoints_tree,
    make_row,
)
from tests.gate.made_tree import SUBMITTER, SYSTEM, change_json, write
from tests.gate.real_checker import compare

VARIABLE = "MLPERF_INFERENCE_DIR"
CLONE = os.environ.get(VARIABLE)
needs_clone = pytest.mark.skipif(not CLONE, reason=f"{VARIABLE} names no clone of mlcommons/inference")

CONFIG, SUMMARY, ACCURACY = "config.yaml", "performance/result_summary.json", "accuracy/accuracy_results.json"
AUDIT = "audit/audit_accuracy_in_performance_full_test.json"
RUNTIME, DATA = "settings/runtime", "datasets"
Change = Callable[[Path], object]


@pytest.fixture(scope="session")
def whole_endpoints(tmp_path_factory):
    """(benchmark, division) -> the root of a tree with nothing to reject. Read-only by agreement."""
    base = tmp_path_factory.mktemp("endpoints")
    roots = {(b, d): base / f"{b}-{d}" for b in SCENARIOS for d in ("closed", "open")}
    for (benchmark, division), root in roots.items():
        make_endpoints_tree(root, benchmark, division)
    return roots


@pytest.fixture
def endpoints(whole_endpoints, tmp_path) -> Callable[[str, str], Path]:
    """Makes a copy of a benchmark's tree to break; returns the submitter's folder."""

    def make(benchmark: str, division: str = "closed") -> Path:
        shutil.copytree(whole_endpoints[benchmark, division], tmp_path / "tree")
        return tmp_path / "tree" / division / SUBMITTER

    return make


def check(home: Path) -> TreeReport:
    return check_tree(home.parent.parent, ROUND)


def place_of(benchmark: str, scenario: str, division: str = "closed") -> RowPlace:
    folder = PurePosixPath(division, SUBMITTER, "results", SYSTEM, benchmark, scenario)
    return RowPlace(folder, division, SUBMITTER, SYSTEM, benchmark, scenario)


def said(report: TreeReport) -> set[tuple[str, str]]:
    return {(f.rule, f.severity.value) for f in report.findings}


ALWAYS = {
    GPT: {("RULING-ENDPOINTS-UNITS", "review")},
    QWEN: set(),
    AGENT: set(),
}


@pytest.mark.parametrize("division", ["open", "closed"])
@pytest.mark.parametrize("benchmark", SCENARIOS)
def test_a_whole_tree_has_nothing_to_reject(endpoints, benchmark, division):
    report = check(endpoints(benchmark, division))
    assert {(rule, severity) for rule, severity in said(report) if severity != "note"} == ALWAYS[benchmark]
    assert {row.place.scenario for row in report.rows} == set(SCENARIOS[benchmark])
    assert {row.layout for row in report.rows} == {"endpoints"}
    assert None not in {row.metric for row in report.rows} | {row.accuracy for row in report.rows}


def test_the_metric_is_the_official_checker_s_and_told_in_its_true_units(endpoints):
    rows = {row.place.scenario: row for row in check(endpoints(GPT)).rows}
    offline, server = rows["Offline"].metric, rows["Server"].metric
    assert (offline.key, offline.units) == ("n_samples_issued / duration_ns", "Samples/s (labelled Tokens/s)")
    assert offline.value == 6396 / 700
    assert (server.key, server.units) == ("tps", "Tokens/s")


def test_singlestream_is_the_mean_in_milliseconds(endpoints):
    (row,) = check(endpoints(AGENT)).rows
    assert (row.metric.key, row.metric.value, row.metric.units) == ("latency.avg", 1000.0, "Latency (ms)")
    assert any(f.rule == "RULING-SINGLESTREAM-METRIC" for f in row.findings)


@pytest.mark.parametrize("word", ["Online", "online"])
@pytest.mark.parametrize(("division", "verdict"), [("open", Verdict.REVIEW), ("closed", Verdict.REJECT)])
def test_the_client_s_word_for_a_scenario_is_one_in_open(endpoints, word, division, verdict):
    home = endpoints(GPT, division)
    folder = endpoints_row(home, GPT, "Server")
    folder.rename(folder.with_name(word))
    report = check(home)
    assert ("TREE-SCENARIO", "review") in said(report)
    assert {row.place.scenario for row in report.rows} == set(SCENARIOS[GPT])
    assert report.verdict is verdict


@pytest.mark.parametrize("word", ["OFFLINE", "Poisson"])
def test_any_other_word_is_none(endpoints, word):
    home = endpoints(GPT, "open")
    folder = endpoints_row(home, GPT, "Offline")
    folder.rename(folder.with_name(word))
    assert ("TREE-SCENARIO", "reject") in said(check(home))


def test_several_data_sets_are_weighed_as_the_benchmark_does(endpoints):
    row = check(endpoints(GPT)).rows[0]
    assert row.accuracy == pytest.approx((0.9 * 30 + 0.8 * 198 + 0.85 * 1055) / 1283 * 100)


def at(scenario: str, file: str, key: str, value: object) -> Change:
    """A change of one value in a file of one scenario; the benchmark's folder is the only one."""

    def change(home: Path) -> None:
        (benchmark,) = (home / "results" / SYSTEM).iterdir()
        change_data(benchmark / scenario / file, key, value)

    return change


def config(scenario: str, key: str, value: object) -> Change:
    return at(scenario, CONFIG, key, value)


def summary(scenario: str, key: str, value: object) -> Change:
    return at(scenario, SUMMARY, key, value)


def accuracy(scenario: str, key: str, value: object) -> Change:
    return at(scenario, ACCURACY, f"accuracy_scores/{key}" if key else "accuracy_scores", value)


def text(benchmark: str, scenario: str, file: str, content: str) -> Change:
    return lambda home: write(endpoints_row(home, benchmark, scenario) / file, content)


def both(*changes: Change) -> Change:
    def change(home: Path) -> None:
        for one in changes:
            one(home)

    return change


def audit(**values: object) -> Change:
    return lambda home: write(endpoints_row(home, GPT, "Offline") / AUDIT, json.dumps(values))


def network(home: Path) -> None:
    """The whole tree in the network division."""
    change_json(home / "systems" / f"{SYSTEM}.json", division="network")
    home.parent.rename(home.parent.parent / "network")


TEST07 = "accuracy_in_performance_full_test"
O, S, I, T = "Offline", "Server", "Interactive", "SingleStream"  # noqa: E741 - as the table's columns
A_TURN_LESS = '{"turns": {"missing": 1}}'
NAME = "model_params/name"
MS, SECOND = 10**6, 10**9
ES = "early_stopping_percentiles"
SCORER = f"{DATA}/1/accuracy_config"
REVISION = f"{DATA}/0/generate_params/revision"

# Each breaks a tree in one place: what, the division, the change, the rule, its severity, the benchmark.
BREACHES: list[tuple[str, str, Change, str, str, str]] = [
    ("network", "closed", network, "EP-NETWORK", "reject", GPT),
    ("no YAML", "open", text(GPT, O, CONFIG, "a: ["), "EP-FILES", "reject", GPT),
    ("a YAML list", "open", text(GPT, O, CONFIG, "- a"), "EP-FILES", "reject", GPT),
    ("a comment alone", "open", text(GPT, O, CONFIG, "# nothing\n"), "EP-FILES", "reject", GPT),
    ("no JSON", "open", text(GPT, O, SUMMARY, "{"), "EP-FILES", "reject", GPT),
    ("a JSON list", "open", text(QWEN, O, ACCURACY, "[1]"), "EP-FILES", "reject", QWEN),
    ("an empty object", "open", text(QWEN, O, ACCURACY, "{}"), "EP-FILES", "reject", QWEN),
    ("no configuration", "open", lambda h: (endpoints_row(h, GPT, O) / CONFIG).unlink(), "TREE-FILE", "reject", GPT),
    ("no summary", "open", lambda h: (endpoints_row(h, GPT, O) / SUMMARY).unlink(), "TREE-FILE", "reject", GPT),
    ("no accuracy", "open", lambda h: (endpoints_row(h, GPT, O) / ACCURACY).unlink(), "TREE-FILE", "reject", GPT),
    ("a text as rate", "open", summary(S, "qps", "fast"), "EP-METRIC", "reject", GPT),
    ("a text as count", "open", summary(S, "n_samples_failed", "none"), "EP-VALUE", "reject", QWEN),
    ("entries by name", "open", accuracy(O, "", {"a": {"score": 1}}), "EP-VALUE", "reject", QWEN),
    ("a number without end", "open", summary(O, "n_samples_issued", 10**400), "EP-VALUE", "reject", QWEN),
    ("seed in the report", "open", summary(O, "effective_schedule_rng_seed", 42), "EP-CONTRADICTION", "reject", GPT),
    ("same seed there", "open", summary(O, "effective_scenario", "online"), "EP-CONTRADICTION", "reject", QWEN),
    ("count there", "open", summary(O, "generated_query_count", 9), "EP-CONTRADICTION", "reject", QWEN),
    ("duration there", "open", summary(O, "min_duration_ms", 1), "EP-CONTRADICTION", "reject", QWEN),
    ("run_config", "open", summary(O, "run_config/scheduler_random_seed", 42), "EP-CONTRADICTION", "reject", GPT),
    ("two configurations", "open", text(QWEN, O, "config.yml", "{}"), "EP-CONTRADICTION", "review", QWEN),
    ("online in Offline", "open", config(O, "type", "online"), "EP-SCENARIO", "reject", GPT),
    ("offline in Server", "open", config(S, "type", "offline"), "EP-SCENARIO", "reject", QWEN),
    ("Offline for tokens", "open", config(O, "type", "Offline"), "EP-SCENARIO", "reject", GPT),
    ("Offline for images", "open", config(O, "type", "Offline"), "EP-SCENARIO", "review", QWEN),
    ("offline in other letters", "open", config(O, "type", "o\ufb04ine"), "EP-SCENARIO", "reject", QWEN),
    ("offline in Interactive", "open", config(I, "type", "offline"), "EP-SCENARIO", "review", QWEN),
    ("no type", "open", config(I, "type", ...), "EP-SCENARIO", "reject", QWEN),
    ("a list as type", "open", config(T, "type", ["online"]), "EP-VALUE", "reject", AGENT),
    ("schedule seed", "open", config(S, f"{RUNTIME}/scheduler_random_seed", 42), "EP-SEEDS", "reject", GPT),
    ("sample seed", "open", config(T, f"{RUNTIME}/dataloader_random_seed", 42), "EP-SEEDS", "reject", AGENT),
    ("no seed", "closed", config(T, f"{RUNTIME}/dataloader_random_seed", ...), "EP-SEEDS", "reject", AGENT),
    ("a seed's text", "open", config(O, f"{RUNTIME}/scheduler_random_seed", "42"), "EP-VALUE", "reject", QWEN),
    ("59 s", "open", config(T, f"{RUNTIME}/min_duration_ms", 599_999), "EP-DURATION-SETTING", "reject", AGENT),
    ("no duration", "open", config(O, f"{RUNTIME}/min_duration_ms", None), "EP-DURATION-SETTING", "reject", GPT),
    ("a duration's text", "open", config(O, f"{RUNTIME}/min_duration_ms", "600000"), "EP-VALUE", "reject", GPT),
    ("short", "closed", summary(O, "duration_ns", 600 * SECOND - 1), "EP-DURATION", "reject", QWEN),
    ("short in open", "open", summary(O, "duration_ns", 475 * SECOND), "EP-DURATION", "review", QWEN),
    ("short of fixed work", "closed", summary(T, "duration_ns", 475 * SECOND), "EP-DURATION", "review", AGENT),
    ("not measured", "open", summary(S, "duration_ns", None), "EP-DURATION", "reject", QWEN),
    ("incomplete", "open", summary(O, "complete", False), "EP-COMPLETE", "reject", GPT),
    ("interrupted", "open", summary(O, "state", "interrupted"), "EP-COMPLETE", "reject", GPT),
    ("one for true", "open", summary(O, "complete", 1), "EP-COMPLETE", "reject", GPT),
    ("no state", "open", summary(O, "state", ...), "EP-COMPLETE", "review", GPT),
    ("a failed sample", "open", summary(O, "n_samples_failed", 1), "EP-FAILED", "reject", GPT),
    ("failures untold", "open", summary(O, "n_samples_failed", ...), "EP-FAILED", "reject", GPT),
    ("a lost sample", "open", summary(T, "n_samples_completed", 1006), "EP-FAILED", "reject", AGENT),
    ("failures in accuracy", "open", at(O, ACCURACY, "n_samples_failed", 1), "EP-ERRORS", "reject", GPT),
    ("failures as a text", "open", at(O, ACCURACY, "n_samples_failed", "0"), "EP-ERRORS", "reject", GPT),
    ("failures of a result", "open", at(O, ACCURACY, "result", {"failed": 2}), "EP-ERRORS", "reject", QWEN),
    ("failures in config", "open", config(O, "result", {"failed": 2}), "EP-ERRORS", "reject", QWEN),
    ("a row short", "open", summary(O, "n_samples_issued", 6395), "EP-COUNT", "reject", GPT),
    ("a row short of images", "open", summary(S, "n_samples_issued", 48288), "EP-COUNT", "reject", QWEN),
    ("a row short of 8k", "open", summary(I, "n_samples_issued", 7999), "EP-COUNT", "reject", QWEN),
    ("a turn short", "open", summary(T, "n_samples_issued", 1006), "EP-COUNT", "reject", AGENT),
    ("a row more", "open", summary(O, "n_samples_issued", 6397), "EP-PASSES", "review", GPT),
    ("TTFT", "open", summary(S, f"ttft/{ES}/99.0", 3 * SECOND), "EP-TTFT", "reject", GPT),
    ("TTFT by its flat key", "open", summary(S, f"ttft.{ES}.99.0", 3 * SECOND), "EP-TTFT", "reject", GPT),
    ("TTFT of Interactive", "open", summary(I, f"ttft/{ES}/99.0", 2 * SECOND), "EP-TTFT", "reject", GPT),
    ("TTFT null", "open", summary(S, f"ttft/{ES}/99.0", None), "EP-TTFT", "reject", GPT),
    ("TPOT", "open", summary(S, f"tpot/{ES}/99.0", 80 * MS), "EP-TPOT", "reject", GPT),
    ("TPOT of Interactive", "open", summary(I, f"tpot/{ES}/99.0", 15 * MS), "EP-TPOT", "reject", GPT),
    ("no estimates of TPOT", "open", summary(I, f"tpot/{ES}", ...), "EP-TPOT", "reject", GPT),
    ("latency", "open", summary(S, f"latency/{ES}/99.0", 12 * SECOND + 1), "EP-LATENCY", "reject", QWEN),
    ("latency of Interactive", "open", summary(I, f"latency/{ES}/99.0", 1501 * MS), "EP-LATENCY", "reject", QWEN),
    ("no estimates", "open", summary(S, f"latency/{ES}", ...), "EP-LATENCY", "reject", QWEN),
    ("no estimates Offline", "open", summary(O, f"latency/{ES}", ...), "EP-ESTIMATES", "note", QWEN),
    ("nothing issued", "open", summary(O, "n_samples_issued", 0), "EP-METRIC", "reject", QWEN),
    ("no mean", "open", summary(T, "latency/avg", None), "EP-METRIC", "reject", AGENT),
    ("a mean of zero", "open", summary(T, "latency/avg", 0), "EP-METRIC", "reject", AGENT),
    ("no tps", "open", summary(S, "tps", None), "EP-METRIC", "reject", GPT),
    ("a rate that is none", "open", summary(S, "qps", -3.5), "EP-METRIC", "reject", QWEN),
    (
        "no rate of an offline run",
        "open",
        both(summary(I, "qps", ...), config(I, "type", "offline")),
        "EP-METRIC",
        "reject",
        QWEN,
    ),
    ("a better rate", "open", summary(S, "qps", 70.0), "EP-FIGURES", "review", QWEN),
    ("a better estimate", "open", summary(S, f"ttft/{ES}/99.0", 10 * MS), "EP-FIGURES", "review", GPT),
    ("no score", "open", accuracy(O, "0/score", None), "EP-SCORE", "reject", QWEN),
    ("no entries", "open", accuracy(O, "", []), "EP-SCORE", "reject", QWEN),
    ("below the target", "closed", accuracy(O, "0/score", 0.782396), "EP-TARGET", "reject", QWEN),
    ("below Interactive's", "closed", accuracy(I, "0/score", 0.7799), "EP-TARGET", "reject", QWEN),
    ("a score's text", "closed", accuracy(O, "0/score", "good"), "EP-TARGET", "reject", QWEN),
    ("a flag as f1", "closed", accuracy(O, "0/score", {"f1": False, "score": 0.9}), "EP-TARGET", "reject", QWEN),
    ("a percentage", "closed", accuracy(O, "0/score", 78.8), "EP-GATE", "reject", QWEN),
    ("a percentage in open", "open", accuracy(O, "0/score", 78.8), "EP-GATE", "note", QWEN),
    ("tokens' target", "closed", accuracy(O, "2/score", 0.8), "EP-GATE", "reject", GPT),
    ("a data set missing", "closed", accuracy(O, "1", ...), "EP-GATE", "reject", GPT),
    ("another data set", "closed", accuracy(O, "1/dataset_name", "mmlu"), "EP-GATE", "reject", GPT),
    ("a data set twice", "closed", accuracy(O, "1/dataset_name", "aime25"), "EP-GATE", "reject", GPT),
    ("fewer repeats", "closed", accuracy(O, "0/num_repeats", 4), "EP-GATE", "reject", GPT),
    ("BFCL overall", "closed", accuracy(T, "0/breakdown/overall_accuracy", 83.63), "EP-GATE", "reject", AGENT),
    (
        "BFCL normalised",
        "closed",
        accuracy(T, "0/breakdown/normalized_single_turn_score", 85.31),
        "EP-GATE",
        "reject",
        AGENT,
    ),
    ("BFCL without breakdown", "closed", accuracy(T, "0/breakdown", ...), "EP-GATE", "reject", AGENT),
    ("BFCL in open", "open", accuracy(T, "0/breakdown/overall_accuracy", 83.63), "EP-GATE", "note", AGENT),
    (
        "between the targets",
        "closed",
        both(accuracy(T, "0/breakdown/overall_accuracy", 84.0), accuracy(T, "0/score", 0.84)),
        "RULING-AGENTIC-GATE",
        "review",
        AGENT,
    ),
    ("accuracy rows", "open", accuracy(O, "0/total_samples", 239), "EP-ACC-COUNT", "reject", GPT),
    ("no accuracy rows", "open", accuracy(T, "0/total_samples", 994), "EP-ACC-COUNT", "reject", AGENT),
    ("another kind", "open", accuracy(O, "0/dataset_type", "performance"), "EP-ACC-COUNT", "reject", QWEN),
    ("no kind", "open", accuracy(O, "0/dataset_type", []), "EP-VALUE", "reject", GPT),
    ("no count", "open", accuracy(O, "2/total_samples", {}), "EP-VALUE", "reject", GPT),
    ("a count's text", "open", accuracy(O, "0/total_samples", "many"), "EP-VALUE", "reject", QWEN),
    ("partly scored", "open", accuracy(O, "0/complete", False), "EP-ACC-COMPLETE", "reject", GPT),
    ("missing answers", "open", accuracy(O, "0/response_counts/missing", 1), "EP-ACC-COMPLETE", "reject", QWEN),
    ("unscored answers", "open", accuracy(O, "0/response_counts/scored", 1), "EP-ACC-COMPLETE", "reject", QWEN),
    ("no response counts", "open", accuracy(O, "0/response_counts", ...), "EP-ACC-COMPLETE", "review", QWEN),
    ("samples and repeats", "open", accuracy(O, "0/unit_samples", 31), "EP-ACC-COMPLETE", "reject", GPT),
    ("empty answers", "open", accuracy(O, "0/response_counts/empty", 3), "EP-ACC-EMPTY", "review", QWEN),
    ("other questions", "open", accuracy(O, "0/unit_samples", 31), "EP-ACC-SPLIT", "review", GPT),
    (
        "unscored subsets",
        "open",
        accuracy(T, "0/breakdown/unscored_subsets", ["live_relevance"]),
        "EP-ACC-SPLIT",
        "review",
        AGENT,
    ),
    ("BFCL samples", "open", accuracy(T, "0/breakdown/total_samples", 990), "EP-ACC-SPLIT", "review", AGENT),
    ("the first score", "open", accuracy(O, "0/score", 0.91), "EP-ACC-FIRST", "note", GPT),
    ("turns scored", "closed", accuracy(T, "1/total_samples", 1000), "EP-TURNS", "reject", AGENT),
    ("turns missing", "closed", text(AGENT, T, "scores.json", A_TURN_LESS), "EP-TURNS", "reject", AGENT),
    ("turns in open", "open", text(AGENT, T, "scores.json", A_TURN_LESS), "EP-TURNS", "review", AGENT),
    ("turns untold", "closed", text(AGENT, T, "scores.json", "{"), "EP-TURNS", "review", AGENT),
    ("short answers", "open", summary(O, "output_sequence_lengths/avg", 1150.37), "EP-OSL", "reject", GPT),
    ("long answers", "open", summary(I, "output_sequence_lengths/avg", 1406.03), "EP-OSL", "reject", GPT),
    ("no lengths", "open", summary(O, "output_sequence_lengths", {}), "EP-OSL", "reject", GPT),
    ("audit of another test", "open", audit(test="output_caching_test", passed=True), "EP-AUDIT", "reject", GPT),
    ("failed audit", "open", audit(test=TEST07, passed=False), "EP-AUDIT", "reject", GPT),
    ("unreadable audit", "open", text(GPT, O, AUDIT, "["), "EP-AUDIT", "reject", GPT),
    ("another model", "closed", config(O, NAME, "deepseek-ai/DeepSeek-R1"), "EP-CONFIG-MODEL", "reject", GPT),
    ("its quantised form", "closed", config(O, NAME, "/m/gpt-oss-120b"), "EP-CONFIG-MODEL", "review", GPT),
    ("a local path", "closed", config(O, NAME, "/models/x"), "EP-CONFIG-MODEL", "review", GPT),
    ("no model", "open", config(O, NAME, ...), "EP-CONFIG-MODEL", "reject", QWEN),
    (
        "another ruleset",
        "open",
        config(O, "submission_ref", {"model": QWEN, "ruleset": "mlperf-inference-v5.1"}),
        "EP-CONFIG-MODEL",
        "reject",
        QWEN,
    ),
    (
        "a ruleset of another model",
        "closed",
        config(O, "submission_ref", {"model": "llama", "ruleset": "mlperf-inference-v6.1"}),
        "EP-CONFIG-MODEL",
        "reject",
        QWEN,
    ),
    ("Kimi in open", "open", config(T, NAME, "moonshotai/Kimi-K2.6"), "EP-STALE", "review", AGENT),
    ("Kimi in closed", "closed", config(T, NAME, "Kimi-K2.6"), "EP-CONFIG-MODEL", "reject", AGENT),
    ("temperature", "closed", config(O, "model_params/temperature", 0.5), "EP-SAMPLING", "reject", GPT),
    ("temperature in open", "open", config(T, "model_params/temperature", 0.5), "EP-SAMPLING", "review", AGENT),
    ("no seed of sampling", "closed", config(T, "model_params/seed", ...), "EP-SAMPLING", "reject", AGENT),
    ("top_k", "closed", config(O, "model_params/top_k", 50), "EP-SAMPLING", "reject", GPT),
    ("penalty", "closed", config(O, "model_params/presence_penalty", 1.0), "EP-SAMPLING", "reject", GPT),
    ("cap", "closed", config(O, "model_params/max_new_tokens", 4096), "EP-SAMPLING", "reject", GPT),
    ("the text's cap", "closed", config(O, "model_params/max_new_tokens", 10000), "RULING-OUTPUT-CAP", "note", GPT),
    (
        "cap of accuracy",
        "closed",
        config(O, f"{DATA}/1/generation_config_override", {"max_new_tokens": 10240}),
        "EP-SAMPLING",
        "reject",
        GPT,
    ),
    ("images' cap", "closed", config(O, "model_params/max_new_tokens", 300), "EP-SAMPLING", "reject", QWEN),
    ("images' top_p", "closed", config(O, "model_params/top_p", 1.0), "EP-SAMPLING", "review", QWEN),
    ("images' own top_p", "closed", config(O, "model_params/top_p", 0.8), "RULING-VLM-SAMPLING", "note", QWEN),
    ("another load", "closed", config(S, "settings/load_pattern/type", "max_throughput"), "EP-LOAD", "reject", QWEN),
    ("another load in open", "open", config(O, "settings/load_pattern/type", "poisson"), "EP-LOAD", "review", GPT),
    ("two at a time", "closed", config(T, "settings/load_pattern/target_concurrency", 2), "EP-LOAD", "reject", AGENT),
    ("two workers", "closed", config(T, "settings/client/num_workers", 2), "EP-LOAD", "reject", AGENT),
    ("salted", "closed", config(T, f"{DATA}/0/agentic_inference/enable_salt", True), "EP-LOAD", "reject", AGENT),
    (
        "fewer trajectories",
        "closed",
        config(T, f"{DATA}/0/agentic_inference/num_trajectories_to_issue", 10),
        "EP-LOAD",
        "reject",
        AGENT,
    ),
    ("another data set's name", "closed", config(S, f"{DATA}/0/name", "cnn::q3vl"), "EP-SCORER", "reject", QWEN),
    ("the 8k in Server", "open", config(S, f"{DATA}/1/name", "shopify_8k::q3vl"), "EP-SCORER", "review", QWEN),
    ("another scorer", "closed", config(S, f"{SCORER}/eval_method", "rouge"), "EP-SCORER", "reject", QWEN),
    (
        "one split of two", "closed", config(S, f"{DATA}/0/generate_params/split", ["test"]),
        "EP-SCORER", "reject", QWEN,
    ),
    ("another column's truth", "closed", config(S, f"{SCORER}/ground_truth", "brand"), "EP-SCORER", "reject", QWEN),
    ("no accuracy data", "closed", config(S, f"{DATA}/1", ...), "EP-SCORER", "reject", QWEN),
    (
        "other shares of BFCL",
        "closed",
        config(T, f"{DATA}/1/generate_params/category_sample_pct/live", 100),
        "EP-SCORER",
        "reject",
        AGENT,
    ),
    (
        "a category of BFCL less",
        "closed",
        config(T, f"{DATA}/1/generate_params/categories", ["non_live", "live"]),
        "EP-SCORER",
        "reject",
        AGENT,
    ),
    ("BFCL is shown", "open", accuracy(T, "0/breakdown/overall_accuracy", 86.8), "EP-ACC-SHOWN", "note", AGENT),
    ("inline score", "closed", accuracy(T, "1/score", 0.5), "EP-INLINE", "note", AGENT),
    ("an inline score that is none", "open", accuracy(T, "1/score", 62), "EP-VALUE", "reject", AGENT),
    ("no streaming", "open", config(S, "model_params/streaming", "off"), "EP-STREAMING", "reject", GPT),
    ("no revision", "closed", config(O, f"{DATA}/0/generate_params", {}), "EP-REVISION", "review", QWEN),
    ("no revision in open", "open", config(O, f"{DATA}/0/generate_params", {}), "EP-REVISION", "note", QWEN),
    ("another revision", "closed", config(I, REVISION, REVISIONS["default"]), "EP-REVISION", "reject", QWEN),
    ("another in open", "open", config(O, REVISION, "main"), "EP-REVISION", "review", QWEN),
    ("cut streams", "open", summary(O, "finish_reason_counts/stop", 6000), "EP-FINISH", "review", GPT),
    ("no finish reasons", "open", summary(O, "finish_reason_counts", ...), "EP-FINISH", "review", GPT),
    (
        "cut answers",
        "open",
        both(summary(O, "finish_reason_counts/stop", 6390), summary(O, "finish_reason_counts/length", 6)),
        "EP-TRUNCATED",
        "note",
        GPT,
    ),
    ("no commit", "open", summary(O, "git_sha", None), "EP-VERSION", "note", GPT),
    ("no client", "open", both(summary(O, "git_sha", ...), summary(O, "version", ...)), "EP-OURS", "review", GPT),
]  # fmt: skip

BREAKS = ("EP-ROUND",)


@pytest.mark.parametrize(
    ("division", "change", "rule", "severity", "benchmark"),
    [breach[1:] for breach in BREACHES],
    ids=[f"{breach[0]}-{breach[3]}-{breach[5]}" for breach in BREACHES],
)
def test_a_tree_that_is_broken_in_one_place(endpoints, division, change, rule, severity, benchmark):
    home = endpoints(benchmark, division)
    change(home)
    report = check_tree(home.parents[1], ROUND)
    assert (rule, severity) in said(report), report.findings


def test_a_round_without_the_layout(tmp_path):
    make_row(tmp_path, GPT, "Offline")
    row = check_endpoints_run(tmp_path, place_of(GPT, "Offline"), load("v6.0"))
    assert [f.rule for f in row.findings] == ["EP-ROUND"]
    assert (row.metric, row.accuracy, row.verdict) == (None, None, Verdict.REJECT)


@pytest.mark.parametrize(("benchmark", "scenario"), [(b, s) for b, some in SCENARIOS.items() for s in some])
def test_a_run_right_after_it_ends_is_judged_as_its_row(tmp_path, endpoints, benchmark, scenario):
    home = endpoints(benchmark)
    folder = endpoints_row(home, benchmark, scenario)
    run = check_endpoints_run(folder, place_of(benchmark, scenario), ROUND)
    (row,) = (row for row in check(home).rows if row.place.scenario == scenario)
    assert (run.metric, run.accuracy) == (row.metric, row.accuracy)
    assert {f.rule for f in run.findings} <= {f.rule for f in row.findings}
    assert Severity.REJECT not in {f.severity for f in run.findings}


def test_a_run_without_its_files(tmp_path):
    row = check_endpoints_run(tmp_path, place_of(GPT, "Offline"), ROUND)
    assert [(f.rule, f.path) for f in row.findings] == [("TREE-FILE", name) for name in (ACCURACY, CONFIG, SUMMARY)]


def test_the_limits_are_as_strict_as_the_official_ones(endpoints):
    home = endpoints(QWEN)
    for scenario, limit in (("Server", 12 * SECOND), ("Interactive", 1500 * MS)):
        summary(scenario, f"latency/{ES}/99.0", limit)(home)
    accuracy("Offline", "0/score", 0.782397)(home)
    accuracy("Interactive", "0/score", 0.7878 * 0.99)(home)
    assert {f.rule for f in check(home).findings if f.severity is Severity.REJECT} == set()


def test_what_an_open_row_of_turns_reaches_is_shown_and_a_closed_one_is_held_to_it(endpoints):
    shown = {f.rule: f for f in check(endpoints(AGENT, "open")).findings}
    assert shown["EP-ACC-SHOWN"].found == "overall_accuracy 86.83 %, normalized_single_turn_score 87.27 %"
    assert shown["EP-ACC-SHOWN"].expected == "of closed at least 83.64 %, at least 85.32 %"
    assert (shown["EP-INLINE"].found, shown["EP-INLINE"].expected) == ("inline score 0.6158", "the reference's 0.6335")
    assert "EP-GATE" not in shown


@pytest.mark.parametrize(
    ("benchmark", "division", "said_of_it"), [(AGENT, "closed", {"EP-INLINE"}), (QWEN, "open", set())]
)
def test_a_closed_row_or_one_of_another_kind_is_shown_less(endpoints, benchmark, division, said_of_it):
    found = {f.rule for f in check(endpoints(benchmark, division)).findings}
    assert found & {"EP-ACC-SHOWN", "EP-INLINE"} == said_of_it


def test_without_an_inline_score_nothing_is_said_of_it(endpoints):
    home = endpoints(AGENT)
    accuracy(T, "1", ...)(home)
    assert "EP-INLINE" not in {f.rule for f in check(home).findings}


def test_estimates_by_either_key(endpoints):
    home = endpoints(GPT)
    for series in ("ttft", "tpot"):
        summary("Server", f"{series}/{ES}", {"99": 10 * MS})(home)
    assert not {"EP-TTFT", "EP-TPOT"} & {f.rule for f in check(home).findings}


def test_top_k_may_be_off_in_each_of_its_ways(endpoints):
    home = endpoints(GPT)
    for value in (-1, 0, None, ...):
        config("Offline", "model_params/top_k", 0)(home)
        config("Offline", "model_params/top_k", value)(home)
        assert "EP-SAMPLING" not in {f.rule for f in check(home).findings}


def test_an_estimate_that_is_missing_is_explained(endpoints):
    home = endpoints(GPT)
    summary("Server", f"ttft/{ES}", ...)(home)
    summary("Server", f"tpot/{ES}/99.0", None)(home)
    found = {f.rule: f.found for f in check(home).findings}
    assert "an older client" in found["EP-TTFT"]
    assert "fewer than 662 samples" in found["EP-TPOT"]


def test_kimi_s_rules_are_told_with_their_date(endpoints):
    home = endpoints(AGENT, "open")
    config("SingleStream", NAME, "Kimi-K2.6")(home)
    (stale,) = (f for f in check(home).findings if f.rule == "EP-STALE")
    assert "as of 2026-08-20 (c30860a1)" in stale.found
    assert "since 2026-08-20 they are for Kimi K3" in stale.found


def test_a_model_of_open_is_to_be_named(endpoints):
    home = endpoints(AGENT, "open")
    config("SingleStream", NAME, "moonshotai/Kimi-K2.6")(home)
    assert ("EP-CONFIG-MODEL", "review") in said(check(home))
    write(endpoints_row(home, AGENT, "SingleStream") / "README.md", "Served: Kimi K2.6, reasoning off.\n")
    assert ("EP-CONFIG-MODEL", "note") in said(check(home))


@pytest.mark.parametrize(
    ("scenario", "like", "key"),
    [("SingleStream", "Server", "latency.avg"), ("MultiStream", "Server", None)],
)
def test_a_scenario_that_the_benchmark_has_not(endpoints, scenario, like, key):
    home = endpoints(GPT, "open")
    endpoints_row(home, GPT, like).rename(endpoints_row(home, GPT, scenario))
    (row,) = (row for row in check(home).rows if row.place.scenario == scenario)
    rejects = {f.rule for f in row.findings if f.severity is Severity.REJECT}
    assert (row.metric and row.metric.key, rejects) == (key, set() if key else {"EP-METRIC"})


@pytest.mark.parametrize(
    "hostile",
    [
        "a: &a [*a]\n",
        "a: &a [x, x]\nb: &b [*a, *a]\n" + "".join(f"c{n}: &c{n} [*b, *b]\n" for n in range(3)),
        "model_params: {name: 0x" + "f" * 5000 + "}\n",
        "a: " + "[" * 200 + "]" * 200 + "\n",
        "&x type: *x\n",
        "type: 2026-08-20\nsettings: !!set {a, b}\n",
        "? [a, b]\n: c\n",
        "model_params: !!binary aGVsbG8=\ndatasets: !!omap [a: 1]\n",
        "\ufeff\x00",
    ],
)
def test_configurations_that_are_traps(tmp_path, hostile):
    make_row(tmp_path, GPT, "Offline")
    write(tmp_path / CONFIG, hostile)
    assert check_endpoints_run(tmp_path, place_of(GPT, "Offline"), ROUND).verdict is Verdict.REJECT


def test_aliases_do_not_explode(tmp_path):
    make_row(tmp_path, GPT, "Offline")
    levels = "".join(f"l{n}: &l{n} [*l{n - 1}, *l{n - 1}, *l{n - 1}]\n" for n in range(1, 40))
    write(tmp_path / CONFIG, f"l0: &l0 [a, b]\n{levels}model_params: {{name: *l39}}\n")
    row = check_endpoints_run(tmp_path, place_of(GPT, "Offline"), ROUND)
    assert "EP-FILES" in {f.rule for f in row.findings}


def test_the_tree_is_only_read(endpoints):
    home = endpoints(QWEN)
    before = {path: path.read_bytes() for path in home.rglob("*") if path.is_file()}
    check(home)
    assert {path: path.read_bytes() for path in home.rglob("*") if path.is_file()} == before


def test_a_configuration_that_does_not_parse_leaves_the_other_name(endpoints):
    home = endpoints(QWEN)
    folder = endpoints_row(home, QWEN, "Offline")
    write(folder / "config.yml", (folder / CONFIG).read_text())
    write(folder / CONFIG, "a: [")
    findings = check(home).findings
    assert "EP-FILES" not in {f.rule for f in findings}
    assert any(f.rule == "EP-CONTRADICTION" and "config.yml counts" in f.found for f in findings)


def test_more_entries_of_performance_are_no_accuracy(endpoints):
    home = endpoints(QWEN)
    inline = entry("performance", 0.1, 48289, dataset_type="performance")
    folder = endpoints_row(home, QWEN, "Offline")
    scores = json.loads((folder / ACCURACY).read_text())["accuracy_scores"]
    accuracy("Offline", "", [*scores, inline])(home)
    assert Severity.REJECT not in {f.severity for f in check(home).findings}
    assert yaml.safe_load((folder / CONFIG).read_text())["type"] == "offline"


@needs_clone
@pytest.mark.parametrize("division", ["open", "closed"])
@pytest.mark.parametrize("benchmark", SCENARIOS)
def test_the_real_checker_accepts_what_the_gate_accepts(endpoints, benchmark, division, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(CLONE))
    home = endpoints(benchmark, division)
    report, official = check(home), run_official(home.parents[1], "v6.1")
    assert official.verdict is OfficialVerdict.OK
    assert Severity.REJECT not in {f.severity for f in report.findings}
    assert len(official.rows) == len(report.rows) == len(SCENARIOS[benchmark])
    for row in report.rows:
        theirs = next(one for one in official.rows if f"/{row.place.scenario}/" in one.location)
        assert float(theirs.result) == row.metric.value
        assert theirs.units in row.metric.units


@needs_clone
@pytest.mark.slow
@pytest.mark.parametrize("division", ["open", "closed"])
def test_the_gate_is_never_milder_than_the_real_checker(whole_endpoints, tmp_path, division):
    """Every change above, in both divisions: what the checker refuses, the gate rejects."""
    trees = {}
    for number, (name, _, change, _, _, benchmark) in enumerate(BREACHES):
        root = trees[f"{name} {number}"] = tmp_path / str(number)
        shutil.copytree(whole_endpoints[benchmark, division], root)
        change(root / division / SUBMITTER)
    milder, refused = compare(trees, "v6.1")
    assert milder == []
    assert refused > 20
