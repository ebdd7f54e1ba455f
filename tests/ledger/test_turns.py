from __future__ import annotations

from pathlib import Path

import numpy as np
import orjson
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import MissingError
from harness.ledger.turns import (
    COLUMNS,
    SCHEMA,
    TURN_REPLIES,
    TURNS,
    TurnReply,
    TurnState,
    failure_line,
    read_turn_replies,
    read_turns,
    reply_line,
    write_turns,
)

INT64 = st.integers(-(2**63), 2**63 - 1)
PLACE = st.integers(0, 2**63 - 1)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(codec="utf-8")),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
TEXT = st.text(st.characters(codec="utf-8"))
REPLY = st.dictionaries(TEXT, JSON, max_size=4)
quietly = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def columns(rows: int) -> dict[str, np.ndarray]:
    return {name: np.arange(rows, dtype=np.int64) for name in COLUMNS}


@quietly
@given(st.data(), st.integers(0, 5))
def test_what_is_written_is_read(tmp_path: Path, data: st.DataObject, rows: int) -> None:
    written = {
        name: np.array(data.draw(st.lists(INT64, min_size=rows, max_size=rows)), np.int64) for name in reversed(COLUMNS)
    }
    write_turns(tmp_path / TURNS, written)
    read = read_turns(tmp_path / TURNS)
    assert list(read) == list(COLUMNS)
    for name in COLUMNS:
        assert read[name].dtype == np.int64
        assert (read[name] == written[name]).all()


def test_the_file_says_what_its_columns_are(tmp_path: Path) -> None:
    write_turns(tmp_path / TURNS, columns(3))
    with pa.memory_map(str(tmp_path / TURNS)) as source:
        schema = pa.ipc.open_file(source).schema
    assert b"CLOCK_MONOTONIC" in schema.field("issued_ns").metadata[b"is"]
    states = ", ".join(f"{state.value} {state.name.lower()}" for state in TurnState)
    assert schema.field("state").metadata[b"is"].decode() == states
    assert all(SCHEMA.field(name).metadata[b"is"] for name in COLUMNS)


def test_other_columns_are_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="turns have the columns sample"):
        write_turns(tmp_path / TURNS, {"sample": np.zeros(1, np.int64)})
    with pytest.raises(ValueError, match="expected length"):
        write_turns(tmp_path / TURNS, columns(3) | {"chat": np.zeros(1, np.int64)})


@pytest.mark.parametrize("content", [b"", b"ARROW1", b"x" * 500])
def test_a_file_that_is_none(tmp_path: Path, content: bytes) -> None:
    (tmp_path / TURNS).write_bytes(content)
    with pytest.raises(MissingError, match="not a readable turns file"):
        read_turns(tmp_path / TURNS)


def test_a_file_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / TURNS
    write_turns(path, columns(300))
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(MissingError):
        read_turns(path)
    with pytest.raises(MissingError):
        read_turns(tmp_path / "none.arrow")


@pytest.mark.parametrize("kind", [pa.int64(), pa.int32()])
def test_a_file_of_something_else(tmp_path: Path, kind: pa.DataType) -> None:
    names = COLUMNS if kind == pa.int32() else COLUMNS[1:]
    table = pa.table({name: pa.array([1], kind) for name in names})
    with pa.OSFile(str(tmp_path / TURNS), "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    with pytest.raises(MissingError, match="not a turns file"):
        read_turns(tmp_path / TURNS)


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="cannot write"):
        write_turns(tmp_path / "none" / TURNS, columns(1))


# -- replies -----------------------------------------------------------------------------------------------------------


@quietly
@given(st.lists(st.tuples(PLACE, PLACE, PLACE, REPLY | st.none(), st.tuples(TEXT, TEXT) | st.none())))
def test_lines_are_read_as_they_were_written(
    tmp_path: Path, turns: list[tuple[int, int, int, dict[str, object] | None, tuple[str, str] | None]]
) -> None:
    told = [TurnReply(*turn) for turn in turns if (turn[3] is None) != (turn[4] is None)]
    (tmp_path / TURN_REPLIES).write_bytes(b"".join(map(line, told)))
    assert list(read_turn_replies(tmp_path / TURN_REPLIES)) == told


def line(turn: TurnReply) -> bytes:
    if turn.failure is None:
        return reply_line(turn.sample, turn.row, turn.turn, orjson.dumps(turn.reply, option=orjson.OPT_INDENT_2))
    return failure_line(turn.sample, turn.row, turn.turn, *turn.failure)


GOOD = reply_line(0, 0, 0, b'{"content":"x"}')


@pytest.mark.parametrize(
    ("bad", "why"),
    [
        (b"", "it is no JSON"),
        (b"{", "it is no JSON"),
        (b"\xff", "it is no JSON"),
        (b"[1]", "it is no JSON object"),
        (b'{"row":0,"turn":0,"reply":{}}', "no whole number"),
        (b'{"sample":0,"row":0,"turn":true,"reply":{}}', "no whole number"),
        (b'{"sample":0,"row":0,"turn":0.5,"reply":{}}', "no whole number"),
        (b'{"sample":0,"row":0,"turn":0,"reply":"x"}', "its reply is no JSON object"),
        (b'{"sample":0,"row":0,"turn":0}', "neither a reply nor a failure"),
        (b'{"sample":0,"row":0,"turn":0,"reply":{},"failure":{"kind":"","message":""}}', "or both"),
        (b'{"sample":0,"row":-1,"turn":0,"reply":{}}', "no turn of a trajectory"),
        (b'{"sample":0,"row":0,"turn":0,"failure":"late"}', "no kind and message"),
        (b'{"sample":0,"row":0,"turn":0,"failure":{"kind":"timeout"}}', "no kind and message"),
    ],
)
def test_a_line_that_is_none_is_named(tmp_path: Path, bad: bytes, why: str) -> None:
    path = tmp_path / TURN_REPLIES
    path.write_bytes(GOOD * 2 + bad + b"\n" + GOOD)
    replies = read_turn_replies(path)
    assert [next(replies).turn, next(replies).turn] == [0, 0]
    with pytest.raises(MissingError, match=why) as caught:
        next(replies)
    assert caught.value.where == f"{path}, line 3"


def test_a_file_whose_end_was_cut(tmp_path: Path) -> None:
    path = tmp_path / TURN_REPLIES
    path.write_bytes((GOOD * 2)[:-9])
    with pytest.raises(MissingError, match="no JSON") as caught:
        list(read_turn_replies(path))
    assert "line 2" in str(caught.value)
    assert "killed" in str(caught.value)


def test_no_file_of_replies(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="cannot be read"):
        next(read_turn_replies(tmp_path / TURN_REPLIES))
