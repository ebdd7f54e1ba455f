from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.errors import ConfigError, MissingError
from harness.ledger import Fingerprint, ResultsStore
from harness.ledger.record import Verdict, Warmup
from harness.runs.known_rates import Rates
from harness.runs.rates import target_qps
from tests.ledger.made_records import add
from tests.runs.made_legs import agentic, leg

WARMUP = Warmup(requests=8, answers=8, output_tokens=64, seconds=2.0, samples_per_s=40.0)
SHARE = {"Offline": {"target_qps": 10}, "Server": {"target_qps": {"offline_share": 0.4}}}
LINE = ':::MLLOG {"key": "result_samples_per_second", "value": %s, "time_ms": 1.0, "namespace": "mlperf::logging", '
LINE += (
    '"event_type": "POINT_IN_TIME", "metadata": {"is_error": false, "is_warning": false, "file": "a", "line_no": 1}}'
)


def prints(scenario: str = "Server", **changes: Any) -> Fingerprint:
    return Fingerprint.of({"system": "BOX", "scenario": scenario, "scenario.target_qps": scenario, "seed": 0} | changes)


def add_offline(store: ResultsStore, rate: str, **changes: Any) -> Path:
    folder = add(store, fingerprint=prints("Offline"), **changes)
    (folder / "logs").mkdir()
    (folder / "logs" / "mlperf_log_detail.txt").write_text(LINE % rate + "\n")
    return folder


@pytest.fixture
def store(tmp_path: Path) -> ResultsStore:
    return ResultsStore(tmp_path)


def test_a_rate_as_configured(store: ResultsStore) -> None:
    rate = target_qps(leg(), None, store, prints())
    assert (rate.target_qps, rate.origin) == (10, "configured")


def test_a_rate_that_nobody_has_measured_says_so_where_it_is_recorded(store: ResultsStore) -> None:
    terms = {"another_engine": {"value": 8.0, "source": "a paper"}, "gain": {"value": 1.25, "source": "ours"}}
    guessed = leg(scenarios={"Offline": {"target_qps": {"rate": "unmeasured", "times": terms}}})
    rate = target_qps(guessed, None, store, prints())
    assert rate.target_qps == 10
    assert rate.origin == "unmeasured, first guess 8 (another_engine) x 1.25 (gain) = 10.00 samples/s"


def test_a_rate_of_the_warm_up(store: ResultsStore) -> None:
    measured = leg(scenarios={"Offline": {"target_qps": {"warmup_share": 1.25}}})
    rate = target_qps(measured, WARMUP, store, prints())
    assert (rate.target_qps, rate.origin) == (50, "warm-up x 1.25")


def test_a_rate_of_trajectories_is_that_of_turns_over_how_many_one_has(store: ResultsStore) -> None:
    measured = {"Offline": {"target_qps": {"warmup_share": 1.25}}}
    rate = target_qps(agentic("Offline", scenarios=measured), WARMUP, store, prints(), turns=6.25)
    assert (rate.target_qps, rate.origin) == (8, "warm-up x 1.25 / 6.2 turns")
    accuracy = agentic("Offline", "accuracy", scenarios=measured)
    assert target_qps(accuracy, WARMUP, store, prints()).target_qps == 50


@pytest.mark.parametrize("warmup", [None, WARMUP.model_copy(update={"samples_per_s": 0.0})])
def test_a_rate_of_a_warm_up_that_measured_nothing(store: ResultsStore, warmup: Warmup | None) -> None:
    measured = leg(scenarios={"Offline": {"target_qps": {"warmup_share": 1}}})
    with pytest.raises(ConfigError) as caught:
        target_qps(measured, warmup, store, prints())
    assert caught.value.where == "systems/BOX/gpt-oss-120b.yaml"
    assert "warmup.requests" in (caught.value.mend or "")


def test_a_share_of_the_newest_offline_run_whatever_its_verdict(store: ResultsStore) -> None:
    add_offline(store, "99.0")
    add_offline(store, "5.0", verdict=Verdict(valid=False, loadgen="INVALID", findings=[]))
    rate = target_qps(leg("Server", scenarios=SHARE), WARMUP, store, prints())
    assert rate.target_qps == pytest.approx(2.0)
    assert rate.origin == "BOX/gpt-oss-120b/Offline/performance#2 x 0.4"


def test_a_share_of_no_run(store: ResultsStore) -> None:
    add(store, leg="accuracy")
    with pytest.raises(MissingError, match="no Offline performance run has finished") as caught:
        target_qps(leg("Server", scenarios=SHARE), WARMUP, store, prints())
    assert "--scenarios=Offline" in (caught.value.mend or "")


def test_a_share_of_a_run_with_other_settings(store: ResultsStore) -> None:
    folder = add_offline(store, "5.0")
    with pytest.raises(MissingError, match="other settings: seed") as caught:
        target_qps(leg("Server", scenarios=SHARE), WARMUP, store, prints(seed=1))
    assert caught.value.where == str(folder)


@pytest.mark.parametrize("key", ["result_samples_per_second", "result_query_count"])
def test_a_share_of_nothing(store: ResultsStore, key: str) -> None:
    log = add_offline(store, "0.0") / "logs" / "mlperf_log_detail.txt"
    log.write_text(log.read_text().replace("result_samples_per_second", key))
    with pytest.raises(MissingError, match="result_samples_per_second"):
        target_qps(leg("Server", scenarios=SHARE), WARMUP, store, prints())


def test_an_audit_asks_at_its_share_of_the_scenarios_rate(store: ResultsStore) -> None:
    add_offline(store, "5.0")
    shares = {"Server": {"target_qps": {"offline_share": 0.4}, "audit_shares": {"TEST07": 0.25}}}
    rate = target_qps(leg("Server", "TEST07", scenarios=shares), WARMUP, store, prints())
    assert rate.target_qps == pytest.approx(0.5)
    assert rate.origin.endswith("x 0.4 x 0.25 for TEST07")
    for other in ("TEST09", "performance"):
        assert target_qps(leg("Server", other, scenarios=shares), WARMUP, store, prints()).target_qps == 2


def test_where_no_rate_is_known_the_search_for_one_is_named(store: ResultsStore) -> None:
    """A trajectory's turns have none to find."""
    asked = leg("Server", scenarios=SHARE)
    assert "make find_target_qps" in Rates(store).why_no_target(asked)
    assert "find_target_qps" not in Rates(store).why_no_target(agentic())
