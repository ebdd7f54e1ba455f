"""``turns.json`` of a run: what its turns came to, from what it kept of them and the trajectories that it replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import numpy as np

from harness.benchmarks.qwen3_6_27b.store import Library
from harness.benchmarks.qwen3_6_27b.turn_scores import inline_score
from harness.ledger.sample_times import Mask
from harness.ledger.samples import NONE, Int64
from harness.ledger.turn_report import Inline, Spread, TurnReport, write_turn_report
from harness.ledger.turns import TURN_REPLIES, TURNS, TurnReply, TurnState, read_turn_replies, read_turns
from harness.runs.turn_lengths import Counted, TokenCounter
from harness.runs.turn_times import Trajectories, TurnTimes


def write_turn_figures(folder: Path, library: Library, *, tokenizer: Path | None = None) -> TurnReport:
    """Makes and writes the figures of the turns of a run in ``folder``.

    ``library`` has the trajectories by row. ``tokenizer`` is the folder of the checkpoint that was served: by its
    tokenizer is counted what the server did not count; without it by that of stand-ins. Where there is none, what is
    not known is None, with a note. Raises MissingError where the turns or their replies cannot be read, RunBroke where
    the two do not fit.
    """
    turns = read_turns(folder / TURNS)
    counter = TokenCounter(turns, library, tokenizer, folder)
    report = figures(turns, library, lambda: read_turn_replies(folder / TURN_REPLIES), counter)
    write_turn_report(folder, report)
    return report


def figures(
    turns: Mapping[str, Int64], library: Library, replies: Callable[[], Iterable[TurnReply]], counter: TokenCounter
) -> TurnReport:
    """The figures of the columns of a turns.arrow; ``replies`` reads what the turns came to, anew at each call."""
    inline = inline_score(library, turns, replies())
    prompts, answers = counter.prompts(), counter.answers(replies)
    times, whole = TurnTimes(turns, answers.tokens), Trajectories.of(turns)
    every = np.ones(len(turns["state"]), np.bool_)
    window_s = times.window_s()
    known = times.answered & (answers.tokens != NONE)
    output = int(answers.tokens[known].sum()) if bool((known == times.answered).all()) else None
    return TurnReport(
        turns=times.states(),
        trajectories=whole.states(),
        window_s=window_s,
        turns_per_s=_rate(int(times.answered.sum()), window_s),
        trajectories_per_s=_rate(int(whole.completed.sum()), window_s),
        output_tokens_per_s=_rate(output, window_s),
        e2e_interactivity=times.e2e_interactivity(),
        ttft_ns=Spread.of(times.ttft_ns(every)),
        tpot_ns=Spread.of(times.tpot_ns(every)),
        latency_ns=Spread.of(times.latency_ns(every)),
        trajectory_latency_ns=Spread.of(whole.latency_ns()),
        trajectory_turns_ns=Spread.of(whole.turns_ns()),
        by_turn=times.by_turn(),
        input_tokens=prompts.lengths(times.answered),
        output_tokens=answers.lengths(times.answered),
        cached_tokens=Counted(turns["cached_tokens"], turns["cached_tokens"] != NONE).lengths(times.answered),
        cached_share=_cached_share(turns),
        mean_output=times.mean_output(),
        finish_reasons=times.finish_reasons(),
        issued_times=_issued_times(turns, library),
        inline=inline,
        notes=tuple(dict.fromkeys((*prompts.notes, *answers.notes, *_notes(times, inline, turns)))),
    )


def _rate(count: int | None, seconds: float | None) -> float | None:
    return None if count is None or not seconds else count / seconds


def _cached_share(turns: Mapping[str, Int64]) -> float | None:
    both = _tells_both(turns) & ~_cached_too_much(turns)
    if not both.any():
        return None
    return float(turns["cached_tokens"][both].sum()) / float(turns["prompt_tokens"][both].sum())


def _tells_both(turns: Mapping[str, Int64]) -> Mask:
    """Answered turns of which the server says how long the prompt was, and how much of it was cached."""
    answered = turns["state"] == TurnState.ANSWERED
    both: Mask = answered & (turns["cached_tokens"] != NONE) & (turns["prompt_tokens"] > 0)
    return both


def _cached_too_much(turns: Mapping[str, Int64]) -> Mask:
    return _tells_both(turns) & (turns["cached_tokens"] > turns["prompt_tokens"])


def _issued_times(turns: Mapping[str, Int64], library: Library) -> dict[str, int]:
    """Repeats of a trajectory together; those that were never issued too."""
    times = dict.fromkeys((trajectory.id for trajectory in library.source.trajectories), 0)
    for row in turns["row"][turns["turn"] == 0].tolist():
        times[library.trajectory(row).id] += 1
    return times


def _notes(times: TurnTimes, inline: Inline, turns: Mapping[str, Int64]) -> Iterable[str]:
    odd = int(_cached_too_much(turns).sum())
    if odd:
        yield f"turns of which the server says that more was cached than was asked, left out of the cached share: {odd}"
    if times.answered.any() and not times.streamed:
        yield "answers came whole, so that there is no time of a first token"
    if inline.missing:
        yield f"turns without an answer, which count 0 in the inline score: {inline.missing}"
