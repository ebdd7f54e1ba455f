"""Where legs stand, from a project's files and a results folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.config import Project
from harness.ledger import Fingerprint, ResultsStore, State, write_record
from harness.ledger.record import Verdict
from harness.ledger.standing import RowStanding, Word
from harness.runs import identity
from harness.runs.overview import Overview, overview
from harness.runs.plan import PlannedLeg, Selection
from tests.ledger.made_records import add, record
from tests.runs.made_legs import PACK

SYSTEM = {"system_name": "a", "number_of_nodes": 1, "cooling": None, "host_networking_topology": None}
CONTENT: dict[str, Any] = {
    "engine": {"kind": "scripted"},
    "scenarios": {"Server": {"target_qps": 4}, "Offline": {"target_qps": 10}},
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    made = Project(tmp_path / "project")
    folder = made.systems / "BOX"
    folder.mkdir(parents=True)
    (folder / "system.yaml").write_text(yaml.safe_dump(SYSTEM))
    configure(made, CONTENT)
    return made


@pytest.fixture
def store(tmp_path: Path) -> ResultsStore:
    return ResultsStore(tmp_path / "results")


def configure(project: Project, content: dict[str, Any]) -> None:
    (project.systems / "BOX" / "gpt-oss-120b.yaml").write_text(yaml.safe_dump(content))


def prints(project: Project, scenario: str = "Offline", *, short: bool = False, **placed: str) -> Fingerprint:
    """The fingerprint of a run with the project's configuration, on some machine with some engine."""
    config = project.benchmark("BOX", "gpt-oss-120b")
    leg = PlannedLeg("BOX", "gpt-oss-120b", scenario, "performance", config, PACK, short)
    known = identity.configured(leg).keys
    return Fingerprint.of(
        {**known, "machine": "m", "checkpoint": "c", "engine.torch": "2", "dataset.accuracy": "d", **placed}
    )


def seen(project: Project, store: ResultsStore, **selection: Any) -> Overview:
    return overview(project, store, Selection(**selection), PACK)


def words(row: RowStanding) -> dict[str, str]:
    return {leg: standing.word.value for leg, standing in row.legs.items()}


def test_before_anything_ran_all_is_missing(project: Project, store: ResultsStore) -> None:
    found = seen(project, store)
    assert [(row.system, row.scenario) for row in found.rows] == [("BOX", "Offline"), ("BOX", "Server")]
    assert words(found.rows[0]) == dict.fromkeys(("performance", "accuracy", "TEST07", "TEST09"), "missing")
    assert not found.notes
    assert not store.root.exists()


def test_what_ran_with_this_configuration_is_done(project: Project, store: ResultsStore) -> None:
    add(store, fingerprint=prints(project))
    add(store, leg="TEST07", fingerprint=prints(project), verdict=Verdict(valid=False, loadgen="VALID", findings=[]))
    add(store, leg="TEST07", fingerprint=prints(project))
    run_id, folder = store.new_attempt("BOX", "gpt-oss-120b", "Offline", "accuracy")
    write_record(folder, record(run_id, state=State.INTERRUPTED, note="interrupted"))
    row = seen(project, store).rows[0]
    assert words(row) == {"performance": "VALID", "accuracy": "interrupted", "TEST07": "VALID", "TEST09": "missing"}
    assert row.legs["TEST07"].attempts == 2


def test_a_run_of_the_endpoints_client_stands_by_itself(project: Project, store: ResultsStore) -> None:
    add(store, fingerprint=prints(project))
    add(store, leg="endpoints", fingerprint=prints(project, **{"client.endpoints": "0.1.0"}))
    offline, server = seen(project, store).rows
    lacking = dict.fromkeys(("accuracy", "TEST07", "TEST09"), "missing")
    assert words(offline) == {"performance": "VALID", **lacking, "endpoints": "VALID"}
    assert words(server)["endpoints"] == "missing"
    configure(project, CONTENT | {"seed": 1})
    assert seen(project, store).rows[0].legs["endpoints"].reason == "changed since: config.seed"


