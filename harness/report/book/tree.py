"""A packaged submission tree as a book: what is submitted, what the gate says of it, and what its logs tell."""

from __future__ import annotations

import datetime
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath

from harness import __version__
from harness.gate import tree_rules
from harness.gate.findings import Finding
from harness.gate.index import TreeIndex
from harness.gate.tree import TreeReport, check_tree
from harness.report.book.content import Book
from harness.report.book.tree_files import Submitter, TreeRow, said
from harness.report.book.tree_originals import Originals
from harness.report.book.tree_row import RowOfTree, row_of_tree
from harness.rules import RulePack


def gather_tree(root: Path, pack: RulePack, results_dir: Path | None = None, submitter: str | None = None) -> Book:
    """The book of a tree, or of one submitter's part of it: ours or a stranger's, in LoadGen's layout or the endpoints
    client's, by the rules of ``pack``.

    ``results_dir`` is the folder of the runs that it was packaged from: where their hashes are those of the tree, there
    are all figures of them. ConfigError where a folder is not there or cannot be listed; UnknownName where no division
    has that submitter. Whatever else is wrong is a finding.
    """
    originals = Originals.of(results_dir)
    report = check_tree(root, pack, submitter)
    index = TreeIndex(root)
    submitters: dict[PurePosixPath, Submitter] = {}
    rows = []
    for row in report.rows:
        folder = PurePosixPath(row.place.division, row.place.submitter)
        of_submitter = submitters.setdefault(folder, Submitter.read(index, folder))
        rows.append(row_of_tree(TreeRow.read(of_submitter, row, pack), originals))
    rows = list(_with_keys_of_their_own(rows))
    return Book(
        title=f"Submission tree {root.name}" if root.name else "Submission tree",
        source="tree",
        place=str(root),
        round=pack.round,
        made_at=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
        made_by=__version__,
        rows=tuple(row.row for row in rows),
        runs=tuple(run for row in rows for run in row.runs),
        findings=tuple(map(said, report.findings)),
        notes=tuple(_notes(report, index)),
    )


def _with_keys_of_their_own(rows: Iterable[RowOfTree]) -> Iterator[RowOfTree]:
    """Folders that differ in other signs than letters and digits alone would have one key."""
    taken: Counter[str] = Counter()
    for row in rows:
        taken[row.row.key] += 1
        number = taken[row.row.key]
        yield row if number == 1 else row.numbered(number)


def _notes(report: TreeReport, index: TreeIndex) -> Iterator[str]:
    """What of the tree is not shown, and why."""
    yield from (f"{path or '.'}: cannot be listed: {why}" for path, why in index.unreadable.items())
    yield from (_unruled(finding) for finding in report.findings if finding.rule == tree_rules.UNRULED.id)
    if not report.rows:
        yield "there is no row in it that the gate has rules for"


def _unruled(finding: Finding) -> str:
    return f"{finding.path}: {finding.found}, of which there are no rules here: not shown"
