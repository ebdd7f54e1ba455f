"""Answers as they are logged: token ids as little-endian int32."""

from __future__ import annotations

from typing import Final

import numpy as np

from harness.engines.base import Int32Array

TOKEN_BYTES: Final = 4


def token_ids(data: bytes) -> Int32Array:
    """The ids of an answer, int32, 1-D, read-only. ValueError where the bytes are no whole number of ids."""
    return np.frombuffer(data, "<i4").astype(np.int32, copy=False)
