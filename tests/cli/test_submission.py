from __future__ import annotations

import pytest

from harness.cli import submission as verb
from harness.cli import system as system_verb
from harness.cli.main import main
from harness.ledger.store import ResultsStore
from tests.gate.full_length import MEAN
from tests.logs.loadgen_runs import loadgen_runs
from tests.submission.made_up import BENCHMARK, SCENARIOS, add_run, make_project

__all__ = ["loadgen_runs"]


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.delenv("MLPERF_INFERENCE_DIR", raising=False)
    project = make_project(tmp_path)
    monkeypatch.chdir(project.root)
    return project


@pytest.fixture
def runs(project, loadgen_runs):
    store = ResultsStore(project.root / "results")
    for scenario in SCENARIOS:
        for leg in ("performance", "accuracy"):
            add_run(store, loadgen_runs, scenario, leg)
    return store


def one_line(text: str) -> str:
    return " ".join(text.split())


def test_the_tree_is_laid_out_and_the_next_command_named(project, runs, capsys):
    assert verb.run([]) == 0
    out = one_line(capsys.readouterr().out)
    assert "next: make check_submission INPUT=build/submission" in out
    assert f"{MEAN * 12792 / 601:,.2f} Tokens/s" in out
    assert (project.root / "build/submission/open/Example/MANIFEST.json").is_file()


def test_filters_take_comma_lists(project, runs):
    assert verb.run(["--out", "one", "--scenarios=Offline", "--systems=box", f"--benchmarks={BENCHMARK}"]) == 0
    results = project.root / "one/open/Example/results/box" / BENCHMARK
    assert [path.name for path in results.iterdir()] == ["Offline"]


@pytest.mark.parametrize(
    ("argument", "nearest"),
    [("--scenarios=Ofline", "Offline"), ("--systems=bxo", "box"), ("--benchmarks=gpt-oss", BENCHMARK)],
)
def test_an_unknown_name_offers_the_nearest(project, runs, capsys, argument, nearest):
    assert main(["submission", argument]) == 2
    assert f"did you mean {nearest!r}?" in one_line(capsys.readouterr().err)


def test_without_runs_the_commands_that_make_them_are_named(project, capsys):
    assert main(["submission"]) == 3
    err = capsys.readouterr().err
    assert "2 things stand in the way" in err
    assert 'make run_harness RUN_ARGS="--systems=box' in err


def test_a_run_that_may_not_be_filed_exits_1_and_a_demonstration_shows_it(project, runs, loadgen_runs, capsys):
    add_run(runs, loadgen_runs, "Server", "performance", not_submittable=["stand-in checkpoint"])
    assert main(["submission"]) == 1
    assert "--demonstration" in capsys.readouterr().err
    assert main(["submission", "--demonstration"]) == 0
    out = one_line(capsys.readouterr().out)
    assert "never a submission" in out
    assert "stand-in" in out


def test_findings_are_shown(project, runs, loadgen_runs, capsys):
    add_run(runs, loadgen_runs, "Server", "performance", text="10.1.2.3\n" * 15)
    assert verb.run(["--results_dir", "results"]) == 0
    out = one_line(capsys.readouterr().out)
    assert "address 10.*** (8 characters)" in out
    assert "more: MANIFEST.json, under findings" in out
    assert verb.run([]) == 0
    assert "the tree that was there is now build/submission.previous-1" in one_line(capsys.readouterr().out)


def test_system_shows_facts_sources_and_what_is_lacking(project, capsys):
    assert system_verb.run(["--system", "box"]) == 0
    out = one_line(capsys.readouterr().out)
    assert "lscpu" in out
    assert "systems/box/system.yaml" in out.replace("│", "").replace(" ", "")
    assert "lacking: framework: not read (no engine has named its software); run a leg on the machine" in out


def test_system_takes_the_engines_word_from_the_newest_run(project, runs, capsys):
    assert system_verb.run(["--system=box"]) == 0
    out = one_line(capsys.readouterr().out)
    assert "torch 2.13.0" in out
    assert "lacking: framework" not in out
