"""From frames to requests and events. Raises WireError for a frame that does not add up."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Mapping, Sequence
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
from harness.engines.frames import ANSWERS, FAILURES, REPLIES, TOKENS, Frame, WireError
from harness.engines.wire.layout import CACHED_TOKENS_TOLD, INT32, INT64, ONE_REQUEST, PROMPT_TOKENS_TOLD

ONE_START: Final = np.zeros(1, np.int64)
NO_PROMPTS: Final = PromptTable.from_lists([])

T = TypeVar("T")


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
    told = int.from_bytes(payload[:INT64], "little", signed=True)
    if not 0 <= told <= PROMPT_TOKENS_TOLD | CACHED_TOKENS_TOLD:
        raise _does_not_add_up(frame)
    begin = (1 + (6 + told.bit_count()) * n) * INT64
    if len(payload) < begin:
        raise _does_not_add_up(frame)
    numbers = _numbers(payload, begin)
    columns = [numbers[1 + place * n : 1 + (place + 1) * n] for place in range(6 + told.bit_count())]
    if not _rises(columns[1], len(payload) - begin):
        raise _does_not_add_up(frame)
    return Replies(
        numbers=columns[0],
        data=payload[begin:],
        ends=columns[1],
        tokens=columns[5],
        first_ns=columns[2],
        done_ns=columns[3],
        finish=columns[4],
        prompt_tokens=columns[6] if told & PROMPT_TOKENS_TOLD else (),
        cached_tokens=columns[-1] if told & CACHED_TOKENS_TOLD else (),
    )


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
        bool(content["usage_optional"]),
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
    if len(ends) == 1:  # as nearly all frames: numpy would cost as much as all else of reading one
        return 0 <= ends[0] == total
    return (ends[-1] if ends else 0) == total and not (np.diff(np.array(ends, np.int64), prepend=0) < 0).any()


def _does_not_add_up(frame: Frame) -> WireError:
    name, size = frame.kind.name, len(frame.payload)
    return WireError(f"a frame of the kind {name} with count {frame.n} has {size} bytes, which do not add up")
