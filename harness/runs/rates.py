"""The rate LoadGen is given: written by the user, guessed, measured by the warm-up, or a share of an Offline run's."""

from __future__ import annotations

from harness.config.models import MeasuredRate, OfflineShare, UnmeasuredRate
from harness.errors import ConfigError, MissingError
from harness.ledger import Fingerprint, ResultsStore, StoredRun
from harness.ledger.record import Rate, Warmup
from harness.ledger.store import DETAIL
from harness.logs.detail import DetailLog
from harness.runs.plan import PlannedLeg

_OFFLINE_RATE = "result_samples_per_second"


def target_qps(
    leg: PlannedLeg, warmup: Warmup | None, store: ResultsStore, fingerprint: Fingerprint, turns: float | None = None
) -> Rate:
    """LoadGen's target_qps for a leg, and where it came from. An audit may ask at a share of its scenario's rate.

    ``turns`` is how many requests a sample has in the mean, where it is a trajectory: the warm-up answers requests.
    MissingError where the Offline run that it is a share of has not been made; ConfigError where nothing was measured.
    """
    rate = _scenario_rate(leg, warmup, store, fingerprint, turns)
    shares = leg.config.scenarios[leg.scenario].audit_shares
    share = next((share for test, share in shares.items() if test == leg.leg), None)
    if share is None:
        return rate
    return Rate(target_qps=rate.target_qps * share, origin=f"{rate.origin} x {share} for {leg.leg}")


def _scenario_rate(
    leg: PlannedLeg, warmup: Warmup | None, store: ResultsStore, fingerprint: Fingerprint, turns: float | None
) -> Rate:
    wanted = leg.config.scenarios[leg.scenario].target_qps
    if isinstance(wanted, MeasuredRate):
        if warmup is None or warmup.samples_per_s <= 0:
            raise ConfigError(
                f"target_qps of {leg.scenario} is a share of the warm-up's rate, but there is no warm-up",
                where=f"systems/{leg.system}/{leg.benchmark}.yaml",
                mend="give warmup.requests a number, or target_qps one",
            )
        of_turns = "" if turns is None else f" / {turns:.1f} turns"
        return Rate(
            target_qps=warmup.samples_per_s * wanted.warmup_share / (turns or 1),
            origin=f"warm-up x {wanted.warmup_share}{of_turns}",
        )
    if isinstance(wanted, OfflineShare):
        run = _offline_run(leg, store, fingerprint)
        rate = DetailLog.read(run.logs / DETAIL).number(_OFFLINE_RATE)
        if not rate:
            raise MissingError(f"the Offline run has no {_OFFLINE_RATE}", where=run.logs / DETAIL)
        return Rate(target_qps=rate * wanted.offline_share, origin=f"{run.record.id} x {wanted.offline_share}")
    if isinstance(wanted, UnmeasuredRate):
        return Rate(target_qps=wanted.guess, origin=f"unmeasured, first guess {wanted.arithmetic}")
    return Rate(target_qps=wanted, origin=leg.rate_from)


def _offline_run(leg: PlannedLeg, store: ResultsStore, fingerprint: Fingerprint) -> StoredRun:
    """The newest finished Offline performance run that differs from this leg in nothing but the scenario."""
    run = store.latest_finished(leg.system, leg.benchmark, "Offline", "performance")
    command = f'make run_harness RUN_ARGS="--systems={leg.system} --benchmarks={leg.benchmark} --scenarios=Offline"'
    if run is None:
        raise MissingError(
            f"target_qps of {leg.scenario} is a share of the Offline rate, and no Offline performance run has finished",
            where=store.root / leg.system / leg.benchmark,
            mend=f"run it first: {command}",
        )
    differing = [k for k in run.record.fingerprint.differs_from(fingerprint) if not k.startswith("scenario")]
    if differing:
        raise MissingError(
            f"the newest Offline run was made with other settings: {', '.join(differing)}",
            where=run.folder,
            mend=f"run it again: {command}",
        )
    return run
