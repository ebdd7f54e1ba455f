"""Times of answers, from the columns of a samples.arrow or a turns.arrow: the one definition of latency, TTFT and TPOT.

LoadGen counts a Server query's latency from when it was scheduled, the columns begin when it was handed over, so these
are a little shorter (some tens of microseconds).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from harness.ledger.samples import NONE, Int64, SampleState

_NS_PER_S: Final = 1e9

Float64 = npt.NDArray[np.float64]
Values = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class AnswerTimes:
    """Answered samples or turns, in the order of their rows: times in ns of one clock, int64 (answers,).

    ``first_ns`` is NONE where no first token was told, ``tokens`` where nobody counted the answer's.
    """

    issued_ns: Int64
    first_ns: Int64
    done_ns: Int64
    tokens: Int64

    def __post_init__(self) -> None:
        if not len(self.issued_ns) == len(self.first_ns) == len(self.done_ns) == len(self.tokens):
            raise ValueError("columns of several lengths")

    @classmethod
    def of(cls, columns: Mapping[str, Int64]) -> AnswerTimes:
        """Those of the columns that were answered; failed, skipped and outstanding ones have no times."""
        answered = columns["state"] == SampleState.ANSWERED
        names = ("issued_ns", "first_token_ns", "done_ns", "answer_tokens")
        return cls(*(columns[name][answered] for name in names))

    def __len__(self) -> int:
        return len(self.issued_ns)

    @property
    def begun(self) -> Mask:
        """Answers of which the first token was told."""
        begun: Mask = self.first_ns != NONE
        return begun

    @property
    def streamed(self) -> bool:
        """Whether any first token came before the answer's end: else it is no time of its own."""
        return bool((self.begun & (self.first_ns < self.done_ns)).any())

    @property
    def counted(self) -> Mask:
        """Answers whose tokens were counted."""
        counted: Mask = self.tokens != NONE
        return counted

    @property
    def disordered(self) -> int:
        """How many have times that do not rise: no clock tells such."""
        first = np.where(self.begun, self.first_ns, self.done_ns)
        return int(((self.issued_ns < 0) | (first < self.issued_ns) | (self.done_ns < first)).sum())

    @property
    def latency_ns(self) -> Int64:
        """From issue to the answer's end, of all."""
        return self.done_ns - self.issued_ns

    @property
    def ttft_ns(self) -> Int64:
        """From issue to the first token, of those that were told one."""
        return (self.first_ns - self.issued_ns)[self.begun]

    @property
    def tpot_ns(self) -> Float64:
        """From the first token to the end, for each token after the first: of answers of two tokens and more whose
        first was told. LoadGen calls an answer of one an error.
        """
        which = self._several
        found: Float64 = (self.done_ns - self.first_ns)[which] / (self.tokens[which] - 1)
        return found

    @property
    def tpot_done_ns(self) -> Int64:
        """When the answers of :attr:`tpot_ns` ended."""
        return self.done_ns[self._several]

    @property
    def _several(self) -> Mask:
        return self.begun & (self.tokens > 1)

    @property
    def span_s(self) -> float:
        """From the first issue to the last end, seconds; 0 of no answers."""
        return float(self.done_ns.max() - self.issued_ns.min()) / _NS_PER_S if len(self) else 0.0


def at_share(ordered: Values, share: float) -> float:
    """The value at a share (0 to 1) of sorted values, as LoadGen takes a percentile: no interpolation, cut down."""
    return float(ordered[min(int(len(ordered) * share), len(ordered) - 1)])
