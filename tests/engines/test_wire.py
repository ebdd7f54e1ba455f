from __future__ import annotations

import json
import struct
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.engines import frames, wire
from harness.engines.base import (
    Answers,
    Checkpoint,
    EngineInfo,
    Event,
    Failure,
    PromptTable,
    Replies,
    Requests,
    Sampling,
    TokenEvents,
    Tokens,
    Workload,
)
from harness.engines.frames import Decoder, Kind, WireError

INT64 = st.integers(-(2**63), 2**63 - 1)
IDS = st.lists(st.integers(0, 2**31 - 1), max_size=9)
WORKLOADS = st.builds(
    Workload,
    st.text(max_size=9),
    st.builds(
        Sampling,
        temperature=st.floats(0, 2),
        top_p=st.floats(0.01, 1),
        top_k=st.integers(0, 99),
        max_new_tokens=st.integers(1, 99),
        stop_token_ids=st.lists(st.integers(0, 99)).map(tuple),
        seed=st.integers(0, 2**63),
        min_p=st.floats(0, 1),
        repetition_penalty=st.floats(0.1, 2),
        presence_penalty=st.floats(-2, 2),
        frequency_penalty=st.floats(-2, 2),
    ),
    st.sampled_from(TokenEvents),
    st.sampled_from(("", "/data/chats.bodies")),
    st.integers(0, 71),
) | st.builds(
    Workload,
    st.just("x"),
    st.just(Sampling(1.0, 1.0, 0, 8, (), 0)),
    st.just(TokenEvents.ALL),
    st.just(""),
    st.just(0),
    st.booleans(),
    st.booleans(),
)
WORKLOAD = Workload("perf", Sampling(1.0, 1.0, 0, 8, (5,), 0), TokenEvents.FIRST)
CHATS = Workload("perf", Sampling(1.0, 1.0, 0, 8, (5,), 0), TokenEvents.FIRST, bodies="/data/chats.bodies")
NO_PROMPTS = PromptTable.from_lists([])


@st.composite
def some_answers(draw: st.DrawFn) -> Answers:
    answers = draw(st.lists(IDS, min_size=1, max_size=4))
    ends = np.cumsum([len(ids) for ids in answers]).tolist()
    n = len(answers)
    numbers, first, done, finish = (draw(st.lists(INT64, min_size=n, max_size=n)) for _ in range(4))
    return Answers(numbers, np.array([i for ids in answers for i in ids], np.int32), ends, first, done, finish)


@st.composite
def some_tokens(draw: st.DrawFn) -> Tokens:
    told = draw(st.lists(st.tuples(INT64, INT64, st.integers(0, 2**31 - 1)), min_size=1, max_size=4))
    numbers, positions, ids = zip(*told, strict=True)
    return Tokens(numbers, positions, np.array(ids, np.int32), draw(INT64))


@st.composite
def some_replies(draw: st.DrawFn) -> Replies:
    data = draw(st.lists(st.binary(max_size=9), min_size=1, max_size=4))
    ends = np.cumsum([len(reply) for reply in data]).tolist()
    n = len(data)
    numbers, tokens, first, done, finish = (draw(st.lists(INT64, min_size=n, max_size=n)) for _ in range(5))
    maybe = st.just(()) | st.lists(INT64, min_size=n, max_size=n)
    return Replies(numbers, b"".join(data), ends, tokens, first, done, finish, draw(maybe), draw(maybe))


FAILURES = st.builds(Failure, INT64, st.text(max_size=9), st.text(max_size=9))
EVENTS = st.lists(some_answers() | some_tokens() | some_replies() | FAILURES, max_size=5)


def plain(event: Event) -> object:
    if isinstance(event, Answers):
        columns = (event.numbers, event.ends, event.first_ns, event.done_ns, event.finish, event.tokens.tolist())
        return tuple(list(column) for column in columns)
    if isinstance(event, Tokens):
        return (list(event.numbers), list(event.positions), event.tokens.tolist(), event.at_ns)
    if isinstance(event, Replies):
        columns = (event.numbers, event.ends, event.tokens, event.first_ns, event.done_ns, event.finish)
        of_prompts = (event.prompt_tokens, event.cached_tokens)
        return (*map(list, (*columns, *of_prompts)), bytes(event.data))
    return event


