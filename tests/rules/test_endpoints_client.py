"""What the rule packs say of the endpoints client agrees with what they say of the benchmarks."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.gate.endpoints_accuracy import _subset
from harness.logs import Document, ScoredDataset
from harness.rules import ImageRules, TrajectoryRules, load

PACK = load("v6.1")
TOLD = [name for name, rules in PACK.benchmarks.items() if rules.endpoints_client is not None]


def test_the_benchmarks_that_the_client_is_told_of() -> None:
    layout = PACK.layouts.endpoints
    assert layout is not None
    assert set(TOLD) == {"gpt-oss-120b", "qwen3-vl-235b-a22b", "qwen3.6-27b"} <= set(layout.benchmarks.value)
    assert layout.ruleset.value.format(round=PACK.round) == "mlperf-inference-v6.1"


@pytest.mark.parametrize("name", TOLD)
def test_data_sets_and_repeats_are_the_benchmarks(name: str) -> None:
    rules = PACK.benchmark(name)
    assert rules.endpoints_client is not None
    subsets = rules.accuracy_subsets.value
    for scenario in rules.scenarios:
        found = {}
        if isinstance(rules, TrajectoryRules):  # all subsets are one data set of the client's
            (one,) = rules.endpoints_client.value.data(scenario).accuracy
            assert {told.repeats for told in subsets.values()} == {one.num_repeats}
            continue
        for one in rules.endpoints_client.value.data(scenario).accuracy:
            entry = ScoredDataset(Document(Path(__file__), {"dataset_name": one.name}))
            subset = _subset(entry, subsets) or next(iter(subsets))
            found[subset] = one.num_repeats
        assert found == {subset: told.repeats for subset, told in subsets.items()}


def test_the_package_of_a_scorer_is_that_of_the_questions() -> None:
    for rules in PACK.benchmarks.values():
        if isinstance(rules, TrajectoryRules):
            assert rules.endpoints_client is not None
            extra, data = rules.endpoints_client.value.extra, rules.accuracy_data.value
            assert extra is not None
            assert (extra.package, extra.version) == (data.package, data.version)
            asked = rules.endpoints_client.value.default.performance
            assert asked.file == rules.performance_data.value.file


def test_names_of_the_catalogues_are_those_that_the_gate_wants() -> None:
    for rules in PACK.benchmarks.values():
        if not isinstance(rules, ImageRules):
            continue
        assert rules.endpoints_client is not None
        assert rules.endpoints_datasets is not None
        wanted = rules.endpoints_datasets.value
        for scenario, name in (("Server", wanted.default), ("Interactive", wanted.Interactive)):
            data = rules.endpoints_client.value.data(scenario)
            assert {data.performance.name, *(one.name for one in data.accuracy)} == {name}
            assert {one.eval_method for one in data.accuracy} == {wanted.eval_method}
            assert data.cache is not None
            source = rules.dataset_sources.get(scenario, rules.dataset_sources["default"]).value
            own, splits = name.partition("::")[0], "+".join(source.splits)
            assert data.cache == f"{own}/{splits}/{own}_{splits}.parquet"
