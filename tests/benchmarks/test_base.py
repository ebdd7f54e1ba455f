from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest

from harness.benchmarks.base import DataFile, Dataset, ScriptedAnswers, SubsetScore, file_sha256
from harness.engines.base import PromptTable


def dataset(files: tuple[DataFile, ...] = (), *, truths: int = 2) -> Dataset:
    return Dataset("x/y", "accuracy", PromptTable.from_lists([[1], [2, 3]]), ("a", "b"), (None,) * truths, files, True)


def test_a_data_set_knows_its_size() -> None:
    assert (dataset().rows, dataset().max_prompt_tokens) == (2, 2)
    with pytest.raises(ValueError, match="2 prompts, 2 subsets, 3 ground truths"):
        dataset(truths=3)


def test_the_first_rows_of_a_data_set() -> None:
    head = dataset().head(1)
    assert (head.rows, head.whole, head.subsets, head.max_prompt_tokens) == (1, False, ("a",), 1)
    assert head.prompts[0].tolist() == [1]
    whole = dataset()
    assert whole.head(2) is whole
    assert whole.whole
    for rows in (-1, 3):
        with pytest.raises(ValueError, match=f"first {rows} rows of 2"):
            whole.head(rows)


def test_the_hash_depends_on_names_and_contents_but_not_on_order_or_place() -> None:
    a, b = DataFile(Path("/p/a"), "00"), DataFile(Path("/p/b"), "11")
    first = dataset((a, b)).sha256
    assert dataset((b, a)).sha256 == first
    assert dataset((DataFile(Path("/q/a"), "00"), b)).sha256 == first
    assert dataset((DataFile(Path("/p/a"), "11"), DataFile(Path("/p/b"), "00"))).sha256 != first


def test_a_file_that_changes_is_hashed_again(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for content, mtime in ((b"a" * 3_000_000, 1), (b"b" * 3_000_000, 2)):
        path.write_bytes(content)
        os.utime(path, (mtime, mtime))
        assert file_sha256(path) == hashlib.sha256(content).hexdigest()


def test_scripted_answers_are_cut_by_their_ends() -> None:
    tokens = np.arange(5, dtype=np.int32)
    answers = ScriptedAnswers(tokens, np.array([2, 2, 5]))
    assert [answers[row].tolist() for row in range(3)] == [[0, 1], [], [2, 3, 4]]
    with pytest.raises(ValueError, match="cut"):
        ScriptedAnswers(tokens, np.array([2, 4]))
    with pytest.raises(ValueError, match="cut"):
        ScriptedAnswers(tokens, np.array([4, 2, 5]))
    with pytest.raises(ValueError, match="int64"):
        ScriptedAnswers(tokens, np.array([5], np.int32))  # type: ignore[arg-type]


def test_a_subset_counts_each_row_once() -> None:
    subset = SubsetScore("a", 2, correct=1, wrong=2, failed=3, unscored=4, output_tokens=70)
    assert (subset.samples, subset.mean_output_tokens) == (10, 10)
    assert SubsetScore("a", 2, correct=1, wrong=2, failed=3, unscored=4, output_tokens=None).mean_output_tokens is None
    with pytest.raises(ValueError, match="not a score"):
        SubsetScore("a", 2, correct=-1, wrong=2, failed=3, unscored=4, output_tokens=70)
