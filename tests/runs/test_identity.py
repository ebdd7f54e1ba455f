from __future__ import annotations

from typing import Any

import pytest

import harness
from harness.engines.base import Checkpoint, EngineInfo
from harness.ledger import Fingerprint
from harness.ledger.hashes import source_sha256
from harness.ledger.record import Machine
from harness.runs.identity import (
    OF_THE_ENGINE,
    OF_THE_PLACE,
    before_the_engine,
    changed,
    configured,
    fingerprint,
    versions,
)
from harness.runs.plan import PlannedLeg
from tests.runs.made_legs import engine_info, leg

HASHES: dict[str, str] = {"performance": "aa", "accuracy": "bb"}


def machine(identity: str = "0" * 64) -> Machine:
    return Machine(identity=identity, facts={}, sources={}, accelerators=0, captured_at="now")


def prints(
    planned: PlannedLeg | None = None,
    engine: EngineInfo | None = None,
    hashes: dict[str, str] = HASHES,
    on: Machine | None = None,
) -> Fingerprint:
    return fingerprint(planned or leg(), engine or engine_info(), hashes, on or machine())


def differing(**changes: Any) -> list[str]:
    return prints().differs_from(prints(**changes))


def test_the_legs_of_a_row_share_it() -> None:
    assert prints(leg(name="accuracy")) == prints(leg(name="performance"))


def test_scenarios_differ_in_nothing_but_the_scenario() -> None:
    keys = differing(planned=leg("Server"))
    assert "scenario" in keys
    assert {key.split(".")[0] for key in keys} == {"scenario"}


def test_another_scenarios_settings_do_not_count() -> None:
    other = leg(scenarios={"Offline": {"target_qps": 10}, "Server": {"target_qps": 99}})
    assert differing(planned=other) == []


@pytest.mark.parametrize(
    ("changes", "keys"),
    [
        ({"planned": leg(seed=1)}, ["config.seed"]),
        ({"planned": leg(engine={"kind": "scripted", "answer_tokens": 9})}, ["config.engine.answer_tokens"]),
        ({"planned": leg(short=True)}, ["test_run"]),
        ({"engine": engine_info(versions={"torch": "2.12"})}, ["engine.torch"]),
        ({"engine": engine_info(checkpoint=Checkpoint("tiny", "cd" * 32, True, "bf16"))}, ["checkpoint"]),
        ({"hashes": {"performance": "aa", "accuracy": "cc"}}, ["dataset.accuracy"]),
        ({"on": machine("1" * 64)}, ["machine"]),
    ],
)
def test_what_sets_runs_apart(changes: dict[str, Any], keys: list[str]) -> None:
    assert differing(**changes) == keys


def test_the_settings_of_a_test_run_count_only_in_one() -> None:
    longer = {"test_run": {"performance_samples": 129}}
    assert differing(planned=leg(**longer)) == []
    short = leg(short=True)
    other = PlannedLeg("BOX", "gpt-oss-120b", "Offline", "performance", leg(**longer).config, short.pack, test_run=True)
    assert prints(short).differs_from(prints(other)) == ["test_run"]


def test_versions_are_those_installed() -> None:
    found = versions()
    assert set(found) == {"harness", "harness_source", "python", "mlcommons_loadgen", "numpy"}
    assert found["harness"] == harness.__version__
    assert found["harness_source"] == source_sha256()
    assert all(found.values())


def test_the_audits_of_a_row_share_it_whatever_their_rate() -> None:
    shares = {"Server": {"target_qps": 4, "audit_shares": {"TEST07": 0.2}}}
    row = {prints(leg("Server", name, scenarios=shares)).digest for name in ("performance", "TEST07", "TEST09")}
    assert row == {prints(leg("Server")).digest}


def test_what_is_known_before_an_engine_runs_is_the_same_then() -> None:
    early = before_the_engine(leg(), HASHES, machine())
    assert changed(prints(), early, but=OF_THE_ENGINE) == []
    assert changed(prints(), configured(leg()), but=(*OF_THE_ENGINE, *OF_THE_PLACE)) == []
    assert changed(prints(), early) == ["checkpoint", "engine.torch"]
    assert changed(prints(leg(seed=1)), early, but=OF_THE_ENGINE) == ["config.seed"]
