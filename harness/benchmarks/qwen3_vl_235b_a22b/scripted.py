"""Answers made up for a table, of which a stated share is right to the row: they prove a scorer exactly."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from harness.benchmarks.base import Dataset
from harness.benchmarks.qwen3_vl_235b_a22b import dataset as datasets
from harness.benchmarks.qwen3_vl_235b_a22b.dataset import Truths
from harness.benchmarks.scripts import ScriptedReplies
from harness.benchmarks.shares import right_rows

_FILLER = "A product that is sold in a shop."
_CHARS_A_TOKEN = 4
"""About what a token of such text spans: what the script says of its answers' lengths, nobody counts."""
WRONG = "Nothing > That > Is > Sold"


def scripted_answers(
    dataset: Dataset, shares: Mapping[str, float], *, seed: int, answer_tokens: int
) -> ScriptedReplies:
    """A reply for every row: of a subset's n rows ``round(share * n)`` are right, drawn by the seed, the rest wrong.

    A right one says the row's category, brand and whether it is second-hand, a wrong one a category of which no level
    is right. Rows of subsets that ``shares`` does not name get ``answer_tokens`` tokens of text. Raises UnknownName for
    a share of no subset, ConfigError for what is no share.
    """
    right = right_rows(dataset.subsets, shares, seed)
    truths = datasets.truths(dataset)
    contents = list(_contents(dataset, shares, right, truths, answer_tokens))
    return ScriptedReplies.of(
        contents,
        [
            max(1, len(content) // _CHARS_A_TOKEN) if subset in shares else answer_tokens
            for content, subset in zip(contents, dataset.subsets, strict=True)
        ],
    )


def _contents(
    dataset: Dataset, shares: Mapping[str, float], right: set[int], truths: Truths, answer_tokens: int
) -> Iterator[str]:
    filler = (_FILLER * (1 + answer_tokens * _CHARS_A_TOKEN // len(_FILLER)))[: answer_tokens * _CHARS_A_TOKEN]
    for row, subset in enumerate(dataset.subsets):
        if subset not in shares:
            yield filler
            continue
        said = {
            "category": truths.category[row] if row in right else WRONG,
            "brand": truths.brand[row],
            "is_secondhand": truths.is_secondhand[row],
        }
        yield json.dumps(said, indent=2, ensure_ascii=False)
