from __future__ import annotations

import base64
import gzip
import json
import pickle
import zlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.benchmarks.gpt_oss_120b.judge import TestsFolder, tests_file
from harness.benchmarks.gpt_oss_120b.judge.problems import Test
from harness.benchmarks.gpt_oss_120b.judge.tests_file import packed, unpacked
from harness.errors import DatasetError


def case(given: str, output: str, kind: str = "stdin") -> dict[str, str]:
    return {"input": given, "output": output, "testtype": kind}


def row(name: str, private: str, **other: object) -> str:
    """A line of LiveCodeBench's data set, with the fields that it has beside those that are read."""
    content = {
        "question_title": "T",
        "question_content": 'What is "question_id": "x"?',
        "platform": "atcoder",
        "question_id": name,
        "contest_date": "2024-01-01T00:00:00",
        "starter_code": "",
        "public_test_cases": json.dumps([case("1\n", "2\n")]),
        "private_test_cases": private,
        "metadata": "{}",
        **other,
    }
    return json.dumps(content) + "\n"


PRIVATE = [case("5\n", "10\n"), case("é\n", "日本\n")]


def folder(path: Path, *lines: str, name: str = "test.jsonl") -> TestsFolder:
    (path / name).write_text("".join(lines), encoding="utf-8")
    return TestsFolder(path)


@pytest.mark.parametrize("pack", [json.dumps, lambda content: packed(json.dumps(content))])
def test_private_tests_come_plain_or_packed(tmp_path: Path, pack: object) -> None:
    assert callable(pack)
    (problem,) = folder(tmp_path, row("abc301_a", pack(PRIVATE))).problems({"abc301_a"})
    assert (problem.id, problem.function) == ("abc301_a", None)
    assert problem.tests == (Test("1\n", "2\n"), Test("5\n", "10\n"), Test("é\n", "日本\n"))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_any_protocol_of_pickle(protocol: int) -> None:
    text = base64.b64encode(zlib.compress(pickle.dumps("[1]", protocol=protocol))).decode()
    assert unpacked(text) == "[1]"


def test_a_function_is_named_in_the_metadata(tmp_path: Path) -> None:
    line = row("3026", "[]", public_test_cases=json.dumps([case("[1]\n2", "3", "functional")]),
               metadata=json.dumps({"func_name": "solve"}))  # fmt: skip
    (problem,) = folder(tmp_path, line).problems({"3026"})
    assert problem.function == "solve"


def test_shards_are_read_in_order_compressed_or_not_and_only_what_is_wanted(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "test2.jsonl.gz", "wt", encoding="utf-8") as file:
        file.write(row("c", "[]") + "\n")
    tests = folder(tmp_path, row("a", "broken"), row("b", "[]"))
    (tmp_path / "README.md").write_text("not a shard")
    assert [path.name for path in tests.shards()] == ["test.jsonl", "test2.jsonl.gz"]
    assert tests.ids() == {"a", "b", "c"}
    assert [problem.id for problem in tests.problems({"c", "b", "z"})] == ["b", "c"]


def test_a_folder_that_is_not_there_has_nothing(tmp_path: Path) -> None:
    assert TestsFolder(tmp_path / "no").shards() == []
    assert TestsFolder(tmp_path / "no").ids() == set()


def test_a_problem_that_stands_twice(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"(?s)a is there twice.*line 2"):
        folder(tmp_path, row("a", "[]"), row("a", "[]")).ids()


class Evil:
    def __reduce__(self) -> tuple[object, ...]:
        return (exec, ("raise SystemExit('ran')",))


def pickled(value: object) -> str:
    return base64.b64encode(zlib.compress(pickle.dumps(value))).decode()


@pytest.mark.parametrize(
    ("private", "said"),
    [
        (pickled(Evil()), "the instruction STACK_GLOBAL"),
        (pickled(["[]"]), "the instruction EMPTY_LIST"),
        (pickled(b"[]"), "the instruction SHORT_BINBYTES"),
        (pickled("not JSON"), "JSONDecodeError"),
        ("!!", "cannot be unpacked"),
        (base64.b64encode(b"abc").decode(), "cannot be unpacked"),
        (packed("[]")[:-12], "unpacked|cut off"),
        (base64.b64encode(zlib.compress(b"\x80\x04no")).decode(), "ValueError"),
        (base64.b64encode(zlib.compress(b"\x80\x04.")).decode(), "0 pickled texts"),
        (base64.b64encode(zlib.compress(b"Pid\n.")).decode(), "the instruction PERSID"),
        (json.dumps([{"input": "1"}]), "KeyError: 'output'"),
        (json.dumps([{"input": "1", "output": 2}]), "no text"),
        (json.dumps({"input": "1"}), "TypeError"),
    ],
)
def test_private_tests_that_cannot_be_meant(tmp_path: Path, private: str, said: str) -> None:
    with pytest.raises(DatasetError, match=rf"(?s)({said}).*test\.jsonl, line 1"):
        list(folder(tmp_path, row("a", private)).problems({"a"}))


@pytest.mark.parametrize(
    "line",
    [
        row("a", "[]", metadata="[]"),
        row("a", "[]", metadata=None),
        row("a", "[]", public_test_cases="[]"),
        row("a", "[]", public_test_cases=7),
        row("a", "[]")[:-20] + "\n",
        '["question_id": "a"]\n',
    ],
)
def test_rows_that_cannot_be_meant(tmp_path: Path, line: str) -> None:
    with pytest.raises(DatasetError, match=r"(?s)no problem of LiveCodeBench.*line 2"):
        list(folder(tmp_path, row("b", "[]"), line).problems({"a"}))


def test_lines_that_are_something_else(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="no question_id"):
        folder(tmp_path, '{"id": 3}\n').ids()


def test_a_shard_that_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / "test.jsonl.gz").write_bytes(gzip.compress(row("a", "[]").encode())[:-9])
    with pytest.raises(DatasetError, match="cannot be read"):
        TestsFolder(tmp_path).ids()
    (tmp_path / "test.jsonl.gz").write_bytes(b"plain")
    with pytest.raises(DatasetError, match="cannot be read"):
        TestsFolder(tmp_path).ids()


def test_a_bomb_is_not_unpacked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tests_file, "MAX_UNPACKED", 1 << 16)
    with pytest.raises(ValueError, match="more than 65536 bytes"):
        unpacked(packed("x" * (1 << 17)))


@settings(max_examples=60, deadline=None)
@given(st.text())
def test_what_is_packed_comes_back(text: str) -> None:
    assert unpacked(packed(text)) == text


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=60))
def test_no_bytes_in_a_pickle_do_anything(content: bytes) -> None:
    text = base64.b64encode(zlib.compress(content)).decode()
    try:
        assert isinstance(unpacked(text), str)
    except ValueError:
        return
