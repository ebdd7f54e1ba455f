"""The turns of a run of the endpoints client, told a second time: which were asked, how each ended, how long it took.

The client counts a turn that failed, and those behind it that it never sent, among the completed ones, and their times
in its mean; a stream that broke off and an empty answer are whole to it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from harness.clients.endpoints.events import EVENTS, INDEX, Phase
from harness.clients.endpoints.importer import MEAN, Imported
from harness.engines.base import Int64Array
from harness.gate import endpoints_ledger_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.findings import Finding
from harness.ledger.record import TurnCounts, TurnFigures
from harness.rules import BenchmarkRules
from harness.runs.endpoints_replay import Replay

_AT_ONCE: Final = "load_pattern.target_concurrency"
_INLINE_DIGITS: Final = 1e-4
"""The client rounds its inline score to four."""
_NS_PER_MS: Final = 1e6
_NS_PER_S: Final = 1e9
_SAME: Final = 1e-6


@dataclass(frozen=True, slots=True)
class TurnsTold:
    """What the record keeps of the turns, and what is wrong with them."""

    counts: TurnCounts
    figures: TurnFigures
    findings: tuple[Finding, ...]


def told_turns(imported: Imported, replay: Replay | None, rules: BenchmarkRules) -> TurnsTold | None:
    """Of a run of trajectories whose events were read; None of any other."""
    measured = imported.measured
    if replay is None or measured is None or not len(measured.rows):
        return None
    known = int(measured.rows.max()) < replay.turns
    inline = replay.inline(measured).score if known else None
    return TurnsTold(
        counts=_counted(measured, replay),
        figures=_figures(measured, replay, inline, _times(measured, replay)),
        findings=tuple(_findings(imported, measured, replay, rules, inline)),
    )


def _counted(measured: Phase, replay: Replay) -> TurnCounts:
    skipped = len(measured.skipped)
    answered = int(measured.answered.sum())
    failed = measured.completed - skipped - answered
    issued = max(answered + failed, measured.issued - skipped)
    outstanding = max(issued - answered - failed, replay.turns - answered - failed - skipped, 0)
    return TurnCounts(issued=issued, answered=answered, failed=failed, skipped=skipped, outstanding=outstanding)


def _times(measured: Phase, replay: Replay) -> Int64Array:
    """How often each turn was asked, int64 (turns,); rows that are no turn count for none."""
    known = measured.rows[measured.rows < replay.turns]
    return np.bincount(known, minlength=replay.turns).astype(np.int64)


def _figures(measured: Phase, replay: Replay, inline: float | None, times: Int64Array) -> TurnFigures:
    latency, span_ns = measured.answered_ns, measured.span_ns
    return TurnFigures(
        mean_latency_ns=float(latency.mean()) if len(latency) else None,
        turns_per_s=len(latency) / (span_ns / _NS_PER_S) if span_ns else None,
        inline_score=inline,
        issued=_issued(times, replay),
    )


def _issued(times: Int64Array, replay: Replay) -> dict[str, int]:
    """How often each trajectory was begun."""
    found, first = {}, 0
    for each in replay.source.trajectories:
        found[each.id] = int(times[first])
        first += len(each.turns)
    return found


def _findings(
    imported: Imported, measured: Phase, replay: Replay, rules: BenchmarkRules, inline: float | None
) -> Iterator[Finding]:
    times, beyond = _times(measured, replay), int((measured.rows >= replay.turns).sum())
    wrong, expected = np.flatnonzero(times != 1), f"each turn of {replay.trajectories} trajectories once"
    if beyond:
        yield R.ROWS.broken(INDEX, f"{beyond} samples that are none of {replay.turns} turns", expected)
    if len(wrong):
        found = f"turn {wrong[0]} of {replay.turns} asked {times[wrong[0]]} times, one of {len(wrong)} such"
        yield R.ROWS.broken(INDEX, found, expected)
    if not beyond:
        yield from _other_requests("turns", measured, replay.digests())
    yield from _at_once(measured, rules)
    yield from _flattered(imported, measured)
    yield from _otherwise_scored(imported, inline)
    yield from _other_questions(imported, replay)


def _other_requests(what: str, phase: Phase, recorded: Sequence[bytes]) -> Iterator[Finding]:
    asked = [(at, row) for at, row in enumerate(phase.rows.tolist()) if at not in phase.skipped]
    others = [at for at, row in asked if phase.asked[at] != recorded[row]]
    if others:
        found = f"{len(others)} of {len(asked)} {what} asked with other messages or tools, row "
        yield R.REQUESTS.broken(EVENTS, found + f"{phase.rows[others[0]]} the first")


def _other_questions(imported: Imported, replay: Replay) -> Iterator[Finding]:
    """Of rows that are not those of the table the score tells."""
    recorded = replay.question_digests()
    for one in imported.report.scored:
        phase = imported.phases.get(one.name)
        if phase is not None and len(phase.rows) and int(phase.rows.max()) < len(recorded):
            yield from _other_requests("questions", phase, recorded)


def _at_once(measured: Phase, rules: BenchmarkRules) -> Iterator[Finding]:
    ruled = rules.endpoints_settings
    if ruled is None or _AT_ONCE not in ruled.value:
        return
    most = ruled.value[_AT_ONCE]
    if measured.most_at_once > most:
        found = f"{measured.most_at_once} turns under way at once"
        yield R.STREAM.broken(EVENTS, found, f"at most {most}", source=ruled.source)


def _flattered(imported: Imported, measured: Phase) -> Iterator[Finding]:
    latency, told_ns = measured.answered_ns, imported.report.figures.get(MEAN)
    if told_ns is None or measured.completed == len(latency) or not len(latency):
        return
    own_ns = float(latency.mean())
    if not math.isclose(own_ns, told_ns, rel_tol=_SAME):
        unanswered = measured.completed - len(latency)
        found = f"a mean of {told_ns / _NS_PER_MS:.3f} ms with {unanswered} turns in it that were not answered"
        yield R.MEAN.broken(EVENTS, found, f"that of the {len(latency)} answered ones, {own_ns / _NS_PER_MS:.3f} ms")


def _otherwise_scored(imported: Imported, inline: float | None) -> Iterator[Finding]:
    theirs = imported.report.inline
    if theirs is None or inline is None:
        return
    if not math.isclose(inline, theirs, rel_tol=0, abs_tol=_INLINE_DIGITS):
        yield R.RESCORED.broken(EVENTS, f"inline score {inline:.4f}", f"the client's {theirs}")
