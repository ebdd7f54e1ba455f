from __future__ import annotations

import json
import shutil

import pytest

from harness.cli.check_submission import run
from harness.errors import ConfigError, UnknownName
from tests.gate.conftest import whole_trees
from tests.gate.made_tree import write
from tests.logs.loadgen_runs import loadgen_runs

__all__ = ["loadgen_runs", "whole_trees"]


@pytest.fixture
def root(whole_trees, tmp_path, monkeypatch):
    monkeypatch.delenv("MLPERF_INFERENCE_DIR", raising=False)
    return shutil.copytree(whole_trees["open"], tmp_path / "tree")


def readme(root):
    return root / "open" / "Acme" / "results" / "Box" / "gpt-oss-120b" / "Server" / "README.md"


def test_a_clean_tree(root, capsys):
    assert run(["--input", str(root)]) == 0
    out = capsys.readouterr().out
    assert "open/Acme/Box" in out
    assert "gate v6.1: pass (0 reject, 0 review" in out
    assert "official checker: not run" in out


def test_a_tree_that_is_rejected(root, capsys):
    readme(root).unlink()
    assert run(["--input", str(root), "--submitter", "Acme"]) == 1
    out = capsys.readouterr().out
    assert out.index("gate v6.1: reject") < out.index("TREE-FILE")
    assert "Server/README.md: no such file" in out
    assert "mend:" in out


def test_many_places_of_one_rule_are_counted(root, capsys):
    for i in range(25):
        write(root / "open" / "Acme" / "src" / f"{i}.py", "x")
    assert run(["--input", str(root)]) == 0  # reviews alone
    assert "and 5 more" in capsys.readouterr().out


def test_markup_in_names_is_text(root, capsys):
    write(root / "open" / "Acme" / "src" / "[red]x[/bold].py", "x")
    assert run(["--input", str(root)]) == 0
    assert "[red]x[/bold].py" in capsys.readouterr().out


def test_json_has_it_all(root, tmp_path):
    readme(root).unlink()
    assert run(["--input", str(root), "--json", str(tmp_path / "out" / "report.json")]) == 1
    report = json.loads((tmp_path / "out" / "report.json").read_text())
    assert (report["verdict"], report["round"], report["official"]["verdict"]) == ("reject", "v6.1", "not run")
    assert [row["verdict"] for row in report["rows"]] == ["pass", "reject"]
    assert report["rows"][0]["metric"]["units"] == "Tokens/s"
    first = next(f for f in report["findings"] if f["rule"] == "TREE-FILE")
    assert set(first) == {"rule", "severity", "path", "found", "expected", "mend", "source"}


def test_github_s_workflow_commands(root, capsys):
    write(readme(root), "a stand-in data set\n")
    assert run(["--input", str(root), "--format", "github"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert all(line.startswith(("::error ", "::warning ", "::notice ")) for line in lines)
    assert any(f"file={readme(root)},title=MARK-STAND-IN::it says" in line for line in lines)
    assert any(",line=" in line for line in lines)


@pytest.mark.parametrize("option", ["--json", "--report-dir"])
def test_nothing_is_written_into_the_tree(root, option):
    with pytest.raises(ConfigError, match="inside the tree"):
        run(["--input", str(root), option, str(root / "open" / "x")])
    assert not (root / "open" / "x").exists()


def test_unusable_input(root, tmp_path):
    with pytest.raises(ConfigError, match="nothing to check"):
        run(["--input", str(tmp_path / "absent")])
    with pytest.raises(UnknownName, match="Acne"):
        run(["--input", str(root), "--submitter", "Acne"])
    with pytest.raises(UnknownName, match="round"):
        run(["--input", str(root), "--round", "v9"])


def test_the_official_checker_has_a_say(root, tmp_path, monkeypatch, capsys):
    crash = "raise SystemExit('crashed here')\n"
    write(tmp_path / "clone" / "tools" / "submission" / "submission_checker" / "main.py", crash)
    monkeypatch.setenv("MLPERF_INFERENCE_DIR", str(tmp_path / "clone"))
    assert run(["--input", str(root), "--report-dir", str(tmp_path / "kept")]) == 1
    out = capsys.readouterr().out
    assert "refuses" in out
    assert "OFFICIAL-CHECKER" in out
    assert "crashed here" in (tmp_path / "kept" / "official_checker_log.txt").read_text()
