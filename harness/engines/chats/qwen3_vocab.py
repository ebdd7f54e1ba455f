"""The vocabulary of Qwen3 without its checkpoint: text to token ids and back, equal to transformers' tokenizer.

The byte-pair ranks, the special tokens and the letters and digits of Unicode come from the data files of the package
quicktok-v1, which is taken for them alone; its compiled part is not loaded. They are of Unicode 17; a server whose
tokenizer knows an older one cuts the letters that are new since otherwise.
"""

from __future__ import annotations

import codecs
import functools
import hashlib
import importlib.util
import re
import struct
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final

from harness.engines.chats.byte_pairs import BytePairs
from harness.errors import MissingError

VOCAB_SIZE: Final = 151_936
"""Rows of the checkpoint's embedding; ids from 151,669 on have no token."""
END_OF_TEXT: Final = 151_643
END_OF_TURN: Final = 151_645
VISION_START: Final = 151_652
VISION_END: Final = 151_653
IMAGE_PAD: Final = 151_655
VIDEO_PAD: Final = 151_656
INSTALL: Final = "pip install '.[qwen3-vl]'"

_FILES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "qwen3.vocab": "6114087889f61af31f72abe80529bbd09826df4d396753a281a14bcc21abc2fa",
        "qwen3.special": "d3fccd273ee759d3d91c2a73458db4f5738d56e104f8cccfd21cb36f401b020a",
        "uniclass.bin": "6039f6f7bd056c0d211d02a907a8ed8f3317bb719fc495b9093f9cccca948809",
    }
)
"""The files of quicktok-v1 0.4.0 and their sha256; the ids that they give were compared with transformers' ones."""
NOT_SPECIAL: Final = range(151_657, 151_669)
"""Added tokens that the tokenizer's file does not call special: a decoded text keeps them."""
_PRINTABLE: Final = frozenset([*range(33, 127), *range(161, 173), *range(174, 256)])
_LETTERS: Final[Mapping[int, int]] = MappingProxyType(
    {byte: 256 + place for place, byte in enumerate(sorted(set(range(256)) - _PRINTABLE))}
)
"""The letters of bytes that are not printable; the others stand for themselves."""
_KEPT_WORDS: Final = 1 << 17
_PLANE: Final = 0xFFFF
_HIGHEST: Final = 0x10FFFF
_A_LETTER, _A_NUMBER, _NEITHER = "\u4e00", "\u2160", "\u2603"


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """``ranks`` and ``added`` give the ids of byte-pair tokens and of the added ones, ``split`` cuts a text in words.

    ``pieces`` are the bytes of each id.
    """

    ranks: Mapping[bytes, int]
    added: Mapping[str, int]
    pieces: tuple[bytes, ...]
    split: Callable[[str], list[str]]
    at_added: re.Pattern[str]
    word_ids: Callable[[str], tuple[int, ...]]


def encode(text: str) -> list[int]:
    """The token ids of a text; what spells an added token becomes that token, as servers have it.

    Raises UnicodeEncodeError for a lone surrogate, which no UTF-8 text has.
    """
    known = vocabulary()
    ids: list[int] = []
    for place, part in enumerate(known.at_added.split(text)):
        if place % 2:
            ids.append(known.added[part])
        else:
            for word in known.split(_composed(part)):
                ids.extend(known.word_ids(word))
    return ids


def decode(ids: Iterable[int]) -> str:
    """The text of ids without special tokens; what is not UTF-8 becomes U+FFFD, what has no token nothing."""
    decoder = Decoder()
    return decoder.feed(ids) + decoder.finish()


class Decoder:
    """Text of ids as they come. What it has given out never changes: a character of several ids waits for the last."""

    __slots__ = ("_decoder", "_pieces")

    def __init__(self) -> None:
        self._pieces = vocabulary().pieces
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def feed(self, ids: Iterable[int]) -> str:
        """The text that further ids complete. Raises IndexError for an id that is not in the vocabulary."""
        pieces = self._pieces
        return self._decoder.decode(b"".join([pieces[each] for each in ids]))

    def finish(self) -> str:
        """What is left of a character that was not completed."""
        return self._decoder.decode(b"", final=True)


@functools.cache
def vocabulary() -> Vocabulary:
    """Read once a process (about 0.2 s). Raises MissingError."""
    folder = _folder()
    data = {name: _checked(folder / name, digest) for name, digest in _FILES.items()}
    ranks = dict(_ranks(data["qwen3.vocab"]))
    added = dict(_added(data["qwen3.special"]))
    pairs = BytePairs(ranks)

    @functools.lru_cache(maxsize=_KEPT_WORDS)
    def word_ids(word: str) -> tuple[int, ...]:
        return pairs.ids(word.encode())

    pieces = [b""] * VOCAB_SIZE
    for token, rank in ranks.items():
        pieces[rank] = token
    for text, rank in added.items():
        pieces[rank] = text.encode() if rank in NOT_SPECIAL else b""
    at_added = re.compile("(" + "|".join(map(re.escape, added)) + ")")
    return Vocabulary(ranks, added, tuple(pieces), _splitter(data["uniclass.bin"]), at_added, word_ids)


