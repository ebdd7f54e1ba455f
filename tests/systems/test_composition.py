"""The repository's systems: files that build on each other repeat nothing, and nothing is said without a source."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.config import Project
from harness.config.extends import EXTENDS, read_layered
from harness.config.plain_yaml import read_yaml
from harness.machine.accelerators import KEYS as ACCELERATOR_KEYS
from harness.machine.describe import Filing, describe
from harness.rules import load
from tests.machine.test_describe import machine

ROOT = Path(__file__).parents[2]
PROJECT = Project(ROOT)
PACK = load("v6.1")
OF_THE_PRODUCT = {"number_of_nodes", *ACCELERATOR_KEYS}
PUBLISHED = {
    "GB300-NVL4_GB300-288GB_aarch64x4_TRT": (4, "NVIDIA GB300", "288 GB"),
    "B200-SXM-180GBx8_TRT": (8, "NVIDIA B200-SXM-180GB", "180 GB"),
    "H200-SXM-141GBx8_TRT": (8, "NVIDIA H200-SXM-141GB", "141 GB"),
}
FILES = sorted((ROOT / "systems").rglob("*.yaml"))


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


@pytest.mark.parametrize("name", PUBLISHED)
def test_what_is_not_said_is_what_a_submission_is_refused_for(name: str) -> None:
    """On a machine that tells all it can, what is left is for the submitter."""
    told = dict.fromkeys(ACCELERATOR_KEYS) | {"host_memory_configuration": "16x 64 GB DDR5"}
    description = describe(
        name, machine(8, **told), PROJECT.system(name), Filing("closed", "A", "available", "b"), PACK
    )
    assert {lack.field for lack in description.lacks} == {"system_name", "cooling", "host_networking_topology"}
    assert all(f"edit systems/{name}/system.yaml: {lack.field}" in lack.mend for lack in description.lacks)


@pytest.mark.parametrize("name", PUBLISHED)
def test_before_a_leg_has_run_nothing_is_made_up_in_its_place(name: str) -> None:
    description = describe(name, None, PROJECT.system(name), Filing("closed", "A", "available", "b"), PACK)
    lacks = {lack.field for lack in description.lacks}
    assert {"host_processor_model_name", "host_memory_capacity", "operating_system", "framework", "cooling"} <= lacks
    assert not lacks & set(PROJECT.system(name).sources)
