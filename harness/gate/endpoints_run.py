"""Checks of the performance run of the endpoints client: what was run, for how long, how completely, how fast."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator

from harness.gate import endpoints_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.endpoints_facts import EndpointsFacts
from harness.gate.endpoints_metric import NoMetric, endpoints_metric
from harness.gate.findings import Finding, Rule, Severity
from harness.gate.rulings import finding, ruling_of
from harness.logs import LogError
from harness.logs.values import shown
from harness.rules import TrajectoryRules
from harness.rules.values import Ruled

_NS_PER_MS = 1_000_000
_NS_PER_S = 1_000_000_000
_WRITTEN_DIGITS = 1e-6
_HISTOGRAM_DIGITS = 0.02  # the client's percentiles are of a histogram
_ESTIMATES = "early_stopping_percentiles"

_FIXED_WORK = "say in the README how long one pass takes: the round has no more work than that"

Check = Callable[[EndpointsFacts], Iterable[Finding]]


def guarded(check: Check, facts: EndpointsFacts) -> Iterator[Finding]:
    """What a check finds; a value of a type that it cannot judge is a finding too."""
    try:
        yield from check(facts)
    except LogError as error:
        yield R.VALUE.broken(error.path, error.what, error.expected)


def milder(facts: EndpointsFacts) -> Severity | None:
    """The severity in open of what no tool enforces there; None, the rule's own, elsewhere."""
    return None if facts.place.strict else Severity.REVIEW


def _scenario(facts: EndpointsFacts) -> Iterator[Finding]:
    kind, wanted = facts.log.text(facts.key("scenario")), facts.place.scenario
    by_folder = wanted in facts.layout.folder_decides.value
    types = facts.layout.scenario_of_type.value
    names = [name for name, scenario in types.items() if (scenario == "Offline") == (wanted == "Offline")]
    if kind in names:
        return
    expected = f"type {' or '.join(names)} for {wanted}"
    alike = kind is not None and kind.lower() in (wanted.lower(), *names)
    spelled = alike and not facts.rules.use_token_latencies.value  # tokens have a metric of their own by spelling
    severity = Severity.REVIEW if kind is not None and (spelled or by_folder) else None
    yield R.SCENARIO.broken(facts.config.path, f"type {shown(kind)}", expected, severity=severity)


def _contradictions(facts: EndpointsFacts) -> Iterator[Finding]:
    for one in facts.log.contradictions:
        yield R.CONTRADICTION.broken(one.taken.document.path, f"{one.taken}, but {one.other}")


def _seeds(facts: EndpointsFacts) -> Iterator[Finding]:
    seeds = facts.pack.seeds
    kept = True
    for role, ruled in (("schedule_seed", seeds.schedule), ("sample_index_seed", seeds.sample_index)):
        found = facts.integer(role)
        if found != ruled.value:
            kept = False
            said = f"{facts.key(role)} is {found}"
            yield R.SEEDS.broken(facts.config.path, said, str(ruled.value), source=ruled.source)
    if kept:
        yield from ruled_on(facts, "ENDPOINTS-SEEDS", "the round's seeds")


def ruled_on(facts: EndpointsFacts, id_: str, found: str) -> Iterator[Finding]:
    """What is said of a result that keeps a ruling to which the other side objects."""
    ruling = ruling_of(facts.pack, id_)
    one = None if ruling is None else finding(ruling, facts.place.folder, found, layout="endpoints")
    if one is not None:
        yield one


def _duration(facts: EndpointsFacts) -> Iterator[Finding]:
    least = facts.pack.min_duration_ms
    setting = facts.number("min_duration_ms")
    if setting is None or not setting >= least.value:
        found, expected = f"min_duration_ms {setting}", f"at least {least.value}"
        yield R.DURATION_SETTING.broken(facts.config.path, found, expected, source=least.source)
    lasted_ns, least = facts.number("duration_ns"), facts.pack.measured_duration_ms
    if lasted_ns is None or not lasted_ns >= least.value * _NS_PER_MS:
        found = "no duration_ns" if lasted_ns is None else f"{lasted_ns / _NS_PER_MS:.1f} ms"
        severity = None if lasted_ns is None else _of_short_runs(facts)
        mend = _FIXED_WORK if isinstance(facts.rules, TrajectoryRules) else None
        yield R.DURATION.broken(
            facts.summary.path, found, f"at least {least.value} ms", mend=mend, severity=severity, source=least.source
        )


def _of_short_runs(facts: EndpointsFacts) -> Severity | None:
    """A ruling may have a severity for what was measured: the work of some benchmarks is fixed, however long it is."""
    for ruling in facts.pack.rulings:
        about = ruling.concerns
        if ruling.measured and facts.place.benchmark in about.benchmarks and "endpoints" in about.layouts:
            return Severity(ruling.measured)
    return milder(facts)


def _complete(facts: EndpointsFacts) -> Iterator[Finding]:
    for role, wanted in (("complete", True), ("state", "complete")):
        found = facts.log.value(facts.key(role))
        if type(found) is not type(wanted) or found != wanted:
            severity = Severity.REVIEW if found is None else None
            yield R.COMPLETE.broken(facts.summary.path, f"{role} is {shown(found)}", severity=severity)


