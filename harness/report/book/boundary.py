"""The configuration boundary of a row: what must be equal for the change from one to the other to mean anything.

What is measured with (engine, its version and settings) is no part of it: that is what one compares.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from harness.gate.run_facts import PERFORMANCE, applied
from harness.ledger.record import RunRecord
from harness.ledger.weights import served_weights
from harness.rules import BenchmarkRules, RulePack, ScenarioRules, TrajectoryRules
from harness.rules.values import LayoutName

Boundary: TypeAlias = tuple[tuple[str, str], ...]
Fields: TypeAlias = Mapping[str, object]

NOT_TOLD: Final = "not told"
NONE: Final = "none"
SCRIPTED: Final = "a script"
MODEL: Final = "a model"
STAND_IN: Final = "a stand-in"

_CLIENT_LEG: Final = "endpoints"
_CLIENTS: Final[Mapping[LayoutName, str]] = {"loadgen": "LoadGen", "endpoints": "endpoints client"}
_NOT_APPLICABLE: Final = ("n/a", "na")
_FIELDS: Final = {
    "accelerator": "accelerator_model_name",
    "accelerators per node": "accelerators_per_node",
    "nodes": "number_of_nodes",
    "processor": "host_processor_model_name",
    "processors per node": "host_processors_per_node",
    "cores": "host_processor_core_count",
}
"""What of a machine is in a boundary, and the field of its description that tells it."""
_ACCELERATORS: Final = ("accelerator", "accelerators per node", "nodes")


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that two sides tell differently: texts, None where a side does not tell it."""

    name: str
    before: str | None
    after: str | None

    def __post_init__(self) -> None:
        if self.before == self.after:
            raise ValueError(f"{self.name}: no difference")


@dataclass(frozen=True, slots=True)
class Subject:
    """What a row is of, whoever tells it. ``layout`` is whose client measured; None is not told."""

    benchmark: str
    scenario: str
    division: str | None
    category: str | None
    layout: LayoutName


def of_record(
    record: RunRecord,
    pack: RulePack | None,
    *,
    division: str | None = None,
    category: str | None = None,
) -> Boundary:
    """The boundary of a run. ``division`` and ``category`` are those of its entry, where it has one; ``pack`` None: a
    round without rules here. :func:`with_said` adds what a person said of the machine.
    """
    layout: LayoutName = "endpoints" if record.id.leg == _CLIENT_LEG else "loadgen"
    subject = Subject(record.id.benchmark, record.id.scenario, division, category, layout)
    answers = _answers(" ".join((f"{record.engine.kind} engine", *record.not_submittable)))
    weights = served_weights(record)
    name, data_type = (_text(weights.get(key, NONE)) for key in ("name", "weight_data_type"))
    return (
        *_measured(subject, pack, stand_in=record.dataset.stand_in),
        *_machine(record.machine.facts),
        *_weights(subject, pack, answers, name, data_type, stand_in=bool(weights.get("stand_in"))),
    )


def of_files(
    subject: Subject, pack: RulePack, *, system: Fields, measurements: Fields, marks: tuple[str, ...] = ()
) -> Boundary:
    """The boundary of a packaged row: ``system`` is ``systems/<system>.json``, ``measurements`` is measurements.json.

    ``marks`` are the reasons that a demonstration gives for being none: they tell of stand-ins.
    """
    said = " ".join(marks)
    answers = _answers(said)
    name, data_type = (_text(measurements.get(key)) for key in ("starting_weights_filename", "weight_data_types"))
    name = NONE if answers == SCRIPTED else _name_alone(name)
    return (
        *_measured(subject, pack, stand_in="stand-in data set" in said),
        *_machine(system),
        *_weights(subject, pack, answers, name, data_type, stand_in="stand-in checkpoint" in said),
    )


def with_said(boundary: Boundary, system: Fields) -> Boundary:
    """The boundary of a run with what a person said of its machine, which wins over what was read off it."""
    names = {name: field for name, field in _FIELDS.items() if name in dict(boundary)}
    known = {names[name]: text for name, text in boundary if name in names}
    told = {field: value for field, value in system.items() if field in _FIELDS.values() and value not in (None, "")}
    if not told:
        return boundary
    machine = _machine({**known, **told})
    before = tuple(itertools.takewhile(lambda pair: pair[0] not in names, boundary))
    after = (pair for pair in boundary[len(before) :] if pair[0] not in names)
    return (*before, *machine, *after)


