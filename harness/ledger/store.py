"""The results folder: who works in it, which runs it holds, where the next goes. Nothing is ever overwritten."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import itertools
import json
import os
import re
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from pydantic import ValidationError

from harness.errors import HarnessError, InUseError, MissingError
from harness.ledger.record import RunId, RunRecord, State

RECORD = "run.json"
LOGS = "logs"
DETAIL = "mlperf_log_detail.txt"
SUMMARY = "mlperf_log_summary.txt"
ACCURACY = "mlperf_log_accuracy.json"
SAMPLES = "samples.arrow"
USER_CONF = "user.conf"
ACCURACY_TXT = "accuracy.txt"
AUDIT_CONFIG = "audit.config"
VERIFY = "verify_*.txt"
"""The verdicts of audits; the round says which audit has which."""

_MAY_BE_WRITTEN = (State.RUNNING, State.MEASURED)

_LOOK_S = 0.2
_ATTEMPT = re.compile(r"attempt_(\d+)")


class LedgerError(HarnessError):
    """A run.json that cannot be read: cut, edited, or of another schema."""

    exit_code = 3


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run and the folder that holds it."""

    folder: Path
    record: RunRecord

    @property
    def logs(self) -> Path:
        """LoadGen's logs, as LoadGen left them."""
        return self.folder / LOGS


class ResultsStore:
    """The runs below one results folder: ``<system>/<benchmark>/<scenario>/<leg>/attempt_<nn>/run.json``."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Holds the folder for this process; InUseError where another holds it. A process that dies lets go."""
        with self._lock_file() as handle:
            try:
                _take(handle)
            except BlockingIOError:
                handle.seek(0)
                holder = handle.read().strip() or "another process"
                raise InUseError(
                    f"the results folder is in use by {holder}",
                    where=self.root,
                    mend="wait for it to end, or give this one its own --results_dir",
                ) from None
            with contextlib.suppress(OSError):  # a full disk: the lock holds all the same, it only names nobody
                handle.truncate(0)
                os.write(handle.fileno(), f"process {os.getpid()}".encode())
            try:
                yield
            finally:
                handle.truncate(0)

    def in_use(self) -> bool:
        """Whether a harness works in the folder. Nothing is made or kept by asking."""
        try:
            with (self.root / ".lock").open(encoding="utf-8") as handle:
                fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:  # no such file: nobody has ever worked here
            return False
        return False

    def _lock_file(self) -> TextIO:
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            return (self.root / ".lock").open("a+", encoding="utf-8")
        except OSError as error:
            raise MissingError(
                f"cannot work in the results folder: {error.strerror}",
                where=self.root,
                mend="make it writable, or give another --results_dir",
            ) from None

    def attempts(self, system: str, benchmark: str, scenario: str, leg: str) -> list[StoredRun]:
        """The attempts of a leg that have a record, oldest first. LedgerError names one that cannot be read."""
        folder = self.root / system / benchmark / scenario / leg
        found = [StoredRun(path.parent, read_record(path)) for path in folder.glob(f"attempt_*/{RECORD}")]
        return sorted(found, key=lambda run: run.record.id.attempt)

    def new_attempt(self, system: str, benchmark: str, scenario: str, leg: str) -> tuple[RunId, Path]:
        """Makes the folder of the next attempt of a leg (1 for the first) and returns its id and path."""
        parent = self.root / system / benchmark / scenario / leg
        parent.mkdir(parents=True, exist_ok=True)
        taken = [int(m.group(1)) for p in parent.iterdir() if (m := _ATTEMPT.fullmatch(p.name))]
        for attempt in itertools.count(max(taken, default=0) + 1):
            folder = parent / f"attempt_{attempt:02d}"
            with contextlib.suppress(FileExistsError):  # somebody else made it meanwhile: take the next
                folder.mkdir()
                break
        return RunId(system=system, benchmark=benchmark, scenario=scenario, leg=leg, attempt=attempt), folder

    def runs(self) -> list[StoredRun]:
        """All runs that have a record, by path. LedgerError names a record that cannot be read."""
        return [StoredRun(path.parent, read_record(path)) for path in self._records()]

    def readable_runs(self) -> tuple[list[StoredRun], list[LedgerError]]:
        """The runs whose records can be read, and what is wrong with the others."""
        found = [_stored_or_why_not(path) for path in self._records()]
        return (
            [run for run in found if isinstance(run, StoredRun)],
            [error for error in found if isinstance(error, LedgerError)],
        )

    def _records(self) -> list[Path]:
        return sorted(self.root.glob(f"*/*/*/*/attempt_*/{RECORD}"))

    def latest_finished(self, system: str, benchmark: str, scenario: str, leg: str) -> StoredRun | None:
        """The newest finished attempt of a leg, whatever its verdict; None where there is none.

        LedgerError names a record of this leg that cannot be read; those of others do not matter.
        """
        done = [run for run in self.attempts(system, benchmark, scenario, leg) if run.record.state is State.FINISHED]
        return done[-1] if done else None


def _take(handle: TextIO) -> None:
    """Takes the lock; BlockingIOError where another has it. Whoever only looked is gone by the second try."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(_LOOK_S)
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _stored_or_why_not(path: Path) -> StoredRun | LedgerError:
    try:
        return StoredRun(path.parent, read_record(path))
    except LedgerError as error:
        return error


def read_record(path: Path) -> RunRecord:
    """Reads and validates one run.json; LedgerError says what is wrong with it."""
    try:
        return RunRecord.model_validate_json(path.read_bytes())
    except OSError as error:
        problem = str(error.strerror)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        problem = ": ".join(filter(None, (".".join(map(str, first["loc"])), first["msg"])))
    raise LedgerError(
        f"not a readable run record: {problem}",
        where=path,
        mend="move the run's folder away (nothing in it is lost), or restore the file",
    )


def write_record(folder: Path, record: RunRecord) -> None:
    """Writes ``run.json`` whole (temporary file, fsync, rename). Refuses to replace the record of a run that ended, and
    to let one that was measured run again.

    What is written has been read back: copies made with ``model_copy`` are unchecked until then.
    """
    path = folder / RECORD
    before = read_record(path).state if path.exists() else State.RUNNING
    if before not in _MAY_BE_WRITTEN or (before is State.MEASURED and record.state is State.RUNNING):
        raise LedgerError("a run that has ended is never written again", where=path)
    text = json.dumps(record.model_dump(mode="json"), indent=1) + "\n"
    RunRecord.model_validate_json(text)
    write_atomically(path, text)


def write_atomically(path: Path, text: str) -> None:
    """Writes a text file so that readers see the old one or the new one; MissingError where the disk is full."""
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as handle:
            temporary = Path(handle.name)
            try:
                handle.write(text)
                handle.flush()
                os.fsync(handle.fileno())
                temporary.chmod(0o644)
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        mend = "free space on this disk; what is measured is kept" if full else "give a file that can be written there"
        raise MissingError(f"cannot write: {error.strerror}", where=path, mend=mend) from error
