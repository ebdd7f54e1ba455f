"""What ``check_submission --profile`` shows people: the figures that were judged, the verdict, then the findings."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from rich.text import Text

from harness.gate.export import counts
from harness.gate.profile import ProfileReport
from harness.report.check import SHOWN, STYLES, rule_lines, rules_together

_UNTOLD = "not told"


def profile_lines(report: ProfileReport, *, shown: int | None = SHOWN) -> Iterator[Text]:
    """All of it; ``shown`` limits the places of one rule, None shows every one."""
    width = max(map(len, report.figures))
    for name, value in report.figures.items():
        yield Text(f"  {name.ljust(width)}  {_UNTOLD if value is None else f'{value:g}'}")
    yield Text()
    verdict = report.verdict.value
    found = ", ".join(f"{number} {name}" for name, number in counts(report.findings).items())
    yield Text.assemble(f"profile {report.name}: ", (verdict, f"bold {STYLES[verdict]}"), f" ({found})")
    for severity, some in itertools.groupby(report.findings, key=lambda f: f.severity):
        yield Text()
        yield Text(severity.value, "bold")
        for group in rules_together(some):
            yield from rule_lines(group, shown)
