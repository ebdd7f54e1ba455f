"""Which legs to run, in which order: what the user named, checked against the configuration and the round's rules."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from harness.config import BenchmarkFile, Project
from harness.errors import ConfigError, UnknownName
from harness.rules import RulePack, ScenarioRules, TokenRules

MODES = {"PerformanceOnly": "performance", "AccuracyOnly": "accuracy"}
"""LoadGen's test modes, and the legs that they are."""
LEG_MODES = {leg: mode for mode, leg in MODES.items()}


@dataclass(frozen=True, slots=True)
class Selection:
    """What the user asked for; an empty list means all there are."""

    systems: Sequence[str] = ()
    benchmarks: Sequence[str] = ()
    scenarios: Sequence[str] = ()
    modes: Sequence[str] = ()
    test_run: bool = False


@dataclass(frozen=True, slots=True)
class PlannedLeg:
    """One leg before it starts: what it is, and the rules and configuration it runs under."""

    system: str
    benchmark: str
    scenario: str
    leg: str
    config: BenchmarkFile
    pack: RulePack
    test_run: bool

    @property
    def rules(self) -> TokenRules:
        """The round's rules of the benchmark."""
        return self.pack.token_benchmark(self.benchmark)

    @property
    def scenario_rules(self) -> ScenarioRules:
        """The round's rules of the scenario."""
        return self.rules.scenario(self.scenario)

    @property
    def mode(self) -> str:
        """LoadGen's test mode."""
        return LEG_MODES[self.leg]

    @property
    def name(self) -> str:
        """For people: ``system/benchmark/scenario/leg``."""
        return f"{self.system}/{self.benchmark}/{self.scenario}/{self.leg}"


def plan(project: Project, selection: Selection, pack: RulePack) -> list[PlannedLeg]:
    """The legs in the order they run: a system and benchmark at a time (one engine), Offline first, since a Server
    rate may be a share of Offline's, performance before accuracy.

    Raises UnknownName and ConfigError; nothing has been started then.
    """
    refuse_stray_audit_config(Path.cwd())
    refuse_stray_audit_config(project.root)
    modes = _known("test mode", selection.modes, MODES)
    legs = [leg for mode, leg in MODES.items() if mode in modes]
    planned = []
    for system in _systems(project, selection.systems):
        project.system(system)
        for benchmark in _known("benchmark", selection.benchmarks, project.benchmark_names(system)):
            config = project.benchmark(system, benchmark)
            scenarios = _known("scenario", selection.scenarios, config.scenarios)
            for scenario in sorted(scenarios, key=lambda name: (name != "Offline", name)):
                _check(pack, system, benchmark, scenario, config)
                planned += [
                    PlannedLeg(system, benchmark, scenario, leg, config, pack, selection.test_run) for leg in legs
                ]
    return planned


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


def _check(pack: RulePack, system: str, benchmark: str, scenario: str, config: BenchmarkFile) -> None:
    pack.benchmark(benchmark).scenario(scenario)
    chosen = config.scenarios[scenario]
    where = f"systems/{system}/{benchmark}.yaml"
    fewest = pack.benchmark(benchmark).scenario(scenario).min_query_count
    if chosen.min_query_count is not None and fewest is not None and chosen.min_query_count < fewest.value:
        raise ConfigError(
            f"min_query_count of {scenario} is {chosen.min_query_count}, the round demands {fewest.value}",
            where=where,
            mend="remove it; --test_run makes a short run that is marked as one",
        )
    least = pack.min_duration_ms.value
    if chosen.min_duration_ms is not None and chosen.min_duration_ms < least:
        raise ConfigError(
            f"min_duration_ms of {scenario} is {chosen.min_duration_ms}, the round demands {least}",
            where=where,
            mend="remove it; --test_run makes a short run that is marked as one",
        )
