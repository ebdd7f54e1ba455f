"""Answers to chats: what the text of their ids says, as :class:`~harness.engines.base.Replies` have it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import orjson

from harness.engines.base import Answers, Finish, Replies
from harness.engines.chats.qwen3_vocab import decode
from harness.engines.chats.tool_answers import Said, said


def as_replies(answers: Answers, prompt_tokens: Sequence[int], cached_tokens: Sequence[int]) -> Replies:
    """The same answers as text; a stop token was never part of them, and is not counted."""
    return _replies(answers, [{"content": text} for text in _texts(answers)], prompt_tokens, cached_tokens)


def as_replies_with_calls(answers: Answers, prompt_tokens: Sequence[int], cached_tokens: Sequence[int]) -> Replies:
    """As :func:`as_replies`, with reasoning and calls of tools told apart; one that ends with calls ends by them."""
    replies = [said(text) for text in _texts(answers)]
    answers.finish = [
        int(Finish.TOOL_CALLS) if "tool_calls" in reply and finish == Finish.STOP else finish
        for reply, finish in zip(replies, answers.finish, strict=True)
    ]
    return _replies(answers, replies, prompt_tokens, cached_tokens)


def _texts(answers: Answers) -> list[str]:
    ids = np.asarray(answers.tokens).tolist()
    return [decode(ids[start:end]) for start, end in zip((0, *answers.ends), answers.ends, strict=False)]


def _replies(
    answers: Answers, replies: Sequence[Said], prompt_tokens: Sequence[int], cached_tokens: Sequence[int]
) -> Replies:
    encoded = [orjson.dumps(reply) for reply in replies]
    return Replies(
        answers.numbers,
        b"".join(encoded),
        np.cumsum([len(each) for each in encoded]).tolist(),
        np.diff([0, *answers.ends]).tolist(),
        answers.first_ns,
        answers.done_ns,
        answers.finish,
        prompt_tokens,
        cached_tokens,
    )
