"""Which legs to run, in which order: what the user named, checked against the configuration and the round's rules."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.benchmarks.base import Which
from harness.clients.loadgen import audit_conf
from harness.clients.loadgen.audit_conf import AuditFile
from harness.config import BenchmarkFile, Project, stand_in
from harness.config.engine_checks import check_engine
from harness.config.engine_subject import Subject, declared_weights
from harness.config.extends import Layered
from harness.config.models import Engine, TargetQps, UnmeasuredRate
from harness.config.stand_in import stands_in_for
from harness.errors import ConfigError, UnknownName
from harness.gate.run_facts import ACCURACY, AUDITS, MODES, PERFORMANCE
from harness.rules import BenchmarkRules, RulePack, ScenarioRules, TrajectoryRules
from harness.rules.audits import AuditRules
from harness.runs.scenario_checks import check_scenario

LEGS = (PERFORMANCE, ACCURACY, *AUDITS)
"""All legs, in the order they run."""
TEST_MODES = {MODES[leg]: leg for leg in (PERFORMANCE, ACCURACY)}
"""LoadGen's test modes, and the legs that people mean by them."""
ASKS: Mapping[str, Which] = {
    PERFORMANCE: "performance",
    ACCURACY: "accuracy",
    "TEST07": "TEST07",
    "TEST09": "performance",
}
"""What a leg asks of the data set."""
PROBE = "probe"
"""What the ledger calls short performance legs that a search for a rate makes; they are none of the row's legs."""


@dataclass(frozen=True, slots=True)
class ProbeOf:
    """Of which search a leg is a probe, and the how manieth; ``warm``: the engine has just answered others."""

    search: str
    number: int
    purpose: str
    warm: bool


@dataclass(frozen=True, slots=True)
class Selection:
    """What the user asked for; an empty list means all there are, of legs those that are no audits.

    ``with_audits``: where no legs are named, the audits too, of the benchmarks that have them.
    """

    systems: Sequence[str] = ()
    benchmarks: Sequence[str] = ()
    scenarios: Sequence[str] = ()
    legs: Sequence[str] = ()
    test_run: bool = False
    stand_in: bool = False
    """CPU servers in place of accelerators; such legs are short ones."""
    variant: str | None = None
    """Another engine than the one in the benchmark's own file: that of ``<benchmark>.<variant>.yaml`` beside it."""
    with_audits: bool = False


@dataclass(frozen=True, slots=True)
class PlannedLeg:
    """One leg before it starts: what it is, and the rules and configuration it runs under.

    ``audit`` is an audit's settings; None for the other legs. ``stands_in_for`` is the engine that the configuration
    has a stand-in of; None where it is the engine itself. ``engine_notes`` are what was calculated of the engine's
    GPUs, lengths and memory, and of a rate that nobody has measured, in lines for people.
    """

    system: str
    benchmark: str
    scenario: str
    leg: str
    config: BenchmarkFile
    pack: RulePack
    test_run: bool
    audit: AuditFile | None = None
    stands_in_for: str | None = None
    engine_notes: tuple[str, ...] = ()
    probe: ProbeOf | None = None
    """A short performance leg that a search makes; ``config.test_run`` is then what it is shortened to."""
    rate_from: str = "configured"
    """Who says ``target_qps`` where it is a number."""

    def __post_init__(self) -> None:
        if (self.audit is not None) != (self.leg in AUDITS):
            raise ValueError(f"a leg {self.leg} with the settings {self.audit}")
        if self.probe is not None and not (self.test_run and self.leg == PERFORMANCE):
            raise ValueError(f"a probe that is no short performance leg: {self.leg}")

    @property
    def rules(self) -> BenchmarkRules:
        """The round's rules of the benchmark."""
        return self.pack.benchmark(self.benchmark)

    @property
    def scenario_rules(self) -> ScenarioRules:
        """The round's rules of the scenario."""
        return self.rules.scenario(self.scenario)

    @property
    def audit_rules(self) -> AuditRules | None:
        """The round's rules of the audit; None where the leg is none."""
        return self.rules.audit_rules[self.leg] if self.leg in AUDITS else None

    @property
    def of_trajectories(self) -> bool:
        """Whether the benchmark replays trajectories: LoadGen's runs of it are for analysis."""
        return isinstance(self.rules, TrajectoryRules)

    @property
    def engine(self) -> Engine:
        """The engine that answers: the scenario's own where it has one."""
        return self.config.engine_of(self.scenario)

    @property
    def which(self) -> Which:
        """What is asked of the data set."""
        return ASKS[self.leg]

    @property
    def mode(self) -> str:
        """LoadGen's test mode."""
        return MODES[self.leg]

    @property
    def kept_as(self) -> str:
        """What the ledger calls it: probes are apart from the legs of the row."""
        return self.leg if self.probe is None else PROBE

    @property
    def name(self) -> str:
        """For people: ``system/benchmark/scenario/leg``."""
        return f"{self.system}/{self.benchmark}/{self.scenario}/{self.kept_as}"


def plan(project: Project, selection: Selection, pack: RulePack) -> list[PlannedLeg]:
    """The legs in the order they run: a system and benchmark at a time, in it the scenarios that share an engine,
    Offline first, since a Server rate may be a share of Offline's; performance before accuracy before audits.

    Of a benchmark that is not named, audits that the round does not have for it are left out. Raises UnknownName,
    ConfigError, and MissingError for audits whose settings are not there; nothing has been started then.
    """
    refuse_stray_audit_config(Path.cwd())
    refuse_stray_audit_config(project.root)
    planned: list[PlannedLeg] = []
    for system in _systems(project, selection.systems):
        project.system(system)
        for benchmark in _known("benchmark", selection.benchmarks, project.benchmark_names(system)):
            planned += _planned(project, selection, pack, system, benchmark)
    if not planned and any(leg in AUDITS for leg in selection.legs):
        raise _no_such_audit(selection.legs, pack, "any of these benchmarks")
    return planned


