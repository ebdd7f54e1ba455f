"""What the checks of one run are told."""

from __future__ import annotations

from dataclasses import dataclass

from harness.ledger.record import Counts
from harness.logs import AccuracyLog, DetailLog, SummaryLog
from harness.rules import BenchmarkRules, RulePack, ScenarioRules

PERFORMANCE = "performance"
ACCURACY = "accuracy"

MODES = {PERFORMANCE: "PerformanceOnly", ACCURACY: "AccuracyOnly"}
"""The legs, and the test mode that LoadGen logs for each."""


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a leg was to do. A deliberately short run is judged by its own, and is not submittable for being short."""

    dataset_rows: int
    min_duration_ms: int
    min_query_count: int | None

    @classmethod
    def of_round(cls, pack: RulePack, benchmark: str, scenario: str, leg: str) -> Expectation:
        """What the round demands of a leg."""
        rules = pack.benchmark(benchmark)
        least = rules.scenario(scenario).min_query_count
        return cls(
            dataset_rows=rules.rows(leg, scenario),
            min_duration_ms=pack.min_duration_ms.value,
            min_query_count=None if least is None else least.value,
        )


@dataclass(frozen=True, slots=True)
class Coverage:
    """What an accuracy log holds: entries, distinct rows, rows outside the data set, entries without a token."""

    entries: int
    distinct: int
    outside: int
    empty: int

    @classmethod
    def of(cls, log: AccuracyLog, dataset_rows: int) -> Coverage:
        """Counts over a whole accuracy log. LogError where it is cut, shortened or bad."""
        seen = bytearray(dataset_rows)
        entries = outside = empty = 0
        for entry in log:
            entries += 1
            empty += not entry.data
            if entry.sample < dataset_rows:
                seen[entry.sample] = 1
            else:
                outside += 1
        return cls(entries, sum(seen), outside, empty)


@dataclass(frozen=True, slots=True)
class RunFacts:
    """All that the checks of one run need.

    ``scenario`` is the folder's (Interactive, not LoadGen's Server). ``summary``, ``counts`` (the harness's own) and
    ``coverage`` are None where there is none to be had: a tree has no counts, and its accuracy logs are shortened.
    ``label`` is what findings call the detail log, its path where None. ``division`` is None before packaging; then
    closed's rules hold.
    """

    leg: str
    scenario: str
    benchmark: str
    pack: RulePack
    expectation: Expectation
    detail: DetailLog
    summary: SummaryLog | None = None
    counts: Counts | None = None
    coverage: Coverage | None = None
    label: str | None = None
    division: str | None = None

    def __post_init__(self) -> None:
        if self.leg not in MODES:
            raise ValueError(f"no such leg: {self.leg}")

    @property
    def rules(self) -> BenchmarkRules:
        """The round's rules of the benchmark."""
        return self.pack.benchmark(self.benchmark)

    @property
    def scenario_rules(self) -> ScenarioRules:
        """The round's rules of the scenario."""
        return self.rules.scenario(self.scenario)

    @property
    def path(self) -> str:
        """What findings call the detail log."""
        return self.label or str(self.detail.path)

    def at(self, key: str) -> str:
        """The place of a key in the detail log."""
        line = self.detail.lines.get(key)
        return self.path if line is None else f"{self.path}:{line}"
