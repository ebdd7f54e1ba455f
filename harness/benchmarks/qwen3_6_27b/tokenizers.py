"""Tokenizers of chats: that of a served checkpoint, whose folder has its files, or the one of stand-ins.

What a server counts goes before all of this: a template may be rendered otherwise there, and what a model said has
tokens around it that no reply tells.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

import orjson

from harness.engines.chats import qwen3_vocab
from harness.engines.chats.tool_prompts import Conversations
from harness.errors import MissingError

TOKENIZER: Final = "tokenizer.json"
TEMPLATE: Final = "chat_template.jinja"
_CONFIG: Final = "tokenizer_config.json"
_MEND: Final = "have the server tell usage: its own counts are taken wherever it gives them"

Chat = Mapping[str, Any]


class ChatTokenizer(Protocol):
    """Counts tokens of chats one after the other; those of one session follow each other, each longer than before."""

    def prompt_tokens(self, chat: Chat) -> int:
        """Tokens of a chat up to where its answer begins. Only what the chat before had not is tokenized."""

    def text_tokens(self, text: str) -> int:
        """Tokens of a text alone."""


def tokenizer_of(folder: Path | None) -> ChatTokenizer:
    """The tokenizer of a checkpoint's folder, or where there is none that of stand-ins. MissingError."""
    return StandInTokenizer() if folder is None else FolderTokenizer(folder)


def has_tokenizer(folder: Path) -> bool:
    """Whether a checkpoint's folder has all that counting takes. Published ones of Kimi's do not: no tokenizer.json."""
    return (folder / TOKENIZER).is_file() and _template(folder) is not None


class StandInTokenizer:
    """Qwen3's vocabulary and the project's own template, as stand-in checkpoints have them."""

    def __init__(self) -> None:
        self._read = Conversations(1)

    def prompt_tokens(self, chat: Chat) -> int:
        """Raises BadChat for what is no chat."""
        return len(self._read.ids(chat, "one"))

    def text_tokens(self, text: str) -> int:
        """Raises UnicodeEncodeError for a lone surrogate."""
        return len(qwen3_vocab.encode(text))


class FolderTokenizer:
    """``tokenizer.json`` and the chat template of a folder, by transformers; no code of the folder is run.

    MissingError where one of them, or transformers, is not to be had, or the template does not render a chat.
    """

    def __init__(self, folder: Path) -> None:
        template = _template(folder)
        if template is None or not (folder / TOKENIZER).is_file():
            raise MissingError(
                "the checkpoint has no tokenizer that tokens can be counted with",
                where=folder,
                expected=f"{TOKENIZER} and a chat template",
                mend=_MEND,
            )
        self._folder = folder
        self._tokenizer = _loaded(folder, template)
        self._segments = Segments(self._length, cutting_tokens(self._tokenizer.added_tokens_decoder.values()))
        self._checked = False

    def prompt_tokens(self, chat: Chat) -> int:
        """Tokens of the rendered chat. Arguments that are JSON in a text become objects, as servers have it."""
        text = self.rendered(chat)
        found = self._segments.tokens(text)
        if not self._checked:  # There are tokenizers that treat the beginning of a text otherwise: cut, it is another.
            self._checked = True
            whole = self._length(text)
            if found != whole:
                self._segments = Segments(self._length, frozenset())
                return whole
        return found

    def text_tokens(self, text: str) -> int:
        """As many as are in it without any around it."""
        return self._length(text)

    def rendered(self, chat: Chat) -> str:
        """The text of a chat up to where its answer begins."""
        import jinja2

        try:
            text: str = self._tokenizer.apply_chat_template(
                [_with_objects(message) for message in chat["messages"]],
                tools=chat.get("tools"),
                add_generation_prompt=True,
                tokenize=False,
                **chat.get("chat_template_kwargs", {}),
            )
        except (jinja2.TemplateError, TypeError, ValueError) as error:
            raise MissingError(
                f"the checkpoint's template does not render a chat: {error}", where=self._folder, mend=_MEND
            ) from error
        return text

    def _length(self, text: str) -> int:
        return len(self._tokenizer.backend_tokenizer.encode(text, add_special_tokens=False))


