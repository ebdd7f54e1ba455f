"""Checks of what the endpoints client scored: every sample answered and scored, and the benchmark's target reached."""

from __future__ import annotations

import math
from collections.abc import Iterator

from harness.gate import endpoints_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.endpoints_facts import EndpointsFacts
from harness.gate.endpoints_run import Check, milder, ruled_on
from harness.gate.findings import Finding, Severity
from harness.logs import EndpointsLog, LogError, ScoredDataset
from harness.logs.endpoints import FAILED
from harness.logs.values import shown
from harness.rules import TrajectoryRules
from harness.rules.values import Ruled, Subset, Target

_PERCENT = 100
_WRITTEN_PERCENT = 0.02  # percentages are written with two digits


def _errors(facts: EndpointsFacts) -> Iterator[Finding]:
    counted = EndpointsLog(facts.accuracy, facts.config).value(FAILED)
    if counted:
        yield R.ERRORS.broken(facts.accuracy.path, f"{shown(counted)} failures")


def _score(facts: EndpointsFacts) -> Iterator[Finding]:
    """What the official checker takes for the accuracy: the first score of all, whatever its data set."""
    path, entries = facts.accuracy.path, facts.scored
    scores = [one for one in entries if one.entry.data.get("score") is not None]
    if not scores:
        yield R.SCORE.broken(path, f"no score in {len(entries)} entries")
        return
    first = scores[0]
    if len(scores) > 1:
        said = f"{shown(first.score)} of {shown(first.name)} is the first of {len(scores)}"
        yield R.ACCURACY_FIRST.broken(path, said)
    keys = facts.rules.endpoints_score_keys
    if keys is None or not facts.place.strict:
        return
    target = facts.target
    if not _reaches(first, keys.value, target.value.at_least):
        expected = f"at least {target.value.at_least}"
        yield R.TARGET.broken(path, f"score {shown(first.score)}", expected, source=target.source)


def _reaches(entry: ScoredDataset, keys: list[str], least: float) -> bool:
    try:
        return entry.score_number(keys) >= least
    except LogError:
        return False


def _samples(facts: EndpointsFacts) -> Iterator[Finding]:
    leg, path = "accuracy", facts.accuracy.path
    counts = [one.samples for one in facts.accuracies]
    rows = facts.scenario_rules.datasets.get(leg, facts.rules.datasets[leg])
    total = sum(count for count in counts if count is not None)
    if total != rows.value:
        found = f"{total} samples in {len(counts)} data sets"
        yield R.ACCURACY_COUNT.broken(path, found, f"{rows.value}", source=rows.source)


def _whole(facts: EndpointsFacts) -> Iterator[Finding]:
    """Nothing left out of an entry: a sample that never completes is not in the score."""
    for one in facts.accuracies:
        name, path = shown(one.name), one.entry.path
        if one.complete is not True:
            severity = Severity.REVIEW if one.complete is None else None
            yield R.ACCURACY_COMPLETE.broken(path, f"{name}: complete {shown(one.complete)}", severity=severity)
        total, unit, repeats = one.total_samples, one.unit_samples, one.num_repeats
        if None not in (total, unit, repeats) and total != (unit or 0) * (repeats or 0):
            yield R.ACCURACY_COMPLETE.broken(path, f"{name}: {total} samples of {unit} asked {repeats} times")
        yield from _responses(one, name)


def _responses(one: ScoredDataset, name: str) -> Iterator[Finding]:
    counts, path = one.response_counts, one.entry.path
    if not counts:
        yield R.ACCURACY_COMPLETE.broken(path, f"{name}: no response_counts", severity=Severity.REVIEW)
        return
    issued, done, empty, missing = (counts.get(key) for key in ("issued", "scored", "empty", "missing"))
    if missing != 0 or done != issued or issued != one.samples:
        found = f"{name}: of {one.samples} samples {issued} issued, {done} scored, {missing} missing"
        yield R.ACCURACY_COMPLETE.broken(path, found)
    if empty != 0:
        yield R.ACCURACY_EMPTY.broken(path, f"{name}: {empty} empty answers")


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
    target = facts.target
    if value is not None and not value >= target.value.at_least:
        found.append(_below(facts, value, target, softened))
    return value, found


def _below(facts: EndpointsFacts, value: float, target: Ruled[Target], severity: Severity | None) -> Finding:
    name, least = target.value.key, target.value.at_least
    said, wanted = f"{name} {value}", f"at least {least}"
    return R.GATE.broken(facts.accuracy.path, said, wanted, severity=severity, source=target.source)


def _fraction(one: ScoredDataset) -> float:
    score = one.score_number()
    if not 0 <= score <= 1:
        raise one.entry.wrong("score", "a fraction from 0 to 1")
    return score


def _single(facts: EndpointsFacts) -> tuple[float | None, list[str]]:
    entries = facts.accuracies
    if len(entries) != 1:
        return None, [f"{len(entries)} scored data sets in place of one"]
    keys = facts.rules.endpoints_score_keys
    value = entries[0].score_number([] if keys is None else keys.value)
    if facts.rules.accuracy_scale is not None and not 0 <= value <= 1:
        return None, [f"score {value}, which is no fraction from 0 to 1"]
    return value, []


