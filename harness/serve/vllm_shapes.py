"""What the server says where it is to be like vLLM's, field by field in its order.

All chunks of an answer have one id. A chunk has the fields that were set, null ones among them. Read in vllm 0.32.0:
``entrypoints/openai/chat_completion/protocol.py`` and ``serving.py``, the same of ``completion``, and
``entrypoints/serve/engine/protocol.py``.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from harness.serve.shapes import DONE, Content, event


def error(message: str, kind: str, status: int) -> Content:
    """The body of an error response."""
    return {"error": {"message": message, "type": kind, "param": None, "code": status}}


def broken_stream(message: str) -> bytes:
    """What a stream ends with when its answer breaks."""
    return event(error(message, "InternalServerError", 500)) + DONE


def too_long(limit: int, prompt_tokens: int, asked: int | None) -> str:
    """Why a prompt is refused for which there is no room."""
    return (
        f"This model's maximum context length is {limit} tokens. However, you requested {asked or 1} output tokens and "
        f"your prompt contains {prompt_tokens} input tokens. Please reduce the length of the input prompt or the "
        "number of requested output tokens."
    )


def usage(prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0, *, details: bool = True) -> Content:
    """The counts; there are details only where something was cached."""
    return {
        "prompt_tokens": prompt_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
        "completion_tokens": completion_tokens,
        **({"prompt_tokens_details": {"cached_tokens": cached_tokens} if cached_tokens else None} if details else {}),
    }


def completion(
    model: str, answer: str, text: str, ids: Sequence[int] | None, finish: str | None, counts: Content
) -> Content:
    """The response to a completion that does not stream."""
    choice = {
        "index": 0,
        "text": text,
        "logprobs": None,
        "finish_reason": finish,
        "stop_reason": None,
        "token_ids": ids,
        "prompt_logprobs": None,
        "prompt_token_ids": None,
    }
    return {
        **_head("cmpl", "text_completion", model, answer),
        "choices": [choice],
        "service_tier": None,
        "system_fingerprint": None,
        "usage": counts,
        "kv_transfer_params": None,
    }


def completion_chunk(
    model: str, answer: str, text: str, ids: Sequence[int] | None, finish: str | None, counts: Content | None
) -> Content:
    """A chunk of a completion."""
    choice = {
        "index": 0,
        "text": text,
        "logprobs": None,
        "finish_reason": finish,
        "stop_reason": None,
        "prompt_token_ids": None,
        "token_ids": ids,
    }
    chunk = {**_head("cmpl", "text_completion", model, answer), "choices": [choice]}
    return chunk if counts is None else {**chunk, "usage": _less(counts)}


def usage_chunk(model: str, answer: str, counts: Content, *, of_chat: bool) -> Content:
    """The last chunk of a stream that tells its counts."""
    head = _head(*(("chatcmpl", "chat.completion.chunk") if of_chat else ("cmpl", "text_completion")), model, answer)
    return {**head, "choices": [], "usage": _less(counts)}


def chat(model: str, answer: str, message: Content, finish: str | None, counts: Content) -> Content:
    """The response to a chat that does not stream; ``message`` has what the answer has of its fields."""
    whole: Content = {
        "role": "assistant",
        "content": None,
        "refusal": None,
        "annotations": None,
        "audio": None,
        "function_call": None,
        "tool_calls": [],
        "reasoning": None,
    }
    choice = {
        "index": 0,
        "message": whole | message,
        "logprobs": None,
        "finish_reason": finish,
        "stop_reason": None,
        "token_ids": None,
    }
    return {
        **_head("chatcmpl", "chat.completion", model, answer),
        "choices": [choice],
        "service_tier": None,
        "system_fingerprint": None,
        "usage": counts,
        "prompt_logprobs": None,
        "prompt_token_ids": None,
        "kv_transfer_params": None,
    }


def chat_chunk(model: str, answer: str, delta: Content, finish: str | None, counts: Content | None) -> Content:
    """A chunk of a chat. That with the role tells nothing of ids, and its own field of the prompt's."""
    choice: Content = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    begins = "role" in delta
    if not begins:
        choice |= {"stop_reason": None} if finish else {}
        choice["token_ids"] = None
    chunk = {**_head("chatcmpl", "chat.completion.chunk", model, answer), "choices": [choice]}
    if begins:
        chunk["prompt_token_ids"] = None
    return chunk if counts is None else {**chunk, "usage": _less(counts)}


def models(name: str, max_total_tokens: int) -> Content:
    """``/v1/models``: the one there is."""
    card = {
        "id": name,
        "object": "model",
        "created": int(time.time()),
        "owned_by": "vllm",
        "root": name,
        "parent": None,
        "max_model_len": max_total_tokens,
    }
    return {"object": "list", "data": [card]}


def _less(counts: Content) -> Content:
    return {name: count for name, count in counts.items() if count is not None}


def _head(prefix: str, kind: str, model: str, answer: str) -> Content:
    return {"id": f"{prefix}-{answer}", "object": kind, "created": int(time.time()), "model": model}
