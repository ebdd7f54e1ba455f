"""``run_harness --client=endpoints`` and ``--import``, up to where the client or the import starts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from harness.cli import run_harness
from harness.errors import ConfigError, MissingError
from harness.ledger import RunRecord
from harness.ledger.record import Verdict
from harness.runs.endpoints_session import ClientSession
from harness.runs.plan import PlannedLeg
from tests.cli.test_run_harness import run_id
from tests.harness_process import ScriptedProject
from tests.ledger.made_records import finished


@pytest.fixture(autouse=True)
def _in_project(scripted_project: ScriptedProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(scripted_project.folder)
    monkeypatch.delenv("ENDPOINTS_BIN", raising=False)


def record(leg: PlannedLeg, *, valid: bool = True) -> RunRecord:
    return finished(run_id(leg), verdict=Verdict(valid=valid, loadgen=None, findings=[]))


@pytest.mark.parametrize(("valid", "code"), [(True, 0), (False, 1)])
def test_each_scenario_is_one_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], valid: bool, code: int
) -> None:
    asked: list[PlannedLeg] = []

    def run(self: ClientSession, legs: list[PlannedLeg]) -> list[RunRecord]:
        assert self.command[:4] == ["python", "-m", "harness", "run_harness"]
        asked.extend(legs)
        return [record(leg, valid=valid) for leg in legs]

    monkeypatch.setattr(ClientSession, "run", run)
    assert run_harness.run(["--client=endpoints", "--test_run"]) == code
    assert sorted(leg.scenario for leg in asked) == ["Offline", "Server"]
    assert all(leg.test_run for leg in asked)
    assert ("VALID" if valid else "INVALID") in capsys.readouterr().out.split()


def test_a_report_is_imported_for_one_row(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    taken: list[tuple[PlannedLeg, Path, dict[str, Any]]] = []

    def take(leg: PlannedLeg, folder: Path, **given: Any) -> RunRecord:
        taken.append((leg, folder, given))
        return record(leg)

    monkeypatch.setattr(run_harness, "import_run", take)
    assert run_harness.run([f"--import={tmp_path}", "--scenarios=Server"]) == 0
    ((leg, folder, given),) = taken
    assert (leg.scenario, folder, given["division"]) == ("Server", tmp_path, None)
    with pytest.raises(ConfigError, match="these are 2"):
        run_harness.run([f"--import={tmp_path}"])


def test_without_the_client_it_ends_with_3_and_says_how_to_install_it() -> None:
    with pytest.raises(MissingError, match="ENDPOINTS_BIN is not set") as raised:
        run_harness.run(["--client=endpoints", "--test_run"])
    assert raised.value.exit_code == 3
    assert "git clone" in str(raised.value)
    assert not Path("results").exists()


@pytest.mark.parametrize(
    ("options", "what"),
    [
        (["--client=loadgen", "--import=x"], "takes a report of the endpoints client"),
        (["--client=endpoints", "--legs=performance"], "--legs cannot part them"),
        (["--client=endpoints", "--test_mode=AccuracyOnly"], "--test_mode cannot part them"),
        (["--client=endpoints", "--resume"], "--resume means nothing"),
    ],
)
def test_options_that_mean_nothing_are_refused(options: list[str], what: str) -> None:
    with pytest.raises(ConfigError, match=what):
        run_harness.run(options)


def test_a_client_that_there_is_not() -> None:
    with pytest.raises(SystemExit):
        run_harness.run(["--client=other"])
