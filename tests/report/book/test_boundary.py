from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.ledger.record import DatasetEcho, EngineEcho, Fingerprint, Machine, RunId, RunRecord, State
from harness.ledger.weights import served_weights
from harness.report.book import boundary
from harness.report.book.boundary import Difference, Subject, differences, of_files, of_record, with_said
from harness.rules import load

ROUND = load("v6.1")
SYSTEM = {
    "accelerator_model_name": "NVIDIA H200",
    "accelerators_per_node": 8,
    "number_of_nodes": "1",
    "host_processor_model_name": "Xeon",
}
MEASUREMENTS = {
    "starting_weights_filename": "openai/gpt-oss-120b (sha256 ab)",
    "weight_data_types": "MXFP4",
}
SUBJECT = Subject("gpt-oss-120b", "Server", "closed", "datacenter", "loadgen")


def record(**changed: Any) -> RunRecord:
    checkpoint = {"name": "openai/gpt-oss-120b", "sha256": "ab", "stand_in": False, "weight_data_type": "mxfp4"}
    engine: dict[str, Any] = {"kind": "trtllm", "versions": {}, "settings": {}, "checkpoint": checkpoint}
    facts = {"accelerator_model_name": "NVIDIA H200", "accelerators_per_node": "8"}
    fields: dict[str, Any] = {
        "id": RunId(system="box", benchmark="gpt-oss-120b", scenario="Server", leg="performance", attempt=1),
        "round": "v6.1",
        "state": State.RUNNING,
        "test_run": False,
        "started_at": "2026-01-01T00:00:00Z",
        "command": [],
        "config": {},
        "fingerprint": Fingerprint.of({}),
        "machine": Machine(identity="0", facts=facts, sources={}, accelerators=8, captured_at="2026-01-01T00:00:00Z"),
        "engine": EngineEcho(**engine | {"slots": 8, "max_total_tokens": 512} | changed.pop("engine", {})),
        "dataset": DatasetEcho(name="performance", rows=6396, sha256="cd", stand_in=False),
        "versions": {},
        "loadgen_settings": {},
        "rate": None,
        "not_submittable": [],
        "deviations": [],
    }
    return RunRecord.model_validate(fields | changed)


def of_run(run: RunRecord, **said: Any) -> dict[str, str]:
    return dict(of_record(run, ROUND, **said))


def test_a_run_and_the_row_that_is_packaged_of_it_have_one_boundary() -> None:
    run = with_said(
        of_record(record(), ROUND, division="closed", category="datacenter"), {"number_of_nodes": 1, "cooling": None}
    )
    row = of_files(SUBJECT, ROUND, system=SYSTEM, measurements=MEASUREMENTS)
    assert differences(run, row) == ()
    assert dict(row)["limits"] == "p99 TTFT below 3000 ms, p99 TPOT below 80 ms"
    assert dict(row)["accelerators per node"] == "8"


def test_what_only_one_side_tells_is_a_difference() -> None:
    run = of_record(record(), ROUND)
    row = of_files(SUBJECT, ROUND, system=SYSTEM, measurements=MEASUREMENTS)
    found = {one.name: (one.before, one.after) for one in differences(run, row)}
    assert found["division"] == ("not told", "closed")
    assert found["nodes"] == ("not told", "1")
    assert found.keys() == {"division", "category", "nodes"}


