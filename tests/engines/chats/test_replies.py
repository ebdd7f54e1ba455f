from __future__ import annotations

import json

import numpy as np
import pytest

from harness.engines.base import Answers, Finish
from harness.engines.chats.qwen3_vocab import END_OF_TURN, encode
from harness.engines.chats.replies import as_replies, as_replies_with_calls

pytestmark = pytest.mark.qwen3vl


def test_each_answer_becomes_its_text() -> None:
    texts = ['{"brand": "\u00c9\u00e9"}', "", "\u4e2d\u6587 \U0001f600\n"]
    ids = [encode(text) for text in texts]
    ids[0].append(END_OF_TURN)
    ends = np.cumsum([len(each) for each in ids]).tolist()
    flat = np.array([each for answer in ids for each in answer], np.int32)
    answers = Answers([7, 8, 9], flat, ends, [1, 2, 3], [4, 5, 6], [Finish.STOP] * 2 + [Finish.LENGTH])
    replies = as_replies(answers, [40, 50, 60], [0, 30, 59])
    starts = [0, *replies.ends[:-1]]
    said = [json.loads(bytes(replies.data[start:end])) for start, end in zip(starts, replies.ends, strict=True)]
    assert said == [{"content": text} for text in texts]
    assert replies.tokens == [len(each) for each in ids]
    assert (replies.numbers, replies.first_ns, replies.done_ns) == ([7, 8, 9], [1, 2, 3], [4, 5, 6])
    assert replies.finish == [Finish.STOP, Finish.STOP, Finish.LENGTH]
    assert (replies.prompt_tokens, replies.cached_tokens) == ([40, 50, 60], [0, 30, 59])


def test_calls_are_told_apart_and_end_an_answer() -> None:
    texts = ['<think>Look.</think><tool_call>{"name": "ls", "arguments": {"at": "/"}}</tool_call>', "<tool_call>no"]
    ids = [encode(text) for text in (*texts, texts[0])]
    ends = np.cumsum([len(each) for each in ids]).tolist()
    flat = np.array([each for answer in ids for each in answer], np.int32)
    answers = Answers([0, 1, 2], flat, ends, [1] * 3, [2] * 3, [Finish.STOP, Finish.STOP, Finish.LENGTH])
    replies = as_replies_with_calls(answers, [1] * 3, [0] * 3)
    starts = [0, *replies.ends[:-1]]
    said = [json.loads(bytes(replies.data[start:end])) for start, end in zip(starts, replies.ends, strict=True)]
    call = {"id": "call_0", "type": "function", "function": {"name": "ls", "arguments": '{"at":"/"}'}}
    assert said[0] == said[2] == {"content": "", "reasoning": "Look.", "tool_calls": [call]}
    assert said[1] == {"content": "<tool_call>no"}
    assert replies.finish == [Finish.TOOL_CALLS, Finish.STOP, Finish.LENGTH]
    assert replies.tokens == [len(each) for each in ids]
