"""Qwen3-VL's chat: its template, its vocabulary, and the image, which the engine looks at itself."""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Mapping, Sequence

import orjson

from harness.engines.chats import qwen3_vl, qwen3_vocab
from harness.engines.chats.picture import UNREADABLE
from harness.engines.chats.problems import NO_IMAGE, BadChat
from harness.errors import MissingError
from harness.serve.chat_words import Part, Reader, Word, text_of
from harness.serve.refusal import Refusal
from harness.serve.requests import ChatRequest
from harness.serve.texts import Decoder


class Qwen3Codec:
    """Qwen3's own vocabulary. What spells an added token in a prompt becomes that token."""

    def __init__(self) -> None:
        """Loads the vocabulary. Raises MissingError."""
        qwen3_vocab.vocabulary()

    def encode(self, text: str) -> list[int]:
        """The ids of a text. Raises Refusal for one that is no Unicode."""
        try:
            return qwen3_vocab.encode(text)
        except UnicodeEncodeError as error:
            raise Refusal(f"a text is no Unicode: {error.reason}") from None

    def decoder(self, *, skip_special: bool) -> Decoder:
        """For one answer."""
        return _Decoder(skip_special=skip_special)


class _Decoder:
    """Special tokens have no text of their own; where they are wanted, they stand between what is decoded."""

    def __init__(self, *, skip_special: bool) -> None:
        self._named = {} if skip_special else _special_tokens()
        self._decoder = qwen3_vocab.Decoder()

    def feed(self, ids: Sequence[int], *, last: bool) -> str:
        """The text that these ids add."""
        parts: list[str] = []
        plain: list[int] = []
        for each in ids if self._named else ():
            if each in self._named:
                parts += [self._decoder.feed(plain), self._decoder.finish(), self._named[each]]
                self._decoder, plain = qwen3_vocab.Decoder(), []
            else:
                plain.append(each)
        parts.append(self._decoder.feed(plain if self._named else ids))
        if last:
            parts.append(self._decoder.finish())
        return "".join(parts)


@functools.cache
def _special_tokens() -> Mapping[int, str]:
    known = qwen3_vocab.vocabulary()
    return {number: text for text, number in known.added.items() if not known.pieces[number]}


class Qwen3VlChat:
    """See the module. ``pixels`` are the fewest and most that the checkpoint's preprocessor makes of an image.

    Raises MissingError where Pillow is not installed.
    """

    gpt_oss = False
    stop_ids: tuple[int, ...] = (qwen3_vocab.END_OF_TURN, qwen3_vocab.END_OF_TEXT)

    def __init__(self, codec: Qwen3Codec, pixels: tuple[int, int]) -> None:
        if importlib.util.find_spec("PIL") is None:
            raise MissingError("the package pillow is not installed", mend=qwen3_vocab.INSTALL)
        self._codec = codec
        self._pixels = pixels

    def prompt(self, request: ChatRequest) -> list[int]:
        """The ids up to where the answer begins, with a pad for each token of the image. Raises Refusal."""
        refuse_what_cannot_be(request)
        try:
            read = qwen3_vl.read(request.received(), *self._pixels)
        except BadChat as problem:
            if problem.kind == NO_IMAGE:
                return self._codec.encode(_rendered(request))
            raise Refusal(str(problem)) from None
        try:
            read.image.load()
        except UNREADABLE as error:
            raise Refusal(f"the image cannot be decoded: {error}") from None
        return read.ids

    def chat(self, request: ChatRequest, session: str | None = None) -> bytes | None:
        """The chat's JSON; None for one that is text alone. Nothing is kept of a session."""
        chat = request.received()
        return orjson.dumps(chat) if _has_image(chat["messages"]) else None

    def reader(self, request: ChatRequest) -> Reader:
        """For one answer, whose text is told as it is: the template takes no tools, and the model does not think."""
        return _TextReader(self._codec.decoder(skip_special=request.skip_special_tokens))


class _TextReader:
    def __init__(self, decoder: Decoder) -> None:
        self._decoder = decoder

    def feed(self, ids: Sequence[int], *, last: bool) -> list[Word]:
        text = self._decoder.feed(ids, last=last)
        return [Word(Part.CONTENT, text)] if text else []


def refuse_what_cannot_be(request: ChatRequest) -> None:
    """An engine that reads a chat ends its answer by the checkpoint's own tokens, whatever a request says."""
    asked = {
        "add_generation_prompt": (request.add_generation_prompt, True),
        "ignore_eos": (request.ignore_eos, False),
        "stop_token_ids": (request.stop_token_ids or [], []),
    }
    for name, (value, possible) in asked.items():
        if value != possible:
            raise Refusal(f"`{name}` is {value!r}, which the engine behind this server cannot do")


def _rendered(request: ChatRequest) -> str:
    lines = [f"<|im_start|>{message.role}\n{text_of(message)}<|im_end|>\n" for message in request.messages]
    return "".join(lines) + "<|im_start|>assistant\n"


def _has_image(messages: Sequence[Mapping[str, object]]) -> bool:
    parts = [part for each in messages if isinstance(content := each.get("content"), list) for part in content]
    return any(isinstance(part, Mapping) and part.get("type") == "image_url" for part in parts)
