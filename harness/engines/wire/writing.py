"""From requests and events to frames, each made when it is asked for."""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Iterator, Sequence

import numpy as np

from harness.engines.base import Answers, EngineInfo, Event, Int64Array, Replies, Requests, Tokens, Workload
from harness.engines.frames import (
    ANSWERS,
    FAILURES,
    HEADER,
    MAGIC,
    REPLIES,
    REQUESTS,
    TOKENS,
    Kind,
    frame_of,
    json_frame,
)
from harness.engines.wire.layout import (
    CACHED_TOKENS_TOLD,
    CHATS_IN_CHUNK,
    CHUNK_BYTES,
    INT32,
    INT64,
    ONE_ANSWER,
    ONE_CHAT,
    ONE_REQUEST,
    ONE_TOKEN,
    PROMPT_TOKENS_TOLD,
    TOKENS_IN_CHUNK,
)


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
    if len(event.numbers) == 1:
        yield _one_reply(event)
        return
    ends = np.asarray(event.ends, np.int64)
    of_prompts = [column for column in (event.prompt_tokens, event.cached_tokens) if len(column)]
    told = (PROMPT_TOKENS_TOLD if len(event.prompt_tokens) else 0) | (
        CACHED_TOKENS_TOLD if len(event.cached_tokens) else 0
    )
    for first, last in _pieces(ends, (6 + len(of_prompts)) * INT64):
        parts = [_column((told,)), *_answer_columns(event, ends, first, last)]
        parts.append(_column(event.tokens[first:last]))
        parts += [_column(column[first:last]) for column in of_prompts]
        parts.append(bytes(event.data[_start(ends, first) : int(ends[last - 1])]))
        yield frame_of(REPLIES, last - first, parts)


def _one_reply(event: Replies) -> bytes:
    """The usual event where each request waits for the answer before: arrays would take longer than all the rest."""
    told, numbers = 0, [event.numbers[0], event.ends[0], event.first_ns[0], event.done_ns[0], event.finish[0]]
    numbers.append(event.tokens[0])
    if len(event.prompt_tokens):
        told |= PROMPT_TOKENS_TOLD
        numbers.append(event.prompt_tokens[0])
    if len(event.cached_tokens):
        told |= CACHED_TOKENS_TOLD
        numbers.append(event.cached_tokens[0])
    return frame_of(REPLIES, 1, [_column((told, *numbers)), bytes(event.data[: event.ends[0]])])


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