def decoded(data: bytes) -> list[frames.Frame]:
    return Decoder().feed(data)


class TestDecoder:
    @given(EVENTS, st.data())
    def test_any_cut_gives_the_same_events(self, events: list[Event], data: st.DataObject) -> None:
        stream = b"".join(frame for event in events for frame in wire.event_frames(event))
        cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=12).map(sorted))
        decoder = Decoder()
        found = []
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            found += decoder.feed(memoryview(stream)[start:end])
        told = [plain(event) for frame in found for event in wire.read_event(frame)]
        assert told == [plain(event) for event in events]

    def test_one_byte_at_a_time(self) -> None:
        stream = frames.json_frame(Kind.FATAL, 0, {"message": "x"}) + frames.signal_frame(Kind.PING, 7)
        decoder = Decoder()
        found = [frame for byte in stream for frame in decoder.feed(bytes([byte]))]
        assert [(frame.kind, frame.n) for frame in found] == [(Kind.FATAL, 0), (Kind.PING, 7)]

    @settings(max_examples=300)
    @given(st.binary(max_size=200))
    def test_garbage_is_an_error_or_no_frame_and_nothing_else(self, data: bytes) -> None:
        try:
            found = decoded(data)
        except WireError:
            return
        assert found == [] or data[:2] == struct.pack("<H", frames.MAGIC)

    @settings(max_examples=300)
    @given(st.sampled_from(Kind), st.integers(0, 2**32 - 1) | st.integers(0, 3), st.binary(max_size=120))
    def test_a_payload_that_is_wrong_is_told(self, kind: Kind, n: int, payload: bytes) -> None:
        (frame,) = decoded(frames.HEADER.pack(frames.MAGIC, kind, n, len(payload)) + payload)
        readers = (
            lambda: wire.read_requests(frame, {0: WORKLOAD}),
            lambda: wire.read_requests(frame, {0: CHATS}),
            lambda: wire.read_counters(frame),
            lambda: wire.read_event(frame),
            lambda: wire.read_workload(frame),
            lambda: wire.read_info(frame),
            lambda: wire.read_fatal(frame),
            lambda: wire.read_drop(frame),
        )
        for read in readers:
            try:
                read()
            except WireError as error:
                assert str(error)

    @pytest.mark.parametrize(
        "header",
        [
            b"GET / HTTP/1.1\r\n\r\n",
            frames.HEADER.pack(frames.MAGIC, 99, 0, 0),
            frames.HEADER.pack(frames.MAGIC, 0, 0, 0),
            frames.HEADER.pack(frames.MAGIC, Kind.PING, 0, frames.MAX_PAYLOAD + 1),
        ],
    )
    def test_what_cannot_be_a_frame_is_told_before_its_payload_comes(self, header: bytes) -> None:
        decoder = Decoder()
        assert decoder.feed(header[:5]) == []
        with pytest.raises(WireError):
            decoder.feed(header[5:])

    def test_arrays_can_be_written_to(self) -> None:
        found = wire.requests_frames(0, a_million_rows(1))
        tokens = wire.read_requests(decoded(next(found))[0], {0: WORKLOAD}).prompts.flat
        tokens[0] = 3
        assert tokens[0] == 3


def a_million_rows(n: int = 1_000_000) -> Requests:
    table = PromptTable.from_lists([[1, 2, 3], [], [9] * 50])
    rows = [i % 3 for i in range(n)]
    return Requests(WORKLOAD, range(n), rows, table, rows)


