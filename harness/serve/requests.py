"""The bodies of requests, as trtllm-serve reads them: its fields, its defaults, and no others.

A field that this server knows and an engine of ours cannot do (:data:`CANNOT`) may be sent with a value that asks for
nothing; any other value is refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from email.message import Message
from typing import Annotated, Any, Final, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from harness.serve.refusal import Refusal

M = TypeVar("M", bound="SampledRequest")

CANNOT: Final[Mapping[str, tuple[object, ...]]] = {
    "best_of": (None, 1),
    "disaggregated_params": (None,),
    "echo": (None, False),
    "frequency_penalty": (None, 0.0),
    "include_stop_str_in_output": (False,),
    "logit_bias": (None, {}),
    "logprobs": (None, 0, False),
    "lora_request": (None,),
    "min_p": (0.0,),
    "min_tokens": (0,),
    "n": (1,),
    "presence_penalty": (None, 0.0),
    "prompt_ignore_length": (None, 0),
    "repetition_penalty": (1.0,),
    "response_format": (None, {"type": "text"}),
    "return_context_logits": (False,),
    "stop": (None, [], ""),
    "top_logprobs": (None, 0),
    "top_p_min": (0.0,),
    "truncate_prompt_tokens": (None,),
    "use_beam_search": (False,),
}
"""Known fields, each with the values that ask for nothing."""


class Strict(BaseModel):
    """A body in which an unknown field is an error."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class StreamOptions(Strict):
    """What a stream tells besides tokens."""

    include_usage: bool | None = True
    continuous_usage_stats: bool | None = False


class SampledRequest(Strict):
    """What both kinds of requests have in common."""

    model: str
    frequency_penalty: float | None = 0.0
    logit_bias: dict[str, float] | None = None
    n: int = 1
    presence_penalty: float | None = 0.0
    response_format: dict[str, Any] | None = None
    seed: int | None = None
    stop: str | list[str] | None = Field(default_factory=list)
    stream: bool | None = False
    stream_options: StreamOptions | None = None
    temperature: float | None = None
    top_p: float | None = None
    user: str | None = None
    lora_request: dict[str, Any] | None = None
    prompt_ignore_length: int | None = 0

    best_of: int | None = None
    use_beam_search: bool = False
    top_k: int = 0
    top_p_min: float = 0.0
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    length_penalty: float = 1.0
    early_stopping: bool = False
    stop_token_ids: list[int] | None = Field(default_factory=list)
    include_stop_str_in_output: bool = False
    ignore_eos: bool = False
    min_tokens: int = 0
    skip_special_tokens: bool = True
    spaces_between_special_tokens: bool = True
    truncate_prompt_tokens: Annotated[int, Field(ge=1)] | None = None
    disaggregated_params: dict[str, Any] | None = None

    @property
    def output_cap(self) -> int | None:
        """How many tokens the answer may have; None for as many as fit."""
        raise NotImplementedError

    @property
    def wants_usage(self) -> bool:
        """Whether a last chunk counts the tokens."""
        return self.stream_options is not None and bool(self.stream_options.include_usage)

    @property
    def wants_usage_always(self) -> bool:
        """Whether every chunk counts them."""
        return self.wants_usage and self.stream_options is not None and bool(self.stream_options.continuous_usage_stats)

    @model_validator(mode="before")
    @classmethod
    def _no_suffix(cls, data: Any) -> Any:  # noqa: ANN401
        if isinstance(data, dict) and data.get("suffix"):
            raise ValueError("suffix is not supported")
        return data


class CompletionRequest(SampledRequest):
    """The body of ``POST /v1/completions``."""

    prompt: list[int] | list[list[int]] | str | list[str]
    echo: bool | None = False
    logprobs: int | None = None
    max_tokens: int | None = None
    suffix: str | None = None
    return_context_logits: bool = False
    detokenize: bool = True
    add_special_tokens: bool = True

    @property
    def wants_ids(self) -> bool:
        """Whether the answer is to have its token ids."""
        return not self.detokenize

    @property
    def output_cap(self) -> int | None:
        """``max_tokens``."""
        return self.max_tokens

    @model_validator(mode="before")
    @classmethod
    def _logprobs_not_negative(cls, data: Any) -> Any:  # noqa: ANN401
        if isinstance(data, dict) and isinstance(data.get("logprobs"), int) and data["logprobs"] < 0:
            raise ValueError("logprobs must be positive or zero")
        return data

    @model_validator(mode="before")
    @classmethod
    def _stream_options_only_with_stream(cls, data: Any) -> Any:  # noqa: ANN401
        if isinstance(data, dict) and data.get("stream_options") and not data.get("stream"):
            raise ValueError("Stream options can only be defined when stream is true.")
        return data


