"""Tokens that no server counted: as many as the whole prompt has, though of each turn only what is new is tokenized."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.benchmarks.qwen3_6_27b import turn_tokens
from harness.benchmarks.qwen3_6_27b.requests import request
from harness.benchmarks.qwen3_6_27b.store import Library
from harness.benchmarks.qwen3_6_27b.turn_tokens import Tokenizer, count_answers, count_prompts
from harness.engines.chats import qwen3_vocab
from harness.engines.chats.tool_chat import BEGINNING, message_text, tools_text
from harness.errors import MissingError
from harness.ledger.samples import NONE
from tests.benchmarks.qwen3_6_27b.made import call
from tests.runs.made_turns import small_library

pytestmark = pytest.mark.qwen3vl

ANSWERS = [
    {"content": "There is one test."},
    {"content": "", "reasoning": "Look first.", "tool_calls": [call("ls tests | wc -l")]},
    {"content": "größer 中 \U0001f600"},
    {"content": "", "tool_calls": [{"id": None, "function": {"name": None, "arguments": ""}}]},
]


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return small_library(tmp_path_factory.mktemp("data"), repeats=3)


def by_whole_prompts(library: Library, row: int) -> list[int]:
    trajectory = library.trajectory(row)
    system = library.system(trajectory, library.repeat(row))
    counts = []
    for place in range(len(trajectory.turns)):
        asked = request(trajectory, place, {"max_completion_tokens": None}, system)
        texts = [message_text(0, message) for message in asked["messages"]]
        counts.append(len(qwen3_vocab.encode("".join([tools_text(asked.get("tools", ())), *texts, BEGINNING]))))
    return counts


def test_prompts_have_as_many_tokens_as_they_have_whole(library: Library) -> None:
    rows = range(library.rows)
    found = count_prompts(library, [*rows, 0, 0], Tokenizer(), 1)
    assert found == {row: by_whole_prompts(library, row) for row in rows}


def test_each_message_is_tokenized_once(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []

    def tokens_of(text: str) -> int:
        texts.append(text)
        return len(text)

    monkeypatch.setattr(Tokenizer, "load", lambda self: tokens_of)
    count_prompts(library, range(library.rows), Tokenizer(), 1)
    own = [text for text in texts if "<|im_start|>system" not in text and text != BEGINNING]
    assert len(own) == 7 + 3  # what each of the seven turns adds, and each trajectory's tools
    assert sum("Question 1" in text for text in texts) == 3, "a trajectory's repeats share all but the system prompt"
    assert sum("<|im_start|>system" in text for text in texts) == library.rows


def test_answers_are_counted_as_they_were_told() -> None:
    found = count_answers(ANSWERS, Tokenizer(), 1)
    assert found[0] == len(qwen3_vocab.encode("There is one test."))
    assert found[2] == len(qwen3_vocab.encode("größer 中 \U0001f600"))
    called = '<tool_call>{"name": "bash", "arguments": {"command": "ls tests | wc -l"}}</tool_call>'
    assert found[1] == len(qwen3_vocab.encode(f"<think>Look first.</think>{called}"))
    assert found[3] == NONE
    assert count_answers([], Tokenizer(), 4) == []


def test_several_processes_count_the_same(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    alone = count_prompts(library, range(library.rows), Tokenizer(), 1)
    monkeypatch.setattr(turn_tokens, "_LONE", 0)
    monkeypatch.setattr(turn_tokens, "_ANSWERS_AT_ONCE", 2)
    assert count_prompts(library, range(library.rows), Tokenizer(), 2) == alone
    assert count_answers(ANSWERS, Tokenizer(), 2) == count_answers(ANSWERS, Tokenizer(), 1)


needs_tokenizers = pytest.mark.skipif(importlib.util.find_spec("tokenizers") is None, reason="needs tokenizers")


@needs_tokenizers
def test_a_checkpoint_s_own_tokenizer(tmp_path: Path) -> None:
    vocabulary = {"There": 0, "is": 1, "one": 2, "?": 3}
    model = {"type": "WordLevel", "vocab": vocabulary, "unk_token": "?"}
    content = {"version": "1.0", "added_tokens": [], "model": model, "pre_tokenizer": {"type": "Whitespace"}}
    (tmp_path / "tokenizer.json").write_text(json.dumps(content))
    tokenizer = Tokenizer(tmp_path)
    assert tokenizer.name == f"tokenizer.json of {tmp_path.name}"
    assert count_answers([{"content": "There is one, is there?"}], tokenizer, 1) == [7]


@needs_tokenizers
@pytest.mark.parametrize("write", [lambda path: None, lambda path: path.write_text("{"), lambda path: path.mkdir()])
def test_a_tokenizer_that_is_none(tmp_path: Path, write: Callable[[Path], None]) -> None:
    write(tmp_path / "tokenizer.json")
    with pytest.raises(MissingError, match="tokenizer"):
        Tokenizer(tmp_path).load()


def test_without_the_vocabulary(library: Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> None:
        raise MissingError("the vocabulary is not installed")

    monkeypatch.setattr(qwen3_vocab, "vocabulary", none)
    with pytest.raises(MissingError, match="not installed"):
        count_prompts(library, [0], Tokenizer(), 1)
