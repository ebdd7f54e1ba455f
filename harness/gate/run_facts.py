"""What the checks of one run are told."""

from __future__ import annotations

from dataclasses import dataclass

from harness.ledger.record import Counts
from harness.logs import AccuracyLog, DetailLog, SummaryLog
from harness.rules import BenchmarkRules, RulePack, ScenarioRules, TokenRules, TrajectoryRules
from harness.rules.audits import AuditRules
from harness.rules.values import Range

PERFORMANCE = "performance"
ACCURACY = "accuracy"
AUDITS = ("TEST07", "TEST09")

MODES = {PERFORMANCE: "PerformanceOnly", ACCURACY: "AccuracyOnly", **dict.fromkeys(AUDITS, "PerformanceOnly")}
"""The legs, and the test mode that LoadGen logs for each."""

_LOADGEN_NAMES = {"Interactive": "Server"}
"""Scenarios that LoadGen has by another name."""
_TOKEN_BYTES = 4


@dataclass(frozen=True, slots=True)
class Expectation:
    """What a leg was to do. A deliberately short run is judged by its own, and is not submittable for being short.

    ``dataset_rows`` is the size of the sample library, ``logged_rows`` what LoadGen's sample count must reach (another
    number where LoadGen's own configuration overrides it). ``more_rows`` allows a larger library: what is replayed in
    place of a data set has a length that the round does not fix. ``min_duration_ms`` is the setting,
    ``measured_duration_ms`` what the run must have lasted. ``mean_tokens`` is the window of the mean answer, None where
    the round knows none. ``issued_rows`` are the fewest samples that must be issued, None for those of the library.
    """

    dataset_rows: int
    logged_rows: int
    min_duration_ms: int
    measured_duration_ms: int
    min_query_count: int | None
    more_rows: bool = False
    mean_tokens: Range | None = None
    issued_rows: int | None = None

    @classmethod
    def of_round(cls, pack: RulePack, benchmark: str, scenario: str, leg: str) -> Expectation:
        """What the round demands of a leg; of a scenario that it has no rules for, what it demands of any."""
        rules = pack.benchmark(benchmark)
        own = applied(rules, scenario)
        rows = rules.rows(leg, scenario) if scenario in rules.scenarios else rules.datasets[leg].value
        timed = leg not in AUDITS
        least = own.min_query_count if own is not None and timed else None
        logged = own.logged_performance_rows if own is not None and leg == PERFORMANCE else None
        return cls(
            dataset_rows=rows,
            logged_rows=rows if logged is None else logged.value,
            min_duration_ms=pack.min_duration_ms.value if timed else 0,
            measured_duration_ms=pack.measured_duration_ms.value if timed else 0,
            min_query_count=None if least is None else least.value,
            more_rows=leg == PERFORMANCE and isinstance(rules, TrajectoryRules),
            mean_tokens=_mean_tokens(rules) if leg == PERFORMANCE else None,
        )


def applied(rules: BenchmarkRules, scenario: str) -> ScenarioRules | None:
    """The rules that hold for a scenario: the round's, or those it is analysed by; None where neither is."""
    return _of_the_round(rules, scenario) or rules.analysis_scenarios.get(scenario)


def _of_the_round(rules: BenchmarkRules, scenario: str) -> ScenarioRules | None:
    """The scenario's own rules; else those of the one that LoadGen runs."""
    return rules.scenarios.get(scenario) or rules.scenarios.get(_LOADGEN_NAMES.get(scenario, scenario))


def _mean_tokens(rules: BenchmarkRules) -> Range | None:
    """The audit's window of the mean answer length: it asks the performance data set, so a performance leg meets it."""
    windows = [audit.mean_output_tokens.value for audit in rules.audit_rules.values() if audit.mean_output_tokens]
    return windows[0] if windows else None


