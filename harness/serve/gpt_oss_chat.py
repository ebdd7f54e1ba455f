"""gpt-oss's chat: harmony, rendered and parsed by openai-harmony.

An answer that is not harmony, as a stand-in's random weights give it, is told as its text.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Final

from harness.benchmarks.gpt_oss_120b import vocab
from harness.serve.chat_words import Part, Reader, Word, text_of, tools_of
from harness.serve.refusal import Refusal
from harness.serve.requests import ChatMessage, ChatRequest
from harness.serve.texts import GptOssCodec

FUNCTIONS: Final = "functions."
CHANNEL: Final = 200_005
"""``<|channel|>``, with which every answer in harmony begins."""
_PARTS: Final = {"final": Part.CONTENT, "analysis": Part.REASONING, "commentary": Part.CONTENT}


class GptOssChat:
    """See the module. Raises MissingError where openai-harmony or its vocabulary is not to be had."""

    gpt_oss = True

    def __init__(self) -> None:
        self._codec = GptOssCodec()
        encoding: Any = self._codec.encoding
        self.stop_ids: tuple[int, ...] = tuple(sorted(encoding.stop_tokens_for_assistant_actions()))

    def prompt(self, request: ChatRequest) -> list[int]:
        """The system text with the effort, what the developer says and offers, the messages."""
        import openai_harmony as harmony

        if not request.messages:
            raise Refusal("there are no messages")
        system = harmony.SystemContent.new()
        if request.reasoning_effort is not None:
            system = system.with_reasoning_effort(harmony.ReasoningEffort(request.reasoning_effort.capitalize()))
        said = [harmony.Message.from_role_and_content(harmony.Role.SYSTEM, system), *_developer(request)]
        names: dict[str, str] = {}
        for message in request.messages:
            if message.role not in {"system", "developer"}:
                said += _messages(message, names)
        conversation = harmony.Conversation.from_messages(said)
        return vocab.encoding().render_conversation_for_completion(conversation, harmony.Role.ASSISTANT)

    def chat(self, request: ChatRequest, session: str | None = None) -> None:
        """The engine gets ids."""

    def reader(self, request: ChatRequest) -> Reader:
        """For one answer."""
        return GptOssReader(self._codec, allows_calls=bool(tools_of(request)))


def _developer(request: ChatRequest) -> list[Any]:
    import openai_harmony as harmony

    instructions = "\n".join(text_of(each) for each in request.messages if each.role in {"system", "developer"})
    tools = tools_of(request)
    if not instructions and not tools:
        return []
    content = harmony.DeveloperContent.new()
    if instructions:
        content = content.with_instructions(instructions)
    if tools:
        described = [
            harmony.ToolDescription.new(each["name"], each["description"] or "", each["parameters"]) for each in tools
        ]
        content = content.with_function_tools(described)
    return [harmony.Message.from_role_and_content(harmony.Role.DEVELOPER, content)]


def _messages(message: ChatMessage, names: dict[str, str]) -> list[Any]:
    """One message of OpenAI's as harmony's; ``names`` collects which function each call was of."""
    import openai_harmony as harmony

    text = text_of(message)
    if message.role == "user":
        return [harmony.Message.from_role_and_content(harmony.Role.USER, text)]
    if message.role == "tool":
        name = names.get(message.tool_call_id or "", message.name or "unknown")
        author = harmony.Author(role=harmony.Role.TOOL, name=FUNCTIONS + name)
        answer = harmony.Message.from_author_and_content(author, text)
        return [answer.with_channel("commentary").with_recipient("assistant")]
    if message.role != "assistant":
        raise Refusal(f"a message of the role {message.role!r} has no place in gpt-oss's chat")
    said = []
    if reasoning := message.reasoning or message.reasoning_content:
        said.append(_assistant(reasoning, "analysis"))
    if text:
        said.append(_assistant(text, "final"))
    for call in message.tool_calls or ():
        name, arguments = _call_of(call)
        names[str(call.get("id"))] = name
        told = _assistant(arguments, "commentary").with_recipient(FUNCTIONS + name)
        said.append(told.with_content_type("<|constrain|>json"))
    return said


def _assistant(text: str, channel: str) -> Any:  # noqa: ANN401 - openai-harmony has no types here
    import openai_harmony as harmony

    return harmony.Message.from_role_and_content(harmony.Role.ASSISTANT, text).with_channel(channel)


def _call_of(call: dict[str, Any]) -> tuple[str, str]:
    function = call.get("function")
    if not isinstance(function, dict) or not isinstance(function.get("name"), str):
        raise Refusal("a tool call has no function with a name")
    arguments = function.get("arguments", "{}")
    return function["name"], arguments if isinstance(arguments, str) else json.dumps(arguments)


class GptOssReader:
    """Parses harmony; a call of a function that nobody offered is left out, as the server does."""

    def __init__(self, codec: GptOssCodec, *, allows_calls: bool) -> None:
        import openai_harmony as harmony

        self._error: type[Exception] = harmony.HarmonyError
        self._parser: Any = harmony.StreamableParser(codec.encoding, harmony.Role.ASSISTANT)
        self._decoder = codec.decoder(skip_special=True)
        self._allows_calls = allows_calls
        self._called: str | None = None
        self._seen = False
        self._is_harmony = True

    def feed(self, ids: Sequence[int], *, last: bool) -> list[Word]:
        """What these ids add."""
        words: list[Word] = []
        for place, token in enumerate(ids):
            self._is_harmony = self._is_harmony and self._takes(token)
            if not self._is_harmony:
                return words + self._as_text(ids[place:], last=last)
            words += self._word()
        return words if self._is_harmony else words + self._as_text((), last=last)

    def _takes(self, token: int) -> bool:
        if not self._seen:
            self._seen = True
            if token != CHANNEL:
                return False
        try:
            self._parser.process(token)
        except self._error:
            return False
        return True

    def _word(self) -> list[Word]:
        """What the token that was parsed last has said."""
        delta, recipient = self._parser.last_content_delta, self._parser.current_recipient
        if not delta:
            if recipient is None:
                self._called = None
            return []
        if recipient is None or not recipient.startswith(FUNCTIONS):
            return [Word(_PARTS.get(self._parser.current_channel, Part.CONTENT), delta)]
        if not self._allows_calls:
            return []
        begins = [] if self._called == recipient else [Word(Part.CALL, recipient.removeprefix(FUNCTIONS))]
        self._called = recipient
        return [*begins, Word(Part.ARGUMENTS, delta)]

    def _as_text(self, ids: Sequence[int], *, last: bool) -> list[Word]:
        text = self._decoder.feed(ids, last=last)
        return [Word(Part.CONTENT, text)] if text else []