def test_the_model_of_closed_is_the_rounds_whatever_its_weights_are_called() -> None:
    other = MEASUREMENTS | {"starting_weights_filename": "original weights of a hub"}
    rows = [of_files(SUBJECT, ROUND, system=SYSTEM, measurements=m) for m in (MEASUREMENTS, other)]
    assert differences(*rows) == ()
    assert dict(rows[0])["model"] == ROUND.benchmark("gpt-oss-120b").model.value
    in_open = [
        of_files(dataclasses.replace(SUBJECT, division="open"), ROUND, system=SYSTEM, measurements=m)
        for m in (MEASUREMENTS, other)
    ]
    assert [one.name for one in differences(*in_open)] == ["model"]


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"benchmark": "qwen3-vl-235b-a22b"}, "benchmark"),
        ({"scenario": "Offline"}, "scenario"),
        ({"division": "open"}, "division"),
        ({"category": "edge"}, "category"),
        ({"layout": "endpoints"}, "client"),
    ],
)
def test_a_row_of_something_else_is_another(changed: dict[str, Any], name: str) -> None:
    one = of_files(SUBJECT, ROUND, system=SYSTEM, measurements=MEASUREMENTS)
    subject = dataclasses.replace(SUBJECT, **changed)
    other = of_files(subject, ROUND, system=SYSTEM, measurements=MEASUREMENTS)
    assert name in [difference.name for difference in differences(one, other)]


@pytest.mark.parametrize(
    ("field", "value", "name"),
    [
        ("accelerator_model_name", "NVIDIA B200", "accelerator"),
        ("accelerators_per_node", "4", "accelerators per node"),
        ("number_of_nodes", 2, "nodes"),
    ],
)
def test_another_machine_is_another_boundary(field: str, value: object, name: str) -> None:
    one = of_files(SUBJECT, ROUND, system=SYSTEM, measurements=MEASUREMENTS)
    other = of_files(SUBJECT, ROUND, system=SYSTEM | {field: value}, measurements=MEASUREMENTS)
    assert [difference.name for difference in differences(one, other)] == [name]


def test_the_host_counts_where_there_is_no_accelerator() -> None:
    without = SYSTEM | {"accelerators_per_node": "0", "accelerator_model_name": "N/A"}
    hosts = [
        of_files(SUBJECT, ROUND, system=without | {"host_processor_model_name": name}, measurements=MEASUREMENTS)
        for name in ("Xeon", "EPYC")
    ]
    assert [difference.name for difference in differences(*hosts)] == ["processor"]
    assert dict(hosts[0])["accelerator"] == "none"
    beside = of_files(SUBJECT, ROUND, system=SYSTEM | {"host_processor_model_name": "EPYC"}, measurements=MEASUREMENTS)
    assert differences(of_files(SUBJECT, ROUND, system=SYSTEM, measurements=MEASUREMENTS), beside) == ()


def test_what_a_person_says_of_a_machine_wins_over_what_was_read_off_it() -> None:
    facts = {"accelerators_per_node": "0", "accelerator_model_name": "N/A", "host_processor_model_name": "EPYC"}
    client = of_record(record(machine=record().machine.model_copy(update={"facts": facts})), ROUND)
    assert dict(client)["processor"] == "EPYC"
    said = {"accelerators_per_node": "8", "accelerator_model_name": "NVIDIA H200", "number_of_nodes": 2, "cooling": ""}
    served = dict(with_said(client, said))
    assert (served["accelerator"], served["accelerators per node"], served["nodes"]) == ("NVIDIA H200", "8", "2")
    assert "processor" not in served
    assert [name for name, _ in with_said(client, said)] == [name for name, _ in of_record(record(), ROUND)]
    assert with_said(client, {"cooling": "air", "number_of_nodes": None}) == client


def test_letter_case_and_blanks_are_no_difference() -> None:
    shouted = SYSTEM | {"accelerator_model_name": " NVIDIA  h200 "}
    rows = [of_files(SUBJECT, ROUND, system=system, measurements=MEASUREMENTS) for system in (SYSTEM, shouted)]
    assert differences(*rows) == ()


