"""Text to harmony prompts, as the reference's data set has them: token ids, the effort in the system text."""

from __future__ import annotations

from typing import Literal, TypeAlias

from harness.benchmarks.gpt_oss_120b import vocab

Effort: TypeAlias = Literal["low", "high"]

CONVERSATION_DATE = "2025-08-05"
"""Stands in the system text of every prompt made here, so that the same text has the same ids on any day."""


def render(text: str, effort: Effort) -> list[int]:
    """Token ids of a conversation of one user message, up to where the assistant's answer begins.

    Raises MissingError where openai-harmony or its vocabulary is not to be had.
    """
    encoding = vocab.encoding()
    import openai_harmony as harmony

    system = (
        harmony.SystemContent.new()
        .with_reasoning_effort(harmony.ReasoningEffort(effort.capitalize()))
        .with_conversation_start_date(CONVERSATION_DATE)
    )
    conversation = harmony.Conversation.from_messages(
        [
            harmony.Message.from_role_and_content(harmony.Role.SYSTEM, system),
            harmony.Message.from_role_and_content(harmony.Role.USER, text),
        ]
    )
    return encoding.render_conversation_for_completion(conversation, harmony.Role.ASSISTANT)
