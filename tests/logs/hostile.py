"""What nobody expects in a file, and all that a reader can be asked of it: a value or a LogError, nothing else."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable

from hypothesis import strategies as st

from harness.logs import LogError
from harness.logs.values import TypedValues

ODD_VALUES = st.sampled_from(
    [
        str(10**400), "9" * 5000, str(-(2**63)), str(2**64), "NaN", "Infinity", "-Infinity", "1e999", "-1", "0", "1.5",
        "true", "null", '""', '"\\ud800"', '"0"', '"\\u0000"', "[]", "[[]]", "{}", '{"": {}}', "[" * 63 + "]" * 63,
        "[" * 5000 + "]" * 5000, "[" * 200_000, "", ",", '"x', "é",
    ]
)  # fmt: skip
"""JSON texts, and some that are none."""


def ask_everything(values: TypedValues, keys: Iterable[str]) -> None:
    """Asks every key in every way, and every property; whatever comes back can be computed with and written."""
    for key in keys:
        for ask in (values.number, values.integer, values.flag, values.text):
            with contextlib.suppress(LogError):
                assert_usable(ask(key))
        str(values.value(key)).encode("utf-8")
    for name in dir(type(values)):
        if isinstance(getattr(type(values), name), property):
            with contextlib.suppress(LogError):
                assert_usable(getattr(values, name))


def assert_usable(value: object) -> None:
    if isinstance(value, int | float):
        assert math.isfinite(float(value))
    str(value).encode("utf-8")
