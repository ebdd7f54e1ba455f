"""A comparison for programs: plain data of a stable shape, which docs/compare.md tells."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from harness import __version__
from harness.report.book.boundary import Difference
from harness.report.book.content import Margin, RowView
from harness.report.compare import Change, Compared, Comparison, FigureChange, RowChange
from harness.report.wording import NOT_VERIFIED, caution

SCHEMA: Final = 1


def as_json(comparison: Comparison, regressions: Sequence[str] | None, exit_code: int) -> dict[str, Any]:
    """All of a comparison. ``regressions`` is None where nobody asked for them. A number that is none is null."""
    return {
        "schema_version": SCHEMA,
        "harness_version": __version__,
        "caution": NOT_VERIFIED,
        "exit_code": exit_code,
        "before": _book(comparison.before),
        "after": _book(comparison.after),
        "rows": [_row(row) for row in comparison.rows],
        "only_before": [_side(row) for row in comparison.only_before],
        "only_after": [_side(row) for row in comparison.only_after],
        "notes": list(comparison.notes),
        "regressions": None if regressions is None else list(regressions),
    }


def _book(book: Compared) -> dict[str, Any]:
    return {
        "title": book.title,
        "source": book.source,
        "place": book.place,
        "round": book.round,
        "made_by": book.made_by,
    }


def _row(row: RowChange) -> dict[str, Any]:
    return {
        "benchmark": row.after.benchmark,
        "scenario": row.after.scenario,
        "judgement": row.judgement,
        "percent": _number(row.result.percent),
        "better": row.result.better,
        "before": _side(row.before),
        "after": _side(row.after),
        "boundary": [_difference(one) for one in row.boundary],
        "marks": [{"side": mark.side, "why": mark.why} for mark in row.marks],
        "margins": [
            {"name": one.name, "unit": one.unit, "before": _margin(one.before), "after": _margin(one.after)}
            for one in row.margins
        ],
        "accuracy": [_change(one) | {"name": one.name, "unit": one.unit} for one in row.accuracy],
        "figures": [_figure(one) for one in row.figures],
        "missing": list(row.missing),
        "configuration": [_difference(one) for one in row.configuration],
    }


def _side(row: RowView) -> dict[str, Any]:
    return {
        "system": row.system,
        "benchmark": row.benchmark,
        "scenario": row.scenario,
        "division": row.division,
        "category": row.category,
        "submitter": row.submitter,
        "word": row.word,
        "demonstration": row.demonstration,
        "metric": row.metric,
        "value": _number(row.value),
        "unit": row.unit,
        "higher_is_better": row.higher_is_better,
        "accuracy": row.accuracy,
        "audits": dict(row.audits),
        "caution": caution(row),
    }


def _difference(one: Difference) -> dict[str, Any]:
    return {"name": one.name, "before": one.before, "after": one.after}


def _margin(one: Margin | None) -> dict[str, Any] | None:
    if one is None:
        return None
    return {
        "measured": _number(one.measured),
        "direction": one.direction,
        "limit": _number(one.limit),
        "met": one.met,
        "source": one.source,
    }


def _figure(one: FigureChange) -> dict[str, Any]:
    percentiles = {change.name: _change(change) for change in one.changes}
    return {"key": one.key, "title": one.title, "unit": one.unit} | percentiles


def _change(one: Change) -> dict[str, Any]:
    return {
        "before": _number(one.before),
        "after": _number(one.after),
        "percent": _number(one.percent),
        "better": one.better,
    }


def _number(value: float | None) -> float | None:
    """JSON has no infinity."""
    return value if value is not None and math.isfinite(value) else None
