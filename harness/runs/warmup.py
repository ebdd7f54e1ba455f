"""Sends an engine requests from outside the data set before anything is measured, and times how fast it answers."""

from __future__ import annotations

import time
from dataclasses import dataclass

from harness.engines.base import (
    REPLICA_DIED,
    Answers,
    Engine,
    Failure,
    Int32Array,
    PromptTable,
    Replies,
    Requests,
    Sampling,
    TokenEvents,
    Workload,
)
from harness.errors import EngineDied, RunBroke
from harness.ledger.record import Warmup

DATASET = "warm-up"
_POLL_S = 1.0


@dataclass(slots=True)
class Answered:
    """What an engine answered to a handful of requests, in the order they were asked."""

    answers: dict[int, Answers]
    done_ns: list[int]
    seconds: float

    def token_ids(self, number: int) -> Int32Array:
        """Token ids of one answer, int32."""
        event = self.answers[number]
        i = list(event.numbers).index(number)
        begin = event.ends[i - 1] if i else 0
        return event.tokens[begin : event.ends[i]]


def ask(engine: Engine, prompts: PromptTable, sampling: Sampling, *, dataset: str, patience_s: float) -> Answered:
    """Asks all prompts at once and waits for every answer.

    RunBroke where one fails, EngineDied where that is because a replica died, or nothing comes for ``patience_s``.
    """
    numbers = range(len(prompts))
    started = time.monotonic_ns()
    engine.submit(Requests(Workload(dataset, sampling, TokenEvents.NONE), numbers, numbers, prompts, numbers))
    replies = Answered({}, [], 0.0)
    last = time.monotonic()
    while len(replies.answers) < len(prompts):
        for event in engine.poll(_POLL_S):
            last = time.monotonic()
            if isinstance(event, Failure):
                broke = EngineDied if event.kind == REPLICA_DIED else RunBroke
                raise broke(f"the engine failed a {dataset} request ({event.kind}): {event.message}")
            if isinstance(event, Replies):
                raise RunBroke(f"the engine answered a {dataset} request with a chat, and it asked for token ids")
            if isinstance(event, Answers):
                replies.answers.update(dict.fromkeys(event.numbers, event))
                replies.done_ns.extend(event.done_ns)
        if time.monotonic() - last > patience_s:
            raise EngineDied(
                f"the engine answered {len(replies.answers)} of {len(prompts)} {dataset} requests, "
                f"then nothing for {patience_s:.0f} s"
            )
    replies.seconds = (max(replies.done_ns, default=started) - started) / 1e9
    return replies


def warm_up(engine: Engine, prompts: PromptTable, sampling: Sampling, *, patience_s: float) -> Warmup:
    """Warms an engine up and says at which rate it answered (samples a second, see :func:`steady_rate`)."""
    replies = ask(engine, prompts, sampling, dataset=DATASET, patience_s=patience_s)
    tokens = sum(len(replies.token_ids(number)) for number in replies.answers)
    return Warmup(
        requests=len(prompts),
        answers=len(replies.answers),
        output_tokens=tokens,
        seconds=replies.seconds,
        samples_per_s=steady_rate(replies.done_ns, replies.seconds),
    )


def steady_rate(done_ns: list[int], seconds: float) -> float:
    """Answers a second once the engine is full: those after the first quarter, over the time they took.

    The ramp at the start would make a short warm-up look slower than the run that follows. 0 where nothing was asked.
    """
    done = sorted(done_ns)
    if not done:
        return 0.0
    whole = len(done) / seconds if seconds > 0 else 0.0
    start = done[(len(done) - 1) // 4]
    after = [at for at in done if at > start]
    steady = len(after) * 1e9 / (done[-1] - start) if after else 0.0
    return max(whole, steady)
