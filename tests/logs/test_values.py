from __future__ import annotations

import datetime
import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.logs.values import MAX_DEPTH, nests_deeper, parse_json, shown

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=150, deadline=None)
@given(value=VALUES, before=st.text(" \t\r\n\u00a0x", max_size=2), behind=st.text(" \t\r\n\u00a0,]", max_size=2))
@example(value=1, before="", behind=" 2")
@example(value=None, before="\ufeff", behind="")
def test_texts_are_read_as_the_official_checkers_reader_does(value, before, behind):
    text = before + json.dumps(value, ensure_ascii=False) + behind
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ValueError, match=r"."):
            parse_json(text)
    else:
        assert repr(parse_json(text)) == repr(expected)


def nested(levels: int, inner: object) -> object:
    for level in range(levels):
        inner = [inner] if level % 2 else {"a": inner}
    return inner


@pytest.mark.parametrize("inner", [1, "[[[["])
def test_nesting_is_bounded(inner):
    assert not nests_deeper(nested(MAX_DEPTH, inner), MAX_DEPTH)
    assert nests_deeper(nested(MAX_DEPTH + 1, inner), MAX_DEPTH)
    assert parse_json(json.dumps(nested(MAX_DEPTH, inner))) == nested(MAX_DEPTH, inner)
    with pytest.raises(ValueError, match="deeper than"):
        parse_json(json.dumps(nested(MAX_DEPTH + 1, inner)))
    with pytest.raises(ValueError, match="without end"):
        parse_json("[" * 200_000)


def test_many_brackets_side_by_side_are_no_nesting():
    assert len(parse_json("[" + "[]," * 500 + "{}]")) == 501


@pytest.mark.parametrize("text", ['"\\ud800"', '{"\\udfff": 1}', '["a\\uDC00"]'])
def test_halves_of_characters_are_refused(text):
    with pytest.raises(ValueError, match="half of a character"):
        parse_json(text)
    assert parse_json('"\\ud83d\\ude00\\u00e9"') == "\U0001f600é"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (float("nan"), "NaN"),
        ("x" * 100, '"' + "x" * 79 + "…"),
        (list(range(10**6)), "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 2…"),
        (10**100, "1" + "0" * 79 + "…"),
        (datetime.date(2024, 1, 2), "datetime.date(2024, 1, 2)"),
        ({(1, 2): b"x"}, "{(1, 2): b'x'}"),
    ],
)
def test_values_are_shown_shortly(value, text):
    assert shown(value).startswith(text)
    assert len(shown(value)) <= 81
    assert len(shown({str(i): i for i in range(1000)}, 40)) == 41
