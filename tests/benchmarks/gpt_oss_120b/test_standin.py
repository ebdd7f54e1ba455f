from __future__ import annotations

import errno
import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

from harness.benchmarks.base import Made
from harness.benchmarks.gpt_oss_120b import standin, vocab
from harness.benchmarks.gpt_oss_120b.dataset import Wanted, read
from harness.benchmarks.gpt_oss_120b.score import score
from harness.benchmarks.gpt_oss_120b.scripted import scripted_answers
from harness.benchmarks.gpt_oss_120b.standin import Counts, Repeated, make_dataset
from harness.benchmarks.standins import STAND_IN_FILE
from harness.errors import ConfigError, MissingError
from harness.rules import load
from tests.benchmarks.gpt_oss_120b.conftest import SMALL, SMALL_ACCURACY

pytestmark = pytest.mark.harmony

FILES = {
    "perf/perf_eval_ref.parquet",
    "perf/input_ids_padded_perf_eval.npy",
    "perf/input_lens_perf_eval.npy",
    "acc/acc_eval_ref.parquet",
    "acc/acc_eval_compliance_gpqa.parquet",
    "acc/input_ids_padded_acc_eval.npy",
    "acc/input_lens_acc_eval.npy",
    "livecodebench/test.jsonl",
}


def names(folder: Path) -> set[str]:
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def test_it_has_the_files_and_columns_of_the_reference(small: Made) -> None:
    assert small.made
    assert names(small.folder) == FILES | {STAND_IN_FILE, "README.md"}
    assert set(small.sha256) == FILES
    for name in FILES:
        if name.endswith(".parquet"):
            assert pq.read_schema(small.folder / name).names == [
                "input_tokens",
                "num_tokens",
                "text_input",
                "original_messages",
                "ground_truth",
                "dataset",
            ]


def test_the_reader_takes_it_and_sees_that_it_is_a_stand_in(small: Made) -> None:
    accuracy = read(small.folder, "accuracy", Wanted(62, SMALL_ACCURACY, vocab.VOCAB_SIZE))
    assert accuracy.stand_in
    assert isinstance(accuracy.prompts.flat, np.memmap)
    assert read(small.folder, "performance", Wanted(12, None, vocab.VOCAB_SIZE)).stand_in
    assert read(small.folder, "TEST07", Wanted(30, {"gpqa_diamond": 30}, vocab.VOCAB_SIZE)).stand_in
    assert small.rows == {"performance": 12, "accuracy": 62, "TEST07": 30}


def test_the_mark_survives_the_loss_of_its_file(small: Made, tmp_path: Path) -> None:
    folder = shutil.copytree(small.folder, tmp_path / "gpt-oss-120b")
    (folder / STAND_IN_FILE).unlink()
    assert read(folder, "performance", Wanted(12, None, vocab.VOCAB_SIZE)).stand_in


def test_prompts_are_harmony_with_the_effort_of_their_table(small: Made) -> None:
    performance = read(small.folder, "performance", Wanted(12, None, vocab.VOCAB_SIZE))
    accuracy = read(small.folder, "accuracy", Wanted(62, None, vocab.VOCAB_SIZE))
    for dataset, effort in ((performance, "low"), (accuracy, "high")):
        for row in range(dataset.rows):
            ids = dataset.prompts[row].tolist()
            text = vocab.decode(ids)
            assert isinstance(text, str)
            assert vocab.encode(text) == ids
            assert text.startswith("<|start|>system<|message|>")
            assert text.endswith("<|end|><|start|>assistant")
            assert f"Reasoning: {effort}\n" in text
            assert len(ids) in standin.PROMPT_TOKENS


def test_questions_are_asked_as_often_as_they_repeat(small: Made) -> None:
    table = pq.read_table(small.folder / "acc" / "acc_eval_ref.parquet")
    asked: dict[str, list[str]] = {}
    for name, text in zip(table["dataset"].to_pylist(), table["text_input"].to_pylist(), strict=True):
        asked.setdefault(name, []).append(text)
    for name, part in SMALL.accuracy.items():
        assert len(set(asked[name])) == part.questions
        assert {asked[name].count(text) for text in asked[name]} == {part.repeats}
    audit = pq.read_table(small.folder / "acc" / "acc_eval_compliance_gpqa.parquet")
    assert set(audit["text_input"].to_pylist()) == set(asked["gpqa_diamond"])


