"""The round's rules: their reader, their sources, and the numbers beside the official checker's own."""

from __future__ import annotations

import hashlib
import importlib.resources
import importlib.util
import re
from types import ModuleType
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, ValidationError

from harness import rules
from harness.env import MLPERF_INFERENCE_DIR
from harness.errors import UnknownName
from harness.rules.pack import RulePack, source_key
from harness.rules.rulings import Said
from harness.rules.values import Ruled

PACK = rules.load("v6.1")


def text() -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(importlib.resources.files("harness.rules").joinpath("v6.1.yaml").read_text())
    return data


def ruled(node: object) -> list[Ruled[Any] | Said]:
    """All values of a pack, with their sources."""
    if isinstance(node, Ruled | Said):
        return [node]
    if isinstance(node, BaseModel):
        return [value for name in type(node).model_fields for value in ruled(getattr(node, name))]
    if isinstance(node, dict):
        return [value for child in node.values() for value in ruled(child)]
    if isinstance(node, list | tuple):
        return [value for child in node for value in ruled(child)]
    return []


@pytest.mark.parametrize("name", rules.rounds())
def test_every_round_reads_and_is_named_for_its_file(name: str) -> None:
    assert rules.load(name).round == name


def test_the_latest_round_is_there() -> None:
    assert rules.rounds()[-1] == rules.LATEST


@pytest.mark.parametrize("name", rules.rounds())
def test_every_value_has_a_source_that_is_named_with_commit_and_day(name: str) -> None:
    pack = rules.load(name)
    values = ruled(pack)
    assert len(values) > 150
    for value in values:
        assert source_key(value.source) in pack.sources, value
    for source in pack.sources.values():
        assert source.what
        assert source.as_of.year >= 2026


@pytest.mark.parametrize("name", rules.rounds())
def test_every_source_is_used(name: str) -> None:
    pack = rules.load(name)
    assert set(pack.sources) == {source_key(value.source) for value in ruled(pack)}


def test_an_unknown_source_is_refused() -> None:
    data = text()
    data["min_duration_ms"]["source"] = "hearsay/of someone"
    with pytest.raises(ValidationError, match="hearsay"):
        RulePack.model_validate(data)


@pytest.mark.parametrize("change", [{"min_duration": 3}, {"min_duration_ms": 600000}, {"benchmarks": {}}])
def test_a_text_that_is_not_of_the_schema_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RulePack.model_validate(text() | change)


def test_a_pack_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        PACK.seeds.qsl.value = 1


def test_a_round_that_is_not_there() -> None:
    with pytest.raises(UnknownName) as caught:
        rules.load("v6.11")
    assert caught.value.mend == "did you mean 'v6.1'?"


def test_a_benchmark_or_scenario_that_is_not_there() -> None:
    with pytest.raises(UnknownName) as caught:
        PACK.benchmark("gpt-oss-20b")
    assert caught.value.mend == "did you mean 'gpt-oss-120b'?"
    with pytest.raises(UnknownName) as caught:
        PACK.benchmark("gpt-oss-120b").scenario("Of-line")
    assert caught.value.mend == "did you mean 'Offline'?"


EVERY = [(name, benchmark) for name in rules.rounds() for benchmark in rules.load(name).benchmarks]


@pytest.mark.parametrize(("name", "benchmark"), EVERY)
def test_a_benchmark_agrees_with_itself(name: str, benchmark: str) -> None:
    pack = rules.load(name)
    ours = pack.benchmark(benchmark)
    subsets = ours.accuracy_subsets.value
    assert sum(subset.samples for subset in subsets.values()) == ours.datasets["accuracy"].value
    assert all(subset.samples % subset.repeats == 0 for subset in subsets.values())
    assert set(ours.required_scenarios.value) <= set(ours.scenarios)
    assert set(ours.one_of_scenarios.value) <= set(ours.scenarios) | {"Interactive"}
    assert set(ours.analysis_scenarios).isdisjoint(ours.scenarios)
    assert set(ours.categories.value) <= set(pack.categories.value)
    assert set(ours.scenario_sets) <= set(pack.system_types.value)
    assert set(ours.audit_rules) == set(ours.audits.value) <= set(ours.datasets)
    for audit, demands in ours.audit_rules.items():
        assert demands.rows.value == ours.datasets[audit].value
        assert demands.config.settings.value["min_query_count"] == demands.rows.value
    for pattern in (ours.accuracy_pattern, ours.accuracy_upper_pattern):
        assert pattern is None or re.compile(pattern.value).groups == 1
    if isinstance(ours, rules.TokenRules):
        assert all(token < ours.vocab_size.value for token in ours.stop_token_ids.value)


