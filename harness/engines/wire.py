"""What a client and an engine's process tell each other, as frames.

Requests, tokens and answers are columns of little-endian int64, one after the other, and at last the token ids as
int32 or the replies' bytes; the rest is JSON. Both ends are on one machine, so columns are written as they lie in
memory. A lone request, token or answer, which is how a server is asked, takes a shorter way through one ``struct`` to
the same bytes.

========== ================== ===============================================================================
kind       n                  payload
========== ================== ===============================================================================
INFO       0                  JSON of EngineInfo; the first thing an engine says
WORKLOAD   its number         JSON of Workload; requests refer to it by that number
REQUESTS   n requests         workload number; n numbers, n rows; but for chats, n prompt lengths and the prompts
TOKENS     n tokens           at_ns; n numbers, n positions; n ids
ANSWERS    n answers          n numbers, n ends, n first_ns, n done_ns, n finish; the answers
REPLIES    n replies          n numbers, n ends, n first_ns, n done_ns, n finish, n tokens; the replies
FAILURES   n failures         JSON, n times [number, kind, message]
DROP       n requests         n numbers; the engine works no longer on them, and says nothing to it
CANCEL     of the client      none; the engine forgets all requests and says CANCEL with the same n
PING       of the client      none; the engine says PING with the same n
COUNTERS   of the client      none; the engine says COUNTERS with the same n and JSON of what it counted
FATAL      0                  JSON of what ended the engine
========== ================== ===============================================================================
"""

from __future__ import annotations

import dataclasses
import json
import struct
from array import array
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, TypeVar

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
    Replies,
    Requests,
    Sampling,
    TokenEvents,
    Tokens,
    Workload,
)
from harness.engines.frames import (
    ANSWERS,
    FAILURES,
    HEADER,
    MAGIC,
    REPLIES,
    REQUESTS,
    TOKENS,
    Frame,
    Kind,
    WireError,
    frame_of,
    json_frame,
)

CHUNK_BYTES: Final = 1 << 20
"""About how much one frame holds: large enough to be cheap, small enough to overlap with work at the other end."""
INT64: Final = 8
INT32: Final = 4
TOKENS_IN_CHUNK: Final = CHUNK_BYTES // (2 * INT64 + INT32)

ONE_REQUEST: Final = struct.Struct("<4q")
ONE_TOKEN: Final = struct.Struct("<3qi")
ONE_ANSWER: Final = struct.Struct("<5q")
ONE_START: Final = np.zeros(1, np.int64)
ONE_CHAT: Final = struct.Struct("<3q")
NO_PROMPTS: Final = PromptTable.from_lists([])
CHATS_IN_CHUNK: Final = CHUNK_BYTES // (2 * INT64)

T = TypeVar("T")


def info_frame(info: EngineInfo) -> bytes:
    """What an engine says of itself."""
    return json_frame(Kind.INFO, 0, dataclasses.asdict(info))


def workload_frame(number: int, workload: Workload) -> bytes:
    """Gives a workload its number on this connection."""
    content = dataclasses.asdict(workload) | {"token_events": workload.token_events.value}
    return json_frame(Kind.WORKLOAD, number, content)


