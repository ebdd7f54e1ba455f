"""Which runs make the rows of a submission: the newest finished attempt of each leg, and nothing that differs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from harness.config.models import Entry, SubmissionFile
from harness.errors import ConfigError, HarnessError, MissingError, Refused
from harness.gate import result_metric
from harness.ledger.record import RunRecord, State
from harness.ledger.store import DETAIL, StoredRun
from harness.logs import DetailLog, LogError
from harness.rules import RulePack

PERFORMANCE = "performance"
ACCURACY = "accuracy"
LEGS = {PERFORMANCE: "PerformanceOnly", ACCURACY: "AccuracyOnly"}
"""The legs of a row, and the test mode that runs each."""


@dataclass(frozen=True, slots=True)
class Leg:
    """The run that is filed for a leg, and how many attempts the leg has had, whatever came of them."""

    run: StoredRun
    attempts_total: int

    @property
    def record(self) -> RunRecord:
        """What the run says of itself."""
        return self.run.record


@dataclass(frozen=True, slots=True)
class Row:
    """One result: its two legs share a fingerprint and a machine.

    ``not_submittable`` is all that forbids filing it, an INVALID run among it; ``deviations`` what only closed forbids.
    """

    entry: Entry
    scenario: str
    performance: Leg
    accuracy: Leg
    not_submittable: tuple[str, ...]
    deviations: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.performance.record.fingerprint.digest != self.accuracy.record.fingerprint.digest:
            raise ValueError("the legs of a row share one fingerprint")

    @property
    def legs(self) -> dict[str, Leg]:
        """Both legs by name."""
        return {PERFORMANCE: self.performance, ACCURACY: self.accuracy}

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.entry.division}/{self.entry.system}/{self.entry.benchmark}/{self.scenario}"

    @property
    def marks(self) -> tuple[str, ...]:
        """What a demonstration must say of it."""
        return self.not_submittable + self.deviations


def select(runs: Sequence[StoredRun], submission: SubmissionFile, pack: RulePack, *, demonstration: bool) -> list[Row]:
    """The rows of all entries. Raises what speaks against them, all of it in one error.

    A shortened run is passed over where it cannot be filed and the leg has a full one.
    """
    rows: list[Row] = []
    problems: list[HarnessError] = []
    _no_row_twice(submission)
    for entry in submission.entries:
        rules = pack.benchmark(entry.benchmark)
        for scenario in entry.scenarios:
            rules.scenario(scenario)
            try:
                row = _row(runs, entry, scenario, pack, demonstration)
                if not demonstration:
                    _may_be_filed(row)
                rows.append(row)
            except (MissingError, Refused) as problem:
                problems.append(problem)
    raise_all(problems)
    return rows


def check_against_log(run: StoredRun, pack: RulePack) -> None:
    """Refused where a performance run's record tells another result than the log that LoadGen wrote."""
    record = run.record
    rules = pack.benchmark(record.id.benchmark).scenario(record.id.scenario)
    try:
        logged = result_metric(DetailLog.read(run.logs / DETAIL), rules)
    except LogError:  # an INVALID run may have come to none
        logged = None
    told = None if record.result is None else (record.result.key, record.result.value)
    if told != (None if logged is None else (logged.key, logged.value)):
        raise Refused(
            f"the run's record tells the result {told}",
            where=run.folder,
            expected=f"what LoadGen logged: {logged}",
            mend="run the leg again; results are never mended by hand",
        )


def raise_all(problems: Sequence[HarnessError]) -> None:
    """Raises the problems as one error of the first one's kind; returns where there is none."""
    if len(problems) < 2:
        for problem in problems:
            raise problem
        return
    text = "\n".join(str(problem) for problem in problems)
    raise type(problems[0])(f"{len(problems)} things stand in the way\n{text}")


def _no_row_twice(submission: SubmissionFile) -> None:
    names = Counter(
        f"{entry.division}/{entry.system}/{entry.benchmark}/{scenario}"
        for entry in submission.entries
        for scenario in entry.scenarios
    )
    if twice := [name for name, count in names.items() if count > 1]:
        raise ConfigError("entered twice: " + ", ".join(twice), where="submission.yaml", mend="keep one of each")


