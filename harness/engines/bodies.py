"""Chats on disk: one memory-mapped file of JSON objects, of which only a row crosses from process to process.

A body is what a benchmark asks: ``messages``, and where there are any ``tools`` and further fields of a chat
completion. What a run chooses (the model's name, sampling, streaming) is not in it: an engine puts the two together
without reading either.

The file: :data:`MAGIC`; the bodies one after the other; the names of sessions, a JSON list; padding to 8 bytes; n int64
``ends`` (body i ends before ``ends[i]``, counted from the start of the file), n int64 each of ``sessions``, ``tokens``
and ``delays_ns``; two int64, n and how many bytes the names have; :data:`MAGIC`. All little-endian. What is known only
at the end stands there, so that bodies of any size can be written as they are made.
"""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt
import orjson

from harness.engines.base import Int32Array, Int64Array
from harness.errors import ConfigError, DatasetError

Rows: TypeAlias = Sequence[int] | npt.NDArray[np.signedinteger[Any]]

MAGIC: Final = b"CHATS\0\0\3"
COUNTS: Final = struct.Struct("<2q")
INT64: Final = 8
COLUMNS: Final = 4
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
        "min_p",
        "repetition_penalty",
        "presence_penalty",
        "frequency_penalty",
        "max_tokens",
        "max_completion_tokens",
        "stop_token_ids",
        "seed",
    }
)
"""Fields that a run sets; a body that has one would say it twice."""


