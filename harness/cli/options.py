"""Options that several verbs share."""

from __future__ import annotations

import argparse
from pathlib import Path


def comma_list(text: str) -> list[str]:
    """``a,b`` as ``["a", "b"]``; blanks around names do not count. No name at all is refused: whoever wrote
    ``--scenarios=$SCENARIO`` does not mean all there are where the variable is unset.
    """
    names = [part.strip() for part in text.split(",") if part.strip()]
    if not names:
        raise argparse.ArgumentTypeError("a list of no names; leave the option out to take all there are")
    return names


def folder(text: str) -> Path:
    """A path; ``~`` is the home folder, which a shell leaves alone in ``--results_dir=~/runs``."""
    if not text:
        raise argparse.ArgumentTypeError("a path of no letters")
    try:
        return Path(text).expanduser()
    except RuntimeError:
        raise argparse.ArgumentTypeError(f"nobody knows whose home folder is meant by {text!r}") from None


def add_selection(parser: argparse.ArgumentParser) -> None:
    """``--systems``, ``--benchmarks``, ``--scenarios``: comma lists; left out means all there are."""
    for name in ("systems", "benchmarks", "scenarios"):
        parser.add_argument(f"--{name}", type=comma_list, default=[], metavar="A,B", help="comma list; default: all")


def add_variant(parser: argparse.ArgumentParser) -> None:
    """``--variant``: another engine than the one in a benchmark's own file."""
    parser.add_argument(
        "--variant",
        metavar="NAME",
        help="the engine of systems/<system>/<benchmark>.NAME.yaml (default: that of <benchmark>.yaml)",
    )


def add_results_dir(parser: argparse.ArgumentParser) -> None:
    """``--results_dir``: where runs are kept."""
    parser.add_argument(
        "--results_dir",
        type=folder,
        default=Path("results"),
        metavar="DIR",
        help="where runs are kept (default: results)",
    )


def add_quiet(parser: argparse.ArgumentParser) -> None:
    """``--quiet``: nothing is told while the verb runs."""
    parser.add_argument("--quiet", action="store_true", help="print errors and the result alone, no progress")
