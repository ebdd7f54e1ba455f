"""``/v1/completions`` and the small endpoints, over a plain HTTP client."""

from __future__ import annotations

import time
from typing import Any

import pytest

from tests.serve.client import Server, ask, waits_for
from tests.serve.conftest import FAILING_ROW, HANGING_ROW, LENGTH, VOCAB

IDS = list(range(100, 100 + LENGTH))
CHOICE = ["index", "text", "token_ids", "logprobs", "finish_reason", "stop_reason", "avg_decoded_tokens_per_iter"]


def test_a_whole_answer_has_trtllm_serves_fields_in_its_order(scripted: Server) -> None:
    answer = scripted.complete([1, 2, 3], row=100, detokenize=False, max_tokens=20)
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.headers["server"] == "uvicorn"
    body = answer.json
    assert list(body) == ["id", "object", "created", "model", "choices", "usage", "prompt_token_ids"]
    assert body["id"].startswith("cmpl-") and body["object"] == "text_completion" and body["model"] == "m"
    assert abs(body["created"] - time.time()) < 60
    (choice,) = body["choices"]
    assert list(choice) == [*CHOICE[:4], "context_logits", *CHOICE[4:6], "disaggregated_params", CHOICE[6]]
    assert (choice["text"], choice["token_ids"], choice["finish_reason"]) == ("", IDS, "stop")
    assert list(body["usage"].items()) == [
        ("prompt_tokens", 3),
        ("total_tokens", 3 + LENGTH),
        ("completion_tokens", LENGTH),
        ("prompt_tokens_details", {"cached_tokens": 0}),
    ]


def test_a_capped_answer_ends_by_length(scripted: Server) -> None:
    choice = scripted.complete([1], row=100, detokenize=False, max_tokens=4).json["choices"][0]
    assert (choice["token_ids"], choice["finish_reason"]) == (IDS[:4], "length")


def test_text_comes_where_ids_were_not_asked_for(scripted: Server) -> None:
    body = scripted.complete("two words", row=300).json
    choice = body["choices"][0]
    assert choice["token_ids"] is None
    assert choice["text"] == "".join(f" {each}" for each in range(300, 300 + LENGTH))
    assert body["usage"]["prompt_tokens"] == len("two words")


def test_without_a_row_the_prompt_decides(scripted: Server) -> None:
    first, again, other = (
        scripted.complete(prompt, detokenize=False).json["choices"][0]["token_ids"]
        for prompt in ([5, 6], [[5, 6]], [6, 5])
    )
    assert first == again != other


def chunks(events: list[Any]) -> list[dict[str, Any]]:
    return [each["choices"][0] for each in events if each != "[DONE]" and each["choices"]]


def test_a_stream_lets_go_the_first_token_every_fourth_and_the_last(scripted: Server) -> None:
    answer = scripted.complete([1], row=100, detokenize=False, stream=True, max_tokens=64)
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    assert answer.headers["transfer-encoding"] == "chunked"
    events = answer.events
    assert events[-1] == "[DONE]"
    assert [each["token_ids"] for each in chunks(events)] == [IDS[:1], IDS[1:4], IDS[4:8], IDS[8:]]
    assert [each["finish_reason"] for each in chunks(events)] == [None, None, None, "stop"]
    assert all(list(each) == CHOICE and each["text"] == "" for each in chunks(events))
    assert all(list(each) == ["id", "object", "created", "model", "choices", "usage"] for each in events[:-1])
    assert len({each["id"] for each in events[:-1]}) == len(events) - 1
    assert all(each["usage"] is None for each in events[:-1])


@pytest.mark.parametrize("cap", [1, 4, 5, 8])
def test_the_token_that_reaches_the_cap_tells_the_end_with_it(scripted: Server, cap: int) -> None:
    found = chunks(scripted.complete([1], row=100, detokenize=False, stream=True, max_tokens=cap).events)
    assert [token for each in found for token in each["token_ids"]] == IDS[:cap]
    assert found[-1]["token_ids"] and found[-1]["finish_reason"] == "length"
    assert all(each["finish_reason"] is None for each in found[:-1])


