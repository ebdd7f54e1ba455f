"""The rows of a results folder: what would be submitted of it for each system, benchmark and scenario, and what is in
the way.

The newest finished attempt of each leg counts, as packaging has it: full runs before short ones, runs of the newest
round, never a probe of a search.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from harness.clients.endpoints.config import LEG as CLIENT_LEG
from harness.config.models import Entry, SubmissionFile
from harness.gate.run_facts import ACCURACY, AUDITS, PERFORMANCE
from harness.ledger.record import Result, RunRecord, State
from harness.ledger.store import StoredRun
from harness.report.book.boundary import of_record
from harness.report.book.content import RowView, RunView
from harness.report.book.run_record import key_of, unique
from harness.rules import RulePack
from harness.rules.values import LayoutName

INCOMPLETE: Final = "incomplete"
LEGS: Final = (PERFORMANCE, ACCURACY, *AUDITS, CLIENT_LEG)
"""In the order in which a row shows its runs; legs of a name that this harness does not know come behind."""
_VALID, _INVALID = "VALID", "INVALID"
_LATENCY: Final = "Latency"
"""How the units of a metric begin of which less is better."""

RowId: TypeAlias = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class Gathered:
    """A run, its view, and the rules of its round, None where there are none here."""

    run: StoredRun
    view: RunView
    pack: RulePack | None

    @property
    def record(self) -> RunRecord:
        """What the run says of itself."""
        return self.run.record


def rows_of(gathered: Iterable[Gathered], submission: SubmissionFile | None) -> tuple[RowView, ...]:
    """A row for each system, benchmark and scenario that has runs besides probes; one a division where ``submission``
    enters it in several.
    """
    rows: dict[RowId, list[Gathered]] = {}
    for each in gathered:
        if each.record.probe is None:
            rows.setdefault(each.record.id.row, []).append(each)
    ordered = sorted(rows.items(), key=lambda row: (row[0][:2], row[0][2] != "Offline", row[0][2]))
    views = [
        _Row(row, _legs(of_it), entry, None if submission is None else submission.submitter).view()
        for row, of_it in ordered
        for entry in _entries(row, submission)
    ]
    keys = unique(view.key for view in views)
    return tuple(replace(view, key=key) for view, key in zip(views, keys, strict=True))


def _entries(row: RowId, submission: SubmissionFile | None) -> Sequence[Entry | None]:
    system, benchmark, scenario = row
    entries = [] if submission is None else submission.entries
    own = [e for e in entries if (e.system, e.benchmark) == (system, benchmark) and scenario in e.scenarios]
    return own or [None]


def _legs(runs: Sequence[Gathered]) -> Mapping[str, Gathered]:
    """The run of each leg that counts: those of one layout, finished or, where none is, the newest of all."""
    newest = max((each.record.round for each in runs), key=_natural)
    own = sorted((each for each in runs if each.record.round == newest), key=lambda each: each.record.id.attempt)
    done = [each for each in own if each.record.state is State.FINISHED]
    of_layout = _layout(done, own[0].pack)
    kept = [each for each in done if _layout_of(each) == of_layout]
    legs = {each.record.id.leg: each for each in [*_short(kept), *_full(kept)]}  # the last of each leg stays
    return legs or {own[-1].record.id.leg: own[-1]}


def _full(runs: Iterable[Gathered]) -> list[Gathered]:
    return [each for each in runs if not each.record.test_run]


def _short(runs: Iterable[Gathered]) -> list[Gathered]:
    return [each for each in runs if each.record.test_run]


def _layout(done: Sequence[Gathered], pack: RulePack | None) -> LayoutName:
    """The first of the benchmark's layouts that has a full finished run, else a short one."""
    benchmark = done[0].record.id.benchmark if done else ""
    rules = pack.benchmarks.get(benchmark) if pack is not None else None
    layouts: Sequence[LayoutName] = ("loadgen", "endpoints") if rules is None else rules.layouts.value
    for runs in (_full(done), done):
        for layout in layouts:
            if any(_layout_of(each) == layout for each in runs):
                return layout
    return layouts[0]


def _layout_of(each: Gathered) -> LayoutName:
    return "endpoints" if each.record.id.leg == CLIENT_LEG else "loadgen"


