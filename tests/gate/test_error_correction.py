"""Error correction of memory: off is refused in closed, what nobody could read is asked about."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.gate import Severity
from harness.gate.error_correction import check_run_memory, forbidden, off_in, told_before
from harness.ledger import RunId
from harness.ledger.record import Ecc
from harness.rules import load
from tests.gate.made_tree import ECC_ON, change_json
from tests.gate.tree_changes import Breach, box, breaches, breaks, check, in_manifest, rules_of
from tests.ledger.made_records import finished

PACK = load("v6.1")
RUN = RunId(system="BOX", benchmark="gpt-oss-120b", scenario="Offline", leg="performance", attempt=1)
HOST_OFF = Ecc(host=False, accelerators=True, sources={"host": "dmidecode"})


def told(home: Path, **ecc: object) -> None:
    """What the legs of a manifest tell of error correction; None leaves a part away, as the manifest does."""
    known = {key: value for key, value in {**ECC_ON, **ecc}.items() if value is not None}
    in_manifest(home, lambda m: [leg.update(ecc=known) for row in m["rows"] for leg in row["legs"]])


def accelerated(home: Path, **ecc: object) -> None:
    change_json(box(home), accelerators_per_node=8)
    told(home, **ecc)


def first_leg(home: Path, ecc: object) -> None:
    in_manifest(home, lambda m: m["rows"][0]["legs"][0].update(ecc=ecc))


BREACHES: list[Breach] = [
    ("host off", "closed", lambda h: told(h, host=False), "SYS-ECC", "reject"),
    ("accelerators off", "closed", lambda h: accelerated(h, accelerators=False), "SYS-ECC", "reject"),
    ("off in one leg", "closed", lambda h: first_leg(h, {**ECC_ON, "host": False}), "SYS-ECC", "reject"),
    ("host unknown", "closed", lambda h: told(h, host=None), "SYS-ECC-UNKNOWN", "review"),
    ("accelerators unknown", "closed", lambda h: accelerated(h, accelerators=None), "SYS-ECC-UNKNOWN", "review"),
    ("not told", "closed", lambda h: in_manifest(h, lambda m: m["rows"][0]["legs"][0].pop("ecc")),
     "SYS-ECC-UNKNOWN", "note"),
    ("nonsense", "closed", lambda h: first_leg(h, {"host": "yes", "sources": 3}), "SYS-ECC-UNKNOWN", "review"),
]  # fmt: skip


@breaches(BREACHES)
def test_one_reading_breaks_a_rule(tree, division, change, rule, severity):
    breaks(tree(division), change, rule, severity)


def test_a_finding_says_where_it_was_read(tree):
    home = tree("closed")
    told(home, host=False)
    found = [f for f in check(home).findings if f.rule == "SYS-ECC"]
    assert [f.found for f in found] == ["the host's memory: off in 4 of 4 legs (/sys/devices/system/edac/mc: SECDED)"]
    assert "inference_rules.adoc:253-254" in found[0].source
    assert found[0].path == "closed/Acme/systems/Box.json"


@pytest.mark.parametrize(
    ("division", "change"),
    [
        ("open", lambda h: told(h, host=False, accelerators=False)),
        ("closed", lambda h: (change_json(box(h), system_type="edge"), told(h, host=False))),
        ("closed", lambda h: told(h, accelerators=None)),
        ("closed", lambda h: None),
    ],
    ids=["open", "edge", "without accelerators", "all on"],
)
def test_where_nothing_is_to_be_said(tree, division, change):
    home = tree(division)
    change(home)
    assert not {name for name in rules_of(check(home)) if name.startswith("SYS-ECC")}


@pytest.mark.parametrize(
    ("division", "category", "ecc", "refused"),
    [
        ("closed", "datacenter", HOST_OFF, True),
        ("network", "datacenter", HOST_OFF, True),
        ("open", "datacenter", HOST_OFF, False),
        ("closed", "edge", HOST_OFF, False),
        ("closed", "datacenter", Ecc(), False),
        ("closed", "datacenter", None, False),
    ],
)
def test_what_packaging_refuses(division: str, category: str, ecc: Ecc | None, refused: bool) -> None:
    reasons = forbidden(finished(RUN, ecc=ecc), division, category, PACK)
    assert reasons == (["SYS-ECC the host's memory: off (dmidecode)"] if refused else [])


def test_a_run_is_asked_about_and_stays_valid() -> None:
    found = list(check_run_memory(finished(RUN, ecc=HOST_OFF), PACK))
    assert [(f.rule, f.severity, f.path) for f in found] == [("SYS-ECC", Severity.REVIEW, "run.json")]
    assert not list(check_run_memory(finished(RUN, ecc=Ecc(host=True)), PACK))
    assert not list(check_run_memory(finished(RUN), PACK))


@pytest.mark.parametrize(("host", "lines"), [(False, 1), (True, 0), (None, 0)])
def test_it_is_told_before_a_run_is_paid_for(host: bool | None, lines: int) -> None:
    told = list(told_before(finished(RUN, ecc=Ecc(host=host, sources={"host": "dmidecode"})), PACK))
    assert (
        told
        == [
            "BOX/gpt-oss-120b/Offline/performance#1: the host's memory: off (dmidecode); "
            "closed refuses what is measured so (SYS-ECC): see make doctor"
        ]
        * lines
    )


def test_a_run_of_a_benchmark_of_the_edge_alone_is_not_asked() -> None:
    edge: dict[str, Any] = {"benchmark": "qwen3.6-27b"}
    assert not list(check_run_memory(finished(RUN.model_copy(update=edge), ecc=HOST_OFF), PACK))


def test_both_memories_are_named() -> None:
    assert off_in(Ecc(host=False, accelerators=False, sources={"accelerators": "NVML"})) == [
        "the host's memory: off (no source)",
        "the accelerators' memory: off (NVML)",
    ]


@pytest.mark.parametrize("round_", ["v6.0", "v6.1"])
def test_the_rule_is_closed_datacenters(round_: str) -> None:
    rule = load(round_).error_correction.value
    assert rule.holds("closed", "datacenter") and rule.holds("closed", "datacenter,edge")
    assert not rule.holds("open", "datacenter") and not rule.holds("closed", "edge") and not rule.holds("closed", "")
