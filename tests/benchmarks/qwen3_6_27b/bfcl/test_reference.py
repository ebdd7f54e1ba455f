"""Verdict for verdict with the mlcommons client, where ENDPOINTS_BIN names it and there is a bfcl-eval.

With ``-s`` the counts are printed.
"""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks.qwen3_6_27b.bfcl import table
from harness.benchmarks.qwen3_6_27b.bfcl.answers import read_answer
from harness.benchmarks.qwen3_6_27b.bfcl.environment import Environment
from harness.benchmarks.qwen3_6_27b.bfcl.grading import grade
from harness.benchmarks.qwen3_6_27b.bfcl.table import Row
from harness.env import BFCL_PYTHON, ENDPOINTS_BIN, bfcl_python
from tests.benchmarks.qwen3_6_27b.bfcl.made import RULES
from tests.benchmarks.qwen3_6_27b.bfcl.test_real import first_accepted

CLIENT = ENDPOINTS_BIN.path()
PROGRAM = Path(__file__).with_name("reference_program.py")
pytestmark = pytest.mark.skipif(
    CLIENT is None or not bfcl_python().is_file(), reason=f"{ENDPOINTS_BIN.name} and {BFCL_PYTHON.name} are both wanted"
)

BAD_ARGUMENTS: list[Any] = ["", "{broken", "[1]", "null", "3", '"x"', {}, None, [1], '{"a": NaN}', '"{}"']
ALPHABET = [*"fg(),='\"\\ab1:{}[]. \n*", "f(", "print(", "a=", "None", "'x'", "[1]", "b'x'", "(x, y)", "f(a: int)"]


def call(name: object, arguments: object) -> dict[str, Any]:
    return {"function": {"name": name, "arguments": arguments}}


def calls_of(row: Row) -> list[dict[str, Any]]:
    return first_accepted(row) or [call(row.tools[0]["function"]["name"], '{"a": 1}')]


def replies(row: Row, rng: random.Random) -> Iterator[dict[str, Any]]:
    """Right ones, wrong ones, odd ones."""
    calls = calls_of(row)
    pairs = [(each["function"]["name"], json.loads(each["function"]["arguments"])) for each in calls]
    written = [f"{name}({', '.join(f'{key}={value!r}' for key, value in said.items())})" for name, said in pairs]
    yield {"tool_calls": calls}
    yield {"content": "So.", "tool_calls": calls[::-1]}
    yield {"tool_calls": [*calls, calls[0]]}
    yield {"content": "None of them.", "tool_calls": calls[:-1]}
    yield {"tool_calls": [call(pairs[0][0], rng.choice(BAD_ARGUMENTS)), *calls[1:]]}
    yield {"tool_calls": [call(rng.choice([None, "f", 3, pairs[0][0].replace("_", ".")]), "{}"), *calls[1:]]}
    yield {"tool_calls": [call(name, changed(said, rng)) for name, said in pairs]}
    yield {"tool_calls": [{"name": name, "arguments": said} for name, said in pairs]}
    yield {"content": json.dumps(calls)}
    yield {"content": json.dumps([{"name": name, "arguments": said} for name, said in pairs])}
    yield {"content": f"[{', '.join(written)}]"}
    yield {"reasoning": f"{written[0]} it is. ", "content": "\n".join(written)}
    text = " ".join(written)
    at = rng.randrange(len(text))
    yield {"content": text[:at] + rng.choice("()'\"\\,=[]{} a") + text[at + rng.randrange(2) :]}
    yield {"content": "".join(rng.choices(ALPHABET, k=rng.randrange(1, 25)))}


def changed(said: dict[str, Any], rng: random.Random) -> str:
    """Arguments of which one is another, lacks, or is there besides."""
    new: dict[str, Any] = dict(said)
    key = rng.choice([*new, "more"])
    if rng.random() < 0.3:
        new.pop(key, None)
    else:
        new[key] = rng.choice([None, 1, "x", True, 3.5, [new.get(key)], {"a": new.get(key)}, str(new.get(key))])
    return json.dumps(new)


def test_verdicts_are_the_references(tmp_path: Path) -> None:
    environment = Environment.named(RULES.accuracy_data.value)
    rng = random.Random(0)
    asked = [(row, said) for row in table.write(tmp_path, environment, RULES).rows for said in replies(row, rng)]
    ours = grade(
        {i: row for i, (row, _) in enumerate(asked)},
        {i: read_answer(json.dumps(said).encode()) for i, (_, said) in enumerate(asked)},
        environment,
    )
    theirs = by_the_reference(asked)
    counts: Counter[str] = Counter()
    for i, (row, said) in enumerate(asked):
        if isinstance(theirs[i], str):
            counts[theirs[i]] += 1
            assert not ours[i].right, (row.id, said)
        else:
            counts["right" if ours[i].right else "wrong"] += 1
            assert ours[i].right == theirs[i], (row.id, said, ours[i].why)
    assert min(counts["right"], counts["wrong"], counts["ended with TypeError"]) > 100
    sys.stdout.write(f"\n{len(asked)} answers to {RULES.datasets['accuracy'].value} questions: {dict(counts)}\n")


def by_the_reference(asked: list[tuple[Row, dict[str, Any]]]) -> list[bool | str]:
    assert CLIENT is not None
    (site,) = bfcl_python().parents[1].glob("lib/python3*/site-packages")
    told = [{"subset": r.subset, "functions": r.functions, "truth": r.truth, "reply": said} for r, said in asked]
    command = [str(CLIENT.parent / "python"), "-W", "ignore", str(PROGRAM), str(site)]
    done = subprocess.run(command, input=json.dumps(told), capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    found: list[bool | str] = json.loads(done.stdout)
    return found