class TestRequests:
    @given(st.lists(IDS, min_size=1, max_size=6), st.data())
    def test_there_and_back(self, prompts: list[list[int]], data: st.DataObject) -> None:
        prompt_rows = data.draw(st.lists(st.integers(0, len(prompts) - 1), min_size=1, max_size=9))
        n = len(prompt_rows)
        numbers, rows = (data.draw(st.lists(INT64, min_size=n, max_size=n)) for _ in range(2))
        requests = Requests(WORKLOAD, numbers, rows, PromptTable.from_lists(prompts), prompt_rows)
        (frame,) = (frame for data in wire.requests_frames(3, requests) for frame in decoded(data))
        found = wire.read_requests(frame, {3: WORKLOAD})
        assert (list(found.numbers), list(found.rows)) == (numbers, rows)
        assert [found.prompt(i).tolist() for i in range(n)] == [prompts[row] for row in prompt_rows]
        assert found.workload is WORKLOAD

    @given(st.lists(st.tuples(INT64, INT64), min_size=1, max_size=9))
    def test_chats_have_no_prompt(self, asked: list[tuple[int, int]]) -> None:
        numbers, rows = zip(*asked, strict=True)
        (data,) = wire.requests_frames(3, Requests(CHATS, numbers, rows, NO_PROMPTS, ()))
        (frame,) = decoded(data)
        assert len(frame.payload) == 8 * (1 + 2 * len(asked))
        found = wire.read_requests(frame, {3: CHATS})
        assert (list(found.numbers), list(found.rows), found.workload) == (list(numbers), list(rows), CHATS)

    def test_many_chats_become_several_frames(self) -> None:
        n = wire.CHATS_IN_CHUNK + 3
        parts = [
            wire.read_requests(decoded(data)[0], {0: CHATS})
            for data in wire.requests_frames(0, Requests(CHATS, range(n), range(n), NO_PROMPTS, ()))
        ]
        assert [len(part) for part in parts] == [wire.CHATS_IN_CHUNK, 3]
        assert [number for part in parts for number in part.numbers] == list(range(n))

    def test_numpy_columns(self) -> None:
        rows = np.array([2, 0], np.int32)
        requests = Requests(WORKLOAD, np.array([7, 8]), rows, PromptTable.from_lists([[1], [2], [3, 4]]), rows)
        (frame,) = decoded(wire.requests_frame(0, requests, 0, 2))
        found = wire.read_requests(frame, {0: WORKLOAD})
        assert (list(found.numbers), list(found.rows)) == ([7, 8], [2, 0])
        assert found.prompt(0).tolist() == [3, 4]

    def test_frames_are_made_as_they_are_asked_for_and_small(self) -> None:
        found = wire.requests_frames(0, a_million_rows())
        assert isinstance(found, Iterator)
        first = wire.read_requests(decoded(next(found))[0], {0: WORKLOAD})
        second_bytes = next(found)
        second = wire.read_requests(decoded(second_bytes)[0], {0: WORKLOAD})
        assert second.numbers[0] == first.numbers[-1] + 1
        assert 0.9 * wire.CHUNK_BYTES < len(second_bytes) < 1.1 * wire.CHUNK_BYTES

    def test_all_of_a_long_query_come_once(self) -> None:
        requests = a_million_rows(200_000)
        told = [
            number
            for data in wire.requests_frames(0, requests)
            for number in wire.read_requests(decoded(data)[0], {0: WORKLOAD}).numbers
        ]
        assert told == list(range(200_000))

    def test_a_prompt_larger_than_a_chunk_has_a_frame_to_itself(self) -> None:
        long = wire.CHUNK_BYTES
        table = PromptTable(np.zeros(long, np.int32), np.zeros(3, np.int64), np.array([2, long, 2]))
        requests = Requests(WORKLOAD, [1, 2, 3], [0, 1, 2], table, [0, 1, 2])
        assert [decoded(data)[0].n for data in wire.requests_frames(0, requests)] == [1, 1, 1]

    def test_an_unknown_workload_is_told(self) -> None:
        (frame,) = decoded(wire.requests_frame(4, a_million_rows(1), 0, 1))
        with pytest.raises(WireError, match="workload 4"):
            wire.read_requests(frame, {3: WORKLOAD})


