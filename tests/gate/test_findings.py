from __future__ import annotations

import importlib
import pkgutil

import pytest

import tests.gate as gate_tests
from harness import gate
from harness.gate import Finding, Severity, Verdict, ordered, rules, verdict
from harness.gate.findings import printable, rule


def finding(severity: Severity, name: str = "X", path: str = "p") -> Finding:
    return Finding(name, severity, path, "found", "expected", "mend", "source")


def test_ids_are_unique():
    with pytest.raises(ValueError, match="LG-VALID"):
        rule("LG-VALID", Severity.NOTE, "again", mend="no", source="here")


def test_every_rule_says_all():
    assert len(rules()) > 30
    for one in rules().values():
        assert one.broken("p", "found")
        assert one.id == one.id.upper()


def test_a_finding_says_all():
    with pytest.raises(ValueError, match="says all"):
        Finding("X", Severity.NOTE, "p", "", "expected", "mend", "source")


def test_the_verdict_is_the_worst():
    note, review, reject = (finding(s) for s in (Severity.NOTE, Severity.REVIEW, Severity.REJECT))
    assert verdict([]) is verdict([note]) is Verdict.PASS
    assert verdict([note, review]) is Verdict.REVIEW
    assert verdict([note, reject, review]) is Verdict.REJECT


def test_order_and_single_mention():
    note, a, b = finding(Severity.NOTE), finding(Severity.REJECT, "B"), finding(Severity.REJECT, "A")
    assert ordered([note, a, b, a]) == [b, a, note]


def test_texts_fit_a_terminal():
    assert printable("a\nb\x1b[31m\x00\udcff") == r"a\nb\x1b[31m\x00\udcff"
    assert printable("\n") == r"\n"
    assert len(printable("x" * 1000)) == 300


def broken_in_tests() -> set[str]:
    """The rules that the gate's tests break.

    A test module declares them: ``BREACHES``, a table whose fourth column is the rule's id, or ``BREAKS``, the ids that
    its other tests break.
    """
    found: set[str] = set()
    for module in pkgutil.iter_modules(gate_tests.__path__):
        if module.name.startswith("test_"):
            declared = vars(importlib.import_module(f"{gate_tests.__name__}.{module.name}"))
            found |= {breach[3] for breach in declared.get("BREACHES", ())} | set(declared.get("BREAKS", ()))
    return found


def test_every_rule_has_a_test_that_breaks_it():
    elsewhere = {
        "ACC-EMPTY", "LG-ERRORS", "LG-STRAY-LINES", "LG-WARNINGS",
        "MAN-ABSENT", "RUN-FAILED", "RUN-ISSUED", "RUN-OUTSTANDING", "RUN-SUM", "RUN-TURNS-COUNT", "RUN-TURNS-FAILED",
        "RUN-TURNS-SKIPPED", "TREE-UNREADABLE",
    }  # fmt: skip
    for module in pkgutil.iter_modules(gate.__path__):
        importlib.import_module(f"{gate.__name__}.{module.name}")
    ours = {name for name in rules() if not name.startswith("HN-")}  # those are of the runs room
    assert ours - broken_in_tests() == elsewhere
