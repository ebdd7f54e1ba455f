"""Another programme's rules, asked for by name, held against a report of the endpoints client."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

from harness.errors import UnknownName
from harness.gate import profile_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.findings import Finding, Severity, Verdict, ordered, verdict
from harness.gate.profile_facts import CONFIG, SCORES, SUMMARY, ProfileFacts
from harness.gate.profile_scores import SCORE_CHECKS, figures
from harness.logs import Document, LogError
from harness.logs.endpoints import COMPLETED, FAILED, ISSUED
from harness.logs.values import shown
from harness.rules import RulePack
from harness.rules.rulings import Profile

_PERFORMANCE: Final = "performance"
_METHOD: Final = "eval_method"
_TO_ISSUE: Final = "agentic_inference.num_trajectories_to_issue"

Check: TypeAlias = Callable[[ProfileFacts], Iterator[Finding]]


@dataclass(frozen=True, slots=True)
class ProfileReport:
    """What is said of a report by a profile, and the figures that were judged (None: nobody told them)."""

    name: str
    root: Path
    figures: Mapping[str, float | None]
    findings: tuple[Finding, ...] = field(repr=False)

    @property
    def verdict(self) -> Verdict:
        """The worst of the findings."""
        return verdict(self.findings)


def profile_of(pack: RulePack, name: str) -> Profile:
    """A profile by its name; UnknownName with the nearest where the pack has none such."""
    if name not in pack.profiles:
        raise UnknownName("profile", name, pack.profiles, where="--profile")
    return pack.profiles[name]


def check_profile(name: str, facts: ProfileFacts, root: Path) -> ProfileReport:
    """All that speaks against the report in the folder ``root`` by the profile that ``facts`` were read for."""
    found = [*facts.unread]
    for check in (*_CHECKS, *SCORE_CHECKS):
        found += _guarded(check, facts)
    return ProfileReport(name, root, figures(facts), tuple(ordered(found)))


def _guarded(check: Check, facts: ProfileFacts) -> list[Finding]:
    """A check's findings; a value of a type that no client writes ends it with a finding of its own."""
    found: list[Finding] = []
    try:
        found += check(facts)
    except LogError as error:
        found.append(R.FILES.broken(error.path, error.what, error.expected))
    return found


def _stale(facts: ProfileFacts) -> Iterator[Finding]:
    stale, profile = facts.profile.stale_since, facts.profile
    if stale is not None:
        found = (
            f"rules of {profile.programme.value} for {profile.model.value}: since {stale.value.day} "
            f"({stale.value.commit[:8]}) they are for {stale.value.became}"
        )
        yield R.STALE.broken(CONFIG, found, severity=Severity(profile.stale_severity), source=stale.source)


def _model(facts: ProfileFacts) -> Iterator[Finding]:
    name, model = facts.config.text("model_params.name"), facts.profile.model
    if name is None or _letters(model.value) not in _letters(name):
        yield R.MODEL.broken(CONFIG, f"model_params.name {shown(name)}", model.value, source=model.source)


def _letters(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def _params(facts: ProfileFacts) -> Iterator[Finding]:
    """Sampling as the profile has it, and nothing beside it, for every data set."""
    if not facts.config.data:
        return
    ruled = facts.profile.model_params
    base = _object(facts.config, "model_params")
    for dataset in (*facts.datasets(_PERFORMANCE), *facts.datasets("accuracy")):
        params = {**base, **_object(dataset, "generation_config_override")}
        where = f"of {shown(dataset.value('name'))}"
        for key, wanted in ruled.value.required.items():
            if not _same(params.get(key), wanted):
                found = f"{key} {shown(params.get(key))} {where}"
                yield R.PARAMS.broken(CONFIG, found, f"{key} {shown(wanted)}", source=ruled.source)
        for key, value in params.items():
            if key in (*ruled.value.required, *ruled.value.free) or value is None:
                continue
            if key not in ruled.value.allowed or not _same(value, ruled.value.allowed[key]):
                yield R.PARAMS.broken(CONFIG, f"{key} {shown(value)} {where}", f"no {key}", source=ruled.source)


def _same(value: object, wanted: object) -> bool:
    """Equal, and not merely equal to Python, to which True is 1."""
    return isinstance(value, bool) == isinstance(wanted, bool) and value == wanted


def _object(document: Document, key: str) -> Mapping[str, Any]:
    child = document.child(key)
    return {} if child is None else child.data


def _settings(facts: ProfileFacts) -> Iterator[Finding]:
    measured, ruled = facts.datasets(_PERFORMANCE), facts.profile.settings
    if facts.config.data and len(measured) != 1:
        yield R.SETTINGS.broken(CONFIG, f"{len(measured)} data sets that are measured", "one")
    for dataset in measured:
        for key, wanted in ruled.value.items():
            path = f"accuracy_config.{key}" if key == _METHOD else f"agentic_inference.{key}"
            value = dataset.value(path)
            if not (_same(value, wanted) or (value is None and wanted is False)):
                found = f"{path} {shown(value)}"
                yield R.SETTINGS.broken(CONFIG, found, f"{shown(wanted)}", source=ruled.source)


def _trajectories(facts: ProfileFacts) -> Iterator[Finding]:
    ruled = facts.profile.trajectories
    whole = ruled.value
    if facts.conversations is not None and facts.conversations != whole:
        found = f"a data set of {facts.conversations} trajectories"
        yield R.TRAJECTORIES.broken(CONFIG, found, f"{whole}", source=ruled.source)
    for dataset in facts.datasets(_PERFORMANCE):
        issued = dataset.integer(_TO_ISSUE)
        if issued is None or issued < 1 or issued % whole:
            expected = f"a positive multiple of {whole}"
            yield R.TRAJECTORIES.broken(CONFIG, f"{_TO_ISSUE} {shown(issued)}", expected, source=ruled.source)
        elif facts.turns is not None and facts.turns.trajectories != issued:
            found = f"{facts.turns.trajectories} trajectories in the events, {issued} were to be issued"
            yield R.TRAJECTORIES.broken("events.jsonl", found, f"{issued}", source=ruled.source)


def _complete(facts: ProfileFacts) -> Iterator[Finding]:
    if not facts.summary.data:
        return
    if facts.summary.flag("complete") is not True or facts.summary.text("state") != "complete":
        found = f"complete {shown(facts.summary.value('complete'))}, state {shown(facts.summary.value('state'))}"
        yield R.COMPLETE.broken(SUMMARY, found)
    issued, completed, failed = (facts.log.integer(key) for key in (ISSUED, COMPLETED, FAILED))
    if failed != 0 or completed != issued:
        yield R.COMPLETE.broken(SUMMARY, f"{issued} turns issued, {completed} completed, {failed} failed")
    missing = facts.scores.integer("turns.missing")
    if facts.scores.data and missing != 0:
        yield R.COMPLETE.broken(SCORES, f"turns.missing {shown(missing)}", "0")
    turns = facts.turns
    if turns is not None and turns.answered != turns.issued:
        found = f"{turns.issued - turns.answered} of {turns.issued} turns without an answer that says anything"
        yield R.COMPLETE.broken("events.jsonl", found, "an answer to each")


def _speculation(facts: ProfileFacts) -> Iterator[Finding]:
    drafter = facts.profile.speculative_decoding
    found = "a report does not tell whether the engine drafted"
    yield R.SPECULATION.broken(CONFIG, found, f"no draft, or those of {drafter.value}", source=drafter.source)


_CHECKS: tuple[Check, ...] = (_stale, _model, _params, _settings, _trajectories, _complete, _speculation)
