"""The repository's systems: files that build on each other repeat nothing, and nothing is said without a source."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest

from harness.config import Project
from harness.config.engine_checks import check_engine
from harness.config.engine_subject import Subject, declared_weights
from harness.config.extends import EXTENDS, read_layered
from harness.config.models import OfflineShare, UnmeasuredRate
from harness.config.plain_yaml import read_yaml
from harness.errors import Refused
from harness.gate.system_description import check_system
from harness.ledger.store import ResultsStore
from harness.machine.accelerators import KEYS as ACCELERATOR_KEYS
from harness.machine.describe import Description, Filing, describe
from harness.rules import load
from harness.submission.package import package
from harness.submission.secrets import Names
from tests.logs.loadgen_runs import loadgen_runs
from tests.machine.test_describe import machine
from tests.submission.made_up import SCENARIOS, add_run, make_project, submission

__all__ = ["loadgen_runs"]

ROOT = Path(__file__).parents[2]
PROJECT = Project(ROOT)
PACK = load("v6.1")
OF_THE_PRODUCT = {"number_of_nodes", *ACCELERATOR_KEYS}
PUBLISHED = {
    "GB300-NVL4_GB300-288GB_aarch64x4_TRT": (4, "NVIDIA GB300", "288 GB"),
    "B200-SXM-180GBx8_TRT": (8, "NVIDIA B200-SXM-180GB", "180 GB"),
    "H200-SXM-141GBx8_TRT": (8, "NVIDIA H200-SXM-141GB", "141 GB"),
}
FOR_THE_SUBMITTER = {"system_name", "cooling", "host_networking_topology"}
FILES = sorted((ROOT / "systems").rglob("*.yaml"))


def engines(name: str) -> list[tuple[str, str | None]]:
    """Each benchmark of a system with its own engine (None) and with those of its variants."""
    found: list[tuple[str, str | None]] = []
    for benchmark in PROJECT.benchmark_names(name):
        found += [(benchmark, variant) for variant in (None, *PROJECT.variant_names(name, benchmark))]
    return found


def leaves(node: Any, at: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every value of a tree that is no mapping, with the keys that lead to it."""
    if isinstance(node, dict):
        for key, value in node.items():
            yield from leaves(value, (*at, str(key)))
    else:
        yield at, node


def below(path: Path) -> dict[tuple[str, ...], Any] | None:
    """What a file builds on; None for one that builds on nothing."""
    data, _ = read_yaml(path)
    return dict(leaves(read_layered(path.parent / data[EXTENDS], ROOT).data)) if EXTENDS in data else None


def repeated(path: Path) -> list[str]:
    """The values of a file that the one it builds on has already."""
    there = below(path) or {}
    return [".".join(at) for at, value in leaves(read_yaml(path)[0]) if at in there and there[at] == value]


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_no_file_repeats_what_it_builds_on(path: Path) -> None:
    assert repeated(path) == []


def test_a_repeated_value_is_found(tmp_path: Path) -> None:
    (tmp_path / "low.yaml").write_text("a: {b: 1, c: [1, 2]}\nd: 2\n")
    (tmp_path / "high.yaml").write_text("extends: low.yaml\na: {b: 1, c: [1]}\nd: 2\n")
    path = tmp_path / "high.yaml"
    there = dict(leaves(read_layered(path.parent / "low.yaml").data))
    assert [at for at, value in leaves(read_yaml(path)[0]) if there.get(at) == value] == [("a", "b"), ("d",)]


def test_every_base_is_built_on() -> None:
    bases = {path for path in FILES if path.parent.name == "_bases"}
    used = {place.resolve() for path in FILES for place in read_layered(path, ROOT).files[1:]}
    assert bases
    assert bases <= used


def test_bases_are_no_systems() -> None:
    assert "_bases" not in PROJECT.system_names()
    assert set(PUBLISHED) < set(PROJECT.system_names())


@pytest.mark.parametrize("name", PUBLISHED)
def test_only_what_is_published_is_said_and_each_value_has_its_source(name: str) -> None:
    file = PROJECT.system(name)
    said = {key for key, value in file.model_dump(exclude={"sources"}).items() if value not in (None, "")}
    assert said == set(file.sources)
    assert said <= OF_THE_PRODUCT
    assert (
        file.accelerators_per_node,
        file.accelerator_model_name,
        file.accelerator_memory_capacity,
    ) == PUBLISHED[name]


