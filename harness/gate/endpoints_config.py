"""Checks of the endpoints client's configuration: the benchmark's model, sampling, load, data sets and scorers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from harness.gate import endpoints_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.endpoints_facts import EndpointsFacts
from harness.gate.endpoints_run import Check, milder, ruled_on
from harness.gate.findings import Finding, Severity
from harness.gate.rulings import accepted, ruling_of
from harness.logs import Document
from harness.logs.values import shown
from harness.rules import BenchmarkRules
from harness.rules.benchmark import ImageRules, TrajectoryRules
from harness.rules.values import ModelParams

PERFORMANCE, ACCURACY = "performance", "accuracy"
_CAP = "max_new_tokens"
_OFF = {"top_k": (0, -1)}
"""Values that mean the same: both turn the limit off."""
_STREAMS = ("on", "auto", True)
"""True is what YAML makes of an ``on`` without quotation marks."""


def datasets(facts: EndpointsFacts, kind: str) -> list[Document]:
    """The configured data sets of a kind; performance is what a data set without a type is."""
    return [one for one in facts.config.children("datasets") if (one.value("type") or PERFORMANCE) == kind]


def _object(document: Document, key: str) -> Mapping[str, Any]:
    """The object at a dotted path, an empty one where there is none."""
    child = document.child(key)
    return {} if child is None else child.data


def _model(facts: EndpointsFacts) -> Iterator[Finding]:
    name, ruled = facts.config.text("model_params.name"), facts.rules.model
    if name != ruled.value:
        severity = _of_another_name(facts, name)
        said = f"model_params.name {shown(name)}"
        yield R.MODEL.broken(facts.config.path, said, ruled.value, severity=severity, source=ruled.source)
    ruleset, wanted = facts.config.text("submission_ref.ruleset"), f"mlperf-inference-{facts.pack.round}"
    if ruleset not in (None, wanted):
        yield R.MODEL.broken(facts.config.path, f"submission_ref.ruleset {shown(ruleset)}", wanted)
    model = facts.config.text("submission_ref.model")
    if model is not None and facts.place.benchmark not in model and _plain(ruled.value) not in _plain(model):
        found = f"submission_ref.model {shown(model)}"
        yield R.MODEL.broken(facts.config.path, found, facts.place.benchmark, severity=milder(facts))


def _of_another_name(facts: EndpointsFacts, name: str | None) -> Severity | None:
    """A served name may be a path, or tell how it was quantised; the model's own must be in it. Open may take any."""
    if name is None:
        return None
    if _plain(facts.rules.model.value) in _plain(name):
        return Severity.NOTE if isinstance(facts.rules, TrajectoryRules) else Severity.REVIEW  # as its example does
    if not facts.place.strict and isinstance(facts.rules, TrajectoryRules) and _plain(name) in _letters(facts.told):
        return Severity.NOTE
    return Severity.REVIEW if names_model(name, facts.rules) else milder(facts)


def names_model(name: str, rules: BenchmarkRules) -> bool:
    """Whether a served name is the model's, or has it in it, or is a path, which tells nothing."""
    return _plain(rules.model.value) in _plain(name) or name.startswith(("/", "./", "~"))


def _plain(model: str) -> str:
    """The letters and digits of a model's name without its owner."""
    return _letters(model.rpartition("/")[2])


def _letters(text: str) -> str:
    return "".join(letter for letter in text.casefold() if letter.isalnum())


def _stale(facts: EndpointsFacts) -> Iterator[Finding]:
    """A model whose rules are another programme's, which has moved on since."""
    name = facts.config.text("model_params.name")
    if not isinstance(facts.rules, TrajectoryRules) or name is None:
        return
    for profile in facts.pack.profiles.values():
        stale = profile.stale_since
        if stale is None or _plain(profile.model.value) not in _plain(name):
            continue
        source = facts.pack.sources[profile.model.source.partition("/")[0]]
        as_of = profile.model.as_of or source.as_of
        found = (
            f"{name}: rules of {profile.programme.value} as of {as_of} ({source.commit[:8]}); since {stale.value.day} "
            f"they are for {stale.value.became} ({stale.value.commit[:8]})"
        )
        severity = Severity(profile.stale_severity)
        yield R.STALE.broken(facts.config.path, found, severity=severity, source=stale.source)


def _sampling(facts: EndpointsFacts) -> Iterator[Finding]:
    ruled = facts.rules.endpoints_model_params
    base = _object(facts.config, "model_params")
    if ruled is None:
        return
    for leg in (PERFORMANCE, ACCURACY):
        for one in datasets(facts, leg):
            params = {**base, **_object(one, "generation_config_override")}
            yield from _parameters(facts, params, ruled.value, leg, one)


