"""Sends an engine requests from outside the data set before anything is measured, and times how fast it answers."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from harness.benchmarks.base import Chats, Logged, Questions
from harness.engines.base import (
    REPLICA_DIED,
    Answers,
    Engine,
    Failure,
    PromptTable,
    Replies,
    Requests,
    Sampling,
    TokenEvents,
    Workload,
)
from harness.engines.bodies import BodyStore, encoded
from harness.engines.replies import contents, wholes
from harness.errors import EngineDied, RunBroke
from harness.ledger.record import Warmup

DATASET = "warm-up"
_POLL_S = 1.0


@dataclass(slots=True)
class Answered:
    """What an engine answered to a handful of requests, by their place in the questions: ``data`` as it is logged
    (token ids as int32, of a chat what ``logged`` says), how many ``tokens`` each has, when they were done.
    """

    logged: Logged = "content"
    data: dict[int, bytes] = field(default_factory=dict)
    tokens: dict[int, int] = field(default_factory=dict)
    done_ns: list[int] = field(default_factory=list)
    seconds: float = 0.0

    def add(self, event: Answers | Replies) -> None:
        """Takes what came."""
        if isinstance(event, Replies):
            told, tokens = wholes(event) if self.logged == "reply" else contents(event), event.tokens
        else:
            told = [event.tokens[end - size : end].tobytes() for end, size in _sizes(event)]
            tokens = [size for _, size in _sizes(event)]
        self.data.update(zip(event.numbers, told, strict=True))
        self.tokens.update(zip(event.numbers, tokens, strict=True))
        self.done_ns.extend(event.done_ns)


def _sizes(event: Answers) -> Iterator[tuple[int, int]]:
    begin = 0
    for end in event.ends:
        yield end, end - begin
        begin = end


def ask(
    engine: Engine,
    questions: Questions,
    sampling: Sampling,
    *,
    dataset: str,
    patience_s: float,
    work: Path,
    copies: int = 1,
    logged: Logged = "content",
) -> Answered:
    """Asks all questions at once and waits for every answer. Chats lie in a file in ``work`` meanwhile.

    Each is asked ``copies`` times in a row: request i is of question ``i // copies``. RunBroke where one fails,
    EngineDied where that is because a replica died, or nothing comes for ``patience_s``.
    """
    with _requests(questions, sampling, dataset, work, copies, logged) as requests:
        return _asked(engine, requests, dataset, patience_s, Answered(logged))


@contextmanager
def _requests(
    questions: Questions, sampling: Sampling, dataset: str, work: Path, copies: int, logged: Logged
) -> Iterator[Requests]:
    numbers = range(copies * len(questions))
    rows = [number // copies for number in numbers]
    if isinstance(questions, PromptTable):
        yield Requests(Workload(dataset, sampling, TokenEvents.NONE), numbers, rows, questions, rows)
        return
    path = _stored(questions, dataset, work)
    try:
        bodies, uncounted = str(path.absolute()), logged == "reply"
        workload = Workload(dataset, sampling, TokenEvents.NONE, bodies, usage_optional=uncounted)
        yield Requests(workload, numbers, rows, PromptTable.empty(0), ())
    finally:
        path.unlink(missing_ok=True)


def _stored(chats: Chats, dataset: str, work: Path) -> Path:
    """A store of chats. An engine may keep one open by its name, so that other chats must have another."""
    bodies = [encoded(body, f"{dataset}, chat {i}") for i, body in enumerate(chats)]
    digest = hashlib.sha256(b"\n".join(bodies)).hexdigest()
    path = work / f"{dataset}-{digest[:16]}.chats"
    BodyStore.write(path, bodies)
    return path


def _asked(engine: Engine, requests: Requests, dataset: str, patience_s: float, answered: Answered) -> Answered:
    started = time.monotonic_ns()
    engine.submit(requests)
    last = time.monotonic()
    while len(answered.data) < len(requests):
        for event in engine.poll(_POLL_S):
            last = time.monotonic()
            if isinstance(event, Failure):
                broke = EngineDied if event.kind == REPLICA_DIED else RunBroke
                raise broke(f"the engine failed a {dataset} request ({event.kind}): {event.message}")
            if isinstance(event, Answers | Replies):
                _check_kind(event, requests, dataset)
                answered.add(event)
        if time.monotonic() - last > patience_s:
            raise EngineDied(
                f"the engine answered {len(answered.data)} of {len(requests)} {dataset} requests, "
                f"then nothing for {patience_s:.0f} s"
            )
    answered.seconds = (max(answered.done_ns, default=started) - started) / 1e9
    return answered


def _check_kind(event: Answers | Replies, requests: Requests, dataset: str) -> None:
    if isinstance(event, Replies) is not bool(requests.workload.bodies):
        came, asked = ("a chat", "token ids") if isinstance(event, Replies) else ("token ids", "a chat")
        raise RunBroke(f"the engine answered a {dataset} request with {came}, and it asked for {asked}")


def warm_up(
    engine: Engine,
    questions: Questions,
    sampling: Sampling,
    *,
    patience_s: float,
    work: Path,
    logged: Logged = "content",
) -> Warmup:
    """Warms an engine up and says at which rate it answered (requests a second, see :func:`steady_rate`)."""
    answered = ask(engine, questions, sampling, dataset=DATASET, patience_s=patience_s, work=work, logged=logged)
    return Warmup(
        requests=len(questions),
        answers=len(answered.data),
        output_tokens=sum(max(tokens, 0) for tokens in answered.tokens.values()),
        seconds=answered.seconds,
        samples_per_s=steady_rate(answered.done_ns, answered.seconds),
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
