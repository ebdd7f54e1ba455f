"""Checks of what LoadGen was told to do: seeds, settings, limits, and what an audit would have changed."""

from __future__ import annotations

from collections.abc import Iterator

from harness.gate import run_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.findings import Finding, Severity
from harness.gate.run_facts import PERFORMANCE, RunFacts
from harness.rules import Ruled

_NS_PER_MS = 1_000_000
_AUDIT_SETTINGS = (
    "performance_issue_unique",
    "performance_issue_same",
    "accuracy_log_sampling_target",
    "accuracy_log_probability",
)


def seeds(facts: RunFacts) -> Iterator[Finding]:
    """The round's seeds; in other legs than performance a peer asks for them, and the checker does not look."""
    severity = None if facts.leg == PERFORMANCE else Severity.REVIEW
    ruled = facts.pack.seeds
    for name, seed in (("qsl", ruled.qsl), ("sample_index", ruled.sample_index), ("schedule", ruled.schedule)):
        key = f"effective_{name}_rng_seed"
        if facts.detail.integer(key) != seed.value:
            found = f"{key} {facts.detail.value(key)}"
            yield R.SEEDS.broken(facts.at(key), found, str(seed.value), severity=severity, source=seed.source)


def token_latencies(facts: RunFacts) -> Iterator[Finding]:
    """``use_token_latencies`` where the benchmark has it on: all legs are read from one file, and are to show it."""
    key = "requested_use_token_latencies"
    if facts.rules.use_token_latencies.value and facts.detail.flag(key) is not True:
        severity = None if facts.leg == PERFORMANCE else Severity.REVIEW
        found = f"use_token_latencies {facts.detail.value(key)}"
        yield R.TOKEN_LATENCIES.broken(facts.at(key), found, severity=severity)


def audit_settings(facts: RunFacts) -> Iterator[Finding]:
    """No setting of an audit.config in a leg that is no audit."""
    severity = None if facts.leg == PERFORMANCE else Severity.REVIEW
    for name in _AUDIT_SETTINGS:
        value = facts.detail.effective(name)
        if value:
            yield R.AUDIT.broken(facts.at(f"effective_{name}"), f"{name} {value}", severity=severity)


def equal_issue(facts: RunFacts) -> Iterator[Finding]:
    """Whole permutations of the data set, one after the other, where the benchmark asks every row equally often."""
    wanted, key = facts.rules.sample_concatenate_permutation, "effective_sample_concatenate_permutation"
    if wanted is not None and wanted.value and facts.detail.flag(key) is not True:
        found = f"sample_concatenate_permutation {facts.detail.value(key)}"
        yield R.EQUAL_ISSUE.broken(facts.at(key), found, source=wanted.source)


def cut_short(facts: RunFacts) -> Iterator[Finding]:
    """No setting that ends a run early or gathers queries."""
    detail = facts.detail
    ends = ["max_duration_ms", "max_query_count"]
    if detail.scenario == "Server":
        ends.append("max_async_queries")  # Offline's one query makes it 1 there, and so does SingleStream
    for name in ends:
        if detail.effective(name):
            yield R.LIMITS_ON_RUN.broken(facts.at(f"effective_{name}"), f"{name} {detail.effective(name)}")
    if detail.value("requested_server_coalesce_queries"):
        yield R.COALESCED.broken(facts.at("requested_server_coalesce_queries"), "server_coalesce_queries on")


def min_queries(facts: RunFacts) -> Iterator[Finding]:
    """A least number of queries, and of samples in Offline's one query."""
    key = "effective_min_query_count"
    queries = facts.detail.integer(key)
    if queries is None or not queries >= 1:
        yield R.MIN_QUERIES.broken(facts.at(key), f"min_query_count {queries}", "at least 1")
    least = facts.expectation.min_query_count
    if least is None or facts.detail.scenario != "Offline":
        return
    key = "effective_samples_per_query"
    samples = facts.detail.integer(key)
    if samples is None or not samples >= least:
        # The checker compares before it looks at the division, and breaks on a number that is not there.
        severity = None if samples is None or facts.holds("samples_per_query") else Severity.REVIEW
        yield R.MIN_QUERIES.broken(facts.at(key), f"{samples} samples a query", f"at least {least}", severity=severity)


def limit_settings(facts: RunFacts) -> Iterator[Finding]:
    """Latency limits in the settings, by which LoadGen judges the run, no milder than the round's."""
    rules = facts.scenario_rules
    milder = None if facts.strict else Severity.REVIEW  # the checker reads what was measured, not these two
    for limit, key in (
        (rules.ttft_p99_below_ms, "requested_server_ttft_latency"),
        (rules.tpot_p99_below_ms, "requested_server_tpot_latency"),
    ):
        if limit is not None and not _at_most(facts, key, limit):
            yield _limit_broken(facts, key, limit, milder)
    limit, key = rules.target_latency_at_most_ms, "effective_target_latency_ns"
    if limit is not None and not _at_most(facts, key, limit):
        tools = facts.tool_rules.target_latency_at_most_ms or limit
        yield _limit_broken(facts, key, limit, Severity.REVIEW if _at_most(facts, key, tools) else None)


def _at_most(facts: RunFacts, key: str, limit: Ruled[float]) -> bool:
    setting = facts.detail.number(key)
    return setting is not None and setting <= limit.value * _NS_PER_MS


def _limit_broken(facts: RunFacts, key: str, limit: Ruled[float], severity: Severity | None) -> Finding:
    found, expected = f"{key} {facts.detail.value(key)} ns", f"at most {limit.value * _NS_PER_MS:.0f} ns"
    return R.LIMIT_SETTING.broken(facts.at(key), found, expected, severity=severity, source=limit.source)
