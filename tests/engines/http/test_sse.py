"""The scanner of event streams, against a plain reading of the whole."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.engines.base import Finish
from harness.engines.http import ids as ids_module
from harness.engines.http.dialects import DIALECTS
from harness.engines.http.ids import Expected, IdsReader
from harness.engines.http.problems import BadAnswer
from harness.engines.http.sse import EventStream
from tests.engines.http.play import MODEL, event, stream, usage

STOP = 200_002
IDS = st.lists(st.integers(0, 200_001), max_size=6)


def plain(stream: bytes) -> list[str]:
    """The data of a stream's events, after the standard's own words, line by line."""
    text = stream.decode().replace("\r\n", "\n").replace("\r", "\n")
    found: list[str] = []
    data: list[str] | None = None
    for line in text.split("\n")[:-1]:
        if line == "":
            if data is not None:
                found.append("\n".join(data))
            data = None
            continue
        name, _, value = line.partition(":")
        if name == "data" and ":" in line:
            data = [*(data or []), value.removeprefix(" ")]
    return found


def cut(data: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted({min(place, len(data)) for place in places}), len(data)]
    return [data[a:b] for a, b in itertools.pairwise(edges)]


LINES = st.lists(
    st.one_of(
        st.just(""),
        st.text(alphabet='ab :{}"[]', max_size=8).map("data:".__add__),
        st.text(alphabet="ab :", max_size=8).map("data: ".__add__),
        st.sampled_from([": ping", "event: message", "id: 5", "retry: 10", "datax: 1", 'data: {"a": 1}']),
    ),
    max_size=30,
)


@settings(deadline=None)
@given(lines=LINES, ends=st.lists(st.sampled_from(["\n", "\r\n", "\r"]), min_size=30, max_size=30), data=st.data())
def test_events_of_any_stream_cut_anywhere(lines: list[str], ends: list[str], data: st.DataObject) -> None:
    stream = "".join(line + end for line, end in zip(lines, ends, strict=False)).encode()
    places = data.draw(st.lists(st.integers(0, len(stream)), max_size=20))
    scanner = EventStream()
    found = [each.decode() for piece in cut(stream, places) for each in scanner.events(piece)]
    expected = plain(stream)
    # a carriage return at the very end may be half of a line's end: its event is whole with the next byte
    assert found == expected or (stream.endswith(b"\r") and [*found, *expected[len(found) :]] == expected)
    found += [each.decode() for each in scanner.events(b"\n")]
    assert found == plain(stream + b"\n")


@st.composite
def answers(draw: st.DrawFn) -> tuple[bytes, list[int], str]:
    """A completion as a server may frame it, its ids and its finish."""
    finish = draw(st.sampled_from(["stop", "length"]))
    pieces = draw(st.lists(IDS, min_size=1, max_size=12))
    if finish == "stop" and draw(st.booleans()):
        pieces[-1] = [*pieces[-1], STOP]
    ids = [each for piece in pieces for each in piece]
    contents: list[Any] = [event(piece, finish if i == len(pieces) - 1 else None) for i, piece in enumerate(pieces)]
    text = draw(st.sampled_from(["", "x", '"token_ids":[7]', "\n\ndata: ", '"error"', "ж"]))
    for content in contents:
        content["choices"][0]["text"] = text
    contents += [usage(len(ids)), None]
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    spaced = draw(st.booleans())
    odd = draw(st.booleans())
    stream = ""
    for content in contents:
        if odd:
            noise = [": ping", ': data: {"choices":[{"token_ids":[9]}]}', "event: message", "id: 1", ""]
            for line in draw(st.lists(st.sampled_from(noise), max_size=2)):
                stream += line + end
        body = "[DONE]" if content is None else json.dumps(content, separators=None if spaced else (",", ":"))
        stream += draw(st.sampled_from(["data: ", "data:"]) if odd else st.just("data: ")) + body + end + end
    return stream.encode(), ids, finish


def expected(cap: int = 1_000) -> Expected:
    return Expected(DIALECTS["trtllm-serve"], MODEL, cap, frozenset({STOP}))


@settings(max_examples=100, deadline=None)
@given(answer=answers(), data=st.data(), alone=st.integers(0, 3))
def test_any_cut_of_any_stream_is_read_as_the_whole(
    answer: tuple[bytes, list[int], str], data: st.DataObject, alone: int
) -> None:
    stream, ids, finish = answer
    oracle = [json.loads(each) for each in plain(stream) if each != "[DONE]"]
    assert [i for each in oracle if each["choices"] for i in each["choices"][0]["token_ids"]] == ids
    reader, told = IdsReader(expected()), list[int]()
    pieces = cut(stream, data.draw(st.lists(st.integers(0, len(stream)), max_size=20)))
    for place, piece in enumerate(pieces):
        if place < alone:
            told += reader.feed_and_tell(piece)
        else:
            reader.feed(piece)
    if stream.endswith(b"\r"):
        reader.feed(b"\n")
    found = reader.finish()
    stopped = finish == "stop" and bool(ids) and ids[-1] == STOP
    assert found.tokens.tolist() == (ids[:-1] if stopped else ids)
    assert found.finish is (Finish.STOP if finish == "stop" else Finish.LENGTH)
    assert found.tokens.dtype.name == "int32"
    assert told == ids[: len(told)]
    if ids:
        assert reader.first == ids[0]


@settings(max_examples=100, deadline=None)
@given(pieces=st.lists(st.lists(st.integers(0, 9), min_size=1, max_size=5), min_size=8, max_size=40), data=st.data())
def test_a_regular_stream_is_cut_at_its_keys_and_reads_the_same(pieces: list[list[int]], data: st.DataObject) -> None:
    frames = [b"data: " + json.dumps(event(ids), separators=(",", ":")).encode() + b"\n\n" for ids in pieces]
    frames[-1] = b"data: " + json.dumps(event(pieces[-1], "length"), separators=(",", ":")).encode() + b"\n\n"
    stray = data.draw(st.sampled_from([b"", b": ping\n\n", b': "token_ids":[5]\n\n', b"event: x\n", b"data: {}\n\n"]))
    frames.insert(data.draw(st.integers(1, len(frames))), stray)
    n = sum(map(len, pieces))
    stream = b"".join([*frames, b"data: " + json.dumps(usage(n)).encode() + b"\n\ndata: [DONE]\n\n"])
    reader = IdsReader(expected())
    first = len(frames[0])
    reader.feed(stream[:first])
    reader.feed(stream[first:])
    assert reader.finish().tokens.tolist() == [each for piece in pieces for each in piece]


@settings(max_examples=100, deadline=None)
@given(
    pieces=st.lists(
        st.tuples(
            st.lists(st.one_of(st.integers(0, 9), st.integers(0, 2**31 - 1)), min_size=1, max_size=5),
            st.sampled_from([1, 10, 1.0, 1.25, [], [5], "x", '"token_ids":[9]', None]),
            st.sampled_from([1, 10, [7], "]", "[6]"]),
        ),
        min_size=5,
        max_size=40,
    )
)
def test_events_that_differ_in_more_than_their_ids_are_read_the_same(
    pieces: list[tuple[list[int], object, object]],
) -> None:
    """Whatever stands before or behind the ids, and however long it is, nothing but ids is taken for ids."""
    contents = []
    for place, (ids, before, behind) in enumerate(pieces):
        content = event(ids, "length" if place == len(pieces) - 1 else None)
        content["choices"] = [{"before": before} | content["choices"][0] | {"behind": behind}]
        contents.append(content)
    flat = [each for ids, _, _ in pieces for each in ids]
    contents.append(usage(len(flat)))
    frames = [b"data: " + json.dumps(each, separators=(",", ":")).encode() + b"\n\n" for each in contents]
    reader = IdsReader(expected())
    reader.feed(frames[0])
    reader.feed(b"".join(frames[1:]) + b"data: [DONE]\n\n")
    assert reader.finish().tokens.tolist() == flat


def test_a_finish_that_comes_early_is_seen() -> None:
    frames = stream([[i] for i in range(30)], "length")
    frames[9] = frames[9].replace(b'"finish_reason":null', b'"finish_reason":"stop"').replace(b'""', b'"x"')
    frames[29] = frames[29].replace(b'"finish_reason":"length"', b'"finish_reason":null')
    reader = IdsReader(expected())
    reader.feed(frames[0])
    reader.feed(b"".join(frames[1:]))
    assert reader.finish() == (pytest.approx(range(30)), Finish.STOP)


def test_most_events_of_a_regular_stream_are_not_parsed(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []
    monkeypatch.setattr(ids_module, "_object", lambda text, of=ids_module._object: parsed.append(text) or of(text))
    frames = stream([[i] for i in range(1_000)], "length")
    reader = IdsReader(expected())
    for place in range(0, len(frames), 50):
        reader.feed(b"".join(frames[place : place + 50]))
    assert reader.finish().tokens.tolist() == list(range(1_000))
    assert len(parsed) <= 8


def test_the_last_event_needs_no_blank_line() -> None:
    reader = IdsReader(expected())
    reader.feed(b"data: " + json.dumps(event([4, 5], "length") | {"usage": {"completion_tokens": 2}}).encode())
    reader.feed(b"\n\ndata: [DONE]")
    assert reader.finish().tokens.tolist() == [4, 5]


@pytest.mark.parametrize(
    "said", [b'{"object": "error", "message": "no"}', b"<html>no message</html>", b"\x1f\x8b\x08 a message, packed"]
)
def test_a_stream_that_is_none(said: bytes) -> None:
    reader = IdsReader(expected())
    reader.feed(said)
    with pytest.raises(BadAnswer, match=r"no stream.*message") as caught:
        reader.finish()
    assert caught.value.kind == "bad_answer"


@pytest.mark.parametrize("cut", [b"data: {", b"dat", b": pi", b"event: x"])
def test_a_stream_that_is_cut_within_an_event(cut: bytes) -> None:
    reader = IdsReader(expected())
    reader.feed(b"".join(stream([[4], [5]], "length")[:2]) + cut)
    with pytest.raises(BadAnswer) as caught:
        reader.finish()
    assert caught.value.kind == "truncated"
