"""A comparison for the terminal, as lines that no terminal's width breaks: the rows of each system and benchmark, what
stands against them, then details.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from typing import Final, TypeAlias

from rich.cells import cell_len
from rich.text import Text

from harness.gate.findings import printable
from harness.report.book.boundary import NOT_TOLD
from harness.report.book.content import Margin, RowView
from harness.report.compare import Change, Compared, Comparison, RowChange
from harness.report.wording import NO_VALUE, NOT_VERIFIED, caution, number, result

_STYLES: Final = {"better": "green", "worse": "red", "not judged": "yellow", "not comparable": "yellow"}
_SHOWN: Final = 40
"""Keys of a configuration that a terminal is shown; --json has them all."""
_WIDEST: Final = 40
"""Letters of a value that are shown."""
_GAP: Final = "  "
_UNCHANGED: Final = "="

Cells: TypeAlias = Sequence[Text]


def comparison_lines(comparison: Comparison, *, details: bool) -> Iterator[Text]:
    """All of it. ``details`` adds limits, accuracy, percentiles and configuration of each row."""
    for side, book in (("before", comparison.before), ("after", comparison.after)):
        yield Text.assemble((f"{side:<8}", "bold"), _head(book))
    for title, rows in itertools.groupby(sorted(comparison.rows, key=_title), key=_title):
        of_one = list(rows)
        yield Text()
        yield Text(title, "bold")
        yield from _rows(of_one)
        for row in of_one:
            yield from _against(row)
        for row in of_one if details else ():
            yield from _details(row)
    yield Text()
    if not comparison.rows:
        yield Text("no row is in both", "yellow")
    yield from _alone("only before", comparison.only_before)
    yield from _alone("only after", comparison.only_after)
    yield from (Text(_text(note), "dim") for note in comparison.notes)
    yield Text(f"Figures {NOT_VERIFIED}.")


def _head(book: Compared) -> str:
    what = "submission tree" if book.source == "tree" else "runs"
    return _text(f"{book.place} ({what}, round {book.round})")


def _title(row: RowChange) -> str:
    """Benchmark, system and division, with what must stand beside a figure of open."""
    benchmarks, systems = (_both(getattr(row.before, key), getattr(row.after, key)) for key in ("benchmark", "system"))
    divisions = _both(_division(row.before), _division(row.after))
    return _text(f"{benchmarks} on {systems}" + (f" ({divisions})" if divisions else ""))


def _scenario(row: RowChange) -> str:
    return _both(row.before.scenario, row.after.scenario)


def _division(row: RowView) -> str:
    """The division by its name; open by the words that its figures must have."""
    return caution(row).replace(NOT_VERIFIED, "").strip(" ·") or row.division or ""


def _rows(rows: Sequence[RowChange]) -> Iterator[Text]:
    cells = [
        (
            Text(_scenario(row)),
            Text(_value(row.result.before)),
            Text(_value(row.result.after)),
            Text(_both(row.before.unit, row.after.unit)),
            Text(_percent(row.result)),
            Text(row.judgement, _STYLES.get(row.judgement, "")),
        )
        for row in rows
    ]
    return _columns(("", "before", "after", "", "change", ""), cells, right=(1, 2, 4))


def _against(row: RowChange) -> Iterator[Text]:
    """What stands in place of a percent, and why a result is not judged."""
    for one in row.boundary:
        told = f"{one.before or NOT_TOLD} before, {one.after or NOT_TOLD} after"
        yield Text(_text(f"  {_scenario(row)}: {one.name}: {told}"))
    for side in ("before", "after"):
        whys = [mark.why for mark in row.marks if mark.side == side]
        if whys:
            yield Text(_text(f"  {_scenario(row)} {side}: {'; '.join(whys)}"))


def _details(row: RowChange) -> Iterator[Text]:
    scenario = _scenario(row)
    heads = ("", "before", "after", "", "change")
    tables = (
        ("limits", (*heads[:4], "limit"), [_limit(one.name, one.unit, one.before, one.after) for one in row.margins]),
        ("accuracy", heads, [_change(one.name, one) for one in row.accuracy]),
        (
            "percentiles",
            heads,
            [_change(f"{of.title}, {one.name}", one) for of in row.figures for one in of.changes],
        ),
    )
    for name, head, cells in tables:
        if cells:
            yield Text(f"\n  {scenario}: {name}", "bold")
            yield from _columns(head, cells, right=(1, 2, 4) if head is heads else (1, 2))
    yield from (Text(_text(f"  {why}"), "dim") for why in row.missing)
    if row.configuration:
        yield Text(f"\n  {scenario}: configuration that differs", "bold")
        yield from _configuration(row)


def _configuration(row: RowChange) -> Iterator[Text]:
    shown = row.configuration[:_SHOWN]
    told = [(one.name, *(NOT_TOLD if side is None else side for side in (one.before, one.after))) for one in shown]
    yield from _columns(("", "before", "after"), [[Text(_text(cell, _WIDEST)) for cell in cells] for cells in told])
    if len(row.configuration) > _SHOWN:
        yield Text(f"  and {len(row.configuration) - _SHOWN} more: --json has them all", "dim")


def _limit(name: str, unit: str, before: Margin | None, after: Margin | None) -> Cells:
    asked = after or before
    limit = "" if asked is None else f"{asked.direction} {number(asked.limit)}"
    return Text(name), _measured(before), _measured(after), Text(unit), Text(limit)


def _measured(margin: Margin | None) -> Text:
    if margin is None or margin.measured is None:
        return Text(NO_VALUE)
    return Text(number(margin.measured), "" if margin.met else "red")


def _change(name: str, change: Change) -> Cells:
    style = "" if change.better is None else "green" if change.better else "red"
    before, after = (NO_VALUE if value is None else number(value) for value in (change.before, change.after))
    return Text(_text(name)), Text(before), Text(after), Text(change.unit), Text(_percent(change), style)


def _columns(heads: Sequence[str], rows: Sequence[Cells], right: Sequence[int] = ()) -> Iterator[Text]:
    """Columns as wide as their widest cell; those of ``right`` end together."""
    every = [[Text(head, "dim") for head in heads], *rows]
    widths = [max(cell_len(cell.plain) for cell in column) for column in zip(*every, strict=True)]
    for cells in every:
        line = Text(_GAP)
        for place, (cell, width) in enumerate(zip(cells, widths, strict=True)):
            blanks = " " * (width - cell_len(cell.plain))
            line.append_text(Text(blanks) + cell if place in right else cell + Text(blanks))
            line.append(_GAP)
        line.rstrip()
        yield line


def _alone(title: str, rows: Sequence[RowView]) -> Iterator[Text]:
    for row in rows:
        value = "no result" if row.value is None else f"{result(row.value)} {row.unit}"
        words = ", ".join(filter(None, ("demonstration" if row.demonstration else "", caution(row))))
        beside = f" ({words})" if words else ""
        yield Text(_text(f"{title}: {row.system}/{row.benchmark}/{row.scenario}: {row.word}, {value}{beside}"))


def _value(value: float | None) -> str:
    return NO_VALUE if value is None else result(value)


def _percent(change: Change) -> str:
    if change.percent is None:
        return ""
    return f"{change.percent:+.2f} %" if change.percent else _UNCHANGED


def _both(before: str, after: str) -> str:
    """One text where they are alike, or only one side has one."""
    return " → ".join(dict.fromkeys(text for text in (before, after) if text))


def _text(text: str, limit: int = 1000) -> str:
    return printable(text, limit)
