"""Two books beside each other: which rows are the same row, what changed, and where no percent may be told.

A change is told in percent only where the rows' boundaries are equal; else what differs stands in its place. A result
that does not count (INVALID, of a demonstration, short) is compared and marked, and is never better or worse.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from harness.gate.run_facts import AUDITS
from harness.report.book.boundary import Difference, differences
from harness.report.book.content import Book, Distribution, Margin, Missing, RowView, RunView, Subset
from harness.report.compare_content import (
    Change,
    Compared,
    Comparison,
    FigureChange,
    Judgement,
    MarginChange,
    Mark,
    RowChange,
    Side,
)
from harness.report.compare_pairs import paired

__all__ = [
    "Change",
    "Compared",
    "Comparison",
    "Difference",
    "FigureChange",
    "Judgement",
    "MarginChange",
    "Mark",
    "RowChange",
    "Side",
    "compare",
    "regressions",
]

_VALID: Final = "VALID"
_TIMES: Final = ("ms", "s")
_PERCENTILES: Final = ("p50", "p90", "p99")
_FINGERPRINT: Final = "fingerprint"
_OF_ONE_RUN: Final = ("started", "ended", "state", "command", "note", "digest")
_GROUPS_OF_ONE_RUN: Final = ("files, sha256", "client", "filed run", "LoadGen says")
"""Facts, and groups of them, that no two runs share and that nothing depends on."""

Pairs: TypeAlias = tuple[tuple[str, str], ...]


def compare(before: Book, after: Book, *, as_one_row: bool = False) -> Comparison:
    """What changed from one book to the other, row by row; :func:`paired` says which rows are one. With ``as_one_row``
    the books' first rows are one whatever they are of: somebody named them.
    """
    if as_one_row:
        pairs, left, right = [(before.rows[0], after.rows[0])], list(before.rows[1:]), list(after.rows[1:])
    else:
        pairs, left, right = paired(before.rows, after.rows)
    return Comparison(
        before=Compared.of(before),
        after=Compared.of(after),
        rows=tuple(_row(one, other, before, after) for one, other in pairs),
        only_before=tuple(left),
        only_after=tuple(right),
        notes=tuple(_notes(before, after)),
    )


def regressions(comparison: Comparison, percent: float) -> tuple[str, ...]:
    """Why the after side does not hold what the before side had: rows worse by more than ``percent``, rows that count
    no more, rows that are gone; and where no row could be judged at all, that.
    """
    found = [why for row in comparison.rows if (why := _regression(row, percent)) is not None]
    found += [f"{_name(row)}: gone" for row in comparison.only_before if not _whys(row, ())]
    judged = [row for row in comparison.rows if row.judgement not in ("not judged", "not comparable")]
    if not judged and not found:
        found.append("no row could be judged")
    return tuple(found)


def _regression(row: RowChange, percent: float) -> str | None:
    sides = {mark.side for mark in row.marks}
    if sides == {"after"}:
        whys = "; ".join(mark.why for mark in row.marks)
        return f"{row.name}: it counted before, and does not: {whys}"
    if not sides and _is_number(row.before.value) and not _is_number(row.after.value):
        return f"{row.name}: it had a result before, and has none"
    lost = row.result.percent
    if row.judgement == "worse" and lost is not None and abs(lost) > percent:
        return f"{row.name}: {lost:+.2f} %"
    return None


def _is_number(value: float | None) -> bool:
    return value is not None and math.isfinite(value)


# -- one row -----------------------------------------------------------------------------------------------------------


def _row(one: RowView, other: RowView, before: Book, after: Book) -> RowChange:
    mine, theirs = _runs(one, before), _runs(other, after)
    first, second = next(iter(mine), None), next(iter(theirs), None)
    boundary = differences(one.boundary, other.boundary)
    marks = (*_marks("before", one, mine), *_marks("after", other, theirs))
    told, judged = not boundary, not boundary and not marks
    # The units too are the round's: two rounds may publish one key in two units.
    result = _change(
        other.metric or one.metric or "result",
        other.unit or one.unit,
        one.value,
        other.value,
        told=told and one.unit == other.unit,
        higher=other.higher_is_better if judged else None,
    )
    return RowChange(
        before=one,
        after=other,
        judgement=_judgement(result, boundary, marks),
        result=result,
        boundary=boundary,
        marks=marks,
        margins=tuple(_margins(one.margins, other.margins)),
        accuracy=tuple(_accuracy(mine, theirs, told=told, judged=judged)),
        figures=tuple(_figures(first, second, told=told, judged=judged)),
        missing=tuple(_missing(first, second)),
        configuration=tuple(_configuration(first, second)),
    )


def _runs(row: RowView, book: Book) -> list[RunView]:
    """Those of the row's runs that the book has, the performance leg first."""
    by_key = {run.key: run for run in book.runs}
    return [by_key[key] for key in row.runs if key in by_key]