def differences(before: Boundary, after: Boundary) -> tuple[Difference, ...]:
    """What differs between two boundaries, in their order. Letter case and blanks do not count; what only one side
    tells does.
    """
    mine, theirs = dict(before), dict(after)
    return tuple(
        Difference(name, mine.get(name), theirs.get(name))
        for name in {**mine, **theirs}
        if _plain(mine.get(name)) != _plain(theirs.get(name))
    )


def _answers(said: str) -> str:
    """What answers, by the words that runs have for it."""
    if "scripted engine" in said:
        return SCRIPTED
    return STAND_IN if "stand-in engine" in said else MODEL


def _measured(subject: Subject, pack: RulePack | None, *, stand_in: bool) -> Boundary:
    rules = None if pack is None else pack.benchmarks.get(subject.benchmark)
    own = None if rules is None else applied(rules, subject.scenario)
    return (
        ("benchmark", subject.benchmark),
        ("scenario", subject.scenario),
        ("division", subject.division or NOT_TOLD),
        ("category", subject.category or NOT_TOLD),
        ("client", _CLIENTS[subject.layout]),
        ("metric", _metric(own, subject.layout)),
        (
            "limits",
            NOT_TOLD if own is None else _limits(own, tokens=rules is not None and rules.use_token_latencies.value),
        ),
        ("data set", STAND_IN if stand_in else _rows(rules, subject.scenario)),
    )


def _metric(rules: ScenarioRules | None, layout: LayoutName) -> str:
    if rules is None:
        return NOT_TOLD
    if layout == "loadgen":
        return f"{rules.metric.value.key}, {rules.metric.value.units}"
    ruled = rules.endpoints_metric
    if ruled is None:
        return NOT_TOLD
    key = ruled.value.key if isinstance(ruled.value.key, str) else " / ".join(ruled.value.key)
    return f"{key}, {ruled.value.units}"


def _limits(rules: ScenarioRules, *, tokens: bool) -> str:
    """What the round holds the scenario to; it may differ from round to round. Where LoadGen looks at the latencies of
    ``tokens``, the target latency that it is told bounds nothing.
    """
    whole = rules.latency_p99_at_most_ms or (None if tokens else rules.target_latency_at_most_ms)
    bounds = (
        ("p99 TTFT below", rules.ttft_p99_below_ms),
        ("p99 TPOT below", rules.tpot_p99_below_ms),
        ("p99 latency at most", whole),
    )
    return ", ".join(f"{name} {ruled.value:g} ms" for name, ruled in bounds if ruled is not None) or NONE


def _rows(rules: BenchmarkRules | None, scenario: str) -> str:
    if rules is None:
        return NOT_TOLD
    if isinstance(rules, TrajectoryRules):
        return f"the round's, {rules.performance_data.value.trajectories} trajectories"
    known = scenario in {**rules.scenarios, **rules.analysis_scenarios}
    rows = rules.rows(PERFORMANCE, scenario) if known else rules.datasets[PERFORMANCE].value
    return f"the round's, {rows} rows"


def _machine(fields: Fields) -> Boundary:
    """Accelerators and their number; of a machine without, its processors in their place."""
    told = {name: _text(fields.get(field)) for name, field in _FIELDS.items()}
    if told["accelerators per node"] != "0":
        return tuple((name, told[name]) for name in _ACCELERATORS)
    return tuple((told | {"accelerator": NONE}).items())


def _weights(
    subject: Subject, pack: RulePack | None, answers: str, name: str, data_type: str, *, stand_in: bool
) -> Boundary:
    """Closed fixes the model, whose weights each submitter names in words of his own: there it is the round's name."""
    rules = None if pack is None else pack.benchmarks.get(subject.benchmark)
    fixed = rules is not None and subject.division not in (None, "open") and answers == MODEL and not stand_in
    model = rules.model.value if rules is not None and fixed else name
    return (
        ("answered by", answers),
        ("model", f"{model}, {STAND_IN}" if stand_in else model),
        ("weights", data_type),
    )


def _name_alone(told: str) -> str:
    """The name of weights as this harness files it, without the hash behind: a record has it so."""
    return told.partition(" (sha256 ")[0]


def _text(value: object) -> str:
    """A field as text; what does not apply to a machine is none."""
    text = "" if value is None else " ".join(str(value).split())
    if text.casefold() in _NOT_APPLICABLE:
        return NONE
    return text or NOT_TOLD


def _plain(text: str | None) -> str | None:
    return None if text is None else " ".join(text.casefold().split())
