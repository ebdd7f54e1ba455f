from __future__ import annotations

import pytest

from harness.benchmarks.shares import right_rows
from harness.errors import ConfigError, UnknownName

SUBSETS = ("a", "b") * 10


def test_of_each_subset_its_share() -> None:
    right = right_rows(SUBSETS, {"a": 0.3, "b": 1.0}, seed=1)
    assert sum(SUBSETS[row] == "a" for row in right) == 3
    assert {row for row in right if SUBSETS[row] == "b"} == set(range(1, 20, 2))
    assert (
        right == right_rows(SUBSETS, {"b": 1.0, "a": 0.3}, seed=1) != right_rows(SUBSETS, {"a": 0.3, "b": 1.0}, seed=2)
    )


def test_a_subset_that_is_not_there() -> None:
    with pytest.raises(UnknownName, match="'c'"):
        right_rows(SUBSETS, {"c": 0.5}, seed=0)


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_what_is_no_share(share: float) -> None:
    with pytest.raises(ConfigError, match="not a share"):
        right_rows(SUBSETS, {"a": share}, seed=0)
