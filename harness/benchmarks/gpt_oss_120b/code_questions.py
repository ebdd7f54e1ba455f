"""Programming problems of our own in LiveCodeBench's form, with tests and right solutions, for the stand-in data set.

A problem's id says what it asks (``standin_<number>_<task>_<k>_<m>``), so that its solution can be written down from
the id alone. The functions below that begin with ``solve`` are both what tests are made with and, as text, what
solutions are made of.
"""

from __future__ import annotations

import inspect
import itertools
import json
import random
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from harness.benchmarks.gpt_oss_120b.judge.tests_file import packed
from harness.benchmarks.gpt_oss_120b.questions import Question

FUNCTION = "answer"
"""Name of the function that every second problem asks for; the others ask for a program."""
PUBLIC_TESTS, PRIVATE_TESTS = 2, 4

_ID = re.compile(r"standin_(\d+)_([a-z]+)_(\d+)_(\d+)")


def solve_multiples(k: int, m: int, n: int) -> int:  # noqa: D103 - becomes the text of a solution
    return sum(range(k, n + 1, k)) % m


def solve_words(k: int, m: int, line: str) -> list[str]:  # noqa: D103
    return [word for word in line.split() if len(word) > k % 7][::-1]


def solve_pairs(k: int, m: int, numbers: list[int]) -> int:  # noqa: D103
    found = sum((a + b) % k == 0 for i, a in enumerate(numbers) for b in numbers[:i])
    return found % m


def solve_digits(k: int, m: int, n: int) -> int:  # noqa: D103
    return sum(sum(map(int, str(value))) == k for value in range(n + 1))


def solve_window(k: int, m: int, numbers: list[int]) -> int:  # noqa: D103
    width = k % 5 + 1
    sums = [sum(numbers[i : i + width]) for i in range(len(numbers) - width + 1)]
    return max(sums, default=-1) + m


def solve_run(k: int, m: int, numbers: list[int]) -> int:  # noqa: D103
    best = length = 1
    for before, after in itertools.pairwise(numbers):
        length = length + 1 if abs(after - before) <= k else 1
        best = max(best, length)
    return best


@dataclass(frozen=True, slots=True)
class _Task:
    """What is asked, how it is solved, and what it is given: an integer, a line of words, or integers."""

    text: str
    solve: Callable[..., Any]
    kind: str


_TASKS = {
    "multiples": _Task(
        "Given an integer n, find the sum of all multiples of {k} not above n, modulo {m}.", solve_multiples, "integer"
    ),
    "words": _Task(
        "Given a line of words, list those longer than {k} % 7 letters in reverse order ({m} of them at most).",
        solve_words,
        "words",
    ),
    "pairs": _Task(
        "Given n and then n integers, count the pairs with a sum divisible by {k}, modulo {m}.", solve_pairs, "integers"
    ),
    "digits": _Task(
        "Given an integer n, count the integers from 0 to n with the digit sum {k}; it is below {m}00.",
        solve_digits,
        "integer",
    ),
    "window": _Task(
        "Given n and then n integers, find the largest sum of {k} % 5 + 1 neighbours, or -1 if there are fewer, "
        "plus {m}.",
        solve_window,
        "integers",
    ),
    "run": _Task(
        "Given n and then n integers, find the longest run in which neighbours differ by at most {k} (n <= {m}).",
        solve_run,
        "integers",
    ),
}
_HOW = {
    None: "Read from standard input and write to standard output, one value a line. "
    "Answer with one Python program in a fenced code block.",
    FUNCTION: f"Write a method {FUNCTION}(self, given) of a class Solution that returns it (n is not given). "
    "Answer with the class in one fenced Python code block.",
}
_READ = {
    "integer": "given = int(input())",
    "words": "given = input()",
    "integers": "input()\ngiven = list(map(int, input().split()))",
}


def code_question(seed: int, i: int) -> Question:
    """As LiveCodeBench asks; the truth is the problem's id."""
    name, k, m = _drawn(seed, i)
    text = f"Task {i + 1}. {_TASKS[name].text.format(k=k, m=m)}\n{_HOW[_function(i)]}"
    return Question(text, f"standin_{i + 1}_{name}_{k}_{m}")


def problem_row(seed: int, i: int) -> dict[str, str]:
    """The problem of question i with its tests, as a row of LiveCodeBench's data set (those fields that are read)."""
    name, k, m = _drawn(seed, i)
    task, function = _TASKS[name], _function(i)
    question = code_question(seed, i)
    rng = _rng(seed, "tests", i)
    tests = []
    for _ in range(PUBLIC_TESTS + PRIVATE_TESTS):
        given = _given(task.kind, rng, m)
        tests.append(_test(given, task.solve(k, m, given), function))
    return {
        "question_id": question.truth,
        "question_content": question.text,
        "public_test_cases": json.dumps(tests[:PUBLIC_TESTS]),
        "private_test_cases": packed(json.dumps(tests[PUBLIC_TESTS:])),
        "metadata": json.dumps({} if function is None else {"func_name": function}),
    }


def solution(problem: str) -> str | None:
    """A right solution of a problem by its id; None where the id is none of ours."""
    found = _ID.fullmatch(problem)
    if found is None or found[2] not in _TASKS:
        return None
    number, name, k, m = int(found[1]), found[2], int(found[3]), int(found[4])
    task = _TASKS[name]
    lines = inspect.getsource(task.solve).replace("  # noqa: D103", "").replace(" - becomes the text of a solution", "")
    call = f"{task.solve.__name__}({k}, {m}, given)"
    if _function(number - 1) is not None:
        return f"{lines}\n\nclass Solution:\n    def {FUNCTION}(self, given):\n        return {call}"
    shown = f'print("\\n".join({call}))' if task.kind == "words" else f"print({call})"
    return f"{lines}\n\n{_READ[task.kind]}\n{shown}"


def wrong_solution(problem: str) -> str:
    """One that runs and is wrong, whatever is asked."""
    found = _ID.fullmatch(problem)
    if found is not None and _function(int(found[1]) - 1) is not None:
        return f"class Solution:\n    def {FUNCTION}(self, given):\n        return None"
    return 'print("no answer")'


def _drawn(seed: int, i: int) -> tuple[str, int, int]:
    rng = _rng(seed, "code", i)
    return rng.choice(list(_TASKS)), rng.randrange(2, 20), rng.randrange(40, 900)


def _function(i: int) -> str | None:
    return FUNCTION if i % 2 else None


def _given(kind: str, rng: random.Random, most: int) -> Any:  # noqa: ANN401 - what a task takes
    if kind == "integer":
        return rng.randrange(1, most * 10)
    if kind == "words":
        return " ".join("".join(rng.choices("aeinorst", k=rng.randrange(1, 12))) for _ in range(rng.randrange(1, 15)))
    return [rng.randrange(100) for _ in range(rng.randrange(1, 30))]


def _test(given: Any, answer: Any, function: str | None) -> dict[str, str]:  # noqa: ANN401 - what a task takes and gives
    if function is not None:
        return {"input": json.dumps(given), "output": json.dumps(answer), "testtype": "functional"}
    lines = [str(len(given)), " ".join(map(str, given))] if isinstance(given, list) else [str(given)]
    printed = "\n".join(answer) if isinstance(answer, list) else str(answer)
    return {"input": "\n".join(lines) + "\n", "output": printed + "\n", "testtype": "stdin"}


def _rng(seed: int, kind: str, i: int) -> random.Random:
    return random.Random(f"{seed}/{kind}/{i}")  # noqa: S311 - questions, not secrets