def described(name: str) -> Description:
    """As a machine would let it be described that tells all but what its accelerators are."""
    told = dict.fromkeys(ACCELERATOR_KEYS) | {"host_memory_configuration": "16x 64 GB DDR5"}
    filing = Filing("closed", "Acme", "available", "datacenter")
    return describe(name, machine(8, **told), PROJECT.system(name), filing, PACK)


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_not_said_is_left_for_the_submitter(name: str) -> None:
    description = described(name)
    assert {lack.field for lack in description.lacks} == FOR_THE_SUBMITTER
    assert all(f"edit systems/{name}/system.yaml: {lack.field}" in lack.mend for lack in description.lacks)
    assert set(PROJECT.system(name).sources) == set(description.said)


@pytest.mark.parametrize("name", PUBLISHED)
def test_before_a_leg_has_run_nothing_is_made_up_in_its_place(name: str) -> None:
    description = describe(name, None, PROJECT.system(name), Filing("closed", "A", "available", "datacenter"), PACK)
    lacks = {lack.field for lack in description.lacks}
    of_the_machine = {"host_processor_model_name", "host_memory_capacity", "operating_system", "framework"}
    assert of_the_machine | FOR_THE_SUBMITTER <= lacks
    assert not lacks & set(PROJECT.system(name).sources)


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_gate_refuses_a_tree_in_which_nulls_were_filed_as_nothing(name: str) -> None:
    filed = PurePosixPath("systems") / f"{name}.json"
    found = check_system(described(name).filled(""), filed, "closed", "Acme", PACK)
    empty = {finding.found for finding in found if finding.rule == "SYS-EMPTY"}
    assert empty == {f"{field} is ''" for field in FOR_THE_SUBMITTER}


@pytest.mark.parametrize("name", PUBLISHED)
def test_packaging_refuses_what_nobody_said(
    name: str, tmp_path: Path, loadgen_runs: dict[tuple[str, str], Path]
) -> None:
    project = make_project(tmp_path / "work")
    shutil.copy(ROOT / "systems" / name / "system.yaml", project.systems / "box" / "system.yaml")
    store = ResultsStore(project.root / "results")
    for scenario in SCENARIOS:
        for leg in ("performance", "accuracy"):
            add_run(store, loadgen_runs, scenario, leg)
    with pytest.raises(Refused, match="the description of box is not complete") as caught:
        package(store, project, submission(), tmp_path / "out", demonstration=False, pack=PACK, names=Names("h", "u"))
    assert all(f"edit systems/box/system.yaml: {field}" in str(caught.value) for field in FOR_THE_SUBMITTER)


@pytest.mark.parametrize("name", [*PUBLISHED, "CPU-http"])
def test_each_configuration_passes_what_closed_asks_of_an_engine(name: str) -> None:
    for benchmark, variant in engines(name):
        file, places = PROJECT.benchmark_and_places(name, benchmark, variant)
        for scenario in file.scenarios:
            rules, machine_file = PACK.benchmark(benchmark), PROJECT.system(name)
            weights = declared_weights(PROJECT.measurements(benchmark), file.engine_of(scenario).kind)
            subject = Subject(name, scenario, machine_file, rules, file.output_caps, "closed", weights, places)
            told = check_engine(file.engine_of(scenario), subject)
            if name in PUBLISHED:
                gpus = [line for line in told if line.startswith("GPUs: ")]
                assert [line.rpartition(" = ")[2] for line in gpus] == [f"{PUBLISHED[name][0]} GPUs"]
                assert not [line for line in told if "not checked" in line]


@pytest.mark.parametrize("name", PUBLISHED)
def test_a_rate_is_published_or_is_a_share_or_says_that_nobody_has_measured_it(name: str) -> None:
    for benchmark, variant in engines(name):
        for scenario, own in PROJECT.benchmark(name, benchmark, variant).scenarios.items():
            guessed = isinstance(own.target_qps, UnmeasuredRate)
            unmeasured = variant == "trtllm" or benchmark == "qwen3.6-27b"  # of trajectories nobody publishes a rate
            share = isinstance(own.target_qps, OfflineShare)
            assert guessed == (unmeasured and not share), (name, benchmark, scenario)


def test_a_first_guess_is_computed_of_what_is_published() -> None:
    for name, offline, server in (
        ("B200-SXM-180GBx8_TRT", 101.56, 69.42),
        ("GB300-NVL4_GB300-288GB_aarch64x4_TRT", 71.12, 64.62),
    ):
        scenarios = PROJECT.benchmark(name, "qwen3-vl-235b-a22b", "trtllm").scenarios
        for scenario, published in (("Offline", offline), ("Server", server)):
            rate = scenarios[scenario].target_qps
            assert isinstance(rate, UnmeasuredRate)
            assert rate.guess == pytest.approx(published * 71.3 / 69.4118)
            assert rate.arithmetic.endswith(f"= {rate.guess:.2f} samples/s")