def test_the_same_seed_makes_the_same_bytes(small: Made, tmp_path: Path) -> None:
    again = make_dataset(tmp_path / "gpt-oss-120b", seed=7, counts=SMALL)
    assert again.sha256 == small.sha256
    other = make_dataset(tmp_path / "other", seed=8, counts=SMALL)
    assert not set(other.sha256.values()) & {small.sha256[name] for name in FILES if "ids" in name}


def test_an_equal_one_is_left_alone_and_a_damaged_or_other_one_is_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "gpt-oss-120b"
    folder.mkdir()
    counts = replace(SMALL, performance=2)
    assert make_dataset(folder, seed=1, counts=counts).made
    assert not make_dataset(folder, seed=1, counts=counts).made
    (folder / "perf" / "perf_eval_ref.parquet").write_bytes(b"damaged")
    assert make_dataset(folder, seed=1, counts=counts).made
    assert make_dataset(folder, seed=2, counts=counts).made
    (folder / STAND_IN_FILE).write_text("not JSON")
    assert make_dataset(folder, seed=2, counts=counts).made
    assert not make_dataset(folder, seed=2, counts=counts).made
    assert [path.name for path in tmp_path.iterdir()] == ["gpt-oss-120b"]


def test_a_folder_that_is_no_stand_in_is_refused_and_kept(tmp_path: Path) -> None:
    (tmp_path / "perf").mkdir()
    (tmp_path / "perf" / "perf_eval_ref.parquet").write_bytes(b"the real one")
    with pytest.raises(ConfigError, match="no stand-in"):
        make_dataset(tmp_path, seed=1, counts=SMALL)
    assert names(tmp_path) == {"perf/perf_eval_ref.parquet"}


def test_a_full_disk_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(standin.np, "save", full)
    with pytest.raises(MissingError, match="No space left on device"):
        make_dataset(tmp_path / "data" / "gpt-oss-120b", seed=1, counts=SMALL)
    assert list((tmp_path / "data").iterdir()) == []


def test_subsets_that_nobody_has_questions_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'mmlu'"):
        make_dataset(tmp_path / "a", seed=1, counts=Counts(1, {"mmlu": Repeated(1, 1)}, 1))
    with pytest.raises(ConfigError, match="GPQA"):
        make_dataset(tmp_path / "b", seed=1, counts=Counts(1, {"aime25": Repeated(1, 1)}, 1))


def test_it_says_what_it_is(small: Made) -> None:
    content = json.loads((small.folder / STAND_IN_FILE).read_text())
    assert content["seed"] == 7
    assert "nothing that ran on it can be submitted" in content["what"]
    assert "never be submitted" in (small.folder / "README.md").read_text()


@pytest.mark.slow
def test_the_whole_of_it_is_what_the_round_wants(tmp_path: Path) -> None:
    rules = load("v6.1").benchmark("gpt-oss-120b")
    folder = tmp_path / "gpt-oss-120b"
    make_dataset(folder, seed=1, counts=Counts.by(rules))
    for which in standin.WHICH:
        dataset = read(folder, which, Wanted.by(rules, which))
        lengths = dataset.prompts.lengths
        assert int(lengths.min()) in standin.PROMPT_TOKENS
        assert int(lengths.max()) in standin.PROMPT_TOKENS
        distinct = {dataset.prompts[row].tobytes() for row in range(dataset.rows)}
        questions = {"performance": 6396, "accuracy": 30 + 198 + 1055, "TEST07": 198}
        assert len(distinct) == questions[which]
    accuracy = read(folder, "accuracy", Wanted.by(rules, "accuracy"))
    script = scripted_answers(accuracy, {"aime25": 0.6, "gpqa_diamond": 0.4}, seed=1, answer_tokens=8)
    found = score(((row, script[row]) for row in range(len(script))), accuracy, key="k", repeats={})
    assert [(s.correct, s.samples, s.unscored) for s in found.subsets] == [
        (144, 240, 0),
        (396, 990, 0),
        (0, 3165, 3165),
    ]
