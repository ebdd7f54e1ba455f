from __future__ import annotations

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from harness.benchmarks.qwen3_6_27b.bfcl.environment import Environment
from harness.benchmarks.qwen3_6_27b.bfcl.selftest import KNOWN, self_test
from harness.env import BFCL_PYTHON
from harness.errors import MissingError
from tests.benchmarks.qwen3_6_27b.bfcl.made import RULES, install, made_environment, site_packages
from tests.harness_process import ROOT

DATA = RULES.accuracy_data.value


def python_that(tmp_path: Path, does: str) -> Environment:
    """An environment whose Python is a program of ours."""
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{does}\n")
    path.chmod(0o755)
    return Environment(path, DATA, timeout_s=20)


def refused(environment: Environment) -> str:
    with pytest.raises(MissingError) as caught:
        environment.rows(["multiple"])
    assert caught.value.exit_code == 3
    assert str(environment.python) in str(caught.value)
    assert caught.value.mend
    return caught.value.what


def test_the_one_that_the_environment_names(monkeypatch: pytest.MonkeyPatch, environment: Environment) -> None:
    monkeypatch.setenv(BFCL_PYTHON.name, str(environment.python))
    assert Environment.named(DATA) == environment


def test_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(BFCL_PYTHON.name, raising=False)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingError) as caught:
        Environment.named(DATA)
    assert caught.value.where == str(tmp_path / "build" / "bfcl-venv" / "bin" / "python")
    assert "make bfcl" in (caught.value.mend or "")


def test_make_bfcl_installs_what_the_round_names() -> None:
    lines = (ROOT / "harness/benchmarks/qwen3_6_27b/bfcl/requirements.txt").read_text().splitlines()
    pinned = [line.split()[0] for line in lines if line and not line.startswith("#")]
    assert pinned == [f"{DATA.package}=={DATA.version}"]
    assert all("--hash=sha256:" in line for line in lines if not line.startswith("#"))


def test_rows_are_told_with_their_tools_and_functions_untouched(environment: Environment) -> None:
    told = environment.rows(["multiple", "irrelevance"])
    first = told["multiple"][0]
    assert first["tools"][0]["function"]["name"] == "garden_water"
    assert first["tools"][0]["function"]["parameters"]["type"] == "object"
    assert first["functions"][0]["parameters"]["type"] == "dict"
    assert first["truth"] == [{"garden.water": {"bed": [0], "litres": [1.5, ""]}}]
    assert {row["truth"] for row in told["irrelevance"]} == {None}
    assert len(told["multiple"]) == 4


def test_nothing_is_written_and_nothing_heavy_imported(environment: Environment) -> None:
    site = site_packages(environment.python.parents[1])
    before = sorted(site.rglob("*"))
    environment.rows(["multiple"])
    assert self_test(environment)
    assert sorted(site.rglob("*")) == before


def test_the_self_test_tells_each(environment: Environment) -> None:
    lines = self_test(environment)
    assert len(lines) == len(KNOWN) > 15
    assert lines[0] == "a right call: right"
    assert "no call: wrong" in lines


def test_a_checker_that_judges_wrong_scores_nothing(tmp_path: Path) -> None:
    class Kind(Environment):
        def check(self, answers):
            return [{"valid": True, "why": ""} for _ in answers]

    with pytest.raises(MissingError, match="self test failed: a dot in the name came out as right"):
        self_test(Kind(tmp_path / "python", DATA))


@pytest.mark.parametrize("known", [known for known in KNOWN if known.row.wants_calls], ids=lambda known: known.name)
def test_every_answer_of_the_self_test_can_come_out_otherwise(known, environment: Environment) -> None:
    class Contrary(Environment):
        def check(self, answers):
            told = super().check(answers)
            for answer, said in zip(answers, told, strict=True):
                if list(answer["calls"]) == list(known.calls) and answer["subset"] == known.row.subset:
                    said["valid"] = not said["valid"]
            return told

    if known.calls and known.calls[0][1] is None:
        return  # never reaches the checker: tests of calls have it
    with pytest.raises(MissingError, match=f"self test failed: {known.name}"):
        self_test(Contrary(environment.python, DATA))


