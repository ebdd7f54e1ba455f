"""A search of one row under way: it makes the runs that are asked for, and keeps what they and it came to."""

from __future__ import annotations

import dataclasses
import datetime
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.gate import run_rules
from harness.ledger import RunRecord
from harness.ledger.record import Rate
from harness.ledger.samples import Int64, read_samples
from harness.ledger.search import SearchEcho, SearchRun, write_search
from harness.ledger.store import RECORD, SAMPLES, read_record
from harness.runs.leg import Group, Noted, as_it_is, expected_rate, fingerprint_of, run_leg
from harness.runs.plan import PlannedLeg, ProbeOf
from harness.runs.search.asked import Asked
from harness.runs.search.former import folder_of, former_probes
from harness.runs.search.legs import Size, full_leg, probe_leg
from harness.runs.search.steps import AskFull, AskProbe, Found, NoneFound, Step
from harness.runs.search.watching import Ends, Hopeless, Watch, never
from harness.runs.tables import table_of

RATE_RULES: Final = (
    run_rules.VALID,
    run_rules.EARLY_STOPPING,
    run_rules.TTFT,
    run_rules.TPOT,
    run_rules.LATENCY,
    run_rules.DURATION,
)
"""What of an INVALID run another rate may mend."""


@dataclass(frozen=True, slots=True)
class Made:
    """A run that a search made, where it lies, and why it was ended early ("" where it was not)."""

    folder: Path
    record: RunRecord
    hopeless: str = ""

    @property
    def columns(self) -> dict[str, Int64]:
        """Those of its samples.arrow."""
        return read_samples(self.folder / SAMPLES)

    @property
    def valid(self) -> bool:
        """Whether its verdict is VALID."""
        return self.record.verdict is not None and self.record.verdict.valid

    @property
    def why_not(self) -> tuple[bool, str]:
        """Of an INVALID one: whether a rate may mend all that is wrong with it, and the first thing that is."""
        verdict = self.record.verdict
        rejects = [] if verdict is None else [found for found in verdict.findings if found.severity == "reject"]
        names = {rule.id for rule in RATE_RULES}
        first = min(rejects, key=lambda found: found.rule in names, default=None)
        mendable = all(found.rule in names for found in rejects)
        return mendable, "" if first is None else f"{first.rule}: found {first.found}, expected {first.expected}"


class Search:
    """A search of one row's rate under way. ``echo`` is what there is to tell of it, at any time."""

    def __init__(self, leg: PlannedLeg, asked: Asked, group: Group, number: str) -> None:
        self.leg = leg
        self.asked = asked
        self.group = group
        self.dataset_rows = group.rows(group.datasets[table_of(leg, group.benchmark)])
        self.echo = SearchEcho(
            search=number,
            system=leg.system,
            benchmark=leg.benchmark,
            scenario=leg.scenario,
            test_run=leg.test_run,
            started_at=_now(),
            guess=0.0,
            guess_from="",
            rules={},
        )
        self._warm = False
        """Whether the engine comes from a run that ended well."""
        self._probes = 0

    def first_guess(self) -> float:
        """The rate to begin with, in samples a second; what the configuration says where nobody gave one."""
        if self.asked.guess is not None:
            rate = Rate(target_qps=self.asked.guess, origin="--from")
        else:
            rate = expected_rate(self.leg, self.group)
            self._warm = True
        self.echo = self.echo.model_copy(update={"guess": rate.target_qps, "guess_from": rate.origin})
        return rate.target_qps

    def rules(self, rules: Mapping[str, float]) -> None:
        """Writes down by which shares and counts the search goes."""
        self.echo = self.echo.model_copy(update={"rules": dict(rules)})

    def former(self) -> list[Made]:
        """Probes of a search that was interrupted, made with this configuration."""
        runs = former_probes(self.leg, self.group.store, fingerprint_of(self.leg, self.group))
        kept = [run for run in runs if (run.folder / SAMPLES).is_file()]
        return [Made(run.folder, run.record, "" if run.record.verdict else run.record.note or "") for run in kept]

    def probe(self, step: AskProbe, size: Size, ends: Ends, noted: Noted = as_it_is) -> Made:
        """Makes a probe of a size, which ``ends`` may end early; ``noted`` adds to its record what it came to."""
        self._probes += 1
        of = ProbeOf(self.echo.search, self._probes, step.purpose, self._warm)
        leg = probe_leg(self.leg, step.rate, size, of)
        self.group.tell(
            f"{leg.name} {of.number}: {step.rate:g} samples/s ({step.purpose}), {size.queries} queries, "
            f"about {size.queries / step.rate:.0f} s"
        )
        return self._made(leg, ends, noted)

    def full(self, step: AskFull) -> Made:
        """Makes a run of the row at a rate."""
        leg = full_leg(self.leg, step.rate, self.echo.search)
        self.group.tell(f"{leg.name}: {step.rate:g} samples/s ({step.purpose}){' (short)' if leg.test_run else ''}")
        return self._made(leg, never, as_it_is)

    def _made(self, leg: PlannedLeg, ends: Ends, noted: Noted) -> Made:
        watch = Watch(self.group.observer, ends)
        hopeless = ""
        try:
            run_leg(leg, dataclasses.replace(self.group, observer=watch), noted)
        except Hopeless as error:
            hopeless = error.what
        self._warm = not hopeless
        if watch.folder is None:
            raise ValueError("a leg that has ended and never began")
        return Made(watch.folder, read_record(watch.folder / RECORD), hopeless)

    def note(self, run: SearchRun) -> None:
        """Writes down what a run came to."""
        self.echo = self.echo.model_copy(update={"runs": [*self.echo.runs, run]})
        self.group.tell(f"{run.run}: {run.outcome}, {run.reason}")

    def end(self, step: Step) -> SearchEcho:
        """Writes down what the search ended with, in a file too."""
        found = step.rate if isinstance(step, Found) else None
        why = step.why if isinstance(step, NoneFound) else ""
        notes = list(step.notes) if isinstance(step, Found) else []
        self.echo = self.echo.model_copy(update={"ended_at": _now(), "found": found, "why": why, "notes": notes})
        write_search(folder_of(self.leg, self.group.store), self.echo)
        return self.echo


def _now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds")
