"""Streaming reader of ``mlperf_log_accuracy.json``: a JSON array, one object a line.

``data`` is the answer's bytes in upper-case hexadecimal: little-endian int32 token ids, or what a chat says as UTF-8.
A log may have several hundred megabytes; memory holds one line of it, and a line is bounded: an array that is not laid
out as LoadGen does is refused. A log that was shortened for submission keeps only its two ends, and is told apart by
:func:`is_shortened`.
"""

from __future__ import annotations

import binascii
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from harness.logs.errors import LogError
from harness.logs.files import FilePass, passing
from harness.logs.values import parse_json, shown

ELLIPSIS = b"..."
"""The line that shortening leaves between the two ends of a log. No log has such a line of its own."""

_TOKEN_BYTES = 4


@dataclass(frozen=True, slots=True)
class AccuracyEntry:
    """One answer: ``sample`` is its row of the data set, ``data`` the answer's bytes as they were handed to LoadGen.

    ``token_count`` is None where LoadGen logged none (runs without token latencies).
    """

    path: Path
    line: int
    sequence: int
    sample: int
    data: bytes
    token_count: int | None

    @property
    def tokens(self) -> npt.NDArray[np.int32]:
        """The data as token ids, int32, 1-D, read-only. LogError where they are no whole number of ids."""
        if len(self.data) % _TOKEN_BYTES:
            raise LogError(f"data of {len(self.data)} bytes", self.path, self.line, expected="whole int32 token ids")
        return np.frombuffer(self.data, dtype="<i4").astype(np.int32, copy=False)


@dataclass(frozen=True, slots=True)
class AccuracyLog:
    """An accuracy log on disk; iterate over it for its entries, as often as wanted."""

    path: Path

    def __iter__(self) -> Iterator[AccuracyEntry]:
        """The entries in the log's order. LogError tells the line of a bad one, and a log that was cut."""
        with passing(self.path) as file:
            yield from self.through(file)

    @staticmethod
    def through(file: FilePass) -> Iterator[AccuracyEntry]:
        """The entries in one pass over a log, after which (or after a LogError) ``file`` tells its hash too."""
        array = _Array(file.path)
        for number, raw in file.lines():
            entry = array.take(number, raw.strip())
            if entry is not None:
                yield entry
        array.end()


def is_shortened(source: Path | FilePass, separator: bytes, kept_bytes: int) -> bool:
    """Whether a log has the separator just where shortening puts it, behind its first ``kept_bytes``.

    Reads no more than that, and takes nothing from a pass that has not begun. LogError where the file cannot be read.
    """
    with passing(source) as file:
        return file.start(kept_bytes + len(separator))[kept_bytes:] == separator


class _Array:
    """Where in the array the reader is: before it, at an item, after a comma, behind it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.place = "before"
        self.line = 0

    def take(self, number: int, text: bytes) -> AccuracyEntry | None:
        self.line = number
        if not text:
            return None
        if text == ELLIPSIS:
            raise LogError("a log that was shortened for submission", self.path, number, mend="take the log of the run")
        if self.place == "before":
            self._step(text == b"[", "item", "'['")
            return None
        if text == b"]" and self.place in ("item", "behind an item"):
            self.place = "behind"
            return None
        self._step(self.place in ("item", "after a comma"), "behind an item", "',' or ']' between entries")
        if text.endswith(b","):
            self.place, text = "after a comma", text[:-1]
        return self._entry(text)

    def _step(self, fits: bool, place: str, expected: str) -> None:
        if not fits:
            raise LogError("not an accuracy log of LoadGen's", self.path, self.line, expected=expected)
        self.place = place

    def _entry(self, text: bytes) -> AccuracyEntry:
        try:
            data = parse_json(text.decode("utf-8"))
        except ValueError:
            what = "an entry that is not JSON" if text.endswith(b"}") else "an entry that is cut in the middle"
            raise LogError(what, self.path, self.line) from None
        if not isinstance(data, dict):
            raise LogError("an entry that is not an object", self.path, self.line)
        count = data.get("token_count")
        return AccuracyEntry(
            path=self.path,
            line=self.line,
            sequence=self._whole(data, "seq_id"),
            sample=self._whole(data, "qsl_idx"),
            data=self._bytes(data.get("data")),
            token_count=None if count is None else self._whole(data, "token_count"),
        )

    def _whole(self, data: dict[str, Any], key: str) -> int:
        value = data.get(key)
        if type(value) is not int or not 0 <= value < 1 << 63:
            what = f"an entry whose {key} is {shown(value, 40)}"
            raise LogError(what, self.path, self.line, expected="a whole number below 2^63")
        return value

    def _bytes(self, text: object) -> bytes:
        if not isinstance(text, str):
            raise LogError("an entry without data", self.path, self.line)
        if len(text) % 2:
            raise LogError(f"data of {len(text)} hexadecimal digits", self.path, self.line, expected="an even number")
        try:
            return binascii.unhexlify(text)
        except ValueError:
            raise LogError("data that is not hexadecimal", self.path, self.line) from None

    def end(self) -> None:
        if self.place != "behind":
            what = "the log is cut: it ends before the array does"
            raise LogError(what, self.path, self.line or None, expected="a last line ']'")
