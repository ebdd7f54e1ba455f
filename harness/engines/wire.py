"""What goes over the socket between a client and an engine's process: frames of columns.

A frame is a header of 16 bytes (magic, kind, count, length of the payload) and a payload. Requests, tokens and answers
are columns of little-endian int64, one after the other, and at last the token ids as int32; the rest is JSON. Both ends
are on one machine, so columns are written as they lie in memory.

========== ================== ===============================================================================
kind       count              payload
========== ================== ===============================================================================
INFO       0                  JSON of EngineInfo; the first thing an engine says
WORKLOAD   its number         JSON of Workload; requests refer to it by that number
REQUESTS   n requests         workload number; n numbers, n rows, n prompt lengths; the prompts
TOKENS     n tokens           at_ns; n numbers, n positions; n ids
ANSWERS    n answers          n numbers, n ends, n first_ns, n done_ns, n finish; the answers
FAILURES   n failures         JSON, n times [number, kind, message]
CANCEL     of the client      none; the engine forgets all requests and says CANCEL with the same count
PING       of the client      none; the engine says PING with the same count
FATAL      0                  JSON of what ended the engine
========== ================== ===============================================================================
"""

from __future__ import annotations

import dataclasses
import enum
import json
import struct
import sys
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple, TypeVar

import numpy as np

from harness.engines.base import (
    Answers,
    Checkpoint,
    EngineInfo,
    Event,
    Failure,
    Int32Array,
    Int64Array,
    PromptTable,
    Requests,
    Sampling,
    TokenEvents,
    Tokens,
    Workload,
)
from harness.errors import RunBroke

HEADER: Final = struct.Struct("<HHIQ")
MAGIC: Final = 0x6C6D
CHUNK_BYTES: Final = 1 << 20
"""About how much one frame holds: large enough to be cheap, small enough to overlap with work at the other end."""
MAX_PAYLOAD: Final = 1 << 28
FEW: Final = 256
"""Up to so many answers and tokens are encoded and sent in one piece."""
INT64: Final = 8
INT32: Final = 4
ONE_START: Final = np.zeros(1, np.int64)

T = TypeVar("T")

if sys.byteorder != "little":
    raise ImportError("the engine's wire format is for little-endian machines")


class WireError(RunBroke):
    """What came over the socket is not this protocol."""


class Kind(enum.IntEnum):
    """What a frame is; see the module."""

    INFO = 1
    WORKLOAD = 2
    REQUESTS = 3
    TOKENS = 4
    ANSWERS = 5
    FAILURES = 6
    CANCEL = 7
    PING = 8
    FATAL = 9


KINDS: Final = {int(kind): kind for kind in Kind}


class Frame(NamedTuple):
    """One frame; the payload is its own memory, so arrays that view it stay."""

    kind: Kind
    n: int
    payload: bytearray