def test_usage_comes_in_a_chunk_without_choices_that_is_a_chats(scripted: Server) -> None:
    options = {"include_usage": True}
    events = scripted.complete([1, 2], stream=True, max_tokens=3, stream_options=options, detokenize=False).events
    last, done = events[-2:]
    assert done == "[DONE]"
    assert last["choices"] == [] and last["object"] == "chat.completion.chunk" and last["id"].startswith("chatcmpl-")
    assert (last["usage"]["prompt_tokens"], last["usage"]["completion_tokens"]) == (2, 3)


def test_usage_may_come_with_every_chunk(scripted: Server) -> None:
    options = {"continuous_usage_stats": True}
    events = scripted.complete([1, 2], stream=True, max_tokens=9, stream_options=options, detokenize=False).events
    assert [each["usage"]["completion_tokens"] for each in events[:-1]] == [1, 4, 8, 9, 9]


def test_streamed_text_is_the_whole_text(scripted: Server) -> None:
    found = chunks(scripted.complete("hi", row=120, stream=True).events)
    assert all(each["token_ids"] is None for each in found)
    assert "".join(each["text"] for each in found) == bytes(range(120, 130)).decode(errors="replace")


REFUSED = {
    "an unknown field": ({"return_token_ids": True}, "extra_forbidden"),
    "a field of the line after": ({"priority": 0.5}, "extra_forbidden"),
    "two answers": ({"n": 2}, "`n` is 2"),
    "logprobs": ({"logprobs": 1}, "`logprobs` is 1"),
    "negative logprobs": ({"logprobs": -1}, "must be positive or zero"),
    "a stop text": ({"stop": ["x"]}, "`stop` is ['x']"),
    "a least length": ({"min_tokens": 2}, "`min_tokens` is 2"),
    "an echo": ({"echo": True}, "`echo` is True"),
    "a suffix": ({"suffix": "x"}, "suffix is not supported"),
    "a bias": ({"logit_bias": {"1": 1.0}}, "`logit_bias`"),
    "beams": ({"use_beam_search": True}, "`use_beam_search`"),
    "a grammar": ({"response_format": {"type": "json_object"}}, "`response_format`"),
    "stream options without a stream": ({"stream_options": {"include_usage": True}}, "only be defined when stream"),
    "an unknown stream option": ({"stream": True, "stream_options": {"x": 1}}, "extra_forbidden"),
    "no model": ({"model": None}, "string_type"),
    "a temperature below 0": ({"temperature": -1}, "require temperature"),
    "a top_p of 0": ({"top_p": 0}, "require temperature"),
    "a negative top_k": ({"top_k": -1}, "require temperature"),
    "no tokens": ({"max_tokens": 0}, "must be greater than 0"),
    "a negative seed": ({"seed": -1}, "`seed` (-1)"),
    "a stop token outside": ({"stop_token_ids": [VOCAB]}, f"in 0..{VOCAB - 1}"),
    "an empty prompt": ({"prompt": []}, "no tokens"),
    "an id outside": ({"prompt": [VOCAB]}, f"in 0..{VOCAB - 1}"),
    "a negative id": ({"prompt": [-1]}, f"in 0..{VOCAB - 1}"),
    "an overlong prompt": ({"prompt": [1] * 200}, "= max_seq_len (200) - prompt tokens (200)"),
    "several prompts": ({"prompt": [[1], [2]]}, "several prompts"),
    "a prompt of objects": ({"prompt": [{}]}, "'prompt'"),
    "a huge id": ({"prompt": [1 << 70]}, ""),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(scripted: Server, name: str) -> None:
    body, words = REFUSED[name]
    answer = scripted.post("/v1/completions", {"model": "m", "prompt": [1]} | body)
    assert answer.status == 400
    told = answer.json
    assert list(told) == ["object", "message", "type", "param", "code"]
    assert (told["object"], told["type"], told["param"], told["code"]) == ("error", "BadRequestError", None, 400)
    assert words in told["message"]


HARMLESS = {"n": 1, "logprobs": None, "stop": [], "min_p": 0, "user": "u", "length_penalty": 2.0, "best_of": 1}


def test_values_that_ask_for_nothing_are_taken(scripted: Server) -> None:
    assert scripted.complete([1], row=100, detokenize=False, **HARMLESS).json["choices"][0]["token_ids"] == IDS


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"{", "json_invalid"),
        (b"[]", "model_"),
        (b"", "json_invalid"),
        (b"\xff", "json_invalid"),
        (b"[" * 9999, "json"),
    ],
)
def test_a_body_that_is_no_object_of_json(scripted: Server, body: bytes, words: str) -> None:
    answer = scripted.post("/v1/completions", body)
    assert answer.status == 400
    assert words in answer.json["message"]


