"""A run of the endpoints client in the results folder, for the report: its record, and what the client's report holds.

Distributions are the client's own histograms, limits are held against its early-stopping estimates; how the run went
over its time is counted from the client's events.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import numpy as np

from harness.clients.endpoints.config import REPORT
from harness.clients.endpoints.events import EVENTS, Phase, read_phases
from harness.clients.endpoints.report import PERFORMANCE, SINGLE
from harness.ledger.record import RunRecord
from harness.ledger.samples import NONE, Int64, SampleState
from harness.ledger.store import StoredRun
from harness.logs import Document, EndpointsLog, LogError
from harness.logs.endpoints import CONFIGS, RESULT_SUMMARY
from harness.report.book.client_figures import client_figures, no_client_figures
from harness.report.book.content import Figure, Margin, Missing, RunView, TimeLine
from harness.report.book.limits import Limits, limits_of
from harness.report.book.margins import accuracy_margins, client_margins
from harness.report.book.run_record import KILLED, no_rules, recorded
from harness.report.book.sample_figures import EVENTS as OF_EVENTS
from harness.report.book.sample_figures import sample_figures
from harness.rules import RulePack

MAX_EVENTS_BYTES: Final = 256 << 20
"""Events hold every answer of both phases: reading more takes longer than all else that a report needs."""

_NO_PLACES: Final = Missing("turns", "Figures of turns", "the client's report does not tell a turn's place")


def endpoints_run(run: StoredRun, root: Path, pack: RulePack | None, *, alive: bool) -> RunView:
    """The view of a run of the client in the results folder ``root``; ``pack`` is its round's, None where there is none
    here. What cannot be read is said in its place.
    """
    record, report = run.record, run.folder / REPORT
    limits = limits_of(pack, record.id.benchmark, record.id.scenario)
    summary = _summary(report, record, alive=alive)
    figures = no_client_figures(summary) if isinstance(summary, str) else client_figures(summary, limits)
    log = None if isinstance(summary, str) else EndpointsLog(summary, Document(report / CONFIGS[0], {}))
    margins, notes = _margins(record, pack, log)
    return dataclasses.replace(
        recorded(run, root, alive=alive),
        margins=margins,
        figures=(
            *(each for each in figures if not _is_over_time(each)),
            *lines_of_events(report),
            *(() if record.turns is None else (_NO_PLACES,)),
        ),
        notes=notes,
    )


def lines_of_events(report: Path) -> tuple[Figure, ...]:
    """How the measured phase went over its time, from the ``events.jsonl`` of a report's folder."""
    path = report / EVENTS
    try:
        size = path.stat().st_size
    except OSError:
        return _no_lines(f"there is no {EVENTS} in the report")
    if size > MAX_EVENTS_BYTES:
        return _no_lines(f"{EVENTS} has {size >> 20:,} MiB, of which no more than {MAX_EVENTS_BYTES >> 20} are read")
    try:
        phase = read_phases(report).get(PERFORMANCE)
    except LogError as error:
        return _no_lines(f"{EVENTS} cannot be read: {error.what}")
    if phase is None:
        return _no_lines(f"{EVENTS} has no measured phase")
    figures = sample_figures(columns_of(phase), Limits(), OF_EVENTS)
    return tuple(each for each in figures if _is_over_time(each))


def columns_of(phase: Phase) -> Mapping[str, Int64]:
    """A phase as the columns of a samples.arrow, as far as they are needed; nobody has counted tokens. The client
    stamps a first chunk when it is handled and an end when it is read: a first that is later than its end is none.
    """
    answered = phase.answered
    came = phase.done_ns != NONE
    state = np.where(answered, SampleState.ANSWERED, np.where(came, SampleState.FAILED, SampleState.OUTSTANDING))
    nobody = np.full(len(state), NONE, np.int64)
    return {
        "state": state,
        "issued_ns": phase.issued_ns,
        "first_token_ns": np.where(phase.first_ns > phase.done_ns, NONE, phase.first_ns),
        "done_ns": phase.done_ns,
        "answer_tokens": nobody,
        "prompt_tokens": nobody,
    }


def _is_over_time(figure: Figure) -> bool:
    return isinstance(figure, TimeLine) or figure.key.endswith(("throughput", "concurrency", "_over_time"))


def _no_lines(why: str) -> tuple[Figure, ...]:
    return (Missing("throughput", "Answers a second", why), Missing("concurrency", "Under way at once", why))


def _summary(report: Path, record: RunRecord, *, alive: bool) -> Document | str:
    """What the client measured, or why it cannot be told."""
    path = report / RESULT_SUMMARY
    if not path.is_file():
        if (report / SINGLE).is_file():
            return f"a report of the client's old form ({SINGLE}), which has no percentiles"
        if record.ended_at is None:
            return "the run goes on: the client writes its report at its end" if alive else KILLED
        return f"the client left no {RESULT_SUMMARY}"
    try:
        return Document.read_json(path)
    except LogError as error:
        return error.what


def _margins(
    record: RunRecord, pack: RulePack | None, log: EndpointsLog | None
) -> tuple[tuple[Margin, ...], tuple[str, ...]]:
    run_id = record.id
    if pack is None or run_id.benchmark not in pack.benchmarks:
        return (), (no_rules(record, pack),)
    found = () if log is None else client_margins(log, pack, run_id.benchmark, run_id.scenario)
    if record.accuracy is not None:
        figures = {record.accuracy.key: record.accuracy.value, **record.accuracy.also}
        found += accuracy_margins(figures, pack, run_id.benchmark, run_id.scenario, "endpoints")
    return found, ()