def _parameters(
    facts: EndpointsFacts, params: Mapping[str, Any], rules: ModelParams, leg: str, dataset: Document
) -> Iterator[Finding]:
    where = f"of {shown(dataset.value('name'))} ({leg})"
    caps = facts.rules.output_caps
    required = dict(rules.required)
    if caps is not None and _CAP in required:
        required[_CAP] = (caps.accuracy if leg == ACCURACY else caps.performance).value
    for name, wanted in required.items():
        if not _same(name, params.get(name), wanted):
            yield from _deviation(facts, name, params.get(name), wanted, where)
    for name, value in params.items():
        if name in required or name in rules.free or value is None:
            continue
        if name not in rules.allowed:
            yield from _deviation(facts, name, value, "absent", where)
        elif not _same(name, value, rules.allowed[name]):
            yield from _deviation(facts, name, value, rules.allowed[name], where)
        elif name in _doubted(facts):
            yield from ruled_on(facts, "VLM-SAMPLING", f"{name} {shown(value)} {where}")


def _same(name: object, value: object, wanted: object) -> bool:
    """Equal as numbers are; a flag is no number."""
    if isinstance(value, bool) or isinstance(wanted, bool) or not isinstance(value, int | float):
        return type(value) is type(wanted) and value == wanted
    off = _OFF.get(str(name), ())
    return value == wanted or (value in off and wanted in off)


def _doubted(facts: EndpointsFacts) -> tuple[str, ...]:
    """The parameters of which official texts say different things."""
    ruling = ruling_of(facts.pack, "VLM-SAMPLING")
    concerned = ruling is not None and facts.place.benchmark in ruling.concerns.benchmarks
    return tuple(type(facts.rules.sampling.value).model_fields) if concerned else ()


def _deviation(facts: EndpointsFacts, name: object, value: object, wanted: object, where: str) -> Iterator[Finding]:
    cap = ruling_of(facts.pack, "OUTPUT-CAP")
    if name == _CAP and cap is not None and wanted == cap.value and facts.place.benchmark in cap.concerns.benchmarks:
        told = accepted(cap, str(value), facts.config.path)
        if told is not None:
            yield told
            return
    severity = milder(facts)
    doubted = ruling_of(facts.pack, "VLM-SAMPLING")
    if name in _doubted(facts) and doubted is not None and doubted.breach is not None:
        severity = Severity(doubted.breach)
    found = f"{shown(name)} {shown(value)} {where}"
    yield R.SAMPLING.broken(facts.config.path, found, shown(wanted), severity=severity)


def _load(facts: EndpointsFacts) -> Iterator[Finding]:
    settings = facts.rules.endpoints_settings
    wanted: dict[str, Any] = {"load_pattern.type": facts.layout.load_patterns.value.get(facts.place.scenario)}
    source = facts.layout.load_patterns.source
    if settings is not None:
        wanted, source = settings.value, settings.source
    for key, value in wanted.items():
        if not _same(key, facts.config.value(f"settings.{key}"), value):
            found = f"settings.{key} {shown(facts.config.value(f'settings.{key}'))}"
            yield R.LOAD.broken(facts.config.path, found, shown(value), severity=milder(facts), source=source)


def _agentic(facts: EndpointsFacts) -> Iterator[Finding]:
    ruled = facts.rules.endpoints_agentic
    for one in datasets(facts, PERFORMANCE) if ruled is not None else []:
        given = {**_object(one, "agentic_inference"), "eval_method": one.value("accuracy_config.eval_method")}
        for key, wanted in (ruled.value if ruled is not None else {}).items():
            value = given.get(key)
            if not (_same(key, value, wanted) or (value is None and wanted is False)):
                found = f"{key} {shown(value)}"
                source = ruled.source if ruled is not None else None
                yield R.LOAD.broken(facts.config.path, found, shown(wanted), severity=milder(facts), source=source)


def _scorers(facts: EndpointsFacts) -> Iterator[Finding]:
    for leg in (PERFORMANCE, ACCURACY):
        if not datasets(facts, leg):
            yield R.SCORER.broken(facts.config.path, f"no data set of type {leg}", severity=milder(facts))
    wanted = [*_of_images(facts), *_of_trajectories(facts)]
    for key, found, expected, source in wanted:
        if not _same(key, found, expected) and found != expected:
            said = f"{key} {shown(found)}"
            yield R.SCORER.broken(facts.config.path, said, shown(expected), severity=milder(facts), source=source)


_Wanted = tuple[str, Any, Any, str]


def _of_images(facts: EndpointsFacts) -> Iterator[_Wanted]:
    ruled = facts.rules.endpoints_datasets if isinstance(facts.rules, ImageRules) else None
    if ruled is None:
        return
    name = ruled.value.Interactive if facts.place.scenario == "Interactive" else ruled.value.default
    for leg in (PERFORMANCE, ACCURACY):
        for one in datasets(facts, leg):
            yield f"name of the {leg} data set", one.value("name"), name, ruled.source
            if leg == ACCURACY:
                found = one.value("accuracy_config.eval_method")
                yield "accuracy_config.eval_method", found, ruled.value.eval_method, ruled.source
            yield from _of_what_rows(facts, leg, one)


