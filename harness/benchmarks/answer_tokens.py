"""Tokens of an answer with calls and reasoning, counted as the endpoints client counts them: by the chat's template."""

from __future__ import annotations

import importlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from harness.errors import ConfigError, MissingError
from harness.logs.agentic_events import Answer

_ASKED: Final[Mapping[str, str]] = {"role": "user", "content": ""}
_EMPTY: Final[Mapping[str, str]] = {"role": "assistant", "content": ""}


class AnswerTokens:
    """Counts answers: the assistant's message in its template, less the same message with nothing in it.

    The folder's own code is run where its tokenizer has some, as Kimi's has. MissingError without transformers;
    ConfigError where the folder holds no tokenizer that can be read.
    """

    def __init__(self, folder: Path) -> None:
        try:
            transformers = importlib.import_module("transformers")
        except ImportError:
            raise MissingError(
                "tokens cannot be counted: transformers is not installed",
                where=folder,
                mend="make venv, which installs it",
            ) from None
        try:
            self._tokenizer: Any = transformers.AutoTokenizer.from_pretrained(
                str(folder), local_files_only=True, trust_remote_code=True
            )
        except (OSError, ValueError, ImportError, KeyError, TypeError) as error:
            first = (str(error) or type(error).__name__).splitlines()[0]
            raise ConfigError(
                f"no tokenizer that can be read: {first}",
                where=folder,
                expected="the tokenizer's files as the model is published with them",
                mend="give the folder of the checkpoint with --tokenizer",
            ) from None
        self._breaks = (importlib.import_module("jinja2").TemplateError, TypeError, ValueError, KeyError)
        try:
            self._frame = self._length([_ASKED, _EMPTY])
        except self._breaks:
            self._frame = None

    def __call__(self, answer: Answer) -> int:
        """Tokens of one answer; at least 0.

        Of its texts and of its calls as JSON where there is no template, or where the template breaks on them.
        """
        message: dict[str, Any] = {"role": "assistant", "content": answer.content}
        if answer.reasoning:
            message["reasoning_content"] = answer.reasoning
        if answer.tool_calls:
            message["tool_calls"] = [_with_arguments_read(call) for call in answer.tool_calls]
        try:
            whole = None if self._frame is None else self._length([_ASKED, message])
        except self._breaks:
            whole = None
        if whole is not None and self._frame is not None:
            return max(0, whole - self._frame)
        calls = json.dumps(list(answer.tool_calls)) if answer.tool_calls else ""
        return sum(self._plain(text) for text in (answer.content, answer.reasoning, calls) if text)

    def _length(self, messages: list[Any]) -> int | None:
        """Tokens of a chat in the template; None where the tokenizer has none."""
        if not getattr(self._tokenizer, "chat_template", None):
            return None
        text = self._tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=False)
        return self._plain(text)

    def _plain(self, text: str) -> int:
        return len(self._tokenizer.encode(text, add_special_tokens=False))


def _with_arguments_read(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call whose arguments are an object: templates write objects out, and would quote a text of JSON again."""
    function = call.get("function")
    if not isinstance(function, Mapping):
        return dict(call)
    arguments = function.get("arguments")
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return dict(call)
    return {**call, "function": {**function, "arguments": arguments}}
