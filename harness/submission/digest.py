"""Hashes of files, read in pieces: accuracy logs have tens of megabytes."""

from __future__ import annotations

import hashlib
from pathlib import Path

_PIECE_BYTES = 1 << 20


def sha256_of(path: Path) -> str:
    """The sha256 of a file's content, in hex."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return digest.hexdigest()