def _marks(side: Side, row: RowView, runs: Sequence[RunView]) -> Iterator[Mark]:
    return (Mark(side, why) for why in _whys(row, runs))


def _whys(row: RowView, runs: Sequence[RunView]) -> list[str]:
    """Why a row's result does not count, each reason once."""
    found = [] if row.word == _VALID else [row.word]
    found += ["demonstration"] if row.demonstration else []
    for run in runs:
        found += run.not_submittable
        found += ["probe of a search"] if run.probe else []
    return list(dict.fromkeys(found))


def _judgement(result: Change, boundary: Sequence[Difference], marks: Sequence[Mark]) -> Judgement:
    if boundary or result.percent is None:
        return "not comparable"
    if marks:
        return "not judged"
    if result.better is None:
        return "the same"
    return "better" if result.better else "worse"


def _change(
    name: str, unit: str, before: float | None, after: float | None, *, told: bool, higher: bool | None
) -> Change:
    """``told``: whether a percent may stand there. ``higher``: whether more is better; None says neither."""
    percent = _percent(before, after) if told else None
    better = None if higher is None or not percent else (percent > 0) is higher
    return Change(name, unit, before, after, percent, better)


def _percent(before: float | None, after: float | None) -> float | None:
    if before is None or after is None or not before:
        return None
    found = (after - before) / abs(before) * 100
    return found if math.isfinite(found) else None


def _margins(before: Iterable[Margin], after: Iterable[Margin]) -> Iterator[MarginChange]:
    """A window has two limits of one name."""
    mine, theirs = ({(m.name, m.unit, m.direction): m for m in margins} for margins in (before, after))
    for key in {**mine, **theirs}:
        yield MarginChange(key[0], key[1], mine.get(key), theirs.get(key))


def _accuracy(before: Sequence[RunView], after: Sequence[RunView], *, told: bool, judged: bool) -> Iterator[Change]:
    """Scores and shares; better where more is, which the round says of some scores and which holds of any share."""
    asked = _asked(before) & _asked(after)
    for values, unit in ((_scores, ""), (_shares, "%")):
        mine, theirs = values(before), values(after)
        for name in {**mine, **theirs}:
            higher = True if judged and (unit == "%" or name in asked) else None
            yield _change(name, unit, mine.get(name), theirs.get(name), told=told, higher=higher)


def _asked(runs: Sequence[RunView]) -> set[str]:
    """The scores of which the round asks for as many as can be, and not for a window."""
    margins = [margin for run in runs for margin in run.margins]
    windows = {margin.name for margin in margins if margin.direction == "at most"}
    return {margin.name for margin in margins if margin.direction == "at least"} - windows


def _scores(runs: Sequence[RunView]) -> dict[str, float]:
    return {_of_leg(run, name): value for run in runs for name, value in run.scores}


