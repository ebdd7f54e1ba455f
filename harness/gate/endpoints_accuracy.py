"""Checks of what the endpoints client scored: every sample answered and scored, and the benchmark's target reached."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from harness.gate import endpoints_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.endpoints_facts import EndpointsFacts, Report
from harness.gate.endpoints_run import Check, milder, ruled_on
from harness.gate.findings import Finding, Severity
from harness.logs import LogError
from harness.logs.values import shown
from harness.rules.values import Ruled, Subset, Target

_PERCENT = 100
_WRITTEN_PERCENT = 0.02  # percentages are written with two digits
_FAILED = "result.failed"


def scored(facts: EndpointsFacts) -> list[Report]:
    """The entries of accuracy: not those of a performance data set that was scored inline."""
    return [
        one
        for one in facts.accuracy.objects(_key(facts, "accuracy_entries"))
        if one.value("dataset_type") in (None, "accuracy")
    ]


def _key(facts: EndpointsFacts, role: str) -> str:
    value = facts.layout.keys[role].value
    return value if isinstance(value, str) else value[0]


def _errors(facts: EndpointsFacts) -> Iterator[Finding]:
    places = ((facts.accuracy, _FAILED), (facts.accuracy, _key(facts, "failed")), (facts.config, _FAILED))
    counted = next((value for report, path in places if (value := report.value(path)) is not None), None)
    if counted:
        yield R.ERRORS.broken(facts.accuracy.path, f"{shown(counted)} failures")


def _score(facts: EndpointsFacts) -> Iterator[Finding]:
    """What the official checker takes for the accuracy: the first score of all, whatever its data set."""
    entries = facts.accuracy.objects(_key(facts, "accuracy_entries"))
    scores = [(one, one.value("score")) for one in entries if one.data.get("score") is not None]
    if not scores:
        yield R.SCORE.broken(facts.accuracy.path, f"no score in {len(entries)} entries")
        return
    first, value = scores[0]
    if len(scores) > 1:
        name = shown(first.value("dataset_name"))
        yield R.ACCURACY_FIRST.broken(facts.accuracy.path, f"{shown(value)} of {name} is the first of {len(scores)}")
    keys = facts.rules.endpoints_score_keys
    if keys is None or not facts.place.strict:
        return
    number, target = _as_number(first.data["score"], keys.value), facts.rules.target(facts.place.scenario, "endpoints")
    if number is None or not number >= target.value.at_least:
        expected = f"at least {target.value.at_least}"
        yield R.TARGET.broken(facts.accuracy.path, f"score {shown(value)}", expected, source=target.source)


def _as_number(score: Any, keys: list[str]) -> float | None:  # noqa: ANN401 - whatever was written
    """A score as the official checker reads it: a number, a number's text, or the first such of an object's keys."""
    for value in [score.get(key) for key in keys] if isinstance(score, dict) else [score]:
        if isinstance(value, bool):
            return None
        if isinstance(value, int | float | str):
            try:
                return float(value)
            except OverflowError:
                return None
            except ValueError:
                continue
    return None


def _samples(facts: EndpointsFacts) -> Iterator[Finding]:
    leg, path = "accuracy", facts.accuracy.path
    counts = [_samples_of(one, facts) for one in scored(facts)]
    rows = facts.scenario_rules.datasets.get(leg, facts.rules.datasets[leg])
    total = sum(count for count in counts if count is not None)
    if total != rows.value:
        yield R.ACCURACY_COUNT.broken(path, f"{total} samples in {len(counts)} data sets", f"{rows.value}")


def _samples_of(entry: Report, facts: EndpointsFacts) -> int | None:
    keys = facts.layout.keys["accuracy_samples"].value
    found = (entry.integer(key) for key in ([keys] if isinstance(keys, str) else keys))
    return next((count for count in found if count is not None), None)


def _whole(facts: EndpointsFacts) -> Iterator[Finding]:
    """Nothing left out of an entry: a sample that never completes is not in the score."""
    for one in scored(facts):
        name = shown(one.value("dataset_name"))
        if one.flag("complete") is not True:
            severity = Severity.REVIEW if one.value("complete") is None else None
            found = f"{name}: complete {shown(one.value('complete'))}"
            yield R.ACCURACY_COMPLETE.broken(one.path, found, severity=severity)
        total, unit, repeats = (one.integer(key) for key in ("total_samples", "unit_samples", "num_repeats"))
        if None not in (total, unit, repeats) and total != (unit or 0) * (repeats or 0):
            found = f"{name}: {total} samples of {unit} asked {repeats} times"
            yield R.ACCURACY_COMPLETE.broken(one.path, found)
        yield from _responses(one, name, total)


def _responses(entry: Report, name: str, total: int | None) -> Iterator[Finding]:
    counts = entry.at("response_counts")
    if not counts.data:
        yield R.ACCURACY_COMPLETE.broken(entry.path, f"{name}: no response_counts", severity=Severity.REVIEW)
        return
    issued, done, empty, missing = (counts.integer(key) for key in ("issued", "scored", "empty", "missing"))
    if missing != 0 or done != issued or issued != total:
        found = f"{name}: of {total} samples {issued} issued, {done} scored, {missing} missing"
        yield R.ACCURACY_COMPLETE.broken(entry.path, found)
    if empty != 0:
        yield R.ACCURACY_EMPTY.broken(entry.path, f"{name}: {empty} empty answers")


def gate_value(facts: EndpointsFacts) -> tuple[float | None, list[Finding]]:
    """The accuracy as the benchmark defines it, in the units of its target, and what is said against it.

    None where the report does not tell it.
    """
    weigh = {"per_repeat": _per_repeat, "per_sample": _per_sample, "single": _single}
    try:
        value, doubts = weigh[facts.rules.accuracy_weighting.value](facts)
    except LogError as error:
        return None, [R.VALUE.broken(error.path, error.what, error.expected)]
    softened = None if facts.place.strict else Severity.NOTE
    found = [R.GATE.broken(facts.accuracy.path, doubt, severity=softened) for doubt in doubts]
    target = facts.rules.target(facts.place.scenario, "endpoints")
    if value is not None and not value >= target.value.at_least:
        found.append(_below(facts, value, target, softened))
    return value, found


def _below(facts: EndpointsFacts, value: float, target: Ruled[Target], severity: Severity | None) -> Finding:
    name, least = target.value.key, target.value.at_least
    said, wanted = f"{name} {value}", f"at least {least}"
    return R.GATE.broken(facts.accuracy.path, said, wanted, severity=severity, source=target.source)


def _fraction(entry: Report) -> float:
    score = entry.number("score")
    if score is None or not 0 <= score <= 1:
        raise entry.wrong("score", "a fraction from 0 to 1")
    return float(score)


def _single(facts: EndpointsFacts) -> tuple[float | None, list[str]]:
    entries = scored(facts)
    if len(entries) != 1:
        return None, [f"{len(entries)} scored data sets in place of one"]
    keys, score = facts.rules.endpoints_score_keys, entries[0].value("score")
    value = _as_number(score, [] if keys is None else keys.value)
    if value is None:
        return None, [f"score {shown(score)}"]
    if facts.rules.accuracy_scale is not None and not 0 <= value <= 1:
        return None, [f"score {value}, which is no fraction from 0 to 1"]
    return value, []


def _per_repeat(facts: EndpointsFacts) -> tuple[float | None, list[str]]:
    """Each question's mean over its repeats, and then the mean of all questions, in percent."""
    subsets, entries = facts.rules.accuracy_subsets.value, scored(facts)
    names = [_subset(entry, subsets) for entry in entries]
    doubts = [f"no score of {name}" for name in subsets if name not in names]
    doubts += [f"{name} scored {names.count(name)} times" for name in subsets if names.count(name) > 1]
    doubts += [
        f"{shown(entry.value('dataset_name'))}, which is no data set of the benchmark"
        for entry, name in zip(entries, names, strict=True)
        if name is None
    ]
    found = [(entry, subsets[name]) for entry, name in zip(entries, names, strict=True) if name is not None]
    doubts += [
        f"{shown(entry.value('dataset_name'))} asked {shown(entry.value('num_repeats'))} times, not {subset.repeats}"
        for entry, subset in found
        if entry.integer("num_repeats") != subset.repeats
    ]
    if len(found) != len(subsets) or len(set(names)) != len(subsets):
        return None, doubts
    weights = [subset.samples / subset.repeats for _, subset in found]
    correct = math.fsum(_fraction(entry) * weight for (entry, _), weight in zip(found, weights, strict=True))
    return _PERCENT * correct / math.fsum(weights), doubts


