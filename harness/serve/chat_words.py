"""What is said in a chat, apart from how a model has it: text, reasoning, calls of tools."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from harness.serve import images
from harness.serve.refusal import Refusal
from harness.serve.requests import ChatMessage, ChatRequest


class Part(enum.Enum):
    """What a piece of an answer belongs to."""

    CONTENT = "content"
    REASONING = "reasoning"
    CALL = "call"
    """The name of a function that is called: a call begins."""
    ARGUMENTS = "arguments"
    """More of the arguments of the call that began last."""


@dataclass(frozen=True, slots=True)
class Word:
    """A piece of an answer."""

    part: Part
    text: str


class Reader(Protocol):
    """Takes one answer apart as its ids come."""

    def feed(self, ids: Sequence[int], *, last: bool) -> list[Word]:
        """What these ids add."""


class ChatFormat(Protocol):
    """How a family of models has a chat as tokens."""

    stop_ids: tuple[int, ...]
    """What ends an answer besides the model's own end token."""
    gpt_oss: bool
    """Whether its chunks are of the shape that gpt-oss has."""

    def prompt(self, request: ChatRequest) -> list[int]:
        """The ids of a conversation, up to where the answer begins. Raises Refusal."""

    def chat(self, request: ChatRequest, session: str | None = None) -> bytes | None:
        """The chat itself as JSON, for an engine that reads chats itself; None where ids are all.

        ``session`` is the client's word for the conversation that the chat is of.
        """

    def reader(self, request: ChatRequest) -> Reader:
        """For one answer."""


def text_of(message: ChatMessage) -> str:
    """The text of a message; an image stands in it as its size and hash. Raises Refusal for other parts."""
    if message.content is None or isinstance(message.content, str):
        return message.content or ""
    return "".join(map(_part_text, message.content))


def _part_text(part: dict[str, Any]) -> str:
    kind = part.get("type")
    if kind == "text" and isinstance(part.get("text"), str):
        return str(part["text"])
    if kind == "image_url" and isinstance(image_url := part.get("image_url"), dict):
        image = images.read(str(image_url.get("url")))
        return f"<image {image.width}x{image.height} sha256:{image.sha256}>"
    raise Refusal(f"a part of the type {kind!r} is not served: text and image_url are")


def tools_of(request: ChatRequest) -> list[dict[str, Any]]:
    """The functions that the model may call, each with its name, description and parameters."""
    if request.tool_choice == "none" or not request.tools:
        return []
    return [tool.function.model_dump() for tool in request.tools]
