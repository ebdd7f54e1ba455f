"""A run of LoadGen's in the results folder, for the report: its record, its own samples, and LoadGen's logs.

What counts against limits is what LoadGen says; how values lie and went over time is of the harness's own samples.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from harness.errors import MissingError
from harness.gate.run_facts import MODES, PERFORMANCE, Expectation, RunFacts
from harness.ledger.record import RunRecord, State
from harness.ledger.sample_times import AnswerTimes
from harness.ledger.samples import Int64, read_samples
from harness.ledger.store import DETAIL, SAMPLES, StoredRun
from harness.ledger.turn_report import TURN_REPORT, TurnReport, read_turn_report
from harness.ledger.turns import TURNS, read_turns
from harness.logs import DetailLog, LogError
from harness.report.book.content import Figure, Margin, Missing, RunView
from harness.report.book.limits import Limits, limits_of
from harness.report.book.logged import logged_facts
from harness.report.book.margins import accuracy_margins, audit_margins, early_stopping_margins, loadgen_margins
from harness.report.book.run_record import KILLED, no_rules, recorded
from harness.report.book.sample_figures import SAMPLES as OF_SAMPLES
from harness.report.book.sample_figures import TRAJECTORIES, all_missing, sample_figures
from harness.report.book.sample_figures import TURNS as OF_TURNS
from harness.rules import RulePack

Columns: TypeAlias = Mapping[str, Int64]

_LEFT_NONE: Final = {
    State.RUNNING: "the run goes on: {} is written at its end",
    State.BROKEN: "the run broke and left no {}",
    State.INTERRUPTED: "the run was interrupted and left no {}",
}


def loadgen_run(run: StoredRun, root: Path, pack: RulePack | None, *, alive: bool) -> RunView:
    """The view of a run in the results folder ``root``; ``pack`` is its round's, None where there is none here.

    ``alive`` is whether a harness works in the folder. Nothing that a run has or lacks raises: what cannot be read is
    said in its place.
    """
    gathering, view = _Gathering(run, pack, alive=alive), recorded(run, root, alive=alive)
    detail, columns = gathering.detail(), gathering.columns()
    margins, notes = gathering.margins(detail, columns)
    turns, turn_figures = gathering.turns()
    return dataclasses.replace(
        view,
        margins=margins,
        figures=(*gathering.samples(columns), *turn_figures),
        turns=turns,
        facts=(*view.facts, *((("LoadGen says", logged_facts(detail)),) if isinstance(detail, DetailLog) else ())),
        notes=notes,
    )


@dataclass(frozen=True, slots=True)
class _Gathering:
    run: StoredRun
    pack: RulePack | None
    alive: bool

    @property
    def record(self) -> RunRecord:
        return self.run.record

    def detail(self) -> DetailLog | str | None:
        """LoadGen's detail log, or why it cannot be read; None of a run that has not come to an end."""
        path = self.run.logs / DETAIL
        if self.record.state not in (State.FINISHED, State.MEASURED):
            return None
        try:
            return DetailLog.read(path) if path.is_file() else f"there is no {DETAIL}"
        except LogError as error:
            return error.what

    def columns(self) -> Columns | str:
        """Those of samples.arrow, or why there are none."""
        return self._read(self.run.folder / SAMPLES, read_samples)

    def margins(
        self, detail: DetailLog | str | None, columns: Columns | str
    ) -> tuple[tuple[Margin, ...], tuple[str, ...]]:
        """The margins, and why there are fewer than there might be."""
        record, pack = self.record, self.pack
        if pack is None or record.id.benchmark not in pack.benchmarks:
            return (), (no_rules(record, pack),)
        found = tuple(_of_accuracy_and_audits(record, pack))
        if detail is None or self._leg not in MODES:
            return found, ()
        if isinstance(detail, str):
            return found, (f"no margins from LoadGen's log: {detail}",)
        facts = self._facts(pack, detail)
        return (*loadgen_margins(facts), *_of_early_stopping(facts, columns), *found), ()

    def samples(self, columns: Columns | str) -> tuple[Figure, ...]:
        """The figures of samples.arrow."""
        record = self.record
        timed = self._leg == PERFORMANCE
        limits = limits_of(self.pack, record.id.benchmark, record.id.scenario) if timed else Limits()
        words = OF_SAMPLES if record.turns is None else TRAJECTORIES
        return all_missing(columns, words) if isinstance(columns, str) else sample_figures(columns, limits, words)

    def turns(self) -> tuple[TurnReport | None, tuple[Figure, ...]]:
        """What turns.json tells, and the figures of turns.arrow; nothing where samples are no trajectories."""
        folder = self.run.folder
        if self.record.turns is None and not (folder / TURNS).is_file():
            return None, ()
        columns = self._read(folder / TURNS, read_turns)
        if isinstance(columns, str):
            figures = all_missing(columns, OF_TURNS)
        else:
            figures = sample_figures(columns, Limits(), OF_TURNS)
        if not (folder / TURN_REPORT).is_file():
            why = "it is written when a performance leg is judged"
            return None, (*figures, Missing("turns", "Figures of turns", f"there is no {TURN_REPORT}: {why}"))
        try:
            return read_turn_report(folder), figures
        except MissingError as error:
            return None, (*figures, Missing("turns", "Figures of turns", error.what))

    def _read(self, path: Path, read: Callable[[Path], dict[str, Int64]]) -> Columns | str:
        if not path.is_file():
            return self._why_none(path.name)
        try:
            return read(path)
        except MissingError as error:
            return error.what

    def _why_none(self, name: str) -> str:
        state = self.record.state
        if state is State.RUNNING and not self.alive:
            return f"{KILLED}; {name} would have been written at its end"
        return _LEFT_NONE.get(state, "there is no {} in the run's folder").format(name)

    @property
    def _leg(self) -> str:
        """Which leg it is; the ledger keeps probes, which are performance legs, under another name."""
        return self.record.id.leg if self.record.probe is None else PERFORMANCE

    def _facts(self, pack: RulePack, detail: DetailLog) -> RunFacts:
        """What the gate's checks are told of the run: by the round, whatever it was shortened to."""
        run_id = self.record.id
        return RunFacts(
            leg=self._leg,
            scenario=run_id.scenario,
            benchmark=run_id.benchmark,
            pack=pack,
            expectation=Expectation.of_round(pack, run_id.benchmark, run_id.scenario, self._leg),
            detail=detail,
        )


def _of_early_stopping(facts: RunFacts, columns: Columns | str) -> tuple[Margin, ...]:
    if isinstance(columns, str):
        return ()
    answers = AnswerTimes.of(columns)
    return () if answers.disordered else early_stopping_margins(facts, answers, len(columns["state"]))


def _of_accuracy_and_audits(record: RunRecord, pack: RulePack) -> Iterator[Margin]:
    run_id, accuracy = record.id, record.accuracy
    if accuracy is not None and record.audit is None and record.audit_config is None:
        figures = {accuracy.key: accuracy.value, **accuracy.also}
        yield from accuracy_margins(figures, pack, run_id.benchmark, run_id.scenario, "loadgen")
    if record.audit is not None:
        rules = pack.benchmark(run_id.benchmark).audit_rules.get(run_id.leg)
        yield from audit_margins(run_id.leg, record.audit, "" if rules is None else rules.verdict_file.source)
