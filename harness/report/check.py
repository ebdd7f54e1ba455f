"""What ``check_submission`` shows people: the summary first, then the findings, each rule and each mend once.

Lines are rich's texts, which no terminal's width breaks; ``plain`` makes the same lines for a file or a pipe.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator

from rich.cells import cell_len
from rich.text import Text

from harness.gate.agreement import Assessment, Disagreement
from harness.gate.export import counts, workflow_commands
from harness.gate.findings import Finding, printable
from harness.gate.official_report import OfficialReport, RowVerdict
from harness.gate.row import RowReport

SHOWN = 20
"""Places of one rule that a terminal is shown."""

_HEADS = ("benchmark", "scenario", "layout", "gate", "official", "result", "accuracy")
STYLES = {
    "pass": "green",
    "review": "yellow",
    "reject": "red",
    RowVerdict.ACCEPTS.value: "green",
    RowVerdict.REFUSES.value: "red",
    RowVerdict.CRASHED.value: "red",
    RowVerdict.IGNORES.value: "yellow",
    RowVerdict.NOT_RUN.value: "dim",
}
_GAP = "  "


def lines(checked: Assessment, *, shown: int | None = SHOWN) -> Iterator[Text]:
    """All of it; ``shown`` limits the places of one rule, None shows every one."""
    yield from _row_lines(checked)
    yield _counts_line(checked)
    yield from _official_lines(checked.official)
    yield from _disagreement_lines(checked.disagreements)
    for severity, some in itertools.groupby(checked.findings, key=lambda f: f.severity):
        yield Text()
        yield Text(severity.value, "bold")
        for group in rules_together(some):
            yield from rule_lines(group, shown)


def plain(some: Iterable[Text]) -> str:
    """The lines as a text file holds them."""
    return "".join(f"{line.plain}\n" for line in some)


def workflow_lines(checked: Assessment) -> Iterator[str]:
    """A workflow command a finding, then the verdicts: GitHub shows ten annotations a step, so the counts end it."""
    yield from workflow_commands(checked.report.root, checked.findings)
    for line in [*_official_lines(checked.official), _counts_line(checked)]:
        yield line.plain


def _counts_line(checked: Assessment) -> Text:
    verdict = checked.verdict.value
    found = ", ".join(f"{number} {name}" for name, number in counts(checked.findings).items())
    return Text.assemble(f"gate {checked.report.round}: ", (verdict, f"bold {STYLES[verdict]}"), f" ({found})")


def _official_lines(official: OfficialReport) -> Iterator[Text]:
    clone = f" (clone at {official.commit or 'an unknown commit'})" if official.ran else ""
    yield Text(f"official checker: {official.verdict.value}: {printable(official.detail, 1000)}{clone}")
    for name, path in (("log", official.log), ("table", official.table)):
        if path is not None:
            yield Text(f"official {name}: {printable(str(path), 4096)}")
    if official.ran and official.log is None:
        yield Text("official log: not kept; --report-dir DIR keeps it", "dim")


def _row_lines(checked: Assessment) -> Iterator[Text]:
    """A heading for each system, a line for each of its rows; columns are as wide as the widest of the tree."""
    cells = [_cells(row, checked.official) for row in checked.report.rows]
    widths = [max(map(cell_len, column)) for column in zip(_HEADS, *cells, strict=True)]
    for system, some in itertools.groupby(
        zip(checked.report.rows, cells, strict=True), key=lambda pair: _system(pair[0])
    ):
        yield Text(system, "bold")
        yield _line(_HEADS, widths, "dim")
        for _, row in some:
            yield _line(row, widths)
        yield Text()


def _cells(row: RowReport, official: OfficialReport) -> tuple[str, ...]:
    own = row.place.folder.parent.name
    return (
        printable(own if own == row.place.benchmark else f"{own} ({row.place.benchmark})"),
        printable(row.place.folder.name),
        row.layout,
        row.verdict.value,
        official.of(row.place).value,
        "-" if row.metric is None else f"{row.metric.value:,.2f} {row.metric.units}",
        "-" if row.accuracy is None else f"{row.accuracy:g}",
    )


def _line(cells: Iterable[str], widths: Iterable[int], style: str = "") -> Text:
    line = Text("  ", style)
    for cell, width in zip(cells, widths, strict=True):
        line.append(cell, style or STYLES.get(cell, ""))
        line.append(" " * (width - cell_len(cell)) + _GAP)
    line.rstrip()
    return line


def _system(row: RowReport) -> str:
    return printable(f"{row.place.division}/{row.place.submitter}/{row.place.system}")


def _disagreement_lines(some: Iterable[Disagreement]) -> Iterator[Text]:
    for what, same in itertools.groupby(sorted(some, key=lambda d: d.what), key=lambda d: d.what):
        yield Text()
        yield Text(what, "bold")
        for one in same:
            yield Text(f"  {printable(str(one.place))}: {_first(one.reasons)}")


def _first(reasons: tuple[str, ...]) -> str:
    more = f" and {len(reasons) - SHOWN} more" if len(reasons) > SHOWN else ""
    return "; ".join(reasons[:SHOWN]) + more


def rules_together(findings: Iterable[Finding]) -> Iterable[list[Finding]]:
    """Findings of one rule from one source together; a rule's sources stay beside each other."""
    groups: dict[tuple[str, str], list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.rule, finding.source), []).append(finding)
    return groups.values()


def rule_lines(findings: list[Finding], shown: int | None) -> Iterator[Text]:
    """A rule once, then where it is broken; what is the same everywhere is said once."""
    yield Text.assemble("  ", (findings[0].rule, "bold"), (f"  ({findings[0].source})", "dim"))
    shared = len({finding.expected for finding in findings}) == 1
    for finding in findings[:shown]:
        expected = "" if shared else f" (expected: {finding.expected})"
        yield Text.assemble(f"    {finding.path}: {finding.found}", (expected, "dim"))
    if shown is not None and len(findings) > shown:
        yield Text(f"    and {len(findings) - shown} more: --json FILE has them all")
    if shared:
        yield Text.assemble("    ", ("expected:", "dim"), f" {findings[0].expected}")
    for mend in dict.fromkeys(finding.mend for finding in findings):
        yield Text.assemble("    ", ("mend:", "dim"), f" {mend}")
