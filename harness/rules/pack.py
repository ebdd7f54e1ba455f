"""Typed reader of a rule pack: what a round demands, each value with the place it was read."""

from __future__ import annotations

import datetime
import functools
import importlib.resources
from typing import Annotated, Any, Generic, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, Field, model_validator

from harness.errors import UnknownName

T = TypeVar("T")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Source(_Strict):
    """A text or program that rules were read from: what, which commit, on which day."""

    what: str
    commit: str
    as_of: datetime.date


class Ruled(_Strict, Generic[T]):
    """One value of the round with its source (a key of the pack's ``sources``, then the place in it)."""

    value: T
    source: str


class Seeds(_Strict):
    """LoadGen's three random seeds of the round."""

    qsl: Ruled[int]
    sample_index: Ruled[int]
    schedule: Ruled[int]


class SystemFields(_Strict):
    """The keys of a system description: all that must be there, and which of them may be empty."""

    required: Ruled[list[str]]
    may_be_empty: Ruled[list[str]]


class Subset(_Strict):
    """A part of the accuracy data set: rows, and how often each question is asked."""

    samples: int
    repeats: int


class Target(_Strict):
    """The accuracy a closed result must reach: the key in accuracy.txt and its lower bound."""

    key: str
    at_least: float


class SamplingRule(_Strict):
    """How the benchmark samples; ``top_k`` 0 is off."""

    temperature: float
    top_p: float
    top_k: int


class OutputCaps(_Strict):
    """New tokens an answer may have, by kind of leg."""

    performance: Ruled[int]
    accuracy: Ruled[int]


class Metric(_Strict):
    """The key of the detail log that is the result, and its units."""

    key: str
    units: str


class ScenarioRules(_Strict):
    """One scenario of a benchmark: LoadGen's names for it, its metric and its limits (strictly below)."""

    loadgen_model: Ruled[str]
    loadgen_scenario: Ruled[str]
    metric: Ruled[Metric]
    min_query_count: Ruled[int] | None = None
    ttft_p99_below_ms: Ruled[float] | None = None
    tpot_p99_below_ms: Ruled[float] | None = None
    target_latency_at_most_ms: Ruled[float] | None = None
    """What early stopping may be told to hold the whole answer's latency to."""


class BenchmarkRules(_Strict):
    """One benchmark of the round."""

    model: Ruled[str]
    revision: Ruled[str]
    vocab_size: Ruled[int]
    categories: Ruled[list[str]]
    required_scenarios: Ruled[list[str]]
    one_of_scenarios: Ruled[list[str]]
    audits: Ruled[list[str]]
    datasets: dict[str, Ruled[int]]
    accuracy_subsets: Ruled[dict[str, Subset]]
    accuracy_target: Ruled[Target]
    output_caps: OutputCaps
    sampling: Ruled[SamplingRule]
    stop_token_ids: Ruled[list[int]]
    use_token_latencies: Ruled[bool]
    min_answer_tokens: Ruled[int]
    scenarios: dict[str, ScenarioRules]

    def scenario(self, name: str) -> ScenarioRules:
        """The rules of one scenario; UnknownName with the nearest where the benchmark has none such."""
        if name not in self.scenarios:
            raise UnknownName("scenario", name, self.scenarios)
        return self.scenarios[name]


class RulePack(_Strict):
    """All that one round demands."""

    round: str
    sources: dict[str, Source]
    seeds: Seeds
    min_duration_ms: Ruled[int]
    accuracy_log_max_bytes: Ruled[int]
    accuracy_log_kept_bytes: Ruled[int]
    accuracy_log_separator: Ruled[str]
    early_stopping_scenarios: Ruled[list[str]]
    availability: Ruled[list[str]]
    divisions: Ruled[list[str]]
    categories: Ruled[list[str]]
    system_fields: SystemFields
    measurements_fields: Ruled[list[str]]
    benchmarks: Annotated[dict[str, BenchmarkRules], Field(min_length=1)]

    @model_validator(mode="after")
    def _every_source_is_named(self) -> RulePack:
        unknown = sorted({s for s in _sources_of(self) if s.split("/")[0].split(" ")[0] not in self.sources})
        if unknown:
            raise ValueError(f"sources that the pack does not name: {unknown}")
        return self

    def benchmark(self, name: str) -> BenchmarkRules:
        """The rules of one benchmark; UnknownName with the nearest where the round has none such."""
        if name not in self.benchmarks:
            raise UnknownName("benchmark", name, self.benchmarks)
        return self.benchmarks[name]


def _sources_of(node: object) -> list[str]:
    if isinstance(node, Ruled):
        return [node.source]
    if isinstance(node, BaseModel):
        return [s for name in type(node).model_fields for s in _sources_of(getattr(node, name))]
    if isinstance(node, dict):
        return [s for child in node.values() for s in _sources_of(child)]
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
    text = importlib.resources.files("harness.rules").joinpath(f"{name}.yaml").read_text(encoding="utf-8")
    data: Any = yaml.safe_load(text)
    return RulePack.model_validate(data)
