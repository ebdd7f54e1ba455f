"""An accuracy log for filing: its first and last bytes, and the hash of all of it in accuracy.txt.

The same bytes as the reference's tools/submission/truncate_accuracy_log.py writes. The original is only read.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from harness.errors import Refused
from harness.ledger.hashes import sha256
from harness.rules import RulePack

_HASH_LINE = re.compile(rb"^hash=(\w+)\r?$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class FiledAccuracy:
    """What is filed of an accuracy log: the bytes of both files, and the hash and size of the whole log."""

    log: bytes
    text: bytes
    sha256_full: str
    bytes_full: int


def file_accuracy(log: Path, text: bytes, pack: RulePack) -> FiledAccuracy:
    """Truncates an accuracy log and ends accuracy.txt with its hash.

    What was filed once is given back unchanged: a log under the round's limit whose text has a hash already. Refused
    where the text has a hash and the log is whole but another.
    """
    size = log.stat().st_size
    full = sha256(log)
    hashed = _HASH_LINE.search(text)
    if hashed is not None:
        named = hashed.group(1).decode()
        if size < pack.accuracy_log_max_bytes.value and is_truncated(log, pack):
            return FiledAccuracy(log.read_bytes(), text, named, size)
        if named != full:
            raise Refused(
                "accuracy.txt has the hash of another accuracy log",
                where=log,
                expected=named,
                mend="run the accuracy leg again; results are never mended by hand",
            )
    else:
        text = text + b"\nhash=" + full.encode() + b"\n"
    return FiledAccuracy(_truncated(log, size, pack), text, full, size)


def file_audit(log: Path, pack: RulePack) -> FiledAccuracy:
    """Truncates the accuracy log of an audit; its accuracy.txt is the hash alone.

    Refused where the log is truncated already: the hash of what is left would pass for that of the whole.
    """
    if is_truncated(log, pack):
        raise Refused(
            "the accuracy log of an audit was truncated before",
            where=log,
            expected="the log as LoadGen wrote it",
            mend="restore it, or run the audit again; results are never mended by hand",
        )
    size, full = log.stat().st_size, sha256(log)
    return FiledAccuracy(_truncated(log, size, pack), f"hash={full}\n".encode(), full, size)


def is_truncated(log: Path, pack: RulePack) -> bool:
    """Whether the log has the separator just where truncating puts it."""
    kept = pack.accuracy_log_kept_bytes.value
    separator = pack.accuracy_log_separator.value.encode()
    with log.open("rb") as file:
        file.seek(kept)
        return file.read(len(separator)) == separator


def _truncated(log: Path, size: int, pack: RulePack) -> bytes:
    kept = pack.accuracy_log_kept_bytes.value
    with log.open("rb") as file:
        if size < kept:
            return file.read()
        start = file.read(kept)
        file.seek(size - kept)
        return start + pack.accuracy_log_separator.value.encode() + file.read(kept)
