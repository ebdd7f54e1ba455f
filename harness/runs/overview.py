"""Where every leg stands, as it is configured now and as the results folder has it."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from harness.clients.endpoints.config import LEG as CLIENT_LEG
from harness.config import BenchmarkFile, Project
from harness.errors import HarnessError
from harness.gate.run_facts import AUDITS, PERFORMANCE
from harness.ledger import ResultsStore, RunRecord, StoredRun
from harness.ledger.standing import RowStanding, Standing, Word, standing
from harness.ledger.store import LedgerError
from harness.rules import RulePack
from harness.runs.identity import OF_THE_CLIENT, OF_THE_ENGINE, OF_THE_PLACE, changed, configured
from harness.runs.plan import LEGS, PlannedLeg, Selection

_UNKNOWN_CONFIGURATION = "no systems/ here: whether the configuration has changed since is not known"
_NOT_CONFIGURED = "the row is no longer configured"


@dataclass(frozen=True, slots=True)
class Overview:
    """The rows, by system, benchmark and scenario; what could not be told; records that cannot be read."""

    rows: tuple[RowStanding, ...]
    notes: tuple[str, ...]
    unreadable: tuple[LedgerError, ...]


def overview(project: Project, store: ResultsStore, selection: Selection, pack: RulePack) -> Overview:
    """Where the legs of a selection stand. Nothing is started, locked or written.

    Data sets, checkpoint and machine are not looked at: a run is stale where the configuration, the round or a version
    has changed, or where it differs from the performance run of its row.
    """
    runs, unreadable = store.readable_runs()
    configured_rows, notes = _configured_rows(project, selection, pack)
    ran = {run.record.id.row: None for run in runs if _selected(selection, *run.record.id.row)}
    with_client = {run.record.id.row[:2] for run in runs if run.record.id.leg == CLIENT_LEG}
    alive = store.in_use()
    rows = []
    for key in sorted(configured_rows.keys() | ran.keys(), key=lambda row: (row[0], row[1], row[2] != "Offline", row)):
        configs = configured_rows.get(key, [])
        own = [run for run in runs if run.record.id.row == key]
        legs = [*_legs(key[1], pack), *([CLIENT_LEG] if key[:2] in with_client else [])]
        rows.append(_row(key, legs, configs, own, pack, alive=alive, known=project.systems.is_dir()))
    return Overview(tuple(rows), tuple(notes), tuple(unreadable))


Row = tuple[str, str, str]


def _configured_rows(
    project: Project, selection: Selection, pack: RulePack
) -> tuple[dict[Row, list[BenchmarkFile]], list[str]]:
    """The rows that are configured, with each engine that there is for them; and what of it cannot be read."""
    rows: dict[Row, list[BenchmarkFile]] = {}
    notes: list[str] = []
    if not project.systems.is_dir():
        return rows, [_UNKNOWN_CONFIGURATION]
    for system in project.system_names():
        for benchmark in project.benchmark_names(system):
            for variant in (None, *project.variant_names(system, benchmark)):
                try:
                    config = project.benchmark(system, benchmark, variant)
                    pack.benchmark(benchmark)
                except HarnessError as error:
                    notes.append(str(error))
                    continue
                for scenario in config.scenarios:
                    if _selected(selection, system, benchmark, scenario):
                        rows.setdefault((system, benchmark, scenario), []).append(config)
    return rows, notes


def _selected(selection: Selection, system: str, benchmark: str, scenario: str) -> bool:
    chosen = ((selection.systems, system), (selection.benchmarks, benchmark), (selection.scenarios, scenario))
    return all(not names or name in names for names, name in chosen)


def _row(
    key: Row,
    legs: list[str],
    configs: list[BenchmarkFile],
    runs: list[StoredRun],
    pack: RulePack,
    *,
    alive: bool,
    known: bool,
) -> RowStanding:
    def differing(record: RunRecord) -> list[str]:
        if not configs:
            return [_NOT_CONFIGURED] if known else []
        # The fingerprint is that of the row: no leg of it adds to it.
        asked = (configured(PlannedLeg(*key, PERFORMANCE, config, pack, record.test_run)) for config in configs)
        but = (*OF_THE_ENGINE, *OF_THE_PLACE, OF_THE_CLIENT)
        return min((changed(record.fingerprint, own, but=but) for own in asked), key=len)

    found = {
        leg: standing(_of_one_length(run for run in runs if run.record.id.leg == leg), differing, alive=alive)
        for leg in legs
    }
    return RowStanding(*key, _of_one_fingerprint(found))


def _legs(benchmark: str, pack: RulePack) -> list[str]:
    audits = pack.benchmarks[benchmark].audit_rules if benchmark in pack.benchmarks else {}
    return [leg for leg in LEGS if leg not in AUDITS or leg in audits]


def _of_one_length(runs: Iterable[StoredRun]) -> list[StoredRun]:
    """Runs of full length where there is one, short ones else: the two are never of one row."""
    found = list(runs)
    return [run for run in found if not run.record.test_run] or found


def _of_one_fingerprint(legs: Mapping[str, Standing]) -> dict[str, Standing]:
    """The legs of a row; those that do not share the fingerprint of its first done leg are stale.

    A run of the endpoints client is a whole row by itself.
    """
    of_loadgen = {leg: found for leg, found in legs.items() if leg != CLIENT_LEG}
    done = {leg: found.run.record for leg, found in of_loadgen.items() if found.done and found.run is not None}
    if not done:
        return dict(legs)
    first = next(iter(done))
    return {leg: _held_against(found, first, done[first]) if leg in done else found for leg, found in legs.items()}


def _held_against(found: Standing, first: str, record: RunRecord) -> Standing:
    keys = found.run.record.fingerprint.differs_from(record.fingerprint) if found.run is not None else []
    if not keys:
        return found
    return dataclasses.replace(found, word=Word.STALE, reason=f"unlike the {first} run: " + ", ".join(keys))
