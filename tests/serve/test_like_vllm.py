"""The same engines with vLLM's manners: what it takes, what it passes over, and its words."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from harness.engines.metrics import PROMETHEUS, of_prometheus, of_server
from harness.events import Occupancy
from harness.serve.manners import MANNERS
from harness.serve.metrics import Load, prometheus
from harness.serve.requests import read
from harness.serve.settings import LIKE
from tests.serve.client import Server
from tests.serve.conftest import FAILING_ROW, SPOKEN, VOCAB
from tests.serve.test_chat import CALLS, TOOLS

LIMIT = 400
CALL = {"id": "c", "type": "function", "function": {"name": "look", "arguments": "{}"}}


@pytest.fixture(scope="module")
def vllm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path: Path = tmp_path_factory.mktemp("serve") / "answers.npz"
    texts = [text.encode() for text in SPOKEN] + [b"?"] * FAILING_ROW
    tokens = np.frombuffer(b"".join(texts), np.uint8).astype(np.int32)
    np.savez(path, tokens=tokens, ends=np.cumsum([len(text) for text in texts]).astype(np.int64))
    script = {
        "answers": {"serve": str(path)},
        "vocab_size": VOCAB,
        "faults": {"serve": {"fail": [FAILING_ROW]}},
    }
    options = ("--engine=scripted", "--like=vllm", f"--max_total_tokens={LIMIT}", "--stream_interval=3", "--model=m")
    with Server(*options, "--script", json.dumps(script)) as server:
        yield server


def test_how_full_it_is_stands_where_vllm_has_it(vllm: Server) -> None:
    answer = vllm.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert of_server("vllm", f"http://127.0.0.1:{vllm.port}") == Occupancy(running=0, waiting=0)


def test_a_models_name_breaks_no_line() -> None:
    told = prometheus('a"b\\c\nd', Load(slots=2, outstanding=5, completed=0, positions=100, kv_cache=0.5))
    assert of_prometheus(told.body.decode(), PROMETHEUS["vllm"]) == Occupancy(2, 3, 0.5)
    assert len(told.body.splitlines()) == 9


def test_manners_have_the_names_that_the_option_takes() -> None:
    assert tuple(MANNERS) == LIKE


@pytest.mark.parametrize(
    ("like", "details"),
    [("vllm", [None, {"cached_tokens": 4}]), ("trtllm-serve", [{"cached_tokens": n} for n in (0, 4)])],
)
def test_what_was_cached(like: str, details: list[object]) -> None:
    usage = MANNERS[like].shapes.usage
    assert [usage(10, 2, cached)["prompt_tokens_details"] for cached in (0, 4)] == details


@pytest.mark.parametrize("like", LIKE)
def test_chats_of_agents_are_taken(like: str) -> None:
    body = {
        "model": "m",
        "messages": [
            {"role": "user", "content": "look"},
            {"role": "assistant", "reasoning_content": "hm", "tool_calls": [CALL]},
            {"role": "tool", "tool_call_id": "c", "content": "sky"},
        ],
        "tools": TOOLS,
        "tool_choice": "auto",
        "max_completion_tokens": 7,
        "seed": 42,
        "temperature": 0,
        "chat_template_kwargs": {"thinking": False},
    }
    request = read(MANNERS[like].chat, json.dumps(body).encode(), None)
    assert (request.output_cap, request.seed) == (7, 42)
    assert request.received() == {"messages": body["messages"], "tools": TOOLS}


def test_a_whole_chat(vllm: Server) -> None:
    body = vllm.chat("hi", row=1).json
    assert list(body)[:7] == ["id", "object", "created", "model", "choices", "service_tier", "system_fingerprint"]
    (choice,) = body["choices"]
    assert list(choice) == ["index", "message", "logprobs", "finish_reason", "stop_reason", "token_ids"]
    message = choice["message"]
    assert (message["content"], message["reasoning"], message["refusal"]) == ("because", "why not", None)
    assert "reasoning_content" not in message
    assert body["usage"] == {
        "prompt_tokens": body["usage"]["prompt_tokens"],
        "total_tokens": body["usage"]["prompt_tokens"] + len(SPOKEN[1]),
        "completion_tokens": len(SPOKEN[1]),
        "prompt_tokens_details": None,
    }


def test_a_streams_chunks_have_one_id_and_the_role_comes_with_an_empty_content(vllm: Server) -> None:
    answer = vllm.chat("hi", row=0, stream=True, stream_options={"include_usage": True})
    assert b"} \n" not in answer.body
    first, *middle, counts, done = answer.events
    assert first["choices"] == [
        {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    ]
    assert first["prompt_token_ids"] is None
    assert len({each["id"] for each in (first, *middle, counts)}) == 1
    assert all(list(each["choices"][0]["delta"]) == ["content"] for each in middle)
    assert "".join(each["choices"][0]["delta"]["content"] for each in middle) == SPOKEN[0]
    assert [each["choices"][0]["finish_reason"] for each in middle] == [None] * (len(middle) - 1) + ["stop"]
    assert all(each["choices"][0]["token_ids"] is None for each in middle)
    assert "stop_reason" in middle[-1]["choices"][0] and "stop_reason" not in middle[0]["choices"][0]
    assert counts["choices"] == [] and counts["usage"]["completion_tokens"] == len(SPOKEN[0].encode())
    assert done == "[DONE]"


def test_a_streams_reasoning_and_calls(vllm: Server) -> None:
    thought = [each["choices"][0]["delta"] for each in vllm.chat("hi", row=1, stream=True).events[1:-1]]
    assert "".join(each.get("reasoning", "") for each in thought) == "why not"
    assert "".join(each.get("content", "") for each in thought) == "because"
    events = vllm.chat("hi", row=2, stream=True, tools=TOOLS).events[1:-1]
    calls = [call for each in events for call in each["choices"][0]["delta"].get("tool_calls", ())]
    for index, (name, arguments) in enumerate(CALLS):
        begin, *rest = (call for call in calls if call["index"] == index)
        assert (begin["type"], begin["function"]["name"]) == ("function", name)
        assert all("id" not in call and "type" not in call for call in rest)
        assert json.loads("".join(call["function"]["arguments"] for call in rest)) == arguments
    assert events[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_a_message_of_calls_alone_has_no_content(vllm: Server) -> None:
    (choice,) = vllm.chat("hi", row=2, tools=TOOLS).json["choices"]
    assert choice["finish_reason"] == "tool_calls" and len(choice["message"]["tool_calls"]) == 2
    assert choice["message"]["content"] == "so: "


@pytest.mark.parametrize("stream", [False, True])
def test_a_completion_has_its_text_and_its_ids_where_they_are_asked_for(vllm: Server, stream: bool) -> None:
    ids = list(SPOKEN[0].encode())
    asked = vllm.complete([1, 2], row=0, stream=stream, return_token_ids=True, detokenize=False)
    plain = vllm.complete([1, 2], row=0, stream=stream)
    if stream:
        chunks = [each["choices"][0] for each in asked.events[:-1]]
        assert [token for each in chunks for token in each["token_ids"]] == ids
        assert "".join(each["text"] for each in chunks) == SPOKEN[0]
        assert {each["choices"][0]["token_ids"] for each in plain.events[:-1]} == {None}
        assert len({each["id"] for each in asked.events[:-1]}) == 1
    else:
        (choice,) = asked.json["choices"]
        assert (choice["token_ids"], choice["text"]) == (ids, SPOKEN[0])
        assert plain.json["choices"][0]["token_ids"] is None


def test_what_it_does_not_know_is_passed_over(vllm: Server) -> None:
    body = {"made_up": 5, "chat_template": None, "top_p_min": 0.5, "early_stopping": True}
    assert vllm.chat("hi", row=0, **body).json["choices"][0]["message"]["content"] == SPOKEN[0]


@pytest.mark.parametrize("top_k", [-1, 0, None, 20])
def test_top_k_is_off_by_either_word(vllm: Server, top_k: int | None) -> None:
    assert vllm.chat("hi", row=0, top_k=top_k).status == 200


def test_the_newer_name_of_the_cap_goes_first(vllm: Server) -> None:
    body = vllm.chat("hi", row=0, max_tokens=100, max_completion_tokens=4).json
    assert body["usage"]["completion_tokens"] == 4 and body["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"messages": []}, "no messages"),
        ({"top_k": -2}, "top_k"),
        ({"temperature": -1}, "temperature"),
        ({"min_p": 0.5}, "`min_p` is 0.5"),
        ({"repetition_penalty": 1.5}, "`repetition_penalty` is 1.5"),
        ({"stream_options": {"include_usage": True}}, "stream"),
        ({"prompt_token_ids": [1] * LIMIT}, "maximum context length is 400 tokens"),
    ],
)
def test_an_error_has_its_shape(vllm: Server, body: dict[str, object], words: str) -> None:
    answer = vllm.chat("hi", **body)
    assert answer.status == 400
    assert list(answer.json) == ["error"]
    assert words in answer.json["error"]["message"]
    assert (answer.json["error"]["type"], answer.json["error"]["code"]) == ("BadRequestError", 400)


def test_a_stream_that_breaks_says_so(vllm: Server) -> None:
    *_, told, done = vllm.chat("hi", row=FAILING_ROW, stream=True).events
    assert told["error"]["code"] == 500 and done == "[DONE]"
    assert vllm.chat("hi", row=FAILING_ROW).json["error"]["type"] == "BadRequestError"


def test_a_fault_that_is_an_error_has_its_shape_too(vllm: Server) -> None:
    assert vllm.chat("hi", fault="503").json["error"]["code"] == 503


def test_the_model_tells_how_long_an_answer_may_be(vllm: Server) -> None:
    (card,) = vllm.get("/v1/models").json["data"]
    assert (card["id"], card["owned_by"], card["max_model_len"]) == ("m", "vllm", LIMIT)
