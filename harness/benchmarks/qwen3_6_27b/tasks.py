"""Made-up tasks of a coding agent, as rows of the data set's format: what a stand-in consists of."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

SYSTEM: Final = "You repair small programs. You work in a shell, one step at a time."
_TOOLS: Final = [
    {
        "type": "function",
        "function": {
            "name": "bash",
            "description": "Runs a script and gives back what it printed",
            "parameters": {"type": "object", "properties": {"command": {"type": "string"}}, "required": ["command"]},
        },
    }
]


@dataclass(frozen=True, slots=True)
class _Fault:
    """A program with a fault: its file, the wrong line, the right one, what a user saw."""

    name: str
    file: str
    wrong: str
    right: str
    seen: str


_FAULTS: Final = (
    _Fault("tides", "tides/table.py", "height = low - range", "height = low + range", "High water is below low water."),
    _Fault(
        "ferry", "ferry/fares.py", "if age < 4:", "if age <= 4:", "A child of four pays although the sign says free."
    ),
    _Fault(
        "bakery", "bakery/dough.py", "rest_minutes = grams", "rest_minutes = grams / 50", "Dough rests for two days."
    ),
    _Fault(
        "observatory",
        "sky/dome.py",
        "azimuth % 180",
        "azimuth % 360",
        "The dome never turns to the west — très gênant.",
    ),
    _Fault(
        "library",
        "library/shelf.py",
        "sorted(titles)",
        "sorted(titles, key=str.casefold)",
        "“éclair” stands behind “zoo”.",
    ),
    _Fault(
        "orchard", "orchard/yield.py", "sum(trees) // days", "sum(trees) / days", "The mean harvest is always whole."
    ),
)


@dataclass(frozen=True, slots=True)
class _Step:
    """What the agent thinks and runs, and what each script prints."""

    thought: str
    scripts: tuple[str, ...]
    printed: tuple[str, ...]


def rows(seed: int, number: int) -> Iterator[Mapping[str, Any]]:
    """The rows of one task, the same for the same seed and number; no two numbers have one id."""
    rng = random.Random(f"{seed}/{number}")  # noqa: S311 - tasks, not secrets
    fault = _FAULTS[(number + seed) % len(_FAULTS)]
    identity = {"conversation_id": f"made-up__{fault.name}-{number + 1}"}
    asked = f"{fault.seen} Please find out why, mend it in {fault.file.partition('/')[0]}/ and run the tests."
    yield {**identity, "turn": 1, "role": "user", "content": asked, "system": SYSTEM, "tools": _TOOLS}
    turn, call = 2, 0
    for step in _steps(fault, rng):
        ids = [f"functions.bash:{call + place}" for place in range(len(step.scripts))]
        calls = [_call(id_, script) for id_, script in zip(ids, step.scripts, strict=True)]
        results = [{"tool_call_id": i, "content": text} for i, text in zip(ids, step.printed, strict=True)]
        said = {"reasoning_content": step.thought, "tool_calls": calls}
        yield {**identity, "turn": turn, "role": "assistant", **said}
        delay = round(rng.uniform(0.005, 0.05), 3)
        yield {**identity, "turn": turn + 1, "role": "tool", "tool_results": results, "delay_seconds": delay}
        turn, call = turn + 2, call + len(ids)
    yield {**identity, "turn": turn, "role": "assistant", "content": f"{fault.file} is mended and the tests pass."}


def _call(id_: str, script: str) -> Mapping[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": "bash", "arguments": json.dumps({"command": script})}}


def _steps(fault: _Fault, rng: random.Random) -> Iterator[_Step]:
    folder = fault.file.partition("/")[0]
    line = rng.randrange(12, 90)
    yield _Step(
        "What is there, and where is that computed?",
        (f"ls -l {folder}", f"grep -rn '{fault.wrong}' {folder} | head -5"),
        (f"-rw-r--r-- 1 dev dev {rng.randrange(400, 9000)} {fault.file}", f"{fault.file}:{line}:    {fault.wrong}"),
    )
    for _ in range(rng.randrange(3)):
        first = rng.randrange(1, 40)
        source = "\n".join(f"    step_{n} = {rng.randrange(1000)}" for n in range(first, first + rng.randrange(4, 30)))
        yield _Step("I read on.", (f"sed -n '{first},{first + 30}p' {fault.file}",), (source,))
    edit = fault.wrong.replace("*", r"\*").replace("[", r"\[")
    yield _Step("That line is wrong.", (f"sed -i 's|{edit}|{fault.right}|' {fault.file}",), ("",))
    yield _Step("Do the tests pass?", ("PYTHONDONTWRITEBYTECODE=1 python3 -m pytest -q",), (f"{line} passed",))
    yield _Step("All is well.", ("echo DONE",), ("DONE",))
