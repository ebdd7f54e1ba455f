"""Options that several verbs share."""

from __future__ import annotations

import argparse
from pathlib import Path


def comma_list(text: str) -> list[str]:
    """``a,b`` as ``["a", "b"]``; blanks around names do not count."""
    return [part.strip() for part in text.split(",") if part.strip()]


def add_selection(parser: argparse.ArgumentParser) -> None:
    """``--systems``, ``--benchmarks``, ``--scenarios``: comma lists; left out means all there are."""
    for name in ("systems", "benchmarks", "scenarios"):
        parser.add_argument(f"--{name}", type=comma_list, default=[], metavar="A,B", help="comma list; default: all")


def add_results_dir(parser: argparse.ArgumentParser) -> None:
    """``--results_dir``: where runs are kept."""
    parser.add_argument(
        "--results_dir",
        type=Path,
        default=Path("results"),
        metavar="DIR",
        help="where runs are kept (default: results)",
    )
