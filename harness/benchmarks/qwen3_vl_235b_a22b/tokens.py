"""How many tokens a chat's prompt has: its text in Qwen3's vocabulary, and what its picture takes in between."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from harness.engines.chats import qwen3_vl, qwen3_vocab
from harness.engines.chats.problems import BadChat
from harness.errors import DatasetError


def count(body: Mapping[str, Any] | bytes, where: object = None) -> int:
    """Prompt tokens of a chat, exact for the published checkpoint's tokenizer, template and picture processor.

    Raises DatasetError for a chat that the model cannot be asked, such as one whose picture cannot be read;
    MissingError where the vocabulary or Pillow is not to be had.
    """
    try:
        return len(qwen3_vl.prompt_ids(body))
    except BadChat as error:
        raise DatasetError(
            f"the row makes no chat that the model can be asked ({error.kind}): {error}",
            where=where,
            expected="a picture that Pillow opens, and text",
            mend="fetch the data set again",
        ) from error


def encode(text: str) -> list[int]:
    """Token ids of a text; what spells a special token becomes that token. Raises MissingError."""
    return qwen3_vocab.encode(text)