def _natural(text: str) -> list[tuple[int, str]]:
    """A key by which v6.10 comes after v6.9."""
    return [(int(digits or -1), other) for digits, other in re.findall(r"(\d+)|(\D+)", text)]


@dataclass(frozen=True, slots=True)
class _Row:
    row: RowId
    legs: Mapping[str, Gathered]
    entry: Entry | None
    submitter: str | None

    def view(self) -> RowView:
        system, benchmark, scenario = self.row
        division = None if self.entry is None else self.entry.division
        category = None if self.entry is None else self.entry.category
        result, lacking = self._result, self._lacking()
        return RowView(
            key=key_of("/".join(filter(None, (division, *self.row)))),
            system=system,
            benchmark=benchmark,
            scenario=scenario,
            division=division,
            category=category,
            submitter=self.submitter,
            word=self._word(lacking),
            metric=None if result is None else result.key,
            value=None if result is None else result.value,
            unit="" if result is None else result.units,
            higher_is_better=result is None or not result.units.startswith(_LATENCY),
            accuracy=self._accuracy,
            audits=tuple(self._audits()),
            margins=tuple(margin for each in self._ordered for margin in each.view.margins),
            reasons=tuple(dict.fromkeys(self._reasons(lacking))),
            boundary=of_record(self._first.record, self._pack, division=division, category=category),
            runs=tuple(each.view.key for each in self._ordered),
            demonstration=any(each.record.not_submittable for each in self._ordered),
        )

    @property
    def _ordered(self) -> list[Gathered]:
        return [self.legs[leg] for leg in dict.fromkeys((*LEGS, *self.legs)) if leg in self.legs]

    @property
    def _first(self) -> Gathered:
        return self._ordered[0]

    @property
    def _pack(self) -> RulePack | None:
        return self._first.pack

    @property
    def _of_client(self) -> bool:
        return CLIENT_LEG in self.legs

    @property
    def _result(self) -> Result | None:
        measured = self.legs.get(CLIENT_LEG) or self.legs.get(PERFORMANCE)
        return None if measured is None else measured.record.result

    @property
    def _accuracy(self) -> str:
        scored = self.legs.get(CLIENT_LEG) or self.legs.get(ACCURACY)
        return "" if scored is None or scored.record.accuracy is None else str(scored.record.accuracy)

    @property
    def _demanded_audits(self) -> tuple[str, ...]:
        """Those of the benchmark; none of the client's rows, whose audits are no legs."""
        if self._pack is None or self._of_client or self.row[1] not in self._pack.benchmarks:
            return ()
        return tuple(self._pack.benchmark(self.row[1]).audits.value)

    def _audits(self) -> Iterator[tuple[str, str]]:
        for name in self._demanded_audits:
            done = self.legs.get(name)
            echo = None if done is None else done.record.audit
            yield name, str(echo) if echo is not None else "not run" if done is None else "not verified"

    def _lacking(self) -> tuple[str, ...]:
        """The legs that a row needs and has no finished run of: audits where its division demands them."""
        needed: tuple[str, ...] = (CLIENT_LEG,) if self._of_client else (PERFORMANCE, ACCURACY)
        if self.entry is not None and self._pack is not None and self._pack.holds("audits", self.entry.division):
            needed += self._demanded_audits
        done = {leg for leg, each in self.legs.items() if each.record.state is State.FINISHED}
        return tuple(leg for leg in needed if leg not in done)

    def _word(self, lacking: Sequence[str]) -> str:
        words = [each.view.word for each in self._ordered]
        if _INVALID in words:
            return _INVALID
        return INCOMPLETE if lacking or set(words) != {_VALID} else _VALID

    def _reasons(self, lacking: Sequence[str]) -> Iterator[str]:
        for leg in lacking:
            yield f"the {leg} leg has no finished run"
        for each in self._ordered:
            yield from each.record.not_submittable
        for each in self._ordered[1:]:
            differing = self._first.record.fingerprint.differs_from(each.record.fingerprint)
            if differing:
                legs = f"the {each.record.id.leg} leg was not run like the {self._first.record.id.leg} leg"
                yield f"{legs}: {', '.join(differing)}"
        for each in self._ordered:
            yield from (f"{f.rule}: {f.found}" for f in each.view.findings if f.severity != "note")
        yield from itertools.chain.from_iterable(each.record.deviations for each in self._ordered)
