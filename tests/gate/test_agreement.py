from __future__ import annotations

import dataclasses
from pathlib import PurePosixPath

import pytest

from harness.gate import Severity, Verdict, check_tree
from harness.gate.agreement import assess
from harness.gate.findings import rules
from harness.gate.official import OfficialReport, OfficialVerdict, RowVerdict, run_official
from harness.gate.row_layout import RowPlace
from harness.rules import load
from tests.gate.fake_checker import CRASHES, HAS_ERRORS, LOOKS_OK, VARIABLE, make_clone
from tests.gate.made_tree import BENCHMARK, write

OFFLINE, SERVER = (f"open/Acme/results/Box/{BENCHMARK}/{scenario}" for scenario in ("Offline", "Server"))
ROWS = [OFFLINE, SERVER]

BREAKS = {"OFFICIAL-CHECKER", "OFFICIAL-ROWS", "OFFICIAL-UNUSABLE"}
"""The rules that the tests of this module break."""


@pytest.fixture
def judged(tree, tmp_path, monkeypatch):
    """Checks the small tree, with files removed, beside a checker that runs ``body``."""

    def judge(*body: str, without: tuple[str, ...] = ()):
        home = tree("open")
        for name in without:
            (home.parents[1] / name).unlink()
        (home / "MANIFEST.json").unlink()  # it would tell of what is removed for every row
        monkeypatch.setenv(VARIABLE, str(make_clone(tmp_path / "clone", "\n".join(body))))
        root = home.parents[1]
        return assess(check_tree(root, load("v6.1")), run_official(root, "v6.1"))

    return judge


def words(checked):
    return [checked.official.of(one.place) for one in checked.report.rows]


def official(checked):
    """rule, severity and path of what the official checker's say adds."""
    return [(f.rule, f.severity, f.path) for f in checked.findings if f.rule in BREAKS]


def test_both_accept(judged):
    checked = judged(f"accept(*{ROWS})", LOOKS_OK)
    assert words(checked) == [RowVerdict.ACCEPTS] * 2
    assert (checked.disagreements, official(checked), checked.verdict) == ((), [], Verdict.PASS)


def test_the_official_checker_is_milder(judged):
    checked = judged(f"accept(*{ROWS})", LOOKS_OK, without=(f"{SERVER}/README.md",))
    (one,) = checked.disagreements
    assert (str(one.place), one.what) == (f"open/Acme/Box/{BENCHMARK}/Server", "official accepts, gate rejects")
    assert one.reasons == ("TREE-FILE",)
    assert (official(checked), checked.verdict) == ([], Verdict.REJECT)


def test_the_gate_has_a_hole(judged):
    checked = judged(f"accept({OFFLINE!r})", f"refuse({SERVER!r}, 'is slow')", HAS_ERRORS)
    assert words(checked) == [RowVerdict.ACCEPTS, RowVerdict.REFUSES]
    assert official(checked) == [("OFFICIAL-CHECKER", Severity.REJECT, SERVER)]
    (one,) = checked.disagreements
    assert one.what == "official refuses, gate passes"
    assert one.reasons == (f"{SERVER}/performance/run_1/mlperf_log_detail.txt is slow",)
    assert "is slow" in next(f.found for f in checked.findings if f.rule == "OFFICIAL-CHECKER")
    assert checked.verdict is Verdict.REJECT


@pytest.mark.parametrize(
    ("said", "found"),
    [
        (f"{SERVER}/measurements.json is odd", True),
        (f"open/Acme/results/Box/{BENCHMARK} misses Interactive", True),
        ("open/Acme/systems/Box.json has no status", True),
        ("open/Acme has no src", True),
        (f"{OFFLINE}/README.md is empty", False),
        ("something else", False),
    ],
)
def test_the_lines_of_a_row_are_those_of_its_folder_or_of_what_it_depends_on(judged, said, found):
    line = f"say('ERROR', args.input + '/' + {said!r})"
    nothing = f"say('ERROR', 'NoResults ' + args.input + '/' + {SERVER!r} + '/performance/run_1/x')"
    checked = judged(f"accept({OFFLINE!r})", line, nothing, HAS_ERRORS)
    (one,) = checked.disagreements
    assert one.reasons == ((said,) if found else ("it does not say why",))


def test_both_refuse(judged):
    refusal = f"refuse({SERVER!r}, 'has no README.md')"
    checked = judged(f"accept({OFFLINE!r})", refusal, HAS_ERRORS, without=(f"{SERVER}/README.md",))
    assert (checked.disagreements, official(checked), checked.verdict) == ((), [], Verdict.REJECT)


