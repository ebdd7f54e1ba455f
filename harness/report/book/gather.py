"""A folder as a book, whichever of the two it is: runs, or a submission tree."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from harness.config import Project
from harness.config.models import SubmissionFile
from harness.errors import ConfigError, HarnessError
from harness.ledger.store import RECORD, ResultsStore
from harness.report.book.boundary import with_said
from harness.report.book.content import Book, Source
from harness.report.book.results import gather_results
from harness.report.book.tree import gather_tree
from harness.report.book.tree_round import RoundOfTree, round_of_tree
from harness.rules import LATEST, load

_RUNS: Final = ("*/*/*/*/attempt_*", f"*/*/*/*/*/{RECORD}")
"""What a results folder has: attempts of legs, with a record or cut off before they had one."""
_SUBMISSION: Final = "submission.yaml"
_MEND: Final = "give a results folder, or the folder that holds closed/ or open/"


def kind_of(root: Path) -> Source:
    """Whether a folder holds runs or a submission tree. ConfigError where it is neither, or no folder."""
    try:
        names = {path.name for path in root.iterdir() if path.is_dir()}
    except FileNotFoundError:
        raise ConfigError("no such folder", where=root, mend=_MEND) from None
    except NotADirectoryError:
        raise ConfigError("a file, and not a folder", where=root, mend=_MEND) from None
    except OSError as error:
        raise ConfigError(f"the folder cannot be listed: {error.strerror}", where=root, mend=_MEND) from None
    if names.intersection(load(LATEST).divisions.value):
        return "tree"
    if any(next(root.glob(pattern), None) for pattern in _RUNS):
        return "results"
    inside = next(_trees_below(root), None)
    mend = _MEND if inside is None else f"did you mean {inside}?"
    raise ConfigError("neither runs nor a submission tree in it", where=root, mend=mend)


def gather(
    root: Path,
    *,
    round_: str | None = None,
    submitter: str | None = None,
    results_dir: Path | None = None,
    project: Project | None = None,
) -> Book:
    """The book of a folder. ``round_`` is that of a tree, else it is told by the tree itself; ``submitter`` and
    ``results_dir`` are as :func:`gather_tree` has them. ``project`` says what a results folder is entered as and
    what its systems are; None takes the folder beside it, and else the current one.
    """
    if kind_of(root) == "tree":
        found = round_of_tree(root) if round_ is None else RoundOfTree(load(round_))
        return _noted(gather_tree(root, found.pack, results_dir, submitter), *([found.note] if found.note else []))
    project = project or _project_of(root)
    submission, notes = (None, []) if project is None else _entered(project)
    book = gather_results(ResultsStore(root), submission=submission)
    return _noted(book if project is None else _described(book, project), *notes)


def _project_of(root: Path) -> Project | None:
    """The project that the runs of a results folder are of: the folder beside it, else the current one."""
    folders = (root.absolute().parent, Path.cwd())
    return next((Project(folder) for folder in folders if (folder / _SUBMISSION).is_file()), None)


def _entered(project: Project) -> tuple[SubmissionFile | None, list[str]]:
    """What runs are entered as; None and why where that cannot be told."""
    path = project.root / _SUBMISSION
    if not path.is_file():
        return None, []
    try:
        return project.submission(), []
    except HarnessError as error:
        return None, [f"divisions and categories are not known: {path}: {error.what}"]


def _described(book: Book, project: Project) -> Book:
    """The rows with what a person said of their systems in their boundaries."""
    said = {system: _said(project, system) for system in {row.system for row in book.rows}}
    rows = (dataclasses.replace(row, boundary=with_said(row.boundary, said[row.system])) for row in book.rows)
    return dataclasses.replace(book, rows=tuple(rows))


def _said(project: Project, system: str) -> Mapping[str, object]:
    try:
        return project.system(system).model_dump()
    except HarnessError:  # packaging tells it; here its fields are those that were read off the machine
        return {}


def _noted(book: Book, *notes: str) -> Book:
    return dataclasses.replace(book, notes=(*notes, *book.notes))


def _trees_below(root: Path) -> Iterator[Path]:
    divisions = load(LATEST).divisions.value
    return (path.parent for division in divisions for path in sorted(root.glob(f"*/{division}")) if path.is_dir())
