"""What a core does with servers that behave."""

from __future__ import annotations

import json
import select
import socket
import time
import tracemalloc
from typing import Any

import pytest

from harness.engines.base import Finish, PromptTable, Requests, TokenEvents
from harness.engines.http.core import HttpCore
from harness.engines.http.intake import KEPT_BYTES
from tests.engines.http.play import (
    DONE,
    END,
    HEAD,
    MODEL,
    Peer,
    chunk,
    core_of,
    drive,
    event,
    frame,
    info,
    requests,
    response,
    server,
    settings,
    stream,
    streams,
    usage,
    whole,
    workload,
)

HANGS = 9
ANSWER = [[5], [6, 7], [8, 200_002]]


def test_streams_answers() -> None:
    with server(streams(ANSWER)) as running, core_of(running.url) as core:
        before = time.monotonic_ns()
        core.submit(requests(20))
        told = drive(core, 20)
        assert set(told.answers) == set(range(100, 120))
        assert all(answer == [5, 6, 7, 8] for answer in told.answers.values())
        assert set(told.finish.values()) == {Finish.STOP}
        assert all(before < told.first_ns[n] <= told.done_ns[n] < time.monotonic_ns() for n in told.answers)
        counters = core.counters()
        assert counters["requests"] == 20 and counters["retries"] == counters["failures"] == 0
        assert 0 < counters["connections_opened"] <= 8
        assert counters["bytes_received"] > 20 * sum(map(len, stream(ANSWER)))
        assert counters["bytes_sent"] > 20 * 200
        assert core.wait_s() is not None  # idle connections are to be closed


def test_the_first_token_is_told_when_it_comes() -> None:
    def play(peer: Peer) -> None:
        peer.request()
        frames = stream([[], [41, 42], [43]], "length")
        peer.send(HEAD, chunk(b": keep-alive\n\n"), chunk(frames[0]), pause_s=0.02)
        peer.send(chunk(frames[1][:30]), pause_s=0.02)  # in the middle of an event
        peer.send(chunk(frames[1][30:]), pause_s=0.3)
        peer.send(*map(chunk, frames[2:]), END)

    with server(play) as running, core_of(running.url) as core:
        core.submit(requests())
        told = drive(core, lambda told: bool(told.tokens))
        assert told.tokens == {100: [41]} and not told.answers
        drive(core, 1, told)
        assert told.answers == {100: [41, 42, 43]} and told.tokens == {100: [41]}
        assert told.finish == {100: Finish.LENGTH}
        assert told.done_ns[100] - told.first_ns[100] > 200_000_000


def test_all_tokens_are_told_as_they_come_but_not_the_stop_token() -> None:
    with server(streams(ANSWER)) as running, core_of(running.url) as core:
        core.submit(requests(3, workload(TokenEvents.ALL)))
        told = drive(core, 3)
        assert set(map(tuple, told.tokens.values())) == set(map(tuple, told.answers.values())) == {(5, 6, 7, 8)}


def test_not_streamed() -> None:
    asked: list[dict[str, Any]] = []

    def play(peer: Peer) -> None:
        while True:
            asked.append(peer.request()[1])
            peer.send(whole([5, 6, 200_002]))

    with server(play) as running, core_of(running.url) as core:
        core.submit(requests(5, workload(TokenEvents.NONE)))
        told = drive(core, 5)
        assert all(answer == [5, 6] for answer in told.answers.values()) and not told.tokens
        assert told.first_ns == told.done_ns
        assert not any(each["stream"] or "stream_options" in each for each in asked)


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("ids", [[[i] for i in range(12)], [[1, 2], [3]]])
def test_byte_by_byte(end: bytes, ids: list[list[int]]) -> None:
    frames = [each.replace(b"\n", end) for each in stream(ids, "length")]
    data = HEAD + b"".join(map(chunk, frames)) + END

    def play(peer: Peer) -> None:
        peer.request()
        for place in range(len(data)):
            peer.send(data[place : place + 1])

    with server(play) as running, core_of(running.url) as core:
        core.submit(requests())
        assert drive(core, 1).answers == {100: [i for piece in ids for i in piece]}


def test_many_single_tokens_and_large_reads() -> None:
    ids = [[i] for i in range(1_300)]
    with server(streams(ids, "length")) as running, core_of(running.url, connections=2) as core:
        core.submit(requests(6))
        told = drive(core, 6)
        assert all(answer == list(range(1_300)) for answer in told.answers.values())
        assert len(told.answers) == 6


