from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

import pytest

from harness.benchmarks.gpt_oss_120b.judge import Ending, Limits, Sandbox, Trial
from harness.benchmarks.gpt_oss_120b.judge.problems import Problem, Test
from harness.benchmarks.gpt_oss_120b.judge.sandbox import Cell
from harness.benchmarks.gpt_oss_120b.judge.trial import try_solution

DOUBLE = Problem("double", None, (Test("3\n", "6\n"), Test("5\n", "10\n")))
LIMITS = Limits(test_s=30, memory_bytes=1 << 30, folder_bytes=1 << 20)

Try: TypeAlias = Callable[..., Trial]


def try_in(sandbox: Sandbox, code: str, problem: Problem = DOUBLE, limits: Limits = LIMITS) -> Trial:
    return try_solution(code, problem, limits, Cell(sandbox), threading.Event())


@pytest.fixture(scope="session")
def namespaces() -> None:
    """Skips where this kernel does not let an ordinary process shut itself in."""
    trial = try_in("namespaces", "print(2 * int(input()))")
    if trial.ending is Ending.NOT_JUDGED:
        pytest.skip(f"no namespaces on this machine: {trial.detail}")


@pytest.fixture
def confined(namespaces: None) -> Try:
    """Tries a solution in namespaces."""
    return lambda code, problem=DOUBLE, limits=LIMITS: try_in("namespaces", code, problem, limits)


@pytest.fixture
def free() -> Try:
    """Tries a solution without namespaces."""
    return lambda code, problem=DOUBLE, limits=LIMITS: try_in("none", code, problem, limits)
