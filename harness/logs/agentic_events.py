"""Reader of ``events.jsonl`` of the endpoints client's agentic runs: each turn, and whether it was measured.

The client stops measuring when the first of its users is done; turns that it issues after that are run and answered,
and are in none of its figures.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from harness.logs.errors import LogError

EVENTS: Final = "events.jsonl"

_ISSUED, _COMPLETE = "sample.issued", "sample.complete"
_STOPPED: Final = "session.stop_performance_tracking"
_MEND: Final = "take the file as the client wrote it, unedited and whole"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a turn was answered with; calls as the client keeps them, objects of the OpenAI form."""

    content: str
    reasoning: str
    tool_calls: tuple[Mapping[str, Any], ...]

    @property
    def says_nothing(self) -> bool:
        """Whether it has neither text nor call: a request that failed, which the client logs as an answer too."""
        return not (self.content or self.reasoning or self.tool_calls)


CountTokens: TypeAlias = Callable[[Answer], int]


@dataclass(frozen=True, slots=True)
class TurnTotals:
    """The turns of a run. ``measured`` of the ``issued`` were issued while the client measured.

    ``answered`` said something. ``tokens`` and ``measured_tokens`` are the mean lengths of those that did, of all and
    of the measured ones; None where nobody counted, or nothing was answered. ``trajectories`` are the different ids.
    """

    issued: int
    measured: int
    answered: int
    trajectories: int
    tokens: float | None
    measured_tokens: float | None

    @property
    def unmeasured(self) -> int:
        """Turns after the measured part."""
        return self.issued - self.measured


def read_turns(path: Path, count: CountTokens | None = None) -> TurnTotals:
    """Reads the file once, line by line. LogError where it cannot be read, or has a line that is no event.

    ``count`` tells the tokens of an answer; without it no lengths are told.
    """
    measured_by: dict[str, bool] = {}
    trajectories: set[str] = set()
    lengths: list[tuple[int, bool]] = []
    answered, measuring = 0, True
    for event in _events(path):
        kind = event["event_type"]
        if kind == _STOPPED:
            measuring = False
        conversation, uuid = event.get("conversation_id"), event.get("sample_uuid")
        if not (isinstance(conversation, str) and conversation and isinstance(uuid, str)):
            continue  # of a phase that asks single requests, or of the session
        if kind == _ISSUED:
            measured_by[uuid] = measuring
            trajectories.add(conversation)
        elif kind == _COMPLETE and uuid in measured_by:
            answer = answer_of(event.get("data"))
            if not answer.says_nothing:
                answered += 1
                lengths += [] if count is None else [(count(answer), measured_by[uuid])]
    return TurnTotals(
        issued=len(measured_by),
        measured=sum(measured_by.values()),
        answered=answered,
        trajectories=len(trajectories),
        tokens=_mean([tokens for tokens, _ in lengths]),
        measured_tokens=_mean([tokens for tokens, measured in lengths if measured]),
    )


def answer_of(data: object) -> Answer:
    """The answer in a completion's data: ``[kind, output, reasoning, tool calls]``, later ones left out where empty."""
    parts = data if isinstance(data, list) else []
    output, reasoning, calls = (parts[at] if len(parts) > at else None for at in (1, 2, 3))
    kept = [call for call in calls if isinstance(call, dict)] if isinstance(calls, list) else []
    return Answer(_text(output), _text(reasoning), tuple(kept))


def _text(part: object) -> str:
    """A text, or the chunks of a streamed one."""
    if isinstance(part, list):
        return "".join(chunk for chunk in part if isinstance(chunk, str))
    return part if isinstance(part, str) else ""


def _mean(counts: list[int]) -> float | None:
    return sum(counts) / len(counts) if counts else None


def _events(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _event(line, path, number)
    except OSError as error:
        raise LogError(f"cannot be read: {error.strerror}", path, mend=_MEND) from None


def _event(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        event = json.loads(line)
    except (ValueError, RecursionError):
        event = None
    if not isinstance(event, dict) or not isinstance(event.get("event_type"), str):
        raise LogError("no event as the client writes them", path, number, mend=_MEND)
    return event
