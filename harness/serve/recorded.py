"""Chats that were answered before: what a script is to say to each of them, and how it is found again.

A file holds recorded trajectories, as the round's data set has them, or single chats, a JSON object a line:
``{"messages": [...], "tools": [...], "reply": {"content": ..., "reasoning_content": ..., "tool_calls": [...]}}``, of
which ``tools`` and all but one of the reply's fields may be left out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from harness.benchmarks.qwen3_6_27b.dataset import read_file
from harness.benchmarks.qwen3_6_27b.trajectories import Trajectory
from harness.engines.start import EngineSpec
from harness.errors import ConfigError, DatasetError
from harness.serve.bridge import DATASET
from harness.serve.piece_codec import PieceCodec
from harness.serve.plain_chat import TAGS

ANSWERS: Final = "recorded.npz"
"""The file of the script, as a scripted engine reads it."""
_REPEAT: Final = re.compile(r"__repeat_\d+$")
_TAGS: Final = tuple(tag for pair in TAGS.items() for tag in pair)
_SET: Final = ("answers", "length", "vocab_size")
"""Settings of the scripted engine that recorded answers take the place of."""


class RecordedChats:
    """The answers of some files, by row; ``codec`` has their text as ids. Raises DatasetError for a file of neither."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self._texts: list[str] = []
        self._turns: dict[str, range] = {}
        """The rows of each trajectory, one a turn."""
        self._begun: dict[bytes, str] = {}
        """Which trajectory begins with what the user says."""
        self._single: dict[bytes, int] = {}
        for path in paths:
            if _holds_trajectories(path):
                for trajectory in read_file(path).trajectories:
                    self._add(trajectory, path)
            else:
                self._read_chats(path)
        self.codec = PieceCodec(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def row(self, session: str | None, chat: Mapping[str, Any]) -> int | None:
        """Which answer a chat gets: its session's turn, or the one to these very messages and tools; None for none.

        A session is known by its trajectory's id, repeats too, and where nothing is said of it by its first question.
        """
        messages: Sequence[Mapping[str, Any]] = chat["messages"]
        found = self._single.get(_key(messages, chat.get("tools")))
        if found is not None and session is None:
            return found
        name = _REPEAT.sub("", session) if session else self._begun.get(_question(messages), "")
        turns = self._turns.get(name, range(0))
        turn = sum(message.get("role") == "assistant" for message in messages)
        return turns[turn] if turn < len(turns) else None

    def script(self, spec: EngineSpec, folder: Path) -> EngineSpec:
        """A scripted engine with these answers, which are written into ``folder``. Raises ConfigError."""
        if spec.kind != "scripted":
            raise ConfigError(f"the engine {spec.kind} answers by itself", expected="--engine=scripted with --recorded")
        taken = sorted(spec.settings.keys() & set(_SET))
        if taken:
            raise ConfigError(f"recorded answers and a script that sets {', '.join(taken)}", expected="one of the two")
        ids = [self.codec.encode(text) for text in self._texts]
        ends = np.cumsum([len(each) for each in ids], dtype=np.int64)
        tokens = np.fromiter((token for each in ids for token in each), np.int32, int(ends[-1]) if len(ends) else 0)
        np.savez(folder / ANSWERS, tokens=tokens, ends=ends)
        told = {"answers": {DATASET: str(folder / ANSWERS)}, "vocab_size": len(self.codec)}
        return EngineSpec(spec.kind, dict(spec.settings) | told)

    def _add(self, trajectory: Trajectory, path: Path) -> None:
        first = len(self._texts)
        where = f"{path}, conversation {trajectory.id!r}"
        for turn in trajectory.turns:
            if turn.recorded is not None:
                self._texts.append(_spelled(turn.recorded, f"{where}, turn {turn.number}"))
        self._turns[trajectory.id] = range(first, len(self._texts))
        self._begun[_question(trajectory.turns[0].said)] = trajectory.id

    def _read_chats(self, path: Path) -> None:
        for number, line in enumerate(_lines(path), 1):
            where = f"{path}, line {number}"
            try:
                found = orjson.loads(line)
                key, reply = _key(found["messages"], found.get("tools")), found["reply"]
            except (orjson.JSONDecodeError, TypeError, KeyError, AttributeError):
                raise _no_chat(where) from None
            self._single[key] = len(self._texts)
            self._texts.append(_spelled(reply, where))


def _lines(path: Path) -> list[bytes]:
    try:
        return [line for line in path.read_bytes().splitlines() if line.strip()]
    except OSError as error:
        raise DatasetError(f"the recorded chats cannot be read: {error.strerror}", where=path) from None


def _holds_trajectories(path: Path) -> bool:
    first = next(iter(_lines(path)), b"")
    try:
        found = orjson.loads(first)
    except orjson.JSONDecodeError:
        raise _no_chat(f"{path}, line 1") from None
    return isinstance(found, dict) and ("conversation_id" in found or "_type" in found)


def _no_chat(where: str) -> DatasetError:
    return DatasetError(
        "the line is no recorded chat",
        where=where,
        expected='rows of trajectories, or objects with "messages" and "reply"',
        mend="mend the file, or give another to --recorded",
    )


def _key(messages: object, tools: object) -> bytes:
    return orjson.dumps([messages, tools or None], option=orjson.OPT_SORT_KEYS)


def _question(messages: Sequence[Mapping[str, Any]]) -> bytes:
    first = next((message for message in messages if message.get("role") == "user"), {})
    return orjson.dumps(first.get("content"))


def _spelled(reply: object, where: str) -> str:
    """A reply as the plain chat reads it. Raises DatasetError for one that it would read otherwise."""
    try:
        thought, content, calls = _parts(reply)
    except (TypeError, KeyError, AttributeError):
        raise _no_chat(where) from None
    if any(tag in text for tag in _TAGS for text in (thought, content, *calls)):
        raise DatasetError("a recorded answer holds what is a tag to this server", where=where, expected=f"no {_TAGS}")
    told = f"<think>{thought}</think>" if thought else ""
    return told + content + "".join(f"<tool_call>{call}</tool_call>" for call in calls)


def _parts(reply: Any) -> tuple[str, str, list[str]]:  # noqa: ANN401
    thought, content = reply.get("reasoning_content") or reply.get("reasoning") or "", reply.get("content") or ""
    functions = [call["function"] for call in reply.get("tool_calls") or ()]
    calls = [json.dumps({"name": each["name"], "arguments": each["arguments"]}) for each in functions]
    if not (isinstance(thought, str) and isinstance(content, str)):
        raise TypeError
    return thought, content, calls
