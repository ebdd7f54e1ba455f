from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.benchmarks.base import file_sha256
from harness.benchmarks.gpt_oss_120b import files
from harness.benchmarks.gpt_oss_120b.dataset import Wanted, read
from harness.errors import DatasetError
from harness.rules import load
from tests.benchmarks.gpt_oss_120b.conftest import WriteTable

VOCAB = 1000
PROMPTS = [[1, 2, 3], [4], [5, 6, 999, 0]]


def wanted(rows: int = 3, subsets: dict[str, int] | None = None) -> Wanted:
    return Wanted(rows, subsets, VOCAB)


@pytest.mark.parametrize("column", [files.TOKENS, files.OLD_TOKENS])
@pytest.mark.parametrize("pair", [False, True])
def test_reads_both_spellings_with_and_without_the_arrays(write_table: WriteTable, column: str, pair: bool) -> None:
    folder = write_table(PROMPTS, token_column=column, pair=pair)
    dataset = read(folder, "accuracy", wanted(subsets={"aime25": 3}))
    assert [dataset.prompts[i].tolist() for i in range(3)] == PROMPTS
    assert dataset.rows == 3
    assert dataset.max_prompt_tokens == 4
    assert dataset.ground_truth == ("0", "1", "2")
    assert dataset.subsets == ("aime25",) * 3
    assert dataset.name == "gpt-oss-120b/accuracy"
    assert not dataset.stand_in
    assert isinstance(dataset.prompts.flat, np.memmap) is pair
    assert len(dataset.files) == (3 if pair else 1)
    assert all(file.sha256 == file_sha256(file.path) for file in dataset.files)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    prompts=st.lists(st.lists(st.integers(0, VOCAB - 1), min_size=1, max_size=9), min_size=1, max_size=20),
    pair=st.booleans(),
)
def test_any_table_comes_back_as_it_was_written(write_table: WriteTable, prompts: list[list[int]], pair: bool) -> None:
    folder = write_table(prompts, pair=pair)
    if not pair:
        for path in folder.glob("acc/*.npy"):
            path.unlink()
    dataset = read(folder, "accuracy", wanted(rows=len(prompts)))
    assert [dataset.prompts[i].tolist() for i in range(len(prompts))] == prompts


def test_the_hash_is_that_of_the_content(write_table: WriteTable) -> None:
    first = read(write_table(PROMPTS), "accuracy", wanted()).sha256
    assert read(write_table(PROMPTS), "accuracy", wanted()).sha256 == first
    assert read(write_table([[1, 2, 3], [4], [5, 6, 7, 0]]), "accuracy", wanted()).sha256 != first


def test_arrays_of_another_integer_type_are_read_without_the_map(write_table: WriteTable) -> None:
    folder = write_table(PROMPTS, pair=True)
    path = folder / "acc" / "input_ids_padded_acc_eval.npy"
    np.save(path, np.load(path).astype(np.int64))
    dataset = read(folder, "accuracy", wanted())
    assert [dataset.prompts[i].tolist() for i in range(3)] == PROMPTS


def test_the_audit_table_has_no_arrays(write_table: WriteTable) -> None:
    folder = write_table(PROMPTS, which="TEST07", subsets=["gpqa_diamond"] * 3)
    assert read(folder, "TEST07", wanted(subsets={"gpqa_diamond": 3})).rows == 3


def fails(folder: Path, *parts: str, want: Wanted | None = None) -> None:
    with pytest.raises(DatasetError) as caught:
        read(folder, "accuracy", want or wanted())
    text = str(caught.value)
    assert all(part in text for part in (*parts, "mend: ", str(folder))), text
    assert caught.value.exit_code == 3


def test_missing_file(tmp_path: Path) -> None:
    fails(tmp_path, "missing", "acc_eval_ref.parquet", "make_dataset")


def test_not_a_parquet_file(tmp_path: Path) -> None:
    path = tmp_path / "acc" / "acc_eval_ref.parquet"
    path.parent.mkdir()
    path.write_bytes(b"PAR1 no")
    fails(tmp_path, "not a parquet file")


@pytest.mark.parametrize("column", [files.COUNT, files.TRUTH, files.SUBSET, files.TOKENS])
def test_missing_column(write_table: WriteTable, column: str) -> None:
    fails(
        write_table(PROMPTS, without=[column]), f"lacks the columns {column}", "expected: input_tokens (or tok_input)"
    )