def _counts(facts: EndpointsFacts) -> Iterator[Finding]:
    path = facts.summary.path
    issued, completed, failed = (facts.integer(role) for role in ("issued", "completed", "failed"))
    if failed != 0:
        yield R.FAILED.broken(path, f"{failed} of {issued} samples failed")
    if issued is None or completed != issued:
        yield R.FAILED.broken(path, f"{completed} of {issued} samples completed")
    rows = _rows(facts)
    if issued is None or not issued >= rows.value:
        yield R.COUNT.broken(path, f"{issued} samples issued", f"at least {rows.value}", source=rows.source)
    elif issued % rows.value:
        found = f"{issued} samples issued, {issued % rows.value} more than whole passes of {rows.value}"
        yield R.PASSES.broken(path, found, source=rows.source)


def _rows(facts: EndpointsFacts) -> Ruled[int]:
    """Samples of one pass, with the source that says so."""
    least, leg = facts.scenario_rules.min_samples_issued, "performance"
    if least is not None:
        return least
    return facts.scenario_rules.datasets.get(leg, facts.rules.datasets[leg])


def _latencies(facts: EndpointsFacts) -> Iterator[Finding]:
    rules = facts.scenario_rules
    for rule, role, limit in (
        (R.TTFT, "ttft_p99_ns", rules.ttft_p99_below_ms),
        (R.TPOT, "tpot_p99_ns", rules.tpot_p99_below_ms),
    ):
        if limit is not None:
            yield from _limit(facts, rule, role, limit, strictly=True)
    if rules.latency_p99_at_most_ms is not None:
        yield from _limit(facts, R.LATENCY, "latency_p99_ns", rules.latency_p99_at_most_ms, strictly=False)
    elif rules.ttft_p99_below_ms is None and facts.summary.value(f"latency.{_ESTIMATES}") is None:
        yield R.ESTIMATES.broken(facts.summary.path, f"no latency.{_ESTIMATES}")


def _limit(facts: EndpointsFacts, rule: Rule, role: str, limit: Ruled[float], *, strictly: bool) -> Iterator[Finding]:
    value, limit_ns = facts.number(role), limit.value * _NS_PER_MS
    if value is not None and (value < limit_ns if strictly else value <= limit_ns):
        return
    found = f"{value} ns" if value is not None else _why_absent(facts, role)
    expected = f"{'below' if strictly else 'at most'} {limit_ns:.0f} ns"
    yield rule.broken(facts.summary.path, found, expected, source=limit.source)


def _why_absent(facts: EndpointsFacts, role: str) -> str:
    key = facts.key(role)
    block = key.partition(f".{_ESTIMATES}")[0] + f".{_ESTIMATES}"
    if facts.summary.value(block) is None:
        return f"no {block}: an older client, or early_stopping turned off"
    return f"{key} is null: fewer than {facts.layout.early_stopping_min_samples.value} samples"


def _metric(facts: EndpointsFacts) -> Iterator[Finding]:
    try:
        metric = endpoints_metric(facts)
    except LogError as error:
        yield R.METRIC.broken(error.path, error.what, error.expected)
        return
    except NoMetric as error:
        yield R.METRIC.broken(facts.summary.path, str(error))
        return
    if "labelled" in metric.units:
        tokens = facts.number("tps")
        said = f"{metric.value} {metric.units}" + ("" if tokens is None else f"; it is {tokens} tokens/s")
        yield from ruled_on(facts, "ENDPOINTS-UNITS", said)


def _figures(facts: EndpointsFacts) -> Iterator[Finding]:
    """The client's rate is (completed - 1) over LoadGen's window where it says so, else completed over the duration;
    an early-stopping estimate is never below the plain percentile.
    """
    path, completed = facts.summary.path, facts.number("completed")
    rate, window_ns = facts.number("qps"), facts.log.number("legacy_loadgen_window_duration_ns")
    span_ns = window_ns or facts.number("duration_ns")
    if rate is not None and completed and span_ns:
        expected = (completed - 1 if window_ns else completed) / (span_ns / _NS_PER_S)
        if not math.isclose(rate, expected, rel_tol=_WRITTEN_DIGITS):
            yield R.FIGURES.broken(path, f"qps {rate}", f"{expected} by the counts and the duration")
    for series in ("latency", "ttft", "tpot"):
        estimate, plain = (facts.log.number(f"{series}.{name}.99.0") for name in (_ESTIMATES, "percentiles"))
        if estimate is not None and plain is not None and estimate < plain - abs(plain) * _HISTOGRAM_DIGITS:
            found = f"{series}: the early-stopping estimate {estimate} is below the 99th percentile {plain}"
            yield R.FIGURES.broken(path, found)


def _output_length(facts: EndpointsFacts) -> Iterator[Finding]:
    for audit in facts.layout.unconditional_audits.value:
        rules = facts.rules.audit_rules.get(audit)
        if rules is None or rules.mean_output_tokens is None:
            continue
        window = rules.mean_output_tokens.value
        mean = facts.number("mean_output_tokens")
        if mean is None or not window.at_least <= mean <= window.at_most:
            found, expected = f"{mean} tokens in the mean", f"{window.at_least} to {window.at_most}"
            yield R.OUTPUT_LENGTH.broken(facts.summary.path, found, expected, source=rules.mean_output_tokens.source)


RUN_CHECKS: tuple[Check, ...] = (
    _scenario, _contradictions, _seeds, _duration, _complete, _counts, _latencies, _metric, _figures, _output_length,
)  # fmt: skip