def requests_frame(workload: int, requests: Requests, first: int, last: int) -> bytes:
    """Requests ``first`` to ``last`` (excluded) of some, with their prompts if they have any."""
    if requests.workload.bodies:
        return _chats_frame(workload, requests, first, last)
    if last - first == 1:
        prompt = requests.prompt(first).tobytes()
        size = len(prompt)
        columns = ONE_REQUEST.pack(workload, requests.numbers[first], requests.rows[first], size // INT32)
        return HEADER.pack(MAGIC, REQUESTS, 1, ONE_REQUEST.size + size) + columns + prompt
    prompts = [requests.prompt(i) for i in range(first, last)]
    parts = [
        _column((workload,)),
        _column(requests.numbers[first:last]),
        _column(requests.rows[first:last]),
        _column([len(prompt) for prompt in prompts]),
        *(prompt.tobytes() for prompt in prompts),
    ]
    return frame_of(REQUESTS, last - first, parts)


def requests_frames(workload: int, requests: Requests) -> Iterator[bytes]:
    """Frames of about :data:`CHUNK_BYTES`, each made when it is asked for."""
    if len(requests) == 1:
        yield requests_frame(workload, requests, 0, 1)
        return
    if requests.workload.bodies:
        for first in range(0, len(requests), CHATS_IN_CHUNK):
            yield _chats_frame(workload, requests, first, min(len(requests), first + CHATS_IN_CHUNK))
        return
    window = CHUNK_BYTES // (3 * INT64)
    first = 0
    while first < len(requests):
        rows = np.asarray(requests.prompt_rows[first : first + window])
        sizes = np.cumsum(requests.prompts.lengths[rows] * INT32 + 3 * INT64)
        last = first + max(1, int(np.searchsorted(sizes, CHUNK_BYTES, side="right")))
        yield requests_frame(workload, requests, first, last)
        first = last


def _chats_frame(workload: int, requests: Requests, first: int, last: int) -> bytes:
    if last - first == 1:
        columns = ONE_CHAT.pack(workload, requests.numbers[first], requests.rows[first])
        return HEADER.pack(MAGIC, REQUESTS, 1, ONE_CHAT.size) + columns
    parts = [_column((workload,)), _column(requests.numbers[first:last]), _column(requests.rows[first:last])]
    return frame_of(REQUESTS, last - first, parts)


def drop_frame(numbers: Sequence[int]) -> bytes:
    """The numbers of requests that nobody waits for any more."""
    return frame_of(Kind.DROP, len(numbers), [_column(numbers)])


def event_frame(event: Event) -> bytes:
    """The frame of a small event, whole."""
    if isinstance(event, Answers):
        if len(event.numbers) == 1:
            tokens = event.tokens.tobytes()
            columns = ONE_ANSWER.pack(
                event.numbers[0], event.ends[0], event.first_ns[0], event.done_ns[0], event.finish[0]
            )
            return HEADER.pack(MAGIC, ANSWERS, 1, ONE_ANSWER.size + len(tokens)) + columns + tokens
        return b"".join(_answers_frames(event))
    if isinstance(event, Tokens):
        if len(event.numbers) == 1:
            columns = ONE_TOKEN.pack(event.at_ns, event.numbers[0], event.positions[0], int(event.tokens[0]))
            return HEADER.pack(MAGIC, TOKENS, 1, ONE_TOKEN.size) + columns
        return _tokens_frame(event, 0, len(event.numbers))
    if isinstance(event, Replies):
        return b"".join(_replies_frames(event))
    return json_frame(FAILURES, 1, [[event.number, event.kind, event.message]])


def event_frames(event: Event) -> Iterator[bytes]:
    """The frames of an event, each made when it is asked for."""
    if isinstance(event, Answers):
        yield from _answers_frames(event)
    elif isinstance(event, Tokens):
        for first in range(0, len(event.numbers), TOKENS_IN_CHUNK):
            yield _tokens_frame(event, first, min(len(event.numbers), first + TOKENS_IN_CHUNK))
    elif isinstance(event, Replies):
        yield from _replies_frames(event)
    else:
        yield event_frame(event)


def _tokens_frame(event: Tokens, first: int, last: int) -> bytes:
    parts = [
        _column((event.at_ns,)),
        _column(event.numbers[first:last]),
        _column(event.positions[first:last]),
        event.tokens[first:last].tobytes(),
    ]
    return frame_of(TOKENS, last - first, parts)


def _answers_frames(event: Answers) -> Iterator[bytes]:
    ends = np.asarray(event.ends, np.int64)
    for first, last in _pieces(ends * INT32, 5 * INT64):
        parts = _answer_columns(event, ends, first, last)
        parts.append(event.tokens[_start(ends, first) : int(ends[last - 1])].tobytes())
        yield frame_of(ANSWERS, last - first, parts)


def _replies_frames(event: Replies) -> Iterator[bytes]:
    ends = np.asarray(event.ends, np.int64)
    for first, last in _pieces(ends, 6 * INT64):
        parts = _answer_columns(event, ends, first, last)
        parts.append(_column(event.tokens[first:last]))
        parts.append(bytes(event.data[_start(ends, first) : int(ends[last - 1])]))
        yield frame_of(REPLIES, last - first, parts)


def _answer_columns(event: Answers | Replies, ends: Int64Array, first: int, last: int) -> list[bytes]:
    return [
        _column(event.numbers[first:last]),
        (ends[first:last] - _start(ends, first)).tobytes(),
        _column(event.first_ns[first:last]),
        _column(event.done_ns[first:last]),
        _column(event.finish[first:last]),
    ]


def _pieces(ends: Int64Array, each: int) -> Iterator[tuple[int, int]]:
    """Cuts answers that end at these bytes, and have ``each`` more of columns, into frames: first and last of each."""
    sizes = ends + np.arange(1, len(ends) + 1, dtype=np.int64) * each
    first, sent = 0, 0
    while first < len(ends):
        last = max(first + 1, int(np.searchsorted(sizes, sent + CHUNK_BYTES, side="right")))
        yield first, last
        first, sent = last, int(sizes[last - 1])


def _start(ends: Int64Array, first: int) -> int:
    return int(ends[first - 1]) if first else 0


def _column(values: Sequence[int]) -> bytes:
    if isinstance(values, np.ndarray):
        return values.astype(np.int64).tobytes()
    return array("q", values).tobytes()


def read_requests(frame: Frame, workloads: Mapping[int, Workload]) -> Requests:
    """What :func:`requests_frame` wrote. A chat has no prompt."""
    n = frame.n
    workload = _workload_of(frame, workloads)
    if workload.bodies:
        return _read_chats(frame, workload)
    if n == 1:
        numbers, rows, lengths, flat = _read_one_request(frame)
        starts = ONE_START
    else:
        columns, flat = _split(frame, 1 + 3 * n)
        numbers, rows = columns[1 : 1 + n], columns[1 + n : 1 + 2 * n]
        lengths = np.array(columns[1 + 2 * n :], np.int64)
        ends = np.cumsum(lengths)
        starts = ends - lengths
        if (lengths < 0).any() or (int(ends[-1]) if n else 0) != len(flat):
            raise _does_not_add_up(frame)
    return Requests(workload, numbers, rows, _table(flat, starts, lengths), range(n))


def _workload_of(frame: Frame, workloads: Mapping[int, Workload]) -> Workload:
    if len(frame.payload) < INT64:
        raise _does_not_add_up(frame)
    number = int.from_bytes(frame.payload[:INT64], "little", signed=True)
    workload = workloads.get(number)
    if workload is None:
        raise WireError(f"requests of the workload {number}, which was not told before")
    return workload


def _read_chats(frame: Frame, workload: Workload) -> Requests:
    n, payload = frame.n, frame.payload
    if len(payload) != (1 + 2 * n) * INT64:
        raise _does_not_add_up(frame)
    columns = _NUMBERS[3].unpack(payload) if n == 1 else _numbers(payload, len(payload))
    return Requests(workload, columns[1 : 1 + n], columns[1 + n :], NO_PROMPTS, ())


def _read_one_request(frame: Frame) -> tuple[Sequence[int], Sequence[int], Int64Array, Int32Array]:
    """Numbers, rows and lengths, one of each; the prompt."""
    payload = frame.payload
    if len(payload) < ONE_REQUEST.size:
        raise _does_not_add_up(frame)
    _, number, row, length = ONE_REQUEST.unpack_from(payload)
    if ONE_REQUEST.size + length * INT32 != len(payload):
        raise _does_not_add_up(frame)
    lengths = np.frombuffer(payload, np.int64, 1, 3 * INT64)
    return (number,), (row,), lengths, np.frombuffer(payload, np.int32, -1, ONE_REQUEST.size)


def _table(flat: Int32Array, starts: Int64Array, lengths: Int64Array) -> PromptTable:
    """A table of columns that were just found to add up: its own look at them costs more than all the rest here."""
    table = PromptTable.__new__(PromptTable)
    table.flat, table.starts, table.lengths = flat, starts, lengths
    return table


def read_drop(frame: Frame) -> frozenset[int]:
    """What :func:`drop_frame` wrote."""
    if len(frame.payload) != frame.n * INT64:
        raise _does_not_add_up(frame)
    return frozenset(_numbers(frame.payload, len(frame.payload)))


def read_event(frame: Frame) -> list[Event]:
    """The events that an engine's frame tells."""
    n = frame.n
    kind = frame.kind
    if kind is TOKENS:
        columns, tokens = _split(frame, 1 + 2 * n)
        if len(tokens) != n:
            raise _does_not_add_up(frame)
        return [Tokens(columns[1 : 1 + n], columns[1 + n :], tokens, columns[0])]
    if kind is ANSWERS:
        columns, tokens = _split(frame, 5 * n)
        if n == 1:
            number, end, first_ns, done_ns, finish = columns
            if end != len(tokens):
                raise _does_not_add_up(frame)
            return [Answers((number,), tokens, (end,), (first_ns,), (done_ns,), (finish,))]
        ends = columns[n : 2 * n]
        if not _rises(ends, len(tokens)):
            raise _does_not_add_up(frame)
        return [Answers(columns[:n], tokens, ends, columns[2 * n : 3 * n], columns[3 * n : 4 * n], columns[4 * n :])]
    if kind is REPLIES:
        return [_read_replies(frame)]
    if kind is FAILURES:
        return _checked(frame, lambda failures: [Failure(int(a), str(b), str(c)) for a, b, c in failures])
    raise WireError(f"an engine does not say {frame.kind.name}")


def _read_replies(frame: Frame) -> Replies:
    n, payload = frame.n, frame.payload
    begin = 6 * n * INT64
    if len(payload) < begin:
        raise _does_not_add_up(frame)
    columns = _numbers(payload, begin)
    ends = columns[n : 2 * n]
    if not _rises(ends, len(payload) - begin):
        raise _does_not_add_up(frame)
    times = columns[2 * n : 3 * n], columns[3 * n : 4 * n]
    return Replies(columns[:n], payload[begin:], ends, columns[5 * n :], *times, columns[4 * n : 5 * n])


def read_counters(frame: Frame) -> dict[str, int]:
    """What an engine says that it counted."""
    return _checked(frame, lambda content: {str(name): int(count) for name, count in content.items()})


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
        content["dataset"],
        Sampling(**sampling | {"stop_token_ids": stop}),
        TokenEvents(content["token_events"]),
        str(content["bodies"]),
        int(content["replica"]),
        bool(content["chat_prompts"]),
    )


