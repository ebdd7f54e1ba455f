"""SHA-256 of what a run's record vouches for: the files it left, and the source that ran."""

from __future__ import annotations

import functools
import hashlib
from pathlib import Path

import harness
from harness.ledger.store import ACCURACY_TXT, AUDIT_CONFIG, LOGS, SAMPLES, USER_CONF, VERIFY


def hash_files(folder: Path) -> dict[str, str]:
    """LoadGen's logs, samples.arrow, what is kept of turns, what LoadGen was told, the texts on accuracy; by path below
    the run's folder.
    """
    # Who only asks for a version need not wait for Arrow.
    from harness.ledger.turn_report import TURN_REPORT
    from harness.ledger.turns import TURN_REPLIES, TURNS

    own = (SAMPLES, TURNS, TURN_REPLIES, TURN_REPORT, USER_CONF, AUDIT_CONFIG, ACCURACY_TXT)
    paths = [*sorted((folder / LOGS).glob("*")), *(folder / name for name in own), *sorted(folder.glob(VERIFY))]
    return {path.relative_to(folder).as_posix(): sha256(path) for path in paths if path.is_file()}


@functools.cache
def source_sha256() -> str:
    """SHA-256 over the package's Python and YAML files: names and contents, in order."""
    root = Path(harness.__file__).parent
    digest = hashlib.sha256()
    for path in sorted(p for p in root.rglob("*") if p.suffix in {".py", ".yaml"}):
        digest.update(path.relative_to(root).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


def sha256(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal; constant memory."""
    digest = hashlib.sha256()
    with path.open("rb") as handle:
        while chunk := handle.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
