"""What the checks of a result of the endpoints client are told: its three files, and the values that count in them.

The official checker looks a value up in the report first, under its own name for it, and then in the configuration;
what it finds so is what counts, here as there.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from harness.gate.index import TreeIndex, Unreadable
from harness.gate.row_layout import RowPlace
from harness.logs import LogError
from harness.logs.values import TypedValues, shown
from harness.rules import BenchmarkRules, RulePack, ScenarioRules
from harness.rules.layouts import EndpointsLayout

_MAX_NODES = 100_000
_MAX_DEPTH = 64
_MAX_BITS = 128
"""Beyond these a file is nobody's configuration or report: aliases of YAML make gigabytes of a few lines."""

OVERRIDES = {
    "scenario": "effective_scenario",
    "min_duration_ms": "min_duration_ms",
    "sample_index_seed": "effective_sample_index_rng_seed",
    "schedule_seed": "effective_schedule_rng_seed",
    "issued": "generated_query_count",
}
"""Names by which the official checker finds a value in the report before it looks where the client writes it."""

_OF_THE_CONFIGURATION = ("scenario", "min_duration_ms", "sample_index_seed", "schedule_seed")


def look_up(data: object, dotted: str) -> Any:  # noqa: ANN401 - whatever was written
    """The value at a dotted path as the official checker finds it; None where there is none, or an empty container.

    At each level the longest run of parts that is a key wins, so that ``99.0`` is one key; a last part ``0`` may be
    missing, so that ``99`` is found by ``99.0``.
    """
    parts, current, at = dotted.split("."), data, 0
    while at < len(parts):
        if not isinstance(current, Mapping):
            found = at > 0 and parts[at:] == ["0"] and not isinstance(current, list)
            return current if found else None
        ends = (end for end in range(len(parts), at, -1) if ".".join(parts[at:end]) in current)
        end = next(ends, None)
        if end is None:
            return None
        current, at = current[".".join(parts[at:end])], end
    return None if isinstance(current, list | Mapping) and not current else current


@dataclass(frozen=True, slots=True)
class Report(TypedValues):
    """One file's object with its path in the tree; values are asked for by their dotted path."""

    path: PurePosixPath
    data: Mapping[str, Any]

    def value(self, key: str) -> Any:  # noqa: ANN401 - whatever was written
        """The value at a dotted path, or None."""
        return look_up(self.data, key)

    def wrong(self, key: str, expected: str) -> LogError:
        """The error of a value that is not what was expected."""
        return LogError(f"{key} is {shown(self.value(key))}", Path(self.path), expected=expected)

    def at(self, key: str) -> Report:
        """The object at a dotted path as a report of its own, an empty one where there is none; LogError for others."""
        inner = self.value(key)
        if inner is None:
            return Report(self.path, {})
        if not isinstance(inner, Mapping):
            raise self.wrong(key, "an object")
        return Report(self.path, inner)

    def objects(self, key: str) -> list[Report]:
        """The objects of the list at a dotted path, none where it is absent; LogError where it holds anything else."""
        inner = self.value(key)
        if inner is None:
            return []
        if not isinstance(inner, list) or not all(isinstance(one, Mapping) for one in inner):
            raise self.wrong(key, "a list of objects")
        return [Report(self.path, one) for one in inner]


@dataclass(frozen=True, slots=True)
class Measured(TypedValues):
    """The values of the performance run by their role (the pack's ``layouts.endpoints.keys``)."""

    summary: Report
    config: Report
    keys: Mapping[str, str]

    def value(self, key: str) -> Any:  # noqa: ANN401 - whatever was written
        """The value of a role as the official checker finds it, or None."""
        written, name = self.keys[key], OVERRIDES.get(key, self.keys[key])
        if key in _OF_THE_CONFIGURATION:
            places = ((self.summary, name), (self.config, written), (self.config, name))
        else:
            places = ((self.summary, name), (self.summary, written), (self.config, name))
        values = (report.value(path) for report, path in places)
        return next((value for value in values if value is not None), None)

    def wrong(self, key: str, expected: str) -> LogError:
        """The error of a value that is not what was expected."""
        report = self.config if key in _OF_THE_CONFIGURATION else self.summary
        return LogError(f"{self.keys[key]} is {shown(self.value(key))}", Path(report.path), expected=expected)


@dataclass(frozen=True, slots=True)
class EndpointsFacts:
    """All that the checks of one result need. A file that cannot be read is an empty report here."""

    place: RowPlace
    pack: RulePack
    layout: EndpointsLayout
    config: Report
    summary: Report
    accuracy: Report

    @property
    def rules(self) -> BenchmarkRules:
        """The round's rules of the benchmark."""
        return self.pack.benchmark(self.place.benchmark)

    @property
    def scenario_rules(self) -> ScenarioRules:
        """The round's rules of the scenario."""
        return self.rules.scenario(self.place.scenario)

    @property
    def measured(self) -> Measured:
        """The values of the performance run."""
        single = {role: ruled.value for role, ruled in self.layout.keys.items() if isinstance(ruled.value, str)}
        return Measured(self.summary, self.config, single)


def read_report(index: TreeIndex, path: PurePosixPath) -> Report:
    """A JSON report. Unreadable where it is none."""
    return Report(path, index.read_object(path))


def read_config(index: TreeIndex, paths: list[PurePosixPath]) -> Report:
    """The first of the configuration's names that parses, as the official checker takes it. Unreadable for none."""
    reason = Unreadable("no such file")
    for path in paths:
        if path not in index.nodes:
            continue
        try:
            data = index.read_yaml(path) or {}
            _check_size(data)
        except Unreadable as error:
            reason = error
            continue
        if not isinstance(data, Mapping):
            raise Unreadable(f"a YAML {type(data).__name__}, not a mapping")
        return Report(path, data)
    raise reason


def _check_size(data: object) -> None:
    """Unreadable for what is no configuration: too many nodes (or one in itself), too deep, or numbers without end."""
    pending, seen = [(data, 0)], 0
    while pending:
        value, depth = pending.pop()
        seen += 1
        if seen > _MAX_NODES or depth > _MAX_DEPTH:
            raise Unreadable("more than a configuration can hold")
        if isinstance(value, int) and value.bit_length() > _MAX_BITS:
            raise Unreadable(f"a number of {value.bit_length()} bits")
        if isinstance(value, Mapping):
            pending += [(inner, depth + 1) for item in value.items() for inner in item]
        elif isinstance(value, list | tuple | set):
            pending += [(inner, depth + 1) for inner in value]
