"""Each fault as a client sees it, and the plan of faults."""

from __future__ import annotations

import contextlib
import http.client
import json
import socket
import time

import pytest

from harness.errors import ConfigError, UnknownName
from harness.serve.faults import Fault, FaultPlan, Kind, PlannedFault
from tests.harness_process import ROOT
from tests.serve.client import Raw, Server, ask, events_of

FIRST = b'"token_ids":['


def stream(server: Server, fault: str) -> Raw:
    return server.open_completion([1], fault=fault, row=100)


def text_of(raw: bytes) -> bytes:
    """The body of a chunked response that has come so far, its chunks put together."""
    head, _, rest = raw.partition(b"\r\n\r\n")
    assert b"200 OK" in head
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        body += rest[: int(size, 16)]
        rest = rest[int(size, 16) + 2 :]
    return body


@pytest.mark.parametrize(
    ("fault", "status", "kind"),
    [
        ("400", 400, "BadRequestError"),
        ("429", 429, "RateLimitError"),
        ("500", 500, "InternalServerError"),
        ("503", 503, "ServiceUnavailableError"),
    ],
)
def test_a_status(scripted: Server, fault: str, status: int, kind: str) -> None:
    for streamed in (False, True):
        answer = scripted.complete([1], fault=fault, stream=streamed)
        assert (answer.status, answer.json["type"], answer.json["code"]) == (status, kind, status)
        assert answer.headers.get("retry-after") == ("1" if status == 429 else None)


def test_hang(scripted: Server) -> None:
    for fault in ("hang", "stall"):
        raw = stream(scripted, fault)
        if fault == "stall":
            raw.until(FIRST)
        raw.socket.settimeout(0.5)
        with pytest.raises(TimeoutError):
            raw.rest()
        assert b"DONE" not in raw.seen and bool(raw.seen) is (fault == "stall")
        raw.close()


def test_stall_of_an_answer_in_one_piece(scripted: Server) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", scripted.port, timeout=0.5)
    with pytest.raises(TimeoutError):
        ask(connection, "POST", "/v1/completions", {"model": "m", "prompt": [1]}, **{"X-Fault": "stall"})
    connection.close()


@pytest.mark.parametrize("streamed", [True, False])
def test_slow_first_token(scripted: Server, streamed: bool) -> None:
    since = time.monotonic()
    answer = scripted.complete([1], fault="slow_first_token:0.3", stream=streamed)
    assert time.monotonic() - since >= 0.3
    assert answer.status == 200


def test_reset(scripted: Server) -> None:
    raw = stream(scripted, "reset")
    with pytest.raises(ConnectionResetError):
        raw.rest()
    raw.close()
    with pytest.raises(ConnectionResetError):
        scripted.complete([1], fault="reset")


def test_cut(scripted: Server) -> None:
    raw = stream(scripted, "cut")
    assert len(events_of(text_of(raw.rest()))) == 1
    assert not raw.seen.endswith(b"0\r\n\r\n")
    raw.close()
    with pytest.raises(http.client.IncompleteRead):
        scripted.complete([1], fault="cut")


def test_half_a_frame(scripted: Server) -> None:
    raw = stream(scripted, "half_frame")
    whole, _, half = text_of(raw.rest()).partition(b"\n\n")
    assert len(events_of(whole)) == 1
    assert half.startswith(b"data: {") and b"\n\n" not in half
    raw.close()
    with pytest.raises(http.client.IncompleteRead):
        scripted.complete([1], fault="half_frame")


def test_split_and_crlf_change_no_content(scripted: Server) -> None:
    plain = scripted.complete([1], row=100, stream=True, detokenize=False)
    split = scripted.complete([1], row=100, stream=True, detokenize=False, fault="split")
    crlf = scripted.complete([1], row=100, stream=True, detokenize=False, fault="crlf")
    assert b"\r\n\r\n" in crlf.body and b"\n\n" not in crlf.body
    told = [
        [each if each == "[DONE]" else each["choices"] for each in events_of(body)]
        for body in (plain.body, split.body, crlf.body.replace(b"\r\n", b"\n"))
    ]
    assert told[0] == told[1] == told[2]


def test_split_comes_in_pieces(scripted: Server) -> None:
    raw = stream(scripted, "split")
    raw.until(b"0\r\n\r\n")
    sizes = raw.seen.count(b"\r\n") // 2
    assert sizes >= 2 * len(events_of(text_of(raw.seen)))
    raw.close()


def test_an_error_in_the_stream(scripted: Server) -> None:
    first, error, done, again = scripted.complete([1], stream=True, fault="sse_error").events
    assert first["choices"] and error["error"]["type"] == "server_error" and done == again == "[DONE]"
    answer = scripted.complete([1], fault="sse_error")
    assert (answer.status, answer.json["code"]) == (500, 500)


def test_no_done(scripted: Server) -> None:
    events = scripted.complete([1], stream=True, fault="no_done").events
    assert events[-1]["choices"][0]["finish_reason"] == "stop"


def test_no_ids(scripted: Server) -> None:
    events = scripted.complete([1], stream=True, detokenize=False, fault="no_ids").events
    assert all(each["choices"][0]["token_ids"] is None for each in events[:-1])
    assert scripted.complete([1], detokenize=False, fault="no_ids").json["choices"][0]["token_ids"] is None


