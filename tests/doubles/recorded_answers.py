"""What was recorded of trajectories, as an OpenAI-style server tells it: whole, or in a stream of deltas."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import orjson

from harness.benchmarks.qwen3_6_27b import messages
from harness.benchmarks.qwen3_6_27b.trajectories import Trajectory

BYTES_A_TOKEN: Final = 4
"""Of JSON: how long prompts and answers are said to be, by servers that have no tokenizer."""
DONE: Final = b"data: [DONE]\n\n"
LAST_CHUNK: Final = b"0\r\n\r\n"
STREAM_HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n"
)
WHOLE_HEAD: Final = b"HTTP/1.1 %d OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
PIECES: Final = 3
REPEAT: Final = re.compile(r"__repeat_\d+$")


class Kind(enum.Enum):
    """What goes wrong with a turn; *half way* is behind half of a stream's events, or of a whole answer's bytes."""

    TOO_MANY = "429"
    INTERNAL = "500"
    UNAVAILABLE = "503"
    CLOSE = "close"
    """The connection is closed before anything is said."""
    HANG = "hang"
    """Nothing is ever said."""
    STALL = "stall"
    """Half way nothing more comes; the connection stays."""
    CUT = "cut"
    """Half way the connection is closed (FIN), between two events."""
    HALF_FRAME = "half_frame"
    """As ``cut``, within an event."""
    RESET = "reset"
    """Half way the connection is reset (RST)."""
    SSE_ERROR = "sse_error"
    """Half way an event tells an error, and the stream ends as if all were well; a whole answer is a 500."""
    EMPTY = "empty"
    """The answer has neither content nor reasoning nor calls."""
    NO_FINISH = "no_finish"
    """The answer is whole, and nothing says why it ended."""
    NO_DONE = "no_done"
    """The stream ends without ``[DONE]``, all else told: it may have been cut there."""
    GARBLED = "garbled"
    """Half way an event is no JSON."""


BROKEN_OFF: Final = frozenset({Kind.STALL, Kind.CUT, Kind.HALF_FRAME, Kind.RESET})
"""Half way through an answer nothing more comes of it."""
CLOSING: Final = frozenset({Kind.CLOSE, Kind.CUT, Kind.HALF_FRAME, Kind.RESET})
"""The connection ends."""
STATUS: Final = {Kind.TOO_MANY: 429, Kind.INTERNAL: 500, Kind.UNAVAILABLE: 503}


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind, and where: in turn ``turn`` (from 0) of the trajectory ``id``, or of any; so many ``times`` or always."""

    kind: Kind
    turn: int
    id: str | None = None
    times: int | None = None

    @classmethod
    def parse(cls, text: str) -> Fault:
        """``KIND@TURN``, or ``KIND@TURN:ID``; ValueError for another text."""
        kind, _, where = text.partition("@")
        turn, _, name = where.partition(":")
        return cls(Kind(kind), int(turn), name or None)


