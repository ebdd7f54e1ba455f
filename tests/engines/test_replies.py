from __future__ import annotations

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.base import Replies
from harness.engines.replies import contents
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
    with pytest.raises(RunBroke, match="reply to request 1 is none"):
        contents(of(b'{"content": ""}', data))
