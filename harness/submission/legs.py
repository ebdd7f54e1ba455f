"""Which attempt of a leg is filed, what speaks against it, and whether two legs may stand in one row."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from harness.clients.endpoints.config import LEG as CLIENT_LEG
from harness.config.models import Entry
from harness.errors import ConfigError, MissingError, Refused, UnknownName
from harness.gate.audit_rules import LENGTH, SCORE, VERDICT
from harness.gate.run_facts import ACCURACY, AUDITS, MODES
from harness.ledger.record import RunRecord, State
from harness.ledger.store import StoredRun
from harness.rules import RulePack
from harness.rules.values import LayoutName

_OPTION = "--attempts"
_OF_THE_NUMBER = {SCORE.id, LENGTH.id, VERDICT.id}
"""What an audit's own number says already."""


@dataclass(frozen=True, slots=True)
class Leg:
    """The run that is filed for a leg, and how many attempts the leg has had, whatever came of them.

    ``named`` is whether the run was asked for by its id. ``others`` are finished attempts that could have been filed in
    its place: of the same fingerprint, with nothing against them.
    """

    run: StoredRun
    attempts_total: int
    named: bool = False
    others: tuple[StoredRun, ...] = ()

    @property
    def record(self) -> RunRecord:
        """What the run says of itself."""
        return self.run.record

    @property
    def instead(self) -> str | None:
        """How to file another attempt in place of one that may not be filed; None where there is no need, or no way."""
        if not self.others or not (against(self.record) or self.record.not_submittable):
            return None
        return f"file an older attempt with {_OPTION}={self.others[-1].record.id}"


@dataclass(frozen=True, slots=True)
class Attempts:
    """All runs of a results folder, and the ids of those that are to be filed in place of the newest.

    ``short`` is whether a short run may be taken although the leg has a full one.
    """

    runs: Sequence[StoredRun]
    named: Collection[str]
    round: str
    short: bool

    def __post_init__(self) -> None:
        known = {str(run.record.id): run for run in self.runs}
        legs = set()
        for name in self.named:
            if name not in known:
                of_its_leg = [other for other in known if other.partition("#")[0] == name.partition("#")[0]]
                raise UnknownName("run", name, of_its_leg or known, where=_OPTION)
            run = known[name].record
            if run.state is not State.FINISHED:
                raise ConfigError(f"{name} has no end that could be filed: it is {run.state.value}", where=_OPTION)
            leg = (run.id.row, run.id.leg)
            if leg in legs:
                raise ConfigError(f"two attempts are named for one leg: {name}", where=_OPTION, mend="name one")
            legs.add(leg)

    def check_filed(self, legs: Iterable[Leg]) -> None:
        """ConfigError for a run that is named and is not among the legs that are filed."""
        if lost := sorted(set(self.named) - {str(leg.record.id) for leg in legs}):
            raise ConfigError(
                f"{', '.join(lost)}: named, and of no leg that is filed",
                where=_OPTION,
                expected="legs that an entry of submission.yaml asks for, run like the others of their rows",
            )

    def layout(self, entry: Entry, scenario: str, layouts: Sequence[LayoutName]) -> tuple[LayoutName, bool]:
        """Which of a benchmark's layouts a row is filed in, and whether another could have been: the one of a run that
        was named, else the first of them that has finished runs, full ones before short ones, else the first.
        """
        row = (entry.system, entry.benchmark, scenario)
        own = [
            run.record
            for run in self.runs
            if run.record.id.row == row and run.record.round == self.round and run.record.probe is None
        ]
        finished = [record for record in own if record.state is State.FINISHED]
        there = [layout for layout in layouts if any(_layout_of(record) == layout for record in finished)]
        named = [_layout_of(record) for record in finished if str(record.id) in self.named]
        full = [] if self.short else [_layout_of(record) for record in finished if not record.test_run]
        best = [layout for layout in there if layout in full]
        chosen = next((layout for layout in [*named, *best, *there] if layout in layouts), layouts[0])
        return chosen, len(there) > 1

    def leg(self, entry: Entry, scenario: str, leg: str) -> Leg:
        """The attempt to file: the one that was named, else the newest finished. MissingError where there is none."""
        attempts = [
            run
            for run in self.runs
            if run.record.id.row == (entry.system, entry.benchmark, scenario)
            and run.record.id.leg == leg
            and run.record.round == self.round
        ]
        finished = sorted(
            (run for run in attempts if run.record.state is State.FINISHED), key=lambda run: run.record.id.attempt
        )
        named = next((run for run in finished if str(run.record.id) in self.named), None)
        full = [run for run in finished if not run.record.test_run]
        candidates = full if full and not self.short else finished
        if not candidates:
            raise MissingError(
                f"the {leg} leg has no finished run ({len(attempts)} attempts)",
                where=f"{entry.system}/{entry.benchmark}/{scenario}/{leg}",
                mend=command(entry, scenario, leg),
            )
        chosen = named or candidates[-1]
        others = tuple(run for run in finished if run is not chosen and _as_good(run.record, chosen.record))
        return Leg(chosen, len(attempts), named is not None, others)


