"""What the checks of a result of the endpoints client are told: its three files, by their paths in the tree."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.gate.index import TreeIndex
from harness.gate.row_layout import RowPlace
from harness.logs import AccuracyResults, Document, EndpointsLog, FilePass, LogError, ScoredDataset
from harness.logs.documents import NotParsable
from harness.logs.endpoints import ISSUED
from harness.rules import BenchmarkRules, RulePack, ScenarioRules
from harness.rules.layouts import EndpointsLayout
from harness.rules.values import Ruled, Target

_OF_ITS_BENCHMARK = (
    "min_query_count", "min_samples_issued", "ttft_p99_below_ms", "tpot_p99_below_ms", "latency_p99_at_most_ms",
    "target_latency_at_most_ms", "accuracy_target", "logged_performance_rows",
)  # fmt: skip
"""What the rules of a scenario say of one benchmark alone."""

_OFFICIAL_NAMES = {"issued": ISSUED}
"""Roles of the pack's keys whose value the official checker takes by a name of its own before the client's."""


@dataclass(frozen=True, slots=True)
class EndpointsFacts:
    """All that the checks of one result need. A file that cannot be read is an empty document here."""

    place: RowPlace
    pack: RulePack
    layout: EndpointsLayout
    config: Document
    summary: Document
    accuracy: Document
    told: str = ""
    """What the row's README.md and measurements.json say."""

    @property
    def rules(self) -> BenchmarkRules:
        """The round's rules of the benchmark."""
        return self.pack.benchmark(self.place.benchmark)

    @property
    def scenario_rules(self) -> ScenarioRules:
        """The round's rules of the scenario; of one that the benchmark has not, and open may run, the metric alone.

        The metric is then that of another benchmark without tokens; none where no benchmark has the scenario.
        """
        own = self.rules.scenarios.get(self.place.scenario)
        if own is not None:
            return own
        others = [rules for rules in self.pack.benchmarks.values() if not rules.use_token_latencies.value]
        alike = [rules.scenarios[self.place.scenario] for rules in others if self.place.scenario in rules.scenarios]
        nothing: dict[str, object] = {**dict.fromkeys(_OF_ITS_BENCHMARK), "datasets": {}}
        if alike:
            return alike[0].model_copy(update=nothing)
        return next(iter(self.rules.scenarios.values())).model_copy(update=nothing | {"endpoints_metric": None})

    @property
    def target(self) -> Ruled[Target]:
        """The accuracy that a result must reach."""
        return self.scenario_rules.accuracy_target or self.rules.accuracy_target

    @property
    def log(self) -> EndpointsLog:
        """What was measured and configured, as the official checker looks it up."""
        return EndpointsLog(self.summary, self.config)

    @property
    def scored(self) -> tuple[ScoredDataset, ...]:
        """Everything that was scored, in order. LogError where it is no list of objects."""
        return AccuracyResults.of(EndpointsLog(self.accuracy, self.config)).scored

    @property
    def accuracies(self) -> tuple[ScoredDataset, ...]:
        """What was scored as accuracy: not a performance data set that was scored inline."""
        return tuple(one for one in self.scored if one.is_accuracy)

    def key(self, role: str) -> str:
        """The key of a role (the pack's ``layouts.endpoints.keys``), as :attr:`log` takes it."""
        value = self.layout.keys[role].value
        return _OFFICIAL_NAMES.get(role, value if isinstance(value, str) else value[0])

    def number(self, role: str) -> int | float | None:
        """The number of a role."""
        return self.log.number(self.key(role))

    def integer(self, role: str) -> int | None:
        """The whole number of a role."""
        return self.log.integer(self.key(role))


def read_document(index: TreeIndex, path: PurePosixPath, read: Callable[[FilePass], Document]) -> Document:
    """A document by its path in the tree. LogError where it is none."""
    with index.opened(path) as file:
        return dataclasses.replace(read(file), path=Path(path))


def read_configuration(index: TreeIndex, paths: Sequence[PurePosixPath]) -> Document:
    """The first of the configuration's names that parses, as the official checker takes it. LogError where none does;
    an empty document where there is none.
    """
    there = [path for path in paths if index.file(path) is not None]
    if not there:
        return Document(Path(paths[0]), {})
    try:
        return read_document(index, there[0], Document.read_yaml)
    except NotParsable:
        if len(there) == 1:
            raise
    return read_configuration(index, there[1:])


def at(error: LogError, path: PurePosixPath) -> str:
    """A place in the tree for an error of a reader, which knows files of this machine alone."""
    return str(path) if error.line is None else f"{path}:{error.line}"
