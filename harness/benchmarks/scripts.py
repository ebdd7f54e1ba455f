"""What a scripted engine answers to the rows of a data set, written before: token ids, or replies to chats."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import orjson

from harness.engines.base import Int32Array, Int64Array


@dataclass(frozen=True, slots=True, eq=False)
class ScriptedAnswers:
    """An answer for each row of a data set: row i is ``tokens[ends[i - 1] : ends[i]]`` (from 0 for the first)."""

    tokens: Int32Array
    ends: Int64Array

    def __post_init__(self) -> None:
        if self.tokens.dtype != np.int32 or self.ends.dtype != np.int64:
            raise ValueError(f"tokens must be int32 and ends int64, not {self.tokens.dtype} and {self.ends.dtype}")
        if (np.diff(self.ends) < 0).any() or (len(self.ends) and int(self.ends[-1]) != len(self.tokens)):
            raise ValueError("the ends do not cut the tokens into answers")

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, row: int) -> Int32Array:
        start = int(self.ends[row - 1]) if row else 0
        return self.tokens[start : int(self.ends[row])]

    def write(self, path: Path) -> None:
        """Writes the arrays ``tokens`` and ``ends`` as one .npz file, which the scripted engine reads."""
        with path.open("wb") as file:
            np.savez(file, tokens=self.tokens, ends=self.ends)


@dataclass(frozen=True, slots=True, eq=False)
class ScriptedReplies:
    """A reply for each chat of a data set: row i is ``data[ends[i - 1] : ends[i]]``, of ``tokens[i]`` tokens.

    Each is JSON as :class:`harness.engines.base.Replies` has it. ``data`` is uint8, ``ends`` int64, ``tokens`` int32.
    """

    data: npt.NDArray[np.uint8]
    ends: Int64Array
    tokens: Int32Array

    def __post_init__(self) -> None:
        kinds = f"{self.data.dtype}, {self.ends.dtype}, {self.tokens.dtype}"
        if kinds != "uint8, int64, int32" or len(self.ends) != len(self.tokens):
            raise ValueError(f"{len(self.ends)} ends, {len(self.tokens)} token counts, of the types {kinds}")
        if (np.diff(self.ends) < 0).any() or (len(self.ends) and int(self.ends[-1]) != len(self.data)):
            raise ValueError("the ends do not cut the data into replies")

    @classmethod
    def of(cls, contents: Iterable[str], tokens: Sequence[int]) -> ScriptedReplies:
        """Replies of these texts, and how many tokens each is said to have."""
        return cls.packed([orjson.dumps({"content": content}) for content in contents], tokens)

    @classmethod
    def packed(cls, replies: Sequence[bytes], tokens: Sequence[int]) -> ScriptedReplies:
        """These replies, each the JSON of one, and how many tokens each is said to have."""
        ends = np.cumsum(np.fromiter(map(len, replies), np.int64, len(replies)), dtype=np.int64)
        return cls(np.frombuffer(b"".join(replies), np.uint8), ends, np.array(tokens, np.int32))

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, row: int) -> bytes:
        start = int(self.ends[row - 1]) if row else 0
        return self.data[start : int(self.ends[row])].tobytes()

    def write(self, path: Path) -> None:
        """Writes the arrays as one .npz file, which the scripted engine reads."""
        with path.open("wb") as file:
            np.savez(file, data=self.data, ends=self.ends, tokens=self.tokens)