@pytest.mark.parametrize(
    ("changes", "key"),
    [
        ({"seed": 1}, "config.seed"),
        ({"engine": {"kind": "scripted", "slots": 4}}, "config.engine.slots"),
        ({"scenarios": {"Offline": {"target_qps": 11}}}, "scenario.target_qps"),
        ({"scenarios": {"Offline": {"target_qps": 10, "engine": {"kind": "scripted"}}}}, "scenario.engine"),
    ],
)
def test_what_ran_with_another_is_stale(
    project: Project, store: ResultsStore, changes: dict[str, Any], key: str
) -> None:
    add(store, fingerprint=prints(project))
    configure(project, CONTENT | changes)
    found = seen(project, store).rows[0].legs["performance"]
    assert found.word is Word.STALE
    assert key in found.reason


def test_what_ran_with_a_variant_is_not_stale(project: Project, store: ResultsStore) -> None:
    own = project.systems / "BOX" / "gpt-oss-120b.yaml"
    configure(project, CONTENT | {"seed": 1})
    ran = prints(project)
    own.rename(own.with_name("gpt-oss-120b.other.yaml"))
    configure(project, CONTENT)
    add(store, fingerprint=ran)
    assert seen(project, store).rows[0].legs["performance"].word is Word.VALID


def test_the_share_of_an_audit_makes_nothing_stale(project: Project, store: ResultsStore) -> None:
    add(store, "Server", fingerprint=prints(project, "Server"))
    configure(project, CONTENT | {"scenarios": {"Server": {"target_qps": 4, "audit_shares": {"TEST07": 0.2}}}})
    assert seen(project, store).rows[0].legs["performance"].word is Word.VALID


def test_legs_that_do_not_make_one_row(project: Project, store: ResultsStore) -> None:
    add(store, fingerprint=prints(project))
    add(store, leg="accuracy", fingerprint=prints(project))
    add(store, leg="TEST09", fingerprint=prints(project, machine="another"))
    row = seen(project, store).rows[0]
    assert words(row) == {"performance": "VALID", "accuracy": "VALID", "TEST07": "missing", "TEST09": "stale"}
    assert row.legs["TEST09"].reason == "unlike the performance run: machine"


def test_a_full_run_stands_for_a_leg_whatever_short_ones_came_after(project: Project, store: ResultsStore) -> None:
    add(store, fingerprint=prints(project, short=True), test_run=True)
    short = seen(project, store).rows[0].legs["performance"]
    assert short.word is Word.VALID
    assert short.run is not None
    assert short.run.record.test_run
    full = add(store, fingerprint=prints(project))
    add(store, fingerprint=prints(project, short=True), test_run=True)
    found = seen(project, store).rows[0].legs["performance"]
    assert found.run is not None
    assert found.run.folder == full


def test_a_running_leg_is_one_only_while_a_harness_works(project: Project, store: ResultsStore) -> None:
    run_id, folder = store.new_attempt("BOX", "gpt-oss-120b", "Offline", "performance")
    write_record(folder, record(run_id))
    assert seen(project, store).rows[0].legs["performance"].word is Word.INTERRUPTED
    with store.lock():
        assert seen(project, store).rows[0].legs["performance"].word is Word.RUNNING


def test_rows_that_are_no_longer_configured(project: Project, store: ResultsStore) -> None:
    add(store, fingerprint=prints(project))
    configure(project, CONTENT | {"scenarios": {"Server": {"target_qps": 4}}})
    offline, server = seen(project, store).rows
    assert "no longer configured" in offline.legs["performance"].reason
    assert words(server)["performance"] == "missing"


def test_a_file_that_cannot_be_read_hides_no_other_row(project: Project, store: ResultsStore) -> None:
    (project.systems / "BOX" / "gpt-5.yaml").write_text(yaml.safe_dump(CONTENT))
    (project.systems / "BOX" / "qwen.yaml").write_text("engine: [")
    found = seen(project, store)
    assert len(found.rows) == 2
    assert len(found.notes) == 2


def test_without_a_project_nothing_is_called_stale(project: Project, store: ResultsStore, tmp_path: Path) -> None:
    add(store, fingerprint=prints(project))
    found = seen(Project(tmp_path), store)
    assert words(found.rows[0])["performance"] == "VALID"
    assert "not known" in found.notes[0]


@pytest.mark.parametrize(
    ("selection", "rows"),
    [({"scenarios": ["Server"]}, 1), ({"systems": ["CRATE"]}, 0), ({"benchmarks": ["gpt-oss-120b"]}, 2)],
)
def test_rows_that_are_asked_for(project: Project, store: ResultsStore, selection: dict[str, Any], rows: int) -> None:
    add(store, fingerprint=prints(project))
    assert len(seen(project, store, **selection).rows) == rows
