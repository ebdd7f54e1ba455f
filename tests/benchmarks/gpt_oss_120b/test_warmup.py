from __future__ import annotations

from typing import NoReturn

import numpy as np
import pytest

from harness.benchmarks.base import Dataset, Made
from harness.benchmarks.gpt_oss_120b import vocab
from harness.benchmarks.gpt_oss_120b.dataset import Wanted, read
from harness.benchmarks.gpt_oss_120b.warmup import warmup_prompts
from harness.engines.base import PromptTable
from harness.errors import MissingError
from tests.benchmarks.gpt_oss_120b.made import dataset

pytestmark = pytest.mark.harmony


@pytest.fixture
def performance(small: Made) -> Dataset:
    return read(small.folder, "performance", Wanted(12, None, vocab.VOCAB_SIZE))


def long_prompts(*lengths: int) -> Dataset:
    data = dataset([("summarization", None)] * len(lengths))
    prompts = PromptTable.from_lists([[row] * length for row, length in enumerate(lengths)])
    return Dataset(data.name, "performance", prompts, data.subsets, data.ground_truth, (), stand_in=False)


def test_they_are_rendered_and_have_the_lengths_of_the_data_set(performance: Dataset) -> None:
    prompts = warmup_prompts(40, like=performance, seed=1)
    assert len(prompts) == 40
    assert set(prompts.lengths.tolist()) <= set(performance.prompts.lengths.tolist())
    text = vocab.decode(prompts[0])
    assert isinstance(text, str)
    assert text.startswith("<|start|>system<|message|>")
    assert "Warm-up 1." in text
    assert text.endswith("<|end|><|start|>assistant")


def test_none_is_twice_or_in_the_data_set(performance: Dataset) -> None:
    prompts = warmup_prompts(40, like=performance, seed=1)
    made = {prompts[i].tobytes() for i in range(40)}
    assert len(made) == 40
    assert not made & {performance.prompts[row].tobytes() for row in range(performance.rows)}


def test_long_prompts_are_as_long() -> None:
    assert warmup_prompts(2, like=long_prompts(5000), seed=1).lengths.tolist() == [5000, 5000]


def test_the_system_text_sets_the_least_length() -> None:
    (length,) = warmup_prompts(1, like=long_prompts(3), seed=1).lengths.tolist()
    assert 60 < length < 110


def test_the_seed_decides(performance: Dataset) -> None:
    first = warmup_prompts(5, like=performance, seed=1)
    assert np.array_equal(first.flat, warmup_prompts(5, like=performance, seed=1).flat)
    assert not np.array_equal(first.flat, warmup_prompts(5, like=performance, seed=2).flat)


def test_without_the_tokenizer_they_are_ordinary_ids(performance: Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> NoReturn:
        raise MissingError("no tokenizer")

    monkeypatch.setattr(vocab, "encoding", missing)
    prompts = warmup_prompts(5, like=performance, seed=1)
    assert set(prompts.lengths.tolist()) <= set(performance.prompts.lengths.tolist())
    assert prompts.flat.min() >= 0
    assert prompts.flat.max() < vocab.FIRST_SPECIAL


def test_no_prompts_are_no_prompts(performance: Dataset) -> None:
    assert len(warmup_prompts(0, like=performance, seed=1)) == 0
