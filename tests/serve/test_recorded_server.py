"""The recorded-answer server, as a client that knows HTTP and nothing else sees it."""

from __future__ import annotations

import contextlib
import http.client
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks.qwen3_6_27b import requests
from harness.benchmarks.qwen3_6_27b.dataset import read
from harness.benchmarks.qwen3_6_27b.standin import make_dataset
from harness.benchmarks.qwen3_6_27b.trajectories import Trajectory
from tests.benchmarks.qwen3_6_27b.made import RULES
from tests.doubles.recorded_answers import Fault, Kind, Recorded, Style
from tests.doubles.recorded_server import RecordedServer, serving
from tests.harness_process import ROOT

RUN = {"model": "m", "stream": True, "stream_options": {"include_usage": True}, "max_completion_tokens": 1024}
PATIENCE_S = 60.0


@pytest.fixture(scope="module")
def trajectories(tmp_path_factory: pytest.TempPathFactory) -> tuple[Trajectory, ...]:
    folder = tmp_path_factory.mktemp("trajectories")
    make_dataset(folder / "x", seed=0, rules=RULES)
    return read(folder / "x", RULES).trajectories


def asked(trajectory: Trajectory, place: int, **changes: object) -> dict[str, Any]:
    """As our client asks: what the run sets before the messages."""
    chat = requests.request(trajectory, place, {"model": "m", "max_completion_tokens": 1024})
    run = {name: value for name, value in (RUN | changes).items() if value is not None}
    return run | {name: value for name, value in chat.items() if name not in run}


def post(server: RecordedServer, body: object, session: str | None, *, blanks: bool = False) -> tuple[int, bytes]:
    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE_S)) as connection:
        headers = {} if session is None else {"X-Session-ID": session}
        text = json.dumps(body) if blanks else json.dumps(body, separators=(",", ":"))
        connection.request("POST", "/v1/chat/completions", text.encode(), headers)
        response = connection.getresponse()
        return response.status, response.read()


def events(body: bytes) -> list[Any]:
    data = [each.removeprefix(b"data: ") for each in body.split(b"\n\n") if each]
    return [each.decode() if each == b"[DONE]" else json.loads(each) for each in data]


def merged(told: list[Any]) -> dict[str, Any]:
    """What deltas come to."""
    said: dict[str, Any] = {}
    calls: dict[int, dict[str, Any]] = {}
    for delta in (event["choices"][0]["delta"] for event in told if event != "[DONE]" and event["choices"]):
        for key in ("content", "reasoning_content"):
            if delta.get(key):
                said[key] = said.get(key, "") + delta[key]
        for part in delta.get("tool_calls", ()):
            if "id" in part:
                calls[part["index"]] = {"id": part["id"], "type": part["type"], "function": dict(part["function"])}
            else:
                calls[part["index"]]["function"]["arguments"] += part["function"]["arguments"]
    return said | ({"tool_calls": [calls[index] for index in sorted(calls)]} if calls else {})


def recorded_of(trajectory: Trajectory, place: int) -> dict[str, Any]:
    message = trajectory.turns[place].recorded
    assert message is not None
    return {name: value for name, value in message.items() if name != "role"}


@pytest.mark.parametrize("pieces", [1, 3, 1000])
def test_each_turn_is_answered_as_it_was_recorded(trajectories: tuple[Trajectory, ...], pieces: int) -> None:
    with serving(Recorded(trajectories), style=Style(pieces=pieces)) as server:
        for trajectory in trajectories:
            for place in range(len(trajectory.turns)):
                status, body = post(server, asked(trajectory, place), trajectory.id, blanks=bool(place % 2))
                told = events(body)
                assert status == 200 and told[-1] == "[DONE]"
                assert merged(told) == recorded_of(trajectory, place)
                calls = "tool_calls" in recorded_of(trajectory, place)
                assert told[-3]["choices"][0]["finish_reason"] == ("tool_calls" if calls else "stop")
        assert [(each.session, each.turn) for each in server.asked] == [
            (each.id, place) for each in trajectories for place in range(len(each.turns))
        ]


