"""A profile's scores: the inline one, the lengths of answers over the two sets of turns there are, SWE-bench."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from harness.gate import profile_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.findings import Finding, Severity
from harness.gate.profile_facts import ACCURACY, CONFIG, SUMMARY, ProfileFacts
from harness.logs import Document, LogError, ScoredDataset
from harness.logs.endpoints import ISSUED
from harness.logs.values import shown

_PERCENT: Final = 100
_DIGITS: Final = 6
"""Of a percentage: what a float adds behind them is nobody's."""
_MEAN: Final = "output_sequence_lengths.avg"
_SWE_BENCH: Final = "swe_bench_scorer"
_INSTANCES: Final = "accuracy_config.extras.num_instances"
_TEMPLATE: Final = "accuracy_config.extras.swebench_template"

Check: TypeAlias = Callable[[ProfileFacts], Iterator[Finding]]


def figures(facts: ProfileFacts) -> dict[str, float | None]:
    """What is judged, by name; None where the report does not tell it."""
    return {
        "inline_percent": _told(_inline_percent, facts),
        "mean_output_tokens_measured": _told(_measured_mean, facts),
        "mean_output_tokens_all": _told(_whole_mean, facts),
        "turns_measured": _told(lambda one: one.log.integer(ISSUED), facts),
        "turns_all": _told(_all_turns, facts),
        "swe_bench_percent": _told(swe_bench_percent, facts),
        "swe_bench_mean": _told(_swe_bench_mean, facts),
    }


def _told(read: Callable[[ProfileFacts], float | None], facts: ProfileFacts) -> float | None:
    try:
        return read(facts)
    except LogError:  # a finding of the checks
        return None


def _inline_percent(facts: ProfileFacts) -> float | None:
    inline = facts.inline
    return None if inline is None else _percent(inline)


def _percent(one: ScoredDataset) -> float:
    return round(one.score_number() * _PERCENT, _DIGITS)


def _measured_mean(facts: ProfileFacts) -> float | None:
    """The mean that the client reports, of turns issued while it measured; counted here where it had no tokenizer."""
    reported = facts.summary.number(_MEAN)
    return facts.turns.measured_tokens if reported is None and facts.turns is not None else reported


def _all_turns(facts: ProfileFacts) -> int | None:
    """All turns of the run, those after the measured part too."""
    if facts.turns is not None:
        return facts.turns.issued
    return None if facts.inline is None else facts.inline.total_samples


def _whole_mean(facts: ProfileFacts) -> float | None:
    """The mean over all turns: as counted, or the reported one where every turn was measured."""
    if facts.turns is not None and facts.turns.tokens is not None:
        return facts.turns.tokens
    issued = facts.log.integer(ISSUED)
    return _measured_mean(facts) if issued is not None and issued == _all_turns(facts) else None


def _inline(facts: ProfileFacts) -> Iterator[Finding]:
    if not facts.accuracy.data:
        return
    ruled, percent = facts.profile.inline_percent_at_least, _inline_percent(facts)
    if percent is None:
        yield R.INLINE.broken(ACCURACY, "no inline score", f"at least {ruled.value} %", source=ruled.source)
    elif not percent >= ruled.value:
        yield R.INLINE.broken(ACCURACY, f"inline score {percent:g} %", f"at least {ruled.value} %", source=ruled.source)


def _lengths(facts: ProfileFacts) -> Iterator[Finding]:
    """The rule means the measured part; what lies outside over all turns alone is asked about, since that part depends
    on how many are asked at once.
    """
    if not facts.summary.data:
        return
    bounds, ruled = facts.profile.mean_output_tokens.value, facts.profile.mean_output_tokens
    expected = f"{bounds.at_least:g} to {bounds.at_most:g} tokens"
    for mean, over, severity in (
        (_measured_mean(facts), "the measured turns", Severity.REJECT),
        (_whole_mean(facts), "all turns", Severity.REVIEW),
    ):
        if mean is None:
            told = f"the mean output length over {over} is not told: {_why_untold(facts, over)}"
            yield R.LENGTH.broken(SUMMARY, told, expected, severity=Severity.REVIEW, source=ruled.source)
        elif not bounds.at_least <= mean <= bounds.at_most:
            found = f"{mean:.1f} tokens over {over}"
            yield R.LENGTH.broken(SUMMARY, found, expected, severity=severity, source=ruled.source)


