from __future__ import annotations

import decimal
import fractions
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.benchmarks.gpt_oss_120b.judge.inside.solve import encoded
from harness.benchmarks.gpt_oss_120b.judge.problems import Problem, Test, decoded, same_text

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


def through(value: object) -> Any:
    """As a solution's value comes to the judge."""
    return decoded(json.loads(json.dumps(encoded(value))))


@settings(max_examples=50, deadline=None)
@given(JSON)
def test_a_json_value_comes_back_equal(value: object) -> None:
    assert through(value) == value


@settings(max_examples=50, deadline=None)
@given(JSON, JSON)
def test_values_are_equal_outside_where_they_are_inside(one: object, other: object) -> None:
    assert (through(one) == other) is (one == other)


class AlwaysEqual:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]  # equality without a hash is the point


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (True, 1),
        (1.0, 1),
        pytest.param(10**6000, 10**6000, id="more digits than Python converts"),
        (float("inf"), float("inf")),
        (decimal.Decimal("0.5"), 0.5),
        (fractions.Fraction(1, 2), 0.5),
        (np.int64(7), 7),
        (np.float64(0.25), 0.25),
        (np.bool_(True), True),
        ([np.int32(1)], [1]),
    ],
)
def test_what_is_equal_to_an_expected_value(value: object, expected: object) -> None:
    assert through(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([(1, 2)], [[1, 2]]),
        ({1, 2}, [1, 2]),
        ({1: 2}, {"1": 2}),
        (AlwaysEqual(), 3),
        (AlwaysEqual(), None),
        (b"a", "a"),
        (range(2), [0, 1]),
        (float("nan"), float("nan")),
        ("1", 1),
        (np.array([1, 2]), [1, 2]),
    ],
)
def test_what_is_equal_to_no_expected_value(value: object, expected: object) -> None:
    assert through(value) != expected


@pytest.mark.parametrize(
    "reply",
    [{}, {"int": "zz"}, {"Fraction": "1/0"}, {"Decimal": "x"}, {"int": 1, "float": 1}, {"dict": 3}, {"odd": []}],
)
def test_what_no_runner_wrote_is_equal_to_nothing(reply: object) -> None:
    assert decoded(reply) not in (None, 0, 1, [], {}, "", reply)


@pytest.mark.parametrize(
    ("printed", "expected", "same"),
    [
        ("3\n", "3", True),
        ("  1 2 \n3", "1 2\n 3 \n\n", True),
        ("1  2", "1 2", True),
        ("1.0 2e0", "1 2", True),
        ("0.3000", "0.3", True),
        ("0.30000000000000004", "0.3", False),
        ("50000000000000000", "50000000000000001", False),
        ("a  b", "a b", False),
        ("yes", "Yes", False),
        ("3\n\n4", "3\n4", False),
        ("", "", True),
        ("", "0", False),
        ("NaN", "nan", False),
        ("sNaN", "1", False),
        ("1 2", "1 2 3", False),
        ("1\r\n2", "1\n2", True),
    ],
)
def test_lines_are_compared_as_livecodebench_does(printed: str, expected: str, same: bool) -> None:
    assert same_text(printed, expected) is same


def test_a_problem_has_tests_and_a_function_json() -> None:
    with pytest.raises(ValueError, match="no tests"):
        Problem("p", None, ())
    with pytest.raises(ValueError, match="Expecting value"):
        Problem("p", "f", (Test("1", "not JSON"),))


def test_an_expected_number_may_have_more_digits_than_python_converts() -> None:
    test = Test("1", "[" + "9" * 6000 + "]")
    problem = Problem("p", "f", (test,))
    assert problem.accepts(test, {"value": [{"int": hex(10**6000 - 1)}]})
    assert not problem.accepts(test, {"value": [{"int": hex(10**6000)}]})
