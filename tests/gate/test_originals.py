"""The whole accuracy logs that a submitter keeps."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.errors import ConfigError
from harness.gate import Finding, check_tree
from harness.rules import load
from tests.gate.full_length import ACCURACY_LOG, BENCHMARK
from tests.gate.made_tree import SCENARIOS, SYSTEM, row, sha256, shorten, write
from tests.gate.tree_changes import accuracy_text

PACK = load("v6.1")


@pytest.fixture
def kept(loadgen_runs, tmp_path) -> Callable[..., Path]:
    """Makes a folder that keeps the log of each row's accuracy leg, at ``place`` of the scenario."""

    def make(place: str) -> Path:
        for scenario in SCENARIOS:
            path = tmp_path / "kept" / place.format(scenario=scenario) / ACCURACY_LOG
            path.parent.mkdir(parents=True)
            shutil.copy(loadgen_runs[scenario, "accuracy"] / ACCURACY_LOG, path)
        return tmp_path / "kept"

    return make


AS_FILED = f"{{division}}/Acme/results/{SYSTEM}/{BENCHMARK}/{{{{scenario}}}}/accuracy"
OF_THE_SERVER = f"open/Acme/results/{SYSTEM}/{BENCHMARK}/Server/accuracy/{ACCURACY_LOG}"


def findings(home: Path, originals: Path) -> list[Finding]:
    every = check_tree(home.parents[1], PACK, originals=originals).findings
    return [f for f in every if f.rule.startswith("ORIGINAL-")]


@pytest.mark.parametrize(
    "place",
    [
        AS_FILED.format(division="open"),
        f"results/{SYSTEM}/{BENCHMARK}/{{scenario}}/accuracy",
        f"{SYSTEM}/{BENCHMARK}/{{scenario}}/accuracy",
        f"{SYSTEM}/{BENCHMARK}/{{scenario}}/accuracy/attempt_01/logs",
    ],
)
def test_where_logs_are_kept(tree, kept, place):
    assert findings(tree("open"), kept(place)) == []


def test_the_attempt_that_is_filed_is_found_among_others(tree, kept):
    originals = kept(f"{SYSTEM}/{BENCHMARK}/{{scenario}}/accuracy/attempt_01/logs")
    other = originals / SYSTEM / BENCHMARK / "Server" / "accuracy" / "attempt_02" / "logs" / ACCURACY_LOG
    write(other, "[\n]\n")
    assert findings(tree("open"), originals) == []


def change_whole(path: Path, home: Path, change: Callable[[list[bytes]], list[bytes]]) -> None:
    """Another whole log of which hash line and filed ends are right."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(change(lines)))
    filed = row(home, "Server") / "accuracy" / ACCURACY_LOG
    shutil.copy(path, filed)
    shorten(filed)
    text = accuracy_text(home).read_text()
    accuracy_text(home).write_text(text.partition("hash=")[0] + f"hash={sha256(path)}\n")


# Each: what is done to the kept log of Server and to the tree, the rule that it breaks, its severity.
CASES: list[tuple[str, Callable[[Path, Path], object], str, str]] = [
    ("log gone", lambda p, h: p.unlink(), "ORIGINAL-ABSENT", "review"),
    ("a folder for a log", lambda p, h: (p.unlink(), p.mkdir()), "ORIGINAL-ABSENT", "review"),
    ("link to nothing", lambda p, h: (p.unlink(), p.symlink_to("gone")), "ORIGINAL-ABSENT", "review"),
    ("edited log", lambda p, h: p.write_bytes(p.read_bytes() + b"\n"), "ORIGINAL-HASH", "reject"),
    (
        "shortened log",
        lambda p, h: shutil.copy(row(h, "Server") / "accuracy" / ACCURACY_LOG, p),
        "ORIGINAL-HASH",
        "reject",
    ),
    (
        "ends of another log",
        lambda p, h: shutil.copy(
            row(h, "Offline") / "accuracy" / ACCURACY_LOG, row(h, "Server") / "accuracy" / ACCURACY_LOG
        ),
        "ORIGINAL-ENDS",
        "reject",
    ),
    (
        "a row less",
        lambda p, h: change_whole(p, h, lambda lines: [*lines[:100], *lines[101:]]),
        "ORIGINAL-ROWS",
        "reject",
    ),
    (
        "a row twice",
        lambda p, h: change_whole(p, h, lambda lines: [*lines[:100], *lines[99:]]),
        "ORIGINAL-ROWS",
        "reject",
    ),
    (
        "cut in the middle",
        lambda p, h: change_whole(p, h, lambda lines: lines[:-1]),
        "ORIGINAL-ROWS",
        "reject",
    ),
]


BREAKS = {case[2] for case in CASES}


@pytest.mark.parametrize(("change", "rule", "severity"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_one_change_breaks_a_rule(tree, kept, change, rule, severity):
    home, originals = tree("open"), kept(AS_FILED.format(division="open"))
    change(originals / OF_THE_SERVER, home)
    (found,) = findings(home, originals)
    assert (found.rule, found.severity.value) == (rule, severity)
    assert found.path == OF_THE_SERVER


def test_audits_have_logs_too(tree, kept, loadgen_runs):
    home, originals = tree("closed"), kept(AS_FILED.format(division="closed"))
    folder = row(home, "Server") / "TEST07" / "accuracy"
    log = write(folder / ACCURACY_LOG, "[\n]\n")
    write(folder / "accuracy.txt", f"hash={sha256(log)}\n")
    (found,) = [f for f in findings(home, originals) if "Server/TEST07" in f.path]
    assert found.rule == "ORIGINAL-ABSENT"
    copy = originals / log.relative_to(home.parents[1])
    write(copy, "[\n]\n")
    (found,) = [f for f in findings(home, originals) if "Server/TEST07" in f.path]
    assert (found.rule, found.expected) == (
        "ORIGINAL-ROWS",
        f"each of {PACK.benchmark(BENCHMARK).audit_rules['TEST07'].rows.value} rows once",
    )


def test_the_tree_itself_keeps_nothing(tree):
    home = tree("open")
    assert {f.rule for f in findings(home, home.parents[1])} == {"ORIGINAL-HASH"}


@pytest.mark.parametrize("make", [lambda p: None, lambda p: p.write_text("x")])
def test_originals_that_are_no_folder(tree, tmp_path, make):
    make(tmp_path / "originals")
    with pytest.raises(ConfigError, match="no such folder") as caught:
        findings(tree("open"), tmp_path / "originals")
    assert caught.value.exit_code == 2
