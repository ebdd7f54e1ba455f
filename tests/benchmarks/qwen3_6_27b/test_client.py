"""Beside the real mlcommons client, where there is one: the same requests, the same programs, nothing it refuses."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from harness.benchmarks.qwen3_6_27b.commands import PROGRAMS, programs
from harness.benchmarks.qwen3_6_27b.dataset import read_file
from harness.benchmarks.qwen3_6_27b.inline import intent
from harness.benchmarks.qwen3_6_27b.requests import request
from harness.benchmarks.qwen3_6_27b.salts import Salts
from harness.benchmarks.qwen3_6_27b.standin import make_dataset
from harness.errors import DatasetError
from tests.benchmarks.qwen3_6_27b.made import REAL, RULES, TOOLS, asked_by_run, assistant, call, tool, user, write

VARIABLE = "ENDPOINTS_BIN"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not os.environ.get(VARIABLE), reason=f"{VARIABLE} names no inference-endpoint client (docs/endpoints.md)"
    ),
]

ASKED: dict[str, list[Any]] = {
    "model": ["a", "b"],
    "max_new_tokens": [5, 9],
    "max_completion_tokens": [6, 8],
    "stream": [True, False],
    "temperature": [0.5, 1],
    "seed": [1, 0],
    "top_p": [0.25],
    "top_k": [3],
    "repetition_penalty": [1.5],
    "n": [1],
    "stop": ["x", ["x", "y"]],
    "presence_penalty": [-0.5],
    "frequency_penalty": [0.5],
    "logit_bias": [{"5": 1.5}],
    "user": ["u"],
    "chat_template": ["t"],
    "chat_template_kwargs": [{"thinking": False}],
    "tools": [TOOLS],
    "tool_choice": ["auto", {"type": "function"}],
    "system": ["Another system"],
    "delay_seconds": [0, 0.5],
    "colour": ["red"],
}
WORDS = ["cd", "echo", "sudo", "A=1", "|", "||", "&&", "&", ";", "\n", "'", '"', "`", "\\", "/usr/bin/rg", "..", "x.1"]
INTENTS = ["intent: I001", "Intent:i002", "I003", "i004", "I0055", "xI006", " ", "intent:  I007b", "no"]
SCRIPTS = 3000
CONVERSATIONS = 150


def conversation(rng: random.Random, name: str) -> Iterator[dict[str, Any]]:
    """A conversation of the format, with wishes of its rows."""
    role, calls = "user", False
    for turn in range(1, rng.randrange(2, 10)):
        if role == "user":
            row = user(turn, name, **({"system": "Sys"} if turn == 1 else {}))
        elif role == "tool":
            many = rng.randrange(1, 3)
            row = tool(turn, name, tool_results=[{"tool_call_id": f"c{i}", "content": "é" * i} for i in range(many)])
        else:
            calls = rng.random() < 0.6
            said: dict[str, Any] = {"tool_calls": [call("ls é")]} if calls else {"content": "Done"}
            row = assistant(turn, name, **said, **rng.choice([{}, {"reasoning_content": rng.choice(["", "Hm"])}]))
        if role != "assistant":
            wishes = rng.sample(sorted(ASKED), rng.choice([0, 0, 1, 2, 4]))
            row |= {wish: rng.choice(ASKED[wish]) for wish in wishes}
        yield row
        role = {"user": "assistant", "assistant": "tool" if calls else "user"}.get(role) or rng.choice(
            ["assistant", "user"]
        )


def broken(rng: random.Random, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows with one change, which mostly is one too many."""
    row = rng.choice(rows)
    change = rng.randrange(7)
    if change == 0:
        row["turn"] += rng.choice([1, -1])
    elif change == 1:
        row["role"] = rng.choice(["user", "assistant", "tool", "system"])
    elif change == 2:
        row.pop(rng.choice(sorted(row)))
    elif change == 3:
        row["tool_calls"] = rng.choice([[], "x", [{}], [call("ls", "")], [call("ls")]])
    elif change == 4:
        row["tool_results"] = rng.choice([[], "x", [{}], [{"tool_call_id": "a"}]])
    elif change == 5:
        row["conversation_id"] = rng.choice(["é", "a\n", "zz", ""])
    else:
        rows = [*rows, dict(row)]
    return rows