def test_a_result_of_zero_is_no_result(judged):
    checked = judged(f"accept(*{ROWS}, result='0.0')", HAS_ERRORS)
    assert words(checked) == [RowVerdict.REFUSES] * 2
    assert len(official(checked)) == 2


def test_a_crash_refuses_no_row(judged):
    checked = judged(f"accept({OFFLINE!r})", CRASHES)
    assert words(checked) == [RowVerdict.CRASHED] * 2
    assert official(checked) == [("OFFICIAL-CHECKER", Severity.REJECT, ".")]
    assert checked.disagreements == ()
    assert "KeyError" in next(f.found for f in checked.findings if f.rule == "OFFICIAL-CHECKER")


def test_no_table_is_no_say(judged):
    checked = judged(LOOKS_OK)
    assert words(checked) == [RowVerdict.CRASHED] * 2
    assert official(checked) == [("OFFICIAL-CHECKER", Severity.REJECT, ".")]


def test_rows_that_it_passes_over(judged):
    checked = judged(f"accept({OFFLINE!r})", LOOKS_OK)
    assert words(checked) == [RowVerdict.ACCEPTS, RowVerdict.IGNORES]
    assert official(checked) == [("OFFICIAL-ROWS", Severity.REVIEW, SERVER)]
    assert (checked.disagreements, checked.verdict) == ((), Verdict.REVIEW)


def test_no_row_at_all(judged):
    checked = judged("accept()", LOOKS_OK)
    assert official(checked) == [
        ("OFFICIAL-CHECKER", Severity.REJECT, "."),
        ("OFFICIAL-ROWS", Severity.REVIEW, OFFLINE),
        ("OFFICIAL-ROWS", Severity.REVIEW, SERVER),
    ]


def test_it_refuses_what_the_gate_has_no_row_for(judged):
    other = "open/Acme/results/Box/resnet/Offline"
    checked = judged(f"accept(*{ROWS})", f"refuse({other!r}, 'is slow')", HAS_ERRORS)
    assert official(checked) == [
        ("OFFICIAL-CHECKER", Severity.REJECT, f"{other}/performance/run_1/mlperf_log_detail.txt")
    ]


@pytest.mark.parametrize("name", ["resnet/Offline", "gpt-oss-120b/Offlin"])
def test_both_refuse_what_is_no_row(tree, tmp_path, monkeypatch, name):
    root = tree("closed").parents[1]
    place = f"closed/Acme/results/Box/{name}"
    write(root / place / "README.md", "x")
    body = f"refuse({place!r}, 'is unknown')\n{HAS_ERRORS}"
    monkeypatch.setenv(VARIABLE, str(make_clone(tmp_path / "clone", body)))
    report = check_tree(root, load("v6.1"))
    assert any(f.severity is Severity.REJECT and f.path in place for f in report.findings)
    checked = assess(report, run_official(root, "v6.1"))
    assert [f for f in checked.findings if f.rule == "OFFICIAL-CHECKER"] == []
    assert checked.verdict is Verdict.REJECT


def test_errors_that_are_of_no_row(judged):
    checked = judged(f"accept(*{ROWS})", "say('ERROR', 'the stars stand badly')", HAS_ERRORS)
    assert official(checked) == [("OFFICIAL-CHECKER", Severity.REJECT, ".")]
    assert "the stars" in next(f.found for f in checked.findings if f.rule == "OFFICIAL-CHECKER")


def test_it_was_asked_for_and_could_not_run(tree, tmp_path, monkeypatch):
    monkeypatch.setenv(VARIABLE, str(tmp_path / "absent"))
    root = tree("open").parents[1]
    checked = assess(check_tree(root, load("v6.1")), run_official(root, "v6.1"))
    assert words(checked) == [RowVerdict.NOT_RUN] * 2
    assert official(checked) == [("OFFICIAL-UNUSABLE", Severity.REVIEW, ".")]


def test_it_was_not_asked_for(tree, monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)
    root = tree("open").parents[1]
    checked = assess(check_tree(root, load("v6.1")), run_official(root, "v6.1"))
    assert (words(checked), official(checked)) == ([RowVerdict.NOT_RUN] * 2, [])


def test_rows_whose_names_begin_alike_are_told_apart():
    short = RowPlace(PurePosixPath("open/A/results/B/m/Server"), "open", "A", "B", "m", "Server")
    report = OfficialReport(OfficialVerdict.ERRORS, "x", refused=("open/A/results/B/m/Server2/performance/run_1/x",))
    assert report.of(short) is RowVerdict.IGNORES
    longer = dataclasses.replace(short, folder=PurePosixPath("open/A/results/B/m/Server2"))
    assert report.of(longer) is RowVerdict.REFUSES


def test_the_rules_of_this_module_are_declared():
    assert {name for name in rules() if name.startswith("OFFICIAL-")} == BREAKS
