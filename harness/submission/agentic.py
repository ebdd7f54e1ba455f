"""What the README of a row of trajectories says besides: its accuracy beside closed's targets, and how it was asked.

Figures are those of the reports that are filed; where LoadGen measured, those that the run recorded.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from pydantic import ValidationError

from harness.clients.endpoints.config import REPORT
from harness.config.engine_subject import keys_of
from harness.config.engines import HttpEngine, TrtllmEngine
from harness.errors import MissingError, UnknownName
from harness.gate.engine_config import engine_of
from harness.ledger.record import RunRecord
from harness.ledger.turn_report import Inline, read_turn_report
from harness.logs import AccuracyResults, Document, EndpointsLog, LogError
from harness.logs.endpoints import ISSUED
from harness.rules import RulePack
from harness.rules.benchmark import TrajectoryRules
from harness.submission.rows import Row

_UNTOLD: Final = "not told"
_PERFORMANCE: Final = "performance"
_MODEL_PARAMS: Final = "model_params"
_KWARGS: Final = "chat_template_kwargs"
_TRAJECTORIES: Final = "dataset.trajectories"
_DIGITS: Final = 4


@dataclass(frozen=True, slots=True)
class Told:
    """What is known of a row. ``figures`` are the two accuracies with targets, ``categories`` their parts, in percent.

    ``inline`` is the score of the measured answers against the recorded ones, from 0 to 1, over ``turns``. ``asked``
    is what every request had. None or empty: nobody told it.
    """

    figures: Mapping[str, float] = field(default_factory=dict)
    categories: Mapping[str, float] = field(default_factory=dict)
    inline: float | None = None
    turns: int | None = None
    asked: Mapping[str, Any] = field(default_factory=dict)


def readme_names(row: Row, pack: RulePack) -> dict[str, str]:
    """Names for the README's template; none of a benchmark that replays nothing."""
    rules = pack.benchmark(row.entry.benchmark)
    if not isinstance(rules, TrajectoryRules):
        return {}
    told = _of_report(row, rules) if row.layout == "endpoints" else _of_legs(row, rules)
    return {
        "targets": _targets(told, rules, row.entry.division, pack),
        "categories": _categories(told, rules),
        "inline": _inline(told, rules),
        "trajectories": _trajectories(row.performance.record, rules),
        "changed": _list(_changed(row.performance.record, told, rules)),
        "constraints": _list(_constraints(row, told, rules)),
    }


def _of_report(row: Row, rules: TrajectoryRules) -> Told:
    """What the client's report tells, as far as it can be read: what it does not tell the gate says."""
    folder = row.performance.run.folder / REPORT
    try:
        results = AccuracyResults.read(folder)
        summary = EndpointsLog.read(folder)
        inline = next((one for one in results.scored if one.dataset_type == _PERFORMANCE), None)
        broken_down = next((one.breakdown for one in results.scored if one.is_accuracy and one.breakdown), None)
        if not _is_whole(row):
            broken_down = None
        return Told(
            figures=_numbers(broken_down, _keys(rules)),
            categories=_numbers(broken_down, rules.accuracy_subsets.value, "category_scores."),
            inline=None if inline is None else inline.score_number(),
            turns=summary.integer(ISSUED),
            asked=_object(summary.config, _MODEL_PARAMS),
        )
    except LogError:
        return Told()


def _is_whole(row: Row) -> bool:
    """Whether the run has a score: one of a part of the questions is none."""
    echo = row.accuracy.record.accuracy
    return echo is not None and echo.value is not None


def _of_legs(row: Row, rules: TrajectoryRules) -> Told:
    """What LoadGen's two legs recorded."""
    record, echo = row.performance.record, row.accuracy.record.accuracy
    inline = _recorded_inline(row)
    agentic = record.config.get("agentic") or {}
    sampling = rules.sampling.value.model_dump() | {_KWARGS: agentic.get(_KWARGS) or {}}
    every = {**echo.also, echo.key: echo.value or 0.0} if echo is not None and _is_whole(row) else {}
    return Told(
        figures={key: every[key] for key in _keys(rules) if key in every},
        categories={name: every[name] for name in rules.accuracy_subsets.value if name in every},
        inline=None if inline is None else inline.score,
        turns=None if inline is None else inline.recorded,
        asked=sampling,
    )


def _recorded_inline(row: Row) -> Inline | None:
    """The inline score that the performance leg's turns came to; None where it kept none."""
    try:
        return read_turn_report(row.performance.run.folder).inline
    except MissingError:
        return None


def _keys(rules: TrajectoryRules) -> list[str]:
    """The figures that have targets, the first of them the result's accuracy."""
    return [rules.accuracy_target.value.key, *(more.value.key for more in rules.accuracy_more_targets)]


def _numbers(document: Document | None, names: Sequence[str] | Mapping[str, Any], prefix: str = "") -> dict[str, float]:
    if document is None:
        return {}
    found = {name: document.number(prefix + name) for name in names}
    return {name: float(number) for name, number in found.items() if number is not None}


def _object(document: Document, key: str) -> Mapping[str, Any]:
    child = document.child(key)
    return {} if child is None else child.data


