"""Chats on disk: one memory-mapped file of JSON objects, of which only a row crosses from process to process.

A body is what a benchmark asks: ``messages``, and where there are any ``tools`` and further fields of a chat
completion. What a run chooses (the model's name, sampling, streaming) is not in it: an engine puts the two together
without reading either.

The file: :data:`MAGIC`, the bodies one after the other, padding to 8 bytes, n int64 ``ends`` (body i ends before
``ends[i]``, counted from the start of the file), n int64 ``sessions``, n as int64, :data:`MAGIC`. All little-endian.
What is known only at the end stands there, so that bodies of any size can be written as they are made.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

import numpy as np
import orjson

from harness.engines.base import Int64Array
from harness.errors import ConfigError, DatasetError

MAGIC: Final = b"CHATS\0\0\1"
COUNT: Final = struct.Struct("<q")
NO_SESSION: Final = -1
RESERVED: Final = frozenset(
    {
        "model",
        "n",
        "stream",
        "stream_options",
        "temperature",
        "top_p",
        "top_k",
        "max_tokens",
        "max_completion_tokens",
        "stop_token_ids",
        "seed",
    }
)
"""Fields that a run sets; a body that has one would say it twice."""


class BodyStore:
    """n chats; ``store[row]`` is the UTF-8 JSON of one, as a view of the mapped file."""

    __slots__ = ("_ends", "_view", "path", "sessions")

    def __init__(self, path: Path, view: memoryview, ends: Int64Array, sessions: Int64Array) -> None:
        self.path = path
        self.sessions = sessions
        """Which conversation each chat belongs to, int64; :data:`NO_SESSION` where it stands alone."""
        self._view = view
        self._ends = ends

    @classmethod
    def open(cls, path: Path) -> BodyStore:
        """Maps a file that :meth:`write` wrote. Raises DatasetError."""
        try:
            with path.open("rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # ValueError: the file is empty
            raise _no_store(path, str(error)) from None
        view = memoryview(mapped)
        tail = COUNT.size + len(MAGIC)
        if len(view) < len(MAGIC) + tail or bytes(view[: len(MAGIC)]) != MAGIC or bytes(view[-len(MAGIC) :]) != MAGIC:
            raise _no_store(path, "it does not begin and end as one; was it written to its end?")
        (n,) = COUNT.unpack_from(view, len(view) - tail)
        index = len(view) - tail - 2 * n * COUNT.size
        if n < 0 or index < len(MAGIC):
            raise _no_store(path, f"it says that it holds {n} chats, for which it is too short")
        ends = np.frombuffer(view, np.int64, n, index)
        sessions = np.frombuffer(view, np.int64, n, index + n * COUNT.size)
        if n and (int(ends[0]) < len(MAGIC) or int(ends[-1]) > index or bool((np.diff(ends) < 0).any())):
            raise _no_store(path, "its index does not rise, or points beyond its chats")
        return cls(path, view, ends, sessions)

    @classmethod
    def write(
        cls, path: Path, bodies: Iterable[Mapping[str, object]], sessions: Sequence[int] | None = None
    ) -> BodyStore:
        """Writes chats and opens what was written; a file that was there is replaced at the end.

        ``sessions`` has one number of at least 0 for each chat, or :data:`NO_SESSION`. Raises ConfigError for a chat
        that is none.
        """
        unfinished = path.with_name(path.name + ".part")
        ends: list[int] = []
        try:
            with unfinished.open("wb") as file:
                place = file.write(MAGIC)
                for row, body in enumerate(bodies):
                    place += file.write(_encoded(path, row, body))
                    ends.append(place)
                file.write(b"\0" * (-place % COUNT.size))
                told = [NO_SESSION] * len(ends) if sessions is None else list(sessions)
                if len(told) != len(ends) or min(told, default=0) < NO_SESSION:
                    raise ConfigError(
                        f"{len(ends)} chats with {len(told)} sessions, the least {min(told, default=0)}",
                        where=path,
                        expected=f"one session a chat, at least {NO_SESSION}",
                    )
                file.write(np.array(ends, np.int64).tobytes() + np.array(told, np.int64).tobytes())
                file.write(COUNT.pack(len(ends)) + MAGIC)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        return cls.open(path)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, row: int) -> memoryview:
        if not 0 <= row < len(self._ends):
            raise IndexError(f"row {row} of {len(self._ends)} chats")
        return self._view[int(self._ends[row - 1]) if row else len(MAGIC) : int(self._ends[row])]


def _encoded(path: Path, row: int, body: Mapping[str, object]) -> bytes:
    where = f"{path}, row {row}"
    if not body.get("messages"):
        raise ConfigError("a chat without messages", where=where, expected="a list under the key messages")
    twice = sorted(RESERVED & body.keys())
    if twice:
        raise ConfigError(f"a chat sets {', '.join(twice)}", where=where, expected="what a run sets is left to it")
    try:
        return orjson.dumps(dict(body))
    except orjson.JSONEncodeError as error:
        raise ConfigError(f"a chat that is no JSON: {error}", where=where) from None


def _no_store(path: Path, why: str) -> DatasetError:
    return DatasetError(
        f"not a store of chats: {why}", where=path, expected="a file that BodyStore.write wrote", mend="make it again"
    )