def _why_untold(facts: ProfileFacts, over: str) -> str:
    issued, every = facts.log.integer(ISSUED), _all_turns(facts)
    if over == "all turns" and issued is not None and every is not None and issued != every:
        return f"{every - issued} of {every} came after the measured part; --tokenizer counts them"
    return "the client had no tokenizer; --tokenizer counts them"


def swe_bench_percent(facts: ProfileFacts) -> float | None:
    """The figure of this report's own SWE-bench; None where it has none."""
    names = [one.value("name") for one in _swe_bench_datasets(facts)]
    one = next((one for one in facts.scored if one.is_accuracy and one.name in names and one.score is not None), None)
    return None if one is None else _percent(one)


def _swe_bench_mean(facts: ProfileFacts) -> float | None:
    """The mean over this report's region and the others; None while one of the profile's regions lacks."""
    own = swe_bench_percent(facts)
    every = [*([] if own is None else [own]), *facts.regions]
    return statistics.fmean(every) if len(every) == facts.profile.swe_bench.value.mean_of else None


def _swe_bench_datasets(facts: ProfileFacts) -> list[Document]:
    scored = facts.datasets("accuracy")
    return [one for one in scored if one.value("accuracy_config.eval_method") == _SWE_BENCH]


def _swe_bench(facts: ProfileFacts) -> Iterator[Finding]:
    ruled, asked = facts.profile.swe_bench, facts.profile.swe_bench.value
    datasets = _swe_bench_datasets(facts)
    if facts.config.data and not datasets:
        yield R.SWE_BENCH.broken(CONFIG, f"no data set scored by {_SWE_BENCH}", source=ruled.source)
    for dataset in datasets:
        instances = dataset.integer(_INSTANCES)
        if instances != asked.instances:
            found, expected = f"{_INSTANCES} {shown(instances)}", f"{asked.instances}"
            yield R.SWE_BENCH.broken(CONFIG, found, expected, source=ruled.source)
        if dataset.value(_TEMPLATE) is not None:
            found = f"{_TEMPLATE} {shown(dataset.value(_TEMPLATE))}"
            yield R.SWE_BENCH.broken(CONFIG, found, "none for this model", source=ruled.source)
    yield from _swe_bench_figures(facts)


def _swe_bench_figures(facts: ProfileFacts) -> Iterator[Finding]:
    ruled, asked = facts.profile.swe_bench, facts.profile.swe_bench.value
    own, mean = swe_bench_percent(facts), _swe_bench_mean(facts)
    there = len(facts.regions) + (own is not None)
    expected = f"a mean of at least {asked.percent_at_least} % over {asked.mean_of} regions"
    names = [dataset.value("name") for dataset in _swe_bench_datasets(facts)]
    for one in facts.scored:
        if one.name in names and one.complete is not True:
            found = f"{shown(one.name)}: complete {shown(one.complete)}"
            yield R.SWE_BENCH.broken(ACCURACY, found, "complete true", source=ruled.source)
    if mean is None:
        told = ", ".join(f"{percent:g} %" for percent in [*([] if own is None else [own]), *facts.regions]) or "none"
        found = f"figures of {there} regions: {told}"
        severity = Severity.REJECT if there > asked.mean_of else Severity.REVIEW
        yield R.SWE_BENCH.broken(ACCURACY, found, expected, severity=severity, source=ruled.source)
    elif not round(mean, _DIGITS) >= asked.percent_at_least:
        yield R.SWE_BENCH.broken(ACCURACY, f"a mean of {mean:g} %", expected, source=ruled.source)


SCORE_CHECKS: tuple[Check, ...] = (_inline, _lengths, _swe_bench)