@pytest.mark.parametrize("streamed", [True, False])
def test_an_answer_that_says_nothing_or_was_filtered(scripted: Server, streamed: bool) -> None:
    counted = {"stream_options": {"include_usage": True}} if streamed else {}
    for fault, says in (("empty", False), ("content_filter", True)):
        answer = scripted.complete([1], fault=fault, detokenize=False, row=100, stream=streamed, **counted)
        told = answer.events[:-2] if streamed else [answer.json]
        ids = [token for each in told for token in each["choices"][0]["token_ids"]]
        assert len(ids) == (10 if says else 0)
        assert told[-1]["choices"][0]["finish_reason"] == ("content_filter" if says else "stop")
        assert (answer.events[-2] if streamed else answer.json)["usage"]["completion_tokens"] == 10


def test_a_prompt_is_called_too_long(scripted: Server) -> None:
    answer = scripted.complete([1], fault="too_long")
    assert answer.status == 400 and "max_seq_len (200)" in answer.json["message"]


def test_another_model(scripted: Server) -> None:
    events = scripted.complete([1], stream=True, fault="wrong_model").events
    assert {each["model"] for each in events[:-1]} == {"m-of-another-name"}
    assert scripted.chat("hi", fault="wrong_model").json["model"] == "m-of-another-name"


@pytest.mark.parametrize("streamed", [True, False])
def test_a_connection_that_was_to_stay_is_closed(scripted: Server, streamed: bool) -> None:
    connection = scripted.connection()
    body = {"model": "m", "prompt": [1], "stream": streamed}
    answer = ask(connection, "POST", "/v1/completions", body, **{"X-Fault": "close_idle"})
    assert answer.status == 200 and "connection" not in answer.headers
    since = time.monotonic()
    assert connection.sock.recv(1) == b""
    assert time.monotonic() - since < 4
    connection.close()


def test_nothing_is_begun_on_a_connection_that_is_about_to_be_closed(scripted: Server) -> None:
    body = json.dumps({"model": "m", "prompt": [1], "stream": True, "max_tokens": 4}).encode()
    lines = [
        "POST /v1/completions HTTP/1.1",
        "host: x",
        "content-type: application/json",
        f"content-length: {len(body)}",
    ]
    first, second = ["\r\n".join([*lines, *more, "", ""]).encode() + body for more in (["x-fault: close_idle"], [])]
    with socket.create_connection(("127.0.0.1", scripted.port), 60) as connection:
        connection.sendall(first + second)
        seen = b""
        with contextlib.suppress(ConnectionResetError):  # there was something that it had not read
            while piece := connection.recv(65536):
                seen += piece
    assert seen.count(b"HTTP/1.1 200 OK") == 1
    assert seen.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n")


def test_a_chat_breaks_as_a_completion_does(scripted: Server) -> None:
    with pytest.raises(http.client.IncompleteRead):
        scripted.chat("hi", fault="cut", stream=True)


def test_a_header_that_is_no_fault(scripted: Server) -> None:
    answer = scripted.complete([1], fault="rest")
    assert answer.status == 400
    assert "did you mean 'reset'?" in answer.json["message"]


def test_a_plan_of_faults_counts_requests_for_answers() -> None:
    script = json.dumps({"vocab_size": 300})
    with Server("--engine=scripted", "--script", script, "--fault=503@2", "--fault=400@3/2", "--fault=die@6") as server:
        found = []
        for number in range(1, 6):
            assert server.get("/health").status == 200
            found.append((server.chat if number % 2 else server.complete)("x").status)
        assert found == [200, 503, 400, 200, 400]
        raw = server.open_completion([1])
        with contextlib.suppress(ConnectionResetError):
            raw.rest()
        assert b"DONE" not in raw.seen
        raw.close()
        assert server.end()[0] == 87


def test_a_planned_fault_hits() -> None:
    once, often = PlannedFault.parse("reset@3"), PlannedFault.parse("slow_first_token:1.5@2/3")
    assert [n for n in range(1, 12) if once.hits(n)] == [3]
    assert [n for n in range(1, 12) if often.hits(n)] == [2, 5, 8, 11]
    assert often.fault == Fault(Kind.SLOW_FIRST_TOKEN, 1.5)


def test_a_header_goes_before_the_plan() -> None:
    plan = FaultPlan((PlannedFault.parse("400@1"), PlannedFault.parse("500@1/1")))
    assert [plan.next(each) for each in ("hang", None, None)] == [
        Fault(Kind.HANG),
        Fault(Kind.INTERNAL),
        Fault(Kind.INTERNAL),
    ]


@pytest.mark.parametrize("text", ["reset", "reset@0", "reset@-1", "reset@1/0", "reset@x", "@1", "reset@1/2/3", ""])
def test_what_is_no_planned_fault(text: str) -> None:
    with pytest.raises(ConfigError, match="not a planned fault"):
        PlannedFault.parse(text)


@pytest.mark.parametrize(
    "text", ["slow_first_token", "slow_first_token:x", "slow_first_token:-1", "slow_first_token:inf"]
)
def test_a_slow_token_needs_seconds(text: str) -> None:
    with pytest.raises(ConfigError, match="are no seconds"):
        Fault.parse(text)


def test_other_faults_take_no_seconds() -> None:
    with pytest.raises(ConfigError, match="takes no seconds"):
        Fault.parse("reset:1")
    with pytest.raises(UnknownName, match="unknown fault 'resett'"):
        Fault.parse("resett")


def test_the_page_names_every_fault() -> None:
    page = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page[page.index("## Faults") :].splitlines() if line.startswith("| `")]
    named = {span.partition(":")[0] for row in rows for span in row.replace("`", "").replace(" ", "").split(",")}
    assert named == {kind.value for kind in Kind}


def test_the_page_shows_what_runs(scripted: Server) -> None:
    page = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    program = page.partition("```python\n")[2].partition("```")[0]
    assert "127.0.0.1:8000" in program
    exec(compile(program.replace(":8000", f":{scripted.port}"), "serve.md", "exec"), {})  # noqa: S102
