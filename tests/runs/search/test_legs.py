"""The runs that a search asks for, as legs; what cannot be searched; what an interrupted search has left."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from harness.clients.loadgen.user_conf import parse
from harness.errors import ConfigError
from harness.ledger import Fingerprint, ResultsStore, State, write_record
from harness.ledger.record import ProbeEcho, Rate
from harness.ledger.search import write_search
from harness.rules import ScenarioRules
from harness.runs.identity import configured
from harness.runs.leg_settings import asked_rows, loadgen_settings
from harness.runs.plan import PlannedLeg, ProbeOf
from harness.runs.search.asked import Asked, the_row
from harness.runs.search.former import folder_of, former_probes, next_search
from harness.runs.search.legs import Size, fewest_queries, full_leg, full_queries, full_seconds, probe_leg
from tests.ledger.made_records import finished, record
from tests.ledger.made_searches import search
from tests.runs.made_legs import PACK, agentic, leg

ROWS = PACK.benchmark("gpt-oss-120b").datasets["performance"].value
PROBE = ProbeOf("01", 3, "halves the bracket", warm=True)


def settings_of(planned: PlannedLeg) -> dict[str, str]:
    rate = Rate(target_qps=planned.config.scenarios[planned.scenario].target_qps, origin="")  # type: ignore[arg-type]
    text = loadgen_settings(planned, rate, ROWS).conf
    return {setting.key: setting.value for setting in parse(text)}


@pytest.mark.parametrize(
    ("rate", "rows", "size"),
    [
        (50.0, 6396, (6000, 6000)),
        (100.0, 6396, (12000, 6000)),
        (50.0, 1000, (6000, 1000)),
        (50.01, 1000, (6006, 858)),
        (1.0, 6396, (fewest_queries(), fewest_queries())),
    ],
)
def test_a_probe_asks_each_row_as_often_as_another(rate: float, rows: int, size: tuple[int, int]) -> None:
    found = Size.of(rate, 120, rows)
    assert (found.queries, found.rows) == size
    assert found.queries % found.rows == 0
    assert found.min_duration_ms == pytest.approx(800 * found.queries / rate, rel=0.001)


def test_the_fewest_queries_leave_enough_for_early_stopping() -> None:
    assert fewest_queries() * 2 // 3 >= 459


def test_a_probe_is_shortened_by_count_duration_and_rows() -> None:
    probe = probe_leg(leg("Server"), 71.3, Size.of(71.3, 30, ROWS), PROBE)
    assert asked_rows(probe, ROWS) == 2139
    assert settings_of(probe) == {
        "target_qps": "71.3",
        "min_duration": "24000",
        "min_query_count": "2139",
        "performance_sample_count_override": "2139",
    }
    assert probe.rate_from == "probe 3 of find_target_qps 01"
    assert probe.kept_as == "probe"
    assert leg("Server").config.scenarios["Server"].target_qps == 4


def test_a_probe_of_offline_asks_a_part_or_all_and_more() -> None:
    assert dataclasses.astuple(Size.of_offline(10, 30, 6396)) == (300, 300, 24000)
    assert dataclasses.astuple(Size.of_offline(1000, 30, 6396)) == (30000, 6396, 24000)
    assert Size.of_offline(0.001, 30, 6396).rows == 1


def test_a_full_run_is_the_leg_that_the_configuration_will_name() -> None:
    full = full_leg(leg("Server"), 71.3, "01")
    written = leg("Server", scenarios={"Server": {"target_qps": 71.3}, "Offline": {"target_qps": 1}})
    assert configured(full).keys == configured(written).keys
    assert (full.kept_as, full.test_run, full.rate_from) == ("performance", False, "find_target_qps 01")
    assert settings_of(full) == {"target_qps": "71.3"}
    short = full_leg(leg("Server", short=True), 71.3, "01")
    assert short.test_run
    assert short.config.test_run == leg().config.test_run


def test_how_long_a_full_run_is() -> None:
    assert full_seconds(leg("Server")) == 600
    longer = {"Server": {"target_qps": 4, "min_duration_ms": 900_000, "min_query_count": 7000}}
    assert full_seconds(leg("Server", scenarios=longer)) == 900
    assert full_seconds(leg("Server", short=True)) == 8
    assert full_queries(leg("Server"), 71.3, ROWS) == 42_780
    assert full_queries(leg("Server"), 1, ROWS) == ROWS  # whole passes over the data set
    assert full_queries(leg("Server", scenarios=longer), 1, ROWS) == 2 * ROWS
    assert full_queries(leg("Server", short=True), 1, ROWS) == 512


def test_how_long_a_probe_is_meant_to_be() -> None:
    assert Asked().seconds(leg("Server")) == 120
    assert Asked().seconds(leg("Server", short=True)) == 8
    assert Asked(probe_seconds=33).seconds(leg("Server", short=True)) == 33


@pytest.mark.parametrize(
    ("legs", "why"),
    [
        ([], "0 are named"),
        ([leg("Server"), leg("Interactive")], "2 are named"),
        ([agentic()], "SingleStream of qwen3.6-27b has no rate to find"),
        ([agentic("Server")], "as fast as each is answered"),
    ],
)
def test_what_has_no_rate_to_find(legs: list[PlannedLeg], why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        the_row(legs)


def test_a_scenario_without_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    own = leg("Server").scenario_rules.model_copy(update={"ttft_p99_below_ms": None, "tpot_p99_below_ms": None})

    def without(_: Any, name: str) -> ScenarioRules:
        assert name == "Server"
        return own

    monkeypatch.setattr(type(leg().rules), "scenario", without)
    with pytest.raises(ConfigError, match="limits no latency of Server"):
        the_row([leg("Server")])


# -- what an interrupted search has left -------------------------------------------------------------------------------


def add_probe(store: ResultsStore, number: str, keys: dict[str, Any], *, note: str | None = None) -> Path:
    """Keeps a probe of BOX: finished, or interrupted with a note."""
    run_id, folder = store.new_attempt("BOX", "gpt-oss-120b", "Server", "probe")
    echo = ProbeEcho(search=number, number=1, rate=50.0, purpose="first guess", outcome="pass")
    print_ = Fingerprint.of(keys)
    if note is None:
        write_record(folder, finished(run_id, probe=echo, fingerprint=print_, test_run=True))
    else:
        state = State.INTERRUPTED
        write_record(folder, record(run_id, probe=echo, fingerprint=print_, state=state, note=note, test_run=True))
    return folder


KEYS = {"system": "BOX", "scenario.target_qps": 50.0, "test_run": {"server_queries": 9}}


def test_probes_of_a_search_that_did_not_end_are_found_again(tmp_path: Path) -> None:
    store, row = ResultsStore(tmp_path), leg("Server")
    assert next_search(row, store) == "01"
    kept = add_probe(store, "01", KEYS)
    hopeless = add_probe(store, "01", {**KEYS, "scenario.target_qps": 90.0}, note="ended early: it overran")
    add_probe(store, "01", KEYS, note="stopped by signal 2")
    add_probe(store, "01", {**KEYS, "config.seed": 7})
    now = Fingerprint.of({**KEYS, "scenario.target_qps": 71.3, "test_run": None})
    assert [run.folder for run in former_probes(row, store, now)] == [kept, hopeless]
    assert next_search(row, store) == "02"


def test_probes_of_a_search_that_ended_are_not(tmp_path: Path) -> None:
    store, row = ResultsStore(tmp_path), leg("Server")
    add_probe(store, "01", KEYS)
    write_search(folder_of(row, store), search(search="01"))
    assert former_probes(row, store, Fingerprint.of(KEYS)) == []
    assert next_search(row, store) == "02"
    later = add_probe(store, "02", KEYS)
    assert [run.folder for run in former_probes(row, store, Fingerprint.of(KEYS))] == [later]


def test_probes_are_no_attempts_of_the_leg(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path)
    add_probe(store, "01", KEYS)
    assert store.latest_finished("BOX", "gpt-oss-120b", "Server", "performance") is None
    assert store.attempts("BOX", "gpt-oss-120b", "Server", "performance") == []