class Asked:
    """Questions, and what the client says to each."""

    def __init__(self, folder: Path) -> None:
        rng = random.Random(7)
        make_dataset(folder / "standin", seed=0, rules=RULES, rows=6)
        known = folder / "standin" / RULES.performance_data.value.file
        self.exact = [(str(known), True, 0), (str(known), True, 3)]
        if REAL.exists():
            self.exact += [(str(REAL), True, 0), (str(REAL), True, 2)]
        self.wished, self.broken = [], []
        for number in range(CONVERSATIONS):
            rows = [row for name in "ab" for row in conversation(rng, f"{name}-1")]
            self.wished.append((str(write(folder / f"{number}.jsonl", rows)), number % 2 == 0, 0))
            self.broken.append((str(write(folder / f"{number}b.jsonl", broken(rng, rows))), True, 0))
        words = [*WORDS, *PROGRAMS]
        self.scripts = [" ".join(rng.choices(words, k=rng.randrange(1, 12))) for _ in range(SCRIPTS)]
        self.answers = [
            {"content": "".join(rng.choices(INTENTS, k=2)), "reasoning_content": rng.choice([None, *INTENTS])}
            for _ in range(SCRIPTS)
        ]
        said = self._said(folder / "questions.json")
        self.files = dict(zip(self.exact + self.wished + self.broken, said["files"], strict=True))
        self.programs, self.intents = said["scripts"], said["answers"]

    def _said(self, path: Path) -> dict[str, Any]:
        files = self.exact + self.wished + self.broken
        path.write_text(json.dumps({"files": files, "scripts": self.scripts, "answers": self.answers}))
        program = Path(os.environ[VARIABLE])
        python = (program if program.is_dir() else program.parent) / "python"
        script = Path(__file__).with_name("client_says.py")
        done = subprocess.run([python, script, path], capture_output=True, text=True, check=False, timeout=200)
        assert done.returncode == 0, done.stderr
        found: dict[str, Any] = json.loads(done.stdout)
        return found


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    return Asked(tmp_path_factory.mktemp("client"))


def ours(path: str, stream: bool, repeat: int) -> list[list[Any]]:
    """The requests of a file as the client's script tells them."""
    run = asked_by_run("m") | {"stream": stream}
    return [
        [each.id, turn.number, orjson.dumps(request(each, place, run, system)).decode()]
        for each in read_file(Path(path)).trajectories
        for system in [Salts().salted(each, repeat) if repeat else None]
        for place, turn in enumerate(each.turns)
    ]


def test_requests_are_the_same_byte_for_byte(asked: Asked) -> None:
    for file in asked.exact:
        assert ours(*file) == asked.files[file]


def test_rows_that_ask_for_their_own_are_asked_the_same(asked: Asked) -> None:
    """Not byte for byte: that client's table makes a float of a whole number that not every row has."""
    for file in asked.wished:
        said = asked.files[file]
        assert said is not None, file
        assert [[*place, json.loads(body)] for *place, body in ours(*file)] == [
            [*place, json.loads(body)] for *place, body in said
        ], file


def test_what_the_client_refuses_is_refused(asked: Asked) -> None:
    refused = [file for file in asked.broken if asked.files[file] is None]
    assert len(refused) > CONVERSATIONS / 3
    for path, *_ in refused:
        with pytest.raises(DatasetError):
            read_file(Path(path))


def test_the_programs_of_scripts_are_the_same(asked: Asked) -> None:
    found = [programs([call(script)]) for script in asked.scripts]
    assert found == [Counter(said) for said in asked.programs]
    assert sum(map(bool, found)) > SCRIPTS / 2


def test_the_intents_of_answers_are_the_same(asked: Asked) -> None:
    found = [intent(answer) for answer in asked.answers]
    assert found == asked.intents
    assert set(found) == {"I001", "I002", "I003", None}
