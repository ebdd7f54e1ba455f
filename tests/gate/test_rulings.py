"""Rulings of the pack: what is said of a result to which only one side of a disagreement objects."""

from __future__ import annotations

from pathlib import PurePosixPath

import pytest

from harness.gate import Finding, Severity, check_tree
from harness.gate.row_layout import RowPlace
from harness.gate.rulings import accepted, check_row_rulings, check_scenario_rulings, finding, ruling_of
from harness.rules import load, rounds
from tests.gate.made_tree import remake_manifest

PACK = load("v6.1")
OLD = load("v6.0")
GPT, VLM, AGENT = "gpt-oss-120b", "qwen3-vl-235b-a22b", "qwen3.6-27b"


def place(benchmark: str, scenario: str = "Offline", division: str = "closed") -> RowPlace:
    folder = PurePosixPath(division, "Acme", "results", "Box", benchmark, scenario)
    return RowPlace(folder, division, "Acme", "Box", benchmark, scenario)


def of_row(where: RowPlace, layout="loadgen", accuracy: float | None = None, pack=PACK) -> dict[str, str]:
    return {f.rule: f.severity.value for f in check_row_rulings(where, layout, accuracy, pack)}


def of_scenarios(*scenarios: str, division="closed", benchmark=VLM, pack=PACK) -> list[Finding]:
    folder = PurePosixPath(division, "Acme", "results", "Box", benchmark)
    return list(check_scenario_rulings(folder, division, benchmark, scenarios, pack))


def test_a_finding_says_both_sides():
    ruling = PACK.ruling("INTERACTIVE-TPOT").model_copy(update={"severity": "review"})
    found = finding(ruling, "closed/Acme", "TPOT 17 ms")
    assert found is not None
    assert (found.rule, found.severity) == ("RULING-INTERACTIVE-TPOT", Severity.REVIEW)
    assert found.path == "closed/Acme"
    assert "15 ms" in found.expected and "20 ms" in found.expected
    assert ruling.follows.source in found.source and ruling.other.source in found.source


def test_a_ruling_with_nothing_to_say():
    assert PACK.ruling("INTERACTIVE-TPOT").severity is None
    assert finding(PACK.ruling("INTERACTIVE-TPOT"), "x", "TPOT 14 ms") is None


def test_a_severity_of_one_layout():
    ruling = PACK.ruling("AGENTIC-GATE")
    told = [finding(ruling, "x", "84", layout=layout) for layout in ("loadgen", "endpoints", None)]
    assert [one.severity.value for one in told if one is not None] == ["reject", "review", "review"]


def test_values_that_are_accepted_too():
    ruling = PACK.ruling("OUTPUT-CAP")
    found = accepted(ruling, "10000", "x")
    assert found is not None and (found.rule, found.severity) == ("RULING-OUTPUT-CAP", Severity.NOTE)
    assert accepted(ruling, "8192", "x") is None


@pytest.mark.parametrize("round_", rounds())
def test_every_ruling_makes_a_finding(round_):
    for ruling in load(round_).rulings:
        spoken = ruling.model_copy(update={"severity": "note"})
        assert finding(spoken, "x", "y") is not None
        assert ruling_of(load(round_), ruling.id) is ruling
    assert ruling_of(load(round_), "NO-SUCH") is None


def test_interactive_without_server():
    (found,) = of_scenarios("Offline", "Interactive")
    assert (found.rule, found.severity) == ("RULING-VLM-SCENARIOS", Severity.REVIEW)
    assert found.path == f"closed/Acme/results/Box/{VLM}"
    assert of_scenarios("Offline", "Interactive", division="network")


@pytest.mark.parametrize(
    ("scenarios", "told"),
    [
        (("Offline", "Server"), {}),
        (("Offline", "Server", "Interactive"), {}),
        (("Offline",), {}),
        (("Offline", "Interactive"), {"division": "open"}),
        (("Offline", "Interactive"), {"benchmark": GPT}),
        (("Offline", "Interactive"), {"pack": OLD}),
    ],
)
def test_scenarios_to_which_nobody_objects(scenarios, told):
    assert of_scenarios(*scenarios, **told) == []


@pytest.mark.parametrize(
    ("where", "accuracy", "pack", "rule", "severity"),
    [
        (place(GPT), 82.2987, PACK, "RULING-GPT-OSS-TARGET-DIGITS", "note"),
        (place(GPT), 82.299, OLD, "RULING-GPT-OSS-TARGET-DIGITS", "note"),
        (place(VLM), 0.782398, PACK, "RULING-VLM-F1-DIGITS", "review"),
        (place(VLM), 0.782398, OLD, "RULING-VLM-F1-DIGITS", "review"),
    ],
)
def test_accuracies_between_a_product_and_its_rounding(where, accuracy, pack, rule, severity):
    assert of_row(where, accuracy=accuracy, pack=pack)[rule] == severity


@pytest.mark.parametrize(
    ("where", "accuracy"),
    [
        (place(GPT), 82.2986),  # below both: told as what it is
        (place(GPT), 82.30),
        (place(GPT), None),
        (place(GPT, division="open"), 82.299),
        (place(VLM), 0.7824),
        (place(VLM, "Interactive"), 0.78),  # its own rounding is below the product
    ],
)
def test_accuracies_to_which_nobody_objects(where, accuracy):
    assert not [rule for rule in of_row(where, accuracy=accuracy) if rule.endswith("DIGITS")]


def test_the_client_of_a_benchmark():
    assert of_row(place(VLM)) == {"RULING-VLM-CLIENT": "review"}
    assert of_row(place(VLM), "endpoints") == {}
    assert of_row(place(VLM), pack=OLD) == {}
    assert of_row(place(GPT)) == {}


def test_the_agentic_benchmark():
    assert of_row(place(AGENT, "SingleStream"), "endpoints") == {
        "RULING-AGENTIC-SCENARIO": "note",
        "RULING-SINGLESTREAM-METRIC": "note",
    }


def test_a_tree_tells_its_rulings(tree):
    home = tree("closed")
    for text in home.rglob("accuracy.txt"):
        text.write_text(text.read_text().replace("83.130", "82.299"))
    remake_manifest(home)
    report = check_tree(home.parents[1], PACK)
    assert [f.rule for f in report.findings if f.rule.startswith("RULING-")] == ["RULING-GPT-OSS-TARGET-DIGITS"] * 2
    assert {row.verdict.value for row in report.rows} == {"pass"}