@dataclass(frozen=True, slots=True)
class Style:
    """How answers are told: how many pieces of each text and of each call's arguments, CRLF or LF, under which key
    reasoning stands; ``details`` is whether usage says how much of a prompt was cached."""

    pieces: int = PIECES
    crlf: bool = False
    reasoning_key: str = "reasoning_content"
    details: bool = True


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a request says of how it is to be answered."""

    model: str
    stream: bool
    usage: bool
    cap: int | None


@dataclass(frozen=True, slots=True)
class Answer:
    """A recorded message, how long it and its prompt are said to be, and the trajectory and place that it is of."""

    id: str
    turn: int
    message: Mapping[str, Any]
    prompt_tokens: int
    tokens: int

    @property
    def finish(self) -> str:
        """As a server says it."""
        return "tool_calls" if self.message.get("tool_calls") else "stop"


class Recorded:
    """The answers to all turns of some trajectories, and to single chats.

    ``chats`` are objects with ``messages``, maybe with ``tools``, and the message that answers each: for requests that
    belong to no trajectory.
    """

    def __init__(
        self,
        trajectories: Iterable[Trajectory],
        chats: Iterable[tuple[Mapping[str, Any], Mapping[str, Any]]] = (),
    ) -> None:
        self._answers = {each.id: list(_answers(each)) for each in trajectories}
        self._ids = list(self._answers)
        self._first = {orjson.dumps(each.turns[0].said[0]["content"]): each.id for each in trajectories}
        self._chats = {
            _key(chat): Answer(f"chat-{place}", 0, message, _tokens(_size(chat)), _tokens(_size(message)))
            for place, (chat, message) in enumerate(chats)
        }

    def of_session(self, session: str, turn: int) -> Answer | None:
        """By the value of X-Session-ID: an id, with or without the number of a repeat, or the row of a library."""
        name = REPEAT.sub("", session)
        if name not in self._answers and session.isdecimal() and self._ids:
            name = self._ids[int(session) % len(self._ids)]
        answers = self._answers.get(name, ())
        return answers[turn] if turn < len(answers) else None

    def of_chat(self, chat: Mapping[str, Any]) -> Answer | None:
        """Where a request names no session: by its messages and tools, or as a turn by the first question."""
        asked: Sequence[Mapping[str, Any]] = chat.get("messages", ())
        found = self._chats.get(_key(chat))
        user = next((each for each in asked if each.get("role") == "user"), None)
        if found is None and user is not None and (name := self._first.get(orjson.dumps(user.get("content")))):
            return self.of_session(name, sum(each.get("role") == "assistant" for each in asked))
        return found


def read_chats(path: Path) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Chats and their answers, an object a line with ``messages``, ``reply`` and maybe ``tools``."""
    with path.open("rb") as lines:
        for line in lines:
            chat = orjson.loads(line)
            reply = chat.pop("reply")
            yield chat, reply


def _key(chat: Mapping[str, Any]) -> bytes:
    return orjson.dumps([chat.get("messages"), chat.get("tools") or None], option=orjson.OPT_SORT_KEYS)


def _answers(trajectory: Trajectory) -> Iterator[Answer]:
    """Turns that nothing was recorded of have no answer: they can only be last."""
    system = [messages.of_system(trajectory.system)] if trajectory.system else []
    size = _size([*system, trajectory.turns[0].asked.get("tools")])
    for place, turn in enumerate(trajectory.turns):
        size += _size(turn.said)
        if turn.recorded is not None:
            told = _size(turn.recorded)
            yield Answer(trajectory.id, place, turn.recorded, _tokens(size), _tokens(told))
            size += told


def _size(content: object) -> int:
    return len(orjson.dumps(content))


