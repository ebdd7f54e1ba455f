"""The whole accuracy logs that a submitter keeps, held against the shortened ones in the tree."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.errors import ConfigError
from harness.gate import original_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.accuracy_text import hash_lines
from harness.gate.findings import Finding
from harness.gate.index import TreeIndex, Unreadable
from harness.gate.row_layout import ACCURACY_FOLDER, RowPlace
from harness.gate.run_facts import ACCURACY, Coverage, Expectation
from harness.logs import AccuracyLog, LogError
from harness.logs.files import FilePass
from harness.rules import RulePack

LOG = "mlperf_log_accuracy.json"
TEXT = "accuracy.txt"
_OF_A_RUN = "attempt_*/logs"
"""Where below a leg's folder in ``results/`` the logs of its attempts are."""


@dataclass(frozen=True, slots=True)
class _Filed:
    """A filed accuracy log: the row and leg it is of, and the folder it lies in."""

    place: RowPlace
    leg: str
    folder: PurePosixPath

    @property
    def log(self) -> PurePosixPath:
        return self.folder / LOG


def check_originals(index: TreeIndex, rows: Iterable[RowPlace], originals: Path, pack: RulePack) -> Iterator[Finding]:
    """What the kept logs below ``originals`` say against the filed ones of LoadGen rows.

    ``originals`` has them where the tree has the filed ones (as the official truncation keeps them), or is a
    ``results/`` folder of this harness. Each is read in a stream.
    """
    for place in rows:
        for filed in _filed(index, place, pack):
            yield from _check(index, filed, originals, pack)


def require_originals(originals: Path) -> None:
    """ConfigError where there is no folder of kept logs."""
    try:
        is_folder = originals.is_dir()
    except OSError:  # a folder above it is closed to us
        is_folder = False
    if not is_folder:
        mend = "give the folder that keeps the whole accuracy logs: results/, or the backup of the truncation"
        raise ConfigError("nothing to check: no such folder", where=originals, mend=mend)


def _filed(index: TreeIndex, place: RowPlace, pack: RulePack) -> Iterator[_Filed]:
    folders = {ACCURACY: place.folder / ACCURACY_FOLDER}
    audits = pack.benchmark(place.benchmark).audit_rules
    folders |= {audit: place.folder / audit / ACCURACY_FOLDER for audit in audits}
    for leg, folder in folders.items():
        if index.has_content(folder / LOG):
            yield _Filed(place, leg, folder)


def _check(index: TreeIndex, filed: _Filed, originals: Path, pack: RulePack) -> Iterator[Finding]:
    try:
        told = hash_lines(index.read_text(filed.folder / TEXT))[-1:]
        content = index.read(filed.log)
    except Unreadable:
        return  # told where the files themselves are checked
    if not told:
        return
    kept = _candidates(filed, originals)
    if not kept:
        yield R.ABSENT.broken(filed.log, f"nothing of it below {originals}")
        return
    hashes: dict[str, str] = {}
    for path in kept:
        try:
            hashes[str(path)] = _sha256(path)
        except LogError as error:
            yield R.ABSENT.broken(filed.log, f"{path}: {error.what}")
            continue
        if hashes[str(path)] == told[0]:
            yield from _whole(filed, path, content, pack)
            return
    if hashes:
        yield R.HASH.broken(filed.log, "; ".join(f"{name} has {found}" for name, found in hashes.items()), told[0])


def _candidates(filed: _Filed, originals: Path) -> list[Path]:
    """Where the whole log may be; of several attempts the newest first."""
    submitter = filed.place.folder.parents[3]
    as_filed = [originals / filed.log.relative_to(start) for start in ("", submitter, submitter / "results")]
    place = filed.place
    leg = originals / place.system / place.benchmark / place.scenario / filed.leg
    of_runs = sorted(leg.glob(f"{_OF_A_RUN}/{LOG}"), reverse=True)
    return [path for path in dict.fromkeys([*as_filed, *of_runs]) if os.path.lexists(path)]


def _sha256(path: Path) -> str:
    with FilePass(path) as file:
        return file.sha256()


def _whole(filed: _Filed, path: Path, content: bytes, pack: RulePack) -> Iterator[Finding]:
    """The kept log has the right hash: whether the filed one is cut from it, and it has all rows."""
    try:
        same = content in (_shortened(path, pack), _whole_content(path, pack))
    except OSError as error:
        yield R.ABSENT.broken(filed.log, f"{path}: cannot be read: {error.strerror}")
        return
    if not same:
        yield R.ENDS.broken(filed.log, f"other bytes than the ends of {path}")
    rules = pack.benchmark(filed.place.benchmark)
    rows = Expectation.of_round(pack, filed.place.benchmark, filed.place.scenario, filed.leg).dataset_rows
    try:
        covers = Coverage.of(AccuracyLog(path), rows)
    except LogError as error:
        yield R.ROWS.broken(filed.log, f"{path}: {error.what}")
        return
    once = filed.leg == ACCURACY or rules.audit_rules[filed.leg].covers_all_rows.value
    if once and (covers.distinct, covers.entries, covers.outside) != (rows, rows, 0):
        found = f"{path} has {covers.entries} entries, {covers.distinct} distinct rows, {covers.outside} outside"
        yield R.ROWS.broken(filed.log, found, f"each of {rows} rows once")


def _shortened(path: Path, pack: RulePack) -> bytes:
    """A log as the official truncation leaves it."""
    kept = pack.accuracy_log_kept_bytes.value
    with path.open("rb") as file:
        start = file.read(kept)
        file.seek(max(0, path.stat().st_size - kept))
        return start + pack.accuracy_log_separator.value.encode() + file.read(kept)


def _whole_content(path: Path, pack: RulePack) -> bytes | None:
    """A log that need not be shortened; None for one that must."""
    return path.read_bytes() if path.stat().st_size <= pack.accuracy_log_max_bytes.value else None
