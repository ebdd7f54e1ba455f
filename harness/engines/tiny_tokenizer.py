"""The files of Qwen3's tokenizer beside a stand-in's weights, so that any server can read its prompts."""

from __future__ import annotations

import functools
from pathlib import Path

from harness.engines.chats import qwen3_vocab
from harness.engines.chats.byte_pairs import BytePairs


def save_qwen3_tokenizer(folder: Path, template: str) -> None:
    """``tokenizer.json`` and what goes with it, from the ranks, with a chat template; transformers writes them."""
    from transformers import AddedToken, Qwen2Tokenizer

    known = qwen3_vocab.vocabulary()
    tokenizer = Qwen2Tokenizer(
        vocab={qwen3_vocab.spelled(token): rank for token, rank in known.ranks.items()},
        merges=_merges(),
        unk_token=None,
        eos_token=None,
        pad_token=None,
    )
    for text, rank in sorted(known.added.items(), key=lambda each: each[1]):
        special = rank not in qwen3_vocab.NOT_SPECIAL
        tokenizer.add_tokens([AddedToken(text, special=special, normalized=False)], special_tokens=special)
        if tokenizer.convert_tokens_to_ids(text) != rank:
            raise AssertionError(f"{text} is not {rank}")
    tokenizer.eos_token, tokenizer.pad_token = "<|im_end|>", "<|endoftext|>"
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)


@functools.cache
def _merges() -> list[tuple[str, str]]:
    """Worked out once a process; that takes longer than all else about a stand-in."""
    pairs = BytePairs(qwen3_vocab.vocabulary().ranks).merges()
    return [(qwen3_vocab.spelled(left), qwen3_vocab.spelled(right)) for left, right in pairs]