def command(entry: Entry, scenario: str, leg: str) -> str:
    """What runs a leg."""
    verb = f"run_audit_{leg.lower()}" if leg in AUDITS else "run_harness"
    mode = "" if leg in AUDITS else f" --client={leg}" if leg == CLIENT_LEG else f" --test_mode={MODES[leg]}"
    arguments = f"--systems={entry.system} --benchmarks={entry.benchmark} --scenarios={scenario}{mode}"
    return f'make {verb} RUN_ARGS="{arguments}"'


def against(record: RunRecord) -> list[str]:
    """Why the verdict of a run forbids filing it; empty where it is VALID, and of an audit PASS."""
    verdict, leg = record.verdict, record.id.leg
    if verdict is None:
        return [f"{leg} run without a verdict"]
    rejects = [finding for finding in verdict.findings if finding.severity == "reject"]
    if record.audit is not None and not record.audit.passed:
        rejects = [finding for finding in rejects if finding.rule not in _OF_THE_NUMBER]
        return [f"{leg} {record.audit}", *_invalid(leg, [f"{f.rule} {f.found}".strip() for f in rejects])]
    reasons = [f"{finding.rule} {finding.found}".strip() for finding in rejects]
    if leg in AUDITS and record.audit is None:
        reasons.append("nobody verified the audit")
    said = verdict.valid and (leg in (ACCURACY, CLIENT_LEG) or verdict.loadgen == "VALID")
    return [] if said and not reasons else _invalid(leg, reasons) or [f"{leg} run INVALID"]


def refuse_unlike(one: RunRecord, other: RunRecord) -> None:
    """Refused where two runs were not made on one machine with one configuration of everything."""
    if one.machine.identity != other.machine.identity:
        raise Refused(
            "the legs ran on different machines: " + _differences(one.machine.facts, other.machine.facts),
            where=f"{one.id} and {other.id}",
            expected="both legs on one machine",
            mend="run the older of the two again on the machine of the other",
        )
    different = one.fingerprint.differs_from(other.fingerprint)
    if different or one.fingerprint.digest != other.fingerprint.digest:
        raise Refused(
            "the legs were not run alike: " + _both(different, one.fingerprint.keys, other.fingerprint.keys),
            where=f"{one.id} and {other.id}",
            expected="one configuration, checkpoint, data set and version of everything",
            mend="run the older of the two again",
        )


def audits_of(entry: Entry, pack: RulePack, layout: LayoutName = "loadgen") -> tuple[str, ...]:
    """The audits that a division asks of an entry; none in open, and none as legs of their own beside the client."""
    if layout != "loadgen":
        return ()
    return tuple(pack.benchmark(entry.benchmark).audits.value) if pack.holds("audits", entry.division) else ()


def _layout_of(record: RunRecord) -> LayoutName:
    return "endpoints" if record.id.leg == CLIENT_LEG else "loadgen"


def _as_good(record: RunRecord, like: RunRecord) -> bool:
    return not against(record) and not record.not_submittable and record.fingerprint == like.fingerprint


def _invalid(leg: str, reasons: list[str]) -> list[str]:
    return [f"{leg} run INVALID ({'; '.join(reasons)})"] if reasons else []


def _differences(one: dict[str, object], other: dict[str, object]) -> str:
    return _both(sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key)), one, other)


def _both(keys: Iterable[str], one: dict[str, object], other: dict[str, object]) -> str:
    return "; ".join(f"{key}: {json.dumps(one.get(key))} and {json.dumps(other.get(key))}" for key in keys) or (
        "nothing that is recorded in the clear"
    )
