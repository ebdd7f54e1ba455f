"""The published bfcl-eval, where BFCL_PYTHON names an environment that has it (`make bfcl` makes one)."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks.qwen3_6_27b.bfcl import requests, table
from harness.benchmarks.qwen3_6_27b.bfcl.environment import Environment
from harness.benchmarks.qwen3_6_27b.bfcl.score import Graded, score
from harness.benchmarks.qwen3_6_27b.bfcl.selftest import KNOWN, self_test
from harness.benchmarks.qwen3_6_27b.bfcl.subsets import language
from harness.benchmarks.qwen3_6_27b.bfcl.table import Row, Table
from harness.engines.bodies import BodyStore
from harness.env import BFCL_PYTHON, bfcl_python
from tests.benchmarks.qwen3_6_27b.bfcl.made import RULES, reply

pytestmark = pytest.mark.skipif(
    not bfcl_python().is_file(), reason=f"no environment of bfcl-eval: {BFCL_PYTHON.name} names none, nor was one made"
)

IDS = "31225ad1c4ee7087aee9cbf5245e53710d1f2bf20074f3310a985d868dd96d28"
"""SHA-256 of the ids, a line each, as the reference's own sampling gives them."""


@pytest.fixture(scope="module")
def real() -> Environment:
    return Environment.named(RULES.accuracy_data.value)


@pytest.fixture(scope="module")
def asked(real: Environment, tmp_path_factory: pytest.TempPathFactory) -> Table:
    return table.write(tmp_path_factory.mktemp("bfcl"), real, RULES)


def first_accepted(row: Row) -> list[dict[str, Any]]:
    """The calls with the first value that is accepted for each argument; of Java and JavaScript as the tools say."""
    kinds = {tool["function"]["name"]: tool["function"]["parameters"]["properties"] for tool in row.tools}
    calls = []
    for wanted in row.truth or []:
        for name, accepted in wanted.items():
            called = name.replace(".", "_")
            said = {key: plain(values) for key, values in accepted.items() if not omitted(values)}
            if language(row.subset) != "PYTHON":
                said = {key: as_said(value, kinds[called].get(key, {})) for key, value in said.items()}
            calls.append({"function": {"name": called, "arguments": json.dumps(said)}})
    return calls


def as_said(value: Any, schema: dict[str, Any]) -> Any:
    """A value in the type of its schema: what is no text is written down where a text is wanted."""
    return json.dumps(value) if schema.get("type") == "string" and not isinstance(value, str) else value


def omitted(values: list[Any]) -> bool:
    return all(value == "" for value in values)


def plain(values: list[Any]) -> Any:
    """The first value that is one; an object's own values are lists of accepted ones too."""
    value = next(value for value in values if value != "")
    if isinstance(value, dict):
        return {key: plain(inner) for key, inner in value.items() if isinstance(inner, list) and not omitted(inner)}
    if isinstance(value, list):
        return [plain([each]) if isinstance(each, dict) else each for each in value]
    return value


def graded(asked: Table, real: Environment, answer: Callable[[Row], bytes]) -> Graded:
    return score(((i, answer(row)) for i, row in enumerate(asked.rows)), asked, RULES, real)


def test_the_rows_are_those_of_the_round(asked: Table) -> None:
    assert not asked.stand_in
    counts = Counter(row.category for row in asked.rows)
    assert counts == {name: subset.samples for name, subset in RULES.accuracy_subsets.value.items()}
    ids = "".join(f"{row.id}\n" for row in asked.rows)
    assert hashlib.sha256(ids.encode()).hexdigest() == IDS


def test_they_make_chats(asked: Table, tmp_path: Path) -> None:
    store = BodyStore.write(tmp_path / "chats", requests.bodies(asked))
    assert len(store) == len(asked)
    assert json.loads(bytes(store[0]))["tool_choice"] == "auto"


def test_the_self_test(real: Environment) -> None:
    assert len(self_test(real)) == len(KNOWN)


def test_answers_that_keep_to_the_tools_have_the_ceiling_of_the_reference(asked: Table, real: Environment) -> None:
    """Java and JavaScript want values as source code, which the tools do not say."""
    found = graded(asked, real, lambda row: reply("So.", first_accepted(row)))
    right = Counter(row.subset for i, row in enumerate(asked.rows) if found.verdicts[i].right)
    wrong = Counter(row.subset for i, row in enumerate(asked.rows) if not found.verdicts[i].right)
    assert (right["simple_java"], right["simple_javascript"]) == (38, 13)
    assert wrong == {"simple_java": 24, "simple_javascript": 18, "parallel_multiple": 2}
    assert found.figures is not None
    assert found.figures.categories["hallucination"] == found.figures.categories["live"] == 100


def test_no_call_is_right_only_where_nothing_is_of_use(asked: Table, real: Environment) -> None:
    found = graded(asked, real, lambda _: reply("No."))
    assert found.figures is not None
    assert found.figures.categories == {"non_live": 0, "live": 0, "hallucination": 100}


def test_null_arguments_are_wrong_everywhere(asked: Table, real: Environment) -> None:
    """The reference's scorer ends with a TypeError here."""
    null = [{"function": {"name": "f", "arguments": "null"}}]
    found = graded(asked, real, lambda row: reply("", null))
    assert found.score.value == 0
    assert {row.subset for row in asked.rows if language(row.subset) != "PYTHON"} == {
        "simple_java",
        "simple_javascript",
    }
