"""How far a result is from what the round demands of it. What counts is what the client that measured says itself:
LoadGen's percentiles, the endpoints client's early-stopping estimates.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, Literal, TypeAlias

from harness.gate.metric import mean_answer_tokens
from harness.gate.run_facts import PERFORMANCE, RunFacts, applied
from harness.gate.run_measures import LOGGED_DIGITS, lasted
from harness.ledger.record import AuditEcho
from harness.ledger.sample_times import AnswerTimes, Values
from harness.logs import EndpointsLog, LogError
from harness.logs.endpoints import DURATION_NS, ISSUED
from harness.report.book.content import Limit, Margin
from harness.report.book.limits import Limits, limits_of
from harness.rules import RulePack
from harness.rules.early_stopping import min_queries
from harness.rules.values import LayoutName, Range

Direction: TypeAlias = Literal["below", "at most", "at least"]

_NS_PER_MS: Final = 1e6
_NS_PER_S: Final = 1e9
_MS_PER_S: Final = 1e3
_MET: Final[Mapping[Direction, Callable[[float, float], bool]]] = {
    "below": lambda measured, limit: measured < limit,
    "at most": lambda measured, limit: measured <= limit,
    "at least": lambda measured, limit: measured >= limit,
}
_SERVER: Final = "Server"
_KEYS: Final = {
    "TTFT": "result_first_token_99.00_percentile_latency_ns",
    "TPOT": "result_time_per_output_token_99.00_percentile_ns",
    "latency": "result_99.00_percentile_latency_ns",
}


def margin(name: str, unit: str, measured: float | None, limit: float, direction: Direction, source: str) -> Margin:
    """One margin, with the limit as it is in the rules; what was not measured does not meet it."""
    met = measured is not None and _MET[direction](measured, limit)
    return Margin(name, unit, measured, limit, direction, met, source)


def loadgen_margins(facts: RunFacts) -> tuple[Margin, ...]:
    """Those of LoadGen's leg, by its detail log; none of an accuracy leg, which LoadGen does not time.

    A value of a type that is none of LoadGen's counts as not measured.
    """
    if facts.leg != PERFORMANCE:
        return ()
    limits = limits_of(facts.pack, facts.benchmark, facts.scenario)
    return (
        *_latencies(limits, lambda name: _number(facts, _KEYS[name])),
        *_amounts(facts),
        *_answers(facts),
    )


def early_stopping_margins(facts: RunFacts, answers: AnswerTimes, issued: int) -> tuple[Margin, ...]:
    """How many samples LoadGen's early stopping would have for each limit of a Server run, beside those there were.

    How many of ``answers`` are over a limit is counted from the harness's own times: LoadGen does not log it.
    """
    if facts.leg != PERFORMANCE or facts.loadgen_scenario != _SERVER:
        return ()
    limits = limits_of(facts.pack, facts.benchmark, facts.scenario)
    series: tuple[tuple[str, Limit | None, Values], ...] = (
        ("TTFT", limits.ttft, answers.ttft_ns),
        ("TPOT", limits.tpot, answers.tpot_ns),
        ("latency", limits.latency, answers.latency_ns),
    )
    return tuple(
        _early_stopping(name, limit, ns, issued) for name, limit, ns in series if limit is not None and len(ns)
    )


def _early_stopping(name: str, limit: Limit, values_ns: Values, issued: int) -> Margin:
    over = int((values_ns > limit.value * _NS_PER_MS).sum())
    needed = min_queries(over, limit.percentile / 100)
    source = f"loadgen/early_stopping.cc: {over:,} of {issued:,} samples are over the limit, by the harness's own times"
    return margin(f"{name}, early stopping", "samples", issued, needed, "at least", source)


def client_margins(log: EndpointsLog, pack: RulePack, benchmark: str, scenario: str) -> tuple[Margin, ...]:
    """Those of a report of the endpoints client: its estimates of percentiles, how long it measured, and how much."""
    rules = applied(pack.benchmark(benchmark), scenario) if benchmark in pack.benchmarks else None
    limits = limits_of(pack, benchmark, scenario)
    found = [*_latencies(limits, lambda name: _told(lambda: log.percentile(name.lower(), 99)))]
    duration_ns = _told(lambda: log.number(DURATION_NS))
    found.append(_duration(pack, duration_ns))
    if rules is not None:
        whole = rules.datasets.get(PERFORMANCE, pack.benchmark(benchmark).datasets[PERFORMANCE])
        least, issued = rules.min_samples_issued or whole, _told(lambda: log.integer(ISSUED))
        found.append(margin("samples issued", "samples", issued, least.value, "at least", least.source))
    return tuple(found)


def accuracy_margins(
    figures: Mapping[str, float | None], pack: RulePack, benchmark: str, scenario: str, layout: LayoutName
) -> tuple[Margin, ...]:
    """Those of an accuracy leg, which closed and network must meet. ``figures`` are by key, the metric first: None
    where samples are unscored or failed, which meets none.
    """
    rules = pack.benchmarks.get(benchmark)
    if rules is None or applied(rules, scenario) is None:
        return ()
    target = rules.target(scenario, layout) if scenario in rules.scenarios else rules.accuracy_target
    key = target.value.key
    label = key if key in figures else next(iter(figures), key)  # the official checker may have a name of its own
    found = [margin(label, "", figures.get(label), target.value.at_least, "at least", target.source)]
    for ruled in rules.accuracy_more_targets:
        key, least = ruled.value.key, ruled.value.at_least
        found.append(margin(key, "", figures.get(key), least, "at least", ruled.source))
    upper = rules.accuracy_upper_limit
    if upper is not None and figures.get(upper.value.key) is not None:
        measured = figures[upper.value.key]
        found.append(margin(upper.value.key, "", measured, upper.value.at_most, "at most", upper.source))
    return tuple(found)


def audit_margins(name: str, audit: AuditEcho, source: str) -> tuple[Margin, ...]:
    """Those of an audit, by its own number; ``source`` says who demands it."""
    found = [margin(f"{name} {audit.key}", "", audit.value, audit.at_least, "at least", source)]
    if audit.at_most is not None:
        found.append(margin(f"{name} {audit.key}", "", audit.value, audit.at_most, "at most", source))
    return tuple(found)


def _latencies(limits: Limits, measured_ns: Callable[[str], float | None]) -> Iterator[Margin]:
    for name, limit in (("TTFT", limits.ttft), ("TPOT", limits.tpot), ("latency", limits.latency)):
        if limit is not None:
            yield _latency(name, limit, measured_ns(name))


def _latency(name: str, limit: Limit, measured_ns: float | None) -> Margin:
    measured = None if measured_ns is None else measured_ns / _NS_PER_MS
    direction: Direction = "at most" if limit.inclusive else "below"
    return margin(f"{name} p{limit.percentile:g}", "ms", measured, limit.value, direction, limit.source)


def _amounts(facts: RunFacts) -> Iterator[Margin]:
    yield _duration(facts.pack, _told(lambda: lasted(facts)[2]))
    own = applied(facts.rules, facts.scenario)
    if own is not None and own.min_query_count is not None:
        least, issued = own.min_query_count, _told(lambda: facts.detail.issued_samples)
        yield margin("samples issued", "samples", issued, least.value, "at least", least.source)


def _duration(pack: RulePack, measured_ns: float | None) -> Margin:
    least = pack.measured_duration_ms
    seconds, limit = None if measured_ns is None else measured_ns / _NS_PER_S, least.value / _MS_PER_S
    met = seconds is not None and seconds >= limit * (1 - LOGGED_DIGITS)
    return Margin("duration", "s", seconds, limit, "at least", met, least.source)


def _answers(facts: RunFacts) -> Iterator[Margin]:
    """The mean answer, where the round knows how long it is."""
    window: Range | None = facts.expectation.mean_tokens
    if window is None or not facts.rules.use_token_latencies.value or applied(facts.rules, facts.scenario) is None:
        return
    mean = _told(lambda: mean_answer_tokens(facts.detail, facts.scenario_rules))
    source = next(a.mean_output_tokens.source for a in facts.rules.audit_rules.values() if a.mean_output_tokens)
    yield margin("mean output tokens", "tokens", mean, window.at_least, "at least", source)
    yield margin("mean output tokens", "tokens", mean, window.at_most, "at most", source)


def _number(facts: RunFacts, key: str) -> float | None:
    return _told(lambda: facts.detail.number(key))


def _told(read: Callable[[], float | None]) -> float | None:
    """A number of a log; None where what stands there is none."""
    try:
        return read()
    except LogError:
        return None
