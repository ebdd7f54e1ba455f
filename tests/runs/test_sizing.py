"""Legs sized before they run: LoadGen's own counts, times from rates, what stands against a leg."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.config import Project
from harness.errors import MissingError
from harness.ledger import ResultsStore
from harness.ledger.record import Rate
from harness.ledger.sizes import Known, LegSize
from harness.logs.detail import DetailLog
from harness.runs import space
from harness.runs.known_rates import Rates
from harness.runs.leg_settings import loadgen_settings
from harness.runs.plan import PlannedLeg, Selection, plan
from harness.runs.sizing import impossible, matrix, ruled_rows, size_of
from tests.harness_process import ROOT
from tests.runs.made_legs import PACK
from tests.runs.test_plan import add_system

LOADGEN = ROOT / "tests" / "logs" / "loadgen_program.py"
B200 = "B200-SXM-180GBx8_TRT"


class Measured(Rates):
    """Rates of runs that were, as by scenario and leg."""

    def __init__(self, store: ResultsStore, rates: dict[tuple[str, str], float]) -> None:
        super().__init__(store)
        self.rates = rates

    def measured(self, leg: PlannedLeg, scenario: str, kind: str) -> Known | None:
        rate = self.rates.get((scenario, kind))
        return None if rate is None else Known(rate, f"a run of {scenario}")


def legs_of(tmp_path: Path, scenarios: dict[str, Any], **selection: Any) -> list[PlannedLeg]:
    project = Project(tmp_path / "project")
    add_system(project, "BOX", scenarios)
    return plan(project, Selection(**selection), PACK)


def sized(leg: PlannedLeg, tmp_path: Path, **rates: float) -> LegSize:
    known = {tuple(key.split("_")): rate for key, rate in rates.items()}
    return size_of(leg, Measured(ResultsStore(tmp_path / "results"), known))  # type: ignore[arg-type] - pairs


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("scenario", "rate"), [("Offline", 1234.5), ("Offline", 40.0), ("Server", 950.0), ("Server", 60.0)]
)
def test_the_count_is_loadgen_s(tmp_path, scenario, rate):
    [leg] = legs_of(tmp_path, {scenario: {"target_qps": rate}}, legs=["performance"], test_run=True)
    short = leg.config.test_run.model_copy(update={"min_duration_ms": 1000})
    leg = dataclasses.replace(leg, config=leg.config.model_copy(update={"test_run": short}))
    settings = loadgen_settings(leg, Rate(target_qps=rate, origin="a test"), ruled_rows(leg))
    (tmp_path / "user.conf").write_text(settings.conf)
    asked = {"model": "gpt-oss-120b", "scenario": scenario, "mode": "PerformanceOnly", "answer_tokens": 2}
    asked |= {"first_tokens": True, "rows": settings.rows, "audit": False}
    subprocess.run([sys.executable, str(LOADGEN), json.dumps(asked), str(tmp_path)], check=True, timeout=120)
    issued = DetailLog.read(tmp_path / "mlperf_log_detail.txt").issued_samples
    assert sized(leg, tmp_path).issued == issued


def test_offline_is_asked_for_a_tenth_more_than_the_duration_in_whole_passes(tmp_path):
    [leg] = legs_of(tmp_path, {"Offline": {"target_qps": 53.0}}, legs=["performance"])
    size = sized(leg, tmp_path)
    assert size.issued == 6 * 6396  # 1.1 x 600 s x 53 = 34,980
    assert size.expected_s == pytest.approx(6 * 6396 / 53)
    assert not size.faults


def test_an_offline_rate_below_the_measured_one_ends_too_early(tmp_path):
    [leg] = legs_of(tmp_path, {"Offline": {"target_qps": 10.0}}, legs=["performance"])
    size = sized(leg, tmp_path, Offline_performance=100.0)
    assert size.expected_s == pytest.approx(2 * 6396 / 100)
    [fault] = size.faults
    assert "end after 128 s, before the 600 s" in fault
    assert "102 is enough" in fault


def test_an_offline_rate_far_above_the_measured_one_is_needlessly_long(tmp_path):
    [leg] = legs_of(tmp_path, {"Offline": {"target_qps": 300.0}}, legs=["performance"])
    size = sized(leg, tmp_path, Offline_performance=100.0)
    assert not size.faults
    assert "needlessly high" in size.advice[0]
    assert not sized(leg, tmp_path, Offline_performance=290.0).advice


def test_a_long_run_is_not_called_needless_where_the_data_set_makes_it_so(tmp_path):
    [leg] = legs_of(tmp_path, {"Offline": {"target_qps": 2.0}}, legs=["performance"])
    size = sized(leg, tmp_path, Offline_performance=2.0)
    assert size.expected_s == pytest.approx(6396 / 2)
    assert not size.advice


def test_server_says_how_many_may_be_over_and_what_nearer_shares_take(tmp_path):
    [leg] = legs_of(tmp_path, {"Server": {"target_qps": 80.0}}, legs=["performance"])
    size = sized(leg, tmp_path)
    assert size.issued == 8 * 6396  # 600 s x 80 = 48,000
    assert size.expected_s == pytest.approx(8 * 6396 / 80)
    assert size.stopping is not None
    assert size.stopping.allowed_over == 459
    assert [(at.share, at.queries) for at in size.stopping.at_shares] == [
        (0.005, 2_144),
        (0.008, 13_240),
        (0.009, 53_217),
        (0.0095, 213_472),
    ]
    assert size.stopping.at_shares[2].seconds == pytest.approx(53_217 / 80)


def test_a_server_run_of_too_few_queries_cannot_be_valid(tmp_path, monkeypatch):
    legs = legs_of(tmp_path, {"Server": {"target_qps": 4.0}}, legs=["performance"], test_run=True)
    short = legs[0].config.test_run.model_copy(update={"server_queries": 100, "performance_samples": 100})
    short = short.model_copy(update={"min_duration_ms": 1000})
    few = dataclasses.replace(legs[0], config=legs[0].config.model_copy(update={"test_run": short}))
    [line] = impossible([few], ResultsStore(tmp_path / "results"))
    assert "BOX/gpt-oss-120b/Server/performance: cannot be VALID: 100 queries are too few" in line
    assert "459 at least" in line
    assert not impossible(legs, ResultsStore(tmp_path / "results"))


def test_a_share_of_a_run_that_is_not_there_is_said_and_not_guessed(tmp_path):
    scenarios = {"Server": {"target_qps": {"offline_share": 0.5}}, "Offline": {"target_qps": {"warmup_share": 1.0}}}
    offline, server = legs_of(tmp_path, scenarios, legs=["performance"])
    for leg, whose in ((offline, "the warm-up's"), (server, "the Offline run's")):
        size = sized(leg, tmp_path)
        assert size.rate is None
        assert size.issued is None
        assert size.expected_s is None
        assert f"a share of {whose} rate" in size.unknown


def test_a_share_follows_the_measured_offline_run(tmp_path):
    [leg] = legs_of(tmp_path, {"Server": {"target_qps": {"offline_share": 0.5}}}, legs=["performance"])
    size = sized(leg, tmp_path, Offline_performance=100.0)
    assert size.rate == Known(50.0, "a run of Offline x 0.5")
    assert size.issued == 5 * 6396


def test_accuracy_takes_the_longer_for_its_longer_answers(tmp_path):
    performance, accuracy = legs_of(tmp_path, {"Offline": {"target_qps": 50.0}})
    slow, fast = sized(accuracy, tmp_path), sized(performance, tmp_path)
    assert slow.answers is not None
    assert fast.answers is not None
    assert slow.answers.value == pytest.approx(fast.answers.value * 1278.2 / 10998.9)
    assert slow.expected_s == pytest.approx(4395 / slow.answers.value)
    measured = sized(accuracy, tmp_path, Offline_accuracy=7.0)
    assert measured.expected_s == pytest.approx(4395 / 7)


def test_audits_issue_their_own_rows():
    legs = plan(Project(ROOT), Selection(systems=[B200], benchmarks=["gpt-oss-120b"], legs=["TEST07", "TEST09"]), PACK)
    sizes = matrix(legs, ResultsStore(ROOT / "no results here")).legs
    assert [(size.leg, size.issued) for size in sizes] == [("TEST07", 990), ("TEST09", 6396)] * 2


def test_every_system_is_sized_and_engines_are_counted():
    project = Project(ROOT)
    legs = plan(project, Selection(systems=project.system_names()), PACK)
    sizes = matrix(legs, ResultsStore(ROOT / "no results here"))
    assert [size.name for size in sizes.legs] == [leg.name for leg in legs]
    assert sizes.starts >= len({(leg.system, leg.benchmark) for leg in legs})
    assert sizes.known_s > 0
    assert sizes.unknown_legs == sum(bool(size.unknown) for size in sizes.legs)
    assert sizes.can_be_valid


def test_a_single_stream_lasts_as_long_as_it_must_at_the_rate_that_was_measured():
    selection = Selection(systems=[B200], benchmarks=["qwen3.6-27b"], scenarios=["SingleStream"], legs=["performance"])
    [leg] = plan(Project(ROOT), selection, PACK)
    slow = size_of(leg, Measured(ResultsStore(ROOT / "none"), {("SingleStream", "performance"): 0.03}))
    assert slow.issued == 100
    assert slow.expected_s == pytest.approx(100 / 0.03)
    nobody = size_of(leg, Measured(ResultsStore(ROOT / "none"), {}))
    assert nobody.unknown == "nothing says how fast the engine answers them"


def test_a_record_that_cannot_be_read_counts_as_none_and_is_told(tmp_path):
    [leg] = legs_of(tmp_path, {"Offline": {"target_qps": 53.0}}, legs=["performance"])
    folder = tmp_path / "results" / "BOX" / "gpt-oss-120b" / "Offline" / "performance" / "attempt_01"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text("{")
    sizes = matrix([leg], ResultsStore(tmp_path / "results"))
    assert sizes.legs[0].expected_s is not None
    assert any("counted as no run" in note for note in sizes.notes)


def test_a_disk_that_is_too_small_stands_against_all(tmp_path, monkeypatch):
    legs = legs_of(tmp_path, {"Offline": {"target_qps": 53.0}})
    monkeypatch.setattr("harness.runs.sizing.free_bytes", lambda root: 1 << 20)
    sizes = matrix(legs, ResultsStore(tmp_path / "results"))
    assert not sizes.can_be_valid
    assert "0.0 GiB free" in sizes.faults[0]
    with pytest.raises(MissingError, match="no room for the leg's logs"):
        space.check_disk(tmp_path, 1 << 62)


def test_free_space_is_that_of_the_folder_above_where_the_results_are_not_there_yet(tmp_path):
    assert space.free_bytes(tmp_path / "not" / "there") is not None


def test_a_size_says_a_time_or_why_there_is_none(tmp_path):
    [leg] = legs_of(tmp_path, {"Offline": {"target_qps": 53.0}}, legs=["performance"])
    with pytest.raises(ValueError, match="not known because"):
        dataclasses.replace(sized(leg, tmp_path), expected_s=None)
    with pytest.raises(ValueError, match="no rate"):
        Known(0.0, "nobody")
