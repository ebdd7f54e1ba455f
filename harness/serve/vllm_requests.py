"""The bodies of requests as vLLM reads them: what it does not know it passes over, and it has fields of its own."""

from __future__ import annotations

from typing import Any, Final

from pydantic import ConfigDict, field_validator, model_validator

from harness.serve.requests import ChatRequest, CompletionRequest

UNKNOWN: Final = frozenset(
    {
        "detokenize",
        "disaggregated_params",
        "early_stopping",
        "lora_request",
        "prompt_ignore_length",
        "return_context_logits",
        "top_p_min",
    }
)
"""Fields of trtllm-serve's that are none of vLLM's."""
TOP_K_OFF: Final = -1


class VllmCompletionRequest(CompletionRequest):
    """The body of ``POST /v1/completions``; with ``return_token_ids`` the answer has its ids beside its text."""

    model_config = ConfigDict(extra="ignore")

    return_token_ids: bool | None = None

    @property
    def wants_ids(self) -> bool:
        """Whether the answer is to have its token ids."""
        return bool(self.return_token_ids)

    @field_validator("top_k", mode="before")
    @classmethod
    def _off_by_either_word(cls, value: object) -> object:
        return _top_k(value)

    @model_validator(mode="before")
    @classmethod
    def _without_what_is_not_known(cls, data: Any) -> Any:  # noqa: ANN401
        return _known(data)


class VllmChatRequest(ChatRequest):
    """The body of ``POST /v1/chat/completions``."""

    model_config = ConfigDict(extra="ignore")

    @field_validator("top_k", mode="before")
    @classmethod
    def _off_by_either_word(cls, value: object) -> object:
        return _top_k(value)

    @model_validator(mode="before")
    @classmethod
    def _without_what_is_not_known(cls, data: Any) -> Any:  # noqa: ANN401
        return _known(data)

    @model_validator(mode="before")
    @classmethod
    def _cap_by_either_name(cls, data: Any) -> Any:  # noqa: ANN401
        """The newer name goes before the older, where both are given."""
        if isinstance(data, dict) and data.get("max_completion_tokens") is not None:
            return {key: value for key, value in data.items() if key != "max_tokens"}
        return data


def _top_k(value: object) -> object:
    return 0 if value in (None, TOP_K_OFF) else value


def _known(data: Any) -> Any:  # noqa: ANN401
    """Without fields that vLLM does not know, and with null for its own defaults left out."""
    if not isinstance(data, dict):
        return data
    return {key: value for key, value in data.items() if key not in UNKNOWN and value is not None}