def _row(runs: Sequence[StoredRun], entry: Entry, scenario: str, pack: RulePack, demonstration: bool) -> Row:
    performance = _leg(runs, entry, scenario, PERFORMANCE, pack.round, demonstration)
    accuracy = _leg(runs, entry, scenario, ACCURACY, pack.round, demonstration)
    _same_machine(performance.record, accuracy.record)
    _same_fingerprint(performance.record, accuracy.record)
    records = [performance.record, accuracy.record]
    forbids = [reason for record in records for reason in [*record.not_submittable, *_invalid(record)]]
    audits = pack.benchmark(entry.benchmark).audits.value
    if entry.division == "closed" and audits:
        forbids.append(f"closed needs the audits {' and '.join(audits)}, which this version does not lay out")
    return Row(
        entry=entry,
        scenario=scenario,
        performance=performance,
        accuracy=accuracy,
        not_submittable=_unique(forbids),
        deviations=_unique(d for record in records for d in record.deviations),
    )


def _leg(runs: Sequence[StoredRun], entry: Entry, scenario: str, leg: str, round_: str, demonstration: bool) -> Leg:
    attempts = [
        run
        for run in runs
        if run.record.id.row == (entry.system, entry.benchmark, scenario)
        and run.record.id.leg == leg
        and run.record.round == round_
    ]
    finished = [run for run in attempts if run.record.state is State.FINISHED]
    full = [run for run in finished if not run.record.test_run]
    if full and not demonstration:
        finished = full
    newest = max(finished, key=lambda run: run.record.id.attempt, default=None)
    if newest is None:
        where = f"{entry.system}/{entry.benchmark}/{scenario}/{leg}"
        raise MissingError(
            f"the {leg} leg has no finished run ({len(attempts)} attempts)",
            where=where,
            mend=f'make run_harness RUN_ARGS="--systems={entry.system} --benchmarks={entry.benchmark} '
            f'--scenarios={scenario} --test_mode={LEGS[leg]}"',
        )
    return Leg(newest, len(attempts))


def _same_machine(one: RunRecord, other: RunRecord) -> None:
    if one.machine.identity == other.machine.identity:
        return
    raise Refused(
        "the legs ran on different machines: " + _differences(one.machine.facts, other.machine.facts),
        where=f"{one.id} and {other.id}",
        expected="both legs on one machine",
        mend="run the older of the two again on the machine of the other",
    )


def _same_fingerprint(one: RunRecord, other: RunRecord) -> None:
    different = one.fingerprint.differs_from(other.fingerprint)
    if one.fingerprint.digest == other.fingerprint.digest and not different:
        return
    raise Refused(
        "the legs were not run alike: " + _both(different, one.fingerprint.keys, other.fingerprint.keys),
        where=f"{one.id} and {other.id}",
        expected="one configuration, checkpoint, data set and version of everything",
        mend="run the older of the two again",
    )


def _may_be_filed(row: Row) -> None:
    if row.not_submittable:
        raise Refused(
            "these runs may not be filed: " + "; ".join(row.not_submittable),
            where=row.name,
            mend="run the legs again without what is named, or pass --demonstration for a tree that says so",
        )
    if row.entry.division == "closed" and row.deviations:
        raise Refused(
            "closed allows no deviation: " + "; ".join(row.deviations),
            where=row.name,
            mend="enter it in open, or run it by the round's rules",
        )


def _invalid(record: RunRecord) -> list[str]:
    verdict = record.verdict
    if verdict is None:
        return [f"{record.id.leg} run without a verdict"]
    reasons = [
        f"{finding.rule} {finding.found}".strip() for finding in verdict.findings if finding.severity == "reject"
    ]
    said = verdict.valid and (record.id.leg == ACCURACY or verdict.loadgen == "VALID")
    if said and not reasons:
        return []
    return [f"{record.id.leg} run INVALID" + (f" ({'; '.join(reasons)})" if reasons else "")]


def _differences(one: dict[str, object], other: dict[str, object]) -> str:
    return _both(sorted(key for key in one.keys() | other.keys() if one.get(key) != other.get(key)), one, other)


def _both(keys: Iterable[str], one: dict[str, object], other: dict[str, object]) -> str:
    return "; ".join(f"{key}: {json.dumps(one.get(key))} and {json.dumps(other.get(key))}" for key in keys) or (
        "nothing that is recorded in the clear"
    )


def _unique(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(texts))
