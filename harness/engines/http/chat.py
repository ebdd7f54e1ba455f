"""Replies to chats, read from a stream of deltas or from one JSON object, as OpenAI's chat completions have them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import orjson

from harness.engines.base import Finish
from harness.engines.http.dialects import error_of
from harness.engines.http.ids import check_end, check_model
from harness.engines.http.problems import ABORTED, BAD_ANSWER, CONTENT_FILTER, REFUSAL, SSE_ERROR, BadAnswer, quoted
from harness.engines.http.sse import DONE, EventStream

FINISHES: Final = {"stop": Finish.STOP, "length": Finish.LENGTH, "tool_calls": Finish.TOOL_CALLS}
BROKEN_OFF: Final = {"content_filter": CONTENT_FILTER, "abort": ABORTED, "error": ABORTED, "cancelled": ABORTED}
"""Ends of a reply that is none, with the kind of failure that each is; what came before is no answer to a sample."""
REASONING: Final = ("reasoning_content", "reasoning")
"""Under which keys servers tell a chain of thought; one that has both says the same under both."""
NO_ID: Final = -1
"""Stands for the first token, of which a chat tells text and no id."""


class Reply(NamedTuple):
    """A whole reply: the JSON of :class:`~harness.engines.base.Replies`, why it ended, how many tokens it has.

    ``prompt_tokens`` is how many the server counted in the prompt, 0 where it does not say.
    """

    data: bytes
    finish: Finish
    tokens: int
    prompt_tokens: int = 0


class ChatReader:
    """Reads one reply. Raises BadAnswer from any of its methods for one that is none."""

    __slots__ = (
        "_calls",
        "_cap",
        "_content",
        "_done",
        "_events",
        "_finish",
        "_model",
        "_prompt_tokens",
        "_reasoning",
        "_refusal",
        "_usage",
        "first",
    )

    def __init__(self, model: str, cap: int) -> None:
        """``cap`` is how many tokens were asked for at most: a server that goes beyond it did not read that."""
        self.first: int | None = None
        """:data:`NO_ID` once something of the reply came."""
        self._model = model
        self._cap = cap
        self._events = EventStream()
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls: dict[int, dict[str, Any]] = {}
        self._refusal: list[str] = []
        self._usage: int | None = None
        self._prompt_tokens = 0
        self._finish: str | None = None
        self._done = False

    def feed(self, data: bytes) -> None:
        """Takes a piece of a stream, of any size."""
        for event in self._events.events(data):
            self._event(event)

    def catch_up(self) -> None:
        """Nothing is left to be parsed."""

    def finish(self) -> Reply:
        """The reply, once the stream is at its end."""
        if not self._done:
            check_end(self._events.rest(), "")
        return self._reply()

    def whole(self, body: bytes) -> Reply:
        """The reply that a single JSON object holds."""
        self._said(body, "message")
        return self._reply()

    def _event(self, event: bytes) -> None:
        if event == DONE:
            self._done = True
        else:
            self._said(event, "delta")

    def _said(self, text: bytes, key: str) -> None:
        try:
            content = orjson.loads(text)
            error = error_of(content)
            if error is not None:
                raise BadAnswer(SSE_ERROR, f"said in its stream: {quoted(error)}")
            check_model(content.get("model"), self._model)
            usage = content.get("usage")
            if usage is not None and usage.get("completion_tokens") is not None:
                self._usage = int(usage["completion_tokens"])
                self._prompt_tokens = int(usage.get("prompt_tokens") or 0)
            if content.get("choices"):
                choice = content["choices"][0]
                self._finish = choice.get("finish_reason") or self._finish
                self._take(choice.get(key) or {})
        except (ValueError, TypeError, AttributeError, KeyError, IndexError):
            raise BadAnswer(BAD_ANSWER, f"said what no chat completion says: {quoted(text)}") from None

    def _take(self, delta: dict[str, Any]) -> None:
        content = delta.get("content")
        reasoning = next((delta[key] for key in REASONING if delta.get(key)), None)
        calls = delta.get("tool_calls")
        if content:
            self._content.append(_text(content))
        if reasoning:
            self._reasoning.append(_text(reasoning))
        if delta.get("refusal"):
            self._refusal.append(_text(delta["refusal"]))
        for place, call in enumerate(calls or ()):
            self._call(int(call.get("index", place)), call)
        if content or reasoning or calls:
            self.first = NO_ID

    def _call(self, index: int, part: dict[str, Any]) -> None:
        call = self._calls.setdefault(
            index, {"id": None, "type": "function", "function": {"name": None, "arguments": ""}}
        )
        function = part.get("function") or {}
        call["id"] = call["id"] or part.get("id")
        call["function"]["name"] = call["function"]["name"] or function.get("name")
        call["function"]["arguments"] += function.get("arguments") or ""

    def _reply(self) -> Reply:
        if self._refusal:
            raise BadAnswer(REFUSAL, f"refused: {quoted(''.join(self._refusal).encode())}")
        if self._finish in BROKEN_OFF:
            raise BadAnswer(BROKEN_OFF[self._finish], f"says that the reply ended by {self._finish!r}")
        if self._finish not in FINISHES:
            raise BadAnswer(BAD_ANSWER, f"says that the reply ended by {self._finish!r}")
        if self._usage is None:
            raise BadAnswer(BAD_ANSWER, "did not say how many tokens the reply has")
        if self._usage > self._cap:
            raise BadAnswer(BAD_ANSWER, f"answered with {self._usage} tokens where {self._cap} were the most")
        reply: dict[str, object] = {"content": "".join(self._content)}
        if self._reasoning:
            reply["reasoning"] = "".join(self._reasoning)
        if self._calls:
            reply["tool_calls"] = [call for _, call in sorted(self._calls.items())]
        data, finish = orjson.dumps(reply), FINISHES[self._finish]
        self._content, self._reasoning = [], []
        if self._calls and finish is Finish.STOP:
            finish = Finish.TOOL_CALLS  # some servers say "stop" where a call was forced
        return Reply(data, finish, self._usage, self._prompt_tokens)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