def _of_what_rows(facts: EndpointsFacts, leg: str, one: Document) -> Iterator[_Wanted]:
    """The splits that a data set is made of, and the column that answers are held against; absent, the client's own."""
    rules, scenario = facts.rules, facts.place.scenario
    if not isinstance(rules, ImageRules):
        return
    source = rules.dataset_sources.get(scenario, rules.dataset_sources["default"])
    splits, told = one.value("generate_params.split"), rules.endpoints_client
    if splits is not None:
        yield f"generate_params.split of the {leg} data set", splits, list(source.value.splits), source.source
    if leg == ACCURACY and told is not None:
        truth, wanted = one.value("accuracy_config.ground_truth"), told.value.data(scenario).accuracy[0].ground_truth
        yield "accuracy_config.ground_truth", truth, wanted, told.source


def _of_trajectories(facts: EndpointsFacts) -> Iterator[_Wanted]:
    if not isinstance(facts.rules, TrajectoryRules):
        return
    ruled, categories = facts.rules.accuracy_sampling, facts.rules.accuracy_subsets
    for one in datasets(facts, ACCURACY):
        named = one.value("generate_params.categories")
        if not isinstance(named, list) or sorted(map(str, named)) != sorted(categories.value):
            yield "generate_params.categories", named, list(categories.value), categories.source
        for key, wanted in ruled.value.model_dump().items():
            yield f"generate_params.{key}", one.value(f"generate_params.{key}"), wanted, ruled.source


def _streaming(facts: EndpointsFacts) -> Iterator[Finding]:
    rules = facts.scenario_rules
    found = facts.config.value("model_params.streaming")
    if rules.ttft_p99_below_ms is not None and found is not None and found not in _STREAMS:
        yield R.STREAMING.broken(facts.config.path, f"model_params.streaming {shown(found)}")


def _revision(facts: EndpointsFacts) -> Iterator[Finding]:
    if not isinstance(facts.rules, ImageRules):
        return
    sources = facts.rules.dataset_sources
    ruled = sources.get(facts.place.scenario, sources["default"])
    for one in facts.config.children("datasets"):
        found = one.value("generate_params.revision")
        if found == ruled.value.revision:
            continue
        said = f"revision {shown(found)} of {shown(one.value('name'))}"
        severity = _of_revision(facts, found)
        yield R.REVISION.broken(facts.config.path, said, ruled.value.revision, severity=severity, source=ruled.source)


def _of_revision(facts: EndpointsFacts, found: object) -> Severity:
    """An absent revision may have been the right one; another one is another data set."""
    if found is None:
        return Severity.REVIEW if facts.place.strict else Severity.NOTE
    return Severity.REJECT if facts.place.strict else Severity.REVIEW


def _client(facts: EndpointsFacts) -> Iterator[Finding]:
    """Which client measured, and how its answers ended."""
    summary, path = facts.summary, facts.summary.path
    version, commit = summary.value("version"), summary.value("git_sha")
    if version is None and commit is None:
        yield R.OURS.broken(path, "neither version nor git_sha in the report")
    elif version is None or commit is None:
        yield R.VERSION.broken(path, f"version {shown(version)}, git_sha {shown(commit)}")
    pinned = ruling_of(facts.pack, "VLM-CLIENT-COMMIT")
    concerned = pinned is not None and facts.place.benchmark in pinned.concerns.benchmarks
    if (
        pinned is not None
        and concerned
        and not (isinstance(commit, str) and commit and pinned.other.says.startswith(commit))
    ):
        yield from ruled_on(facts, pinned.id, f"a client of commit {shown(commit)}")
    yield from _finish(facts)


def _finish(facts: EndpointsFacts) -> Iterator[Finding]:
    counts, completed = facts.summary.child("finish_reason_counts"), facts.integer("completed")
    reasons = {} if counts is None else {name: counts.integer(name) or 0 for name in counts.data}
    if sum(reasons.values()) != completed:
        found = f"{sum(reasons.values())} finish reasons for {completed} completed samples"
        yield R.FINISH.broken(facts.summary.path, found)
    cut = reasons.get("length", 0)
    if cut and completed:
        yield R.TRUNCATED.broken(facts.summary.path, f"{cut} of {completed} answers ({cut / completed:.2%})")


CONFIG_CHECKS: tuple[Check, ...] = (
    _model, _stale, _sampling, _load, _agentic, _scorers, _streaming, _revision, _client,
)  # fmt: skip