def test_another_version(environment: Environment) -> None:
    assert "has bfcl-eval 2026.3.23" in refused(replace(environment, data=DATA.model_copy(update={"version": "1.0"})))


def test_python_without_the_package(tmp_path: Path) -> None:
    import venv

    venv.create(tmp_path / "venv", symlinks=True, with_pip=False)
    said = refused(Environment(tmp_path / "venv" / "bin" / "python", DATA))
    assert said == "the environment cannot score BFCL: bfcl-eval is not installed"


@pytest.mark.parametrize(
    "changed",
    ["data/BFCL_v4_multiple.json", "data/possible_answer/BFCL_v4_multiple.json", "model_handler/utils.py"],
)
def test_a_package_that_was_changed(tmp_path: Path, changed: str) -> None:
    environment = made_environment(tmp_path / "venv")
    path = site_packages(tmp_path / "venv") / "bfcl_eval" / changed
    path.write_text(path.read_text() + "\n")
    said = refused(environment)
    assert said == f"1 files of bfcl-eval are not as they were installed: {path.name}"


def test_a_changed_checker_gives_no_verdict(tmp_path: Path) -> None:
    environment = made_environment(tmp_path / "venv")
    path = site_packages(tmp_path / "venv") / "bfcl_eval/eval_checker/ast_eval/ast_checker.py"
    path.write_text(path.read_text().replace('return {"valid": False', 'return {"valid": True'))
    with pytest.raises(MissingError, match=r"not as they were installed: ast_checker\.py"):
        environment.check([])


def test_a_package_that_nobody_wrote_down(tmp_path: Path) -> None:
    environment = made_environment(tmp_path / "venv")
    (site_packages(tmp_path / "venv") / f"bfcl_eval-{DATA.version}.dist-info" / "RECORD").unlink()
    assert "files of bfcl-eval are not as they were installed: " in refused(environment)
    assert refused(environment).endswith(", ...")


def test_data_that_are_not_there(tmp_path: Path) -> None:
    python = install(tmp_path / "venv", DATA.version, {"simple_java": 1})
    assert "status 1: FileNotFoundError" in refused(Environment(python, DATA))


@pytest.mark.parametrize(
    ("does", "said"),
    [
        ("exit 7", "status 7: it said nothing"),
        ("echo away >&2; exit 1", "status 1: away"),
        ("echo no JSON", "status 0"),
        ("echo '[]'", "status 0"),
        ("echo '{}'", "it answers, but not as asked"),
        ("kill -9 $$", "status -9"),
    ],
)
def test_an_environment_that_breaks(tmp_path: Path, does: str, said: str) -> None:
    what = refused(python_that(tmp_path, does))
    assert what.startswith(f"the environment of bfcl-eval does not answer: {said}")


def test_an_environment_that_hangs(tmp_path: Path) -> None:
    hanging = replace(python_that(tmp_path, "exec sleep 60"), timeout_s=0.3)
    assert refused(hanging).endswith("nothing in 0.3 s")


def test_what_is_no_program(tmp_path: Path) -> None:
    path = tmp_path / "python"
    path.write_text("text")
    assert "it does not run: Permission denied" in refused(Environment(path, DATA))


def test_too_few_verdicts(tmp_path: Path) -> None:
    told = f'echo \'{{"version": "{DATA.version}", "changed": [], "verdicts": []}}\''
    with pytest.raises(MissingError, match="0 verdicts on 1 answers"):
        python_that(tmp_path, told).check([{}])


def test_the_users_python_settings_do_not_reach_it(
    tmp_path: Path, environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text("raise RuntimeError('a json of the user')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    assert os.environ["PYTHONPATH"] not in sys.path
    assert environment.rows(["multiple"])
