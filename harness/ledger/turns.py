"""The turns of a run of trajectories: ``turns.arrow``, one row a turn, and ``turn_replies.jsonl``, what each came to.

Both are written by the run and read by whoever judges, scores or draws it. The replies are no columns: one may be
longer than a thousand rows of numbers, and most readers want the numbers alone.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NoReturn

import numpy as np
import orjson
import pyarrow as pa

from harness.errors import MissingError
from harness.ledger.samples import Int64

TURNS: Final = "turns.arrow"
TURN_REPLIES: Final = "turn_replies.jsonl"


class TurnState(enum.IntEnum):
    """How a turn ended. One is skipped where one before it failed: it was never asked, and counts nowhere.

    One is outstanding where the run ended first: its answer was waited for, or its turn had not come.
    """

    ANSWERED = 0
    FAILED = 1
    SKIPPED = 2
    OUTSTANDING = 3


def _field(name: str, is_: str) -> pa.Field:
    return pa.field(name, pa.int64(), metadata={"is": is_})


SCHEMA = pa.schema(
    [
        _field("sample", "place of its trajectory in samples.arrow"),
        _field("row", "row of the sample library: which trajectory"),
        _field("turn", "place in its trajectory, from 0"),
        _field("chat", "row of the store of chats"),
        _field("issued_ns", "CLOCK_MONOTONIC when it was handed to the engine; -1 never"),
        _field("first_token_ns", "when the engine had its first token; -1 never"),
        _field("done_ns", "when the engine had its last; -1 no answer"),
        _field("state", "0 answered, 1 failed, 2 skipped, 3 outstanding"),
        _field("answer_tokens", "as the server counted; -1 no answer, or it did not tell"),
        _field("prompt_tokens", "as the server counted; -1 no answer, or it did not tell"),
        _field("cached_tokens", "prompt tokens that were not computed anew; -1 no answer, or the server did not tell"),
        _field("finish", "0 stop token, 1 output cap, 2 tool calls, -1 no answer"),
    ]
)
COLUMNS: Final = tuple(SCHEMA.names)


def write_turns(path: Path, columns: Mapping[str, Int64]) -> None:
    """Writes the turns of a run: the columns of SCHEMA, all of one length, by sample and then by turn.

    ValueError for other columns; MissingError where the disk is full.
    """
    if set(columns) != set(COLUMNS):
        raise ValueError(f"turns have the columns {', '.join(COLUMNS)}, not {', '.join(columns)}")
    table = pa.Table.from_arrays([pa.array(columns[name], pa.int64()) for name in COLUMNS], schema=SCHEMA)
    try:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
            writer.write_table(table)
    except OSError as error:
        raise MissingError(f"cannot write: {error}", where=path, mend="free space on this disk") from error


def read_turns(path: Path) -> dict[str, Int64]:
    """The columns of a turns.arrow, int64. MissingError where it cannot be read, or has other columns."""
    try:
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_file(source).read_all()
    except (OSError, pa.ArrowInvalid) as error:
        raise MissingError(f"not a readable turns file: {error}", where=path) from error
    if table.schema.names != list(COLUMNS) or any(kind != pa.int64() for kind in table.schema.types):
        raise MissingError(
            f"not a turns file: its columns are {', '.join(table.schema.names)}",
            where=path,
            expected=", ".join(COLUMNS) + ", all int64",
        )
    return {name: np.array(table[name].to_numpy(), np.int64) for name in COLUMNS}


@dataclass(frozen=True, slots=True)
class TurnReply:
    """What one turn came to: the reply's JSON, or why there is none that counts as one: kind and message."""

    sample: int
    row: int
    turn: int
    reply: dict[str, Any] | None
    failure: tuple[str, str] | None

    def __post_init__(self) -> None:
        if min(self.sample, self.row, self.turn) < 0:
            raise ValueError(f"no turn of a trajectory: sample {self.sample}, row {self.row}, turn {self.turn}")
        if (self.reply is None) == (self.failure is None):
            raise ValueError("neither a reply nor a failure, or both")


def read_turn_replies(path: Path) -> Iterator[TurnReply]:
    """What the turns of a run came to, in the order in which they ended, one at a time.

    MissingError where there is no such file, or names the line that is none (the last one was cut where a run was
    killed).
    """
    try:
        with path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                yield _parsed(line, f"{path}, line {number}")
    except OSError as error:
        raise MissingError(f"the replies of turns cannot be read: {error.strerror}", where=path) from None


def reply_line(sample: int, row: int, turn: int, reply: bytes) -> bytes:
    """The line of a turn that was answered; ``reply`` is its JSON, and is not read."""
    if b"\n" in reply:  # between JSON's tokens: inside its texts none stands as it is
        reply = reply.replace(b"\n", b" ")
    return b'{"sample":%d,"row":%d,"turn":%d,"reply":%b}\n' % (sample, row, turn, reply)


def failure_line(sample: int, row: int, turn: int, kind: str, message: str) -> bytes:
    """The line of a turn that failed."""
    failure = orjson.dumps({"kind": kind, "message": message})
    return b'{"sample":%d,"row":%d,"turn":%d,"failure":%b}\n' % (sample, row, turn, failure)


def _parsed(line: bytes, where: str) -> TurnReply:
    try:
        found = orjson.loads(line)
    except ValueError as error:
        _refuse(f"it is no JSON: {error}", where)
    if not isinstance(found, dict):
        _refuse("it is no JSON object", where)
    reply = found.get("reply")
    if reply is not None and not isinstance(reply, dict):
        _refuse("its reply is no JSON object", where)
    sample, row, turn = (_place(found, name, where) for name in ("sample", "row", "turn"))
    try:
        return TurnReply(sample, row, turn, reply, _failure(found.get("failure"), where))
    except ValueError as error:
        _refuse(str(error), where)


def _place(found: dict[str, Any], name: str, where: str) -> int:
    place = found.get(name)
    if not isinstance(place, int) or isinstance(place, bool):
        _refuse(f"its {name} is no whole number", where)
    return place


def _failure(found: object, where: str) -> tuple[str, str] | None:
    if found is None:
        return None
    kind, message = (found.get("kind"), found.get("message")) if isinstance(found, dict) else (None, None)
    if not isinstance(kind, str) or not isinstance(message, str):
        _refuse("its failure has no kind and message", where)
    return kind, message


def _refuse(why: str, where: str) -> NoReturn:
    raise MissingError(
        f"not what a turn came to: {why}",
        where=where,
        expected='{"sample": 0, "row": 0, "turn": 0, "reply": {...}}, or "failure": {"kind": "", "message": ""}',
        mend="restore the file that the run wrote; a run that was killed leaves its last line cut",
    )
