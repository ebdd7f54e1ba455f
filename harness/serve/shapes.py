"""What the server says, field by field in trtllm-serve's order.

JSON is compact and not escaped beyond need, as pydantic and Starlette write it there. Every chunk has an id of its own,
whatever ``answer`` it is of.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Final

Content = dict[str, Any]

DONE: Final = b"data: [DONE]\n\n"


def to_json(content: object) -> bytes:
    """Compact UTF-8."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")


def event(content: Mapping[str, object], blank: bytes = b"") -> bytes:
    """A server-sent event; ``blank`` is what stands between its data and the end of its line."""
    return b"data: " + to_json(content) + blank + b"\n\n"


def error(message: str, kind: str, status: int) -> Content:
    """The body of an error response."""
    return {"object": "error", "message": message, "type": kind, "param": None, "code": status}


def broken_stream(message: str) -> bytes:
    """What a stream of completions ends with when its answer breaks: the event, and ``[DONE]`` twice.

    The second is the wrapper's around what yields the first.
    """
    told = {"message": message, "type": "server_error", "code": None, "param": None}
    return event({"error": told}) + DONE + DONE


def too_long(limit: int, prompt_tokens: int, asked: int | None) -> str:
    """Why a prompt is refused for which there is no room."""
    room = limit - prompt_tokens
    return (
        f"`default_max_tokens` ({room}) must be greater than 0, "
        f"`default_max_tokens` ({room}) = max_seq_len ({limit}) - prompt tokens ({prompt_tokens})"
    )


def usage(prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0, *, details: bool = True) -> Content:
    """The counts. A chat of gpt-oss has no ``details``."""
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
        "prompt_tokens_details": {"cached_tokens": cached_tokens} if details else None,
    }


def completion(
    model: str, answer: str, text: str, ids: Sequence[int] | None, finish: str | None, counts: Content
) -> Content:
    """The response to a completion that does not stream."""
    choice = {
        "index": 0,
        "text": text,
        "token_ids": ids,
        "logprobs": None,
        "context_logits": None,
        "finish_reason": finish,
        "stop_reason": None,
        "disaggregated_params": None,
        "avg_decoded_tokens_per_iter": None,
    }
    return _response("cmpl", "text_completion", model, choice, counts)


def completion_chunk(
    model: str, answer: str, text: str, ids: Sequence[int] | None, finish: str | None, counts: Content | None
) -> Content:
    """A chunk of a completion."""
    choice = {
        "index": 0,
        "text": text,
        "token_ids": ids,
        "logprobs": None,
        "finish_reason": finish,
        "stop_reason": None,
        "avg_decoded_tokens_per_iter": None,
    }
    return _head("cmpl", "text_completion", model) | {"choices": [choice], "usage": counts}


def usage_chunk(model: str, answer: str, counts: Content, *, of_chat: bool) -> Content:
    """The last chunk of a stream that tells its counts. It is a chat's even behind completions."""
    told = {name: count for name, count in counts.items() if count is not None}
    return _head("chatcmpl", "chat.completion.chunk", model) | {"choices": [], "usage": told}


def chat(model: str, answer: str, message: Content, finish: str | None, counts: Content) -> Content:
    """The response to a chat that does not stream; ``message`` has what the answer has of its fields."""
    whole: Content = {"role": "assistant", "content": None, "reasoning_content": None, "reasoning": None}
    choice = {
        "index": 0,
        "message": whole | {"tool_calls": []} | message,
        "logprobs": None,
        "finish_reason": finish,
        "stop_reason": None,
        "mm_embedding_handle": None,
        "disaggregated_params": None,
        "avg_decoded_tokens_per_iter": None,
    }
    return _response("chatcmpl", "chat.completion", model, choice, counts)


def chat_chunk(model: str, answer: str, delta: Content, finish: str | None, counts: Content | None) -> Content:
    """A chunk of a chat: what is null is left out."""
    choice: Content = {"index": 0, "delta": delta}
    if finish is not None:
        choice["finish_reason"] = finish
    chunk = _head("chatcmpl", "chat.completion.chunk", model) | {"choices": [choice]}
    return chunk if counts is None else chunk | {"usage": counts}


def tool_call(name: str, arguments: str) -> Content:
    """A call as a message has it."""
    return {"id": tool_call_id(), "type": "function", "function": {"name": name, "arguments": arguments}}


def tool_call_id() -> str:
    """A fresh one."""
    return f"chatcmpl-tool-{uuid.uuid4().hex}"


def models(name: str, max_total_tokens: int) -> Content:
    """``/v1/models``: the one there is; how long an answer may be is not told."""
    card = {"id": name, "object": "model", "created": int(time.time()), "owned_by": "tensorrt_llm"}
    return {"object": "list", "data": [card]}


def _response(prefix: str, kind: str, model: str, choice: Content, counts: Content) -> Content:
    return _head(prefix, kind, model) | {"choices": [choice], "usage": counts, "prompt_token_ids": None}


def _head(prefix: str, kind: str, model: str) -> Content:
    return {"id": f"{prefix}-{uuid.uuid4().hex}", "object": kind, "created": int(time.time()), "model": model}
