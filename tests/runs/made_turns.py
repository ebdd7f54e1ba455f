"""A small library of trajectories, and runs of it as a client keeps them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from harness.benchmarks.qwen3_6_27b.dataset import read_file
from harness.benchmarks.qwen3_6_27b.scripted import recorded
from harness.benchmarks.qwen3_6_27b.store import Library
from harness.ledger.samples import Int64
from harness.ledger.turns import (
    COLUMNS,
    TURN_REPLIES,
    TURNS,
    TurnState,
    failure_line,
    reply_line,
    write_turns,
)
from tests.benchmarks.qwen3_6_27b.made import assistant, call, demo, tool, write

A, F, S, OUT = TurnState.ANSWERED, TurnState.FAILED, TurnState.SKIPPED, TurnState.OUTSTANDING
MS = 1_000_000


def small_library(folder: Path, repeats: int = 2) -> Library:
    """Trajectories a, b and c of two, three and two turns; two of b's have commands, the others' first ones."""
    longer = [
        *demo("b")[:3],
        assistant(4, "b", tool_calls=[call("grep x y | sort")]),
        tool(5, "b"),
        assistant(6, "b", content="Done."),
    ]
    return Library(read_file(write(folder / "trajectories.jsonl", [*demo("a"), *longer, *demo("c")])), repeats)


@dataclass(frozen=True, slots=True)
class MadeTurn:
    """A turn as it ended: times in ms, tokens as the server told them (-1: it did not)."""

    state: TurnState = A
    issued: int = -1
    first: int = -1
    done: int = -1
    output: int = -1
    prompt: int = -1
    cached: int = -1
    finish: int = -1


SKIPPED = MadeTurn(S)


def turns_of(library: Library, rows: Sequence[int], turns: Sequence[Sequence[MadeTurn]]) -> dict[str, Int64]:
    """The columns of a turns.arrow; a sample for each row."""
    flat = [(sample, turn, made) for sample, own in enumerate(turns) for turn, made in enumerate(own)]
    columns = {name: np.full(len(flat), -1, np.int64) for name in COLUMNS}
    for place, (sample, turn, made) in enumerate(flat):
        row = rows[sample]
        values: dict[str, int] = {
            "sample": sample,
            "row": row,
            "turn": turn,
            "chat": library.turns(row)[turn],
            "issued_ns": made.issued * MS if made.issued >= 0 else -1,
            "first_token_ns": made.first * MS if made.first >= 0 else -1,
            "done_ns": made.done * MS if made.done >= 0 else -1,
            "state": made.state,
            "answer_tokens": made.output,
            "prompt_tokens": made.prompt,
            "cached_tokens": made.cached,
            "finish": made.finish,
        }
        for name, value in values.items():
            columns[name][place] = value
    return columns


def recorded_reply(library: Library, row: int, turn: int) -> dict[str, Any]:
    """What was recorded of a turn, as an engine replies."""
    found: dict[str, Any] = orjson.loads(recorded(library.trajectory(row).turns[turn], b"null"))
    return found


def keep(
    folder: Path, library: Library, turns: Mapping[str, Int64], replies: Mapping[tuple[int, int], dict[str, Any]] = {}
) -> None:
    """Writes both files of a run; a turn that has no reply in ``replies`` was answered as recorded."""
    write_turns(folder / TURNS, turns)
    (folder / TURN_REPLIES).write_bytes(b"".join(_lines(library, turns, replies)))


def _lines(
    library: Library, turns: Mapping[str, Int64], replies: Mapping[tuple[int, int], dict[str, Any]]
) -> Iterable[bytes]:
    for sample, row, turn, state in zip(
        *(turns[name].tolist() for name in ("sample", "row", "turn", "state")), strict=True
    ):
        if state == A:
            reply = replies.get((sample, turn)) or recorded_reply(library, row, turn)
            yield reply_line(sample, row, turn, orjson.dumps(reply))
        elif state == F:
            yield failure_line(sample, row, turn, "timeout", "no answer after 600 s")
