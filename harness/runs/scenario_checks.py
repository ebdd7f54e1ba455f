"""Whether what the user wrote of a scenario is within the round's rules, before anything is started."""

from __future__ import annotations

from harness.config import BenchmarkFile
from harness.errors import ConfigError
from harness.rules import RulePack, TrajectoryRules


def check_scenario(pack: RulePack, system: str, benchmark: str, scenario: str, config: BenchmarkFile) -> None:
    """UnknownName for a scenario that LoadGen does not run the benchmark in, ConfigError for what departs."""
    fewest = pack.benchmark(benchmark).scenario(scenario).min_query_count
    chosen = config.scenarios[scenario]
    where = f"systems/{system}/{benchmark}.yaml"
    if chosen.min_query_count is not None and fewest is not None and chosen.min_query_count < fewest.value:
        raise ConfigError(
            f"min_query_count of {scenario} is {chosen.min_query_count}, the round demands {fewest.value}",
            where=where,
            mend="remove it; --test_run makes a short run that is marked as one",
        )
    _check_trajectories(pack, benchmark, scenario, config, where)
    least = pack.min_duration_ms.value
    if chosen.min_duration_ms is not None and chosen.min_duration_ms < least:
        raise ConfigError(
            f"min_duration_ms of {scenario} is {chosen.min_duration_ms}, the round demands {least}",
            where=where,
            mend="remove it; --test_run makes a short run that is marked as one",
        )


def _check_trajectories(pack: RulePack, benchmark: str, scenario: str, config: BenchmarkFile, where: str) -> None:
    """What is said of trajectories is of a benchmark that replays some; there Server needs a latency of its own."""
    latency = config.scenarios[scenario].target_latency_ms
    place = f"{where}: scenarios.{scenario}.target_latency_ms"
    if not isinstance(pack.benchmark(benchmark), TrajectoryRules):
        if config.agentic is not None:
            raise ConfigError(f"{benchmark} replays no trajectories", where=f"{where}: agentic", mend="take it out")
        if latency is not None:
            raise ConfigError(
                f"the target latency of {benchmark} is the round's, in every scenario", where=place, mend="take it out"
            )
        return
    server = pack.benchmark(benchmark).scenario(scenario).loadgen_scenario.value == "Server"
    if server and latency is None:
        raise ConfigError(
            f"{scenario} of {benchmark} has no target latency: LoadGen would hold whole trajectories to a few "
            "milliseconds",
            where=place,
            expected="milliseconds that 99 of 100 trajectories shall take at most",
            mend="give it a number: some times what a trajectory takes alone (SingleStream tells)",
        )
    if latency is not None and not server:
        raise ConfigError(
            f"target_latency_ms of {scenario}: LoadGen holds no latency to a limit there",
            where=place,
            mend="take it out",
        )
