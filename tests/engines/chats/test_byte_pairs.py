from __future__ import annotations

import itertools
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.chats.byte_pairs import BytePairs

RANKS = {bytes([each]): each for each in range(256)} | {
    token: 256 + place for place, token in enumerate([b"ab", b"bc", b"aab", b"abab", b"cc", b"abc", b"aabcc", b"aa"])
}


def naive(word: bytes) -> list[bytes]:
    """Byte-pair encoding as it is defined: the leftmost of the pairs of the lowest rank, again and again."""
    parts = [word[at : at + 1] for at in range(len(word))]
    while True:
        ranked = [(RANKS[a + b], at) for at, (a, b) in enumerate(itertools.pairwise(parts)) if a + b in RANKS]
        if not ranked:
            return parts
        _, at = min(ranked)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]


@given(st.text("abcd", max_size=40).map(str.encode))
def test_merges_as_byte_pair_encoding_is_defined(word: bytes) -> None:
    assert BytePairs(RANKS).parts(word, len(RANKS)) == naive(word)


def test_a_word_that_is_a_token_is_that_token() -> None:
    # By merges alone "aa" would never come of "aab": "ab" is of a lower rank.
    assert BytePairs(RANKS).ids(b"aa") == (RANKS[b"aa"],)
    assert BytePairs(RANKS).ids(b"") == ()
    assert BytePairs(RANKS).ids(b"abd") == (RANKS[b"ab"], ord("d"))


def test_merges_say_what_each_token_is_made_of() -> None:
    assert BytePairs(RANKS).merges() == [
        (b"a", b"b"),
        (b"b", b"c"),
        (b"a", b"ab"),
        (b"ab", b"ab"),
        (b"c", b"c"),
        (b"ab", b"c"),
        (b"aab", b"cc"),
        (b"a", b"a"),
    ]


def test_a_token_that_nothing_makes_is_told() -> None:
    with pytest.raises(ValueError, match=r"^token 2 is made of 3 others, not of two$"):
        BytePairs({b"a": 0, b"b": 1, b"aba": 2}).merges()


def test_a_word_of_a_whole_page_takes_no_square_of_its_length() -> None:
    pairs = BytePairs(RANKS)
    started = time.process_time()
    assert b"".join(pairs.parts(b"abcaabcd" * 25_000, len(RANKS))) == b"abcaabcd" * 25_000
    assert time.process_time() - started < 20