class BodyStore:
    """n chats; ``store[row]`` is the UTF-8 JSON of one, as a view of the mapped file."""

    __slots__ = ("_ends", "_map", "_ranges", "_view", "delays_ns", "path", "session_names", "sessions", "tokens")

    def __init__(self, path: Path, mapped: mmap.mmap, n: int, index: int, session_names: tuple[str, ...] = ()) -> None:
        self.path = path
        self._map = mapped
        self._view = memoryview(mapped)
        columns = [np.frombuffer(self._view, np.int64, n, index + i * n * INT64) for i in range(COLUMNS)]
        self._ends: Int64Array = columns[0]
        self._ranges: dict[int, range] | None = None
        self.sessions: Int64Array = columns[1]
        """Which conversation each chat belongs to, int64; :data:`NO_SESSION` where it stands alone."""
        self.tokens: Int64Array = columns[2]
        """Prompt tokens of each chat as they were counted when it was made, int64; 0 where nobody counted."""
        self.delays_ns: Int64Array = columns[3]
        """How long whoever asks waits before each chat, after the answer to the one before in its session; int64."""
        self.session_names = session_names
        """What a server is told of each session, by its number; () where it is told the number."""

    @classmethod
    def open(cls, path: Path) -> BodyStore:
        """Maps a file that :meth:`write` wrote. Raises DatasetError."""
        try:
            with path.open("rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError) as error:  # ValueError: the file is empty
            raise _no_store(path, str(error)) from None
        tail = COUNTS.size + len(MAGIC)
        if len(mapped) < len(MAGIC) + tail or mapped[: len(MAGIC)] != MAGIC or mapped[-len(MAGIC) :] != MAGIC:
            raise _no_store(path, "it does not begin and end as one; was it written to its end, by this version?")
        n, named = COUNTS.unpack_from(mapped, len(mapped) - tail)
        index = len(mapped) - tail - COLUMNS * n * INT64
        if n < 0 or index < len(MAGIC):
            raise _no_store(path, f"it says that it holds {n} chats, for which it is too short")
        ends = np.frombuffer(mapped, np.int64, n, index)
        begin = int(ends[-1]) if n else len(MAGIC)
        if n and (int(ends[0]) < len(MAGIC) or begin > index or bool((np.diff(ends) < 0).any())):
            raise _no_store(path, "its index does not rise, or points beyond its chats")
        if named < 0 or begin + named > index:
            raise _no_store(path, "the names of its sessions reach into its index")
        store = cls(path, mapped, n, index, _names_of_json(path, mapped[begin : begin + named]))
        _check_opened(store)
        return store

    @classmethod
    def write(
        cls,
        path: Path,
        bodies: Iterable[Mapping[str, object] | bytes],
        sessions: Sequence[int] | None = None,
        tokens: Sequence[int] | Int64Array | None = None,
        delays_ns: Sequence[int] | Int64Array | None = None,
        session_names: Sequence[str] = (),
    ) -> BodyStore:
        """Writes chats and opens what was written; a file that was there is replaced at the end.

        A body of bytes is one that :func:`encoded` made, and is written as it is. ``sessions`` has one number of at
        least 0 for each chat, or :data:`NO_SESSION`; ``tokens`` the length of each chat's prompt; ``delays_ns`` what
        is waited before it; ``session_names``, where there are any, one text for each session from 0 on, which a
        header can hold and no two share. All are read when all bodies are written. Raises ConfigError for a chat that
        is none and for what does not fit the chats.
        """
        unfinished = path.with_name(path.name + ".part")
        ends: list[int] = []
        try:
            with unfinished.open("wb") as file:
                place = file.write(MAGIC)
                for row, body in enumerate(bodies):
                    where = f"{path}, row {row}"
                    place += file.write(_checked(body, where) if isinstance(body, bytes) else encoded(body, where))
                    ends.append(place)
                n = len(ends)
                of_sessions = _column(path, n, "sessions", sessions, NO_SESSION)
                names = _names_json(path, session_names, of_sessions)
                place += file.write(names)
                file.write(b"\0" * (-place % INT64))
                file.write(np.array(ends, np.int64).tobytes())
                file.write(of_sessions.tobytes())
                file.write(_column(path, n, "tokens", tokens, 0).tobytes())
                file.write(_column(path, n, "delays_ns", delays_ns, 0).tobytes())
                file.write(COUNTS.pack(n, len(names)) + MAGIC)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
        return cls.open(path)

    def rows_of(self, session: int) -> range:
        """The chats of a session, which lie one after the other, in the order in which they are asked.

        Raises IndexError for a session that has none, DatasetError for a store in which they do not lie so.
        """
        if self._ranges is None:
            self._ranges = _ranges(self.path, self.sessions)
        if session not in self._ranges:
            raise IndexError(f"no chat of session {session} in {self.path}")
        return self._ranges[session]

    def session_name(self, row: int) -> str:
        """What a server is told of the session of a row; "" where the chat stands alone."""
        session = int(self.sessions[row])
        if session == NO_SESSION:
            return ""
        return self.session_names[session] if self.session_names else str(session)

    def __len__(self) -> int:
        return len(self._ends)

    def __getitem__(self, row: int) -> memoryview:
        if not 0 <= row < len(self._ends):
            raise IndexError(f"row {row} of {len(self._ends)} chats")
        return self._view[self._start(row) : int(self._ends[row])]

    def will_need(self, rows: Rows) -> None:
        """Has the system read these rows from disk ahead of their use; LoadGen's load. IndexError for others."""
        for start, end in self._stretches(rows):
            self._map.madvise(mmap.MADV_WILLNEED, start, end - start)

    def release(self, rows: Rows) -> None:
        """Gives the memory of these rows back, LoadGen's unload. They are read again where they are asked for."""
        for start, end in self._stretches(rows):
            self._map.madvise(mmap.MADV_DONTNEED, start, end - start)

    def _stretches(self, rows: Rows) -> Iterator[tuple[int, int]]:
        """Bytes of the file, from a page's beginning, that neighbouring rows take together."""
        which = np.unique(np.asarray(rows, np.int64))
        if not len(which):
            return
        if which[0] < 0 or which[-1] >= len(self._ends):
            raise IndexError(f"rows {which[0]} to {which[-1]} of {len(self._ends)} chats")
        breaks = np.flatnonzero(np.diff(which) > 1)
        firsts, lasts = which[[0, *(breaks + 1)]], which[[*breaks, -1]]
        for first, last in zip(firsts.tolist(), lasts.tolist(), strict=True):
            start = self._start(first)
            yield start - start % mmap.PAGESIZE, int(self._ends[last])

    def _start(self, row: int) -> int:
        return int(self._ends[row - 1]) if row else len(MAGIC)


def encoded(body: Mapping[str, object], where: object = None) -> bytes:
    """The UTF-8 JSON of a body, as a store holds it. Raises ConfigError for one that is no chat."""
    if not body.get("messages"):
        raise ConfigError("a chat without messages", where=where, expected="a list under the key messages")
    twice = sorted(RESERVED & body.keys())
    if twice:
        raise ConfigError(f"a chat sets {', '.join(twice)}", where=where, expected="what a run sets is left to it")
    try:
        return orjson.dumps(dict(body))
    except orjson.JSONEncodeError as error:
        raise ConfigError(f"a chat that is no JSON: {error}", where=where) from None


def chat_as_prompt(body: bytes) -> Int32Array:
    """The UTF-8 JSON of a chat as a prompt of a workload with ``chat_prompts``: padded with blanks to whole int32s."""
    return np.frombuffer(body + b" " * (-len(body) % 4), "<i4").astype(np.int32, copy=False)


def chat_of_prompt(prompt: Int32Array) -> bytes:
    """What :func:`chat_as_prompt` packed."""
    return prompt.astype("<i4", copy=False).tobytes().rstrip(b" ")


def _checked(body: bytes, where: object) -> bytes:
    if not (body.startswith(b"{") and body.endswith(b"}")):
        raise ConfigError("a chat that is no JSON object", where=where, expected="the bytes that encoded() made")
    return body


def _column(path: Path, n: int, name: str, told: Sequence[int] | Int64Array | None, least: int) -> Int64Array:
    values = np.full(n, least, np.int64) if told is None else np.array(told, np.int64)
    if len(values) != n or int(values.min(initial=least)) < least:
        raise ConfigError(
            f"{n} chats with {len(values)} {name}, the least {int(values.min(initial=least))}",
            where=path,
            expected=f"one number of at least {least} a chat",
        )
    return values


def _names_json(path: Path, names: Sequence[str], sessions: Int64Array) -> bytes:
    """The names of sessions as they are kept. ConfigError where a session has none, or one that no header may have."""
    if not names:
        return b"[]"
    wanted = int(sessions.max(initial=NO_SESSION)) + 1
    if len(names) < wanted:
        raise ConfigError(
            f"{len(names)} names for {wanted} sessions", where=path, expected="one for each session, from 0 on"
        )
    for session, name in enumerate(names):
        if not is_header_text(name):
            raise ConfigError(
                f"session {session} has the name {name!r}",
                where=path,
                expected="printable ASCII, for it is sent as X-Session-ID, without blanks around it",
            )
    if len(set(names)) < len(names):
        twice = next(name for place, name in enumerate(names) if name in names[:place])
        raise ConfigError(f"two sessions have the name {twice!r}", where=path, expected="a name of its own for each")
    return orjson.dumps(list(names))


def is_header_text(text: str) -> bool:
    """Whether a header can have this value, and means it: printable ASCII, without blanks around it."""
    return bool(text) and text.isascii() and text.isprintable() and text == text.strip()


def _names_of_json(path: Path, text: bytes) -> tuple[str, ...]:
    try:
        names = orjson.loads(text)
    except orjson.JSONDecodeError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) and is_header_text(name) for name in names):
        raise _no_store(path, "the names of its sessions are none")
    return tuple(names)


