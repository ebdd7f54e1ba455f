"""The verb ``system``: it tells, and writes only where it is asked to, and never over what a person said."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.cli import system as verb
from harness.cli.main import main
from harness.config import Project
from tests.machine.recorded import MLPERF_SYSINFO
from tests.submission.made_up import make_project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    project = make_project(tmp_path / "work")
    (tmp_path / "desc.json").write_text(MLPERF_SYSINFO)
    monkeypatch.chdir(project.root)
    monkeypatch.setattr(verb.OUT, "_width", 240)
    return project


def one_line(text: str) -> str:
    return " ".join(text.replace("│", " ").split())


def test_a_system_that_is_not_entered_is_shown_and_says_so(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    other = project.systems / "other"
    other.mkdir()
    (other / "system.yaml").write_text((project.systems / "box/system.yaml").read_text())
    assert main(["system", "--system", "other"]) == 0
    assert "lacking: division: nobody has said it; add an entry of other to submission.yaml" in capsys.readouterr().out


def test_nothing_is_written_unless_asked(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    before = (project.systems / "box/system.yaml").read_text()
    assert verb.run(["--system=box", "--import=../desc.json"]) == 0
    out = one_line(capsys.readouterr().out)
    assert "nothing is written without --write" in out
    assert "host_storage_capacity 252 GB HDD" in out
    assert "not of system.yaml: host_processor_vcpu_count: 2" in out
    assert (project.systems / "box/system.yaml").read_text() == before


def test_a_new_system_is_a_file_to_fill_in(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["system", "--system", "new-box", "--write"]) == 0
    assert "systems/new-box/system.yaml: made, 0 values imported" in capsys.readouterr().out
    assert project.system("new-box").cooling is None
    text = (project.systems / "new-box/system.yaml").read_text()
    assert "cooling: null  # air, liquid, passive, ...\n" in text
    assert "framework" not in text
    assert main(["system", "--system", "new-box", "--write"]) == 0
    assert "systems/new-box/system.yaml: nothing to add" in capsys.readouterr().out
    assert (project.systems / "new-box/system.yaml").read_text() == text


def test_an_import_fills_what_nobody_said(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    path = project.systems / "box/system.yaml"
    path.write_text(
        "# mine\nsystem_name: Ours  # said\nnumber_of_nodes: 1\ncooling: null\nhost_networking_topology: null\n"
    )
    assert main(["system", "--system=box", "--write", "--import=../desc.json"]) == 0
    assert "written again" in capsys.readouterr().out
    file = project.system("box")
    assert (file.system_name, file.cooling, file.host_storage_capacity) == ("Ours", "air", "252 GB HDD")
    assert file.sources["cooling"].startswith("mlperf-sysinfo 1.0.0a12")
    assert path.read_text().startswith("# mine\nsystem_name: Ours  # said\nnumber_of_nodes: 1\ncooling: air\n")
    assert verb.run(["--system=box"]) == 0
    assert "systems/box/system.yaml: mlperf-sysinfo 1.0.0a12" in one_line(capsys.readouterr().out)


@pytest.mark.parametrize("name", ["../out", "a b", "-x", ".x", "_bases", "b\u00f6x", "a/b"])
def test_a_new_systems_name_goes_into_the_tree(project: Project, capsys: pytest.CaptureFixture[str], name: str) -> None:
    before = sorted(project.root.parent.rglob("*"))
    assert main(["system", f"--system={name}", "--write"]) == 2
    assert "is no name for a system" in capsys.readouterr().err
    assert sorted(project.root.parent.rglob("*")) == before


def test_a_name_that_is_unknown_is_not_made_by_only_looking(
    project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["system", "--system=bix"]) == 2
    assert "did you mean 'box'?" in capsys.readouterr().err


def test_a_capture_that_is_none(project: Project, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["system", "--system=box", "--import=submission.yaml"]) == 2
    assert "not JSON" in capsys.readouterr().err
    assert main(["system", "--system=box", "--import=gone.json"]) == 2
    assert "no such file" in capsys.readouterr().err
