"""Prompts to warm an engine up with: shaped like the data set's, and not in it."""

from __future__ import annotations

import random
from collections.abc import Iterator

import numpy as np

from harness.benchmarks.base import Dataset
from harness.benchmarks.gpt_oss_120b import vocab
from harness.benchmarks.gpt_oss_120b.prompts import render
from harness.benchmarks.gpt_oss_120b.questions import article_question
from harness.engines.base import PromptTable
from harness.errors import MissingError

_HEADING = "Warm-up {i}. Sum up these articles.\n\n"
_TAIL_TOKENS = 3
"""What ends a prompt: the end of the user's message, and the header of the answer to come."""
_CHARS_A_TOKEN = 6
"""More than a token of such text spans, so that one rendering is mostly enough."""


def warmup_prompts(n: int, *, like: Dataset, seed: int) -> PromptTable:
    """n prompts whose lengths are drawn from those of ``like``; none is a row of it.

    Harmony-rendered articles of our own. A machine may serve the real data set without the tokenizer; there they are
    ids drawn at random from the ordinary ones, which costs an engine the same.
    """
    rng = random.Random(f"{seed}/warm-up")  # noqa: S311 - filler, not a secret
    lengths = [int(rng.choice(like.prompts.lengths)) for _ in range(n)]
    try:
        vocab.encoding()
    except MissingError:
        prompts = [[rng.randrange(vocab.FIRST_SPECIAL) for _ in range(length)] for length in lengths]
    else:
        prompts = [_article_prompt(i, length, seed) for i, length in enumerate(lengths)]
    _check_outside(prompts, like)
    return PromptTable.from_lists(prompts)


def _article_prompt(i: int, length: int, seed: int) -> list[int]:
    """A rendered prompt of ``length`` tokens, or as few as the system text and the heading leave."""
    ids: list[int] = []
    text = _HEADING.format(i=i + 1)
    least = len(render(text, "low"))
    for article in _articles(seed, i):
        text += article
        # Rendering after each article would cost the square of the length.
        if len(text) > _CHARS_A_TOKEN * length:
            ids = render(text, "low")
            if len(ids) >= length:
                break
    kept = max(length, least) - _TAIL_TOKENS
    return ids[:kept] + ids[-_TAIL_TOKENS:]


def _articles(seed: int, i: int) -> Iterator[str]:
    k = 0
    while True:
        yield article_question(seed, 1_000_000 * (i + 1) + k).text.split("\n\n", 1)[1] + "\n\n"
        k += 1


def _check_outside(prompts: list[list[int]], like: Dataset) -> None:
    made = {np.array(ids, np.int32).tobytes() for ids in prompts}
    inside = [row for row in range(like.rows) if like.prompts[row].tobytes() in made]
    if inside:
        raise ValueError(f"warm-up prompts are rows of the data set: {inside}")
