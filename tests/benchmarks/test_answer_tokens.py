from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks.answer_tokens import AnswerTokens
from harness.errors import ConfigError, MissingError
from harness.logs.agentic_events import Answer
from tests.benchmarks.made_tokenizer import TEMPLATE, make_tokenizer

LS: dict[str, Any] = {"type": "function", "function": {"name": "bash", "arguments": '{"command": "ls"}'}}


@pytest.mark.torch
@pytest.mark.parametrize(
    ("answer", "tokens"),
    [
        (Answer("one two three", "", ()), 3),
        (Answer("one", "because so", ()), 1 + 3),
        (Answer("", "", (LS,)), 4),
        (Answer("no", "", (LS, {"function": {"name": "x", "arguments": {"a": "b c"}}})), 1 + 4 + 5),
        (Answer("", "", ({"function": {"name": "x", "arguments": {}}},)), 2),
        (Answer("", "", ()), 0),
    ],
)
def test_the_frame_is_not_counted(tmp_path: Path, answer: Answer, tokens: int) -> None:
    assert AnswerTokens(make_tokenizer(tmp_path))(answer) == tokens


@pytest.mark.torch
def test_without_a_template_texts_are_counted(tmp_path: Path) -> None:
    count = AnswerTokens(make_tokenizer(tmp_path, template=None))
    assert count(Answer("one two", "because", ())) == 3
    assert count(Answer("", "", (LS,))) > 3


@pytest.mark.torch
@pytest.mark.parametrize("call", [{"function": {"name": "x", "arguments": "{"}}, {"name": "x"}, {"function": 3}])
def test_calls_as_servers_should_not_write_them_are_counted_as_they_are(tmp_path: Path, call: dict[str, Any]) -> None:
    template = TEMPLATE.replace("call.function.arguments.items()", "{}.items()")
    assert AnswerTokens(make_tokenizer(tmp_path, template))(Answer("a", "", (call,))) >= 2


@pytest.mark.torch
def test_a_folder_without_a_tokenizer(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no tokenizer that can be read"):
        AnswerTokens(tmp_path)


def test_without_transformers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "transformers", None)
    with pytest.raises(MissingError, match="transformers is not installed"):
        AnswerTokens(tmp_path)