def test_wrong_number_of_rows(write_table: WriteTable) -> None:
    fails(write_table(PROMPTS), "has 3 rows", "expected: 4 rows", want=wanted(rows=4))


def test_wrong_composition(write_table: WriteTable) -> None:
    folder = write_table(PROMPTS, subsets=["aime25", "aime25", None])
    fails(folder, "1 (none), 2 aime25", "expected: 3 aime25", want=wanted(subsets={"aime25": 3}))


def test_a_subset_that_is_missing_though_the_rows_are_as_many(write_table: WriteTable) -> None:
    folder = write_table(PROMPTS, subsets=["aime25"] * 3)
    fails(
        folder,
        "of other subsets: 3 aime25",
        "expected: 2 aime25, 1 gpqa",
        want=wanted(subsets={"aime25": 2, "gpqa": 1}),
    )


@pytest.mark.parametrize("bad", [-1, VOCAB, 2**40])
def test_ids_outside_the_vocabulary(write_table: WriteTable, bad: int) -> None:
    fails(write_table([[1, 2], [3, bad, bad], [4]]), f"row 1 holds the token id {bad}, 2 such", f"0..{VOCAB - 1}")


@pytest.mark.parametrize("empty", [[], None])
def test_empty_prompts(write_table: WriteTable, empty: list[int] | None) -> None:
    fails(write_table([[1], empty, [2]]), "row 1 has an empty prompt, 1 such")


def test_null_ids(write_table: WriteTable) -> None:
    fails(write_table([[1], [None], [2]]), "1 token ids are null")


def test_ids_that_are_no_lists_of_integers(write_table: WriteTable) -> None:
    folder = write_table([["a"], ["b"], ["c"]], token_type=pa.list_(pa.string()))
    fails(folder, "lists of integers")


def test_counts_that_disagree(write_table: WriteTable) -> None:
    fails(write_table(PROMPTS, counts=[3, 2, 4]), "row 1 has 1 token ids where num_tokens says 2")


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_damaged_file_is_told_or_still_readable(write_table: WriteTable, data: st.DataObject) -> None:
    folder = write_table(PROMPTS, pair=True)
    path = data.draw(st.sampled_from(sorted((folder / "acc").iterdir())))
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    else:
        for _ in range(data.draw(st.integers(1, 3))):
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(content)
    try:
        assert read(folder, "accuracy", wanted()).rows == 3
    except DatasetError as error:
        assert str(path.parent) in str(error)


def test_one_array_without_the_other(write_table: WriteTable) -> None:
    folder = write_table(PROMPTS, pair=True)
    (folder / "acc" / "input_lens_acc_eval.npy").unlink()
    fails(folder, "input_ids_padded_acc_eval.npy is there without input_lens_acc_eval.npy")


def test_lengths_that_disagree(write_table: WriteTable) -> None:
    folder = write_table(PROMPTS, pair=True)
    path = folder / "acc" / "input_lens_acc_eval.npy"
    np.save(path, np.array([3, 1, 3]))
    fails(folder, "row 2 is said to be 3 tokens long, and is 4")
    np.save(path, np.array([3, 1]))
    fails(folder, "2 lengths for 3 rows")


def test_arrays_that_hold_other_ids(write_table: WriteTable) -> None:
    folder = write_table(PROMPTS, pair=True)
    path = folder / "acc" / "input_ids_padded_acc_eval.npy"
    padded = np.load(path)
    padded[2, 3] = 8
    np.save(path, padded)
    fails(folder, "row 2 holds other token ids than the parquet")
    np.save(path, padded[:, :3])
    fails(folder, "(3, 3)", "(3, at least 4)")
    np.save(path, padded.astype(np.float32))
    fails(folder, "float32", "integers")
    path.write_bytes(b"no array")
    fails(folder, "not an array")


def test_what_the_round_wants() -> None:
    rules = load("v6.1").benchmark("gpt-oss-120b")
    accuracy = Wanted.by(rules, "accuracy")
    assert accuracy.subsets is not None
    assert sum(accuracy.subsets.values()) == accuracy.rows
    audit = Wanted.by(rules, "TEST07")
    assert audit.subsets == {"gpqa_diamond": audit.rows}
    assert Wanted.by(rules, "performance").subsets is None