def _per_repeat(facts: EndpointsFacts) -> tuple[float | None, list[str]]:
    """Each question's mean over its repeats, and then the mean of all questions, in percent."""
    subsets, entries = facts.rules.accuracy_subsets.value, facts.accuracies
    names = [_subset(entry, subsets) for entry in entries]
    doubts = [f"no score of {name}" for name in subsets if name not in names]
    doubts += [f"{name} scored {names.count(name)} times" for name in subsets if names.count(name) > 1]
    doubts += [
        f"{shown(entry.name)}, which is no data set of the benchmark"
        for entry, name in zip(entries, names, strict=True)
        if name is None
    ]
    found = [(entry, subsets[name]) for entry, name in zip(entries, names, strict=True) if name is not None]
    doubts += [
        f"{shown(entry.name)} asked {entry.num_repeats} times, not {subset.repeats}"
        for entry, subset in found
        if entry.num_repeats != subset.repeats
    ]
    if len(found) != len(subsets) or len(set(names)) != len(subsets):
        return None, doubts
    weights = [subset.samples / subset.repeats for _, subset in found]
    correct = math.fsum(_fraction(entry) * weight for (entry, _), weight in zip(found, weights, strict=True))
    return _PERCENT * correct / math.fsum(weights), doubts


def _subset(entry: ScoredDataset, subsets: dict[str, Subset]) -> str | None:
    """The subset that an entry is of: the client calls ``gpqa`` what the reference calls ``gpqa_diamond``."""
    name = (entry.name or "").partition("::")[0]
    return next((one for one in subsets if one == name or (name and one.startswith(f"{name}_"))), None)


def _per_sample(facts: EndpointsFacts) -> tuple[float | None, list[str]]:
    """The mean over all samples as the entry's breakdown has it, in percent, and the benchmark's further targets."""
    entries = facts.accuracies
    if len(entries) != 1:
        return None, [f"{len(entries)} scored data sets in place of one"]
    breakdown = entries[0].breakdown
    target, doubts = facts.rules.accuracy_target.value, []
    overall = None if breakdown is None else breakdown.number(target.key)
    if breakdown is None or overall is None:
        return None, [f"no {target.key} in the breakdown"]
    if abs(_fraction(entries[0]) * _PERCENT - overall) > _WRITTEN_PERCENT:
        doubts.append(f"score {entries[0].score}, but {target.key} {overall}")
    for more in facts.rules.accuracy_more_targets:
        value = breakdown.number(more.value.key)
        if value is None or not value >= more.value.at_least:
            doubts.append(f"{more.value.key} {value}, not at least {more.value.at_least}")
    return float(overall), doubts


def _split(facts: EndpointsFacts) -> Iterator[Finding]:
    subsets = facts.rules.accuracy_subsets.value
    for one in facts.accuracies:
        name, path, breakdown = _subset(one, subsets), one.entry.path, one.breakdown
        if name is not None and one.unit_samples != subsets[name].samples // subsets[name].repeats:
            wanted = f"{subsets[name].samples // subsets[name].repeats}"
            yield R.ACCURACY_SPLIT.broken(path, f"{name}: {one.unit_samples} questions", wanted)
        if breakdown is None:
            continue
        if breakdown.value("unscored_subsets"):
            yield R.ACCURACY_SPLIT.broken(path, f"not scored: {shown(breakdown.value('unscored_subsets'))}")
        for key in ("total_samples", "issued_samples"):
            found = breakdown.integer(key)
            if found is not None and found != one.total_samples:
                yield R.ACCURACY_SPLIT.broken(path, f"breakdown.{key} {found}, of {one.total_samples}")


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
    issued = facts.integer("issued")
    for one in facts.scored:
        if one.dataset_type == "performance" and one.total_samples != issued:
            found = f"{one.total_samples} turns scored inline, {issued} issued"
            yield R.TURNS.broken(one.entry.path, found, severity=milder(facts))


def _shown(facts: EndpointsFacts) -> Iterator[Finding]:
    """In open, where nothing is asked: what several targets are about, beside what closed must reach."""
    entries, more = facts.accuracies, facts.rules.accuracy_more_targets
    breakdown = entries[0].breakdown if len(entries) == 1 else None
    if facts.place.strict or breakdown is None or not more:
        return
    targets = [facts.target.value, *(each.value for each in more)]
    found = ", ".join(f"{each.key} {breakdown.number(each.key)} %" for each in targets)
    wanted = ", ".join(f"at least {each.at_least} %" for each in targets)
    yield R.SHOWN.broken(facts.accuracy.path, found, f"of closed {wanted}", source=facts.target.source)


def _inline(facts: EndpointsFacts) -> Iterator[Finding]:
    ruled = facts.rules.inline_score_reference if isinstance(facts.rules, TrajectoryRules) else None
    for one in facts.scored if ruled is not None else ():
        if ruled is not None and one.dataset_type == "performance" and one.score is not None:
            found, expected = f"inline score {_fraction(one)}", f"the reference's {ruled.value}"
            yield R.INLINE.broken(one.entry.path, found, expected, source=ruled.source)


ACCURACY_CHECKS: tuple[Check, ...] = (
    _errors, _score, _samples, _whole, _gate, _split, _between_targets, _turns, _shown, _inline,
)  # fmt: skip
