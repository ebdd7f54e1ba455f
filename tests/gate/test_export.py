from __future__ import annotations

import json
import os
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness.gate import Finding, Severity, check_tree
from harness.gate.agreement import assess
from harness.gate.export import as_json, workflow_commands
from harness.gate.official import OfficialReport, OfficialVerdict
from harness.rules import load

_COMMAND = re.compile(r"::(error|warning|notice) ((?:[a-z]+=[^:,\r\n]*,?)+)::([^\r\n]*)")


def finding(path: str, found: str = "found", severity: Severity = Severity.REJECT) -> Finding:
    return Finding("TREE-X", severity, path, found, "expected", "mend", "source")


def read(command: str) -> tuple[str, dict[str, str], str]:
    """A command as the runner reads it: what is escaped is put back once."""
    match = _COMMAND.fullmatch(command)
    assert match, command
    properties = dict(part.split("=", 1) for part in match[2].split(","))
    return match[1], {key: unescape(value) for key, value in properties.items()}, unescape(match[3])


def unescape(text: str) -> str:
    for escape, letter in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
        text = text.replace(escape, letter)
    return text


def test_a_command_for_each_finding():
    some = [finding("a/b.txt:12"), finding("c", severity=Severity.REVIEW), finding("d", severity=Severity.NOTE)]
    assert [read(command) for command in workflow_commands(Path("tree"), some)] == [
        ("error", {"file": "tree/a/b.txt", "line": "12", "title": "TREE-X"}, "found; expected expected; mend"),
        ("warning", {"file": "tree/c", "title": "TREE-X"}, "found; expected expected; mend"),
        ("notice", {"file": "tree/d", "title": "TREE-X"}, "found; expected expected; mend"),
    ]


def test_what_concerns_the_whole_tree_is_on_no_file():
    (command,) = workflow_commands(Path("tree"), [finding(".")])
    assert read(command)[1] == {"title": "TREE-X"}


@given(st.text(min_size=1), st.text(min_size=1), st.text())
def test_no_name_breaks_a_command(path, found, root):
    (command,) = workflow_commands(Path(root.replace("\0", "")), [finding(path.replace("\0", "x"), found)])
    _, properties, message = read(command)
    assert "\n" not in command
    assert "\r" not in command
    assert set(properties) <= {"file", "line", "title"}
    assert message == f"{found}; expected expected; mend"


# What commands and markup are made of, and any bytes else that a name can have.
ODD = [b"%0A", b"%", b"\n", b"\r", b"::", b":12", b",", b"::error::", b"[red]", b":cat:", b" ", b"\xff"]
PARTS = st.lists(st.one_of(st.sampled_from(ODD), st.binary(min_size=1, max_size=4)), min_size=1, max_size=6)
NAMES = PARTS.map(lambda parts: b"x" + b"".join(parts).replace(b"/", b"_").replace(b"\0", b"_"))


@given(names=st.lists(NAMES, min_size=1, max_size=4, unique=True))
def test_a_tree_of_odd_names_is_told_in_whole_commands(tmp_path_factory, names):
    root = tmp_path_factory.mktemp("odd") / "a tree"
    for name in names:
        (root / "open" / "Acme" / "results" / os.fsdecode(name)).mkdir(parents=True)
    checked = assess(check_tree(root, load("v6.1")), OfficialReport(OfficialVerdict.NOT_RUN, "not asked"))
    commands = list(workflow_commands(root, checked.findings))
    assert len(commands) == len(checked.findings) > 0
    for command in commands:
        read(command)
    data = json.dumps(as_json(checked, load("v6.1"), 1), allow_nan=False)
    assert len(json.loads(data)["findings"]) == len(commands)
