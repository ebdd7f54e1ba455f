"""Real tokens of chats with tools: the small DeepSeek-V3 behind the protocol, and what a session saves it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.serve.client import Answer, Server
from tests.serve.test_tool_chat import CALL, MESSAGES, TOOLS

pytestmark = [pytest.mark.torch, pytest.mark.qwen3vl]

CAP = 6
GREEDY = {
    "temperature": 0.0,
    "seed": 42,
    "max_completion_tokens": CAP,
    "chat_template_kwargs": {"thinking": False},
}
AGAIN: list[dict[str, Any]] = [
    *MESSAGES,
    {"role": "assistant", "reasoning_content": "And now?", "tool_calls": [{**CALL, "id": "c1"}]},
    {"role": "tool", "tool_call_id": "c1", "content": "nothing"},
]
TURNS = [MESSAGES[:2], MESSAGES, AGAIN]


@pytest.fixture(scope="module")
def served() -> Iterator[Server]:
    with Server("--tiny_deepseek_v3", "--slots=2", "--max_total_tokens=512") as server:
        yield server


def ask(server: Server, turn: int, session: str | None = None, **more: object) -> Answer:
    body = {"model": "m", "messages": TURNS[turn], "tools": TOOLS, "tool_choice": "auto"} | GREEDY | more
    headers = {} if session is None else {"X-Session-ID": session}
    answer = server.post("/v1/chat/completions", body, **headers)
    assert answer.status == 200, answer.body
    return answer


def said(answer: Answer) -> str:
    return str(answer.json["choices"][0]["message"]["content"])


def cached(usage: dict[str, Any]) -> int:
    return int(usage["prompt_tokens_details"]["cached_tokens"])


def test_a_session_answers_the_same_and_computes_less(served: Server) -> None:
    alone = [ask(served, turn) for turn in range(3)]
    together = [ask(served, turn, "django-1") for turn in range(3)]
    assert [said(each) for each in together] == [said(each) for each in alone]
    used = [each.json["usage"] for each in together]
    assert [each["prompt_tokens"] for each in used] == [each.json["usage"]["prompt_tokens"] for each in alone]
    assert [cached(each.json["usage"]) for each in alone] == [0, 0, 0]
    assert cached(used[0]) == 0
    assert all(0 < cached(now) < now["prompt_tokens"] for now in used[1:])
    assert cached(used[1]) < cached(used[2])


def test_sessions_are_told_apart(served: Server) -> None:
    ask(served, 0, "one")
    assert cached(ask(served, 1, "another").json["usage"]) == 0
    assert cached(ask(served, 1, "one").json["usage"]) > 0


def test_a_stream_says_what_the_whole_says(served: Server) -> None:
    whole = ask(served, 1)
    ask(served, 0, "streamed")
    streamed = ask(served, 1, "streamed", stream=True, stream_options={"include_usage": True})
    *chunks, counts, done = streamed.events
    assert done == "[DONE]"
    text = "".join(each["choices"][0]["delta"].get("content") or "" for each in chunks)
    assert text == said(whole)
    assert chunks[-1]["choices"][0]["finish_reason"] == whole.json["choices"][0]["finish_reason"] == "length"
    assert counts["usage"]["completion_tokens"] == whole.json["usage"]["completion_tokens"] == CAP
    assert cached(counts["usage"]) > 0


def test_a_prompt_without_room_is_refused(served: Server) -> None:
    body = {"model": "m", "messages": [{"role": "user", "content": "word " * 600}]} | GREEDY
    answer = served.post("/v1/chat/completions", body, **{"X-Session-ID": "long"})
    assert answer.status == 400 and "max_seq_len (512)" in answer.json["message"]