def _subset(entry: Report, subsets: dict[str, Subset]) -> str | None:
    """The subset that an entry is of: the client calls ``gpqa`` what the reference calls ``gpqa_diamond``."""
    name = (entry.text("dataset_name") or "").partition("::")[0]
    return next((one for one in subsets if one == name or (name and one.startswith(f"{name}_"))), None)


def _per_sample(facts: EndpointsFacts) -> tuple[float | None, list[str]]:
    """The mean over all samples as the entry's breakdown has it, in percent, and the benchmark's further targets."""
    entries = scored(facts)
    if len(entries) != 1:
        return None, [f"{len(entries)} scored data sets in place of one"]
    breakdown, doubts = entries[0].at("breakdown"), []
    target = facts.rules.accuracy_target.value
    overall = breakdown.number(target.key)
    if overall is None:
        return None, [f"no {target.key} in the breakdown"]
    if abs(_fraction(entries[0]) * _PERCENT - overall) > _WRITTEN_PERCENT:
        doubts.append(f"score {entries[0].value('score')}, but {target.key} {overall}")
    for more in facts.rules.accuracy_more_targets:
        value = breakdown.number(more.value.key)
        if value is None or not value >= more.value.at_least:
            doubts.append(f"{more.value.key} {value}, not at least {more.value.at_least}")
    return float(overall), doubts