def test_chunks_cut_frames_and_a_trailer_ends_the_answer() -> None:
    data = b"".join(stream(ANSWER))

    def play(peer: Peer) -> None:
        peer.request()
        pieces = [chunk(data[i : i + 7]) for i in range(0, len(data), 7)]
        peer.send(HEAD, *pieces, pause_s=0.0)
        peer.send(b"0\r\nX-Trailer: 1\r\n", pause_s=0.02)
        peer.send(b"\r\n")
        assert peer.gone()

    with server(play) as running, core_of(running.url) as core:
        core.submit(requests())
        assert drive(core, 1).answers == {100: [5, 6, 7, 8]}


@pytest.mark.parametrize("last", [1, 2, 3, 4, 5])
def test_the_end_is_seen_though_all_before_it_was_read(last: int) -> None:
    ids = [[i] for i in range(220)]
    first, *more = map(chunk, stream(ids, "length"))
    data = b"".join(more) + END
    assert len(data) > KEPT_BYTES

    def play(peer: Peer) -> None:
        peer.request()
        peer.send(HEAD + first, data[:-last], data[-last:], pause_s=0.05)
        assert peer.gone()

    with server(play) as running, core_of(running.url) as core:
        core.submit(requests())
        assert drive(core, 1).answers == {100: list(range(220))}


@pytest.mark.parametrize("headers", ["connection: close\r\n", ""])
def test_a_response_that_ends_with_its_connection(headers: str) -> None:
    body = b"".join(stream(ANSWER))

    def play(peer: Peer) -> None:
        peer.request()
        peer.send(f"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n{headers}\r\n".encode(), body)

    with server(play) as running, core_of(running.url) as core:
        core.submit(requests(2))
        assert drive(core, 2).answers == {100: [5, 6, 7, 8], 101: [5, 6, 7, 8]}
        assert core.counters()["retries"] == 0


def test_a_connection_that_the_server_will_close_is_not_used_again() -> None:
    def play(peer: Peer) -> None:
        peer.request()
        body = b"".join(stream(ANSWER))
        peer.send(response(body, headers="connection: close\r\n"))

    with server(play) as running, core_of(running.url, connections=1) as core:
        core.submit(requests(3))
        assert len(drive(core, 3).answers) == 3
        assert core.counters()["connections_opened"] == 3 and core.counters()["retries"] == 0


def test_continue_comes_before_the_response() -> None:
    def play(peer: Peer) -> None:
        while True:
            peer.request()
            peer.send(b"HTTP/1.1 100 Continue\r\n\r\n", pause_s=0.01)
            peer.send(HEAD, *map(chunk, stream(ANSWER)), END)

    with server(play) as running, core_of(running.url, connections=1) as core:
        core.submit(requests(3))
        assert len(drive(core, 3).answers) == 3
        assert core.counters()["connections_opened"] == 1


def test_each_endpoint_has_its_own_requests() -> None:
    with (
        server(streams([[1, 2]], "length")) as one,
        server(streams([[3, 4]], "length")) as two,
        core_of(one.url, two.url) as core,
    ):
        core.submit(requests(5, workload(replica=0), first=0))
        core.submit(requests(5, workload(replica=1), first=50))
        told = drive(core, 10)
        assert {n: told.answers[n] for n in range(5)} == {n: [1, 2] for n in range(5)}
        assert {n: told.answers[n] for n in range(50, 55)} == {n: [3, 4] for n in range(50, 55)}
        assert core.info().replicas == ("r0", "r1")


def test_the_connection_cap_is_kept_and_what_waits_follows() -> None:
    def play(peer: Peer) -> None:
        while True:
            peer.request()
            time.sleep(0.01)
            peer.send(HEAD, *map(chunk, stream(ANSWER)), END)

    with server(play) as running, core_of(running.url, connections=3) as core:
        core.submit(requests(30))
        assert len(drive(core, 30).answers) == 30
        assert len(running.peers) == 3
        assert core.counters()["connections_opened"] == 3


def test_thousands_wait_and_none_is_lost() -> None:
    with server(streams([[1, 2]], "length")) as running, core_of(running.url, connections=16) as core:
        core.submit(requests(2_000))
        assert len(drive(core, 2_000).answers) == 2_000


def test_cancel_closes_what_is_under_way_and_the_next_request_is_served() -> None:
    closed: list[bool] = []

    def play(peer: Peer) -> None:
        peer.request()
        if peer.number < 2:
            peer.send(HEAD, chunk(frame(event([1]))))
            closed.append(peer.gone())
        else:
            peer.send(HEAD, *map(chunk, stream(ANSWER)), END)

    with server(play) as running, core_of(running.url, connections=2) as core:
        core.submit(requests(10))
        drive(core, lambda told: len(told.tokens) == 2)
        core.cancel()
        assert core.wait_s() is None
        deadline = time.monotonic() + 10
        while len(closed) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert closed == [True, True]
        core.submit(requests(1, first=500))
        told = drive(core, 1)
        assert told.answers == {500: [5, 6, 7, 8]} and not told.failures


