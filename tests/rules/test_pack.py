"""The round's rules: their reader, their sources, and the numbers beside the official checker's own."""

from __future__ import annotations

import importlib.resources
import importlib.util
from types import ModuleType
from typing import Any

import pytest
import yaml
from pydantic import BaseModel, ValidationError

from harness import rules
from harness.env import MLPERF_INFERENCE_DIR
from harness.errors import UnknownName
from harness.rules.pack import Ruled, RulePack

PACK = rules.load("v6.1")


def text() -> dict[str, Any]:
    data: dict[str, Any] = yaml.safe_load(importlib.resources.files("harness.rules").joinpath("v6.1.yaml").read_text())
    return data


def ruled(node: object) -> list[Ruled[Any]]:
    """All values of a pack, with their sources."""
    if isinstance(node, Ruled):
        return [node]
    if isinstance(node, BaseModel):
        return [value for name in type(node).model_fields for value in ruled(getattr(node, name))]
    if isinstance(node, dict):
        return [value for child in node.values() for value in ruled(child)]
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
    assert len(values) > 40
    for value in values:
        assert value.source.split("/")[0].split(" ")[0] in pack.sources, value
    for source in pack.sources.values():
        assert source.what
        assert int(source.commit, 16)
        assert source.as_of.year >= 2026


def test_every_source_is_used() -> None:
    used = {value.source.split("/")[0].split(" ")[0] for value in ruled(PACK)}
    unused = set(PACK.sources) - used
    assert unused <= {"policies"}


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


@pytest.mark.parametrize("name", PACK.benchmarks)
def test_a_benchmark_agrees_with_itself(name: str) -> None:
    benchmark = PACK.benchmark(name)
    subsets = benchmark.accuracy_subsets.value
    assert sum(subset.samples for subset in subsets.values()) == benchmark.datasets["accuracy"].value
    assert all(subset.samples % subset.repeats == 0 for subset in subsets.values())
    assert set(benchmark.required_scenarios.value) <= set(benchmark.scenarios)
    assert set(benchmark.one_of_scenarios.value) <= set(benchmark.scenarios)
    assert set(benchmark.categories.value) <= set(PACK.categories.value)
    assert all(token < benchmark.vocab_size.value for token in benchmark.stop_token_ids.value)


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


def test_numbers_of_the_round_are_the_checkers(checker: ModuleType) -> None:
    config = checker.MODEL_CONFIG[PACK.round]
    seeds = config["seeds"]
    assert PACK.seeds.qsl.value == seeds["qsl_rng_seed"]
    assert PACK.seeds.sample_index.value == seeds["sample_index_rng_seed"]
    assert PACK.seeds.schedule.value == seeds["schedule_rng_seed"]
    assert PACK.min_duration_ms.value == checker.TEST_DURATION_MS
    assert PACK.accuracy_log_max_bytes.value == checker.MAX_ACCURACY_LOG_SIZE
    assert PACK.divisions.value == ["closed", "open", "network"]
    assert set(PACK.divisions.value) == set(checker.VALID_DIVISIONS)
    assert PACK.availability.value == checker.VALID_AVAILABILITIES


def test_fields_are_the_checkers(checker: ModuleType) -> None:
    required = set(PACK.system_fields.required.value)
    assert required >= set(checker.SYSTEM_DESC_REQUIRED_FIELDS)
    meaningful = set(checker.SYSTEM_DESC_MEANINGFUL_RESPONSE_REQUIRED_FIELDS)
    assert not meaningful & set(PACK.system_fields.may_be_empty.value)
    assert set(PACK.measurements_fields.value) == set(checker.SYSTEM_IMP_REQUIRED_FILES)


def test_numbers_of_gpt_oss_are_the_checkers(checker: ModuleType) -> None:
    name = "gpt-oss-120b"
    ours = PACK.benchmark(name)
    config = checker.MODEL_CONFIG[PACK.round]
    key, target = config["accuracy-target"][name]
    assert ours.accuracy_target.value.key == key
    assert ours.accuracy_target.value.at_least == pytest.approx(target, abs=1e-4)
    assert ours.datasets["performance"].value == config["performance-sample-count"][name]
    assert ours.datasets["accuracy"].value == config["accuracy-sample-count"][name]
    assert ours.required_scenarios.value == config["required-scenarios-datacenter"][name]
    limits = checker.LLM_LATENCY_LIMITS[name]
    for scenario, rules_ in ours.scenarios.items():
        fields = checker.RESULT_FIELD_BENCHMARK_OVERWRITE[PACK.round][name]
        assert rules_.metric.value.key == fields[rules_.loadgen_scenario.value]
        if scenario in limits:
            assert rules_.ttft_p99_below_ms is not None
            assert rules_.tpot_p99_below_ms is not None
            assert rules_.ttft_p99_below_ms.value * checker.MS_TO_NS == limits[scenario]["ttft"]
            assert rules_.tpot_p99_below_ms.value * checker.MS_TO_NS == limits[scenario]["tpot"]
