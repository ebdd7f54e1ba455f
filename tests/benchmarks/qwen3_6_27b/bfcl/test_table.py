from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks.qwen3_6_27b.bfcl import requests, table
from harness.benchmarks.qwen3_6_27b.bfcl.environment import Environment
from harness.benchmarks.qwen3_6_27b.bfcl.table import NAME, Row, Table
from harness.engines.bodies import BodyStore
from harness.env import BFCL_PYTHON
from harness.errors import DatasetError, MissingError
from harness.rules.benchmark import BfclData
from tests.benchmarks.qwen3_6_27b.bfcl.made import RULES, install, row, truth


def made(subset: str = "multiple", prefix: str = "standin_", **change: object) -> Row:
    told = row(subset, 0, prefix)
    values = {
        "id": told["id"],
        "subset": subset,
        "messages": [{"role": "user", "content": "Water bed 0"}],
        "tools": [{"type": "function"}],
        "functions": told["function"],
        "truth": truth(subset, 0),
    }
    return Row(**(values | change))


def rules_of(content: bytes) -> object:
    """The round's rules, with a table that has these bytes."""
    data = RULES.accuracy_data.value
    of = BfclData(package=data.package, version=data.version, sha256=hashlib.sha256(content).hexdigest())
    return RULES.model_copy(update={"accuracy_data": RULES.accuracy_data.model_copy(update={"value": of})})


def refused(folder: Path, content: bytes) -> DatasetError:
    (folder / NAME).write_bytes(content)
    with pytest.raises(DatasetError) as caught:
        table.read(folder, RULES)
    assert str(folder / NAME) in str(caught.value.where)
    return caught.value


def test_the_table_of_a_package(asked: Table) -> None:
    assert asked.stand_in
    assert Counter(each.subset for each in asked.rows)["simple_python"] == 24
    assert [each.subset for each in asked.rows] == sorted(each.subset for each in asked.rows)
    first = asked.rows[0]
    assert first.messages == [
        {"role": "system", "content": ""},
        {"role": "user", "content": "Water bed 0: Grüße"},
    ]
    assert first.category == "hallucination"
    assert first.truth is None
    assert not first.wants_calls


def test_the_same_package_makes_the_same_bytes(environment: Environment, asked: Table) -> None:
    content = table.make(environment, RULES)
    assert hashlib.sha256(content).hexdigest() == asked.sha256
    assert content == table.encoded(asked.rows)
    assert content.endswith(b"}\n")


def test_the_rounds_table_is_known_by_its_hash(tmp_path: Path) -> None:
    content = table.encoded([made(prefix="real_")])
    (tmp_path / NAME).write_bytes(content)
    found = table.read(tmp_path, rules_of(content))
    assert not found.stand_in
    assert len(found) == 1


def test_another_table_is_not_the_rounds(tmp_path: Path) -> None:
    rows = [made(prefix="real_"), made(prefix="standin_")]
    error = refused(tmp_path, table.encoded(rows))
    assert error.what.startswith("the questions of BFCL are not the round's: sha256 ")
    assert RULES.accuracy_data.value.sha256 in (error.expected or "")


def test_an_empty_table_is_no_stand_in(tmp_path: Path) -> None:
    assert "not the round's" in refused(tmp_path, b"").what


def test_a_package_of_real_rows_that_are_others(tmp_path: Path) -> None:
    python = install(tmp_path / "venv", RULES.accuracy_data.value.version, prefix="real_")
    with pytest.raises(DatasetError, match="not the round's"):
        table.write(tmp_path / "data", Environment(python, RULES.accuracy_data.value), RULES)


def test_there_is_no_table(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="are not there") as caught:
        table.read(tmp_path, RULES)
    assert "make bfcl" in (caught.value.mend or "")


def test_a_table_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    with pytest.raises(DatasetError, match="cannot be read"):
        table.read(tmp_path, RULES)