def test_an_answer_in_one_piece(trajectories: tuple[Trajectory, ...]) -> None:
    with serving(Recorded(trajectories)) as server:
        status, body = post(server, asked(trajectories[0], 1, stream=None, stream_options=None), trajectories[0].id)
        choice = json.loads(body)["choices"][0]
        assert (status, choice["finish_reason"], json.loads(body)["model"]) == (200, "tool_calls", "m")
        said = {name: choice["message"][name] for name in ("reasoning_content", "tool_calls")}
        assert said == recorded_of(trajectories[0], 1)


def test_what_was_cached_is_what_the_session_asked_before(trajectories: tuple[Trajectory, ...]) -> None:
    trajectory = trajectories[0]
    with serving(Recorded(trajectories)) as server:
        used = []
        for place in (0, 1, 1, 3):
            used.append(events(post(server, asked(trajectory, place), f"{trajectory.id}__repeat_2")[1])[-2]["usage"])
        prompts = [each["prompt_tokens"] for each in used]
        cached = [each["prompt_tokens_details"]["cached_tokens"] for each in used]
        assert prompts == sorted(prompts) and cached == [0, prompts[0], prompts[1] - 1, prompts[1]]
        other = events(post(server, asked(trajectory, 1), trajectory.id)[1])[-2]["usage"]
        assert other["prompt_tokens_details"]["cached_tokens"] == 0


def test_a_session_may_be_a_row_or_be_left_out(trajectories: tuple[Trajectory, ...]) -> None:
    row = len(trajectories) + 1
    chat = {"messages": [{"role": "user", "content": "2 + 2?"}]}
    tools = [{"type": "function", "function": {"name": "add"}}]
    call = {"id": "c", "type": "function", "function": {"name": "add", "arguments": "{}"}}
    chats = [(chat, {"content": "4"}), (chat | {"tools": tools}, {"content": "", "tool_calls": [call]})]
    with serving(Recorded(trajectories, chats)) as server:
        for session in (str(row), None):
            told = merged(events(post(server, asked(trajectories[1], 2), session)[1]))
            assert told == recorded_of(trajectories[1], 2)
        assert merged(events(post(server, RUN | chat, None)[1])) == {"content": "4"}
        assert merged(events(post(server, RUN | chat | {"tools": tools}, None)[1])) == {"tool_calls": [call]}
        for body, session in ((asked(trajectories[0], 0), "nobody"), ({"messages": []}, None), ("no chat", None)):
            status, refused = post(server, body, session)
            assert status == 404 and "error" in json.loads(refused)


def test_usage_is_told_where_it_is_asked_for_and_never_beyond_the_cap(trajectories: tuple[Trajectory, ...]) -> None:
    with serving(Recorded(trajectories)) as server:
        quiet = events(post(server, asked(trajectories[0], 0, stream_options=None), trajectories[0].id)[1])
        assert all("usage" not in each for each in quiet[:-1])
        capped = events(post(server, asked(trajectories[0], 0, max_completion_tokens=2), trajectories[0].id)[1])
        assert capped[-2]["usage"]["completion_tokens"] == 2
        assert merged(capped) == recorded_of(trajectories[0], 0)


def test_crlf_changes_no_content(trajectories: tuple[Trajectory, ...]) -> None:
    with serving(Recorded(trajectories), style=Style(crlf=True)) as server:
        _, body = post(server, asked(trajectories[0], 0), trajectories[0].id)
        assert b"\r\n\r\n" in body and b"\n\n" not in body
        assert merged(events(body.replace(b"\r\n", b"\n"))) == recorded_of(trajectories[0], 0)


def test_a_first_byte_is_kept_back(trajectories: tuple[Trajectory, ...]) -> None:
    with serving(Recorded(trajectories), first_ms=50.0) as server:
        since = time.monotonic()
        post(server, asked(trajectories[0], 0), trajectories[0].id)
        assert time.monotonic() - since >= 0.05
        assert server.most_under_way == 1 and len(server.late_ns) == 1


