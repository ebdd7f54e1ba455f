"""Recorded trajectories and chats behind the protocol, by a scripted engine: whole, and streamed to our client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks.qwen3_6_27b import requests
from harness.benchmarks.qwen3_6_27b.dataset import TrajectorySet, read
from harness.benchmarks.qwen3_6_27b.inline import Issued, score
from harness.benchmarks.qwen3_6_27b.standin import make_dataset
from harness.engines.http.chat import ChatReader
from harness.engines.start import EngineSpec
from harness.errors import ConfigError, DatasetError
from harness.serve.piece_codec import PieceCodec
from harness.serve.recorded import RecordedChats
from tests.benchmarks.qwen3_6_27b.made import RULES
from tests.serve.client import Answer, Server, run_serve

MODEL = "m"
RUN = {"model": MODEL, "max_completion_tokens": 1024}
CHAT = {
    "messages": [{"role": "user", "content": "Wie spät ist es?"}],
    "tools": [{"type": "function", "function": {"name": "clock", "parameters": {"type": "object"}}}],
}
ARGUMENTS = json.dumps({"zone": "Europe/Vienna", "format": "hours and minutes, “24 h”"})
CALL = {"id": "c", "type": "function", "function": {"name": "clock", "arguments": ARGUMENTS}}


def write_chats(path: Path) -> Path:
    chats = [
        {**CHAT, "reply": {"content": "", "tool_calls": [CALL]}},
        {"messages": CHAT["messages"], "reply": {"content": "Ich weiß es nicht."}},
    ]
    path.write_text("".join(json.dumps(each) + "\n" for each in chats), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> TrajectorySet:
    folder = tmp_path_factory.mktemp("recorded") / "x"
    make_dataset(folder, seed=0, rules=RULES)
    return read(folder, RULES)


@pytest.fixture(scope="module")
def served(source: TrajectorySet, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    chats = write_chats(tmp_path_factory.mktemp("chats") / "chats.jsonl")
    with Server("--engine=scripted", "--recorded", source.file.path, "--recorded", chats) as server:
        yield server


def ask(server: Server, body: dict[str, Any], session: str | None = None) -> Answer:
    headers = {} if session is None else {"X-Session-ID": session}
    return server.post("/v1/chat/completions", body, **headers)


def merged(answer: Answer) -> dict[str, Any]:
    """What our own client makes of the stream."""
    reader = ChatReader(MODEL, 1024)
    reader.feed(answer.body)
    found: dict[str, Any] = json.loads(reader.finish().data)
    return found


def test_trajectories_score_one(served: Server, source: TrajectorySet) -> None:
    streaming = {**RUN, "stream": True, "stream_options": {"include_usage": True}}
    issued = []
    for trajectory in source.trajectories:
        for place in range(len(trajectory.turns)):
            body = streaming | requests.request(trajectory, place, RUN | {"stream": True})
            reply = merged(ask(served, body, f"{trajectory.id}__repeat_2" if place % 2 else trajectory.id))
            recorded = trajectory.turns[place].recorded
            assert recorded is not None
            assert reply.get("reasoning", "") == recorded.get("reasoning_content", "")
            assert reply["content"] == recorded.get("content", "")
            issued.append(Issued(trajectory, place, reply))
    whole = score(issued)
    assert (whole.score, whole.missing, whole.issued) == (1.0, 0, source.turns)


def test_deltas_come_in_the_order_of_servers(served: Server) -> None:
    answer = ask(served, {**RUN, **CHAT, "tool_choice": "auto", "stream": True})
    deltas = [each["choices"][0]["delta"] for each in answer.events[:-1]]
    assert deltas[0] == {"role": "assistant"}
    parts = [delta["tool_calls"][0] for delta in deltas if "tool_calls" in delta]
    assert parts[0]["function"] == {"name": "clock", "arguments": ""} and parts[0]["id"]
    assert len(parts) > 2 and "".join(part["function"]["arguments"] for part in parts) == ARGUMENTS
    assert answer.events[-2]["choices"][0]["finish_reason"] == "tool_calls"


def test_a_chat_is_known_by_messages_and_tools(served: Server, source: TrajectorySet) -> None:
    with_tools = ask(served, RUN | CHAT).json["choices"][0]
    assert with_tools["message"]["tool_calls"][0]["function"] == CALL["function"]
    assert with_tools["finish_reason"] == "tool_calls"
    without = ask(served, {**RUN, "messages": CHAT["messages"]}).json["choices"][0]["message"]
    assert (without["content"], without["tool_calls"]) == ("Ich weiß es nicht.", [])
    trajectory = source.trajectories[1]
    unnamed = ask(served, requests.request(trajectory, 2, RUN)).json["choices"][0]["message"]
    assert unnamed["reasoning_content"] == (trajectory.turns[2].recorded or {})["reasoning_content"]


def test_what_was_not_recorded_is_told(served: Server, source: TrajectorySet) -> None:
    first = requests.request(source.trajectories[0], 0, RUN)
    unknown = {**RUN, "messages": [{"role": "user", "content": "something else"}]}
    beyond = {**first, "messages": [*first["messages"], *[{"role": "assistant", "content": "x"}] * 90]}
    for body, session in ((first, "nobody"), (unknown, None), (beyond, source.trajectories[0].id)):
        answer = ask(served, body, session)
        assert answer.status == 404 and answer.json["message"] == "nothing was recorded of this chat"
    assert served.chat("something else", row=0).status == 200, "a row may be asked for by its number"


def test_an_answer_is_cut_where_few_tokens_are_asked_for(served: Server, source: TrajectorySet) -> None:
    asked = requests.request(source.trajectories[0], 0, RUN | {"max_completion_tokens": 3})
    body = ask(served, asked, source.trajectories[0].id).json
    assert (body["choices"][0]["finish_reason"], body["usage"]["completion_tokens"]) == ("length", 3)


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("no JSON", "no recorded chat"),
        ("[]", "no recorded chat"),
        ('{"messages": []}', "no recorded chat"),
        ('{"messages": [], "reply": "x"}', "no recorded chat"),
        ('{"messages": [], "reply": {"tool_calls": [{}]}}', "no recorded chat"),
        ('{"messages": [], "reply": {"content": 1}}', "no recorded chat"),
        ('{"messages": [], "reply": {"content": "a <think> b"}}', "a tag to this server"),
        ('{"conversation_id": "c", "turn": 2, "role": "user", "content": "x"}', "turn 2 stands where turn 1 is due"),
    ],
)
def test_a_file_that_is_none_is_refused(tmp_path: Path, line: str, what: str) -> None:
    path = tmp_path / "chats.jsonl"
    path.write_text(line + "\n", encoding="utf-8")
    with pytest.raises(DatasetError, match=what) as refused:
        RecordedChats([path])
    assert "line 1" in str(refused.value.where)


def test_what_does_not_go_together_is_refused(tmp_path: Path) -> None:
    path = write_chats(tmp_path / "chats.jsonl")
    chats = RecordedChats([path])
    for spec, what in (
        (EngineSpec("torch", {}), "answers by itself"),
        (EngineSpec("scripted", {"length": 3}), "sets length"),
    ):
        with pytest.raises(ConfigError, match=what):
            chats.script(spec, tmp_path)
    missing = run_serve("--engine=scripted", "--recorded", tmp_path / "not there")
    assert missing.returncode == 3 and "cannot be read" in missing.stderr + missing.stdout
    other = run_serve("--engine=scripted", "--recorded", path, "--chat=gpt-oss")
    assert other.returncode == 2 and "--chat=plain" in other.stderr + other.stdout


def test_pieces_are_put_together_again() -> None:
    codec = PieceCodec(["wörld & “more”", ""])
    ids = codec.encode("wörld & “more”")
    decoder = codec.decoder(skip_special=True)
    assert "".join(decoder.feed([each], last=False) for each in ids) == "wörld & “more”"
    assert codec.encode("unknown!") == [0, 0] and codec.encode("") == []
