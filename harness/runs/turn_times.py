"""Times, rates and counts of turns, from the columns of a turns.arrow. Pure: columns in, figures out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from harness.engines.base import Finish
from harness.ledger.record import TurnCounts
from harness.ledger.sample_times import AnswerTimes, Float64, Mask
from harness.ledger.samples import NONE, Int64
from harness.ledger.turn_report import AtPlace, MeanOutput, Spread, TrajectoryStates
from harness.ledger.turns import TurnState


@dataclass(frozen=True, slots=True, eq=False)
class TurnTimes:
    """The turns of a run: the columns of its turns.arrow, and output tokens of each (n,), NONE where unknown."""

    turns: Mapping[str, Int64]
    output_tokens: Int64

    def __post_init__(self) -> None:
        if self._times(self.answered).disordered:
            raise ValueError("an answered turn whose times do not rise")

    @property
    def answered(self) -> Mask:
        """Which turns were."""
        found: Mask = self.turns["state"] == TurnState.ANSWERED
        return found

    @property
    def streamed(self) -> bool:
        """Whether answers came token by token: else the first token is no time of its own."""
        return self._times(self.answered).streamed

    def latency_ns(self, which: Mask) -> Int64:
        """From issue to the last token, of answered turns."""
        return self._times(which).latency_ns

    def ttft_ns(self, which: Mask) -> Int64:
        """From issue to the first token, of answered turns; of none where answers came whole."""
        return self._times(which & self.streamed).ttft_ns

    def tpot_ns(self, which: Mask) -> Float64:
        """What each token after the first took, of answered turns of two tokens and more."""
        return self._times(which & self.streamed).tpot_ns

    def _times(self, which: Mask) -> AnswerTimes:
        """Of answered turns, with the tokens that somebody counted."""
        which = which & self.answered
        issued, first, done = (self.turns[name][which] for name in ("issued_ns", "first_token_ns", "done_ns"))
        return AnswerTimes(issued, first, done, self.output_tokens[which])

    def states(self) -> TurnCounts:
        """How many turns are in each."""
        of = np.bincount(self.turns["state"], minlength=len(TurnState)).tolist()
        return TurnCounts(
            issued=int((self.turns["issued_ns"] != NONE).sum()),
            answered=of[TurnState.ANSWERED],
            failed=of[TurnState.FAILED],
            skipped=of[TurnState.SKIPPED],
            outstanding=of[TurnState.OUTSTANDING],
        )

    def by_turn(self) -> tuple[AtPlace, ...]:
        """The figures of each place in a trajectory that any turn has."""
        return tuple(self._at(place) for place in np.unique(self.turns["turn"]).tolist())

    def window_s(self) -> float | None:
        """Seconds from the first issue to the last answer of the answered turns; None where that is no time."""
        if not self.answered.any():
            return None
        span = self.turns["done_ns"][self.answered].max() - self.turns["issued_ns"][self.answered].min()
        return float(span) / 1e9 or None

    def finish_reasons(self) -> dict[str, int]:
        """How often answers ended by each, by its name in lower case."""
        finish = self.turns["finish"][self.answered]
        return {each.name.lower(): int((finish == each).sum()) for each in Finish if (finish == each).any()}

    def e2e_interactivity(self) -> float | None:
        """Output tokens over seconds of latency, of the answered turns whose tokens are known."""
        which = self.answered & (self.output_tokens != NONE)
        seconds = float(self.latency_ns(which).sum()) / 1e9
        return float(self.output_tokens[which].sum()) / seconds if seconds else None

    def mean_output(self) -> MeanOutput:
        """Mean output tokens in the performance window and of all turns."""
        ends_ns = self._window_ends_ns()
        within = self.answered & (self.turns["issued_ns"] < ends_ns if ends_ns is not None else True)
        begins_ns = self.turns["issued_ns"][self.answered].min(initial=np.iinfo(np.int64).max)
        return MeanOutput(
            performance_window=self._mean_tokens(within),
            performance_window_turns=int(within.sum()),
            performance_window_s=None if ends_ns is None else max(0.0, float(ends_ns - begins_ns) / 1e9),
            all_turns=self._mean_tokens(self.answered),
        )

    def _at(self, place: int) -> AtPlace:
        which = self.turns["turn"] == place
        state = self.turns["state"][which]
        return AtPlace(
            turn=place,
            answered=int((state == TurnState.ANSWERED).sum()),
            failed=int((state == TurnState.FAILED).sum()),
            skipped=int((state == TurnState.SKIPPED).sum()),
            ttft_ns=Spread.of(self.ttft_ns(which)),
            tpot_ns=Spread.of(self.tpot_ns(which)),
            latency_ns=Spread.of(self.latency_ns(which)),
        )

    def _mean_tokens(self, which: Mask) -> float | None:
        tokens = self.output_tokens[which]
        return float(tokens.mean()) if len(tokens) and (tokens != NONE).all() else None

    def _window_ends_ns(self) -> int | None:
        """When a trajectory was first complete after the last one had begun; None where that never was."""
        whole = Trajectories.of(self.turns)
        after = whole.ended_ns[whole.ended_ns > whole.begun_ns.max(initial=NONE)]
        return int(after.min()) if len(after) else None


@dataclass(frozen=True, slots=True, eq=False)
class Trajectories:
    """Issued trajectories in their order: when the first turn was issued (NONE where none was), and when the last was
    answered (NONE where not all were); the sum of the turns' latencies of those; whether a turn of it failed.
    """

    begun_ns: Int64
    ended_ns: Int64
    in_turns_ns: Int64
    failed: Mask

    @classmethod
    def of(cls, turns: Mapping[str, Int64]) -> Trajectories:
        """Of the columns of a turns.arrow, in which the turns of a sample lie one after the other."""
        starts = np.flatnonzero(np.diff(turns["sample"], prepend=NONE))
        if not len(starts):
            nothing = np.zeros(0, np.int64)
            return cls(nothing, nothing, nothing, np.zeros(0, np.bool_))
        state = turns["state"]
        complete = np.logical_and.reduceat(state == TurnState.ANSWERED, starts)
        latency = np.where(state == TurnState.ANSWERED, turns["done_ns"] - turns["issued_ns"], 0)
        return cls(
            begun_ns=turns["issued_ns"][starts],
            ended_ns=np.where(complete, np.maximum.reduceat(turns["done_ns"], starts), NONE),
            in_turns_ns=np.where(complete, np.add.reduceat(latency, starts), NONE),
            failed=np.logical_or.reduceat(state == TurnState.FAILED, starts),
        )

    @property
    def completed(self) -> Mask:
        """Which have all of their turns answered."""
        found: Mask = self.ended_ns != NONE
        return found

    def states(self) -> TrajectoryStates:
        """How many are in each."""
        issued, completed, failed = len(self.failed), int(self.completed.sum()), int(self.failed.sum())
        return TrajectoryStates(
            issued=issued, completed=completed, failed=failed, outstanding=issued - completed - failed
        )

    def latency_ns(self) -> Int64:
        """Of completed ones, from the first issue to the last answer."""
        return (self.ended_ns - self.begun_ns)[self.completed]

    def turns_ns(self) -> Int64:
        """Of completed ones, the sum of their turns' latencies."""
        return self.in_turns_ns[self.completed]
