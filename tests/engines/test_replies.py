from __future__ import annotations

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.base import Replies
from harness.engines.replies import contents, wholes
from harness.errors import RunBroke


def of(*data: bytes) -> Replies:
    n = len(data)
    ends = np.cumsum([len(each) for each in data]).tolist()
    return Replies(range(n), b"".join(data), ends, [1] * n, [1] * n, [1] * n, [0] * n)


@given(st.lists(st.text(), max_size=9))
def test_contents_are_what_was_said(texts: list[str]) -> None:
    said = [orjson.dumps({"reasoning": "so", "content": text, "tool_calls": []}) for text in texts]
    assert [content.decode() for content in contents(of(*said))] == texts


@pytest.mark.parametrize("data", [b"null", b"{}", b'{"content": {}}', b'{"content": ["a"]}', b'{"content": "\\ud800"}'])
def test_what_is_no_reply_is_told_with_its_request(data: bytes) -> None:
    for read in (contents, wholes):
        with pytest.raises(RunBroke, match="reply to request 1 is none"):
            read(of(b'{"content": ""}', data))


SAYS = [{"content": "x"}, {"content": "", "reasoning": "so"}, {"content": "", "tool_calls": [{"id": "a"}]}]
SAYS_NOTHING = [{"content": ""}, {"content": "", "reasoning": "", "tool_calls": []}]


def test_whole_replies_are_told_as_they_are_unless_they_say_nothing() -> None:
    said = [orjson.dumps(each) for each in (*SAYS, *SAYS_NOTHING)]
    assert wholes(of(*said)) == [*said[:3], b"", b""]
    assert wholes(of()) == []