def _checked(frame: Frame, read: Callable[[Any], T]) -> T:
    try:
        return read(json.loads(frame.payload))
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise WireError(f"a frame of the kind {frame.kind.name} holds something else: {error}") from error


def _split(frame: Frame, n_columns: int) -> tuple[Sequence[int], Int32Array]:
    """The int64 numbers a payload begins with, and the int32 ids it ends with."""
    payload = frame.payload
    begin = n_columns * INT64
    if len(payload) < begin or (len(payload) - begin) % INT32:
        raise _does_not_add_up(frame)
    numbers = _NUMBERS[n_columns].unpack_from(payload) if n_columns < len(_NUMBERS) else _numbers(payload, begin)
    return numbers, np.frombuffer(payload, np.int32, -1, begin)


_NUMBERS: Final = tuple(struct.Struct(f"<{n}q") for n in range(8))


def _numbers(payload: bytearray, end: int) -> list[int]:
    return memoryview(payload)[:end].cast("q").tolist()


def _rises(ends: Sequence[int], total: int) -> bool:
    return (ends[-1] if ends else 0) == total and not (np.diff(np.array(ends, np.int64), prepend=0) < 0).any()


def _does_not_add_up(frame: Frame) -> WireError:
    name, size = frame.kind.name, len(frame.payload)
    return WireError(f"a frame of the kind {name} with count {frame.n} has {size} bytes, which do not add up")
