"""Whose manners the server has: what it takes, what it refuses, and how it says what it says."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, Protocol

from harness.serve import shapes, vllm_shapes
from harness.serve.metrics import Load, Told, iterations, prometheus
from harness.serve.requests import ChatRequest, CompletionRequest
from harness.serve.shapes import Content
from harness.serve.vllm_requests import VllmChatRequest, VllmCompletionRequest
from harness.serve.wording import GptOssWording, TrtllmWording, VllmWording, Wording


class Shapes(Protocol):
    """What is said, as JSON. ``answer`` tells one answer from another; each server makes its ids of it, or does not."""

    def error(self, message: str, kind: str, status: int) -> Content:
        """The body of an error response."""

    def broken_stream(self, message: str) -> bytes:
        """What a stream ends with when its answer breaks."""

    def too_long(self, limit: int, prompt_tokens: int, asked: int | None) -> str:
        """Why a prompt is refused for which there is no room."""

    def usage(
        self, prompt_tokens: int, completion_tokens: int, cached_tokens: int = 0, *, details: bool = True
    ) -> Content:
        """The counts; ``cached_tokens`` are those of the prompt that were not computed anew."""

    def completion(
        self, model: str, answer: str, text: str, ids: Sequence[int] | None, finish: str | None, counts: Content
    ) -> Content:
        """The response to a completion that does not stream."""

    def completion_chunk(
        self, model: str, answer: str, text: str, ids: Sequence[int] | None, finish: str | None, counts: Content | None
    ) -> Content:
        """A chunk of a completion."""

    def usage_chunk(self, model: str, answer: str, counts: Content, *, of_chat: bool) -> Content:
        """The last chunk of a stream that tells its counts."""

    def chat(self, model: str, answer: str, message: Content, finish: str | None, counts: Content) -> Content:
        """The response to a chat that does not stream."""

    def chat_chunk(
        self, model: str, answer: str, delta: Content, finish: str | None, counts: Content | None
    ) -> Content:
        """A chunk of a chat."""

    def models(self, name: str, max_total_tokens: int) -> Content:
        """``/v1/models``."""


@dataclass(frozen=True, slots=True)
class Manner:
    """One kind of server. ``breaks_chats`` is whether a stream of a chat that breaks is cut without a word.

    ``metrics`` is what it says of its load, given the model's name.
    ``of_gpt_oss`` is how it words gpt-oss's chats where it does so in a way of their own.
    """

    shapes: Shapes
    completion: type[CompletionRequest]
    chat: type[ChatRequest]
    wording: Callable[[], Wording]
    of_gpt_oss: Callable[[], Wording] | None
    breaks_chats: bool
    metrics: Callable[[str, Load], Told]


MANNERS: Final[Mapping[str, Manner]] = MappingProxyType(
    {
        "trtllm-serve": Manner(shapes, CompletionRequest, ChatRequest, TrtllmWording, GptOssWording, True, iterations),
        "vllm": Manner(vllm_shapes, VllmCompletionRequest, VllmChatRequest, VllmWording, None, False, prometheus),
    }
)
"""By the name that ``--like`` has for each."""
