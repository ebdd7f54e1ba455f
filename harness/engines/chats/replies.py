"""Answers to chats: the text of their ids, as :class:`~harness.engines.base.Replies` have it."""

from __future__ import annotations

import numpy as np
import orjson

from harness.engines.base import Answers, Replies
from harness.engines.chats.qwen3_vocab import decode


def as_replies(answers: Answers) -> Replies:
    """The same answers as text; a stop token was never part of them, and is not counted."""
    data, ends, counts, start = bytearray(), [], [], 0
    ids = np.asarray(answers.tokens).tolist()
    for end in answers.ends:
        data += orjson.dumps({"content": decode(ids[start:end])})
        ends.append(len(data))
        counts.append(end - start)
        start = end
    return Replies(answers.numbers, data, ends, counts, answers.first_ns, answers.done_ns, answers.finish)