@pytest.mark.parametrize("name", rules.rounds())
def test_a_round_has_no_benchmark_twice(name: str) -> None:
    pack = rules.load(name)
    assert not set(pack.benchmarks) & set(pack.other_benchmarks.value)
    official = {*pack.benchmarks, *pack.other_benchmarks.value}
    assert set(pack.benchmark_aliases.value.values()) <= official
    assert not set(pack.benchmark_aliases.value) & official


def test_rulings_concern_what_there_is() -> None:
    for name in rules.rounds():
        pack = rules.load(name)
        for ruling in pack.rulings:
            assert set(ruling.concerns.benchmarks) <= set(pack.benchmarks)
            assert set(ruling.concerns.divisions) <= set(pack.divisions.value)
            assert ruling.follows != ruling.other


def test_a_ruling_that_is_named_and_not_there_is_refused() -> None:
    data = text()
    data["seeds"]["qsl"]["source"] += " (ruling OF-NOBODY)"
    with pytest.raises(ValidationError, match="OF-NOBODY"):
        RulePack.model_validate(data)
    with pytest.raises(ValidationError, match="two rulings"):
        RulePack.model_validate(text() | {"rulings": text()["rulings"] * 2})


def test_a_scenario_has_rows_and_a_target_of_its_own() -> None:
    qwen = PACK.benchmark("qwen3-vl-235b-a22b")
    assert (qwen.rows("accuracy", "Server"), qwen.rows("accuracy", "Interactive")) == (48_289, 8_000)
    assert qwen.target("Interactive").value.at_least < qwen.target("Server").value.at_least
    agentic = PACK.benchmark("qwen3.6-27b")
    assert agentic.target("SingleStream", "loadgen").value.key == "mAP"
    assert agentic.target("SingleStream", "endpoints").value.key == "overall_accuracy"


def test_scenarios_for_analysis_are_found_and_are_none_of_the_rounds() -> None:
    agentic = PACK.benchmark("qwen3.6-27b")
    assert list(agentic.scenarios) == ["SingleStream"]
    metrics = {name: agentic.scenario(name).metric.value for name in ("SingleStream", *agentic.analysis_scenarios)}
    assert {name: metric.key for name, metric in metrics.items()} == {
        "SingleStream": "early_stopping_latency_ss",
        "Offline": "result_samples_per_second",
        "Server": "result_completed_samples_per_sec",
    }
    assert agentic.rows("performance", "Server") == agentic.rows("performance", "SingleStream")
    with pytest.raises(UnknownName) as caught:
        agentic.scenario("Servr")
    assert caught.value.mend == "did you mean 'Server'?"


def test_a_scenario_cannot_be_of_the_round_and_for_analysis_alone() -> None:
    data = text()
    benchmark = data["benchmarks"]["qwen3.6-27b"]
    benchmark["analysis_scenarios"]["SingleStream"] = benchmark["scenarios"]["SingleStream"]
    with pytest.raises(ValidationError, match=r"analysis alone: \['SingleStream'\]"):
        RulePack.model_validate(data)


def test_a_benchmark_of_another_kind_is_no_token_benchmark() -> None:
    assert PACK.token_benchmark("gpt-oss-120b").vocab_size.value
    with pytest.raises(TypeError, match="qwen3-vl"):
        PACK.token_benchmark("qwen3-vl-235b-a22b")


