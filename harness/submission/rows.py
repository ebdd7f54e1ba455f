"""Which runs make the rows of a submission: one attempt of each leg, and nothing that differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from harness.clients.endpoints.config import LEG as CLIENT_LEG
from harness.config.models import Entry, SubmissionFile
from harness.errors import ConfigError, HarnessError, MissingError, Refused
from harness.gate import result_metric
from harness.gate.engine_config import DIVISIONS as ENGINE_DIVISIONS
from harness.gate.engine_config import check_engine_config
from harness.gate.error_correction import forbidden
from harness.gate.run_facts import ACCURACY, PERFORMANCE
from harness.ledger.record import RunRecord
from harness.ledger.store import DETAIL, StoredRun
from harness.logs import DetailLog, LogError
from harness.rules import RulePack
from harness.rules.values import LayoutName
from harness.submission.legs import Attempts, Leg, against, audits_of, command, refuse_unlike
from harness.submission.mapping import check_folders


@dataclass(frozen=True, slots=True)
class Row:
    """One result: its legs, audits among them, share a fingerprint and a machine.

    ``not_submittable`` is all that forbids filing it, an INVALID run among it; ``deviations`` what only closed forbids.
    ``wanting`` tells of each audit that could be here and is not why it is not. In the layout ``endpoints`` one run is
    both legs: ``performance`` and ``accuracy`` are the same; ``passed_over`` is whether LoadGen's legs, or the client's
    run, could have been filed in its place.
    """

    entry: Entry
    scenario: str
    performance: Leg
    accuracy: Leg
    not_submittable: tuple[str, ...]
    deviations: tuple[str, ...]
    audits: Mapping[str, Leg] = field(default_factory=dict)
    wanting: Mapping[str, str] = field(default_factory=dict)
    layout: LayoutName = "loadgen"
    passed_over: bool = False

    def __post_init__(self) -> None:
        if len({leg.record.fingerprint.digest for leg in self.legs.values()}) > 1:
            raise ValueError("the legs of a row share one fingerprint")

    @property
    def legs(self) -> dict[str, Leg]:
        """All legs by name, in the order they run."""
        if self.layout == "endpoints":
            return {CLIENT_LEG: self.performance}
        return {PERFORMANCE: self.performance, ACCURACY: self.accuracy, **self.audits}

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.entry.division}/{self.entry.system}/{self.entry.benchmark}/{self.scenario}"

    @property
    def marks(self) -> tuple[str, ...]:
        """What a demonstration must say of it."""
        return self.not_submittable + self.deviations


def select(
    runs: Sequence[StoredRun],
    submission: SubmissionFile,
    pack: RulePack,
    *,
    demonstration: bool,
    named: Collection[str] = (),
) -> list[Row]:
    """The rows of all entries. Raises what speaks against them, all of it in one error.

    The newest finished attempt of a leg is filed, or the one whose id is in ``named``. A shortened run is passed over
    where it cannot be filed and the leg has a full one.
    """
    rows: list[Row] = []
    problems: list[HarnessError] = []
    _no_row_twice(submission)
    check_folders(submission, pack)
    attempts = Attempts(runs, frozenset(named), pack.round, short=demonstration)
    for entry in submission.entries:
        rules = pack.benchmark(entry.benchmark)
        for scenario in entry.scenarios:
            rules.scenario(scenario)
            try:
                row = _row(attempts, entry, scenario, pack, demonstration)
                if not demonstration:
                    _may_be_filed(row)
                rows.append(row)
            except (MissingError, Refused) as problem:
                problems.append(problem)
    raise_all(problems)
    attempts.check_filed(leg for row in rows for leg in row.legs.values())
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


def _row(attempts: Attempts, entry: Entry, scenario: str, pack: RulePack, demonstration: bool) -> Row:
    layouts = pack.benchmark(entry.benchmark).layouts.value
    layout, passed_over = attempts.layout(entry, scenario, layouts)
    of_client = layout == "endpoints"
    performance = attempts.leg(entry, scenario, CLIENT_LEG if of_client else PERFORMANCE)
    accuracy = performance if of_client else attempts.leg(entry, scenario, ACCURACY)
    refuse_unlike(performance.record, accuracy.record)
    asked = audits_of(entry, pack, layout)
    shown = pack.benchmark(entry.benchmark).audits.value if demonstration and not of_client else asked
    audits, wanting = _audits(attempts, entry, scenario, performance, shown)
    legs = [performance] if of_client else [performance, accuracy, *audits.values()]
    records = [leg.record for leg in legs]
    forbids = [reason for record in records for reason in [*record.not_submittable, *against(record)]]
    forbids += [reason for record in records for reason in _forbidden_engine(record, entry, pack)]
    forbids += [reason for record in records for reason in forbidden(record, entry.division, entry.category, pack)]
    forbids += [f"{entry.division} needs the audit {name}: {wanting[name]}" for name in asked if name in wanting]
    return Row(
        entry=entry,
        scenario=scenario,
        performance=performance,
        accuracy=accuracy,
        not_submittable=tuple(dict.fromkeys(forbids)),
        deviations=tuple(dict.fromkeys(d for record in records for d in record.deviations)),
        audits=audits,
        wanting=wanting,
        layout=layout,
        passed_over=passed_over,
    )


def _forbidden_engine(record: RunRecord, entry: Entry, pack: RulePack) -> list[str]:
    """What the rules of the entry's division forbid of the engine that a run was made with."""
    if entry.division not in ENGINE_DIVISIONS:
        return []
    rules = pack.benchmark(entry.benchmark)
    found = check_engine_config(record.config, record.id.scenario, rules, entry.division, str(record.id))
    return [f"{finding.rule} {finding.found}" for finding in found]


def _audits(
    attempts: Attempts, entry: Entry, scenario: str, performance: Leg, names: Sequence[str]
) -> tuple[dict[str, Leg], dict[str, str]]:
    """The audits that were run like the performance leg, and why there is none of the others."""
    tried = {name: _like(performance, attempts, entry, scenario, name) for name in names}
    found = {name: leg for name, leg in tried.items() if isinstance(leg, Leg)}
    return found, {name: why for name, why in tried.items() if isinstance(why, str)}


def _like(performance: Leg, attempts: Attempts, entry: Entry, scenario: str, name: str) -> Leg | str:
    """A leg that was run like the performance leg, or why there is none."""
    try:
        leg = attempts.leg(entry, scenario, name)
        refuse_unlike(performance.record, leg.record)
    except (MissingError, Refused) as problem:
        return problem.what
    return leg


def _may_be_filed(row: Row) -> None:
    if row.not_submittable:
        audits = [command(row.entry, row.scenario, name) for name in row.wanting]
        instead = [leg.instead for leg in row.legs.values() if leg.instead is not None]
        again = "run the legs again without what is named, or pass --demonstration for a tree that says so"
        raise Refused(
            "these runs may not be filed: " + "; ".join(row.not_submittable),
            where=row.name,
            mend="; ".join([*audits, *instead, again]),
        )
    if row.entry.division == "closed" and row.deviations:
        raise Refused(
            "closed allows no deviation: " + "; ".join(row.deviations),
            where=row.name,
            mend="enter it in open, or run it by the round's rules",
        )
