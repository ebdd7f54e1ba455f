"""Chats to warm an engine up with: products of our own with pictures of ours, as long as the data set's."""

from __future__ import annotations

import functools
import io
import random
from typing import Any, Final

from harness.benchmarks.base import Chats, Dataset
from harness.benchmarks.qwen3_vl_235b_a22b import images, pictures, tokens
from harness.benchmarks.qwen3_vl_235b_a22b.products import product
from harness.benchmarks.qwen3_vl_235b_a22b.prompts import Version, messages
from harness.engines.chats.qwen3_vl import image_tokens

_MARK: Final = "Warm-up"
"""Begins every title, followed by a number: no product of a catalogue is called that."""
_SIDES: Final = (128, 256, 384, 512, 768, 1024, 1280)
"""Pictures' sides in pixels; few, so that few are made."""
_PICTURE_SHARE: Final = 0.6
"""How much of what a prompt is longer than its shortest may be its picture."""
_FILLER: Final = " The parts are listed in the manual, and every one of them can be had as a spare."


def warmup_chats(n: int, *, like: Dataset, seed: int, version: Version) -> Chats:
    """n chats, their lengths drawn from those of ``like`` as far as its chats are made; none is a row of it.

    Raises MissingError without Pillow or the tokenizer.
    """
    rng = random.Random(f"{seed}/warm-up")  # noqa: S311 - filler, not a secret
    lengths = [int(length) for length in rng.choices(like.prompt_tokens, k=n)] if like.rows else [0] * n
    return Chats(tuple(_chat(rng, number, length, version) for number, length in enumerate(lengths)))


def _chat(rng: random.Random, number: int, length: int, version: Version) -> dict[str, Any]:
    made = product(rng, number)
    title = f"{_MARK} {number + 1}: {made.title}"

    def body(side: int, more: int) -> dict[str, Any]:
        description = made.description + _FILLER * more
        return {"messages": messages(title, description, made.categories, _picture(made.picture, side), version)}

    smallest = _SIDES[0]
    room = _PICTURE_SHARE * (length - tokens.count(body(smallest, 0))) + image_tokens(smallest, smallest)
    side = max([each for each in _SIDES if image_tokens(each, each) <= room], default=smallest)
    lacking = length - tokens.count(body(side, 0))
    return body(side, max(0, round(lacking / _filler_tokens())))


@functools.cache
def _filler_tokens() -> int:
    return len(tokens.encode(_FILLER))


@functools.cache
def _picture(name: str, side: int) -> str:
    """A picture of ours as a square JPEG. It is ours to resize: only the data set's must stay as they are."""
    image = images.opened(pictures.load(name), name).convert("RGBA").convert("RGB").resize((side, side))
    buffer = io.BytesIO()
    image.save(buffer, format="JPEG")
    return images.data_url(buffer.getvalue(), name)
