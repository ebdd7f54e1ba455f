"""What is kept of turns: columns in the order of issue, replies as they came."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.clients.loadgen.turn_order import Trajectory
from harness.clients.loadgen.turn_record import TurnRecord
from harness.errors import MissingError
from harness.ledger.samples import NONE
from harness.ledger.turns import (
    COLUMNS,
    TURN_REPLIES,
    TURNS,
    TurnReply,
    TurnState,
    read_turn_replies,
    read_turns,
    write_turns,
)

ANSWERED, FAILED, SKIPPED, OUTSTANDING = TurnState
CHATS = [range(2), range(2, 5), range(5, 6)]
NO_SAMPLE = np.zeros(0, np.int64)


@pytest.fixture
def record(tmp_path: Path) -> TurnRecord:
    return TurnRecord(tmp_path / TURN_REPLIES)


def trajectory(sample: int, row: int, turn: int = 0) -> Trajectory:
    chats = CHATS[row]
    return Trajectory(70 + sample, sample, row, chats.start, chats.stop, chats.start + turn)


def rows(*given: int) -> np.ndarray:
    return np.array(given, np.int64)


def test_turns_stand_by_sample_and_place_however_they_came(record: TurnRecord, tmp_path: Path) -> None:
    first, second = trajectory(0, 1), trajectory(1, 0)
    assert record.issued(second, 10) == 0
    assert record.issued(first, 11) == 1
    record.first_token(0, 12)
    record.answered(1, first, b'{"content":"a"}', 13, 14, 5, 100, 90, 2)
    assert record.issued(trajectory(0, 1, turn=1), 15) == 2
    record.failed(0, second, "timeout", "late")
    assert record.answered_count == 1
    turns = record.frozen(rows(1, 0, 2), NO_SAMPLE, CHATS.__getitem__)
    assert list(turns.columns) == list(COLUMNS)
    wanted = {
        "sample": [0, 0, 0, 1, 1, 2],
        "row": [1, 1, 1, 0, 0, 2],
        "turn": [0, 1, 2, 0, 1, 0],
        "chat": [2, 3, 4, 0, 1, 5],
        "issued_ns": [11, 15, NONE, 10, NONE, NONE],
        "first_token_ns": [13, NONE, NONE, 12, NONE, NONE],
        "done_ns": [14, NONE, NONE, NONE, NONE, NONE],
        "state": [ANSWERED, OUTSTANDING, OUTSTANDING, FAILED, SKIPPED, OUTSTANDING],
        "answer_tokens": [5, NONE, NONE, NONE, NONE, NONE],
        "prompt_tokens": [100, NONE, NONE, NONE, NONE, NONE],
        "cached_tokens": [90, NONE, NONE, NONE, NONE, NONE],
        "finish": [2, NONE, NONE, NONE, NONE, NONE],
    }
    assert {name: values.tolist() for name, values in turns.columns.items()} == wanted
    write_turns(tmp_path / TURNS, turns.columns)
    assert read_turns(tmp_path / TURNS).keys() == wanted.keys()
    counts = turns.counts()
    assert (counts.issued, counts.answered, counts.failed, counts.skipped, counts.outstanding) == (3, 1, 1, 1, 3)
    record.close()
    assert list(read_turn_replies(tmp_path / TURN_REPLIES)) == [
        TurnReply(0, 1, 0, {"content": "a"}, None),
        TurnReply(1, 0, 0, None, ("timeout", "late")),
    ]


def test_the_rest_of_a_sample_that_failed_otherwise(record: TurnRecord) -> None:
    """Where the engine died: what it had is failed, what it was never given is skipped."""
    record.issued(trajectory(0, 0), 1)
    record.answered(0, trajectory(0, 0), b"{}", 2, 3, 4, 5, NONE, 0)
    record.issued(trajectory(1, 1), 4)
    turns = record.frozen(rows(0, 1, 2), rows(0, 1, 2), CHATS.__getitem__)
    assert turns.columns["state"].tolist() == [ANSWERED, SKIPPED, FAILED, SKIPPED, SKIPPED, SKIPPED]
    record.close()


def test_prompt_tokens_of_a_sample_are_those_of_all_its_turns(record: TurnRecord) -> None:
    told = {(0, 0, 0): 10, (0, 0, 1): 20, (1, 1, 0): 5, (1, 1, 1): NONE, (1, 1, 2): 7, (2, 2, 0): 0}
    for (sample, row, turn), prompt_tokens in told.items():
        number = record.issued(trajectory(sample, row, turn), 1)
        record.answered(number, trajectory(sample, row, turn), b"{}", 2, 3, 4, prompt_tokens, NONE, 0)
    turns = record.frozen(rows(0, 1, 2, 2), NO_SAMPLE, CHATS.__getitem__)
    assert turns.prompt_tokens().tolist() == [30, NONE, 0, NONE]
    record.close()


def test_nothing_was_issued(record: TurnRecord) -> None:
    turns = record.frozen(NO_SAMPLE, NO_SAMPLE, CHATS.__getitem__)
    assert turns.counts().turns == 0
    assert turns.prompt_tokens().tolist() == []
    assert all(values.dtype == np.int64 and not len(values) for values in turns.columns.values())
    record.close()


def test_which_request_was_a_samples_first(record: TurnRecord) -> None:
    for sample, row, turn in ((1, 1, 0), (0, 0, 0), (1, 1, 1), (2, 2, 0)):
        record.issued(trajectory(sample, row, turn), 1)
    samples, numbers = record.first_numbers()
    assert (samples.tolist(), numbers.tolist()) == ([0, 1, 2], [1, 0, 3])
    record.close()


def test_replies_do_not_stay_in_memory(record: TurnRecord, tmp_path: Path) -> None:
    reply = b'{"content":"%b"}' % (b"x" * 9_000)
    for number in range(100):
        record.issued(trajectory(number, 2), 1)
        record.answered(number, trajectory(number, 2), reply, 2, 3, 4, 5, 6, 0)
    written = (tmp_path / TURN_REPLIES).stat().st_size
    assert 100 * len(reply) - written < 200_000
    record.close()
    assert sum(1 for _ in read_turn_replies(tmp_path / TURN_REPLIES)) == 100


def test_a_disk_that_is_full_is_told(tmp_path: Path) -> None:
    full = TurnRecord(Path("/dev/full"))
    reply = b'{"content":"%b"}' % (b"x" * 99_000)
    full.issued(trajectory(0, 2), 1)
    with pytest.raises(MissingError, match="cannot write: No space left"):
        full.answered(0, trajectory(0, 2), reply, 2, 3, 4, 5, 6, 0)
    assert full.frozen(rows(2), NO_SAMPLE, CHATS.__getitem__).columns["done_ns"].tolist() == [3]
    full.close()
    kept_back = TurnRecord(Path("/dev/full"))
    kept_back.failed(0, trajectory(0, 2), "kind", "message")
    with pytest.raises(MissingError, match="cannot write"):
        kept_back.close()
    with pytest.raises(MissingError, match="cannot write: No such file"):
        TurnRecord(tmp_path / "none" / TURN_REPLIES)
