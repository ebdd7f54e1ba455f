"""What a person asks of a search, and what of it cannot be searched: told before anything is started."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from harness.config.models import MeasuredRate, OfflineShare
from harness.errors import ConfigError, MissingError
from harness.gate.run_facts import PERFORMANCE
from harness.ledger import ResultsStore
from harness.runs.plan import PlannedLeg
from harness.runs.search.legs import VERB
from harness.runs.search.limits import limits_of

_PROBE_S: Final = 120.0
"""Some times what the answers of a large model take, so that its batches are full for most of a probe."""
_FASTEST: Final = 1e9
"""LoadGen's clock counts nanoseconds."""


@dataclass(frozen=True, slots=True)
class Asked:
    """``probe_seconds`` and ``guess`` are None where nobody said them: 120 s, or what ``--test_run`` shortens to; and
    what the configuration says.
    """

    tolerance: float = 0.01
    max_probes: int = 10
    probe_seconds: float | None = None
    guess: float | None = None

    def __post_init__(self) -> None:
        _need(0 < self.tolerance < 1, "--tolerance", self.tolerance, "a share between 0 and 1, such as 0.01")
        _need(self.max_probes >= 1, "--max_probes", self.max_probes, "at least 1")
        if self.probe_seconds is not None:
            _need(0 < self.probe_seconds < math.inf, "--probe_seconds", self.probe_seconds, "seconds above 0")
        if self.guess is not None:
            _need(0 < self.guess <= _FASTEST, "--from", self.guess, f"samples a second above 0, at most {_FASTEST:g}")

    def seconds(self, leg: PlannedLeg) -> float:
        """How long a probe of a leg is meant to be."""
        if self.probe_seconds is not None:
            return self.probe_seconds
        return leg.config.test_run.min_duration_ms / 1000 if leg.test_run else _PROBE_S


def _need(holds: bool, option: str, found: float, expected: str) -> None:
    if not holds:
        raise ConfigError(f"{option} is {found:g}", expected=expected, mend="give it another number")


def the_row(legs: Sequence[PlannedLeg]) -> PlannedLeg:
    """The one performance leg to search the rate of. ConfigError where several are named, or it has no rate to find."""
    if len(legs) != 1:
        named = ", ".join(leg.name.rpartition("/")[0] for leg in legs) or "none"
        raise ConfigError(
            f"{VERB} searches the rate of one row at a time, {len(legs)} are named",
            expected=f"one of {named}",
            mend="name one system, one benchmark and one scenario",
        )
    leg = legs[0]
    place = f"{leg.system}/{leg.benchmark}/{leg.scenario}"
    if leg.of_trajectories or leg.scenario_rules.loadgen_scenario.value not in ("Server", "Offline"):
        why = (
            "its rows are measured one trajectory after the other, as fast as each is answered"
            if leg.of_trajectories
            else "LoadGen asks one query after the other, as fast as each is answered"
        )
        raise ConfigError(f"{leg.scenario} of {leg.benchmark} has no rate to find: {why}", where=place)
    if leg.scenario_rules.loadgen_scenario.value == "Server" and not limits_of(leg.scenario_rules):
        raise ConfigError(
            f"the round {leg.pack.round} limits no latency of {leg.scenario}: no rate breaks a limit", where=place
        )
    return leg


def check_guess(leg: PlannedLeg, asked: Asked, store: ResultsStore) -> None:
    """Raises what would keep a search from its first guess (MissingError, ConfigError), and of probes that are longer
    than what they are to save.
    """
    full_s = leg.pack.min_duration_ms.value / 1000
    if asked.probe_seconds is not None:
        _need(asked.probe_seconds <= full_s, "--probe_seconds", asked.probe_seconds, f"at most a full run's {full_s:g}")
    wanted = leg.config.scenarios[leg.scenario].target_qps
    if asked.guess is not None:
        return
    say = "or give a first guess, --from=SAMPLES_PER_SECOND"
    if isinstance(wanted, OfflineShare) and store.latest_finished(*_row(leg), "Offline", PERFORMANCE) is None:
        raise MissingError(
            f"target_qps of {leg.scenario} is a share of the Offline rate, and no Offline performance run has finished",
            where=store.root / leg.system / leg.benchmark,
            mend=f"find that first (make {VERB} with --scenarios=Offline), {say}",
        )
    if isinstance(wanted, MeasuredRate) and not leg.config.warmup.requests:
        raise ConfigError(
            f"target_qps of {leg.scenario} is a share of the warm-up's rate, but there is no warm-up",
            where=f"systems/{leg.system}/{leg.benchmark}.yaml",
            mend=f"give warmup.requests a number, {say}",
        )


def _row(leg: PlannedLeg) -> tuple[str, str]:
    return leg.system, leg.benchmark
