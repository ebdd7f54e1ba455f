"""What the client's own account of every sample says against its summary, and against the round."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from harness.benchmarks.base import Dataset
from harness.clients.endpoints.events import EVENTS, INDEX, Phase
from harness.clients.endpoints.importer import Imported
from harness.clients.endpoints.report import PERFORMANCE, SINGLE
from harness.gate import endpoints_ledger_rules as R  # noqa: N812 - a namespace of constants
from harness.gate import endpoints_rules
from harness.gate.findings import Finding, Severity
from harness.ledger.record import Comparison
from harness.rules import RulePack, ScenarioRules

_COUNTED: Final = "n_samples_"
_RATIO: Final = 0.05
_NS_PER_MS: Final = 1e6
_P99: Final = 99


def recounted(
    imported: Imported, dataset: Dataset | None, pack: RulePack, rules: ScenarioRules, *, told: bool, turns: bool
) -> Iterator[Finding]:
    """What a second count finds. ``dataset`` is what the client was given, None where it had its own; ``pack`` and
    ``rules`` are what the run is held to; ``told`` is whether the harness started the client. Where samples are
    ``turns``, which were asked is told elsewhere, and a run is over when all were, however long it took.
    """
    if imported.report.form == "single":
        yield R.OLD_FORM.broken(SINGLE, f"{SINGLE} alone")
    yield from _untold(imported, Severity.REJECT if told else None)
    yield from _compared(imported)
    for kind, count in imported.failure_kinds.items():
        yield R.ANSWERS.broken(EVENTS, f"{count} {kind}")
    measured = imported.measured
    if measured is None or not len(measured.rows):
        return
    if not turns:
        yield from _asked(measured, dataset)
        yield from _lasted(measured, pack)
    yield from _late(measured, rules)


def _untold(imported: Imported, severity: Severity | None) -> Iterator[Finding]:
    """Without events nothing can be counted twice; events that leave a phase out are no client's."""
    if imported.unread is not None:
        yield R.UNREAD.broken(EVENTS, imported.unread, severity=severity)
        return
    for name in dict.fromkeys([PERFORMANCE, *(one.name for one in imported.report.scored)]):
        if name not in imported.phases or not len(imported.phases[name].rows):
            yield R.UNREAD.broken(INDEX, f"no sample of the phase {name!r}", severity=Severity.REJECT)


def _compared(imported: Imported) -> Iterator[Finding]:
    for pair in imported.comparisons:
        found, expected = f"{pair.figure} {pair.harness:.6g}", f"the client's {pair.loadgen:.6g}"
        if pair.figure.startswith(_COUNTED):
            if pair.harness != pair.loadgen:
                yield R.RECOUNT.broken(EVENTS, found, expected)
        elif _far(pair):
            yield R.FIGURES.broken(EVENTS, found, expected)
    yield from _failed_unseen(imported)


def _far(pair: Comparison) -> bool:
    return abs(pair.harness - pair.loadgen) > _RATIO * pair.loadgen


def _failed_unseen(imported: Imported) -> Iterator[Finding]:
    """Failures where the summary has none: a figure of 0 has no ratio, and so no comparison."""
    measured = imported.measured
    if measured is not None and measured.errors and not imported.report.failed:
        found = f"{_COUNTED}failed {len(measured.errors)}"
        yield R.RECOUNT.broken(EVENTS, found, f"the client's {imported.report.failed}")


def _asked(measured: Phase, dataset: Dataset | None) -> Iterator[Finding]:
    """Passes are shuffled whole, so that no row can be asked more often than another."""
    if dataset is None:
        return
    if int(measured.rows.max()) >= dataset.rows:
        yield R.ROWS.broken(INDEX, f"row {measured.rows.max()} of a data set of {dataset.rows}")
        return
    times = np.bincount(measured.rows, minlength=dataset.rows)
    passes, least = len(measured.rows) // dataset.rows, int(times.argmin())
    if times[least] < passes:
        yield R.ROWS.broken(INDEX, f"row {least} asked {times[least]} times in {passes} passes")


def _lasted(measured: Phase, pack: RulePack) -> Iterator[Finding]:
    """By the events themselves; the client counts from a moment before the first of them."""
    least, span_ns = pack.measured_duration_ms, measured.span_ns
    if span_ns is not None and span_ns < least.value * _NS_PER_MS * (1 - _RATIO):
        found, expected = f"{span_ns / _NS_PER_MS:.1f} ms by the events", f"at least {least.value} ms"
        yield endpoints_rules.DURATION.broken(EVENTS, found, expected, severity=Severity.REJECT, source=least.source)


def _late(measured: Phase, rules: ScenarioRules) -> Iterator[Finding]:
    """The exact percentile: the client's estimate of it lies above, and so does the limit."""
    for broken, spans, limit in (
        (endpoints_rules.LATENCY, measured.latencies_ns, rules.latency_p99_at_most_ms),
        (endpoints_rules.TTFT, measured.ttft_ns, rules.ttft_p99_below_ms),
    ):
        if limit is None or not len(spans):
            continue
        found_ms = float(np.percentile(spans, _P99, method="inverted_cdf")) / _NS_PER_MS
        if found_ms > limit.value:
            yield broken.broken(
                EVENTS, f"{found_ms:.1f} ms by the events", f"at most {limit.value:g} ms", source=limit.source
            )