def test_fields_that_may_be_empty_are_fields() -> None:
    fields = PACK.system_fields
    assert set(fields.may_be_empty.value) < set(fields.required.value)


@pytest.fixture(scope="module")
def checker() -> ModuleType:
    """The official checker's constants, where there is a clone of mlcommons/inference."""
    clone = MLPERF_INFERENCE_DIR.path()
    if clone is None:
        pytest.skip(f"{MLPERF_INFERENCE_DIR.name} names no clone to compare the pack with")
    path = clone / "tools/submission/submission_checker/constants.py"
    spec = importlib.util.spec_from_file_location("official_constants", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def configured(pack: RulePack, checker: ModuleType) -> dict[str, Any]:
    config: dict[str, Any] = checker.MODEL_CONFIG[pack.round]
    return config


@pytest.mark.parametrize("name", rules.rounds())
def test_numbers_of_the_round_are_the_checkers(checker: ModuleType, name: str) -> None:
    pack = rules.load(name)
    config = configured(pack, checker)
    seeds = config["seeds"]
    assert pack.seeds.qsl.value == seeds["qsl_rng_seed"]
    assert pack.seeds.sample_index.value == seeds["sample_index_rng_seed"]
    assert pack.seeds.schedule.value == seeds["schedule_rng_seed"]
    assert pack.min_duration_ms.value == checker.TEST_DURATION_MS
    assert pack.accuracy_log_max_bytes.value == checker.MAX_ACCURACY_LOG_SIZE
    assert pack.tree.file_max_bytes.value == checker.FILE_SIZE_LIMIT_MB * checker.MB_TO_BYTES
    assert set(pack.divisions.value) == set(checker.VALID_DIVISIONS)
    assert pack.availability.value == checker.VALID_AVAILABILITIES
    assert sorted([*pack.benchmarks, *pack.other_benchmarks.value]) == sorted(config["models"])
    aliases = {alias: name for alias, name in config["model_mapping"].items() if name in config["models"]}
    assert pack.benchmark_aliases.value == aliases
    for other, system_types in pack.other_benchmarks.value.items():
        for system_type in ("datacenter", "edge", "datacenter,edge"):
            table = config["required-scenarios-" + system_type.replace(",", "-")]
            assert (other in table) == (system_type in system_types)


@pytest.mark.parametrize("name", rules.rounds())
def test_fields_are_the_checkers(checker: ModuleType, name: str) -> None:
    fields = rules.load(name).system_fields
    assert set(fields.required.value) == set(checker.SYSTEM_DESC_REQUIRED_FIELDS)
    meaningful = set(checker.SYSTEM_DESC_MEANINGFUL_RESPONSE_REQUIRED_FIELDS)
    assert meaningful == set(fields.required.value) - set(fields.may_be_empty.value)
    assert fields.power.value == checker.SYSTEM_DESC_REQUIRED_FIELDS_POWER
    assert fields.network_required.value == checker.SYSTEM_DESC_REQUIRED_FIELDS_NETWORK_MODE
    assert set(PACK.measurements_fields.value) == set(checker.SYSTEM_IMP_REQUIRED_FILES)


@pytest.mark.parametrize(("name", "benchmark"), EVERY)
def test_scenarios_and_audits_are_the_checkers(checker: ModuleType, name: str, benchmark: str) -> None:
    ours, config = rules.load(name).benchmark(benchmark), configured(rules.load(name), checker)
    for system_type in ("datacenter", "edge", "datacenter,edge"):
        required = config["required-scenarios-" + system_type.replace(",", "-")].get(benchmark)
        if required is None:
            assert system_type not in ours.scenario_sets
            continue
        wanted = ours.scenario_sets[system_type].value
        optional = config["optional-scenarios-" + system_type.replace(",", "-")].get(benchmark, [])
        assert (sorted(wanted.required), sorted(wanted.one_of)) == (sorted(required), sorted(optional))
    audits = [key.removeprefix("models_") for key in config if key.startswith("models_TEST")]
    assert ours.audits.value == sorted(audit for audit in audits if benchmark in config[f"models_{audit}"])


@pytest.mark.parametrize(("name", "benchmark"), EVERY)
def test_counts_and_targets_are_the_checkers(checker: ModuleType, name: str, benchmark: str) -> None:
    ours, config = rules.load(name).benchmark(benchmark), configured(rules.load(name), checker)
    assert ours.datasets["performance"].value == config["performance-sample-count"][benchmark]
    counts = config["accuracy-sample-count"].get(benchmark, config["dataset-size"][benchmark])
    targets, upper = config["accuracy-target"][benchmark], config["accuracy-upper-limit"].get(benchmark)
    for scenario in ours.scenarios:
        assert ours.rows("accuracy", scenario) == (counts[scenario] if isinstance(counts, dict) else counts)
        key, target = targets[scenario] if isinstance(targets, dict) else targets
        assert ours.target(scenario).value.at_least == target
        assert ours.accuracy_pattern.value == checker.ACC_PATTERN[key]
    limit = ours.accuracy_upper_limit
    assert (limit is None) == (upper is None)
    if limit is not None and upper is not None and ours.accuracy_upper_pattern is not None:
        assert limit.value.at_most == upper[1]
        assert ours.accuracy_upper_pattern.value == checker.ACC_PATTERN[upper[0]]


@pytest.mark.parametrize(("name", "benchmark"), EVERY)
def test_metrics_and_limits_are_the_checkers(checker: ModuleType, name: str, benchmark: str) -> None:
    ours, config = rules.load(name).benchmark(benchmark), configured(rules.load(name), checker)
    overwritten = checker.RESULT_FIELD_BENCHMARK_OVERWRITE[name].get(benchmark, {})
    units = checker.SPECIAL_UNIT_DICT.get(benchmark, {})
    for scenario, demands in {**ours.scenarios, **ours.analysis_scenarios}.items():
        logged = demands.loadgen_scenario.value
        assert demands.metric.value.key == overwritten.get(logged, checker.RESULT_FIELD_NEW[name][logged])
        assert demands.metric.value.units == units.get(scenario, checker.UNIT_DICT[scenario])
        if demands.ttft_p99_below_ms is not None and demands.tpot_p99_below_ms is not None:
            limits = checker.LLM_LATENCY_LIMITS[benchmark][scenario]
            assert demands.ttft_p99_below_ms.value * checker.MS_TO_NS == limits["ttft"]
            assert demands.tpot_p99_below_ms.value * checker.MS_TO_NS == limits["tpot"]
        latencies = config["latency-constraint"].get(benchmark, {})
        if demands.latency_p99_at_most_ms is not None:
            assert demands.latency_p99_at_most_ms.value * checker.MS_TO_NS == latencies[scenario]
        if scenario == "Server" and demands.target_latency_at_most_ms is not None:
            assert demands.target_latency_at_most_ms.value * checker.MS_TO_NS == latencies["Server"]
        if scenario == "Offline" and demands.min_query_count is not None:
            assert demands.min_query_count.value == checker.OFFLINE_MIN_SPQ_SINCE_V4[benchmark]


@pytest.mark.parametrize("name", rules.rounds())
def test_audits_are_the_clones(checker: ModuleType, name: str) -> None:
    """Only the latest round's texts are those of a clone's head."""
    clone = MLPERF_INFERENCE_DIR.path()
    assert clone is not None
    for benchmark, ours in rules.load(name).benchmarks.items():
        for audit, demands in ours.audit_rules.items():
            window = demands.mean_output_tokens
            assert window is None or (
                window.value.at_least,
                window.value.at_most,
            ) == (checker.TEST09_LOW, checker.TEST09_HIGH)
            path = clone / "compliance" / audit / benchmark / "audit.config"
            if name == rules.LATEST:
                assert hashlib.sha256(path.read_bytes()).hexdigest() == demands.config.sha256.value
