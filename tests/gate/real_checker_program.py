"""The official checker over many trees in one process: ``real_checker_program.py <clone> <round>``.

The trees' roots are the lines of standard input, in JSON. A line for each is written: a JSON list of what it says
against the tree, empty where it accepts it.
"""

from __future__ import annotations

import importlib
import json
import logging
import sys
import tempfile
from pathlib import Path

CHECKER = "tools/submission"


class Said(logging.Handler):
    """Keeps what is logged as an error."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


def said_of(main, root: str, name: str, table: Path) -> list[str]:
    said = Said()
    logging.getLogger().handlers = [said]
    sys.argv = ["main.py", "--input", root, "--version", name, "--csv", str(table)]
    try:
        return [] if main() == 0 else said.lines or ["errors"]
    except Exception as error:  # noqa: BLE001 - whatever it breaks on
        return [f"crashed: {error!r}"]


def run(clone: str, name: str) -> None:
    sys.path.insert(0, str(Path(clone) / CHECKER))
    main = importlib.import_module("submission_checker.main").main
    out, sys.stdout = sys.stdout, sys.stderr  # what it prints is no answer
    with tempfile.TemporaryDirectory() as scratch:
        for line in sys.stdin:
            out.write(json.dumps(said_of(main, json.loads(line), name, Path(scratch) / "summary.csv")) + "\n")


if __name__ == "__main__":
    run(*sys.argv[1:])
