from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from harness.clients.loadgen.user_conf import parse
from harness.config.models import OutputCaps
from harness.errors import ConfigError
from harness.ledger.record import DatasetEcho, Rate
from harness.rules import load
from harness.runs.leg_settings import (
    LegSettings,
    check_lengths,
    deviations,
    loadgen_settings,
    not_submittable,
    only_for_analysis,
    output_cap,
)
from harness.runs.plan import PlannedLeg, ProbeOf
from tests.runs.made_legs import PACK, agentic, engine_info, leg

RULES = PACK.benchmark("gpt-oss-120b")
ROWS = RULES.datasets["performance"].value
DATA = DatasetEcho(name="performance", rows=ROWS, sha256="ab" * 32, stand_in=False)
SHORT = {"performance_samples": 100, "accuracy_samples": 50, "min_duration_ms": 700, "server_queries": 300}


def settings(planned: PlannedLeg, rows: int = ROWS) -> LegSettings:
    return loadgen_settings(planned, Rate(target_qps=7.5, origin="configured"), rows)


def values(made: LegSettings) -> dict[str, str]:
    return {setting.key: setting.value for setting in parse(made.conf)}


def test_a_full_offline_leg_asks_for_what_loadgen_lacks() -> None:
    made = settings(leg("Offline"))
    assert made.rows == ROWS
    assert made.conf.startswith("gpt-oss-120b.Offline.")
    assert values(made) == {"target_qps": "7.5", "min_query_count": str(ROWS)}


def test_a_full_server_leg_repeats_nothing_of_the_round() -> None:
    assert values(settings(leg("Server"))) == {"target_qps": "7.5"}


def test_interactive_is_loadgens_server_with_a_model_of_its_own() -> None:
    made = settings(leg("Interactive"))
    assert {(s.model, s.scenario) for s in parse(made.conf)} == {("gpt-oss-120b-interactive", "Server")}


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ({"min_duration_ms": 900_000}, {"min_duration": "900000", "min_query_count": str(ROWS)}),
        ({"min_query_count": 20_000}, {"min_query_count": "20000"}),
    ],
)
def test_what_the_user_lengthens(chosen: dict[str, Any], expected: dict[str, str]) -> None:
    made = settings(leg(scenarios={"Offline": {"target_qps": 7.5, **chosen}}))
    assert values(made) == {"target_qps": "7.5", **expected}


@pytest.mark.parametrize(
    ("scenario", "name", "rows", "least"),
    [
        ("Offline", "performance", 100, 100),
        ("Offline", "accuracy", 50, 50),
        ("Server", "performance", 100, 300),
        ("Server", "accuracy", 50, 300),
    ],
)
def test_a_test_run_is_short(scenario: str, name: str, rows: int, least: int) -> None:
    made = settings(short(scenario, name))
    assert made.rows == rows
    assert values(made) == {
        "target_qps": "7.5",
        "min_duration": "700",
        f"{name}_sample_count_override": str(rows),
        "min_query_count": str(least),
    }


def short(scenario: str, name: str) -> PlannedLeg:
    planned = leg(scenario, name, short=True)
    config = planned.config.model_copy(update={"test_run": planned.config.test_run.model_copy(update=SHORT)})
    return PlannedLeg(planned.system, planned.benchmark, scenario, name, config, planned.pack, test_run=True)


def test_a_test_run_of_a_data_set_that_is_shorter_still() -> None:
    assert settings(short("Offline", "performance"), rows=12).rows == 12


def test_the_rounds_output_caps_are_no_deviation() -> None:
    for name, cap in (("performance", RULES.output_caps.performance), ("accuracy", RULES.output_caps.accuracy)):
        assert output_cap(leg(name=name)) == cap.value
        assert deviations(leg(name=name)) == []


def test_another_output_cap_is_a_stated_deviation() -> None:
    planned = leg(name="accuracy", output_caps={"accuracy": 32})
    assert output_cap(planned) == 32
    (sentence,) = deviations(planned)
    assert "32 tokens" in sentence
    assert str(RULES.output_caps.accuracy.value) in sentence
    assert deviations(leg(output_caps={"accuracy": 32})) == []


def test_why_a_run_may_not_be_filed() -> None:
    assert not_submittable(leg(), engine_info(not_submittable=()), DATA) == []
    stand_in = DATA.model_copy(update={"stand_in": True})
    assert not_submittable(leg(short=True), engine_info(), stand_in) == [
        "stand-in checkpoint",
        "stand-in data set",
        "short run (--test_run)",
    ]