def _check_opened(store: BodyStore) -> None:
    """What is relied on by whoever reads the columns."""
    least = ((store.sessions, NO_SESSION, "sessions"), (store.tokens, 0, "tokens"), (store.delays_ns, 0, "delays_ns"))
    for column, smallest, name in least:
        if int(column.min(initial=smallest)) < smallest:
            raise _no_store(store.path, f"one of its {name} is {int(column.min())}")
    last = int(store.sessions.max(initial=NO_SESSION))
    if store.session_names and last >= len(store.session_names):
        raise _no_store(store.path, f"it has {len(store.session_names)} names and a session {last}")


def _ranges(path: Path, sessions: Int64Array) -> dict[int, range]:
    """Where the chats of each session lie."""
    begins = np.flatnonzero(np.diff(sessions, prepend=NO_SESSION - 1)).tolist()
    ranges: dict[int, range] = {}
    for begin, end in zip(begins, [*begins[1:], len(sessions)], strict=True):
        session = int(sessions[begin])
        if session == NO_SESSION:
            continue
        if session in ranges:
            raise DatasetError(
                f"the chats of session {session} do not lie together: rows {ranges[session][0]} and {begin} are of it",
                where=path,
                expected="the chats of a session one after the other, in the order in which they are asked",
                mend="make the store again, sorted by session",
            )
        ranges[session] = range(begin, end)
    return ranges


def _no_store(path: Path, why: str) -> DatasetError:
    return DatasetError(
        f"not a store of chats: {why}", where=path, expected="a file that BodyStore.write wrote", mend="make it again"
    )