def test_a_script_is_no_model_and_a_stand_in_no_data_set() -> None:
    scripted = record(engine={"kind": "scripted", "checkpoint": None})
    assert of_run(scripted)["answered by"] == boundary.SCRIPTED
    assert of_run(scripted)["model"] == "none"
    marks = ("scripted engine", "stand-in data set of 10 rows (the round's: 6396)")
    named = {"starting_weights_filename": "none, a scripted engine answers", "weight_data_types": "none"}
    packaged = of_files(SUBJECT, ROUND, system=SYSTEM, measurements=named, marks=marks)
    stood_in = scripted.model_copy(update={"dataset": scripted.dataset.model_copy(update={"stand_in": True})})
    said = {"number_of_nodes": 1}
    run = with_said(of_record(stood_in, ROUND, division="closed", category="datacenter"), said)
    assert differences(run, packaged) == ()
    assert dict(packaged)["data set"] == "a stand-in"
    tiny = {"name": "tiny", "stand_in": True, "weight_data_type": "bf16"}
    assert of_run(record(engine={"checkpoint": tiny}), division="closed")["model"] == "tiny, a stand-in"


def test_an_engine_that_stands_in_is_none_of_the_system() -> None:
    mark = "stand-in engine for http"
    assert of_run(record(not_submittable=[mark]))["answered by"] == boundary.STAND_IN
    row = of_files(SUBJECT, ROUND, system=SYSTEM, measurements=MEASUREMENTS, marks=(mark,))
    assert dict(row)["answered by"] == boundary.STAND_IN


def test_weights_that_nobody_could_look_at_are_those_that_are_configured() -> None:
    named = {"engine": {"kind": "http", "checkpoint": {"name": "openai/gpt-oss-120b", "revision": "b5c939d"}}}
    run = record(engine={"kind": "http", "checkpoint": None}, config=named)
    assert served_weights(run)["name"] == "openai/gpt-oss-120b"
    assert of_run(run)["model"] == "openai/gpt-oss-120b"
    own = {"scenarios": {"Server": {"engine": {"checkpoint": {"name": "other"}}}}, **named}
    assert served_weights(record(engine={"checkpoint": None}, config=own))["name"] == "other"
    assert not served_weights(record(engine={"checkpoint": None}, config={"engine": {"checkpoint": "/models/x"}}))


def test_a_limit_is_the_same_in_whichever_way_a_round_says_it() -> None:
    vision = dataclasses.replace(SUBJECT, benchmark="qwen3-vl-235b-a22b")
    rows = [of_files(vision, load(name), system=SYSTEM, measurements=MEASUREMENTS) for name in ("v6.0", "v6.1")]
    assert dict(rows[0])["limits"] == "p99 latency at most 12000 ms"
    assert differences(*rows) == ()


def test_a_round_without_rules_here_tells_no_limits() -> None:
    assert dict(of_record(record(), None))["limits"] == boundary.NOT_TOLD
    assert of_run(record())["limits"] != boundary.NOT_TOLD


def test_a_scenario_that_the_round_does_not_rule_has_a_boundary() -> None:
    subject = dataclasses.replace(SUBJECT, scenario="MultiStream", division="open")
    found = dict(of_files(subject, ROUND, system=SYSTEM, measurements={}))
    assert found["metric"] == found["limits"] == boundary.NOT_TOLD
    assert found["data set"] == "the round's, 6396 rows"
    assert found["weights"] == boundary.NOT_TOLD


def test_a_difference_differs() -> None:
    with pytest.raises(ValueError, match="no difference"):
        Difference("nodes", "1", "1")


_FIELDS = st.dictionaries(
    st.sampled_from([*SYSTEM, "host_processor_core_count"]),
    st.none() | st.text(max_size=8) | st.integers() | st.lists(st.integers(), max_size=2),
)


@given(_FIELDS, _FIELDS)
def test_any_fields_make_a_boundary_that_differs_both_ways_alike(one: dict[str, Any], other: dict[str, Any]) -> None:
    mine, theirs = (of_files(SUBJECT, ROUND, system=fields, measurements=fields) for fields in (one, other))
    assert differences(mine, mine) == ()
    there, back = differences(mine, theirs), differences(theirs, mine)
    assert {(d.name, d.before, d.after) for d in there} == {(d.name, d.after, d.before) for d in back}
