"""The inline score of a run: its turns and what they came to, held against what was recorded."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from harness.benchmarks.qwen3_6_27b.inline import Issued, scorable, score
from harness.benchmarks.qwen3_6_27b.store import Library
from harness.errors import RunBroke
from harness.ledger.samples import Int64
from harness.ledger.turn_report import Inline, InlineDomain
from harness.ledger.turns import TURN_REPLIES, TurnReply, TurnState


def inline_score(library: Library, turns: Mapping[str, Int64], replies: Iterable[TurnReply]) -> Inline:
    """Scores every turn of the trajectories that were issued; one without an answer, for whatever reason, scores 0.

    ``turns`` are the columns of the run's turns.arrow, ``replies`` what its turns came to. RunBroke where the two do
    not tell of the same answers.
    """
    found = score(_issued(library, turns, replies))
    skipped = turns["state"] == TurnState.SKIPPED
    pairs = zip(turns["row"][skipped].tolist(), turns["turn"][skipped].tolist(), strict=True)
    return Inline(
        score=found.score,
        recorded=found.issued,
        scored=found.scored,
        missing=found.missing,
        skipped=sum(_scorable(library, row, turn) for row, turn in pairs),
        domains={name: InlineDomain(score=part.score, scored=part.scored) for name, part in found.domains.items()},
    )


def _issued(library: Library, turns: Mapping[str, Int64], replies: Iterable[TurnReply]) -> Iterator[Issued]:
    """Answered turns with their replies, then all others."""
    answered = turns["state"] == TurnState.ANSWERED
    keys = zip(*(turns[name].tolist() for name in ("sample", "row", "turn")), strict=True)
    waiting = {key for key, good in zip(keys, answered.tolist(), strict=True) if good}
    for each in replies:
        if each.reply is None:
            continue
        key = each.sample, each.row, each.turn
        if key not in waiting:
            raise RunBroke(
                f"a reply to turn {each.turn} of sample {each.sample}, which the turns do not tell of once",
                where=TURN_REPLIES,
            )
        waiting.remove(key)
        yield Issued(library.trajectory(each.row), each.turn, each.reply)
    if waiting:
        sample, _, turn = min(waiting)
        raise RunBroke(f"turn {turn} of sample {sample} was answered, and its reply was not kept", where=TURN_REPLIES)
    for row, turn in zip(turns["row"][~answered].tolist(), turns["turn"][~answered].tolist(), strict=True):
        yield Issued(library.trajectory(row), turn, None)


def _scorable(library: Library, row: int, turn: int) -> bool:
    trajectory = library.trajectory(row)
    return scorable(trajectory, trajectory.turns[turn])
