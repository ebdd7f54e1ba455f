"""Chats: bodies spliced into requests, replies put together from deltas."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.engines.base import NOT_TOLD, Finish, Sampling, TokenEvents, Workload
from harness.engines.bodies import NO_SESSION, BodyStore
from harness.engines.http.chat import ChatReader
from harness.engines.http.dialects import DIALECTS
from harness.engines.http.problems import BadAnswer
from harness.engines.http.template import ChatTemplate, Head
from harness.errors import DatasetError
from tests.engines.http.play import (
    DONE,
    END,
    HEAD,
    MODEL,
    Peer,
    chunk,
    core_of,
    drive,
    frame,
    requests,
    response,
    server,
    workload,
)

CAP = 64
CHATS = [
    {"messages": [{"role": "user", "content": "wie geht's?"}]},
    {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,ü"}}]}]},
    {
        "messages": [{"role": "user", "content": "weather?"}],
        "tools": [{"type": "function", "function": {"name": "look"}}],
        "tool_choice": "auto",
    },
]


def delta(finish: str | None = None, **said: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": MODEL,
        "choices": [{"index": 0, "delta": said, "finish_reason": finish}],
    }


def counts(tokens: int) -> dict[str, Any]:
    return delta() | {"choices": [], "usage": {"prompt_tokens": 4, "completion_tokens": tokens}}


def read(*contents: Any, whole: bool = False) -> tuple[dict[str, Any], Finish, int]:
    reader = ChatReader(MODEL, CAP)
    if whole:
        reply = reader.whole(json.dumps(contents[0]).encode())
    else:
        for content in contents:
            reader.feed(frame(content))
        reader.feed(DONE)
        reply = reader.finish()
    return json.loads(reply.data), reply.finish, reply.tokens


@pytest.fixture
def store(tmp_path: Path) -> BodyStore:
    return BodyStore.write(tmp_path / "chats", CHATS, [5, NO_SESSION, 5])


def test_a_request_is_the_stored_body_and_what_the_run_sets(store: BodyStore) -> None:
    asked: list[tuple[bytes, dict[str, Any]]] = []

    def play(peer: Peer) -> None:
        while True:
            asked.append(peer.request())
            frames = [delta(role="assistant", content=""), delta(content="gut"), delta("stop"), counts(2)]
            peer.send(HEAD, *(chunk(frame(each)) for each in frames), chunk(DONE), END)

    with server(play) as running, core_of(running.url, connections=1) as core:
        core.submit(requests(3, workload(bodies=store.path, cap=64, stop=())))
        told = drive(core, 3)
        assert told.replies == {n: {"content": "gut"} for n in (100, 101, 102)}
        assert told.usage == {100: 2, 101: 2, 102: 2} and set(told.finish.values()) == {Finish.STOP}
    assert all(head.startswith(b"POST /v1/chat/completions ") for head, _ in asked)
    sessions = [[line for line in head.split(b"\r\n") if line.startswith(b"X-Session-ID")] for head, _ in asked]
    assert sessions == [[b"X-Session-ID: 5"], [], [b"X-Session-ID: 5"]]
    for (_, body), chat in zip(asked, CHATS, strict=True):
        assert body.pop("seed") >= 0
        assert body == chat | {
            "model": MODEL,
            "stream": True,
            "stream_options": {"include_usage": True},
            "temperature": 1.0,
            "top_p": 1.0,
            "top_k": 0,
            "stop_token_ids": [],
            "max_completion_tokens": 64,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
        }


@pytest.mark.parametrize("kind", sorted(DIALECTS))
def test_every_value_of_a_sampling_is_sent(store: BodyStore, kind: str) -> None:
    sampling = Sampling(0.7, 0.8, 20, 150, (), 5, 0.1, 1.1, 0.2, 0.3)
    asked_of = Workload("catalogue", sampling, TokenEvents.NONE, str(store.path))
    template = ChatTemplate(Head("h", "", None), DIALECTS[kind], MODEL, asked_of, store)
    sent = b"".join(template.request(requests(1, asked_of), 0, 9))
    body = json.loads(sent.partition(b"\r\n\r\n")[2])
    seed = {"seed": 9} if DIALECTS[kind].seeded else {}
    assert body == CHATS[0] | seed | {
        "model": MODEL,
        "stream": False,
        "temperature": 0.7,
        "top_p": 0.8,
        "top_k": 20,
        "max_completion_tokens": 150,
        "stop_token_ids": [],
        "min_p": 0.1,
        "repetition_penalty": 1.1,
        "presence_penalty": 0.2,
        "frequency_penalty": 0.3,
    }


def test_the_first_token_of_a_chat_has_no_id(store: BodyStore) -> None:
    def play(peer: Peer) -> None:
        peer.request()
        peer.send(HEAD, chunk(frame(delta(role="assistant", content=""))), pause_s=0.05)
        peer.send(chunk(frame(delta(content=""))), chunk(b": ping\n\n"), pause_s=0.05)
        peer.send(chunk(frame(delta(reasoning_content="hm"))), pause_s=0.3)
        peer.send(chunk(frame(delta("length", content="so"))), chunk(frame(counts(3))), chunk(DONE), END)

    with server(play) as running, core_of(running.url) as core:
        core.submit(requests(1, workload(TokenEvents.ALL, bodies=store.path)))
        told = drive(core, lambda told: bool(told.tokens))
        assert told.tokens == {100: [-1]} and not told.replies
        drive(core, 1, told)
        assert told.replies == {100: {"content": "so", "reasoning": "hm"}} and told.tokens == {100: [-1]}
        assert told.finish == {100: Finish.LENGTH}
        assert told.done_ns[100] - told.first_ns[100] > 200_000_000


def test_not_streamed(store: BodyStore) -> None:
    message = {"role": "assistant", "content": None, "reasoning": "hm", "tool_calls": []}
    content = delta() | {"usage": {"completion_tokens": 9}}
    content["choices"] = [{"index": 0, "message": message, "finish_reason": "stop"}]

    def play(peer: Peer) -> None:
        _, body = peer.request()
        assert body["stream"] is False and "stream_options" not in body
        peer.send(response(json.dumps(content).encode()))

    with server(play) as running, core_of(running.url) as core:
        core.submit(requests(1, workload(TokenEvents.NONE, bodies=store.path)))
        told = drive(core, 1)
        assert told.replies == {100: {"content": "", "reasoning": "hm"}} and told.usage == {100: 9}


def test_rows_that_are_not_in_the_store(store: BodyStore) -> None:
    with server(lambda peer: None) as running, core_of(running.url) as core:
        core.submit(requests(0, workload(bodies=store.path), rows=[3, -1]))
        told = drive(core, 2)
        assert {each.kind for each in told.failures.values()} == {"no_such_row"}
        assert "row 3 of 3 chats" in told.failures[100].message


def test_a_store_that_is_not_there(tmp_path: Path) -> None:
    with core_of("http://127.0.0.1:9") as core, pytest.raises(DatasetError):
        core.submit(requests(1, workload(bodies=tmp_path / "none")))


def test_reasoning_that_is_told_under_both_names_is_taken_once() -> None:
    found, _, _ = read(delta(reasoning="a", reasoning_content="a"), delta("stop", content="b"), counts(2))
    assert found == {"content": "b", "reasoning": "a"}


@settings(max_examples=50, deadline=None)
@given(texts=st.lists(st.text(), max_size=8).filter(any), size=st.integers(1, 40))
def test_any_text_in_pieces_of_any_size(texts: list[str], size: int) -> None:
    contents = [*(delta(content=text) for text in texts), delta("stop"), counts(len(texts))]
    data = b"".join(frame(content) for content in contents) + DONE
    reader = ChatReader(MODEL, CAP)
    for place in range(0, len(data), size):
        reader.feed(data[place : place + size])
    assert json.loads(reader.finish().data) == {"content": "".join(texts)}
    assert reader.first is not None


@pytest.mark.parametrize(
    ("contents", "kind", "words"),
    [
        ([{"error": {"message": "no"}}], "sse_error", "no"),
        ([delta(content="a") | {"model": "other"}], "wrong_model", "other"),
        ([delta(content="a", finish="stop")], "bad_answer", "how many"),
        ([delta(content="a"), counts(1)], "bad_answer", "no finish_reason"),
        ([delta(content="a"), delta("content_filter"), counts(1)], "content_filter", "content_filter"),
        ([delta(content="a"), delta("abort"), counts(1)], "aborted", "abort"),
        ([delta("error"), counts(1)], "aborted", "error"),
        ([delta("eos"), counts(1)], "bad_answer", "eos"),
        ([delta(refusal="I "), delta(refusal="won't."), delta("stop"), counts(4)], "refusal", "refused: I won't."),
        ([delta(content=[{"type": "text", "text": "a"}])], "bad_answer", "no chat completion"),
        ([delta(content=5)], "bad_answer", "no chat completion"),
        ([delta(content="", reasoning=None, tool_calls=[]), delta("stop"), counts(1)], "empty_answer", "no tool calls"),
        ([[1]], "bad_answer", "no chat completion"),
        ([{"choices": 5}], "bad_answer", "no chat completion"),
        ([delta() | {"usage": 5}], "bad_answer", "no chat completion"),
        ([delta() | {"usage": {"completion_tokens": -1}}], "bad_answer", "no chat completion"),
        ([delta() | {"usage": {"prompt_tokens": 2**31}}], "bad_answer", "no chat completion"),
        ([delta() | {"usage": {"prompt_tokens": 2**64 - 1}}], "bad_answer", "no chat completion"),
        ([delta() | {"usage": {"prompt_tokens_details": 7}}], "bad_answer", "no chat completion"),
        ([delta("length", content="a"), counts(CAP + 1)], "bad_answer", "65 tokens where 64 were the most"),
    ],
)
def test_replies_that_are_none(contents: list[Any], kind: str, words: str) -> None:
    with pytest.raises(BadAnswer, match=words) as caught:
        read(*contents)
    assert caught.value.kind == kind


def test_an_answer_of_as_many_tokens_as_were_asked_for_is_whole() -> None:
    assert read(delta("length", content="a"), counts(CAP)) == ({"content": "a"}, Finish.LENGTH, CAP)


def test_a_server_that_does_not_read_the_cap_is_found_out(store: BodyStore) -> None:
    told = [delta(content="a"), delta("stop"), counts(9)]

    def play(peer: Peer) -> None:
        peer.request()
        peer.send(HEAD, *(chunk(frame(each)) for each in told), chunk(DONE), END)

    with server(play) as running, core_of(running.url) as core:
        core.submit(requests(1, workload(bodies=store.path, cap=8)))
        assert drive(core, 1).failures[100].kind == "bad_answer"


@pytest.mark.parametrize(
    ("usages", "wanted"),
    [
        ([{"completion_tokens": 3}], (3, NOT_TOLD, NOT_TOLD)),
        ([{"completion_tokens": 3, "prompt_tokens": 8, "prompt_tokens_details": None}], (3, 8, NOT_TOLD)),
        ([{"completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 0}}], (3, NOT_TOLD, 0)),
        (
            [{"completion_tokens": 1, "prompt_tokens": 8}, {"completion_tokens": 2, "prompt_tokens": 8}, None],
            (2, 8, NOT_TOLD),
        ),
        ([{"prompt_tokens": 8, "prompt_tokens_details": {"cached_tokens": 5}}], (NOT_TOLD, 8, 5)),
        ([], (NOT_TOLD, NOT_TOLD, NOT_TOLD)),
        ([{"completion_tokens": 0, "prompt_tokens": 0}], (NOT_TOLD, NOT_TOLD, NOT_TOLD)),
    ],
)
def test_what_a_server_counts_and_what_it_does_not(usages: list[Any], wanted: tuple[int, int, int]) -> None:
    reader = ChatReader(MODEL, CAP, usage_optional=True)
    for content in (delta("stop", content="a"), *(delta() | {"choices": [], "usage": usage} for usage in usages)):
        reader.feed(frame(content))
    reader.feed(DONE)
    reply = reader.finish()
    assert (reply.tokens, reply.prompt_tokens, reply.cached_tokens) == wanted


@pytest.mark.parametrize("optional", [True, False])
def test_counts_reach_who_asked(store: BodyStore, optional: bool) -> None:
    details = {"prompt_tokens": 4, "completion_tokens": 1, "prompt_tokens_details": {"cached_tokens": 3}}
    told = [delta(content="a"), delta("stop")]

    def play(peer: Peer) -> None:
        for last in (delta() | {"choices": [], "usage": details}, delta()):
            peer.request()
            peer.send(HEAD, *(chunk(frame(each)) for each in (*told, last)), chunk(DONE), END)

    of = dataclasses.replace(workload(bodies=store.path), usage_optional=optional)
    with server(play) as running, core_of(running.url, connections=1) as core:
        core.submit(requests(2, of))
        found = drive(core, 2)
    assert (found.usage[100], found.prompt_tokens[100], found.cached_tokens[100]) == (1, 4, 3)
    if optional:
        assert (found.usage[101], found.prompt_tokens[101], found.cached_tokens[101]) == (NOT_TOLD,) * 3
    else:
        assert "how many tokens" in found.failures[101].message


def test_a_session_is_told_by_its_name(tmp_path: Path) -> None:
    store = BodyStore.write(tmp_path / "named", CHATS, [0, 1, NO_SESSION], session_names=["a%d", "b #2"])
    template = ChatTemplate(Head("h:1", "", "key%b"), DIALECTS["vllm"], MODEL, workload(bodies=store.path), store)
    heads = [bytes(template.request(requests(3), row, 7)[0]).partition(b"\r\n\r\n")[0] for row in range(3)]
    assert [head.partition(b"X-Session-ID: ")[2].partition(b"\r\n")[0] for head in heads] == [b"a%d", b"b #2", b""]
    assert all(b"Authorization: Bearer key%b\r\n" in head for head in heads)


def test_prompts_that_the_server_counts_otherwise_are_counted(tmp_path: Path) -> None:
    told = [delta(content="a"), delta("stop"), counts(1)]  # a prompt of 4 tokens

    def play(peer: Peer) -> None:
        while True:
            peer.request()
            peer.send(HEAD, *(chunk(frame(each)) for each in told), chunk(DONE), END)

    store = BodyStore.write(tmp_path / "counted", CHATS, tokens=[4, 5, 0])
    with server(play) as running, core_of(running.url) as core:
        core.submit(requests(3, workload(bodies=store.path)))
        assert len(drive(core, 3).replies) == 3
        assert core.counters()["prompt_lengths_differ"] == 1


def test_a_stream_that_breaks_off() -> None:
    reader = ChatReader(MODEL, CAP)
    reader.feed(frame(delta("stop", content="a")))
    with pytest.raises(BadAnswer) as caught:
        reader.finish()
    assert caught.value.kind == "truncated"
