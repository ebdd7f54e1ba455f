"""SHA-256 of the files that a run's record vouches for."""

from __future__ import annotations

import hashlib
from pathlib import Path

from harness.ledger.store import ACCURACY_TXT, LOGS, SAMPLES, USER_CONF


def hash_files(folder: Path) -> dict[str, str]:
    """LoadGen's logs, samples.arrow, user.conf and accuracy.txt of a run, by path below its folder."""
    paths = [*sorted((folder / LOGS).glob("*")), folder / SAMPLES, folder / USER_CONF, folder / ACCURACY_TXT]
    return {path.relative_to(folder).as_posix(): sha256(path) for path in paths if path.is_file()}


def sha256(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal; constant memory."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
