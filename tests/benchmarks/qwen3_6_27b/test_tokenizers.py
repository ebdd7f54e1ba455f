from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks.qwen3_6_27b.tokenizers import (
    TEMPLATE,
    TOKENIZER,
    FolderTokenizer,
    Segments,
    StandInTokenizer,
    common,
    cutting_tokens,
    has_tokenizer,
    tokenizer_of,
)
from harness.engines.chats import tool_chat
from harness.engines.chats.tool_prompts import prompt_ids
from harness.errors import MissingError
from tests.benchmarks.qwen3_6_27b.made import TOOLS, call

CUTTING = frozenset({"<a>", "<b>"})


def words(text: str) -> int:
    """A tokenizer whose tokens are words and the cutting ones."""
    for token in CUTTING:
        text = text.replace(token, f" {token} ")
    return len(text.split())


def turns() -> list[dict[str, Any]]:
    """Chats of one session, each longer than the one before."""
    messages: list[dict[str, Any]] = [
        {"role": "system", "content": "You drive a shell."},
        {"role": "user", "content": "Wie viele Tests gibt es? 🙂"},
    ]
    chats = []
    for place in range(4):
        chats.append({"messages": list(messages), "tools": TOOLS})
        messages.append({"role": "assistant", "reasoning_content": "Look.", "tool_calls": [call("ls", f"c{place}")]})
        messages.append({"role": "tool", "tool_call_id": f"c{place}", "content": "<|im_end|> a.py\n" * place})
    return [*chats, chats[1], {"messages": messages[:2]}]


@given(st.text("xy", max_size=40), st.text("xy", max_size=40))
def test_what_two_texts_have_in_common(before: str, now: str) -> None:
    n = common(before, now)
    assert before[:n] == now[:n]
    assert before[n : n + 1] != now[n : n + 1] or n == len(before) == len(now)


@given(st.lists(st.text("xy <ab>", max_size=30), max_size=8))
def test_texts_in_segments_have_as_many_tokens_as_whole(texts: list[str]) -> None:
    segments, grown = Segments(words, CUTTING), ""
    for text in texts:
        grown += text
        assert segments.tokens(grown) == words(grown)
        assert segments.tokens(text) == words(text)


def test_only_what_is_new_is_tokenized() -> None:
    segments, text = Segments(words, CUTTING), ""
    for _ in range(50):
        text += "<a>one two three"
        segments.tokens(text)
    assert segments.counted < 2 * len(text)


def test_without_a_token_that_cuts_all_is_tokenized_each_time() -> None:
    segments = Segments(words, frozenset())
    assert [segments.tokens(text) for text in ("x y", "x y z", "x y z")] == [2, 3, 3]


def test_tokens_at_which_a_text_may_be_cut() -> None:
    def token(content: str, **more: bool) -> SimpleNamespace:
        takes = {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False, **more}
        return SimpleNamespace(content=content, **takes)

    some = [token("<a>"), token("<b>", lstrip=True), token("<c>", rstrip=True), token("<d>", normalized=True)]
    some += [token("<e>", single_word=True), token("<<a>>"), token("<f>")]
    assert cutting_tokens(some) == {"<<a>>", "<f>"}


@pytest.mark.qwen3vl
def test_the_stand_in_s() -> None:
    tokenizer = tokenizer_of(None)
    assert isinstance(tokenizer, StandInTokenizer)
    assert [tokenizer.prompt_tokens(chat) for chat in turns()] == [len(prompt_ids(chat)) for chat in turns()]
    assert tokenizer.text_tokens("ls -l") == 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files of a served checkpoint's tokenizer."""
    from harness.engines.tiny_tokenizer import save_qwen3_tokenizer

    made = tmp_path_factory.mktemp("tokenizer")
    save_qwen3_tokenizer(made, tool_chat.TEMPLATE)
    return made


@pytest.mark.torch
@pytest.mark.qwen3vl
class TestOfAFolder:
    def test_it_counts_as_the_stand_in_s_does(self, folder: Path) -> None:
        assert has_tokenizer(folder)
        tokenizer = tokenizer_of(folder)
        assert [tokenizer.prompt_tokens(chat) for chat in turns()] == [len(prompt_ids(chat)) for chat in turns()]
        assert tokenizer.text_tokens("ls -l") == 3

    def test_only_what_is_new_is_tokenized(self, folder: Path) -> None:
        tokenizer = FolderTokenizer(folder)
        chats = turns()[:4]
        for chat in chats:
            tokenizer.prompt_tokens(chat)
        assert tokenizer._segments.counted < 1.5 * len(tokenizer.rendered(chats[-1]))

    def test_arguments_are_objects_to_a_template_and_kwargs_reach_it(self, folder: Path, tmp_path: Path) -> None:
        copied = shutil.copytree(folder, tmp_path / "x")
        (copied / TEMPLATE).write_text(
            "{{ thinking }}{% for m in messages %}{% for c in m.tool_calls or [] %}"
            "{{ c.function.arguments.command or 'none' }};{% endfor %}{% endfor %}"
        )
        calls = [call("ls"), {"function": {"name": "x", "arguments": "{broken"}}]
        chat = {"messages": [{"role": "assistant", "tool_calls": calls}], "chat_template_kwargs": {"thinking": False}}
        assert FolderTokenizer(copied).rendered(chat) == "Falsels;none;"

    def test_a_template_in_the_configuration(self, folder: Path, tmp_path: Path) -> None:
        copied = shutil.copytree(folder, tmp_path / "x")
        (copied / TEMPLATE).unlink()
        (copied / "tokenizer_config.json").write_text(json.dumps({"chat_template": "{{ messages[0].content }}"}))
        assert FolderTokenizer(copied).rendered(turns()[0]) == "You drive a shell."

    def test_a_tokenizer_that_treats_beginnings_otherwise_is_asked_whole_texts(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        tokenizer = FolderTokenizer(folder)
        monkeypatch.setattr(tokenizer, "_length", lambda text: words(text) + 1)
        tokenizer._segments = Segments(tokenizer._length, frozenset({"<|im_start|>"}))
        for chat in turns():
            assert tokenizer.prompt_tokens(chat) == words(tokenizer.rendered(chat)) + 1

    def test_a_template_that_renders_no_such_chat(self, folder: Path, tmp_path: Path) -> None:
        copied = shutil.copytree(folder, tmp_path / "x")
        (copied / TEMPLATE).write_text("{{ raise_exception('no tools') }}")
        with pytest.raises(MissingError, match="does not render a chat: no tools"):
            FolderTokenizer(copied).prompt_tokens(turns()[0])

    def test_files_that_are_none(self, folder: Path, tmp_path: Path) -> None:
        copied = shutil.copytree(folder, tmp_path / "x")
        (copied / TOKENIZER).write_text("{}")
        with pytest.raises(MissingError, match="tokenizer cannot be read"):
            FolderTokenizer(copied)
        (copied / TEMPLATE).unlink()
        (copied / "tokenizer_config.json").write_text("{")
        with pytest.raises(MissingError, match="configuration is no JSON"):
            has_tokenizer(copied)


def test_a_folder_without(tmp_path: Path) -> None:
    assert not has_tokenizer(tmp_path)
    with pytest.raises(MissingError, match="no tokenizer that tokens can be counted with"):
        tokenizer_of(tmp_path)
