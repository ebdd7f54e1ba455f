"""Clones whose submission checker does what a test tells it to, and says it as the real one does."""

from __future__ import annotations

import os
import textwrap
from pathlib import Path

import pytest

from harness.gate.official import CHECKER
from tests.gate.made_tree import write

VARIABLE = "MLPERF_INFERENCE_DIR"
CLONE = os.environ.get(VARIABLE)
needs_clone = pytest.mark.skipif(not CLONE, reason=f"{VARIABLE} names no clone of mlcommons/inference")

LOOKS_OK = "say('INFO', 'SUMMARY: submission looks OK')"
HAS_ERRORS = "say('ERROR', 'SUMMARY: submission has errors'); sys.exit(1)"
CRASHES = "raise KeyError('misc')"

_PROGRAM = """
import argparse, os, pathlib, sys

HEADS = "Organization,Division,Platform,Model,Scenario,Location,Result,Units,Accuracy,inferred"
parser = argparse.ArgumentParser()
parser.add_argument("--input", required=True)
parser.add_argument("--version", default="v5.1", choices={rounds!r})
parser.add_argument("--submitter")
parser.add_argument("--csv", default="summary.csv")
args = parser.parse_args()

def say(level, text):
    print(f"[2026-08-20 10:00:00,000 main.py:1 {{level}}] {{text}}", file=sys.stderr)

def refuse(row, why):
    path = f"{{args.input}}/{{row}}/performance/run_1/mlperf_log_detail.txt"
    say("ERROR", f"{{path}} {{why}}")
    say("ERROR", f"NoResults {{path}}")

def accept(*rows, result="42.5"):
    lines = [HEADS]
    for row in rows:
        division, submitter, _, system, benchmark, scenario = row.split("/")
        place = f"{{args.input}}/{{row}}/performance/run_1"
        cells = [submitter, division, system, benchmark, scenario, place, result, "Tokens/s", "exact_match: 83.1", "0"]
        lines.append(",".join(f'"{{cell}}"' for cell in cells))
    pathlib.Path(args.csv).write_text("".join(line + chr(10) for line in lines))

{body}
"""


def make_clone(folder: Path, body: str, rounds: tuple[str, ...] = ("v6.0", "v6.1")) -> Path:
    """A clone whose checker runs ``body``, which has ``args``, ``say``, ``refuse`` and ``accept``."""
    write(folder / CHECKER, _PROGRAM.format(rounds=list(rounds), body=textwrap.dedent(body)))
    return folder