@dataclass(frozen=True, slots=True)
class Coverage:
    """What an accuracy log holds: entries, distinct rows, rows outside the data set, entries without a token.

    ``longest`` is the largest token count that LoadGen was told, 0 where it was told none; ``miscounted`` are the
    entries whose count is not that of the 4-byte ids in their data.
    """

    entries: int
    distinct: int
    outside: int
    empty: int
    longest: int = 0
    miscounted: int = 0

    @classmethod
    def of(cls, log: AccuracyLog, dataset_rows: int) -> Coverage:
        """Counts over a whole accuracy log. LogError where it is cut, shortened or bad."""
        seen = bytearray(dataset_rows)
        entries = outside = empty = longest = miscounted = 0
        for entry in log:
            entries += 1
            empty += not entry.data
            if entry.token_count is not None:
                longest = max(longest, entry.token_count)
                miscounted += entry.token_count * _TOKEN_BYTES != len(entry.data)
            if entry.sample < dataset_rows:
                seen[entry.sample] = 1
            else:
                outside += 1
        return cls(entries, sum(seen), outside, empty, longest, miscounted)


@dataclass(frozen=True, slots=True)
class RunFacts:
    """All that the checks of one run need.

    ``scenario`` is the folder's (Interactive, not LoadGen's Server). ``summary``, ``counts`` (the harness's own) and
    ``coverage`` are None where there is none to be had: a tree has no counts, and its accuracy logs are shortened.
    ``label`` is what findings call the detail log, its path where None. ``division`` is None before packaging; then
    closed's rules hold. ``reasoning_effort`` is that of the prompts, None where nobody tells.
    """

    leg: str
    scenario: str
    benchmark: str
    pack: RulePack
    expectation: Expectation
    detail: DetailLog
    summary: SummaryLog | None = None
    counts: Counts | None = None
    coverage: Coverage | None = None
    label: str | None = None
    division: str | None = None
    reasoning_effort: str | None = None

    def __post_init__(self) -> None:
        if self.leg not in MODES:
            raise ValueError(f"no such leg: {self.leg}")

    @property
    def rules(self) -> BenchmarkRules:
        """The round's rules of the benchmark."""
        return self.pack.benchmark(self.benchmark)

    @property
    def scenario_rules(self) -> ScenarioRules:
        """The rules that hold for the scenario; UnknownName where there are none."""
        return applied(self.rules, self.scenario) or self.rules.scenario(self.scenario)

    @property
    def ruled(self) -> bool:
        """Whether the round has rules that hold for the scenario; open may run others, and so may who analyses."""
        return _of_the_round(self.rules, self.scenario) is not None

    @property
    def loadgen_scenario(self) -> str:
        """LoadGen's name of the scenario."""
        own = applied(self.rules, self.scenario)
        return _LOADGEN_NAMES.get(self.scenario, self.scenario) if own is None else own.loadgen_scenario.value

    @property
    def tool_rules(self) -> ScenarioRules:
        """The scenario by which the official checker judges the log: the one that LoadGen names."""
        return self.rules.scenarios.get(self.loadgen_scenario, self.scenario_rules)

    @property
    def token_rules(self) -> TokenRules | None:
        """The benchmark's rules where its answers are token ids."""
        return self.rules if isinstance(self.rules, TokenRules) else None

    @property
    def audit(self) -> AuditRules:
        """The rules of the audit that this leg is; KeyError where it is none."""
        return self.rules.audit_rules[self.leg]

    @property
    def strict(self) -> bool:
        """Whether the rules of closed hold: everywhere but in open."""
        return self.division != "open"

    def holds(self, check: str) -> bool:
        """Whether the official checker makes a check in the run's division."""
        return self.division is None or self.pack.holds(check, self.division)

    @property
    def path(self) -> str:
        """What findings call the detail log."""
        return self.label or str(self.detail.path)

    def at(self, key: str) -> str:
        """The place of a key in the detail log."""
        line = self.detail.lines.get(key)
        return self.path if line is None else f"{self.path}:{line}"
