"""Text to token ids and back, for the vocabulary that the engine's model has."""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from typing import Final, Protocol

from harness.benchmarks.gpt_oss_120b import vocab
from harness.serve.refusal import Refusal

BYTES: Final = 256
REPLACEMENT: Final = "\ufffd"
LONGEST_CHARACTER: Final = 4
"""Bytes of the longest character in UTF-8, hence as many tokens at most."""


class Decoder(Protocol):
    """The text of one answer as its ids come. A character whose bytes are not all there waits."""

    def feed(self, ids: Sequence[int], *, last: bool) -> str:
        """The text that these ids add."""


class Codec(Protocol):
    """A tokenizer."""

    def encode(self, text: str) -> list[int]:
        """The ids of a text. Raises Refusal."""

    def decoder(self, *, skip_special: bool) -> Decoder:
        """For one answer."""


class PlainCodec:
    """What stands in where there is no tokenizer: ids below 256 are UTF-8 bytes, any other is a blank and its number.

    It is a tokenizer of no model. An answer of a model's ids reads `` 4711 17``; a script can spell any text.
    """

    def __init__(self, vocab_size: int) -> None:
        self._vocab_size = vocab_size

    def encode(self, text: str) -> list[int]:
        """The bytes of a text. Raises Refusal where the vocabulary has fewer ids than there are bytes."""
        ids = list(text.encode("utf-8", "replace"))
        if ids and max(ids) >= self._vocab_size:
            raise Refusal(f"text needs a vocabulary of {BYTES} ids, and this has {self._vocab_size}: send token ids")
        return ids

    def decoder(self, *, skip_special: bool) -> Decoder:
        """For one answer."""
        return _PlainDecoder()


class _PlainDecoder:
    def __init__(self) -> None:
        self._bytes = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, ids: Sequence[int], *, last: bool) -> str:
        parts = [self._bytes.decode(bytes((each,))) if each < BYTES else self._number(each) for each in ids]
        return "".join(parts) + (self._bytes.decode(b"", final=True) if last else "")

    def _number(self, token: int) -> str:
        return f"{self._bytes.decode(b'', final=True)} {token}"


class GptOssCodec:
    """gpt-oss's own, by openai-harmony. What spells a special token in a prompt becomes that token."""

    def __init__(self) -> None:
        """Loads the vocabulary. Raises MissingError."""
        self.encoding = vocab.encoding()

    def encode(self, text: str) -> list[int]:
        """The ids of a text; none is put before it, as gpt-oss's tokenizer puts none."""
        return vocab.encode(text)

    def decoder(self, *, skip_special: bool) -> Decoder:
        """For one answer."""
        return _GptOssDecoder(skip_special=skip_special)


class _GptOssDecoder:
    """Tokens are pieces of bytes: ids whose text ends in half a character are held until the rest is there."""

    def __init__(self, *, skip_special: bool) -> None:
        self._skip_special = skip_special
        self._held: list[int] = []

    def feed(self, ids: Sequence[int], *, last: bool) -> str:
        self._held += [each for each in ids if each < vocab.FIRST_SPECIAL or not self._skip_special]
        for kept in range(0 if last else LONGEST_CHARACTER):
            text = self._text(len(self._held) - kept)
            if not text.endswith(REPLACEMENT):
                self._held = self._held[len(self._held) - kept :] if kept else []
                return text
        text = self._text(len(self._held))
        self._held = []
        return text

    def _text(self, count: int) -> str:
        text = vocab.decode(self._held[:count]) if count > 0 else ""
        return text if isinstance(text, str) else str(text)
