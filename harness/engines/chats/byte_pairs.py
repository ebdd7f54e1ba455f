"""Byte-pair encoding by ranks: the adjacent parts that make the token of the lowest rank become one, until none do."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush

_ABSORBED = -1


class BytePairs:
    """The merging of one vocabulary. ``ranks`` has every token's bytes with its rank, which is its id."""

    __slots__ = ("_ranks",)

    def __init__(self, ranks: Mapping[bytes, int]) -> None:
        self._ranks = ranks

    def ids(self, word: bytes) -> tuple[int, ...]:
        """The ids of one word; never empty for a word that is not."""
        whole = self._ranks.get(word)
        if whole is not None:
            return (whole,)
        return tuple(self._ranks[part] for part in self.parts(word, len(self._ranks)))

    def parts(self, word: bytes, below: int) -> list[bytes]:
        """What is left of a word when all merges of a rank lower than ``below`` are done.

        Takes n log n steps, so that a word of a whole page (a line of base64, Chinese without a stop) is no trap.
        """
        n = len(word)
        end_of = list(range(1, n + 1))
        start_before = list(range(-1, n))
        ranks = self._ranks
        pairs = [(ranks.get(word[at : at + 2], below), at, at + 2) for at in range(n - 1)]
        pairs = [pair for pair in pairs if pair[0] < below]
        heapify(pairs)
        while pairs:
            _, start, end = heappop(pairs)
            middle = end_of[start]
            if middle == _ABSORBED or middle >= n or end_of[middle] != end:
                continue  # one of the two has become part of another since
            end_of[start], end_of[middle], start_before[end] = end, _ABSORBED, start
            around = [(start_before[start], end)] if start else []
            if end < n:
                around.append((start, end_of[end]))
            for first, last in around:
                rank = ranks.get(word[first:last], below)
                if rank < below:
                    heappush(pairs, (rank, first, last))
        result, at = [], 0
        while at < n:
            result.append(word[at : end_of[at]])
            at = end_of[at]
        return result

    def merges(self) -> list[tuple[bytes, bytes]]:
        """The two parts that every token of more than a byte is made of, in order of rank.

        Raises ValueError for a vocabulary with a token that no two tokens make.
        """
        found = []
        for token, rank in sorted(self._ranks.items(), key=lambda each: each[1]):
            if len(token) > 1:
                parts = self.parts(token, rank)
                if len(parts) != 2:
                    raise ValueError(f"token {rank} is made of {len(parts)} others, not of two")
                found.append((parts[0], parts[1]))
        return found
