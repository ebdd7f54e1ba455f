"""Replies to chats, read from a stream of deltas or from one JSON object, as OpenAI's chat completions have them."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import orjson

from harness.engines.base import NOT_TOLD, Finish
from harness.engines.http.calls import Calls
from harness.engines.http.dialects import error_of
from harness.engines.http.ids import check_end, check_model
from harness.engines.http.problems import ABORTED, BAD_ANSWER, CONTENT_FILTER, REFUSAL, SSE_ERROR, BadAnswer, quoted
from harness.engines.http.sse import DONE, EventStream
from harness.engines.replies import EMPTY

FINISHES: Final = {
    "stop": Finish.STOP,
    "length": Finish.LENGTH,
    "tool_calls": Finish.TOOL_CALLS,
    "function_call": Finish.TOOL_CALLS,
}
BROKEN_OFF: Final = {"content_filter": CONTENT_FILTER, "abort": ABORTED, "error": ABORTED, "cancelled": ABORTED}
"""Ends of a reply that is none, with the kind of failure that each is; what came before is no answer to a sample."""
REASONING: Final = ("reasoning_content", "reasoning")
"""Under which keys servers tell a chain of thought; one that has both says the same under both."""
MOST_TOKENS: Final = 2**31 - 1
"""A count beyond is none: no prompt has as many, and one that fits no column would end the engine with the reply."""
NO_ID: Final = -1
"""Stands for the first token, of which a chat tells text and no id."""


class Reply(NamedTuple):
    """A whole reply: the JSON of :class:`~harness.engines.base.Replies`, why it ended, how many tokens it has.

    ``prompt_tokens`` is how many the server counted in the prompt, ``cached_tokens`` how many of these it had from
    before. A count is NOT_TOLD where the server does not say.
    """

    data: bytes
    finish: Finish
    tokens: int
    prompt_tokens: int = NOT_TOLD
    cached_tokens: int = NOT_TOLD


class ChatReader:
    """Reads one reply. Raises BadAnswer from any of its methods for one that is none."""

    __slots__ = (
        "_cached_tokens",
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
        "_tokens",
        "_usage_optional",
        "first",
    )

    def __init__(self, model: str, cap: int, usage_optional: bool = False) -> None:
        """``cap`` is how many tokens were asked for at most: a server that goes beyond it did not read that.

        With ``usage_optional`` a reply is one, of NOT_TOLD tokens, though its server does not count them.
        """
        self.first: int | None = None
        """:data:`NO_ID` once something of the reply came."""
        self._model = model
        self._cap = cap
        self._usage_optional = usage_optional
        self._events = EventStream()
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._calls = Calls()
        self._refusal: list[str] = []
        self._tokens = self._prompt_tokens = self._cached_tokens = NOT_TOLD
        self._finish: str | None = None
        self._done = False

    def feed(self, data: bytes) -> None:
        """Takes a piece of a stream, of any size."""
        for event in self._events.events(data):
            if event == DONE:
                self._done = True
            else:
                self._said(event, "delta")

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

    def _said(self, text: bytes, key: str) -> None:
        try:
            content = orjson.loads(text)
            said = content.get
            if said("error") is not None or said("object") == "error":
                raise BadAnswer(SSE_ERROR, f"said in its stream: {quoted(error_of(content) or text)}")
            if said("model") != self._model:
                check_model(content.get("model"), self._model)
            if said("usage") is not None:
                self._count(content["usage"])
            if choices := said("choices"):
                choice = choices[0]
                if finish := choice.get("finish_reason"):
                    self._finish = finish
                if delta := choice.get(key):
                    self._take(delta)
        except (ValueError, TypeError, AttributeError, KeyError, IndexError):
            raise BadAnswer(BAD_ANSWER, f"said what no chat completion says: {quoted(text)}") from None

    def _count(self, usage: dict[str, Any]) -> None:
        """What the server counts; where it does so more than once, the last holds."""
        details = usage.get("prompt_tokens_details") or {}
        self._tokens = _count(usage.get("completion_tokens"), self._tokens)
        self._prompt_tokens = _count(usage.get("prompt_tokens"), self._prompt_tokens)
        self._cached_tokens = _count(details.get("cached_tokens"), self._cached_tokens)

    def _take(self, delta: dict[str, Any]) -> None:
        reasoned = False
        for key, told in delta.items():  # mostly one or two
            if not told or key == "role":
                continue
            if key == "content":
                self._content.append(_text(told))
            elif key in REASONING:
                if reasoned:
                    continue
                self._reasoning.append(_text(told))
                reasoned = True
            elif key == "tool_calls":
                self._calls.take(told)
            elif key == "function_call":  # the older way, of one call alone
                self._calls.take([{"function": told}])
            else:
                if key == "refusal":
                    self._refusal.append(_text(told))
                continue
            self.first = NO_ID

    def _reply(self) -> Reply:
        finish = self._finish_of()
        if self._tokens == NOT_TOLD and not self._usage_optional:
            raise BadAnswer(BAD_ANSWER, "did not say how many tokens the reply has")
        if self._tokens > self._cap:
            raise BadAnswer(BAD_ANSWER, f"answered with {self._tokens} tokens where {self._cap} were the most")
        reply: dict[str, object] = {"content": "".join(self._content)}
        if self._reasoning:
            reply["reasoning"] = "".join(self._reasoning)
        if self._calls:
            reply["tool_calls"] = self._calls.told()
            if finish is Finish.STOP:
                finish = Finish.TOOL_CALLS  # some servers say "stop" where a call was forced
        if not any(reply.values()):
            raise BadAnswer(EMPTY, "answered with no content, no reasoning and no tool calls")
        self._content, self._reasoning = [], []
        # No tokens in what is not empty: a field that was filled in, and no count.
        tokens = NOT_TOLD if self._usage_optional and not self._tokens else self._tokens
        return Reply(orjson.dumps(reply), finish, tokens, self._prompt_tokens or NOT_TOLD, self._cached_tokens)

    def _finish_of(self) -> Finish:
        """Why the reply ended. BadAnswer where that is no end of a reply."""
        if self._refusal:
            raise BadAnswer(REFUSAL, f"refused: {quoted(''.join(self._refusal).encode())}")
        if self._finish is None:
            raise BadAnswer(BAD_ANSWER, "did not say why the reply ended: it has no finish_reason")
        if self._finish in BROKEN_OFF:
            raise BadAnswer(BROKEN_OFF[self._finish], f"says that the reply ended by {self._finish!r}")
        if self._finish not in FINISHES:
            raise BadAnswer(BAD_ANSWER, f"says that the reply ended by {self._finish!r}")
        return FINISHES[self._finish]


def _count(told: object, before: int) -> int:
    if told is None:
        return before
    if not isinstance(told, int) or not 0 <= told <= MOST_TOKENS:
        raise ValueError
    return told


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value