def _planned(
    project: Project, selection: Selection, pack: RulePack, system: str, benchmark: str
) -> Iterator[PlannedLeg]:
    legs = _legs(selection, pack, benchmark)
    if not legs:
        return
    written, places = project.benchmark_and_places(system, benchmark, selection.variant)
    named = _known("scenario", selection.scenarios, written.scenarios)
    audits = {leg: _audit(project, pack, benchmark, leg) for leg in legs if leg in AUDITS}
    config = stand_in(written) if selection.stand_in else written
    for scenario in _in_order(named, config):
        check_scenario(pack, system, benchmark, scenario, written)
        notes = [
            *engine_notes(project, pack, system, benchmark, scenario, written, places),
            *_rate_notes(scenario, config.scenarios[scenario].target_qps),
        ]
        for leg in legs:
            yield PlannedLeg(
                system=system,
                benchmark=benchmark,
                scenario=scenario,
                leg=leg,
                config=config,
                pack=pack,
                test_run=selection.test_run or selection.stand_in,
                audit=audits.get(leg),
                stands_in_for=stands_in_for(written.engine_of(scenario)) if selection.stand_in else None,
                engine_notes=tuple(notes),
            )


def _rate_notes(scenario: str, rate: TargetQps) -> Iterator[str]:
    """How a rate that nobody has measured is guessed."""
    if isinstance(rate, UnmeasuredRate):
        yield f"target_qps of {scenario}: unmeasured, first guess {rate.arithmetic}"


def notes(legs: Sequence[PlannedLeg]) -> list[str]:
    """What was calculated of the legs' engines, each line once, with the system and scenario it is of."""
    return list(
        dict.fromkeys(
            f"{leg.system}/{leg.benchmark}/{leg.scenario}: {note}" for leg in legs for note in leg.engine_notes
        )
    )


def engine_notes(
    project: Project,
    pack: RulePack,
    system: str,
    benchmark: str,
    scenario: str,
    config: BenchmarkFile,
    places: Layered | None = None,
) -> list[str]:
    """Checks the engine of a scenario before anything is started; ConfigError for the first thing that is wrong.

    Returns what was calculated (GPUs, lengths, memory), and what could not be checked and why.
    """
    engine = config.engine_of(scenario)
    subject = Subject(
        system=system,
        scenario=scenario,
        machine=project.system(system),
        rules=pack.benchmark(benchmark),
        caps=config.output_caps,
        division=project.division(system, benchmark),
        declared_weights=declared_weights(project.measurements(benchmark), engine.kind),
        places=places,
    )
    return check_engine(engine, subject)


def _legs(selection: Selection, pack: RulePack, benchmark: str) -> list[str]:
    chosen = _known("leg", selection.legs or (LEGS if selection.with_audits else (PERFORMANCE, ACCURACY)), LEGS)
    audits = pack.benchmark(benchmark).audit_rules
    lacking = [leg for leg in chosen if leg in AUDITS and leg not in audits]
    if lacking and selection.legs and benchmark in selection.benchmarks:
        raise _no_such_audit(lacking, pack, benchmark)
    return [leg for leg in LEGS if leg in chosen and leg not in lacking]


def _no_such_audit(audits: Sequence[str], pack: RulePack, benchmark: str) -> ConfigError:
    return ConfigError(
        f"the round {pack.round} has no audit {' or '.join(audits)} of {benchmark}",
        mend="leave it out: the accuracy leg is all that such a benchmark is asked beside its performance",
    )


def _audit(project: Project, pack: RulePack, benchmark: str, test: str) -> AuditFile:
    return audit_conf.read(project.root, test, benchmark, pack.benchmark(benchmark).audit_rules[test].config)


def _in_order(scenarios: Sequence[str], config: BenchmarkFile) -> list[str]:
    """Offline first; then those that share its engine, then those that have their own, one engine after the other."""
    by_name = sorted(scenarios, key=lambda name: (name != "Offline", config.scenarios[name].engine is not None, name))
    engines = [config.engine_of(name) for name in by_name]
    return sorted(by_name, key=lambda name: engines.index(config.engine_of(name)))


def refuse_stray_audit_config(folder: Path) -> None:
    """LoadGen obeys any audit.config in its working folder. Ours works elsewhere; the next tool may not."""
    stray = folder / "audit.config"
    if stray.exists():
        raise ConfigError(
            "a stray audit.config lies here: LoadGen would take its settings in place of the benchmark's",
            where=stray,
            mend="remove it (audits take theirs from compliance/, by explicit path)",
        )


def _systems(project: Project, named: Sequence[str]) -> list[str]:
    known = project.system_names()
    if not named and len(known) != 1:
        raise ConfigError(
            "say which systems to run on", expected="one of " + ", ".join(known), mend="add --systems=<system>"
        )
    return _known("system", named, known)


def _known(kind: str, named: Sequence[str], known: Collection[str]) -> list[str]:
    for name in named:
        if name not in known:
            raise UnknownName(kind, name, known)
    return list(dict.fromkeys(named)) or list(known)