def _split(facts: EndpointsFacts) -> Iterator[Finding]:
    subsets = facts.rules.accuracy_subsets.value
    for one in scored(facts):
        name = _subset(one, subsets)
        if name is not None and one.integer("unit_samples") != subsets[name].samples // subsets[name].repeats:
            wanted = f"{subsets[name].samples // subsets[name].repeats}"
            yield R.ACCURACY_SPLIT.broken(one.path, f"{name}: {shown(one.value('unit_samples'))} questions", wanted)
        breakdown = one.at("breakdown")
        if breakdown.value("unscored_subsets"):
            yield R.ACCURACY_SPLIT.broken(one.path, f"not scored: {shown(breakdown.value('unscored_subsets'))}")
        for key in ("total_samples", "issued_samples"):
            found = breakdown.integer(key)
            if found is not None and found != one.integer("total_samples"):
                yield R.ACCURACY_SPLIT.broken(one.path, f"breakdown.{key} {found}, of {one.value('total_samples')}")


def _between_targets(facts: EndpointsFacts) -> Iterator[Finding]:
    """What one official text's target refuses and the other's does not."""
    doubted = facts.rules.accuracy_review_below
    value, _ = gate_value(facts)
    if doubted is None or value is None or not facts.place.strict:
        return
    if facts.rules.accuracy_target.value.at_least <= value < doubted.value.at_least:
        yield from ruled_on(facts, "AGENTIC-GATE", f"{doubted.value.key} {value}, below {doubted.value.at_least}")


def _gate(facts: EndpointsFacts) -> Iterator[Finding]:
    yield from gate_value(facts)[1]


def _turns(facts: EndpointsFacts) -> Iterator[Finding]:
    """Of trajectories scored inline: all turns that were issued."""
    for one in facts.accuracy.objects(_key(facts, "accuracy_entries")):
        total, issued = one.integer("total_samples"), facts.measured.number("issued")
        if one.value("dataset_type") == "performance" and total != issued:
            found = f"{total} turns scored inline, {issued} issued"
            yield R.TURNS.broken(one.path, found, severity=milder(facts))


ACCURACY_CHECKS: tuple[Check, ...] = (
    _errors, _score, _samples, _whole, _gate, _split, _between_targets, _turns,
)  # fmt: skip
