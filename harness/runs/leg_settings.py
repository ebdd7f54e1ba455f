"""What one leg asks of LoadGen and of the engine, and in what it departs from the round's rules."""

from __future__ import annotations

from dataclasses import dataclass

from harness.clients.loadgen import user_conf
from harness.engines.base import EngineInfo, Int64Array
from harness.errors import ConfigError
from harness.gate.run_facts import ACCURACY
from harness.ledger.record import DatasetEcho, Rate
from harness.runs.plan import PlannedLeg


@dataclass(frozen=True, slots=True)
class LegSettings:
    """``conf`` is the text of user.conf; ``rows`` how many rows of the data set the leg asks, once each or more."""

    conf: str
    rows: int


def asked_rows(leg: PlannedLeg, dataset_rows: int) -> int:
    """How many rows of the data set a leg asks: all but in a short run, which takes the first. No audit is short."""
    if not leg.test_run or leg.audit is not None:
        return dataset_rows
    short = leg.config.test_run
    return min(dataset_rows, short.accuracy_samples if leg.leg == ACCURACY else short.performance_samples)


def loadgen_settings(leg: PlannedLeg, rate: Rate, dataset_rows: int, *, whole: bool = True) -> LegSettings:
    """The user.conf of a leg. The round's own values are LoadGen's and are not repeated, but for those it lacks.

    ``whole`` is False for a stand-in of fewer rows than the round's: it is run over those, as long as any other.
    """
    rules = leg.scenario_rules
    rows = asked_rows(leg, dataset_rows)
    values = {"target_qps": rate.target_qps, **(_audit_values(rows) if leg.audit else _values(leg, rows, whole))}
    text = user_conf.write(rules.loadgen_model.value, rules.loadgen_scenario.value, values)
    user_conf.parse(text)
    return LegSettings(text, rows)


def _audit_values(rows: int) -> dict[str, float]:
    """Beside what audit.config says: LoadGen's built-in count is that of the performance data set, and Offline would
    divide the 990 rows of TEST07 by it, ask nothing and crash.
    """
    return {"performance_sample_count_override": rows}


def _values(leg: PlannedLeg, rows: int, whole: bool) -> dict[str, float]:
    rules = leg.scenario_rules
    scenario = rules.loadgen_scenario.value
    chosen = leg.config.scenarios[leg.scenario]
    values: dict[str, float] = {}
    least = chosen.min_query_count or (rules.min_query_count.value if rules.min_query_count else None)
    if leg.test_run:
        least = leg.config.test_run.server_queries if scenario == "Server" else rows
        values["min_duration"] = leg.config.test_run.min_duration_ms
    elif chosen.min_duration_ms is not None:
        values["min_duration"] = chosen.min_duration_ms
    if not whole and not leg.test_run:
        least = max(rows, chosen.min_query_count or 0)
    if leg.test_run or not whole:
        values[f"{leg.leg}_sample_count_override"] = rows
    if least is not None:
        values["min_query_count"] = least
    latency = _own_target_latency_ms(leg)
    return values if latency is None else values | {"target_latency": latency}


def _own_target_latency_ms(leg: PlannedLeg) -> float | None:
    """The latency to which early stopping is to hold a scenario that LoadGen has no entry for: it would take that of
    the scenario it knows. None where LoadGen's own holds.
    """
    own = leg.scenario_rules
    theirs = leg.rules.scenarios.get(own.loadgen_scenario.value)
    if own.target_latency_at_most_ms is None or theirs is None or own.loadgen_model.value != theirs.loadgen_model.value:
        return None
    limit = own.target_latency_at_most_ms.value
    same = theirs.target_latency_at_most_ms is not None and theirs.target_latency_at_most_ms.value == limit
    return None if same else limit


def output_cap(leg: PlannedLeg) -> int:
    """New tokens an answer of this leg may have: the round's number unless the configuration says another.

    ConfigError where neither says one: no engine is left to choose its own.
    """
    own = leg.config.output_caps.accuracy if leg.leg == ACCURACY else leg.config.output_caps.performance
    cap = own if own is not None else _ruled_cap(leg)
    if cap is None:
        raise ConfigError(
            f"the round {leg.pack.round} has no output cap for {leg.benchmark}, and the configuration none",
            where=f"systems/{leg.system}/{leg.benchmark}.yaml: output_caps",
            mend="give output_caps a number for performance and for accuracy",
        )
    return cap


def deviations(leg: PlannedLeg) -> list[str]:
    """In what the leg departs from the round's rules by configuration: allowed in open, and said there."""
    cap = output_cap(leg)
    ruled = _ruled_cap(leg)
    return [] if cap == ruled else [f"output cap of the {leg.leg} leg {cap} tokens (the round's: {ruled or 'none'})"]


def not_submittable(leg: PlannedLeg, engine: EngineInfo, dataset: DatasetEcho) -> list[str]:
    """Why a run of this leg may never be filed, as far as it is known before it starts."""
    ruled = leg.rules.rows(leg.which, leg.scenario)
    reasons = list(engine.not_submittable)
    if leg.stands_in_for is not None:
        reasons.append(f"stand-in engine for {leg.stands_in_for}")
    if dataset.stand_in:
        fewer = f" of {dataset.rows} rows (the round's: {ruled})" if dataset.rows != ruled else ""
        reasons.append(f"stand-in data set{fewer}")
    if leg.test_run:
        reasons.append("short run (--test_run)")
    return reasons


def check_lengths(leg: PlannedLeg, prompt_tokens: Int64Array, engine: EngineInfo) -> None:
    """ConfigError where the longest of the prompts that are asked and the output cap together are more than the engine
    takes. ``prompt_tokens`` is by row, 0 where nobody counted.
    """
    cap = output_cap(leg)
    asked = prompt_tokens[: asked_rows(leg, len(prompt_tokens))]
    longest = int(asked.max(initial=0))
    if longest + cap > engine.max_total_tokens:
        raise ConfigError(
            f"the longest prompt (row {int(asked.argmax())}: {longest} tokens) and the output cap ({cap}) "
            "are more than the engine takes",
            where=f"systems/{leg.system}/{leg.benchmark}.yaml: engine",
            expected=f"at most {engine.max_total_tokens} tokens together",
            mend="raise engine.max_total_tokens, or lower output_caps (a stated deviation)",
        )


def _ruled_cap(leg: PlannedLeg) -> int | None:
    """The round's cap; None where it has none for the benchmark."""
    if leg.audit_rules is not None:
        return leg.audit_rules.output_cap.value
    caps = leg.rules.output_caps
    if caps is None:
        return None
    return caps.accuracy.value if leg.leg == ACCURACY else caps.performance.value
