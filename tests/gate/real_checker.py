"""What the official checker of a real clone says of many trees: one process for all, since its start takes longest."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from harness.gate import Verdict, check_tree
from harness.rules import load
from tests.gate.fake_checker import CLONE

PROGRAM = Path(__file__).with_name("real_checker_program.py")


def refusals(roots: Sequence[Path], round_name: str) -> list[list[str]]:
    """For each tree what the official checker says against it, nothing where it accepts it."""
    done = subprocess.run(
        [sys.executable, "-B", str(PROGRAM), str(CLONE), round_name],
        input="".join(json.dumps(str(root)) + "\n" for root in roots),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=True,
    )
    said = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(said) == len(roots)
    return said


def compare(trees: dict[str, Path], round_name: str) -> tuple[list[str], int]:
    """The names of the trees that the checker refuses and the gate does not, with why; and how many it refuses."""
    said = dict(zip(trees, refusals([*trees.values()], round_name), strict=True))
    refused = {name: why for name, why in said.items() if why}
    pack = load(round_name)
    milder = [
        f"{name}: {why[:3]}"
        for name, why in refused.items()
        if check_tree(trees[name], pack).verdict is not Verdict.REJECT
    ]
    return milder, len(refused)