def test_a_large_answers_becomes_several_frames() -> None:
    n = 100_000
    tokens = np.arange(2 * n, dtype=np.int32)
    event = Answers(range(n), tokens, range(2, 2 * n + 1, 2), [1] * n, [2] * n, [0] * n)
    found = list(wire.event_frames(event))
    assert len(found) > 3
    assert max(map(len, found)) < 1.1 * wire.CHUNK_BYTES
    numbers, answers = [], []
    for data in found:
        (part,) = wire.read_event(decoded(data)[0])
        assert isinstance(part, Answers)
        numbers += part.numbers
        starts = [0, *part.ends]
        answers += [part.tokens[start:end].tolist() for start, end in zip(starts, part.ends, strict=False)]
    assert numbers == list(range(n))
    assert answers == tokens.reshape(-1, 2).tolist()


def test_large_replies_become_several_frames() -> None:
    n = 3_000
    data = b"".join(b"%05d" % i + b" " * 1_000 for i in range(n))
    ends = range(1_005, 1_005 * n + 1, 1_005)
    event = Replies(range(n), data, ends, [4] * n, [1] * n, [2] * n, [0] * n, range(n), range(n, 2 * n))
    found = list(wire.event_frames(event))
    assert len(found) > 2
    assert max(map(len, found)) < 1.1 * wire.CHUNK_BYTES
    parts = [part for piece in found for part in wire.read_event(decoded(piece)[0]) if isinstance(part, Replies)]
    assert [number for part in parts for number in part.numbers] == list(range(n))
    assert [count for part in parts for count in part.prompt_tokens] == list(range(n))
    assert [count for part in parts for count in part.cached_tokens] == list(range(n, 2 * n))
    assert b"".join(part.data for part in parts) == data


@pytest.mark.parametrize("told", [-1, 4, 2**40])
def test_replies_with_columns_that_nobody_knows(told: int) -> None:
    payload = struct.pack("<7q", told, 1, 2, 3, 4, 0, 5) + b"{}"
    assert wire.read_event(decoded(frames.frame_of(Kind.REPLIES, 1, [struct.pack("<q", 0), payload[8:]]))[0])
    with pytest.raises(WireError, match="do not add up"):
        wire.read_event(decoded(frames.frame_of(Kind.REPLIES, 1, [payload]))[0])


@given(st.dictionaries(st.text(max_size=9), st.integers(0, 2**62), max_size=5))
def test_counters(counters: dict[str, int]) -> None:
    (frame,) = decoded(frames.json_frame(Kind.COUNTERS, 7, counters))
    assert (frame.n, wire.read_counters(frame)) == (7, counters)


@given(st.sets(st.integers(-(2**63), 2**63 - 1), max_size=20))
def test_drop(numbers: set[int]) -> None:
    (frame,) = decoded(wire.drop_frame(sorted(numbers)))
    assert (frame.kind, frame.n) == (Kind.DROP, len(numbers))
    assert wire.read_drop(frame) == numbers


def test_many_tokens_become_several_frames() -> None:
    n = 120_000
    event = Tokens(range(n), [0] * n, np.arange(n, dtype=np.int32), 5)
    parts = [part for data in wire.event_frames(event) for part in wire.read_event(decoded(data)[0])]
    assert len(parts) > 1
    assert [t for part in parts if isinstance(part, Tokens) for t in part.tokens.tolist()] == list(range(n))


@given(WORKLOADS)
def test_workload(workload: Workload) -> None:
    (frame,) = decoded(wire.workload_frame(3, workload))
    assert (frame.n, wire.read_workload(frame)) == (3, workload)


@pytest.mark.parametrize("checkpoint", [None, Checkpoint("tiny", "ab", True, "float32")])
def test_info(checkpoint: Checkpoint | None) -> None:
    info = EngineInfo("torch", 10, 20, 3, checkpoint, {"torch": "2"}, {"threads": 1}, ("stand-in",), ("0", "1"))
    assert wire.read_info(decoded(wire.info_frame(info))[0]) == info


def test_fatal() -> None:
    (frame,) = decoded(frames.json_frame(Kind.FATAL, 0, json.loads('{"message": "no memory"}')))
    assert wire.read_fatal(frame) == "no memory"