@pytest.mark.parametrize(("longest", "fits"), [(480, True), (481, False)])
def test_prompt_and_answer_must_fit_the_engine(longest: int, fits: bool) -> None:
    planned = leg(output_caps={"performance": 32})
    if fits:
        check_lengths(planned, np.array([7, longest, 3]), engine_info())
        return
    with pytest.raises(ConfigError, match=r"\(row 1: 481 tokens\)") as caught:
        check_lengths(planned, np.array([7, longest, 3]), engine_info())
    assert caught.value.expected == "at most 512 tokens together"
    assert "output_caps" in (caught.value.mend or "")


def test_a_prompt_that_a_short_leg_does_not_ask_may_be_too_long() -> None:
    check_lengths(short("Offline", "accuracy"), np.array([7] * 50 + [9999]), engine_info(max_total_tokens=33_000))
    with pytest.raises(ConfigError, match="row 50: 9999"):
        check_lengths(leg(output_caps={"performance": 8}), np.array([7] * 50 + [9999]), engine_info())
    check_lengths(leg(output_caps={"performance": 8}), np.zeros(0, np.int64), engine_info())


# -- chats, tables of their own ----------------------------------------------------------------------------------------


def chats(scenario: str, name: str = "performance", **changes: Any) -> PlannedLeg:
    planned = leg(scenario, name)
    pack = changes.pop("pack", planned.pack)
    config = planned.config.model_copy(update=changes)
    return PlannedLeg("BOX", "qwen3-vl-235b-a22b", scenario, name, config, pack, test_run=False)


@pytest.mark.parametrize(
    ("scenario", "rows", "expected"),
    [
        ("Offline", 48289, {"min_query_count": "48289"}),
        ("Server", 48289, {}),
        ("Interactive", 8000, {"target_latency": "1500"}),
    ],
)
def test_a_limit_that_loadgen_has_no_entry_for_is_written(scenario: str, rows: int, expected: dict[str, str]) -> None:
    made = settings(chats(scenario), rows)
    assert made.rows == rows
    assert values(made) == {"target_qps": "7.5", **expected}
    assert {s.model for s in parse(made.conf)} == {"qwen3-vl-235b-a22b"}


@pytest.mark.parametrize("name", ["performance", "accuracy"])
@pytest.mark.parametrize(("scenario", "more"), [("Offline", {}), ("Interactive", {"target_latency": "1500"})])
def test_a_stand_in_of_fewer_rows_is_run_as_long_as_any(scenario: str, more: dict[str, str], name: str) -> None:
    rate = Rate(target_qps=7.5, origin="configured")
    made = loadgen_settings(chats(scenario, name), rate, 512, whole=False)
    assert values(made) == {
        "target_qps": "7.5",
        f"{name}_sample_count_override": "512",
        "min_query_count": "512",
        **more,
    }
    echo = DatasetEcho(name="catalogue", rows=512, sha256="ab" * 32, stand_in=True)
    rows = 8000 if scenario == "Interactive" else 48289
    assert not_submittable(chats(scenario), engine_info(not_submittable=()), echo) == [
        f"stand-in data set of 512 rows (the round's: {rows})"
    ]


def test_a_round_without_an_output_cap_wants_one_in_the_configuration() -> None:
    old = load("v6.0")
    with pytest.raises(ConfigError, match=r"the round v6\.0 has no output cap for qwen3-vl-235b-a22b") as caught:
        output_cap(chats("Offline", pack=old))
    assert "output_caps" in (caught.value.mend or "")
    capped = chats("Offline", pack=old, output_caps=OutputCaps(performance=200))
    assert output_cap(capped) == 200
    assert deviations(capped) == ["output cap of the performance leg 200 tokens (the round's: none)"]
    assert output_cap(chats("Offline")) == PACK.benchmark("qwen3-vl-235b-a22b").output_caps.performance.value


# -- audits ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scenario", ["Offline", "Server", "Interactive"])
@pytest.mark.parametrize("is_short", [False, True])
@pytest.mark.parametrize(("test", "rows"), [("TEST07", 990), ("TEST09", 6396)])
def test_an_audit_says_how_many_rows_there_are_and_leaves_the_rest_to_its_file(
    scenario: str, is_short: bool, test: str, rows: int
) -> None:
    """With LoadGen's built-in count of 6,396, an Offline TEST07 would ask nothing and crash."""
    made = settings(leg(scenario, test, short=is_short), rows)
    assert made.rows == rows
    assert values(made) == {"target_qps": "7.5", "performance_sample_count_override": str(rows)}


