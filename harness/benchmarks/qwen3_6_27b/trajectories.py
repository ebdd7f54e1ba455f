"""Trajectories: what an agent did in a task, cut into the turns in which a client asks.

A turn's request has all messages that were recorded before it. What is answered to it is compared with what was
recorded and never enters a later request: prompts are the same for every model and every run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from harness.benchmarks.qwen3_6_27b import fields, messages
from harness.benchmarks.qwen3_6_27b.messages import Message
from harness.benchmarks.qwen3_6_27b.rows import Metadata, Role, Row, delay_ns
from harness.errors import DatasetError

_MEND: Final = "mend the file, or fetch it again"
_MAY_FOLLOW: Final[Mapping[Role | None, tuple[Role, ...]]] = {
    None: ("user",),
    "user": ("assistant",),
    "assistant": ("tool", "user"),
    "tool": ("assistant", "user"),
}


@dataclass(frozen=True, slots=True)
class Turn:
    """One request of a trajectory.

    ``number`` is the place of its row in the conversation, from 1, as the round's client counts. ``said`` are the
    messages that it adds to the history, ``recorded`` the assistant's that followed (None where the recording ends
    before). ``asked`` are the fields that its row asks of the request, ``delay_ns`` how long the tool took. ``intents``
    are the codes that were accepted of a workflow's answer.
    """

    number: int
    said: tuple[Message, ...]
    recorded: Message | None
    asked: Mapping[str, Any]
    delay_ns: int
    intents: frozenset[str]

    def __post_init__(self) -> None:
        if self.number < 1 or not self.said or self.delay_ns < 0:
            raise ValueError(f"not a turn: {self.number}, {len(self.said)} messages, {self.delay_ns} ns")


@dataclass(frozen=True, slots=True)
class Trajectory:
    """A task: its id, the system prompt of all its requests (None where it has none), its turns in order."""

    id: str
    system: str | None
    turns: tuple[Turn, ...]

    def __post_init__(self) -> None:
        numbers = [turn.number for turn in self.turns]
        if not self.id or not numbers or numbers != sorted(set(numbers)):
            raise ValueError(f"not a trajectory: {self.id!r} with the turns {numbers}")

    def history(self, place: int) -> list[Message]:
        """All messages of the request of ``turns[place]``, the system's prompt apart."""
        found: list[Message] = []
        for turn in self.turns[:place]:
            found += turn.said
            if turn.recorded is not None:
                found.append(turn.recorded)
        return [*found, *self.turns[place].said]


@dataclass(frozen=True, slots=True)
class Trajectories:
    """The trajectories of a file in its order, its metadata rows, and the fields in it that mean nothing.

    ``unread`` names them as ``role.field``.
    """

    all: tuple[Trajectory, ...]
    metadata: tuple[Mapping[str, Any], ...]
    unread: tuple[str, ...]


def assemble(rows: Iterable[Row | Metadata], where: object) -> Trajectories:
    """Trajectories of rows. ``where`` names their file.

    Raises DatasetError where rows of a conversation do not lie together, in the order of their turns and without gaps,
    where a role may not follow the one before, and where there is no conversation.
    """
    found: dict[str, Trajectory] = {}
    metadata: list[Mapping[str, Any]] = []
    unread: set[str] = set()

    def messages_alone() -> Iterator[Row]:
        for row in rows:
            if isinstance(row, Metadata):
                metadata.append(row.said)
            else:
                unread.update(f"{row.role}.{name}" for name in row.unread)
                yield row

    for name, group in groupby(messages_alone(), lambda row: row.conversation):
        own = list(group)
        if name in found:
            raise DatasetError(
                f"rows of the conversation {name!r} do not lie together",
                where=own[0].where,
                expected="all rows of a conversation one after the other",
                mend=_MEND,
            )
        _check_order(own)
        found[name] = _trajectory(own)
    if not found:
        raise DatasetError("there is no conversation in the file", where=where, mend=_MEND)
    return Trajectories(tuple(found.values()), tuple(metadata), tuple(sorted(unread)))


def _check_order(rows: list[Row]) -> None:
    before: Row | None = None
    for due, row in enumerate(rows, 1):
        if row.turn != due:
            raise DatasetError(
                f"turn {row.turn} stands where turn {due} is due",
                where=row.where,
                expected="the turns of a conversation in order: 1, 2, 3, without gaps",
                mend=_MEND,
            )
        _check_role(before, row)
        before = row


def _check_role(before: Row | None, row: Row) -> None:
    may = _MAY_FOLLOW[before.role if before else None]
    if row.role not in may:
        said = f"a row of role {row.role} is the first"
        if before is not None:
            said = f"a row of role {row.role} follows one of role {before.role}"
        raise DatasetError(said, where=row.where, expected=" or ".join(may), mend=_MEND)
    if before is None or before.role != "assistant":
        return
    if row.role == "tool" and "tool_calls" not in before.said:
        raise DatasetError(
            "a tool row follows an assistant row that calls no tool", where=row.where, expected="user", mend=_MEND
        )
    if row.role == "user" and "tool_calls" in before.said:
        raise DatasetError(
            "a user row follows an assistant row whose tools gave no results",
            where=row.where,
            expected="tool",
            mend=_MEND,
        )


def _trajectory(rows: list[Row]) -> Trajectory:
    after: list[Row | None] = [*rows[1:], None]
    return Trajectory(
        id=rows[0].conversation,
        system=next((row.said["system"] for row in rows if row.said.get("system")), None),
        turns=tuple(_turn(row, then) for row, then in zip(rows, after, strict=True) if row.role != "assistant"),
    )


def _turn(row: Row, then: Row | None) -> Turn:
    answer = then if then is not None and then.role == "assistant" else None
    codes = answer.said.get("intent_codes", ()) if answer is not None else ()
    return Turn(
        number=row.turn,
        said=messages.of_row(row),
        recorded=None if answer is None else messages.of_row(answer)[0],
        asked={name: row.said[name] for name in fields.ROW if name in row.said},
        delay_ns=delay_ns(row.said),
        intents=frozenset(code.upper() for code in codes if isinstance(code, str) and code),
    )