class Segments:
    """Counts tokens of texts of which each begins like the one before, by the segments that some tokens cut them in."""

    def __init__(self, count: Callable[[str], int], cutting: frozenset[str]) -> None:
        self._count = count
        self._cut = re.compile("|".join(map(re.escape, sorted(cutting)))) if cutting else None
        self._text = ""
        self._ends: list[tuple[int, int, int]] = []
        """Where a segment begins, where the token that begins it ends, and how many tokens there are before."""
        self.counted = 0
        """Characters that were tokenized since this was made."""

    def tokens(self, text: str) -> int:
        """Tokens of a text."""
        same = common(self._text, text)
        while self._ends and self._ends[-1][1] > same:
            self._ends.pop()
        at, _, tokens = self._ends[-1] if self._ends else (0, 0, 0)
        for begin, end in self._beginnings(text, at):
            tokens += self._of(text[at:begin])
            self._ends.append((begin, end, tokens))
            at = begin
        self._text = text
        return tokens + self._of(text[at:])

    def _beginnings(self, text: str, at: int) -> list[tuple[int, int]]:
        """Where segments begin behind a place that is the beginning of one."""
        if self._cut is None:
            return []
        return [found.span() for found in self._cut.finditer(text, at) if found.start() > at]

    def _of(self, segment: str) -> int:
        self.counted += len(segment)
        return self._count(segment) if segment else 0


def common(before: str, now: str) -> int:
    """How many characters two texts have in common from the first on."""
    low, high = 0, min(len(before), len(now))
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if before[low:middle] == now[low:middle] else (low, middle - 1)
    return low


def cutting_tokens(added: Any) -> frozenset[str]:  # noqa: ANN401 - transformers' AddedToken, which has no types here
    """The added tokens at which a text may be cut before it is tokenized: they take nothing of what stands around them,
    and none is a part of another.
    """
    texts = [token.content for token in added]
    return frozenset(
        token.content
        for token in added
        if not (token.lstrip or token.rstrip or token.single_word or token.normalized)
        and not any(token.content in other and token.content != other for other in texts)
    )


def _with_objects(message: Mapping[str, Any]) -> Mapping[str, Any]:
    calls = message.get("tool_calls")
    return {**message, "tool_calls": [_with_object(call) for call in calls]} if calls else message


def _with_object(call: Mapping[str, Any]) -> Mapping[str, Any]:
    function = call["function"]
    try:
        arguments = orjson.loads(function["arguments"])
    except (TypeError, ValueError):
        return call
    return {**call, "function": {**function, "arguments": arguments}} if isinstance(arguments, dict) else call


def _template(folder: Path) -> str | None:
    path = folder / TEMPLATE
    if path.is_file():
        return path.read_text(encoding="utf-8")
    template = _config(folder).get("chat_template")
    return template if isinstance(template, str) else None


def _config(folder: Path) -> Mapping[str, Any]:
    path = folder / _CONFIG
    try:
        found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    except ValueError as error:
        raise MissingError(f"the tokenizer's configuration is no JSON: {error}", where=path, mend=_MEND) from None
    return found if isinstance(found, dict) else {}


def _loaded(folder: Path, template: str) -> Any:  # noqa: ANN401 - transformers' tokenizer, which has no types here
    try:
        from transformers import PreTrainedTokenizerFast
    except ImportError as error:
        raise MissingError(
            "transformers is not installed: tokens cannot be counted", expected="it", mend="pip install '.[torch]'"
        ) from error
    names = {name: _text(_config(folder).get(name)) for name in ("bos_token", "eos_token", "pad_token", "unk_token")}
    try:
        return PreTrainedTokenizerFast(
            tokenizer_file=str(folder / TOKENIZER),
            chat_template=template,
            **{name: text for name, text in names.items() if text},
        )
    except Exception as error:  # tokenizers raises Exception itself for a file that it cannot read
        raise MissingError(f"the checkpoint's tokenizer cannot be read: {error}", where=folder, mend=_MEND) from error


def _text(token: object) -> str | None:
    content = token.get("content") if isinstance(token, Mapping) else token
    return content if isinstance(content, str) else None
