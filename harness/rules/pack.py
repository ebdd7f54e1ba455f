"""A rule pack: all that one round demands, as dated data with sources; and its reader."""

from __future__ import annotations

import functools
import importlib.resources
import re
from typing import Annotated

from pydantic import BaseModel, Field, model_validator

from harness.errors import UnknownName
from harness.rules import packaged
from harness.rules.benchmark import AnyBenchmark, BenchmarkRules, ImageRules, TokenRules
from harness.rules.layouts import Layouts, Tree
from harness.rules.rulings import Profile, Ruling, Said
from harness.rules.values import ErrorCorrection, FirstLoadGen, Ruled, Seeds, Source, Strict, SystemFields

_RULINGS_NAMED = re.compile(r"rulings? ([A-Z0-9-]+(?:, [A-Z0-9-]+)*)")


class RulePack(Strict):
    """All that one round demands.

    ``division_rules`` says in which divisions a check of the official checker holds, as its code has it.
    ``other_benchmarks`` are those of the round that the pack has no rules for, with the system types they may run on.
    ``benchmark_aliases`` are further names of benchmarks -> official ones, in every division.
    ``profiles`` are other programmes'.
    """

    round: str
    sources: dict[str, Source]
    seeds: Seeds
    min_duration_ms: Ruled[int]
    """What LoadGen's setting must be at least."""
    measured_duration_ms: Ruled[int]
    """What the run must have lasted."""
    first_loadgen: Ruled[FirstLoadGen]
    accuracy_log_max_bytes: Ruled[int]
    accuracy_log_kept_bytes: Ruled[int]
    accuracy_log_separator: Ruled[str]
    early_stopping_scenarios: Ruled[list[str]]
    availability: Ruled[list[str]]
    divisions: Ruled[list[str]]
    categories: Ruled[list[str]]
    system_types: Ruled[list[str]]
    error_correction: Ruled[ErrorCorrection]
    system_fields: SystemFields
    network_sut_name_holds: Ruled[str]
    measurements_fields: Ruled[list[str]]
    division_rules: dict[str, Ruled[list[str]]]
    layouts: Layouts
    tree: Tree
    benchmarks: Annotated[dict[str, AnyBenchmark], Field(min_length=1)]
    other_benchmarks: Ruled[dict[str, list[str]]]
    benchmark_aliases: Ruled[dict[str, str]]
    rulings: list[Ruling]
    profiles: dict[str, Profile]

    @model_validator(mode="after")
    def _every_source_is_named(self) -> RulePack:
        said = _sources_of(self)
        unknown = sorted({text for text in said if source_key(text) not in self.sources})
        if unknown:
            raise ValueError(f"sources that the pack does not name: {unknown}")
        ids = [ruling.id for ruling in self.rulings]
        if len(set(ids)) < len(ids):
            raise ValueError("two rulings with one id")
        named = {id_ for text in said for found in _RULINGS_NAMED.findall(text) for id_ in found.split(", ")}
        if not named <= set(ids):
            raise ValueError(f"rulings that the pack does not have: {sorted(named - set(ids))}")
        return self

    def benchmark(self, name: str) -> BenchmarkRules:
        """The rules of one benchmark; UnknownName with the nearest where the round has none such."""
        if name not in self.benchmarks:
            raise UnknownName("benchmark", name, self.benchmarks)
        return self.benchmarks[name]

    def token_benchmark(self, name: str) -> TokenRules:
        """The rules of a benchmark of token ids; TypeError where it is of another kind, a fault of the caller's."""
        rules = self.benchmark(name)
        if not isinstance(rules, TokenRules):
            raise TypeError(f"{name} is no benchmark of token ids")
        return rules

    def image_benchmark(self, name: str) -> ImageRules:
        """The rules of a benchmark of pictures; TypeError where it is of another kind, a fault of the caller's."""
        rules = self.benchmark(name)
        if not isinstance(rules, ImageRules):
            raise TypeError(f"{name} is no benchmark of pictures")
        return rules

    def ruling(self, id_: str) -> Ruling:
        """One ruling; KeyError where the pack has none such."""
        return {ruling.id: ruling for ruling in self.rulings}[id_]

    def holds(self, check: str, division: str) -> bool:
        """Whether a check of ``division_rules`` holds in a division."""
        return division in self.division_rules[check].value


def source_key(text: str) -> str:
    """The key of ``sources`` that a value's source begins with."""
    return re.split(r"[/ (:]", text, maxsplit=1)[0]


def _sources_of(node: object) -> list[str]:
    if isinstance(node, Ruled | Said):
        return [node.source]
    if isinstance(node, BaseModel):
        return [text for name in type(node).model_fields for text in _sources_of(getattr(node, name))]
    if isinstance(node, dict):
        return [text for child in node.values() for text in _sources_of(child)]
    if isinstance(node, list | tuple):
        return [text for child in node for text in _sources_of(child)]
    return []


def rounds() -> list[str]:
    """The rounds there are packs for."""
    folder = importlib.resources.files("harness.rules")
    return sorted(f.name.removesuffix(".yaml") for f in folder.iterdir() if f.name.endswith(".yaml"))


@functools.cache
def load(name: str) -> RulePack:
    """The pack of a round, e.g. ``v6.1``; UnknownName where there is none."""
    if name not in rounds():
        raise UnknownName("round", name, rounds())
    return RulePack.model_validate(packaged.read("harness.rules", f"{name}.yaml"))