def test_an_audit_answers_under_the_cap_of_performance() -> None:
    for test, audit in RULES.audit_rules.items():
        assert output_cap(leg(name=test)) == audit.output_cap.value
        assert deviations(leg(name=test)) == []
        short_answers = leg(name=test, output_caps={"performance": 32, "accuracy": 64})
        assert output_cap(short_answers) == 32
        assert deviations(short_answers) == [f"output cap of the {test} leg 32 tokens (the round's: 10240)"]


def test_a_stand_in_of_an_engine_is_never_submittable() -> None:
    planned = dataclasses.replace(leg(short=True), stands_in_for="trtllm-serve")
    reasons = not_submittable(planned, engine_info(), DATA)
    assert "stand-in engine for trtllm-serve" in reasons
    assert not [reason for reason in not_submittable(leg(), engine_info(), DATA) if "stand-in engine" in reason]


# -- trajectories ------------------------------------------------------------------------------------------------------


def of_trajectories(planned: PlannedLeg, rows: int = 1000, *, whole: bool = True) -> dict[str, str]:
    rate = Rate(target_qps=7.5, origin="configured")
    return values(loadgen_settings(planned, rate, rows, whole=whole, trajectories=True))


@pytest.mark.parametrize("whole", [True, False])
def test_a_library_of_trajectories_is_asked_as_it_is(whole: bool) -> None:
    """No row count is overridden, whatever the round has of them, and LoadGen's own least numbers hold."""
    assert of_trajectories(agentic(), whole=whole) == {"target_latency": "133"}  # expected of one, by its rate
    assert of_trajectories(agentic("Offline"), whole=whole) == {"target_qps": "7.5"}
    assert of_trajectories(agentic("Server"), whole=whole) == {"target_qps": "7.5", "target_latency": "90000"}


@pytest.mark.parametrize(("scenario", "least"), [("SingleStream", 64), ("Offline", 3), ("Server", 300)])
def test_a_short_run_of_trajectories_has_a_smaller_library(scenario: str, least: int) -> None:
    short = {"performance_samples": 3, "min_duration_ms": 700, "server_queries": 300}
    planned = agentic(scenario, short=True, test_run=short)
    assert loadgen_settings(planned, Rate(target_qps=1, origin="x"), 1000, trajectories=True).rows == 3
    found = of_trajectories(planned)
    assert not [key for key in found if key.endswith("override")]
    assert found["min_query_count"] == str(least)
    assert found["min_duration"] == "700"


def test_questions_of_an_accuracy_leg_are_rows_as_any() -> None:
    made = settings(agentic("SingleStream", "accuracy", short=True, test_run=SHORT), rows=995)
    assert values(made)["accuracy_sample_count_override"] == "50"


def test_what_loadgen_measures_of_trajectories_is_for_analysis() -> None:
    (metric,) = only_for_analysis(agentic("SingleStream"))
    assert metric == (
        "metric differs: early_stopping_latency_ss over whole trajectories; "
        "the row's metric is the mean latency of turns (endpoints client)"
    )
    assert "result_samples_per_second" in only_for_analysis(agentic("Offline"))[0]
    (layout,) = only_for_analysis(agentic("SingleStream", "accuracy"))
    assert layout.startswith("layout differs: accuracy by LoadGen")
    assert only_for_analysis(leg()) == only_for_analysis(leg("Server", "accuracy")) == []


def test_a_stand_in_of_trajectories_is_not_measured_by_rows_of_the_round() -> None:
    stand_in = DATA.model_copy(update={"stand_in": True, "rows": 150})
    assert "stand-in data set" in not_submittable(agentic(), engine_info(), stand_in)
    told = not_submittable(agentic("SingleStream", "accuracy"), engine_info(), stand_in)
    assert "stand-in data set of 150 rows (the round's: 995)" in told


def test_a_probe_says_that_it_is_one_and_not_that_test_run_was_asked_for() -> None:
    """It is a short performance leg under a name of its own."""
    probe = dataclasses.replace(leg("Server", short=True), probe=ProbeOf("01", 2, "halves the bracket", warm=True))
    echo = DatasetEcho(name="x", rows=6396, sha256="", stand_in=False)
    assert not_submittable(probe, engine_info(not_submittable=()), echo) == ["probe of find_target_qps (short)"]
    assert probe.kept_as == "probe"
    assert probe.name == "BOX/gpt-oss-120b/Server/probe"
    for other in (leg("Server"), leg("Server", "accuracy", short=True)):
        with pytest.raises(ValueError, match="no short performance leg"):
            dataclasses.replace(other, probe=probe.probe)
