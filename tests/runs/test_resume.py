"""Which legs a resumed command leaves as they are, and why an engine is started."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.events import ignore
from harness.ledger import ResultsStore, State, write_record
from harness.machine.capture import capture
from harness.runs import resume
from harness.runs.identity import fingerprint
from harness.runs.plan import PlannedLeg
from harness.runs.resume import Done, judge_measured
from harness.runs.session import _why_started
from tests.ledger.made_records import add, record
from tests.runs.made_legs import engine_info, leg

TABLES: Any = {which: SimpleNamespace(sha256=which) for which in ("performance", "accuracy", "TEST07")}
BENCHMARK: Any = SimpleNamespace(table=lambda which, scenario: which)
HASHES: Any = {which: table.sha256 for which, table in TABLES.items()}
HERE = capture({})


@pytest.fixture
def store(tmp_path: Path) -> ResultsStore:
    return ResultsStore(tmp_path)


@pytest.fixture
def done(store: ResultsStore, monkeypatch: pytest.MonkeyPatch) -> Done:
    monkeypatch.setattr(resume, "capture", lambda _: HERE)
    return Done(store, TABLES, BENCHMARK)


def ran(store: ResultsStore, planned: PlannedLeg, **changes: Any) -> Path:
    print_ = fingerprint(planned, engine_info(), HASHES, HERE)
    return add(store, planned.scenario, planned.leg, **{"fingerprint": print_, "test_run": planned.test_run, **changes})


def test_what_has_not_run_is_to_be_run(done: Done) -> None:
    assert done.record(leg()) is None


def test_what_ran_alike_is_done(store: ResultsStore, done: Done) -> None:
    for name in ("performance", "accuracy", "TEST07", "TEST09"):
        ran(store, leg(name=name))
        found = done.record(leg(name=name))
        assert found is not None
        assert found.id.leg == name


@pytest.mark.parametrize(
    "planned", [leg(seed=1), leg(short=True), leg(scenarios={"Offline": {"target_qps": 11}}), leg("Server")]
)
def test_what_ran_otherwise_is_not(store: ResultsStore, done: Done, planned: PlannedLeg) -> None:
    ran(store, leg())
    assert done.record(planned) is None


@pytest.mark.parametrize("changes", [{"versions": {"torch": "2.14.0"}}, {"checkpoint": None}])
def test_another_engine_is_seen_once_it_runs(store: ResultsStore, done: Done, changes: dict[str, Any]) -> None:
    ran(store, leg())
    assert done.record(leg()) is not None
    done.engine = engine_info()
    assert done.record(leg()) is not None
    done.engine = engine_info(**changes)
    assert done.record(leg()) is None


def test_another_machine_or_data_set_is_another_row(store: ResultsStore, monkeypatch: pytest.MonkeyPatch) -> None:
    ran(store, leg())
    monkeypatch.setattr(resume, "capture", lambda _: HERE.model_copy(update={"identity": "1" * 64}))
    assert Done(store, TABLES, BENCHMARK).record(leg()) is None
    monkeypatch.setattr(resume, "capture", lambda _: HERE)
    assert Done(store, {**TABLES, "TEST07": SimpleNamespace(sha256="zz")}, BENCHMARK).record(leg()) is None


def test_every_measured_run_of_the_legs_is_judged(store: ResultsStore, monkeypatch: pytest.MonkeyPatch) -> None:
    ran(store, leg())
    for scenario, state in (("Offline", State.MEASURED), ("Offline", State.BROKEN), ("Server", State.MEASURED)):
        run_id, folder = store.new_attempt("BOX", "gpt-oss-120b", scenario, "performance")
        write_record(folder, record(run_id, state=state))
    judged: list[str] = []
    monkeypatch.setattr(resume, "judge_later", lambda run, *_: judged.append(str(run.record.id)))
    judge_measured([leg()], store, Path(), ignore)
    assert judged == ["BOX/gpt-oss-120b/Offline/performance#2"]


def test_the_log_says_why_an_engine_is_started() -> None:
    own = {"Offline": {"target_qps": 10}, "Server": {"target_qps": 4, "engine": {"kind": "scripted", "slots": 4}}}
    offline, server = leg(scenarios=own), leg("Server", scenarios=own)
    assert _why_started(None, offline) == "starting the scripted engine of BOX"
    assert _why_started(offline, server) == (
        "restarting the scripted engine of BOX for Server: engine.slots 4 in place of None"
    )
    torch = leg("Server", scenarios={"Server": {"target_qps": 4, "engine": {"kind": "torch", "checkpoint": "a"}}})
    assert "engine.kind torch in place of scripted" in _why_started(offline, torch)
