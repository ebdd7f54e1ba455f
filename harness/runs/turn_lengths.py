"""How long prompts and answers are: as the server told, and where it did not, as a tokenizer counts afterwards."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from harness.benchmarks.qwen3_6_27b.counting import answer_text, prompt_tokens, text_tokens
from harness.benchmarks.qwen3_6_27b.requests import EncodedTrajectory
from harness.benchmarks.qwen3_6_27b.store import Library
from harness.engines.bodies import BodyStore
from harness.errors import HarnessError
from harness.ledger.samples import NONE, Int64
from harness.ledger.turn_report import Lengths, Spread
from harness.ledger.turns import TurnReply, TurnState


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """Tokens of each turn (n,), NONE where nobody counted; which were by the server; what counted the others."""

    tokens: Int64
    by_server: npt.NDArray[np.bool_]
    tokenizer: str | None = None
    notes: tuple[str, ...] = ()

    def lengths(self, answered: npt.NDArray[np.bool_]) -> Lengths:
        """Of answered turns alone."""
        known = answered & (self.tokens != NONE)
        by_server = int((known & self.by_server).sum())
        by_tokenizer = int(known.sum()) - by_server
        unknown = int((answered & ~known).sum())
        return Lengths(
            by_server=by_server,
            by_tokenizer=by_tokenizer,
            unknown=unknown,
            tokenizer=self.tokenizer if by_tokenizer else None,
            total=int(self.tokens[known].sum()) if known.any() or not unknown else None,
            tokens=Spread.of(self.tokens[known]),
        )


class TokenCounter:
    """Counts what the server of a run did not: by the tokenizer of the checkpoint ``folder``, or that of stand-ins.

    Chats are made again in a file below ``scratch``, which is gone afterwards, those alone that are counted.
    """

    def __init__(self, turns: Mapping[str, Int64], library: Library, folder: Path | None, scratch: Path) -> None:
        self._turns = turns
        self._library = library
        self._folder = folder
        self._scratch = scratch
        self._name = "Qwen3's vocabulary" if folder is None else f"the tokenizer of {folder.name}"

    def prompts(self) -> Counted:
        """Of each turn's prompt."""
        return self._filled("prompt_tokens", self._count_prompts)

    def answers(self, replies: Callable[[], Iterable[TurnReply]]) -> Counted:
        """Of each answer; ``replies`` reads them."""
        return self._filled("answer_tokens", lambda places: self._count_answers(places, replies()))

    def _count_prompts(self, places: Sequence[int]) -> Int64:
        rows, turns = self._turns["row"][places], self._turns["turn"][places]
        which, where = np.unique(rows, return_inverse=True)
        with _chats(self._library, which.tolist(), self._scratch) as store:
            begins = np.searchsorted(store.sessions, np.arange(len(which)))
            return prompt_tokens(store, begins[where] + turns, self._folder)

    def _count_answers(self, places: Sequence[int], replies: Iterable[TurnReply]) -> Int64:
        keys = zip(self._turns["sample"][places].tolist(), self._turns["turn"][places].tolist(), strict=True)
        left = dict.fromkeys(keys, "")
        for each in replies:
            if each.reply is not None and (each.sample, each.turn) in left:
                left[each.sample, each.turn] = answer_text(each.reply)
        return text_tokens(list(left.values()), self._folder)

    def _filled(self, name: str, count: Callable[[Sequence[int]], Int64]) -> Counted:
        tokens = self._turns[name]
        by_server = tokens != NONE
        left = np.flatnonzero(~by_server & (self._turns["state"] == TurnState.ANSWERED)).tolist()
        if not left:
            return Counted(tokens, by_server)
        try:
            counted = count(left)
        except HarnessError as error:  # the run was measured all the same
            note = f"{name} of {len(left)} turns are not known: the server does not tell, and {error.what}"
            return Counted(tokens, by_server, notes=(note,))
        filled = tokens.copy()
        filled[left] = counted
        return Counted(filled, by_server, self._name)


@contextmanager
def _chats(library: Library, rows: Sequence[int], scratch: Path) -> Iterator[BodyStore]:
    """A store of the chats of some rows of a library; session i is ``rows[i]``."""
    sessions: list[int] = []

    def bodies() -> Iterator[bytes]:
        for place, row in enumerate(rows):
            trajectory = library.trajectory(row)
            encoded = EncodedTrajectory.of(trajectory, library.more)
            for chat in encoded.chats(library.system(trajectory, library.repeat(row))):
                sessions.append(place)
                yield chat

    with tempfile.TemporaryDirectory(dir=scratch, prefix=".counting.") as folder:
        yield BodyStore.write(Path(folder) / "chats", bodies(), sessions)
