"""``find_target_qps`` around the search itself, which is tested in its room and end to end."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.cli import find_target_qps
from harness.errors import ConfigError, Interrupted, MissingError, UnknownName
from harness.ledger.search import SearchEcho
from harness.runs.plan import PlannedLeg
from harness.runs.search.asked import Asked
from tests.harness_process import ScriptedProject
from tests.ledger.made_searches import search

ROW = ("--systems=SCRIPTED", "--benchmarks=gpt-oss-120b", "--scenarios=Server")


class Finder:
    """Stands for ``find``: keeps what it was asked, and returns what it is told to."""

    def __init__(self, **ended: Any) -> None:
        self.echo = search(**ended)
        self.legs: list[PlannedLeg] = []
        self.asked: list[Asked] = []
        self.given: dict[str, Any] = {}

    def __call__(self, leg: PlannedLeg, asked: Asked, **given: Any) -> SearchEcho:
        self.legs.append(leg)
        self.asked.append(asked)
        self.given = given
        return self.echo


@pytest.fixture
def project(scripted_project: ScriptedProject, monkeypatch: pytest.MonkeyPatch) -> ScriptedProject:
    monkeypatch.chdir(scripted_project.folder)
    monkeypatch.delenv("HARNESS_DATA_DIR", raising=False)
    return scripted_project


@pytest.fixture
def finder(project: ScriptedProject, monkeypatch: pytest.MonkeyPatch) -> Finder:
    found = Finder()
    monkeypatch.setattr(find_target_qps, "find", found)
    return found


def test_what_is_asked_for_arrives(finder: Finder, capsys: pytest.CaptureFixture[str]) -> None:
    options = ("--from=12.5", "--tolerance=0.02", "--max_probes=4", "--probe_seconds=30", "--results_dir=r")
    assert find_target_qps.run([*ROW, *options, "--test_run", "--data_dir=d"]) == 0
    assert finder.legs[0].name == "SCRIPTED/gpt-oss-120b/Server/performance"
    assert finder.legs[0].test_run
    assert finder.asked == [Asked(tolerance=0.02, max_probes=4, probe_seconds=30, guess=12.5)]
    assert finder.given["store"].root == Path.cwd() / "r"
    assert finder.given["data_dir"] == Path.cwd() / "d"
    assert finder.given["command"][:4] == ["python", "-m", "harness", "find_target_qps"]
    assert "found: target_qps 70.9" in capsys.readouterr().out


def test_the_configuration_is_left_alone_without_write(
    finder: Finder, project: ScriptedProject, capsys: pytest.CaptureFixture[str]
) -> None:
    before = project.benchmark_file.read_bytes()
    assert find_target_qps.run([*ROW]) == 0
    assert project.benchmark_file.read_bytes() == before
    assert finder.asked == [Asked()]
    told = f"{project.benchmark_file}: not written; set scenarios.Server.target_qps to 70.9 there"
    assert told in capsys.readouterr().out
    for option in ("--test_run", "--stand_in"):  # no rate to file by
        assert find_target_qps.run([*ROW, option]) == 0
        assert "not written" not in capsys.readouterr().out


def test_none_found_is_code_1_and_writes_nothing(
    project: ScriptedProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(find_target_qps, "find", Finder(found=None, why="no probe of 10 kept the limits"))
    before = project.benchmark_file.read_bytes()
    assert find_target_qps.run([*ROW, "--write"]) == 1
    assert project.benchmark_file.read_bytes() == before
    assert "none found: no probe of 10 kept the limits" in capsys.readouterr().out


def test_write_changes_the_one_number(
    finder: Finder, project: ScriptedProject, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "# mine\n" + project.benchmark_file.read_text() + "# the end\n"
    project.benchmark_file.write_text(text)
    assert find_target_qps.run([*ROW, "--write"]) == 0
    after = project.benchmark_file.read_text()
    assert after == text.replace("target_qps: 200\n", "target_qps: 70.9\n")
    assert "target_qps is 70.9 now" in capsys.readouterr().out


def test_where_it_cannot_be_written_is_said_before_the_search(finder: Finder, project: ScriptedProject) -> None:
    content = project.benchmark_file.read_text().replace("target_qps: 200\n", "target_qps: &rate 200\n")
    project.benchmark_file.write_text(content)
    with pytest.raises(ConfigError, match="has an anchor") as caught:
        find_target_qps.run([*ROW, "--write"])
    assert caught.value.mend == "give target_qps a place of its own in this file, or leave it to be written by hand"
    for option in ("--test_run", "--stand_in"):
        with pytest.raises(ConfigError, match=f"{option} makes no full run"):
            find_target_qps.run([*ROW, "--write", option])
    assert finder.legs == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--systems=SCRIPTED"], "one row at a time, 2 are named"),
        ([*ROW[:2], "--scenarios=Server,Offline"], "one row at a time, 2 are named"),
        ([*ROW, "--from=0"], "--from is 0"),
        ([*ROW, "--from=-3"], "--from is -3"),
        ([*ROW, "--from=nan"], "--from is nan"),
        ([*ROW, "--from=inf"], "--from is inf"),
        ([*ROW, "--from=1e300"], r"--from is 1e\+300"),
        ([*ROW, "--tolerance=0"], "--tolerance is 0"),
        ([*ROW, "--tolerance=1"], "--tolerance is 1"),
        ([*ROW, "--max_probes=0"], "--max_probes is 0"),
        ([*ROW, "--probe_seconds=0"], "--probe_seconds is 0"),
        ([*ROW, "--probe_seconds=nan"], "--probe_seconds is nan"),
    ],
)
def test_what_cannot_be_meant(finder: Finder, options: list[str], why: str) -> None:
    with pytest.raises(ConfigError, match=why.replace("-", r"\-")):
        find_target_qps.run(options)
    assert finder.legs == []


def test_probes_are_no_longer_than_the_run_that_they_save(
    project: ScriptedProject, capsys: pytest.CaptureFixture[str]
) -> None:
    """Said before anything is started."""
    with pytest.raises(ConfigError, match="--probe_seconds is 601") as caught:
        find_target_qps.run([*ROW, "--probe_seconds=601"])
    assert caught.value.expected == "at most a full run's 600"
    assert not project.results.exists()


def test_a_file_that_may_not_be_written_is_said_before_the_search(
    finder: Finder, project: ScriptedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    for refused in (project.benchmark_file, project.benchmark_file.parent):
        monkeypatch.setattr(os, "access", lambda path, mode, refused=refused: Path(path) != refused)
        with pytest.raises(MissingError, match="cannot write: Permission denied") as caught:
            find_target_qps.run([*ROW, "--write"])
        assert caught.value.where == str(refused)
    assert finder.legs == []
    assert find_target_qps.run([*ROW]) == 0


def test_names_that_are_not_known(finder: Finder) -> None:
    for wrong in (["--systems=X"], ["--systems=SCRIPTED", "--scenarios=Sever"], [*ROW, "--variant=other"]):
        with pytest.raises(UnknownName):
            find_target_qps.run(wrong)
    assert finder.legs == []


def test_a_share_of_an_offline_run_that_there_is_none_of(project: ScriptedProject) -> None:
    """Said before an engine is started, with what to do."""
    content = yaml.safe_load(project.benchmark_file.read_text())
    content["scenarios"]["Server"]["target_qps"] = {"offline_share": 0.8}
    project.benchmark_file.write_text(yaml.safe_dump(content))
    with pytest.raises(MissingError, match="no Offline performance run has finished") as caught:
        find_target_qps.run([*ROW])
    assert "--from" in (caught.value.mend or "")
    assert not project.results.exists()
    content["scenarios"]["Server"]["target_qps"] = {"warmup_share": 0.8}
    content["warmup"]["requests"] = 0
    project.benchmark_file.write_text(yaml.safe_dump(content))
    with pytest.raises(ConfigError, match="there is no warm-up"):
        find_target_qps.run([*ROW])


def test_an_interrupted_search_shows_what_there_is(
    project: ScriptedProject, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: Any, unfinished: Any, **__: Any) -> SearchEcho:
        unfinished(search(found=None, ended_at=None))
        raise Interrupted("stopped by signal 2")

    monkeypatch.setattr(find_target_qps, "find", interrupted)
    with pytest.raises(Interrupted):
        find_target_qps.run([*ROW])
    assert "not ended: the next search takes its probes" in capsys.readouterr().out
