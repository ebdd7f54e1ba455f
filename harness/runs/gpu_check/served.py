"""Questions to a server over HTTP. Each says what it saw; what the harness relies on is judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np

from harness.engines.trtllm_settings import request_seed
from harness.runs.gpu_check.asker import Asker, Completion
from harness.runs.gpu_check.question import Question, findings_of
from harness.runs.gpu_check.report import Finding, Outcome, failed, few, judged, not_asked, passed

WHERE: Final = "server"
KEEP_ALIVE_S: Final = 4.0
"""How long our client leaves a connection idle before it uses another: the server must not be quicker."""
_PATIENCE_S: Final = 8.0
_PROMPT_TOKENS: Final = 24
_TOGETHER: Final = 8
_LONG: Final = 100


@dataclass(frozen=True, slots=True)
class Served:
    """A server that answers. ``options`` are those it was started with, None where somebody else started it."""

    asker: Asker
    kind: str
    options: Mapping[str, object] | None
    vocab_size: int
    max_total_tokens: int

    def option(self, name: str) -> object:
        """An option's value; None where it is not known."""
        return None if self.options is None else self.options.get(name)


def prompt(vocab_size: int, number: int = 0, tokens: int = _PROMPT_TOKENS) -> list[int]:
    """Ids out of the middle of a vocabulary, where no special tokens are; the same for the same ``number``."""
    ids = np.random.default_rng(number).integers(vocab_size // 8, vocab_size // 2, tokens)
    return [int(each) for each in ids]


def _ids_out(served: Served) -> Outcome:
    ids = prompt(served.vocab_size)
    whole = served.asker.complete(ids, 24, ignore_eos=True, seed=1)
    streamed = served.asker.stream(ids, 24, ignore_eos=True, seed=1)
    inside = all(0 <= each < served.vocab_size for each in whole.token_ids + streamed.token_ids)
    well = len(whole.token_ids) == len(streamed.token_ids) == 24 and inside and not (whole.text or streamed.text)
    seen = f"{len(whole.token_ids)} ids whole and {len(streamed.token_ids)} streamed of 24, finish {whole.finish}"
    return judged(well, seen + ("" if inside else ", some outside the vocabulary"))


def _workers(served: Served) -> Outcome:
    workers = served.option("num_postprocess_workers")
    if served.kind != "trtllm-serve":
        return not_asked(f"server {served.kind} has no post-processing workers")
    if not isinstance(workers, int) or workers < 1:
        return not_asked(f"num_postprocess_workers is {'not known' if workers is None else workers}")
    outcome = _ids_out(served)
    return Outcome(outcome.status, f"{workers} workers: {outcome.seen}")


def _end_token(served: Served) -> Outcome:
    """A token of a greedy answer is declared a stop token: the same answer must end before it."""
    ids = prompt(served.vocab_size)
    free = served.asker.complete(ids, 32, top_k=1, ignore_eos=True)
    place = stop_place(free.token_ids)
    if place is None:
        return not_asked(f"the greedy answer repeats one token: {few(free.token_ids, 4)}")
    stop = free.token_ids[place]
    seen = []
    for ask in (served.asker.complete, served.asker.stream):
        answer = ask(ids, 32, top_k=1, stop_token_ids=[stop])
        told = ended_before(answer.token_ids, answer.finish, free.token_ids[:place], stop)
        if told is None:
            return failed(
                f"stop token {stop} after {place} tokens: {len(answer.token_ids)} ids {few(answer.token_ids)}, "
                f"finish {answer.finish}; without it {few(free.token_ids[: place + 1])}"
            )
        seen.append(told)
    return passed(f"whole: {seen[0]}; streamed: {seen[1]}; finish stop")


def stop_place(ids: list[int]) -> int | None:
    """The last place in an answer's first half whose token comes there for the first time, so that an answer which does
    not stop there is seen to go on; None where that is the very first.
    """
    half = ids[: len(ids) // 2]
    firsts = [i for i, each in enumerate(half) if each not in half[:i]]
    return firsts[-1] if firsts and firsts[-1] > 0 else None


def ended_before(ids: list[int], finish: object, expected: list[int], stop: int) -> str | None:
    """What became of the stop token; None where the answer did not end there."""
    if finish != "stop" or ids not in (expected, [*expected, stop]):
        return None
    return "the stop token is not in token_ids" if ids == expected else "the stop token is in token_ids"


def _chunks(served: Served) -> Outcome:
    """The first chunk must be the first token, or the time to it is not what is measured."""
    answer = served.asker.stream(prompt(served.vocab_size), _LONG, ignore_eos=True, seed=1)
    interval = served.option("stream_interval")
    asked = "not known" if interval is None else interval
    seen = f"stream_interval {asked}: {_LONG} tokens in {len(answer.chunks)} chunks of {few(answer.chunks)}"
    seen += f"; first after {answer.first_s * 1e3:.0f} ms of {answer.seconds * 1e3:.0f}"
    steps = answer.chunks[1:-1]
    well = answer.chunks[:1] == [1] and len(answer.token_ids) == _LONG
    if isinstance(interval, int):
        well = well and all(step <= interval for step in steps)
    return judged(well, seen)


def _seeds(served: Served) -> Outcome:
    """At temperature 1, answers to one prompt must differ where their seeds do, alone and in one batch."""
    ids = prompt(served.vocab_size)
    one, again, other = (served.asker.complete(ids, 24, seed=seed).token_ids for seed in (5, 5, 6))
    seeded = _together(served, ids, [request_seed(1, number) for number in range(_TOGETHER)])
    free = _together(served, ids, [None] * _TOGETHER)
    well = one != other and seeded == _TOGETHER
    return judged(
        well,
        f"the same seed twice gives {'equal' if one == again else 'different'} answers, "
        f"another seed {'a different' if one != other else 'an equal'} one; at once, {_TOGETHER} requests with seeds "
        f"of their own give {seeded} different answers, {_TOGETHER} without a seed {free}",
    )


def _together(served: Served, ids: list[int], seeds: list[int | None]) -> int:
    def ask(seed: int | None) -> Completion:
        return served.asker.complete(ids, 24, seed=seed)

    with ThreadPoolExecutor(len(seeds)) as pool:
        return len({tuple(answer.token_ids) for answer in pool.map(ask, seeds)})


def _usage(served: Served) -> Outcome:
    ids = prompt(served.vocab_size)
    seen, well = [], True
    for name, ask in (("whole", served.asker.complete), ("streamed", served.asker.stream)):
        answer = ask(ids, 24, ignore_eos=True, seed=1)
        well = well and (answer.prompt_tokens, answer.completion_tokens) == (len(ids), len(answer.token_ids))
        seen.append(
            f"{name}: usage says {answer.prompt_tokens} and {answer.completion_tokens}, "
            f"there were {len(ids)} and {len(answer.token_ids)}"
        )
    return judged(well, "; ".join(seen))


def _unknown_field(served: Served) -> Outcome:
    body = served.asker.body(prompt(served.vocab_size), 2) | {"no_such_field": 1}
    status, text = served.asker.status(body)
    return judged(status == 400, f"HTTP {status}: {text}")


def _too_long(served: Served) -> Outcome:
    tokens = served.max_total_tokens + 1
    status, text = served.asker.status(served.asker.body(prompt(served.vocab_size, tokens=tokens), 2))
    well = 400 <= status < 600 and bool(served.asker.complete(prompt(served.vocab_size), 2, seed=1).token_ids)
    return judged(well, f"a prompt of {tokens} tokens, {served.max_total_tokens} allowed: HTTP {status}: {text}")


def _keep_alive(served: Served) -> Outcome:
    idle_s = served.asker.idle_s(_PATIENCE_S)
    told = f"more than {_PATIENCE_S:g} s" if idle_s is None else f"{idle_s:.1f} s"
    return judged(
        idle_s is None or idle_s > KEEP_ALIVE_S,
        f"an idle connection is left open for {told}; our client uses one for {KEEP_ALIVE_S:g} s",
    )


QUESTIONS: Final = (
    Question("ids out", "does detokenize: false bring token ids, whole and streamed?", _ids_out),
    Question("workers", "and with num_postprocess_workers > 0?", _workers),
    Question("end token", "is the stop token in token_ids?", _end_token),
    Question("chunks", "is the first chunk of a stream the first token alone?", _chunks),
    Question("seeds", "do answers to one prompt differ where their seeds do?", _seeds),
    Question("usage", "does usage count the ids that came?", _usage),
    Question("unknown field", "is an unknown field refused with 400?", _unknown_field),
    Question("too long", "is a prompt that does not fit refused, and the server well after it?", _too_long),
    Question("keep-alive", "how long is an idle connection left open?", _keep_alive),
)


def ask_all(served: Served, questions: Sequence[Question[Served]] = QUESTIONS) -> list[Finding]:
    """All questions; a server that does not answer one has failed it."""
    return findings_of(WHERE, served, questions)