def test_drop_closes_the_connection_of_one_and_the_next_takes_its_place() -> None:
    closed: list[int] = []

    def play(peer: Peer) -> None:
        while True:
            first = peer.request()[1]["prompt"][0]
            peer.send(HEAD, chunk(frame(event([5]))))
            if first == HANGS:
                closed.append(peer.number if peer.gone() else -1)
                return
            peer.send(*map(chunk, stream([[6], [7, 200_002]])), END)

    def lot(prompts: list[int], first: int) -> Requests:
        n = len(prompts)
        table = PromptTable.from_lists([[prompt] for prompt in prompts])
        return Requests(workload(TokenEvents.FIRST), range(first, first + n), range(n), table, range(n))

    with server(play) as running, core_of(running.url, connections=2) as core:
        core.submit(lot([HANGS, HANGS, 1, HANGS, 2], 0))
        told = drive(core, lambda told: len(told.tokens) == 2)
        core.drop({0, 3, 77})
        told = drive(core, 2, told)
        assert sorted(told.answers) == [2, 4], "they take turns on the connection that is free again"
        assert not told.failures
        assert closed == [0]
        core.drop({1})
        core.submit(lot([3], 5))
        assert sorted(drive(core, 3, told).answers) == [2, 4, 5]
        assert core.counters()["failures"] == 0


def test_seeds_differ_between_repeats_of_a_row_and_come_again_after_cancel() -> None:
    asked: list[int] = []

    def play(peer: Peer) -> None:
        while True:
            asked.append(peer.request()[1]["seed"])
            peer.send(whole([5, 6]))

    with server(play) as running, core_of(running.url, connections=1) as core:
        of = workload(TokenEvents.NONE)
        core.submit(requests(0, of, rows=[7, 7, 7, 8]))
        drive(core, 4)
        assert len(set(asked)) == 4
        core.cancel()
        core.submit(requests(0, of, rows=[7, 7, 7, 8]))
        drive(core, 4)
        assert asked[:4] == asked[4:]
        assert all(0 <= seed < 2**31 for seed in asked)


def test_a_server_over_ipv6_and_a_host_of_which_one_address_listens() -> None:
    if not socket.has_ipv6:
        pytest.skip("this machine has no IPv6")
    with server(streams(ANSWER), socket.AF_INET6) as running, core_of(running.url) as core:
        core.submit(requests())
        assert len(drive(core, 1).answers) == 1
    with server(streams(ANSWER)) as running, core_of(f"http://localhost:{running.port}") as core:
        core.submit(requests())
        assert len(drive(core, 1).answers) == 1


def test_a_large_prompt_is_sent_in_pieces() -> None:
    lengths: list[int] = []

    def play(peer: Peer) -> None:
        time.sleep(0.1)  # the socket's buffers fill
        lengths.append(len(peer.request()[1]["prompt"]))
        peer.send(HEAD, *map(chunk, stream(ANSWER)), END)

    with server(play) as running, core_of(running.url) as core:
        core.submit(requests(prompt=2_000_000))
        assert len(drive(core, 1).answers) == 1
        assert lengths == [2_000_000]


def test_what_is_asked_of_trtllm_serve() -> None:
    asked: list[tuple[bytes, dict[str, Any]]] = []

    def play(peer: Peer) -> None:
        asked.append(peer.request())
        peer.send(HEAD, *map(chunk, stream(ANSWER)), END)

    with server(play) as running, core_of(running.url) as core:
        core.submit(requests())
        drive(core, 1)
        (head, body) = asked[0]
        assert head.startswith(b"POST /v1/completions HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n" % running.port)
        assert body.pop("seed") >= 0
        assert body == {
            "model": MODEL,
            "prompt": [1, 2, 3],
            "stream": True,
            "stream_options": {"include_usage": True},
            "detokenize": False,
            "temperature": 1.0,
            "top_p": 1.0,
            "top_k": 0,
            "max_tokens": 10_000,
            "stop_token_ids": [200_002],
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
        }


