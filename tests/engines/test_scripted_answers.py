from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.scripted_answers import CountingScript, RecordedScript, Script
from harness.engines.scripted_files import read_answers
from harness.errors import ConfigError, MissingError


@st.composite
def some_scripts(draw: st.DrawFn) -> tuple[Script, int]:
    """A script, and a number of rows it has answers for."""
    if draw(st.booleans()):
        return CountingScript(draw(st.integers(0, 5)), draw(st.integers(1, 12))), 30
    answers = draw(st.lists(st.lists(st.integers(0, 99), max_size=5), min_size=1, max_size=6))
    flat = np.array([i for ids in answers for i in ids], np.int32)
    return RecordedScript(flat, np.cumsum([len(ids) for ids in answers], dtype=np.int64)), len(answers)


@given(some_scripts(), st.data(), st.integers(1, 6), st.integers(1, 40))
def test_many_are_what_each_is_alone(script_rows: tuple[Script, int], data: st.DataObject, cap: int, n: int) -> None:
    script, n_rows = script_rows
    rows = data.draw(st.lists(st.integers(0, n_rows - 1), min_size=n, max_size=n))
    alone = [script.one(row, cap)[0].tolist() for row in rows]
    batch = script.many(rows, cap)
    starts = [0, *batch.ends]
    together = [batch.tokens[start:end].tolist() for start, end in zip(starts, batch.ends, strict=False)]
    assert together == alone
    assert batch.longest == max(map(len, alone))
    assert [finish == 1 for finish in batch.finish] == [len(answer) >= cap for answer in alone]
    for position in range(batch.longest):
        which, tokens = batch.at(position, range(n))
        told = [(i, answer[position]) for i, answer in enumerate(alone) if len(answer) > position]
        assert list(zip(which, tokens.tolist(), strict=True)) == told


class TestReadAnswers:
    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(MissingError, match="not there"):
            read_answers(tmp_path / "no.npz", 10)

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip", b"text"])
    def test_not_an_archive(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "bad.npz"
        path.write_bytes(content)
        with pytest.raises(ConfigError, match="not a file of scripted answers"):
            read_answers(path, 10)

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"tokens": np.zeros(2, np.int32)}, "ends"),
            ({"tokens": np.zeros(2, np.int64), "ends": np.array([2])}, "int64"),
            ({"tokens": np.zeros((1, 2), np.int32), "ends": np.array([2])}, "2-D"),
            ({"tokens": np.zeros(2, np.int32), "ends": np.array([1])}, "do not rise"),
            ({"tokens": np.zeros(2, np.int32), "ends": np.array([2, 1, 2])}, "do not rise"),
            ({"tokens": np.zeros(2, np.int32), "ends": np.array([], np.int64)}, "do not rise"),
            ({"tokens": np.array([3, 10], np.int32), "ends": np.array([2])}, "vocabulary"),
            ({"tokens": np.array([-1, 3], np.int32), "ends": np.array([2])}, "vocabulary"),
        ],
    )
    def test_not_answers(self, tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
        path = tmp_path / "bad.npz"
        np.savez(path, **arrays)
        with pytest.raises(ConfigError, match=message):
            read_answers(path, 10)