def _tokens(size: int) -> int:
    return max(1, size // BYTES_A_TOKEN)


# -- what goes over the line -------------------------------------------------------------------------------------------


def usage(answer: Answer, cached: int, wanted: Wanted, style: Style) -> dict[str, object]:
    """The counts. An answer is told whole even where it is longer than was asked for; its count never is."""
    tokens = answer.tokens if wanted.cap is None else min(answer.tokens, wanted.cap)
    counts: dict[str, object] = {
        "prompt_tokens": answer.prompt_tokens,
        "total_tokens": answer.prompt_tokens + tokens,
        "completion_tokens": tokens,
    }
    return counts | ({"prompt_tokens_details": {"cached_tokens": cached}} if style.details else {})


def whole(answer: Answer, cached: int, wanted: Wanted, style: Style, fault: Kind | None) -> bytes:
    """The response in one piece, head and all."""
    said = {} if fault is Kind.EMPTY else answer.message
    message: dict[str, object] = {"role": "assistant", "content": said.get("content")}
    if thought := _thought(said):
        message[style.reasoning_key] = thought
    message["tool_calls"] = _calls(said)
    choice = {"index": 0, "message": message, "finish_reason": _finish(answer, fault)}
    body = orjson.dumps(
        _head(answer, wanted, "chat.completion") | {"choices": [choice], "usage": usage(answer, cached, wanted, style)}
    )
    return WHOLE_HEAD % (200, len(body)) + body


def events(answer: Answer, cached: int, wanted: Wanted, style: Style, fault: Kind | None) -> list[bytes]:
    """The events of a stream, [DONE] the last of them."""
    head = _head(answer, wanted, "chat.completion.chunk")
    told = [
        head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in _deltas({} if fault is Kind.EMPTY else answer.message, style)
    ]
    if fault is not Kind.NO_FINISH:
        told.append(head | {"choices": [{"index": 0, "delta": {}, "finish_reason": _finish(answer, fault)}]})
    if wanted.usage:
        told.append(head | {"choices": [], "usage": usage(answer, cached, wanted, style)})
    found = [b"data: " + orjson.dumps(each) + b"\n\n" for each in told]
    return _ended(found, fault)


def _ended(found: list[bytes], fault: Kind | None) -> list[bytes]:
    half = len(found) // 2
    if fault is Kind.SSE_ERROR:
        return [
            *found[:half],
            b"data: " + orjson.dumps({"error": _error("a fault that was asked for", 500)}) + b"\n\n",
            DONE,
        ]
    if fault is Kind.GARBLED:
        return [*found[:half], b'data: {"choices": [{"delta"\n\n', *found[half:], DONE]
    return found if fault is Kind.NO_DONE else [*found, DONE]


def streamed(told: Sequence[bytes], style: Style, fault: Kind | None) -> bytes:
    """A response with these events, a chunk each, up to where a fault breaks it off."""
    if style.crlf:
        told = [each.replace(b"\n", b"\r\n") for each in told]
    chunks = [b"%x\r\n%b\r\n" % (len(each), each) for each in told]
    if fault in BROKEN_OFF:
        half = len(chunks) // 2
        more = chunks[half][: len(chunks[half]) // 2] if fault is Kind.HALF_FRAME else b""
        return b"".join((STREAM_HEAD, *chunks[:half], more))
    return b"".join((STREAM_HEAD, *chunks, LAST_CHUNK))


def refused(status: int, words: str) -> bytes:
    """A response that tells an error."""
    body = orjson.dumps({"error": _error(words, status)})
    head = WHOLE_HEAD % (status, len(body))
    return head.replace(b"OK", b"Refused", 1) + body


def _error(words: str, status: int) -> dict[str, object]:
    return {"message": words, "type": "server_error", "param": None, "code": status}


def _head(answer: Answer, wanted: Wanted, kind: str) -> dict[str, object]:
    return {
        "id": f"chatcmpl-{answer.id}-{answer.turn}",
        "object": kind,
        "created": 1_790_000_000,
        "model": wanted.model,
    }


def _finish(answer: Answer, fault: Kind | None) -> str | None:
    return {Kind.EMPTY: "stop", Kind.NO_FINISH: None}.get(fault, answer.finish) if fault else answer.finish


def _thought(said: Mapping[str, Any]) -> str:
    return str(said.get("reasoning_content") or said.get("reasoning") or "")


def _calls(said: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [
        dict(call, function=dict(call["function"], arguments=_arguments(call))) for call in said.get("tool_calls", ())
    ]


def _arguments(call: Mapping[str, Any]) -> str:
    told = call["function"]["arguments"]
    return told if isinstance(told, str) else orjson.dumps(told).decode()


def _deltas(said: Mapping[str, Any], style: Style) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for told, text in ((style.reasoning_key, _thought(said)), ("content", said.get("content") or "")):
        for piece in _pieces(text, style.pieces):
            yield {told: piece}
    for index, call in enumerate(_calls(said)):
        function = call["function"]
        yield {"tool_calls": [{**call, "index": index, "function": {**function, "arguments": ""}}]}
        for piece in _pieces(function["arguments"], style.pieces):
            yield {"tool_calls": [{"index": index, "function": {"arguments": piece}}]}


def _pieces(text: str, many: int) -> Iterator[str]:
    size = max(1, -(-len(text) // many))
    return (text[start : start + size] for start in range(0, len(text), size))