def spelled(token: bytes) -> str:
    """A token's bytes as files of byte-level tokenizers spell them: a letter for each byte."""
    return token.decode("latin-1").translate(_LETTERS)


def _folder() -> Path:
    # find_spec does not import the package, which would load its compiled part.
    spec = importlib.util.find_spec("quicktok")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(place) / "data"
        if (folder / next(iter(_FILES))).exists():
            return folder
    raise MissingError(
        f"the vocabulary {next(iter(_FILES))} is nowhere",
        expected="the package quicktok-v1, which carries it",
        mend=INSTALL,
    )


def _checked(path: Path, digest: str) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise MissingError(f"no vocabulary file: {error.strerror}", where=path, mend=INSTALL) from error
    found = hashlib.sha256(content).hexdigest()
    if found != digest:
        raise MissingError(
            f"not the vocabulary of Qwen3: sha256 {found}", where=path, expected=f"sha256 {digest}", mend=INSTALL
        )
    return content


def _ranks(data: bytes) -> Iterator[tuple[bytes, int]]:
    """A u32 count, then for each token a u16 length, its bytes and a u32 rank, little-endian."""
    (count,) = struct.unpack_from("<I", data)
    at = 4
    for _ in range(count):
        (length,) = struct.unpack_from("<H", data, at)
        at += 2 + length
        yield data[at - length : at], struct.unpack_from("<I", data, at)[0]
        at += 4


def _added(data: bytes) -> Iterator[tuple[str, int]]:
    """A u32 count, then for each token a u32 id, a u16 length and its text, little-endian."""
    (count,) = struct.unpack_from("<I", data)
    at = 4
    for _ in range(count):
        number, length = struct.unpack_from("<IH", data, at)
        at += 6 + length
        yield data[at - length : at].decode(), number


def _splitter(classes: bytes) -> Callable[[str], list[str]]:
    """Cuts a text in the words that are encoded one by one.

    re knows no classes of letters and numbers, and tests characters beyond the basic plane one range after the other.
    So for such a character one of the plane that is of the same class stands in while the text is cut.
    """
    letters, numbers, spaces = _ranges(classes)
    ascii_, plane = (_pattern(letters, numbers, spaces, highest) for highest in (0x7F, _PLANE))
    beyond = re.compile(f"[{chr(_PLANE + 1)}-{chr(_HIGHEST)}]")

    @functools.lru_cache(maxsize=4096)
    def stand_in(character: str) -> str:
        code = ord(character)
        if any(first <= code <= last for first, last in letters):
            return _A_LETTER
        return _A_NUMBER if any(first <= code <= last for first, last in numbers) else _NEITHER

    def split(text: str) -> list[str]:
        if text.isascii():
            return ascii_(text)
        if not beyond.search(text):
            return plane(text)
        words, at = [], 0
        for word in plane(beyond.sub(lambda found: stand_in(found[0]), text)):
            words.append(text[at : at + len(word)])
            at += len(word)
        return words

    return split


def _ranges(data: bytes) -> Iterator[list[tuple[int, int]]]:
    """Three classes of characters (letters, numbers, white space): a u32 count, then first and last of each range."""
    at = 0
    for _ in range(3):
        (count,) = struct.unpack_from("<I", data, at)
        bounds = struct.unpack_from(f"<{2 * count}I", data, at + 4)
        at += 4 + 8 * count
        yield list(zip(bounds[::2], bounds[1::2], strict=True))


def _pattern(
    letters: list[tuple[int, int]], numbers: list[tuple[int, int]], spaces: list[tuple[int, int]], highest: int
) -> Callable[[str], list[str]]:
    """The words of Qwen's tokenizer, for texts without a character beyond ``highest``."""

    def members(ranges: list[tuple[int, int]]) -> str:
        return "".join(f"\\U{first:08x}-\\U{min(last, highest):08x}" for first, last in ranges if first <= highest)

    letter, number, space = members(letters), members(numbers), members(spaces)
    return re.compile(
        "(?i:'s|'t|'re|'ve|'m|'ll|'d)"
        f"|[^\r\n{letter}{number}]?[{letter}]+"
        f"|[{number}]"
        f"| ?[^{space}{letter}{number}]+[\r\n]*"
        f"|[{space}]*[\r\n]+"
        f"|[{space}]+(?![^{space}])"
        f"|[{space}]+"
    ).findall


def _composed(text: str) -> str:
    return text if unicodedata.is_normalized("NFC", text) else unicodedata.normalize("NFC", text)