def test_a_body_that_says_to_be_no_json(scripted: Server) -> None:
    answer = scripted.post("/v1/completions", {"model": "m", "prompt": [1]}, **{"content-type": "text/plain"})
    assert answer.status == 400 and "body" in answer.json["message"]


@pytest.mark.parametrize(("row", "words"), [("x", "x-row"), ("-1", "x-row"), ("²", "x-row")])
def test_a_row_that_is_none(scripted: Server, row: str, words: str) -> None:
    answer = scripted.post("/v1/completions", {"model": "m", "prompt": [1]}, **{"X-Row": row})
    assert answer.status == 400 and words in answer.json["message"]


def test_the_small_endpoints(scripted: Server) -> None:
    health = scripted.get("/health")
    assert (health.status, health.body) == (200, b"")
    assert scripted.get("/health_generate").body == b"Generation health check OK"
    assert set(scripted.get("/version").json) == {"version"}
    listed = scripted.get("/v1/models").json
    assert listed["object"] == "list" and [each["id"] for each in listed["data"]] == ["stand-in"]
    assert listed["data"][0]["owned_by"] == "tensorrt_llm"
    said = scripted.get("/engine").json
    assert said["kind"] == "scripted" and said["not_submittable"] == ["scripted engine"]
    assert scripted.get("/metrics").json[0]["numQueuedRequests"] == 0


def test_other_places_and_methods(scripted: Server) -> None:
    missing, wrong = scripted.get("/v1/nothing"), scripted.get("/v1/completions")
    assert (missing.status, missing.json) == (404, {"detail": "Not Found"})
    assert (wrong.status, wrong.json) == (405, {"detail": "Method Not Allowed"})


def test_a_connection_serves_one_request_after_another(scripted: Server) -> None:
    connection = scripted.connection()
    for stream in (False, True, False):
        body = {"model": "m", "prompt": [1], "stream": stream}
        assert ask(connection, "POST", "/v1/completions", body).status == 200
        assert connection.sock is not None
    connection.close()


def test_an_idle_connection_is_closed_after_five_seconds(scripted: Server) -> None:
    connection = scripted.connection()
    assert ask(connection, "GET", "/health").status == 200
    since = time.monotonic()
    assert connection.sock.recv(1) == b""
    assert time.monotonic() - since > 4
    connection.close()


def test_an_engines_failure_is_an_error_response(scripted: Server) -> None:
    answer = scripted.complete([1], row=FAILING_ROW)
    assert answer.status == 400 and answer.json["type"] == "BadRequestError"


def test_an_engines_failure_is_told_in_the_stream(scripted: Server) -> None:
    answer = scripted.complete([1], row=FAILING_ROW, stream=True)
    assert answer.status == 200
    error, done, again = answer.events
    assert list(error["error"]) == ["message", "type", "code", "param"] and error["error"]["type"] == "server_error"
    assert done == again == "[DONE]"


@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_goes_away_is_forgotten(scripted: Server, stream: bool) -> None:
    connection = scripted.connection()
    body = f'{{"model": "m", "prompt": [1], "stream": {str(stream).lower()}}}'
    headers = {"content-type": "application/json", "X-Row": str(HANGING_ROW)}
    connection.request("POST", "/v1/completions", body, headers)
    waits_for(lambda: scripted.active() == 1)
    connection.close()
    waits_for(lambda: scripted.active() == 0)
    assert scripted.complete([1], row=100, detokenize=False).json["choices"][0]["token_ids"] == IDS
