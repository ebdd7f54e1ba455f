from __future__ import annotations

import pytest

from harness import benchmarks
from harness.errors import UnknownName
from harness.rules import load


def test_every_name_gives_the_benchmark_of_that_name() -> None:
    assert "gpt-oss-120b" in benchmarks.names()
    for name in benchmarks.names():
        assert benchmarks.get(name, load("v6.1")).name == name


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match=r"(?s)'gpt-oss-20b'.*did you mean 'gpt-oss-120b'") as caught:
        benchmarks.get("gpt-oss-20b", load("v6.1"))
    assert caught.value.exit_code == 2


def test_a_benchmark_that_the_round_has_not() -> None:
    rules = load("v6.1")
    other = rules.model_copy(update={"benchmarks": {"another": rules.benchmarks["gpt-oss-120b"]}})
    with pytest.raises(UnknownName, match="one of another"):
        benchmarks.get("gpt-oss-120b", other)