class Decoder:
    """Makes frames of the bytes of a stream, however they are cut into chunks."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, chunk: bytes | bytearray | memoryview) -> list[Frame]:
        """The frames that this chunk completes. Raises WireError at the first byte that cannot be."""
        if self._rest:
            self._rest += chunk
            if len(self._rest) < self._wanted():
                return []
            chunk, self._rest = self._rest, bytearray()
        frames: list[Frame] = []
        at, size = 0, len(chunk)
        while size - at >= HEADER.size:
            kind, count, payload = _header(chunk, at)
            end = at + HEADER.size + payload
            if end > size:
                break
            frames.append(Frame(kind, count, bytearray(chunk[at + HEADER.size : end])))
            at = end
        if at < size:
            self._rest = bytearray(chunk[at:])
        return frames

    def _wanted(self) -> int:
        """How long the rest must be before it is worth a look: a large frame is not taken apart at every chunk."""
        if len(self._rest) < HEADER.size:
            return HEADER.size
        return HEADER.size + _header(self._rest, 0)[2]


def _header(chunk: bytes | bytearray | memoryview, at: int) -> tuple[Kind, int, int]:
    magic, kind, count, payload = HEADER.unpack_from(chunk, at)
    if magic != MAGIC or kind not in KINDS:
        raise WireError("the bytes on the engine's socket are not frames of this protocol", expected="an engine's host")
    if payload > MAX_PAYLOAD:
        raise WireError(f"a frame of {payload} bytes on the engine's socket", expected=f"at most {MAX_PAYLOAD}")
    return KINDS[kind], count, payload


def signal_frame(kind: Kind, count: int = 0) -> bytes:
    """A frame without a payload."""
    return HEADER.pack(MAGIC, kind, count, 0)


def json_frame(kind: Kind, count: int, content: object) -> bytes:
    """A frame with a JSON payload."""
    payload = json.dumps(content, separators=(",", ":")).encode()
    return HEADER.pack(MAGIC, kind, count, len(payload)) + payload


def info_frame(info: EngineInfo) -> bytes:
    """What an engine says of itself."""
    return json_frame(Kind.INFO, 0, dataclasses.asdict(info))


def workload_frame(number: int, workload: Workload) -> bytes:
    """Gives a workload its number on this connection."""
    content = dataclasses.asdict(workload) | {"token_events": workload.token_events.value}
    return json_frame(Kind.WORKLOAD, number, content)


def requests_frame(workload: int, requests: Requests, first: int, last: int) -> bytes:
    """Requests ``first`` to ``last`` (excluded) of some, with their prompts."""
    if last - first == 1:
        prompt = requests.prompt(first).tobytes()
        columns = array("q", (workload, requests.numbers[first], requests.rows[first], len(prompt) // INT32))
        return HEADER.pack(MAGIC, Kind.REQUESTS, 1, 4 * INT64 + len(prompt)) + columns.tobytes() + prompt
    prompts = [requests.prompt(i) for i in range(first, last)]
    columns = array("q", (workload,))
    parts = [
        columns.tobytes(),
        _column(requests.numbers[first:last]),
        _column(requests.rows[first:last]),
        _column([len(prompt) for prompt in prompts]),
        *(prompt.tobytes() for prompt in prompts),
    ]
    return _frame(Kind.REQUESTS, last - first, parts)


def requests_frames(workload: int, requests: Requests) -> Iterator[bytes]:
    """Frames of about :data:`CHUNK_BYTES`, each made when it is asked for."""
    if len(requests) == 1:
        yield requests_frame(workload, requests, 0, 1)
        return
    window = CHUNK_BYTES // (3 * INT64)
    first = 0
    while first < len(requests):
        rows = np.asarray(requests.prompt_rows[first : first + window])
        sizes = np.cumsum(requests.prompts.lengths[rows] * INT32 + 3 * INT64)
        last = first + max(1, int(np.searchsorted(sizes, CHUNK_BYTES, side="right")))
        yield requests_frame(workload, requests, first, last)
        first = last


def event_frames(event: Event) -> Iterator[bytes]:
    """The frame of an event, or frames where it is large."""
    if isinstance(event, Answers):
        yield from _answers_frames(event)
    elif isinstance(event, Tokens):
        window = CHUNK_BYTES // (2 * INT64 + INT32)
        for first in range(0, len(event.numbers), window):
            yield _tokens_frame(event, first, min(len(event.numbers), first + window))
    else:
        yield json_frame(Kind.FAILURES, 1, [[event.number, event.kind, event.message]])


def _tokens_frame(event: Tokens, first: int, last: int) -> bytes:
    if last - first == 1:
        columns = array("q", (event.at_ns, event.numbers[first], event.positions[first])).tobytes()
        tokens = event.tokens[first:last].tobytes()
        return HEADER.pack(MAGIC, Kind.TOKENS, 1, len(columns) + len(tokens)) + columns + tokens
    parts = [
        array("q", (event.at_ns,)).tobytes(),
        _column(event.numbers[first:last]),
        _column(event.positions[first:last]),
        event.tokens[first:last].tobytes(),
    ]
    return _frame(Kind.TOKENS, last - first, parts)


def _answers_frames(event: Answers) -> Iterator[bytes]:
    if len(event) == 1:
        tokens = event.tokens.tobytes()
        columns = array("q", (event.numbers[0], event.ends[0], event.first_ns[0], event.done_ns[0], event.finish[0]))
        yield HEADER.pack(MAGIC, Kind.ANSWERS, 1, 5 * INT64 + len(tokens)) + columns.tobytes() + tokens
        return
    ends = np.asarray(event.ends, np.int64)
    sizes = ends * INT32 + np.arange(1, len(ends) + 1, dtype=np.int64) * (5 * INT64)
    first, sent, start = 0, 0, 0
    while first < len(event):
        last = max(first + 1, int(np.searchsorted(sizes, sent + CHUNK_BYTES, side="right")))
        end = int(ends[last - 1])
        parts = [
            _column(event.numbers[first:last]),
            (ends[first:last] - start).tobytes(),
            _column(event.first_ns[first:last]),
            _column(event.done_ns[first:last]),
            _column(event.finish[first:last]),
            event.tokens[start:end].tobytes(),
        ]
        yield _frame(Kind.ANSWERS, last - first, parts)
        first, sent, start = last, int(sizes[last - 1]), end


def _column(values: Sequence[int]) -> bytes:
    if isinstance(values, np.ndarray):
        return values.astype(np.int64).tobytes()
    return array("q", values).tobytes()


def _frame(kind: Kind, count: int, parts: Sequence[bytes]) -> bytes:
    return b"".join((HEADER.pack(MAGIC, kind, count, sum(map(len, parts))), *parts))


def read_requests(frame: Frame, workloads: Mapping[int, Workload]) -> Requests:
    """What :func:`requests_frame` wrote."""
    n = frame.n
    columns, flat = _split(frame, 1 + 3 * n)
    workload = workloads.get(columns[0])
    if workload is None:
        raise WireError(f"requests of the workload {columns[0]}, which was not told before")
    lengths = np.array(columns[1 + 2 * n :], np.int64)
    if n == 1:
        starts, total = ONE_START, columns[3]
    else:
        ends = np.cumsum(lengths)
        starts, total = ends - lengths, int(ends[-1]) if n else 0
        if (lengths < 0).any():
            raise _does_not_add_up(frame)
    if total != len(flat):
        raise _does_not_add_up(frame)
    return Requests(workload, columns[1 : 1 + n], columns[1 + n : 1 + 2 * n], _table(flat, starts, lengths), range(n))


def _table(flat: Int32Array, starts: Int64Array, lengths: Int64Array) -> PromptTable:
    """A table of columns that were just found to add up: its own look at them costs more than all the rest here."""
    table = PromptTable.__new__(PromptTable)
    table.flat, table.starts, table.lengths = flat, starts, lengths
    return table


def read_event(frame: Frame) -> list[Event]:
    """The events that an engine's frame tells."""
    n = frame.n
    if frame.kind is Kind.TOKENS:
        columns, tokens = _split(frame, 1 + 2 * n)
        if len(tokens) != n:
            raise _does_not_add_up(frame)
        return [Tokens(columns[1 : 1 + n], columns[1 + n :], tokens, columns[0])]
    if frame.kind is Kind.ANSWERS:
        columns, tokens = _split(frame, 5 * n)
        ends = columns[n : 2 * n]
        if not _rises(ends, len(tokens)):
            raise _does_not_add_up(frame)
        return [Answers(columns[:n], tokens, ends, columns[2 * n : 3 * n], columns[3 * n : 4 * n], columns[4 * n :])]
    if frame.kind is Kind.FAILURES:
        return _checked(frame, lambda failures: [Failure(int(a), str(b), str(c)) for a, b, c in failures])
    raise WireError(f"an engine does not say {frame.kind.name}")


