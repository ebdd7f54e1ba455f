"""Questions to an engine of token ids, whichever it is: asked through the same interface as in a run."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from harness.engines.base import (
    Answers,
    Engine,
    EngineInfo,
    Event,
    Failure,
    Finish,
    PromptTable,
    Requests,
    Sampling,
    TokenEvents,
    Tokens,
    Workload,
)
from harness.runs.gpu_check.asker import Unanswered
from harness.runs.gpu_check.question import Question, findings_of
from harness.runs.gpu_check.report import Finding, Outcome, failed, few, judged, not_asked, passed
from harness.runs.gpu_check.served import ended_before, prompt, stop_place

WHERE: Final = "in process"
CUT: Final = "end_tokens_cut"
"""The counter of an engine that says how many answers came with their stop token."""
_POLL_S: Final = 1.0
_PATIENCE_S: Final = 120.0
_COUNTERS_S: Final = 10.0
_LONG: Final = 100


@dataclass(slots=True)
class Heard:
    """What an engine told of a handful of requests, by number. ``chunks`` are the sizes in which tokens came."""

    tokens: dict[int, list[int]] = field(default_factory=dict)
    finish: dict[int, Finish] = field(default_factory=dict)
    times: dict[int, tuple[int, int]] = field(default_factory=dict)
    fresh: dict[int, list[int]] = field(default_factory=dict)
    chunks: dict[int, list[int]] = field(default_factory=dict)
    failures: dict[int, Failure] = field(default_factory=dict)

    def hear(self, event: Event) -> None:
        """Keeps what one event tells."""
        if isinstance(event, Failure):
            self.failures[event.number] = event
        elif isinstance(event, Tokens):
            for number in set(event.numbers):
                came = [t for n, t in zip(event.numbers, event.tokens.tolist(), strict=True) if n == number]
                self.fresh.setdefault(number, []).extend(came)
                self.chunks.setdefault(number, []).append(len(came))
        elif isinstance(event, Answers):
            start = 0
            for i, number in enumerate(event.numbers):
                self.tokens[number] = event.tokens[start : event.ends[i]].tolist()
                self.finish[number] = Finish(event.finish[i])
                self.times[number] = (event.first_ns[i], event.done_ns[i])
                start = event.ends[i]

    def __len__(self) -> int:
        return len(self.tokens) + len(self.failures)


class Asked:
    """An engine that answers, and what it says of itself."""

    def __init__(self, engine: Engine, options: Mapping[str, object]) -> None:
        """``options`` are those that it was started with."""
        self.options = options
        self._engine = engine
        self._next = 0

    @property
    def info(self) -> EngineInfo:
        """What it says of itself."""
        return self._engine.info()

    def cut(self) -> int | None:
        """How many answers have come with their stop token so far; None where the engine does not count them."""
        return self._engine.counters(_COUNTERS_S).get(CUT)

    def ask(
        self,
        prompts: Sequence[list[int]],
        *,
        cap: int = 32,
        temperature: float = 0.0,
        stops: tuple[int, ...] = (),
        events: TokenEvents = TokenEvents.NONE,
        first: int | None = None,
    ) -> Heard:
        """Asks all at once and waits for every answer. Raises Unanswered where none comes for two minutes.

        ``first`` numbers the requests from there, which is what their seeds are made of.
        """
        first = self._next if first is None else first
        self._next = max(self._next, first + len(prompts))
        load = Workload("check", Sampling(temperature, 1.0, 0, cap, stops, 1), events)
        numbers, rows = range(first, first + len(prompts)), range(len(prompts))
        self._engine.submit(Requests(load, numbers, rows, PromptTable.from_lists(prompts), rows))
        heard, last = Heard(), time.monotonic()
        while len(heard) < len(prompts):
            for event in self._engine.poll(_POLL_S):
                heard.hear(event)
                last = time.monotonic()
            if time.monotonic() - last > _PATIENCE_S:
                raise Unanswered(f"{len(heard)} of {len(prompts)} answers, then nothing for {_PATIENCE_S:.0f} s")
        return heard

    def one(self, ids: list[int], **how: object) -> tuple[list[int], Finish]:
        """One answer alone. Raises Unanswered where it fails."""
        heard = self.ask([ids], **how)  # type: ignore[arg-type]  # the keywords of ask
        for failure in heard.failures.values():
            raise Unanswered(f"{failure.kind}: {failure.message}")
        ((number, tokens),) = heard.tokens.items()
        return tokens, heard.finish[number]


def _settings(asked: Asked) -> Outcome:
    have = asked.info.settings.get("read_back")
    if not isinstance(have, Mapping):
        return not_asked(f"the {asked.info.kind} engine has no settings of a library to read back")
    known = {key: have[key] for key in asked.options if key in have}
    return judged(
        bool(known), f"{len(have)} values read back, among them {few([f'{k}={v}' for k, v in known.items()])}"
    )


def _end_token(asked: Asked) -> Outcome:
    """A token of a greedy answer is declared the end token, then a further stop token: it must end there."""
    ids = prompt(asked.info.vocab_size)
    free, _ = asked.one(ids)
    place = stop_place(free)
    if place is None:
        return not_asked(f"the greedy answer repeats one token: {few(free, 4)}")
    stop, unused = free[place], next(each for each in range(1, len(free) + 2) if each not in free)
    seen = []
    for name, stops in (("as end_id", (stop,)), ("in stop_token_ids", (unused, stop))):
        before = asked.cut()
        answer, finish = asked.one(ids, stops=stops)
        after = asked.cut()
        if finish is not Finish.STOP or ended_before(answer, "stop", free[:place], stop) is None or stop in answer:
            return failed(f"{name}, token {stop} after {place}: {few(answer)}, finish {finish.name.lower()}")
        told = "not counted" if before is None or after is None else "there, and cut" if after > before else "not there"
        seen.append(f"{name}: {told}")
    return passed("the stop token in the library's token_ids, " + "; ".join(seen))


def _first_tokens(asked: Asked) -> Outcome:
    ids = prompt(asked.info.vocab_size)
    heard = asked.ask([ids], cap=_LONG, events=TokenEvents.ALL)
    if heard.failures or not heard.chunks:
        return failed(f"failures {[f.message for f in heard.failures.values()]}, tokens told {len(heard.fresh)}")
    ((number, answer),) = heard.tokens.items()
    first_ns, done_ns = heard.times[number]
    seen = f"stream_interval {asked.options.get('stream_interval', 'not said')}: {len(answer)} tokens in "
    seen += f"{len(heard.chunks[number])} pieces of {few(heard.chunks[number])}; first {(done_ns - first_ns) / 1e6:.0f}"
    well = heard.fresh[number] == answer and heard.chunks[number][0] == 1 and first_ns < done_ns
    return judged(well, seen + " ms before the last")


def _seeds(asked: Asked) -> Outcome:
    ids = [prompt(asked.info.vocab_size)] * 8
    heard = asked.ask(ids, temperature=1.0, first=10_000)
    again = asked.ask(ids, temperature=1.0, first=10_000)
    different = len({tuple(tokens) for tokens in heard.tokens.values()})
    same = "the same" if heard.tokens == again.tokens else "other"
    return judged(
        different == len(ids),
        f"{len(ids)} equal prompts at temperature 1 with seeds of their own: {different} different answers; "
        f"asked again with the same seeds: {same} answers",
    )


def _too_long(asked: Asked) -> Outcome:
    ids = prompt(asked.info.vocab_size, tokens=asked.info.max_total_tokens)
    heard = asked.ask([ids, ids[:8]], cap=4)
    kinds = [failure.kind for failure in heard.failures.values()]
    return judged(
        len(kinds) == 1 and len(heard.tokens) == 1,
        f"a prompt of {len(ids)} tokens: {few(kinds) if kinds else 'answered'}; the request beside it: "
        f"{'answered' if heard.tokens else 'not answered'}",
    )


QUESTIONS: Final = (
    Question("settings", "are the settings those that were asked for?", _settings),
    Question("end token", "is the stop token in token_ids?", _end_token),
    Question("first tokens", "is the first token told alone, before the rest?", _first_tokens),
    Question("seeds", "do answers to one prompt differ where their seeds do?", _seeds),
    Question("too long", "does a prompt that does not fit fail alone?", _too_long),
)


def ask_all(asked: Asked, questions: Sequence[Question[Asked]] = QUESTIONS) -> list[Finding]:
    """All questions. EngineDied comes out: nothing more can be asked then."""
    return findings_of(WHERE, asked, questions)
