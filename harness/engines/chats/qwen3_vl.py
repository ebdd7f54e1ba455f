"""A chat with one image as Qwen3-VL reads it: its template, its tokens, and the pads that the image takes.

Nothing of torch or transformers is needed: prompts are counted, and their length is checked, long before a model is.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import orjson

from harness.engines.chats import qwen3_vocab
from harness.engines.chats.picture import (
    MAX_PIXELS,
    MIN_PIXELS,
    Grid,
    image_grid,
    image_tokens,
    open_image,
    require_pillow,
)
from harness.engines.chats.problems import BAD_CHAT, BAD_IMAGE, MANY_IMAGES, NO_IMAGE, BadChat
from harness.engines.chats.qwen3_vocab import IMAGE_PAD, Decoder, decode

if TYPE_CHECKING:
    from PIL.Image import Image

__all__ = [
    "IMAGE_PAD",
    "BadChat",
    "Decoder",
    "Prompt",
    "decode",
    "image_tokens",
    "prompt_ids",
    "read",
    "require_packages",
]

_ROLES: Final = ("system", "user", "assistant")
_IMAGE: Final = "<|vision_start|><|image_pad|><|vision_end|>"


@dataclass(frozen=True, slots=True)
class Prompt:
    """The ids of a chat, with ``grid.tokens`` image pads from ``image_at`` on, and the image that they stand for."""

    ids: list[int]
    image_at: int
    grid: Grid
    image: Image


def prompt_ids(
    body: Mapping[str, Any] | bytes, min_pixels: int = MIN_PIXELS, max_pixels: int = MAX_PIXELS
) -> list[int]:
    """The token ids of a chat (an object with ``messages``, or its JSON), a pad for each token of its image.

    They end where the answer begins. Raises BadChat for what is no chat with one image, MissingError for a package.
    """
    return read(body, min_pixels, max_pixels).ids


def read(body: Mapping[str, Any] | bytes, min_pixels: int = MIN_PIXELS, max_pixels: int = MAX_PIXELS) -> Prompt:
    """As :func:`prompt_ids`, with the image, of which only the head was read."""
    messages = _messages(body)
    image = _the_image(messages)
    try:
        grid = image_grid(image.width, image.height, min_pixels, max_pixels)
    except ValueError as error:
        raise BadChat(BAD_IMAGE, str(error)) from error
    ids = [each for position, message in enumerate(messages) for each in _message_ids(position, message)]
    ids += _cached_ids("<|im_start|>assistant\n")
    if ids.count(IMAGE_PAD) != 1:
        raise BadChat(BAD_CHAT, "a text spells <|image_pad|>, which stands for an image")
    at = ids.index(IMAGE_PAD)
    return Prompt(ids[:at] + [IMAGE_PAD] * grid.tokens + ids[at + 1 :], at, grid, image)


def require_packages() -> None:
    """Raises MissingError where a package is not installed without which no chat can be read."""
    qwen3_vocab.vocabulary()
    require_pillow()


def _messages(body: Mapping[str, Any] | bytes) -> Sequence[Mapping[str, Any]]:
    chat: object = body
    if isinstance(body, bytes):
        try:
            chat = orjson.loads(body)
        except orjson.JSONDecodeError as error:
            raise BadChat(BAD_CHAT, f"not JSON: {error}") from error
    messages = chat.get("messages") if isinstance(chat, Mapping) else None
    if not isinstance(chat, Mapping) or not isinstance(messages, Sequence) or isinstance(messages, str):
        raise BadChat(BAD_CHAT, "there is no list of messages")
    if not messages or not all(isinstance(each, Mapping) for each in messages):
        raise BadChat(BAD_CHAT, "a message is no object, or there is none")
    if chat.get("tools"):
        raise BadChat(BAD_CHAT, "there are tools, which this template does not take")
    return messages


def _the_image(messages: Sequence[Mapping[str, Any]]) -> Image:
    urls = [url for message in messages for _, url in _parts(message) if url is not None]
    if not urls:
        raise BadChat(NO_IMAGE, "the chat has no image")
    if len(urls) > 1:
        raise BadChat(MANY_IMAGES, f"the chat has {len(urls)} images, not one")
    return open_image(urls[0])


def _message_ids(position: int, message: Mapping[str, Any]) -> Sequence[int]:
    role = message.get("role")
    if role not in _ROLES or (role == "system" and position):
        raise BadChat(BAD_CHAT, f"message {position} has the role {role!r}")
    content = [text if url is None else _IMAGE for text, url in _parts(message)]
    if _IMAGE in content and role != "user":
        raise BadChat(BAD_CHAT, f"there is an image in a message of the role {role!r}")
    text = f"<|im_start|>{role}\n{''.join(content)}<|im_end|>\n"
    try:
        # A data set's system message is the same in all of its chats.
        return _cached_ids(text) if role == "system" else qwen3_vocab.encode(text)
    except UnicodeEncodeError as error:
        raise BadChat(BAD_CHAT, f"message {position} is no Unicode text: {error.reason}") from error


@functools.lru_cache(maxsize=16)
def _cached_ids(text: str) -> tuple[int, ...]:
    return tuple(qwen3_vocab.encode(text))


def _parts(message: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """The parts of a message in order: a text and None, or "" and the url of an image."""
    content = message.get("content")
    if isinstance(content, str):
        yield content, None
        return
    if not isinstance(content, Sequence):
        raise BadChat(BAD_CHAT, "the content of a message is neither a text nor a list of parts")
    for part in content:
        yield _part(part)


def _part(part: object) -> tuple[str, str | None]:
    if isinstance(part, Mapping):
        if part.get("type") == "text" and isinstance(part.get("text"), str):
            return part["text"], None
        if part.get("type") == "image_url":
            stated = part.get("image_url")
            url = stated.get("url") if isinstance(stated, Mapping) else stated
            if isinstance(url, str):
                return "", url
    raise BadChat(BAD_CHAT, "a part of a message is neither a text nor an image_url")
