"""What an engine is asked before a leg: whether it answers in the form that is scored, and sees the pictures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from harness.benchmarks.base import CanaryFinding, Chats
from harness.benchmarks.qwen3_vl_235b_a22b import images, pictures
from harness.benchmarks.qwen3_vl_235b_a22b.answers import Parsed, parse
from harness.benchmarks.qwen3_vl_235b_a22b.prompts import FIELDS, Version, messages

SHOWN: Final = {
    "coffee.jpg": "Home & Garden > Kitchen & Dining > Tableware > Coffee Cups",
    "cat.webp": "Animals & Pet Supplies > Live Animals > Cats",
    "key.png": "Hardware > Locks & Keys > Keys",
}
"""The pictures, each in a format of its own, and what is in them."""
ENOUGH: Final = 2
"""Pictures to recognise: who sees none gives one answer to all, which is right once. Answers are sampled."""
STAND_IN_TOKENS: Final = 16
"""Tokens of each answer of a checkpoint that never ends one."""

_TITLE: Final = "One item"
_DESCRIPTION: Final = "The item is the one in the picture."
_SAID: Final = 100


@dataclass(frozen=True, slots=True, eq=False)
class CategoryCanary:
    """The same few words with several pictures. Satisfies :class:`harness.benchmarks.base.Canary`.

    A trained model must keep to the answers' schema, and tell the pictures apart: a server that drops an image part
    answers as well-formed as one that shows it to the model. Of random weights only text is expected.
    """

    prompts: Chats
    trained: bool
    max_new_tokens: int
    name: str = "product pictures"

    @classmethod
    def make(cls, *, trained: bool, version: Version, max_new_tokens: int) -> CategoryCanary:
        """Words the chats; ``max_new_tokens`` is the legs' cap. Raises MissingError where Pillow is not to be had."""
        bodies = tuple(
            {"messages": messages(_TITLE, _DESCRIPTION, sorted(SHOWN.values()), images.data_url(picture), version)}
            for picture in map(pictures.load, SHOWN)
        )
        return cls(Chats(bodies), trained, max_new_tokens if trained else min(STAND_IN_TOKENS, max_new_tokens))

    def check(self, answers: Sequence[bytes]) -> list[CanaryFinding]:
        """What is wrong with the answers, in order of the prompts."""
        if len(answers) != len(self.prompts):
            return [CanaryFinding(f"{len(answers)} answers to {len(self.prompts)} prompts", "one a prompt")]
        read = [_read(data) if self.trained else _text(data) for data in answers]
        findings = [
            CanaryFinding(f"answer {i} of {len(answers)}: {found.what}", found.expected)
            for i, found in enumerate(read, start=1)
            if isinstance(found, CanaryFinding)
        ]
        if findings or not self.trained:
            return findings
        said = [found.category for found in read if isinstance(found, Parsed)]
        seen = sum(category == shown for category, shown in zip(said, SHOWN.values(), strict=True))
        if seen >= ENOUGH:
            return []
        what = f"{seen} of {len(said)} pictures were recognised, as {', '.join(map(repr, said))}"
        return [CanaryFinding(what, f"at least {ENOUGH}: the engine must show each picture to the model")]


def _text(data: bytes) -> str | CanaryFinding:
    """Answers are written as they were said: an empty one, or one that is no text, was lost on the way."""
    try:
        return data.decode("utf-8") or CanaryFinding("no content", "text")
    except UnicodeDecodeError:
        return CanaryFinding(f"no UTF-8: {data[:_SAID]!r}", "text")


def _read(data: bytes) -> Parsed | CanaryFinding:
    text = _text(data)
    if isinstance(text, CanaryFinding):
        return text
    expected = f"a JSON object of {', '.join(FIELDS)} and nothing around it, else the answer is scored as wrong"
    return parse(text) or CanaryFinding(f"not in the form that is scored: {text[:_SAID]!a}", expected)
