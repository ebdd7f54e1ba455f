"""``turns.json``: what the turns of a run of trajectories come to, as figures. Its schema, reader and writer.

A percentile is by the nearest rank: the smallest of the values that at least so many percent of them do not exceed, so
that each is a value that was measured. A figure that was not measured is null, never 0.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from harness.errors import MissingError
from harness.ledger.record import TurnCounts
from harness.ledger.store import write_atomically

TURN_REPORT: Final = "turns.json"
FORMAT: Final = 1

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]
Share = Annotated[float, Field(ge=0, le=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Spread(_Strict):
    """How some values lie, in the unit that the field holding this is named for. There is one value at least."""

    count: Annotated[int, Field(ge=1)]
    mean: Amount
    p50: Amount
    p90: Amount
    p99: Amount
    max: Amount

    @model_validator(mode="after")
    def _in_order(self) -> Spread:
        if not self.p50 <= self.p90 <= self.p99 <= self.max:
            raise ValueError("percentiles that do not rise")
        return self

    @classmethod
    def of(cls, values: npt.NDArray[np.float64] | npt.NDArray[np.int64]) -> Spread | None:
        """Of values of at least 0, 1-D; None of none."""
        n = len(values)
        if not n:
            return None
        ordered = np.sort(values)
        p50, p90, p99 = (float(ordered[-(-percent * n // 100) - 1]) for percent in (50, 90, 99))
        return cls(count=n, mean=float(values.mean()), p50=p50, p90=p90, p99=p99, max=float(ordered[-1]))


class TrajectoryStates(_Strict):
    """Issued trajectories: ``completed`` have all of their turns answered, of ``failed`` ones a turn failed."""

    issued: Count
    completed: Count
    failed: Count
    outstanding: Count

    @model_validator(mode="after")
    def _each_once(self) -> TrajectoryStates:
        if self.completed + self.failed + self.outstanding != self.issued:
            raise ValueError("trajectories that are in no state, or in two")
        return self


class AtPlace(_Strict):
    """The turns of one place in their trajectories, from 0; times in nanoseconds, over answered turns alone."""

    turn: Count
    answered: Count
    failed: Count
    skipped: Count
    ttft_ns: Spread | None
    tpot_ns: Spread | None
    latency_ns: Spread | None


class Lengths(_Strict):
    """Tokens of answered turns, and who counted them: ``by_server`` turns the server, in its usage, ``by_tokenizer``
    turns the harness, with the vocabulary that ``tokenizer`` names. ``unknown`` ones nobody: they are in no figure.
    ``total`` is None where all are such, 0 where no turn was answered.
    """

    by_server: Count
    by_tokenizer: Count
    unknown: Count
    tokenizer: str | None
    total: Count | None
    tokens: Spread | None

    @model_validator(mode="after")
    def _counted(self) -> Lengths:
        if (self.tokens.count if self.tokens else 0) != self.by_server + self.by_tokenizer:
            raise ValueError("lengths of other turns than those that were counted")
        if bool(self.by_tokenizer) != (self.tokenizer is not None):
            raise ValueError("a tokenizer that counted nothing, or counts of none")
        if (self.total is None) != (self.unknown > 0 and self.tokens is None):
            raise ValueError("a total of lengths that nobody knows, or none of those that somebody does")
        return self


class MeanOutput(_Strict):
    """Mean output tokens of answered turns: of those issued in the performance window, and of all of them.

    That window is from the first issue until a trajectory is complete and none is left to start: so many seconds is
    ``performance_window_s``. Without such an end all turns are in it. A mean is None where not all lengths are known.
    """

    performance_window: Amount | None
    performance_window_turns: Count
    performance_window_s: Amount | None
    all_turns: Amount | None


class InlineDomain(_Strict):
    """One kind of trajectories: their mean score, 0 to 1, and of how many turns."""

    score: Share
    scored: Annotated[int, Field(ge=1)]


class Inline(_Strict):
    """How far the commands of the answers are those recorded, 0 to 1: the mean over all turns of issued trajectories
    that have anything to compare. Of these ``missing`` have no answer, which scores 0; ``skipped`` of the missing ones
    were not even asked. ``score`` is None where nothing could be compared.
    """

    score: Share | None
    recorded: Count
    scored: Count
    missing: Count
    skipped: Count
    domains: dict[str, InlineDomain]

    @model_validator(mode="after")
    def _within(self) -> Inline:
        if not self.skipped <= self.missing <= self.scored <= self.recorded or (self.score is None) != (
            not self.scored
        ):
            raise ValueError("an inline score of turns that are not there")
        return self


class TurnReport(_Strict):
    """Everything of it. Times are nanoseconds, rates a second; failed and skipped turns are in no rate and no latency.

    ``window_s`` is from the first issue to the last answer of the answered turns, and what the rates are over.
    ``ttft_ns`` is from issue to the first token, ``tpot_ns`` what each further token of an answer took, ``latency_ns``
    from issue to the last token; the first two are None where answers came whole. ``trajectory_latency_ns`` is from the
    first issue to the last answer of completed trajectories, ``trajectory_turns_ns`` the sum of their turns' latencies,
    without what was waited in between. ``e2e_interactivity`` is output tokens over the sum of the turns' latencies,
    tokens a second; ``cached_share`` the share of prompt tokens that were not computed anew, over turns of which the
    server tells both. ``issued_times`` is how often each trajectory was issued, by its id.
    """

    format: int = FORMAT
    turns: TurnCounts
    trajectories: TrajectoryStates
    window_s: Amount | None
    turns_per_s: Amount | None
    trajectories_per_s: Amount | None
    output_tokens_per_s: Amount | None
    e2e_interactivity: Amount | None
    ttft_ns: Spread | None
    tpot_ns: Spread | None
    latency_ns: Spread | None
    trajectory_latency_ns: Spread | None
    trajectory_turns_ns: Spread | None
    by_turn: tuple[AtPlace, ...]
    input_tokens: Lengths
    output_tokens: Lengths
    cached_tokens: Lengths
    cached_share: Share | None
    mean_output: MeanOutput
    finish_reasons: dict[str, Count]
    issued_times: dict[str, Count]
    inline: Inline
    notes: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _adds_up(self) -> TurnReport:
        if sum(self.issued_times.values()) != self.trajectories.issued:
            raise ValueError("trajectories that were issued other times than they are")
        if sum(self.finish_reasons.values()) > self.turns.answered:
            raise ValueError("more reasons to finish than answers")
        if sum(each.answered for each in self.by_turn) != self.turns.answered:
            raise ValueError("answers of no turn")
        return self


def write_turn_report(folder: Path, report: TurnReport) -> None:
    """Writes turns.json so that readers see the old one or the new one; MissingError where the disk is full."""
    write_atomically(folder / TURN_REPORT, report.model_dump_json(indent=1) + "\n")


def read_turn_report(folder: Path) -> TurnReport:
    """The turns.json of a run's folder. MissingError where it is not there, or is none."""
    path = folder / TURN_REPORT
    try:
        return TurnReport.model_validate_json(path.read_bytes())
    except OSError as error:
        raise MissingError(f"the figures of turns cannot be read: {error.strerror}", where=path) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise MissingError(
            f"not the figures of turns: {first['msg']}", where=f"{path}, {where}", mend="have the run judged again"
        ) from None