def read_info(frame: Frame) -> EngineInfo:
    """What :func:`info_frame` wrote."""
    return _checked(frame, info_of_json)


def info_of_json(content: dict[str, Any]) -> EngineInfo:
    """An EngineInfo from ``dataclasses.asdict`` of one after JSON, which knows no tuples."""
    checkpoint = content["checkpoint"]
    return EngineInfo(
        **content
        | {
            "checkpoint": None if checkpoint is None else Checkpoint(**checkpoint),
            "not_submittable": tuple(content["not_submittable"]),
            "replicas": tuple(content["replicas"]),
        }
    )


def read_workload(frame: Frame) -> Workload:
    """What :func:`workload_frame` wrote."""
    return _checked(frame, _workload_of_json)


def read_fatal(frame: Frame) -> str:
    """What ended the engine, for people."""
    return _checked(frame, lambda content: str(content["message"]))


def _workload_of_json(content: dict[str, Any]) -> Workload:
    sampling = content["sampling"]
    stop = tuple(sampling["stop_token_ids"])
    return Workload(
        content["dataset"], Sampling(**sampling | {"stop_token_ids": stop}), TokenEvents(content["token_events"])
    )


def _checked(frame: Frame, read: Callable[[Any], T]) -> T:
    try:
        return read(json.loads(frame.payload))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise WireError(f"a frame of the kind {frame.kind.name} holds something else: {error}") from error


def _split(frame: Frame, n_columns: int) -> tuple[list[int], Int32Array]:
    """The int64 numbers a payload begins with, and the int32 ids it ends with."""
    ids = len(frame.payload) - n_columns * INT64
    if ids < 0 or ids % INT32:
        raise _does_not_add_up(frame)
    view = memoryview(frame.payload)
    return view[: n_columns * INT64].cast("q").tolist(), np.frombuffer(frame.payload, np.int32, -1, n_columns * INT64)


def _rises(ends: list[int], total: int) -> bool:
    if len(ends) == 1:
        return ends[0] == total
    return (ends[-1] if ends else 0) == total and not (np.diff(np.array(ends, np.int64), prepend=0) < 0).any()


def _does_not_add_up(frame: Frame) -> WireError:
    name, size = frame.kind.name, len(frame.payload)
    return WireError(f"a frame of the kind {name} with count {frame.n} has {size} bytes, which do not add up")