class FunctionDefinition(Strict):
    """A function that the model may call."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class Tool(Strict):
    """A tool: always a function."""

    type: Literal["function"] = "function"
    function: FunctionDefinition


class NamedFunction(Strict):
    """A function by its name."""

    name: str


class NamedToolChoice(Strict):
    """The one function that is to be called."""

    function: NamedFunction
    type: Literal["function"] = "function"


class ChatMessage(BaseModel):
    """One message; other fields are kept, as roles other than OpenAI's own may have them."""

    model_config = ConfigDict(extra="allow")

    role: str
    content: str | list[dict[str, Any]] | None = None
    name: str | None = None
    tool_calls: list[dict[str, Any]] | None = None
    tool_call_id: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None


class ChatRequest(SampledRequest):
    """The body of ``POST /v1/chat/completions``."""

    messages: list[ChatMessage]
    prompt_token_ids: list[int] | None = None
    logprobs: bool | None = False
    top_logprobs: int | None = 0
    max_completion_tokens: int | None = Field(default=None, validation_alias="max_tokens")
    tools: list[Tool] | None = None
    tool_choice: Literal["none", "auto"] | NamedToolChoice | None = "none"
    reasoning_effort: Literal["low", "medium", "high"] | None = "low"
    echo: bool = False
    add_generation_prompt: bool = True
    add_special_tokens: bool = False
    documents: list[dict[str, str]] | None = None
    chat_template: str | None = None
    chat_template_kwargs: dict[str, Any] | None = None
    cache_salt: str | None = None

    @property
    def output_cap(self) -> int | None:
        """``max_completion_tokens``, or ``max_tokens`` by its older name."""
        return self.max_completion_tokens

    def received(self) -> dict[str, Any]:
        """The chat itself, its messages and tools as they were received."""
        chat: dict[str, Any] = {"messages": [message.model_dump(exclude_unset=True) for message in self.messages]}
        if self.tools and self.tool_choice != "none":
            chat["tools"] = [tool.model_dump(exclude_unset=True) for tool in self.tools]
        return chat

    @model_validator(mode="before")
    @classmethod
    def _stream_options_only_with_stream(cls, data: Any) -> Any:  # noqa: ANN401
        if isinstance(data, dict) and data.get("stream_options") is not None and not data.get("stream"):
            raise ValueError("stream_options can only be set if stream is true")
        return data

    @model_validator(mode="before")
    @classmethod
    def _tool_choice_needs_tools(cls, data: Any) -> Any:  # noqa: ANN401
        if not isinstance(data, dict):
            return data
        if "tool_choice" not in data and data.get("tools"):
            return data | {"tool_choice": "auto"}
        if data.get("tool_choice", "none") != "none" and data.get("tools") is None:
            raise ValueError("When using `tool_choice`, `tools` must be set.")
        return data

    @model_validator(mode="before")
    @classmethod
    def _top_logprobs_need_logprobs(cls, data: Any) -> Any:  # noqa: ANN401
        if isinstance(data, dict) and isinstance(top := data.get("top_logprobs"), int):
            if top < 0:
                raise ValueError("top_logprobs must be positive or zero")
            if not data.get("logprobs"):
                raise ValueError("logprobs must be true when using top_logprobs")
        return data

    @field_validator("cache_salt")
    @classmethod
    def _salt_not_empty(cls, salt: str | None) -> str | None:
        if salt is not None and not salt.strip():
            raise ValueError("Parameter 'cache_salt' must be a non-empty string if provided.")
        return salt


def read(model: type[M], body: bytes, content_type: str | None) -> M:
    """A request of a body. Raises Refusal for what is not one, and for what no engine of ours can do."""
    try:
        request = model.model_validate(_content(body, content_type))
    except ValidationError as error:
        problems = [{**each, "loc": ("body", *each["loc"])} for each in error.errors(include_url=False)]
        raise Refusal(str(problems)) from None
    for name, harmless in CANNOT.items():
        value = getattr(request, name, None)
        if name in model.model_fields and value not in harmless:
            raise Refusal(f"`{name}` is {value!r}, which the engine behind this server cannot do")
    return request


def _content(body: bytes, content_type: str | None) -> Any:  # noqa: ANN401
    """The JSON of a body; the body itself where its type says that it is none, which no model accepts."""
    if content_type is not None:
        message = Message()
        message["content-type"] = content_type
        if message.get_content_maintype() != "application" or message.get_content_subtype().split("+")[-1] != "json":
            return body
    try:
        return json.loads(body)
    except (ValueError, RecursionError) as error:
        place = getattr(error, "pos", 0)
        context = {"error": getattr(error, "msg", str(error))}
        problem = {"type": "json_invalid", "loc": ("body", place), "msg": "JSON decode error", "input": {}}
        raise Refusal(str([problem | {"ctx": context}])) from None
