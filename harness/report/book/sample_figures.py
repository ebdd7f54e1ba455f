"""The figures of a run's own samples, from the columns of its samples.arrow; of turns, from those of its turns.arrow.

What cannot be drawn is said in its place: no answer, no first token, nothing counted, times that do not rise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final

from harness.ledger.sample_times import AnswerTimes
from harness.ledger.samples import NONE, Int64, SampleState
from harness.report.book.content import Figure, Unit
from harness.report.book.distributions import Named, distribution
from harness.report.book.limits import Limits
from harness.report.book.timeline import ANSWERS_A_PERCENTILE, percentile_lines, rate_line, spans_for, under_way_line

_NS_PER_MS: Final = 1e6
_WHOLE: Final = "no first token was told before the end of its answer: answers came whole"
_SINGLES: Final = "no answer has more than one counted token"
_ENDED: Final = "by when answers ended"
_UNCOUNTED: Final = "nobody counted the tokens of {}"


@dataclass(frozen=True, slots=True)
class Words:
    """What answers are of: ``prefix`` is that of the figures' keys, ``many`` stands in reasons, and in titles where
    they are no plain samples.
    """

    prefix: str
    many: str
    file: str
    plain: bool = False

    def named(self, key: str, title: str, unit: Unit, about: str = "") -> Named:
        """A figure of these."""
        whole = title if self.plain else f"{title} ({self.many})"
        return Named(f"{self.prefix}{key}", whole, unit, None, about)


SAMPLES: Final = Words("", "samples", "samples.arrow", plain=True)
TRAJECTORIES: Final = Words("", "trajectories", "samples.arrow")
TURNS: Final = Words("turn_", "turns", "turns.arrow")
EVENTS: Final = Words("", "samples", "events.jsonl", plain=True)
"""Of the endpoints client."""


def sample_figures(columns: Mapping[str, Int64], limits: Limits, words: Words = SAMPLES) -> tuple[Figure, ...]:
    """All figures of the columns: latency, TTFT, TPOT, tokens in and out, and how they went over the time of the run.

    ``limits`` are drawn beside them; what counts against them is LoadGen's own percentile, not these.
    """
    return tuple(_Figures(columns, AnswerTimes.of(columns), limits, words).all())


def all_missing(why: str, words: Words = SAMPLES) -> tuple[Figure, ...]:
    """The figures of columns that cannot be had, each with the reason."""
    return tuple(named.missing(why) for named in _Names.of(words, Limits()).all())


@dataclass(frozen=True, slots=True)
class _Names:
    latency: Named
    ttft: Named
    tpot: Named
    input_tokens: Named
    output_tokens: Named
    rate: Named
    tokens_rate: Named
    under_way: Named

    @classmethod
    def of(cls, words: Words, limits: Limits) -> _Names:
        over = f"of answered {words.many}, as the harness saw them ({words.file})"
        latency = words.named("latency", "Latency", "ms", f"from issue to the last token, {over}")
        ttft = words.named("ttft", "Time to first token", "ms", f"from issue to the first token, {over}")
        tpot = words.named("tpot", "Time per output token", "ms", f"each token after the first, {over}")
        return cls(
            latency=replace(latency, limit=limits.latency),
            ttft=replace(ttft, limit=limits.ttft),
            tpot=replace(tpot, limit=limits.tpot),
            input_tokens=words.named("input_tokens", "Input tokens", "tokens", f"of all {words.many} ({words.file})"),
            output_tokens=words.named("output_tokens", "Output tokens", "tokens", over),
            rate=words.named("throughput", "Answers a second", "samples/s", _ENDED),
            tokens_rate=words.named(
                "token_throughput", "Output tokens a second", "tokens/s", "an answer's tokens count when it ended"
            ),
            under_way=words.named(
                "concurrency",
                "Under way at once",
                "samples",
                "mean of each span, from issue to the answer's end; failed ones, whose end is not kept, are not in it",
            ),
        )

    def all(self) -> tuple[Named, ...]:
        times, lengths = (self.latency, self.ttft, self.tpot), (self.input_tokens, self.output_tokens)
        return (*times, *lengths, self.rate, self.tokens_rate, self.under_way, *self.over_time())

    def over_time(self) -> tuple[Named, ...]:
        """Latency, TTFT and TPOT by when answers ended."""
        return tuple(
            replace(named, key=f"{named.key}_over_time", title=f"{named.title} over the run", about=_ENDED)
            for named in (self.latency, self.ttft, self.tpot)
        )


@dataclass(frozen=True, slots=True)
class _Figures:
    columns: Mapping[str, Int64]
    answers: AnswerTimes
    limits: Limits
    words: Words

    def all(self) -> Iterator[Figure]:
        names, why = _Names.of(self.words, self.limits), self._why_none()
        if why is not None:
            yield from all_missing(why, self.words)
            return
        yield from self._times(names)
        yield from self._lengths(names)
        yield from self._over_time(names)

    def _why_none(self) -> str | None:
        many, states = self.words.many, self.columns["state"]
        if not len(states):
            return f"there are no {many}"
        if not len(self.answers):
            failed = int((states == SampleState.FAILED).sum())
            return f"none of {len(states):,} {many} was answered, {failed:,} failed"
        if self.answers.disordered:
            return f"{self.words.file}: the times of {self.answers.disordered:,} answers do not rise"
        return None

    def _times(self, names: _Names) -> Iterator[Figure]:
        answers = self.answers
        yield distribution(names.latency, answers.latency_ns, per_unit=_NS_PER_MS)
        if not answers.streamed:
            yield from (named.missing(_WHOLE) for named in (names.ttft, names.tpot))
            return
        yield distribution(names.ttft, answers.ttft_ns, per_unit=_NS_PER_MS)
        tpot = answers.tpot_ns
        yield distribution(names.tpot, tpot, per_unit=_NS_PER_MS) if len(tpot) else names.tpot.missing(_SINGLES)

    def _lengths(self, names: _Names) -> Iterator[Figure]:
        for named, tokens, least, what in (  # a prompt has a token at least: 0 is what is written where nobody counts
            (names.input_tokens, self.columns["prompt_tokens"], 1, "the prompts"),
            (names.output_tokens, self.answers.tokens, 0, "the answers"),
        ):
            known = tokens[tokens >= least]
            if not len(known):
                yield named.missing(_UNCOUNTED.format(what))
                continue
            unknown = len(tokens) - len(known)
            more = f"; {unknown:,} of {len(tokens):,} were not counted" if unknown else ""
            yield distribution(replace(named, about=named.about + more), known, whole=True)

    def _over_time(self, names: _Names) -> Iterator[Figure]:
        answers = self.answers
        begun, ended = self._under_way()
        begins, ends = int(begun.min()), int(answers.done_ns.max())
        spans = spans_for(len(answers), begins, ends)
        yield rate_line(names.rate, answers.done_ns, spans)
        if answers.counted.all():
            yield rate_line(names.tokens_rate, answers.done_ns, spans, answers.tokens)
        else:
            why = _UNCOUNTED.format(f"{int((~answers.counted).sum()):,} answers")
            yield names.tokens_rate.missing(why)
        yield under_way_line(names.under_way, begun, ended, spans)
        wide = spans_for(len(answers), begins, ends, each=ANSWERS_A_PERCENTILE)
        latency, ttft, tpot = names.over_time()
        yield from percentile_lines(latency, answers.done_ns, answers.latency_ns, wide, per_unit=_NS_PER_MS)
        if not answers.streamed:
            yield from (named.missing(_WHOLE) for named in (ttft, tpot))
            return
        with_first = answers.done_ns[answers.begun]
        yield from percentile_lines(ttft, with_first, answers.ttft_ns, wide, per_unit=_NS_PER_MS)
        if len(answers.tpot_ns):
            yield from percentile_lines(tpot, answers.tpot_done_ns, answers.tpot_ns, wide, per_unit=_NS_PER_MS)
        else:
            yield tpot.missing(_SINGLES)

    def _under_way(self) -> tuple[Int64, Int64]:
        """When each was issued and ended, NONE of what was outstanding; failed ones are left out."""
        kept = (self.columns["state"] != SampleState.FAILED) & (self.columns["issued_ns"] != NONE)
        return self.columns["issued_ns"][kept], self.columns["done_ns"][kept]
