"""The runs that a packaged row was made of, where their results folder is at hand: they have what no tree keeps."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from harness.errors import ConfigError
from harness.gate.index import TreeIndex, Unreadable
from harness.ledger.store import LOGS, ResultsStore, StoredRun
from harness.report.book.content import RunView
from harness.report.book.loadgen_run import loadgen_run
from harness.report.book.tree_files import TreeRow

_NO_FOLDER: Final = "a packaged tree has LoadGen's percentiles alone: --results_dir gives the folder of its runs"
_FINGERPRINT: Final = "fingerprint"


@dataclass(frozen=True, slots=True)
class Originals:
    """The runs of the results folder that a tree was packaged from; ``root`` None: no folder is at hand."""

    root: Path | None
    runs: dict[str, StoredRun]

    @classmethod
    def of(cls, results_dir: Path | None) -> Originals:
        """Reads the records of a results folder. ConfigError where there is no such folder."""
        if results_dir is None:
            return cls(None, {})
        if not results_dir.is_dir():
            raise ConfigError("no such results folder", where=results_dir, mend="give the folder that holds the runs")
        return cls(results_dir, {str(run.record.id): run for run in ResultsStore(results_dir).readable_runs()[0]})

    def run(self, row: TreeRow, leg: str, log: PurePosixPath) -> StoredRun | str:
        """The run that a leg of the tree is, by its manifest and by the hash of its ``log``; or why there is none."""
        if self.root is None:
            return _NO_FOLDER
        name = row.leg(leg).get("run")
        if name is None:
            return f"no manifest names the run that was filed as {leg}"
        run = self.runs.get(str(name))
        if run is None:
            return f"{name} is not in {self.root}"
        if run.record.hashes.get(f"{LOGS}/{log.name}") != _sha256(row.index, log):
            return f"{name} in {self.root} has another {log.name} than the tree"
        return run


def completed(packaged: RunView, run: StoredRun, row: TreeRow) -> RunView:
    """What the tree says of a leg, and of its run what no tree keeps. The verdict is the tree's."""
    whole = loadgen_run(run, run.folder.parent, row.pack, alive=False)
    return dataclasses.replace(
        packaged,
        figures=whole.figures,
        counts=whole.counts or packaged.counts,
        failure_kinds=whole.failure_kinds,
        failures=whole.failures,
        subsets=whole.subsets or packaged.subsets,
        comparisons=whole.comparisons,
        turns=whole.turns,
        facts=(*packaged.facts, *(group for group in whole.facts if group[0] == _FINGERPRINT)),
        notes=(*packaged.notes, *whole.notes),
    )


def _sha256(index: TreeIndex, path: PurePosixPath) -> str | None:
    try:
        return index.sha256(path)
    except Unreadable:
        return None
