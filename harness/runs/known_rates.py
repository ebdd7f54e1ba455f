"""What is known of rates before a leg starts: what is configured, and what the newest finished runs came to."""

from __future__ import annotations

from harness.config.models import MeasuredRate, OfflineShare, UnmeasuredRate
from harness.errors import HarnessError
from harness.gate.run_facts import ACCURACY, PERFORMANCE
from harness.ledger import ResultsStore, StoredRun
from harness.ledger.record import Counts
from harness.ledger.sizes import Known
from harness.ledger.store import DETAIL
from harness.logs.detail import DetailLog
from harness.runs.leg_settings import output_cap
from harness.runs.plan import PlannedLeg

_OFFLINE = "Offline"


class Rates:
    """The rates of a plan's legs. Each finished run is read once; one whose files cannot be read counts as none."""

    def __init__(self, store: ResultsStore) -> None:
        self._store = store
        self._measured: dict[tuple[str, str, str, str], Known | None] = {}
        self._runs: dict[tuple[str, str, str, str], StoredRun | None] = {}
        self.unread: list[str] = []
        """What is wrong with runs that could not be read."""

    def target(self, leg: PlannedLeg) -> Known | None:
        """What LoadGen would be told, in samples/s; None where a run has to be made first."""
        rate = self._scenario_target(leg)
        shares = leg.config.scenarios[leg.scenario].audit_shares
        share = next((share for test, share in shares.items() if test == leg.leg), None)
        return rate if rate is None or share is None else Known(rate.value * share, f"{rate.origin} x {share}")

    def why_no_target(self, leg: PlannedLeg) -> str:
        """Why :meth:`target` is None."""
        what = "the warm-up's" if self._of_warm_up(leg) else "the Offline run's"
        search = "" if leg.of_trajectories else "; make find_target_qps finds a rate by short runs"
        return f"target_qps is a share of {what} rate, and there is no finished run of it in {self._store.root}{search}"

    def answers(self, leg: PlannedLeg, given: Known | None = None) -> Known | None:
        """How fast the engine answers samples of this leg: as in the newest finished run of it; else from that of the
        scenario's performance, by tokens; else as the rate expects that LoadGen is ``given``, or the configuration's.
        """
        own = self.measured(leg, leg.scenario, leg.leg)
        if own is not None:
            return own
        measured = self.measured(leg, leg.scenario, PERFORMANCE) or self.measured(leg, _OFFLINE, PERFORMANCE)
        if measured is None:
            measured = self._expected(leg, given)
        return None if measured is None else self._by_tokens(leg, measured)

    def measured(self, leg: PlannedLeg, scenario: str, kind: str) -> Known | None:
        """Samples/s of the newest finished run of a leg of the same benchmark and system; None where there is none."""
        key = (leg.system, leg.benchmark, scenario, kind)
        if key not in self._measured:
            self._measured[key] = self._rate_of(self._run(key))
        return self._measured[key]

    def _run(self, key: tuple[str, str, str, str]) -> StoredRun | None:
        if key not in self._runs:
            try:
                self._runs[key] = self._store.latest_finished(*key)
            except HarnessError as error:  # an old record is to keep nobody from a leg's time
                self._runs[key] = None
                self.unread.append(f"counted as no run: {error}")
        return self._runs[key]

    def _rate_of(self, run: StoredRun | None) -> Known | None:
        if run is None:
            return None
        try:
            log = DetailLog.read(run.logs / DETAIL)
            issued, span_ns = log.issued_samples, log.wall_span_ns
        except (HarnessError, OSError) as error:
            self.unread.append(f"counted as no run: {error}")
            return None
        return Known(issued / span_ns * 1e9, str(run.record.id)) if issued and span_ns else None

    def _scenario_target(self, leg: PlannedLeg) -> Known | None:
        wanted = leg.config.scenarios[leg.scenario].target_qps
        if isinstance(wanted, OfflineShare):
            offline = self.measured(leg, _OFFLINE, PERFORMANCE)
            share = wanted.offline_share
            return None if offline is None else Known(offline.value * share, f"{offline.origin} x {share}")
        if isinstance(wanted, MeasuredRate):
            run = self._run((leg.system, leg.benchmark, leg.scenario, PERFORMANCE))
            if run is None or run.record.warmup is None or run.record.warmup.samples_per_s <= 0:
                return None
            asked = run.record.warmup.samples_per_s * wanted.warmup_share
            return Known(asked, f"warm-up of {run.record.id} x {wanted.warmup_share}")
        if isinstance(wanted, UnmeasuredRate):
            return Known(wanted.guess, f"unmeasured, first guess {wanted.arithmetic}")
        return Known(wanted, leg.rate_from)

    def _of_warm_up(self, leg: PlannedLeg) -> bool:
        return isinstance(leg.config.scenarios[leg.scenario].target_qps, MeasuredRate)

    def _expected(self, leg: PlannedLeg, given: Known | None) -> Known | None:
        """What the configuration expects the engine to answer: Offline's rate, or a Server rate that it shall keep."""
        if leg.of_trajectories and leg.scenario_rules.loadgen_scenario.value == "SingleStream":
            return None  # a rate says nothing there: each trajectory waits for the one before
        rate = given or self._scenario_target(leg)
        return None if rate is None else Known(rate.value, f"expected: {rate.origin}")

    def _by_tokens(self, leg: PlannedLeg, performance: Known) -> Known | None:
        """A performance rate as that of another leg, whose answers are longer or shorter."""
        asked = _long_answers(leg)
        if leg.leg == PERFORMANCE or not asked:
            return performance
        of_it, of_performance = self._accuracy_tokens(leg), self._performance_tokens(leg)
        if of_it is None or of_performance is None:
            return None
        rate = performance.value * of_performance / of_it
        return Known(rate, f"{performance.origin} x {of_performance:.0f} / {of_it:.0f} tokens a sample")

    def _performance_tokens(self, leg: PlannedLeg) -> float | None:
        counted = _tokens_a_sample(self._run((leg.system, leg.benchmark, leg.scenario, PERFORMANCE)))
        if counted is not None:
            return counted
        audit = leg.rules.audit_rules.get("TEST09")
        ruled = None if audit is None else audit.mean_output_tokens
        if ruled is None:
            return None
        mean = (ruled.value.at_least + ruled.value.at_most) / 2
        cap = leg.config.output_caps.performance
        return mean if cap is None else min(mean, cap)

    def _accuracy_tokens(self, leg: PlannedLeg) -> float | None:
        counted = _tokens_a_sample(self._run((leg.system, leg.benchmark, leg.scenario, ACCURACY)))
        limit = leg.rules.accuracy_upper_limit
        if counted is not None or limit is None or limit.value.key != "tokens_per_sample":
            return counted
        return min(limit.value.at_most, output_cap(leg))


def _long_answers(leg: PlannedLeg) -> bool:
    """Whether a leg's answers are as long as those of the accuracy leg: it asks for as much reasoning."""
    efforts = leg.rules.reasoning_effort
    if efforts is None:
        return False
    return leg.leg == ACCURACY or (
        leg.audit_rules is not None and leg.audit_rules.reasoning_effort.value == efforts.value.get(ACCURACY)
    )


def _tokens_a_sample(run: StoredRun | None) -> float | None:
    counts: Counts | None = None if run is None else run.record.counts
    return counts.output_tokens / counts.answered if counts is not None and counts.answered else None
