"""The words of a chat's answer as a message or as the deltas of a stream, by whom it is to be like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, Protocol

from harness.serve import shapes
from harness.serve.chat_words import Part, Word

Delta = dict[str, Any]


class Wording(Protocol):
    """For one answer."""

    first: Mapping[str, str]
    """The delta that begins a stream, with the first token."""
    blank: bytes
    """What stands behind that event's data."""

    def message(self, words: Sequence[Word], finish: str | None) -> tuple[Delta, str | None]:
        """What the whole message has of its fields, and why the answer ended."""

    def deltas(self, words: Sequence[Word], finish: str | None) -> list[tuple[Delta, str | None]]:
        """The next deltas, each with the end where it has it."""


class TrtllmWording:
    """The last delta has the end; there always is a content."""

    first: Mapping[str, str] = {"role": "assistant"}
    blank = b" "

    def __init__(self) -> None:
        self._calls = _Calls(always_typed=True)

    def message(self, words: Sequence[Word], finish: str | None) -> tuple[Delta, str | None]:
        """Content and reasoning, empty ones too."""
        said = {"content": joined(words, Part.CONTENT), "reasoning_content": joined(words, Part.REASONING)}
        return _with_calls(said, words, finish)

    def deltas(self, words: Sequence[Word], finish: str | None) -> list[tuple[Delta, str | None]]:
        """One with the text, one for each part of a call."""
        told: list[Delta] = []
        if any(word.part in {Part.CONTENT, Part.REASONING} for word in words):
            told.append({"content": joined(words, Part.CONTENT), "reasoning_content": joined(words, Part.REASONING)})
        told += self._calls.deltas(words)
        return _ended(told or [{"content": "", "reasoning_content": ""}], finish, called=self._calls.any)


class GptOssWording:
    """trtllm-serve's for gpt-oss: the end has a chunk of its own, and what is empty is left out."""

    first: Mapping[str, str] = {"role": "assistant"}
    blank = b""

    def __init__(self) -> None:
        self._calls = _Calls(always_typed=True)

    def message(self, words: Sequence[Word], finish: str | None) -> tuple[Delta, str | None]:
        """What there is of content and reasoning."""
        said = {"content": joined(words, Part.CONTENT), "reasoning": joined(words, Part.REASONING)}
        return _with_calls({key: text for key, text in said.items() if text}, words, finish)

    def deltas(self, words: Sequence[Word], finish: str | None) -> list[tuple[Delta, str | None]]:
        """One for each word."""
        told = [delta for word in words for delta in self._one(word)]
        return [(delta, None) for delta in told] + ([({}, finish)] if finish else [])

    def _one(self, word: Word) -> list[Delta]:
        return [{word.part.value: word.text}] if word.part in _TEXTS else self._calls.deltas((word,))


class VllmWording:
    """The role comes with an empty content; each delta has what there is, an empty content where there is nothing."""

    first: Mapping[str, str] = {"role": "assistant", "content": ""}
    blank = b""

    def __init__(self) -> None:
        self._calls = _Calls(always_typed=False)

    def message(self, words: Sequence[Word], finish: str | None) -> tuple[Delta, str | None]:
        """A content, null where there are calls alone; reasoning, null where there is none."""
        said: Delta = {"content": joined(words, Part.CONTENT), "reasoning": joined(words, Part.REASONING) or None}
        told, finish = _with_calls(said, words, finish)
        if "tool_calls" in told:
            told["content"] = told["content"] or None
        return told, finish

    def deltas(self, words: Sequence[Word], finish: str | None) -> list[tuple[Delta, str | None]]:
        """One with the reasoning, one with the content, one for each part of a call."""
        texts = {part.value: joined(words, part) for part in (Part.REASONING, Part.CONTENT)}
        told: list[Delta] = [{key: text} for key, text in texts.items() if text]
        told += self._calls.deltas(words)
        return _ended(told or [{"content": ""}], finish, called=self._calls.any)


class _Calls:
    """Calls of tools as deltas, numbered as they begin."""

    def __init__(self, *, always_typed: bool) -> None:
        self._always_typed = always_typed
        self._count = 0

    @property
    def any(self) -> bool:
        """Whether one began."""
        return self._count > 0

    def deltas(self, words: Sequence[Word]) -> list[Delta]:
        """One for each name and each piece of arguments."""
        told: list[Delta] = []
        for word in words:
            if word.part is Part.CALL:
                self._count += 1
                head = {"id": shapes.tool_call_id(), "type": "function"}
                told.append(self._delta(head, {"name": word.text, "arguments": ""}))
            elif word.part is Part.ARGUMENTS:
                told.append(self._delta({"type": "function"} if self._always_typed else {}, {"arguments": word.text}))
        return told

    def _delta(self, head: dict[str, str], function: dict[str, str]) -> Delta:
        return {"tool_calls": [{**head, "index": self._count - 1, "function": function}]}


_TEXTS: Final = frozenset({Part.CONTENT, Part.REASONING})


def joined(words: Sequence[Word], part: Part) -> str:
    """The text of one part."""
    return "".join(word.text for word in words if word.part is part)


def _ended(told: list[Delta], finish: str | None, *, called: bool) -> list[tuple[Delta, str | None]]:
    """Deltas of which the last has the end."""
    if finish and called:
        finish = "tool_calls"
    return [(delta, None) for delta in told[:-1]] + [(told[-1], finish)]


def _with_calls(message: Delta, words: Sequence[Word], finish: str | None) -> tuple[Delta, str | None]:
    calls: list[tuple[str, list[str]]] = []
    for word in words:
        if word.part is Part.CALL:
            calls.append((word.text, []))
        elif word.part is Part.ARGUMENTS:
            calls[-1][1].append(word.text)
    if not calls:
        return message, finish
    made = [shapes.tool_call(name, "".join(arguments)) for name, arguments in calls]
    return {**message, "tool_calls": made}, "tool_calls"
