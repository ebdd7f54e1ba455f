"""What a core makes of servers that fail, each failure told apart."""

from __future__ import annotations

import errno
import json
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

import pytest

from harness.engines.base import REPLICA_DIED, TokenEvents
from harness.engines.http import problems
from tests.engines.http.play import (
    DONE,
    END,
    HEAD,
    Peer,
    Told,
    chunk,
    core_of,
    drive,
    event,
    frame,
    idle,
    requests,
    response,
    server,
    stream,
    streams,
    usage,
    whole,
    workload,
)

ANSWER = [[5], [6, 7], [8, 200_002]]
NONE = workload(TokenEvents.NONE)


def only_failure(play: Callable[[Peer], None], kind: str, *words: str, of: object = None, **changes: object) -> Told:
    """Asks once of a server that plays; the failure is of a kind, and its message names endpoint and words."""
    with server(play) as running, core_of(running.url, **changes) as core:
        core.submit(requests(1, of or workload()))  # type: ignore[arg-type]  # a Workload, where it is given
        told = drive(core, 1)
        assert not told.answers
        (failure,) = told.failures.values()
        assert failure.kind == kind, failure
        assert failure.message.startswith(f"endpoint r0 ({running.url}) "), failure
        for each in words:
            assert each in failure.message, failure
        assert core.counters()["failures"] == 1 and core.counters()["retries"] == 0
        assert idle(core, 0.05).over == 0
        return told


def once(*pieces: bytes, then: Callable[[Peer], object] = lambda peer: None) -> Callable[[Peer], None]:
    def play(peer: Peer) -> None:
        peer.request()
        peer.send(*pieces)
        then(peer)

    return play


@pytest.mark.parametrize("status", [400, 401, 404, 429, 500, 503])
@pytest.mark.parametrize("of", [workload(), NONE], ids=["streamed", "whole"])
def test_a_status_is_told_with_its_body(status: int, of: object) -> None:
    body = json.dumps({"object": "error", "message": "the scheduler\nis gone"}).encode()
    only_failure(once(response(body, f"{status} X")), f"http_{status}", str(status), "is gone", of=of)


def test_a_long_body_is_cut() -> None:
    told = only_failure(once(response(b"x" * 500_000, "500 Oh")), "http_500", "xxx")
    assert len(told.failures[100].message) < 500


def test_a_status_whose_body_does_not_come_whole() -> None:
    only_failure(once(response(b"x" * 100, "503 Oh")[:-50]), "http_503", "xxx")


def test_a_connection_is_used_again_after_a_refusal() -> None:
    def play(peer: Peer) -> None:
        while True:
            peer.request()
            peer.send(response(b"{}", "429 Busy"))

    with server(play) as running, core_of(running.url, connections=1) as core:
        core.submit(requests(3))
        told = drive(core, 3)
        assert {each.kind for each in told.failures.values()} == {"http_429"}
        assert core.counters()["connections_opened"] == 1


def test_refused_before_the_request_was_sent_whole() -> None:
    def play(peer: Peer) -> None:
        peer.socket.recv(1_000)
        peer.send(response(b"too large", "413 Content Too Large", "connection: close\r\n"))
        peer.socket.shutdown(1)
        assert peer.gone() or True

    with server(play) as running, core_of(running.url) as core:
        core.submit(requests(prompt=3_000_000))
        (failure,) = drive(core, 1).failures.values()
        assert failure.kind == "http_413" and "too large" in failure.message


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("trtllm-serve", "The sum of prompt length (9) should not exceed max_seq_len (8)"),
        ("vllm", "This model's maximum context length is 8 tokens. You asked for 9."),
        ("sglang", "The input (9 tokens) is longer than the model's context length (8 tokens)."),
    ],
)
def test_a_prompt_that_is_too_long(kind: str, said: str) -> None:
    body = json.dumps({"object": "error", "message": said}).encode()
    only_failure(once(response(body, "400 Bad Request")), problems.TOO_LONG, said[:20], server=kind)


def test_an_error_in_the_stream() -> None:
    error = frame({"error": {"message": "out of blocks", "code": 500}})
    only_failure(once(HEAD, chunk(frame(event([1]))), chunk(error), chunk(DONE), END), "sse_error", "out of blocks")
    only_failure(once(HEAD, chunk(error), chunk(DONE), END), "sse_error", "out of blocks")
    only_failure(once(HEAD, chunk(frame({"object": "error", "message": "gone"})), END), "sse_error", "gone")


def test_an_error_in_the_middle_of_a_long_stream() -> None:
    frames = [frame(event([i])) for i in range(50)]
    frames.insert(25, frame({"error": {"message": "out of blocks"}}))
    only_failure(once(HEAD, *map(chunk, frames), chunk(frame(usage(50))), chunk(DONE), END), "sse_error", "blocks")


