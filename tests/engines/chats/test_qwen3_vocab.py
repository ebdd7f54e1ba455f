"""The vocabulary against transformers' tokenizer, which is made of the same ranks by its own code."""

from __future__ import annotations

import hashlib
import importlib.util
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.engines.chats import qwen3_vocab
from harness.engines.chats.byte_pairs import BytePairs
from harness.engines.chats.qwen3_vocab import Decoder, decode, encode, vocabulary
from harness.errors import MissingError

pytestmark = pytest.mark.qwen3vl
TRICKY = [
    "'s",
    "'LL",
    "'\u017f",
    "don't",
    "\n",
    "\r\n",
    " ",
    "  ",
    "\t",
    "\x1c",
    "\x85",
    "\u00a0",
    "\u2028",
    "1",
    "\u0663",
]
TRICKY += [
    "a",
    "Z",
    "\u00e9",
    "e\u0301",
    "\ufb06",
    "\u4e2d\u6587",
    "\U0001f600",
    "\U00020000",
    "\U0001d7d8",
    "..",
    "</p>",
    "<|",
    "<|im_end|>",
    "<think>",
]


@pytest.fixture(scope="module")
def reference() -> Any:
    transformers = pytest.importorskip("transformers")
    known = vocabulary()
    spell = byte_letters()
    made = transformers.Qwen2Tokenizer(
        vocab={spell(token): rank for token, rank in known.ranks.items()},
        merges=[(spell(left), spell(right)) for left, right in BytePairs(known.ranks).merges()],
    )
    special = [text for text, rank in known.added.items() if rank not in range(151_657, 151_669)]
    others = [text for text, rank in known.added.items() if rank in range(151_657, 151_669)]
    for text in known.added:
        made.add_tokens([text], special_tokens=text in special)
    assert others
    assert len(made) == 151_669
    return made


def byte_letters() -> Callable[[bytes], str]:
    """How files of byte-level tokenizers spell bytes: printable ones as themselves, the others as 256, 257, ..."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    letters = {byte: chr(byte) for byte in printable} | {byte: chr(256 + at) for at, byte in enumerate(others)}
    return lambda token: "".join(letters[byte] for byte in token)


def test_known_ids() -> None:
    # From the documentation of the model: its control tokens.
    assert encode("<|endoftext|><|im_start|><|im_end|><|vision_start|><|image_pad|>") == [
        151_643,
        151_644,
        151_645,
        151_652,
        151_655,
    ]
    assert len(vocabulary().pieces) == qwen3_vocab.VOCAB_SIZE
    assert encode("") == []


@pytest.mark.torch
def test_texts_have_the_ids_that_transformers_gives_them(reference: Any) -> None:
    chosen = random.Random(5)
    for _ in range(3000):
        text = "".join(chosen.choice(TRICKY) for _ in range(chosen.randrange(25)))
        assert encode(text) == reference.encode(text), repr(text)


@pytest.mark.torch
def test_all_characters_that_the_tokenizer_knows_are_of_its_class(reference: Any) -> None:
    # One in 41 of the assigned ones; those of Unicode 17 are the only ones that differ (checked for all once).
    for code in [*range(0x80), *range(0x80, 0x2F800, 41)]:
        if not 0xD800 <= code < 0xE000 and code not in UNICODE_17:
            text = f"ab{chr(code)}cd 1{chr(code)}{chr(code)}\n {chr(code)}'s"
            assert encode(text) == reference.encode(text), hex(code)


UNICODE_17 = {
    *(0x88F, 0xC5C, 0xCDC, 0xA7CE, 0xA7CF, 0xA7D2, 0xA7D4, 0xA7F1),
    *range(0x10940, 0x1095A),
    *range(0x10EC5, 0x10EC8),
    *range(0x11DB0, 0x11DEA),
    *range(0x16EA0, 0x16FF7),
    *range(0x187F8, 0x18800),
    *range(0x18D09, 0x18DF3),
    *range(0x1E6C0, 0x1E700),
    *range(0x2B73A, 0x2B740),
    *range(0x2CEA2, 0x2CEAE),
}


@pytest.mark.torch
def test_ids_have_the_text_that_transformers_gives_them(reference: Any) -> None:
    chosen = random.Random(6)
    for _ in range(1000):
        ids = [chosen.randrange(151_669) for _ in range(chosen.randrange(12))]
        expected = reference.decode(ids, skip_special_tokens=True, clean_up_tokenization_spaces=False)
        assert decode(ids) == expected, ids


@settings(deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_text_comes_back(text: str) -> None:
    import unicodedata

    assert decode(encode(text)) == unicodedata.normalize("NFC", text)


@settings(deadline=None)
@given(st.lists(st.integers(0, qwen3_vocab.VOCAB_SIZE - 1), max_size=30), st.integers(1, 5))
def test_text_that_comes_in_pieces_is_the_text(ids: list[int], step: int) -> None:
    decoder = Decoder()
    pieces = [decoder.feed(ids[at : at + step]) for at in range(0, len(ids), step)]
    assert "".join(pieces) + decoder.finish() == decode(ids)


def test_a_character_of_several_ids_waits_for_its_last() -> None:
    ids = [vocabulary().ranks[bytes([byte])] for byte in "\U0001f600".encode()]
    decoder = Decoder()
    assert [decoder.feed([each]) for each in ids] == ["", "", "", "\U0001f600"]
    assert decode(ids[:2]) == "\ufffd"


def test_ids_without_a_token_are_no_text_and_others_are_refused() -> None:
    assert decode([151_669, 151_935, 151_645]) == ""
    with pytest.raises(IndexError):
        decode([151_936])


def test_a_lone_surrogate_is_no_text() -> None:
    with pytest.raises(UnicodeEncodeError):
        encode("\ud800")


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingError, match=r"the vocabulary qwen3.vocab is nowhere\n.*\n.*qwen3-vl"):
        vocabulary.__wrapped__()


def test_another_vocabulary_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.mkdir()
    (data / "qwen3.vocab").write_bytes(b"\0\0\0\0")
    monkeypatch.setattr(qwen3_vocab, "_folder", lambda: data)
    digest = hashlib.sha256(b"\0\0\0\0").hexdigest()
    with pytest.raises(MissingError, match=f"not the vocabulary of Qwen3: sha256 {digest}"):
        vocabulary.__wrapped__()
    (data / "qwen3.vocab").unlink()
    with pytest.raises(MissingError, match="no vocabulary file: No such file"):
        vocabulary.__wrapped__()