def _targets(told: Told, rules: TrajectoryRules, division: str, pack: RulePack) -> str:
    enforced = pack.holds("accuracy_target", division)
    holds = f"enforced in {division}" if enforced else f"shown, not enforced in {division}"
    reference = {} if rules.accuracy_reference is None else rules.accuracy_reference.value
    lines = [f"| figure, percent | here | {rules.model.value} | closed asks | |", "|---|---|---|---|---|"]
    for ruled in (rules.accuracy_target, *rules.accuracy_more_targets):
        key, least = ruled.value.key, ruled.value.at_least
        here = told.figures.get(key)
        state = _UNTOLD if here is None else "reached" if here >= least else "not reached"
        cells = (key, _number(here), _number(reference.get(key)), f"at least {least:g}", f"{state}; {holds}")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _categories(told: Told, rules: TrajectoryRules) -> str:
    lines = ["| category | samples | percent |", "|---|---|---|"]
    for name, subset in rules.accuracy_subsets.value.items():
        lines.append(f"| {name} | {subset.samples} | {_number(told.categories.get(name))} |")
    return "\n".join(lines)


def _trajectories(record: RunRecord, rules: TrajectoryRules) -> str:
    """The recording that was replayed, by its hash in the run's fingerprint."""
    data = rules.performance_data.value
    sha256 = record.fingerprint.keys.get(_TRAJECTORIES)
    if sha256 == data.sha256:
        return f"{data.file}, {data.trajectories} trajectories, {data.turns} turns, sha256 {sha256}"
    return f"sha256 {sha256 or _UNTOLD}, which is not the round's {data.file}"


def _inline(told: Told, rules: TrajectoryRules) -> str:
    reference = rules.inline_score_reference
    beside = "" if reference is None else f"; {rules.model.value} has {reference.value:g}"
    if told.inline is None:
        return _UNTOLD + beside
    over = "" if told.turns is None else f" over {told.turns} turns"
    return f"{told.inline:.{_DIGITS}f}{over} (commands as recorded, as a share of both){beside}"


def _changed(record: RunRecord, told: Told, rules: TrajectoryRules) -> Iterator[str]:
    """What is not as the reference has it, from what ran."""
    checkpoint = record.engine.checkpoint or {}
    served = str(checkpoint.get("name", _UNTOLD))
    if served != rules.model.value:
        weights = checkpoint.get("weight_data_type", _UNTOLD)
        yield f"The model: {served} ({weights}) in place of {rules.model.value}."
    versions = ", ".join(f"{name} {version}" for name, version in record.engine.versions.items()) or _UNTOLD
    yield f"The engine: {record.engine.kind} ({versions}) in place of the reference's server."
    if kwargs := told.asked.get(_KWARGS):
        said = ", ".join(f"`{key}: {json.dumps(value)}`" for key, value in dict(kwargs).items())
        yield f"Every request has `{_KWARGS}` with {said}: what the reference tells its server on the command line."
    yield from (f"{deviation[0].upper()}{deviation[1:]}." for deviation in record.deviations)


def _constraints(row: Row, told: Told, rules: TrajectoryRules) -> Iterator[str]:
    record = row.performance.record
    turns = "" if told.turns is None else f" {told.turns} turns were asked."
    yield (
        "No latency limit. One turn at a time: each waits for the one before, and a trajectory for the one before it."
        if row.layout == "endpoints"
        else "LoadGen asks whole trajectories; its latency is from a trajectory's first turn to the end of its last."
    ) + turns
    asked = {key: value for key, value in told.asked.items() if key not in ("name", "tokenizer_name", _KWARGS)}
    if asked:
        yield "Each request: " + ", ".join(f"{key} {json.dumps(value)}" for key, value in asked.items()) + "."
    if rules.output_caps is not None:
        ruled, caps = rules.output_caps.performance.value, record.config.get("output_caps") or {}
        yield f"Tokens that an answer may have: {caps.get(_PERFORMANCE) or ruled} (the round's: {ruled})."
    yield f"KV cache from turn to turn: {_prefix_reuse(record)}. The query is a trajectory, not a turn."


def _prefix_reuse(record: RunRecord) -> str:
    """Whether the server keeps what one request computed for the next, by its configuration."""
    try:
        engine = engine_of(record.config, record.id.scenario)
        if not isinstance(engine, HttpEngine | TrtllmEngine):
            return f"as the engine {engine.kind} has it"
        keys = keys_of(engine)
    except (ValidationError, UnknownName, KeyError, TypeError, AttributeError):
        return _UNTOLD
    key = keys.key_of("prefix_reuse")
    if key is None:
        return f"as {keys.name} has it"
    state = "kept" if keys.meaning(engine.options, "prefix_reuse") else "not kept"
    how = "as configured" if keys.says(engine.options, "prefix_reuse") else "where it is not set"
    return f"{state} (`{key}` of {keys.name}, {how})"


def _number(value: float | None) -> str:
    return _UNTOLD if value is None else f"{value:.2f}"


def _list(lines: Iterator[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
