"""The verb ``doctor``: it looks, tells and changes nothing."""

from __future__ import annotations

import json
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from harness.cli.main import main
from tests.harness_process import ROOT
from tests.submission.made_up import make_project


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    made = make_project(tmp_path / "work")
    monkeypatch.chdir(made.root)
    return made.root


def looked(capsys: pytest.CaptureFixture[str], *options: str) -> tuple[int, dict]:
    code = main(["doctor", "--json=-", *options])
    return code, json.loads(capsys.readouterr().out)


def by_name(data: dict) -> dict[str, dict]:
    return {one["name"]: one for one in data["checks"]}


def test_a_machine_and_nothing_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = sorted(project.rglob("*"))
    code, data = looked(capsys)
    assert code == data["exit_code"]
    assert (data["schema_version"], data["systems"], data["benchmarks"]) == (1, [], [])
    assert len(data["checks"]) == sum(data["counts"].values()) > 25
    assert {one["subject"] for one in data["checks"]} >= {"memory", "clock", "network", "limits", "storage", "software"}
    assert sorted(project.rglob("*")) == before


def test_a_configuration_that_is_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, data = looked(capsys, "--systems=box", f"--data_dir={project / 'nothing'}")
    assert (code, data["systems"], data["benchmarks"]) == (3, ["box"], ["gpt-oss-120b"])
    assert by_name(data)["data-set"]["missing"]


def test_accelerators_that_are_not_there(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    code, data = looked(capsys, "--systems=H200-SXM-141GBx8_TRT", "--benchmarks=gpt-oss-120b")
    found = by_name(data)["gpu-count"]
    assert "8 (for H200-SXM-141GBx8_TRT (gpt-oss-120b))" in found["expected"]
    if found["read"] == "0":  # no machine of CI has eight
        assert (code, found["missing"]) == (3, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--systems=bxo"], "did you mean 'box'?"),
        (["--systems=box", "--benchmarks=gpt-oss"], "unknown benchmark 'gpt-oss'"),
        (["--benchmarks=gpt-oss-120b"], "which system is this machine to be?"),
        (["--round=v1.0"], "unknown round"),
        (["--systems=box", "--variant=x"], "unknown variant"),
    ],
)
def test_names_that_are_not_known(
    project: Path, capsys: pytest.CaptureFixture[str], options: list[str], said: str
) -> None:
    assert main(["doctor", *options]) == 2
    assert said in capsys.readouterr().err


def test_elsewhere_than_in_a_project(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["doctor"]) in (0, 1, 3)
    capsys.readouterr()
    assert main(["doctor", "--systems=box"]) == 2
    assert "there is no systems/ folder here" in capsys.readouterr().err


def test_a_report_is_written_beside_what_is_shown(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["doctor", "--json=report.json"])
    assert json.loads((project / "report.json").read_text())["exit_code"] == code
    assert "This machine, held against no configuration" in capsys.readouterr().out


def test_a_report_that_cannot_be_written(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--json=no/such/folder/report.json"]) == 3
    assert "cannot write" in capsys.readouterr().err


def test_it_takes_no_more_than_three_seconds_and_no_torch() -> None:
    """By its processor's time: what it waits beside that is the half second for which it looks at clocks and load."""
    program = """
import sys
for name in ("torch", "transformers", "openai_harmony", "tensorrt_llm"):
    sys.modules[name] = None
from harness.cli.main import main
sys.exit(main(["doctor", "--systems=CPU-torch", "--json=-"]))
"""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 2.5
    assert done.returncode in (0, 1, 3), done.stderr
    assert json.loads(done.stdout)["systems"] == ["CPU-torch"]
