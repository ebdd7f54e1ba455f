"""What one leg asks of LoadGen and of the engine, and in what it departs from the round's rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from harness.clients.loadgen import user_conf
from harness.engines.base import EngineInfo, Int64Array
from harness.errors import ConfigError
from harness.gate.run_facts import ACCURACY, PERFORMANCE
from harness.ledger.record import DatasetEcho, Rate
from harness.runs.plan import PlannedLeg

_MS_PER_S: Final = 1000
STAND_IN: Final = "stand-in data set"


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


def loadgen_settings(
    leg: PlannedLeg, rate: Rate, dataset_rows: int, *, whole: bool = True, trajectories: bool = False
) -> LegSettings:
    """The user.conf of a leg. The round's own values are LoadGen's and are not repeated, but for those it lacks.

    ``whole`` is False for a stand-in of fewer rows than the round's: it is run over those, as long as any other. Of
    ``trajectories`` the library holds what is asked, no less and no more: there is no row count to override.
    """
    rules = leg.scenario_rules
    rows = asked_rows(leg, dataset_rows)
    if leg.audit is not None:
        asked = _audit_values(rows)
    else:
        asked = _values(leg, rows) | ({} if trajectories else _of_fewer_rows(leg, rows, whole))
    values = {**_expected(rules.loadgen_scenario.value, rate.target_qps), **asked}
    text = user_conf.write(rules.loadgen_model.value, rules.loadgen_scenario.value, values)
    user_conf.parse(text)
    return LegSettings(text, rows)


def _expected(scenario: str, rate: float) -> dict[str, float]:
    """What LoadGen is told to expect. SingleStream knows no rate; by the latency it generates twice the queries that
    the duration has room for, where it would make those of a latency of one millisecond, a million of them.
    """
    if scenario == "SingleStream":
        return {"target_latency": max(1, round(_MS_PER_S / rate))}
    return {"target_qps": rate}


def _audit_values(rows: int) -> dict[str, float]:
    """Beside what audit.config says: LoadGen's built-in count is that of the performance data set, and Offline would
    divide the 990 rows of TEST07 by it, ask nothing and crash.
    """
    return {"performance_sample_count_override": rows}


def _values(leg: PlannedLeg, rows: int) -> dict[str, float]:
    rules = leg.scenario_rules
    chosen = leg.config.scenarios[leg.scenario]
    values: dict[str, float] = {}
    least = chosen.min_query_count or (rules.min_query_count.value if rules.min_query_count else None)
    if leg.test_run:
        least = _fewest(leg, rows)
        values["min_duration"] = leg.config.test_run.min_duration_ms
    elif chosen.min_duration_ms is not None:
        values["min_duration"] = chosen.min_duration_ms
    if least is not None:
        values["min_query_count"] = least
    latency = chosen.target_latency_ms or _own_target_latency_ms(leg)
    return values if latency is None else values | {"target_latency": latency}


def _fewest(leg: PlannedLeg, rows: int) -> int:
    """Queries of a short run: as many as LoadGen's early stopping wants, where it has a say."""
    short, scenario = leg.config.test_run, leg.scenario_rules.loadgen_scenario.value
    return {"Server": short.server_queries, "SingleStream": max(rows, short.stream_queries)}.get(scenario, rows)


def _of_fewer_rows(leg: PlannedLeg, rows: int, whole: bool) -> dict[str, float]:
    """What a leg over a part of the data set, or a shorter stand-in, asks beside or in place of the rest."""
    if whole and not leg.test_run:
        return {}
    values: dict[str, float] = {f"{leg.leg}_sample_count_override": rows}
    if not leg.test_run:
        values["min_query_count"] = max(rows, leg.config.scenarios[leg.scenario].min_query_count or 0)
    return values


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
        counted = dataset.rows != ruled and not (leg.of_trajectories and leg.leg == PERFORMANCE)
        reasons.append(f"stand-in data set of {dataset.rows} rows (the round's: {ruled})" if counted else STAND_IN)
    if leg.probe is not None:
        reasons.append("probe of find_target_qps (short)")
    elif leg.test_run:
        reasons.append("short run (--test_run)")
    return reasons


def only_for_analysis(leg: PlannedLeg) -> list[str]:
    """Why a leg that LoadGen measures may never be filed where a benchmark's rows are another client's."""
    if not leg.of_trajectories:
        return []
    if leg.leg == PERFORMANCE:
        return [
            f"metric differs: {leg.scenario_rules.metric.value.key} over whole trajectories; the row's metric is the "
            "mean latency of turns (endpoints client)"
        ]
    return [
        "layout differs: accuracy by LoadGen; the row's accuracy is of the same run as its metric (endpoints client)"
    ]


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
