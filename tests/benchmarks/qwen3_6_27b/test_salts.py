from __future__ import annotations

import re

import pytest

from harness.benchmarks.qwen3_6_27b.salts import Salts, session_id
from harness.errors import ConfigError
from tests.benchmarks.qwen3_6_27b.made import demo, one, user

LINE = re.compile(r"\[salt: ([0-9a-f]+)\]\n\nYou drive a shell\.\n\n\[salt: ([0-9a-f]+)\]")


def salts(run: int | None, repeat: int, name: str = "demo-1") -> tuple[str, str]:
    found = LINE.fullmatch(Salts(run).salted(one(demo(name)), repeat))
    assert found
    return found[1], found[2]


def test_the_client_s_own_salts() -> None:
    assert salts(None, 1)[0] == "4461"
    assert salts(None, 2)[0] == "ba75"
    assert len(salts(None, 1)[1]) == 4
    assert salts(None, 1)[1] == salts(None, 2)[1] != salts(None, 1, "demo-2")[1]


def test_a_run_s_salts_are_another_run_s_with_another_seed() -> None:
    assert salts(7, 1) == salts(7, 1)
    first, second = salts(7, 1), salts(8, 1)
    assert {len(salt) for salt in (*first, *second)} == {16}
    assert not set(first) & set(second)
    assert salts(7, 2)[0] != first[0]
    assert salts(7, 2)[1] == first[1]
    assert salts(-(10**100), 1) != salts(10**100, 1)
    assert salts(7, 1, "demo-2")[1] != first[1]


def test_a_trajectory_without_a_system_prompt() -> None:
    with pytest.raises(ConfigError, match="cannot be salted") as caught:
        Salts().salted(one([user()]), 1)
    assert caught.value.where == "conversation 'demo-1'"


def test_the_session_of_a_repeat() -> None:
    found = one(demo())
    assert [session_id(found, repeat) for repeat in (1, 2, 50)] == ["demo-1", "demo-1__repeat_2", "demo-1__repeat_50"]