@pytest.mark.parametrize("accumulates", [False, True])
@pytest.mark.parametrize("events", [TokenEvents.FIRST, TokenEvents.ALL])
@pytest.mark.parametrize("chunks", [5, 700])
def test_sglang_tells_new_tokens_or_all_so_far(accumulates: bool, events: TokenEvents, chunks: int) -> None:
    ids = [[3 * i, 3 * i + 1, 3 * i + 2] for i in range(chunks)]
    flat = [each for piece in ids for each in piece]

    def said(i: int) -> dict[str, Any]:
        n = 3 * (i + 1)
        finish = {"type": "length", "length": n} if i == chunks - 1 else None
        return {
            "text": "",
            "output_ids": flat[:n] if accumulates else ids[i],
            "meta_info": {"id": "x", "finish_reason": finish, "prompt_tokens": 3, "completion_tokens": n},
        }

    bodies: list[dict[str, Any]] = []

    def play(peer: Peer) -> None:
        head, body = peer.request()
        assert head.startswith(b"POST /generate ")
        bodies.append(body)
        peer.send(HEAD, *(chunk(frame(said(i))) for i in range(chunks)), chunk(DONE), END)

    with server(play) as running, core_of(running.url, server="sglang") as core:
        core.submit(requests(1, workload(events)))
        told = drive(core, 1)
        assert told.answers == {100: flat}, told.failures
        if events is TokenEvents.ALL:
            assert told.tokens == {100: flat}
        assert bodies[0].pop("sampling_params").pop("sampling_seed") >= 0
        assert bodies[0] == {"stream": True, "input_ids": [1, 2, 3]}


def test_vllm_tells_the_stop_token_and_text() -> None:
    def play(peer: Peer) -> None:
        _, body = peer.request()
        assert body["return_token_ids"] is True and body["top_k"] == -1 and "detokenize" not in body
        first = event([4]) | {"prompt_token_ids": [1, 2, 3]}
        first["choices"][0] |= {"text": 'a "token_ids":[9]', "prompt_token_ids": [1, 2, 3]}
        frames = [first, event([5]), event([200_002], "stop"), usage(3)]
        peer.send(HEAD, *(chunk(frame(each)) for each in frames), chunk(DONE), END)

    with server(play) as running, core_of(running.url, server="vllm") as core:
        core.submit(requests())
        told = drive(core, 1)
        assert told.answers == {100: [4, 5]} and told.finish == {100: Finish.STOP}


def test_the_key_and_the_prefix_are_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    heads: list[bytes] = []

    def play(peer: Peer) -> None:
        heads.append(peer.request()[0])
        peer.send(HEAD, *map(chunk, stream(ANSWER)), END)

    monkeypatch.setenv("SERVERS_KEY", "open-sesame")
    with server(play) as running, core_of(running.url + "/proxy/", api_key_env="SERVERS_KEY") as core:
        core.submit(requests())
        drive(core, 1)
        assert heads[0].startswith(b"POST /proxy/v1/completions ")
        assert b"\r\nAuthorization: Bearer open-sesame\r\n" in heads[0]
        assert "open-sesame" not in json.dumps(repr(core.info()))


def test_its_descriptor_is_readable_when_something_came() -> None:
    with server(streams(ANSWER)) as running:
        core = HttpCore(settings(running.url, info=info()))
        assert not select.select([core.descriptor()], [], [], 0)[0] and core.wait_s() is None
        core.submit(requests())
        assert select.select([core.descriptor()], [], [], 10)[0]
        drive(core, 1)
        core.close()


def test_what_waits_is_a_row_and_no_body() -> None:
    n = 48_289
    table = PromptTable.from_lists([list(range(1_000))])
    with server(lambda peer: peer.gone() and None) as running, core_of(running.url, connections=4) as core:
        tracemalloc.start()
        try:
            core.submit(Requests(workload(), range(n), range(n), table, [0] * n))
            core.step()
            grown, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert grown < 2_000_000  # 40 bytes a request; a body of one would be 4,000
        core.cancel()


def test_an_answer_under_way_takes_little_memory() -> None:
    ids = [[i] for i in range(1_300)]

    def play(peer: Peer) -> None:
        peer.request()
        for each in stream(ids, "length")[:-3]:
            peer.send(chunk(each) if each is not None else b"")
        peer.gone()

    def head(peer: Peer) -> None:
        peer.send(HEAD)
        play(peer)

    with server(head) as running, core_of(running.url, connections=8) as core:
        core.submit(requests(8))
        tracemalloc.start()
        try:
            drive(core, lambda _: core.counters()["bytes_received"] > 8 * 1_200 * 200)
            ours = tracemalloc.Filter(inclusive=True, filename_pattern="*/harness/*")  # the server plays here too
            kept = tracemalloc.take_snapshot().filter_traces([ours]).statistics("filename")
        finally:
            tracemalloc.stop()
        assert 0 < sum(each.size for each in kept) / 8 < 60_000, kept  # received were 300,000 bytes each
