from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.benchmarks.base import Chats, DataFile, Dataset, Score, SubsetScore, file_sha256, forget_run
from harness.benchmarks.scripts import ScriptedAnswers, ScriptedReplies
from harness.engines.base import PromptTable
from harness.engines.bodies import BodyStore


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


def test_chats_are_as_long_as_their_store_says(tmp_path: Path) -> None:
    bodies = [{"messages": [{"role": "user", "content": "x"}]}] * 3
    store = BodyStore.write(tmp_path / "chats", bodies, tokens=[9, 4, 30])
    asked = replace(dataset(), prompts=PromptTable.empty(2))
    assert asked.prompt_tokens.tolist() == [0, 0]  # nobody made them yet
    prepared = replace(asked, chats=store.path)
    assert prepared.prompt_tokens.tolist() == [9, 4]
    assert prepared.max_prompt_tokens == 9
    assert prepared.head(1).prompt_tokens.tolist() == [9]
    assert prepared.head(0).max_prompt_tokens == 0
    assert prepared.head(1).chats == store.path


def test_trajectories_are_as_long_as_their_longest_chat(tmp_path: Path) -> None:
    bodies = [{"messages": [{"role": "user", "content": "x"}]}] * 6
    store = BodyStore.write(tmp_path / "chats", bodies, sessions=[0, 0, 1, 2, 2, 2], tokens=[4, 9, 7, 1, 30, 2])
    asked = replace(dataset(), prompts=PromptTable.empty(2), trajectories=True)
    assert asked.prompt_tokens.tolist() == [0, 0]
    prepared = replace(asked, chats=store.path)
    assert prepared.prompt_tokens.tolist() == [9, 7]
    assert prepared.head(1).prompt_tokens.tolist() == [9]
    assert prepared.head(0).max_prompt_tokens == 0
    third = replace(prepared, prompts=PromptTable.empty(3), subsets=("a",) * 3, ground_truth=(None,) * 3)
    assert third.prompt_tokens.tolist() == [9, 7, 30]


def test_what_a_run_made_for_itself_is_taken_away(tmp_path: Path) -> None:
    own, shared = tmp_path / "run" / "chats", tmp_path / "chats"
    own.parent.mkdir()
    for path in (own, shared):
        path.write_text("")
        for _ in range(2):
            forget_run(replace(dataset(), chats=path), own.parent)
    assert (own.exists(), shared.exists()) == (False, True)
    forget_run(dataset(), own.parent)


def test_questions_are_counted() -> None:
    chats = Chats(({"messages": [1]}, {"messages": [2]}))
    assert len(chats) == 2
    assert [body["messages"] for body in chats] == [[1], [2]]


@pytest.mark.parametrize(
    ("data", "ends", "tokens", "message"),
    [
        (np.zeros(2, np.uint8), np.array([2]), np.zeros(2, np.int32), "1 ends, 2 token counts"),
        (np.zeros(2, np.int8), np.array([2]), np.zeros(1, np.int32), "of the types int8"),
        (np.zeros(2, np.uint8), np.array([1]), np.zeros(1, np.int32), "do not cut"),
        (np.zeros(2, np.uint8), np.array([2, 1, 2]), np.zeros(3, np.int32), "do not cut"),
    ],
)
def test_replies_that_do_not_add_up(data: Any, ends: Any, tokens: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ScriptedReplies(data, ends, tokens)


def test_further_figures_stand_beside_a_score_and_need_no_value() -> None:
    subset = SubsetScore("a", 1, correct=1, wrong=0, failed=1, unscored=0, output_tokens=5)
    score = Score("f1", None, (subset,), "us", stand_in=False, also={"brand": 0.5})
    assert dict(score.also) == {"brand": 0.5}
    assert dict(replace(score, also={}).also) == {}


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
