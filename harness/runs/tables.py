"""Which tables of the data set legs ask, and what their engines call them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.benchmarks.base import Benchmark, Dataset, Which
from harness.gate.run_facts import ACCURACY, PERFORMANCE
from harness.runs.plan import ASKS, PlannedLeg


@dataclass(frozen=True, slots=True)
class Asked:
    """A table as legs of one kind ask it."""

    which: Which
    dataset: Dataset

    @property
    def name(self) -> str:
        """What workloads call it. An engine may answer by it: two kinds of leg that share a table stay apart."""
        return self.dataset.name if self.dataset.table == self.which else f"{self.dataset.name}/{self.which}"


def table_of(leg: PlannedLeg, benchmark: Benchmark) -> str:
    """The table that a leg asks."""
    return benchmark.table(leg.which, leg.scenario)


def tables_of(leg: PlannedLeg, benchmark: Benchmark) -> list[str]:
    """The tables that all legs of this one's scenario ask: their hashes are part of its fingerprint."""
    return list(dict.fromkeys(benchmark.table(which, leg.scenario) for which in _kinds(leg)))


def read_tables(legs: Iterable[PlannedLeg], benchmark: Benchmark, data_dir: Path) -> dict[str, Dataset]:
    """All tables of the scenarios of some legs, checked. Raises DatasetError."""
    names = dict.fromkeys(name for leg in legs for name in tables_of(leg, benchmark))
    return {name: benchmark.dataset(data_dir, name) for name in names}


def asked_tables(
    legs: Sequence[PlannedLeg], benchmark: Benchmark, datasets: Mapping[str, Dataset]
) -> tuple[Asked, ...]:
    """What an engine that some legs share may be asked: each kind of leg with its table, once."""
    pairs = dict.fromkeys((which, benchmark.table(which, leg.scenario)) for leg in legs for which in _kinds(leg))
    kinds = {leg.which for leg in legs}
    tables = (Asked(which, datasets[table]) for which, table in pairs)
    # The requests of trajectories are gigabytes: where no leg asks them, they were not made.
    return tuple(asked for asked in tables if asked.which in kinds or not asked.dataset.trajectories)


def _kinds(leg: PlannedLeg) -> list[Which]:
    return list(dict.fromkeys(ASKS[name] for name in (PERFORMANCE, ACCURACY, *leg.rules.audit_rules)))
