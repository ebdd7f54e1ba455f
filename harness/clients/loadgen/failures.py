"""What makes an answer a failed sample, and what an engine tells that ends a test."""

from __future__ import annotations

from typing import Final

from harness.benchmarks.base import Logged
from harness.engines.base import Answers, Failure, Replies
from harness.engines.replies import EMPTY
from harness.errors import RunBroke

SAYS_NOTHING: Final = "a reply without content, reasoning or tool calls"


def too_short(number: int, length: int, wanted: int) -> Failure:
    """An answer of fewer tokens than the benchmark's metrics need."""
    return Failure(number, "too_short", f"an answer of {length} tokens; LoadGen's token metrics need {wanted}")


def empty(number: int, logged: Logged) -> Failure:
    """A reply to a chat that has nothing of what is logged, however many tokens it is said to have."""
    return Failure(number, EMPTY, "a reply without content" if logged == "content" else SAYS_NOTHING)


def not_outstanding(number: int) -> RunBroke:
    """An answer that nobody waits for: completing a sample twice would be an error inside LoadGen."""
    return RunBroke(f"the engine answered request {number} twice, or was never asked it")


def another_kind(event: Answers | Replies) -> RunBroke:
    """Chats in place of token ids, or the other way about."""
    came, asked = ("a chat", "token ids") if isinstance(event, Replies) else ("token ids", "chats")
    return RunBroke(f"the engine answered with {came}, and this leg asked for {asked}")