def test_an_error_at_the_end_of_a_stream_that_breaks_off() -> None:
    frames = [*(frame(event([i])) for i in range(50)), frame({"error": {"message": "out of blocks"}})]
    only_failure(once(HEAD, *map(chunk, frames)), "sse_error", "out of blocks")
    only_failure(once(HEAD, b"".join(map(chunk, frames))), "sse_error", "out of blocks")


@pytest.mark.parametrize("pieces", [1, 2, 3])
def test_a_stream_that_breaks_off(pieces: int) -> None:
    only_failure(once(HEAD, *map(chunk, stream(ANSWER)[:pieces])), "truncated", "in the middle")


def test_half_a_frame() -> None:
    data = chunk(stream(ANSWER)[1])
    only_failure(once(HEAD, chunk(stream(ANSWER)[0]), data[: len(data) // 2]), "truncated")


def test_half_of_a_head() -> None:
    only_failure(once(HEAD[:30]), "truncated")


def test_a_stream_that_ends_without_saying_so() -> None:
    only_failure(once(HEAD, *map(chunk, stream(ANSWER)[:-1]), END), "truncated", "[DONE]")


def test_half_of_an_answer_that_is_not_streamed() -> None:
    only_failure(once(whole([5, 6])[:-20]), "truncated", of=NONE)


def test_a_reset_in_the_middle() -> None:
    def then(peer: Peer) -> None:
        time.sleep(0.05)
        peer.reset()

    only_failure(once(HEAD, chunk(stream(ANSWER)[0]), then=then), "reset")


def test_a_reset_before_the_answer() -> None:
    only_failure(once(then=Peer.reset), "reset")


def test_closed_before_the_answer_on_a_fresh_connection_is_not_tried_again() -> None:
    only_failure(once(), "reset", "without an answer")


def test_no_http() -> None:
    only_failure(once(b"SSH-2.0-OpenSSH_9.2\r\n"), "bad_answer", "no HTTP")
    only_failure(once(HEAD, b"zz\r\n"), "bad_answer", "no HTTP")
    only_failure(once(HEAD, chunk(stream(ANSWER)[0]), b"zz\r\n\r\n"), "bad_answer", "no HTTP")


def test_a_head_without_an_end() -> None:
    only_failure(
        once(HEAD[:-2], *[b"x: " + b"y" * 65_000 + b"\r\n"] * 20), "bad_answer", "its head is longer than 1 MiB"
    )


def test_an_event_without_an_end() -> None:
    pieces = [chunk(b"x" * 60_000)] * 80
    only_failure(once(HEAD, chunk(b"data: "), *pieces), "bad_answer", "an event of more than 4 MiB")
    only_failure(once(HEAD, chunk(frame(event([1]))), *pieces), "bad_answer", "an event of more than 4 MiB")


def test_a_machine_that_is_gone() -> None:
    def gone(*_: object) -> int:
        raise TimeoutError(errno.ETIMEDOUT, "Connection timed out")

    play = once(HEAD, chunk(frame(event([1]))), then=lambda peer: peer.gone())
    with server(play) as running, core_of(running.url) as core:
        core.submit(requests(1))
        while not (busy := [each for each in core._pool.connections.values() if not each.connecting]):
            core._pool.connected(next(iter(core._pool.connections.values())))
        busy[0].recv_into = gone
        (failure,) = drive(core, 1).failures.values()
    assert failure.kind == "reset"
    assert failure.message.endswith(" reset the connection (Connection timed out)")


def test_a_listener_that_is_gone_before_it_has_taken_the_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        with core_of(url) as core:
            core.submit(requests(1))
            listener.close()
            (failure,) = drive(core, 1).failures.values()
    assert failure.kind == REPLICA_DIED
    assert failure.message.endswith("refuses connections")


def test_no_json() -> None:
    only_failure(once(HEAD, chunk(b"data: {oh\n\n"), END), "bad_answer", "no JSON", "{oh")
    only_failure(once(HEAD, chunk(b"data: 5\n\n"), END), "bad_answer", "no JSON object")
    only_failure(once(response(b"hallo")), "bad_answer", "no JSON", of=NONE)
    only_failure(once(response(b"[]")), "bad_answer", "no JSON object", of=NONE)


@pytest.mark.parametrize("ids", [["a"], [1.5], [-1], [2**31], [[1]], [None], "ab", {"a": 1}, [2**70]])
def test_ids_that_are_none(ids: object) -> None:
    content = event([1]) | {}
    content["choices"][0]["token_ids"] = ids
    frames = [frame(event([1])), frame(content), frame(usage(2)), DONE]
    only_failure(once(HEAD, *map(chunk, frames), END), "bad_answer")


@pytest.mark.parametrize("choices", [5, [5], {"a": 1}])
def test_choices_that_are_none(choices: object) -> None:
    only_failure(once(HEAD, chunk(frame(event([1]) | {"choices": choices})), END), "bad_answer")


def test_a_finish_that_is_none_of_ours() -> None:
    only_failure(once(HEAD, *map(chunk, stream([[1], [2]], "cancelled")), END), "bad_answer", "cancelled")
    frames = [frame(event([1])), frame(usage(1)), DONE]
    only_failure(once(HEAD, *map(chunk, frames), END), "bad_answer", "None")


def test_more_tokens_than_were_asked_for() -> None:
    of = workload(cap=3)
    only_failure(once(HEAD, *map(chunk, stream([[1, 2], [3, 4]], "length")), END), "bad_answer", "4 tokens", of=of)


@pytest.mark.parametrize(("told", "finish"), [(0, "length"), (3, "length"), (5, "stop"), (1, "stop")])
def test_ids_that_are_not_as_many_as_the_server_says(told: int, finish: str) -> None:
    frames = stream([[5], [6]], finish, told)
    only_failure(once(HEAD, *map(chunk, frames), END), "missing_ids", "2 token ids", str(told))
    only_failure(once(whole([5, 6], finish, told)), "missing_ids", of=NONE)


def test_text_in_place_of_ids() -> None:
    content = event(None, "length")
    content["choices"][0]["text"] = "hallo"
    frames = [frame(content), frame(usage(2)), DONE]
    only_failure(once(HEAD, *map(chunk, frames), END), "missing_ids", "0 token ids", "2")


def test_no_usage() -> None:
    frames = [frame(event([1], "length")), DONE]
    only_failure(once(HEAD, *map(chunk, frames), END), "missing_ids", "did not say how many")


@pytest.mark.parametrize(
    ("ids", "told", "finish"),
    [([5, 6, 200_002], 3, "stop"), ([5, 6, 200_002], 2, "stop"), ([5, 6], 2, "stop"), ([5, 6], 3, "stop")],
)
def test_the_stop_token_may_be_told_and_counted_or_not(ids: list[int], told: int, finish: str) -> None:
    play = once(HEAD, *map(chunk, stream([ids[:1], ids[1:]], finish, told)), END)
    with server(play) as running, core_of(running.url) as core:
        core.submit(requests())
        assert drive(core, 1).answers == {100: [5, 6]}


def test_another_model() -> None:
    other = "llama-3"
    only_failure(once(HEAD, chunk(frame(event([1], model=other))), END), "wrong_model", other, "gpt-oss-120b")
    only_failure(once(whole([1, 2], model=other)), "wrong_model", other, of=NONE)
    body = json.dumps({"error": {"message": "The model `gpt-oss-120b` does not exist."}}).encode()
    only_failure(once(response(body, "404 Not Found")), "wrong_model", "does not exist")
    only_failure(once(response(b'{"detail":"Not Found"}', "404 Not Found")), "http_404")


def test_rows_and_prompts_that_cannot_be_sent() -> None:
    with server(streams(ANSWER)) as running, core_of(running.url) as core:
        core.submit(requests(2, prompt=0))
        told = drive(core, 2)
        assert {each.kind for each in told.failures.values()} == {"empty_prompt"}
        assert not running.peers


def test_no_answer_in_time() -> None:
    closed: list[bool] = []

    def play(peer: Peer) -> None:
        peer.request()
        if peer.number == 0:
            peer.send(HEAD, chunk(frame(event([1]))))
            closed.append(peer.gone())
        else:
            peer.send(HEAD, *map(chunk, stream(ANSWER)), END)

    with server(play) as running, core_of(running.url, connections=1, request_timeout_s=0.3) as core:
        before = time.monotonic()
        core.submit(requests(2))
        told = drive(core, 2)
        assert 0.3 <= time.monotonic() - before < 5
        assert told.failures[100].kind == "timeout" and "0.3 s" in told.failures[100].message
        assert told.answers == {101: [5, 6, 7, 8]}
        time.sleep(0.05)
        assert closed == [True]


def test_no_connection_in_time() -> None:
    with full_listener() as url, core_of(url, connect_timeout_s=0.3, connections=4) as core:
        core.submit(requests(2))
        told = drive(core, 2)
        assert {each.kind for each in told.failures.values()} == {"timeout"}
        assert all("no connection within 0.3 s" in each.message for each in told.failures.values())


@contextmanager
def full_listener() -> Iterator[str]:
    """A URL at which nobody accepts, and no more connections fit into the queue of those that wait for it."""
    with socket.socket() as listener, ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _ in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        time.sleep(0.05)
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