def _shares(runs: Sequence[RunView]) -> dict[str, float]:
    """The right answers of each subset, in percent of all its samples; none while some are not scored."""
    return {
        _of_leg(run, subset.name): 100 * subset.correct / subset.samples
        for run in runs
        for subset in run.subsets
        if subset.samples and _is_scored(subset)
    }


def _of_leg(run: RunView, name: str) -> str:
    """A score by its name; that of an audit after the audit's."""
    return f"{run.leg} {name}" if run.leg in AUDITS else name


def _is_scored(subset: Subset) -> bool:
    return not subset.unscored and not subset.failed


def _figures(one: RunView | None, other: RunView | None, *, told: bool, judged: bool) -> Iterator[FigureChange]:
    mine, theirs = _distributions(one), _distributions(other)
    for key, figure in mine.items():
        beside = theirs.get(key)
        if beside is None or beside.unit != figure.unit:
            continue
        higher = False if judged and figure.unit in _TIMES else None
        changes = (
            _change(name, figure.unit, getattr(figure, name), getattr(beside, name), told=told, higher=higher)
            for name in _PERCENTILES
        )
        yield FigureChange(key, beside.title, figure.unit, tuple(changes))


def _missing(one: RunView | None, other: RunView | None) -> Iterator[str]:
    """The distributions that one side alone has, with the reason of the other where it gives one."""
    mine, theirs = _distributions(one), _distributions(other)
    for side, has, lacks, run in (("before", theirs, mine, one), ("after", mine, theirs, other)):
        whys = {figure.key: figure.why for figure in (run.figures if run else ()) if isinstance(figure, Missing)}
        for key, figure in has.items():
            if key not in lacks:
                yield f"{figure.title}: none {side}: {whys.get(key, 'there is no such figure')}"


def _distributions(run: RunView | None) -> dict[str, Distribution]:
    if run is None:
        return {}
    return {figure.key: figure for figure in run.figures if isinstance(figure, Distribution)}


def _configuration(one: RunView | None, other: RunView | None) -> Iterator[Difference]:
    """The keys of the runs' fingerprints that differ. Where no side has one, all facts that do; where one side has,
    those that both tell: a run tells more of itself than a tree.
    """
    both = [dict(run.facts) if run is not None else {} for run in (one, other)]
    have = [_FINGERPRINT in groups for groups in both]
    if all(have):
        mine, theirs = (_named("", groups[_FINGERPRINT]) for groups in both)
    else:
        mine, theirs = (_all_named(groups) for groups in both)
    names = mine.keys() & theirs.keys() if any(have) and not all(have) else mine.keys() | theirs.keys()
    for name in sorted(names):
        if mine.get(name) != theirs.get(name):
            yield Difference(name, mine.get(name), theirs.get(name))


def _all_named(groups: Mapping[str, Pairs]) -> dict[str, str]:
    of_all = (_named(f"{group}: ", pairs) for group, pairs in groups.items() if group not in _GROUPS_OF_ONE_RUN)
    return {name: value for named in of_all for name, value in named.items()}


def _named(prefix: str, pairs: Pairs) -> dict[str, str]:
    return {f"{prefix}{name}": value for name, value in pairs if name not in _OF_ONE_RUN}


def _notes(before: Book, after: Book) -> Iterator[str]:
    if not before.rows or not after.rows:
        empty = " and ".join(side for side, book in (("before", before), ("after", after)) if not book.rows)
        yield f"no rows {empty}"
    if before.round != after.round:
        yield f"two rounds: {before.round} before, {after.round} after; each by the rules of its own"
    for side, book in (("before", before), ("after", after)):
        divisions = sorted({row.division for row in book.rows if row.division is not None})
        if len(divisions) > 1:
            yield f"{side}: rows of several divisions: {', '.join(divisions)}"
        yield from (f"{side}: {note}" for note in book.notes)


def _name(row: RowView) -> str:
    return f"{row.system}/{row.benchmark}/{row.scenario}"
