"""The inline score: how far the commands of an answer are those that were recorded at the same turn.

Of coding trajectories the size of the multisets' intersection over that of their union, of workflows 1 or 0. The score
is the plain mean over the turns that were issued and have anything to compare; an issued turn without an answer scores
0 and is missing (mlcommons/endpoints ea332753, ``evaluation/scoring.py``).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final, Literal, TypeAlias

from harness.benchmarks.qwen3_6_27b.commands import programs
from harness.benchmarks.qwen3_6_27b.trajectories import Trajectory, Turn

Domain: TypeAlias = Literal["coding", "workflow"]
Message: TypeAlias = Mapping[str, Any]

_WORKFLOW: Final = re.compile(r"sim_\d+")
_REASONING: Final = ("reasoning_content", "reasoning")
_SAID_INTENT: Final = re.compile(r"\bintent:\s*(I\d{3})\b", re.IGNORECASE)
_BARE_INTENT: Final = re.compile(r"\bI\d{3}\b")


@dataclass(frozen=True, slots=True)
class Issued:
    """A turn that was asked: ``trajectory.turns[place]``, and what was answered; None where nothing came whole.

    An answer is a message: ``content``, ``reasoning_content`` or ``reasoning``, ``tool_calls``.
    """

    trajectory: Trajectory
    place: int
    answer: Message | None


@dataclass(frozen=True, slots=True)
class Part:
    """The turns of one domain that were scored: their mean, and how many they are."""

    score: float
    scored: int


@dataclass(frozen=True, slots=True)
class InlineScore:
    """What the answers of a run came to. ``score`` is None where nothing could be compared.

    ``issued`` turns have a recorded answer, of which ``scored`` have anything to compare; ``missing`` of these were not
    answered.
    """

    score: float | None
    issued: int
    scored: int
    missing: int
    domains: Mapping[Domain, Part]


def domain(trajectory: Trajectory) -> Domain:
    """What kind of task a trajectory is, which its id tells."""
    return "workflow" if _WORKFLOW.fullmatch(trajectory.id) else "coding"


def scorable(trajectory: Trajectory, turn: Turn) -> bool:
    """Whether there is anything in the recorded answer that another can be compared with."""
    if turn.recorded is None:
        return False
    return bool(turn.intents) if domain(trajectory) == "workflow" else bool(programs(turn.recorded.get("tool_calls")))


def turn_score(trajectory: Trajectory, turn: Turn, answer: Message | None) -> Fraction:
    """How far an answer is the recorded one, from 0 to 1. ValueError for a turn that is not scorable."""
    if turn.recorded is None or not scorable(trajectory, turn):
        raise ValueError(f"turn {turn.number} of {trajectory.id!r} has nothing to compare")
    answer = answer or {}
    if domain(trajectory) == "workflow":
        return Fraction(intent(answer) in turn.intents)
    wanted, found = programs(turn.recorded.get("tool_calls")), programs(answer.get("tool_calls"))
    return Fraction((wanted & found).total(), (wanted | found).total())


def intent(answer: Message) -> str | None:
    """The code that an answer names as its intent: said so, or else the last that stands in it."""
    texts = [_text(answer, _REASONING), _text(answer, ("content",))]
    said = next(filter(None, map(_SAID_INTENT.search, texts)), None)
    if said is not None:
        return said[1].upper()
    return next((found[-1] for found in map(_BARE_INTENT.findall, texts) if found), None)


def score(turns: Iterable[Issued]) -> InlineScore:
    """Scores the turns of a run, those of repeats each by itself."""
    points: dict[Domain, list[Fraction]] = {"coding": [], "workflow": []}
    issued = missing = 0
    for each in turns:
        turn = each.trajectory.turns[each.place]
        issued += turn.recorded is not None
        if scorable(each.trajectory, turn):
            points[domain(each.trajectory)].append(turn_score(each.trajectory, turn, each.answer))
            missing += each.answer is None
    both = points["coding"] + points["workflow"]
    return InlineScore(
        score=_mean(both) if both else None,
        issued=issued,
        scored=len(both),
        missing=missing,
        domains={name: Part(_mean(own), len(own)) for name, own in points.items() if own},
    )


def _mean(points: list[Fraction]) -> float:
    return float(sum(points, Fraction()) / len(points))


def _text(answer: Message, names: tuple[str, ...]) -> str:
    return next((answer[name] for name in names if isinstance(answer.get(name), str)), "")