def test_a_table_that_cannot_be_written(tmp_path: Path, environment: Environment) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(MissingError, match="cannot write the questions of BFCL"):
        table.write(tmp_path / "file" / "data", environment, RULES)


BAD_ROWS = {
    "no JSON": b"{",
    "no object": b"[1]",
    "a key too many": json.dumps({**asdict(made()), "more": 1}).encode(),
    "a key too few": b'{"id": "standin_1"}',
    "another subset": json.dumps({**asdict(made()), "subset": "live_relevance"}).encode(),
    "no messages": json.dumps({**asdict(made()), "messages": []}).encode(),
    "no tools": json.dumps({**asdict(made()), "tools": [], "functions": []}).encode(),
    "a tool too few": json.dumps({**asdict(made()), "functions": [{}, {}]}).encode(),
    "no truth": json.dumps({**asdict(made()), "truth": None}).encode(),
    "a truth where nothing is right": json.dumps({**asdict(made()), "subset": "irrelevance"}).encode(),
    "nested too deep": b"[" * 100_000,
}


@pytest.mark.parametrize("name", BAD_ROWS)
def test_a_damaged_row_is_named(name: str, tmp_path: Path) -> None:
    error = refused(tmp_path, table.encoded([made()]) + BAD_ROWS[name] + b"\n")
    assert error.what.startswith("not a question of BFCL: ")
    assert error.where == f"{tmp_path / NAME}, line 2"


def test_a_question_twice(tmp_path: Path) -> None:
    error = refused(tmp_path, table.encoded([made(), made()]))
    assert error.what == "the question standin_multiple_0 is there twice"


@given(place=st.integers(min_value=0), byte=st.integers(0, 255))
def test_a_damaged_byte_is_an_error_or_another_hash(
    place: int, byte: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.getbasetemp() / "damaged"
    folder.mkdir(exist_ok=True)
    content = bytearray(table.encoded([made(prefix="real_"), made("simple_java", prefix="real_")]))
    right = bytes(content)
    content[place % len(content)] = byte
    (folder / NAME).write_bytes(content)
    if content == right:
        return
    with pytest.raises(DatasetError):
        table.read(folder, rules_of(right))


def test_rows_of_a_package_that_are_none(tmp_path: Path) -> None:
    class Other(Environment):
        def rows(self, subsets):
            return {subset: [{"id": "x", "question": [["text"]], "functions": [], "tools": []}] for subset in subsets}

    with pytest.raises(DatasetError, match="bfcl-eval has a row of irrelevance that is none"):
        table.make(Other(tmp_path, RULES.accuracy_data.value), RULES)


def test_the_chats_of_the_rows(asked: Table, tmp_path: Path) -> None:
    store = BodyStore.write(tmp_path / "chats", requests.bodies(asked))
    assert len(store) == len(asked)
    body = json.loads(bytes(store[len(asked) - 1]))
    assert body == {
        "messages": asked.rows[-1].messages,
        "tools": asked.rows[-1].tools,
        "tool_choice": "auto",
    }
    more = {"chat_template_kwargs": {"thinking": False}}
    assert [dict(each) for each in requests.bodies(asked, more)][-1] == {**body, **more}


def test_the_first_rows_alone(asked: Table) -> None:
    assert asked.head(len(asked)) is asked
    assert (asked.head(3).rows, asked.head(3).whole) == (asked.rows[:3], False)
    with pytest.raises(ValueError, match="the first"):
        asked.head(len(asked) + 1)


def test_the_table_is_made_once(environment: Environment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BFCL_PYTHON.name, str(environment.python))
    made_there = table.prepare(tmp_path, RULES)
    monkeypatch.setenv(BFCL_PYTHON.name, str(tmp_path / "no python"))
    assert table.prepare(tmp_path, RULES) == made_there
    with pytest.raises(MissingError):
        table.prepare(tmp_path / "elsewhere", RULES)
