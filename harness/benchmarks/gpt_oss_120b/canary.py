"""What an engine is asked before a leg: whether it hands over every token, ends where the model ends, keeps its cap."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from harness.benchmarks.base import CanaryFinding
from harness.benchmarks.gpt_oss_120b import vocab
from harness.benchmarks.gpt_oss_120b.answers import has_final_part
from harness.benchmarks.gpt_oss_120b.logged import token_ids
from harness.benchmarks.gpt_oss_120b.prompts import render
from harness.engines.base import Int32Array, PromptTable

CHANNEL = "<|channel|>"
_QUESTIONS = (
    "What is seven times eight? Answer with the number.",
    "Antworte auf Deutsch: Wie heißt die größte Stadt Österreichs?",
    "Repeat exactly: 𒀀 ∑ — “naïve” 日本語 🦉",
)
_MAX_NEW_TOKENS = 32
_ENOUGH_TOKENS = 1024
"""Several times what the model needs for a question of a sentence at low effort."""


def round_trip(ids: Sequence[int] | Int32Array) -> str | None:
    """What goes wrong on the way from ids to text, to ids, to text; None where nothing does.

    The text must come back the same, with as many special tokens. The ids may differ: a model may spell a word in
    other pieces than the tokenizer would.
    """
    text = vocab.decode(ids)
    if isinstance(text, vocab.BadIds):
        return str(text)
    again = vocab.encode(text)
    if vocab.decode(again) != text:
        return "the text does not come back from its token ids"
    before, after = _specials(np.asarray(ids)), _specials(np.asarray(again))
    if before != after:
        return f"{before} special tokens became {after}"
    return None


def _specials(ids: Int32Array) -> int:
    return int((ids >= vocab.FIRST_SPECIAL).sum())


@dataclass(frozen=True, slots=True, eq=False)
class HarmonyRoundTrip:
    """A few short questions in several scripts. Satisfies :class:`harness.benchmarks.base.Canary`.

    A trained model begins every answer with the channel token; one that is missing was eaten on the way (by a chat
    route that parses harmony itself). A checkpoint of random weights cannot be asked that: ``trained`` is False.
    """

    prompts: PromptTable
    trained: bool
    name: str = "harmony round trip"
    max_new_tokens: int = _MAX_NEW_TOKENS

    @classmethod
    def make(cls, *, trained: bool) -> HarmonyRoundTrip:
        """Renders the questions. Raises MissingError where the tokenizer is not to be had."""
        prompts = [render(question, "low") for question in _QUESTIONS]
        for ids in prompts:
            problem = round_trip(ids)
            if problem is not None or vocab.encode(str(vocab.decode(ids))) != ids:
                raise ValueError(f"the tokenizer does not round trip its own prompt: {problem}")
        return cls(PromptTable.from_lists(prompts), trained)

    def check(self, answers: Sequence[bytes]) -> list[CanaryFinding]:
        """What is wrong with the answers, in order of the prompts."""
        findings = []
        for i, ids in enumerate(map(token_ids, answers), start=1):
            problem, expected = self._problem(ids)
            if problem is not None:
                findings.append(CanaryFinding(f"answer {i} of {len(answers)}: {problem}", expected))
        if len(answers) != len(self.prompts):
            findings.append(CanaryFinding(f"{len(answers)} answers to {len(self.prompts)} prompts", "one a prompt"))
        return findings

    def _problem(self, ids: Int32Array) -> tuple[str | None, str]:
        if not 1 <= len(ids) <= self.max_new_tokens:
            return f"{len(ids)} tokens", f"1 to {self.max_new_tokens} tokens"
        first = vocab.encode(CHANNEL)
        if self.trained and ids[:1].tolist() != first:
            return (
                f"it begins with token {ids[0]}",
                f"{first[0]}, {CHANNEL}: the engine must hand over every token, special ones too",
            )
        return round_trip(ids), "text that comes back the same from its token ids, special tokens kept"


@dataclass(frozen=True, slots=True, eq=False)
class FinalAnswer:
    """A question of a sentence, answered to its end. Satisfies :class:`harness.benchmarks.base.Canary`.

    The answer must stop by the model's stop token, which is no part of it, well before the cap; must have reached the
    final channel, out of which it is graded; and must have the tokens that LoadGen's metrics need. For trained weights:
    random ones end nowhere.
    """

    prompts: PromptTable
    min_tokens: int
    stop_token_ids: tuple[int, ...]
    name: str = "final answer"
    max_new_tokens: int = _ENOUGH_TOKENS

    @classmethod
    def make(cls, *, min_tokens: int, stop_token_ids: Sequence[int]) -> FinalAnswer:
        """Renders the question. Raises MissingError where the tokenizer is not to be had."""
        return cls(PromptTable.from_lists([render(_QUESTIONS[0], "low")]), min_tokens, tuple(stop_token_ids))

    def check(self, answers: Sequence[bytes]) -> list[CanaryFinding]:
        """What is wrong with the answers, in order of the prompts."""
        if len(answers) != len(self.prompts):
            return [CanaryFinding(f"{len(answers)} answers to {len(self.prompts)} prompts", "one a prompt")]
        problems = map(self._problem, map(token_ids, answers))
        return [CanaryFinding(*problem) for problem in problems if problem is not None]

    def _problem(self, ids: Int32Array) -> tuple[str, str] | None:
        stop = " or ".join(map(str, self.stop_token_ids))
        if len(ids) >= self.max_new_tokens:
            return f"{len(ids)} tokens to a question of a sentence", f"an answer that ends at the stop token {stop}"
        if len(ids) < self.min_tokens:
            return f"{len(ids)} tokens", f"at least {self.min_tokens} tokens, as LoadGen's metrics need"
        kept = np.flatnonzero(np.isin(ids, self.stop_token_ids))
        if len(kept):
            return f"the stop token {ids[kept[0]]} inside the answer", "an answer that ends before its stop token"
        text = vocab.decode(ids)
        if isinstance(text, vocab.BadIds) or not has_final_part(text):
            return "no final channel in the answer", "the header of the final channel, out of which answers are graded"
        return None
