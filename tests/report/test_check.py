from __future__ import annotations

import dataclasses
import io
from pathlib import Path, PurePosixPath

import pytest
from rich.console import Console

from harness.gate import Finding, Severity, TreeReport
from harness.gate.agreement import assess
from harness.gate.metric import ResultMetric
from harness.gate.official import OfficialReport, OfficialVerdict
from harness.gate.row import RowReport
from harness.gate.row_layout import RowPlace
from harness.report.check import lines, plain, workflow_lines

NOT_RUN = OfficialReport(OfficialVerdict.NOT_RUN, "not asked")


def finding(path, rule="TREE-X", severity=Severity.REJECT, **changes):
    return dataclasses.replace(Finding(rule, severity, path, "found", "expected", "mend", "source"), **changes)


def report_of(*findings, rows=()):
    return TreeReport(Path("tree"), "v6.1", tuple(rows), findings)


def text(*findings, rows=(), official=NOT_RUN, **options):
    return plain(lines(assess(report_of(*findings, rows=rows), official), **options))


def test_findings_are_grouped_by_rule_and_source():
    a, b = finding("a"), finding("b", source="another source", mend="another mend")
    out = text(a, b, finding("c"), finding("d", rule="TREE-Y"))
    blocks = out.partition("\nreject\n")[2]
    assert blocks.splitlines() == [
        "  TREE-X  (source)", "    a: found", "    c: found", "    expected: expected", "    mend: mend",
        "  TREE-X  (another source)", "    b: found", "    expected: expected", "    mend: another mend",
        "  TREE-Y  (source)", "    d: found", "    expected: expected", "    mend: mend",
    ]  # fmt: skip


def test_what_differs_is_said_where_it_differs():
    out = text(finding("a", expected="1"), finding("b", expected="2"))
    assert "    a: found (expected: 1)" in out
    assert "    b: found (expected: 2)" in out
    assert "    expected:" not in out


def test_a_mend_is_said_once():
    assert text(*(finding(str(i)) for i in range(5))).count("mend: mend") == 1


@pytest.mark.parametrize(("number", "more"), [(20, ""), (21, "and 1 more"), (60, "and 40 more")])
def test_at_most_twenty_places(number, more):
    out = text(*(finding(f"p{i:02}") for i in range(number)))
    assert out.count(": found") == min(number, 20)
    assert (more in out) and ("more: --json FILE" in out) == bool(more)
    assert text(*(finding(f"p{i:02}") for i in range(number)), shown=None).count(": found") == number


def row(system="Box", scenario="Offline", value=1234.5, findings=(), own="m"):
    place = RowPlace(PurePosixPath("open/Acme/results", system, own, scenario), "open", "Acme", system, "m", scenario)
    return RowReport(
        place=place, layout="loadgen", metric=ResultMetric("k", value, "Tokens/s"), accuracy=83.13, findings=findings
    )


def test_a_line_for_each_row_below_its_system():
    out = text(
        rows=[row(), row(scenario="Server", value=7), row(system="Cluster", findings=(finding("x"),))]
    ).splitlines()
    heads = [number for number, line in enumerate(out) if line.startswith("open/Acme/")]
    assert [out[n] for n in heads] == ["open/Acme/Box", "open/Acme/Cluster"]
    columns = ["benchmark", "scenario", "layout", "gate", "official", "result", "accuracy"]
    assert [word for word in out[1].split() if word in columns] == columns
    assert out[1].index("accuracy") == out[2].index("83.13") == out[3].index("83.13")
    assert ["1,234.50 Tokens/s" in out[2], "7.00 Tokens/s" in out[3]] == [True, True]
    assert out[2].index("pass") == out[1].index("gate")
    assert out[heads[1] + 2].split("  ").count("reject") == 1


def test_an_own_name_of_a_benchmark_is_shown_with_the_official_one():
    assert "  my-m (m)   Offline " in text(rows=[row(own="my-m")])


def test_columns_stand_below_each_other_whatever_the_letters():
    out = text(rows=[row(scenario="系统"), row(scenario="Offline")]).splitlines()
    assert out[2].index("pass") + len("系统") == out[3].index("pass")  # those letters are two columns wide


@pytest.mark.parametrize("name", ["[red]x[/red]", "x\\", "[/]", ":cat:", "a\nb", "\x1b[31m", "\udcff", "x" * 200])
def test_any_name_is_one_line_as_it_is(name):
    rows = [row(system=name, scenario=name)]
    out = io.StringIO()
    console = Console(file=out, width=40, soft_wrap=True, highlight=False)
    found = [finding(f"results/{name.encode('unicode_escape', 'surrogatepass').decode()}")]
    for line in lines(assess(report_of(*found, rows=rows), NOT_RUN)):
        console.print(line)
    assert out.getvalue() == text(*found, rows=rows)
    assert len(out.getvalue().split("\n")) == 13


def test_github_s_lines_end_with_the_counts():
    *commands, official, counts = workflow_lines(assess(report_of(finding("a"), finding(".")), NOT_RUN))
    assert [command[:8] for command in commands] == ["::error "] * 2
    assert official == "official checker: not run: not asked"
    assert counts == "gate v6.1: reject (2 reject, 0 review, 0 note)"


def test_the_official_checker_s_files_are_named():
    official = OfficialReport(
        OfficialVerdict.OK, "fine", log=Path("kept/log.txt"), table=Path("kept/t.csv"), commit="abc-dirty"
    )
    out = text(official=official)
    assert (
        "official checker: ok: fine (clone at abc-dirty)\nofficial log: kept/log.txt\nofficial table: kept/t.csv" in out
    )
    assert "--report-dir DIR keeps it" in text(official=dataclasses.replace(official, log=None))
