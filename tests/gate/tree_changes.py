"""Changes that break a made-up tree in one place, and what the tests ask of the gate's report on it."""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Callable
from pathlib import Path

import pytest

import tests.gate as gate_tests
from harness.gate import Severity, TreeReport, check_tree
from harness.rules import load
from tests.gate.made_tree import SYSTEM, row

PACK = load("v6.1")
REAL = Path(__file__).parents[3] / "shared" / "data" / "real_v6.0"

Breach = tuple[str, str, Callable[[Path], object], str, str]
"""Name, division, the change of a submitter's folder, the rule that it breaks, the severity."""


def breaches(some: list[Breach]) -> pytest.MarkDecorator:
    """Parametrizes a test over breaches."""
    return pytest.mark.parametrize(
        ("division", "change", "rule", "severity"), [b[1:] for b in some], ids=[b[0].replace(" ", "-") for b in some]
    )


def check(home: Path) -> TreeReport:
    return check_tree(home.parent.parent, PACK)


def breaks(home: Path, change: Callable[[Path], object], rule: str, severity: str) -> None:
    """Asserts that a change breaks the rule, with this severity and no other, and that the verdict is no milder."""
    change(home)
    report = check(home)
    found = {f.severity.value for f in report.findings if f.rule == rule}
    assert found == {severity}, f"{rule}: {found or 'not found'}; found: {sorted(rules_of(report))}"
    assert severity == "note" or report.verdict.value in (severity, "reject")


def rules_of(report: TreeReport) -> set[str]:
    return {f.rule for f in report.findings if f.severity is not Severity.NOTE}


def server(home: Path) -> Path:
    return row(home, "Server")


def box(home: Path) -> Path:
    return home / "systems" / f"{SYSTEM}.json"


def accuracy_text(home: Path) -> Path:
    return server(home) / "accuracy" / "accuracy.txt"


def manifest(home: Path) -> Path:
    return home / "MANIFEST.json"


def replace(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def in_manifest(home: Path, change: Callable[[dict], None]) -> None:
    data = json.loads(manifest(home).read_text())
    change(data)
    manifest(home).write_text(json.dumps(data))


def append(path: Path, line: bytes) -> None:
    with path.open("ab") as file:
        file.write(line + b"\n")


def every_breach() -> list[Breach]:
    """The breaches of a tree that any module of the gate's tests declares, but for what the gate leaves unchecked."""
    found: list[Breach] = []
    for module in pkgutil.iter_modules(gate_tests.__path__):
        if module.name.startswith("test_"):
            declared = getattr(importlib.import_module(f"{gate_tests.__name__}.{module.name}"), "BREACHES", [])
            found += [b for b in declared if len(b) == 5 and callable(b[2]) and b[3] != "TREE-UNRULED"]
    return found