@pytest.mark.parametrize("stream", [True, None])
@pytest.mark.parametrize("kind", Kind)
def test_a_fault_at_one_turn(trajectories: tuple[Trajectory, ...], kind: Kind, stream: bool | None) -> None:
    trajectory = trajectories[0]
    with serving(Recorded(trajectories), faults=[Fault(kind, 1, trajectory.id, times=1)]) as server:
        assert post(server, asked(trajectory, 0, stream=stream), trajectory.id)[0] == 200
        seen = _seen(server, asked(trajectory, 1, stream=stream), trajectory.id)
        assert seen == (_STREAMED if stream else _WHOLE)[kind]
        assert [each.fault for each in server.asked] == [None, kind]
        assert post(server, asked(trajectory, 1, stream=stream), trajectory.id)[0] == 200, "it was to come once"
        assert _seen(server, asked(trajectories[1], 1, stream=stream), trajectories[1].id) == "well"


_BOTH = {
    Kind.TOO_MANY: "429",
    Kind.INTERNAL: "500",
    Kind.UNAVAILABLE: "503",
    Kind.CLOSE: "closed",
    Kind.HANG: "hangs",
    Kind.STALL: "hangs",
    Kind.CUT: "cut",
    Kind.HALF_FRAME: "cut",
    Kind.RESET: "reset",
    Kind.EMPTY: "empty",
    Kind.NO_FINISH: "no finish",
    Kind.GARBLED: "no JSON",
}
_STREAMED = _BOTH | {Kind.SSE_ERROR: "error", Kind.NO_DONE: "no done"}
_WHOLE = _BOTH | {Kind.SSE_ERROR: "500", Kind.NO_DONE: "well"}


def _seen(server: RecordedServer, body: dict[str, Any], session: str) -> str:
    """What came of a request, in a word."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=0.5)
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"X-Session-ID": session})
        response = connection.getresponse()
        text = response.read()
    except http.client.RemoteDisconnected:
        return "closed"
    except http.client.IncompleteRead:
        return "cut"
    except ConnectionResetError:
        return "reset"
    except TimeoutError:
        return "hangs"
    finally:
        connection.close()
    try:
        return _of_body(response.status, text, body)
    except json.JSONDecodeError:
        return "no JSON"


def _of_body(status: int, text: bytes, body: dict[str, Any]) -> str:
    if status != 200:
        return str(status)
    if not body.get("stream"):
        choices = json.loads(text)["choices"]
        said, done = choices[0]["message"], True
    else:
        told = events(text)
        if any("error" in each for each in told if each != "[DONE]"):
            return "error"
        choices = [choice for each in told if each != "[DONE]" for choice in each["choices"]]
        said, done = merged(told), told[-1] == "[DONE]"
    if not any(said.get(key) for key in ("content", "reasoning_content", "tool_calls")):
        return "empty"
    if not any(each["finish_reason"] for each in choices):
        return "no finish"
    return "well" if done else "no done"


def test_as_a_process(tmp_path: Path) -> None:
    make_dataset(tmp_path / "x", seed=0, rules=RULES)
    found = read(tmp_path / "x", RULES)
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.doubles.recorded_process", found.file.path, "--fault=500@1", "--first-ms=1"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with process:
        assert process.stdout is not None
        try:
            port = json.loads(process.stdout.readline())["port"]
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
            trajectory = found.trajectories[0]
            for place, status in ((0, 200), (1, 500)):
                body = json.dumps(asked(trajectory, place))
                connection.request("POST", "/v1/chat/completions", body, {"X-Session-ID": trajectory.id})
                response = connection.getresponse()
                response.read()
                assert response.status == status
            connection.request("GET", "/v1/models")
            assert json.load(connection.getresponse())["data"][0]["id"] == "recorded"
            connection.close()
        finally:
            told = json.loads(process.communicate("", timeout=PATIENCE_S)[0])
    assert (told["answered"], told["asked"], told["connections"]) == (1, 2, 1)
