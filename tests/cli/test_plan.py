"""The verb ``plan``: tables, JSON, exit codes, and what it says to bad input."""

from __future__ import annotations

import json
import time

import pytest

from harness.cli import main
from harness.ledger.sizes import Known
from harness.runs.known_rates import Rates
from tests.harness_process import ROOT

GB300 = ["--systems=GB300-NVL4_GB300-288GB_aarch64x4_TRT", "--benchmarks=gpt-oss-120b"]


@pytest.fixture(autouse=True)
def here(monkeypatch, tmp_path):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "200")


def planned(capsys, tmp_path, *options):
    code = main.main(["plan", f"--results_dir={tmp_path / 'results'}", *options])
    shown = capsys.readouterr()
    return code, shown.out, shown.err


def test_a_matrix_is_a_table_with_early_stopping_and_sums(capsys, tmp_path):
    code, out, _ = planned(capsys, tmp_path, *GB300)
    assert code == 0
    assert "p99 by early stopping: of 31,980 queries 278 may be over the limit (0.869%) (Server performance)" in out
    assert "2 starts of engines come on top" in out
    assert "memory:" not in out
    assert not (tmp_path / "results").exists()


def test_the_documents_example_is_what_is_printed(capsys, tmp_path):
    page = (ROOT / "docs" / "planning.md").read_text()
    example = page.partition("```text\n")[2].partition("```")[0].splitlines()
    out = planned(capsys, tmp_path, *GB300)[1]
    printed = [line.strip() for line in out.replace(str(tmp_path / "results"), "results").splitlines()]
    assert len(example) > 10
    for line in example[:-1]:
        if "─" not in line:
            assert line.split() in [shown.split() for shown in printed], line
    assert printed[-1].startswith(example[-1].strip())


def test_no_number_is_cut_on_a_narrow_terminal(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    out = planned(capsys, tmp_path)[1]
    assert "SingleStream performance" in out
    assert "\N{HORIZONTAL ELLIPSIS}" not in out


def test_a_guess_is_called_one(capsys, tmp_path):
    chosen = ["--systems=B200-SXM-180GBx8_TRT", "--benchmarks=qwen3.6-27b", "--scenarios=Offline"]
    assert "answers: expected: unmeasured, first guess" in planned(capsys, tmp_path, *chosen)[1]


def test_a_benchmark_without_audits_is_planned_without_them(capsys, tmp_path):
    chosen = ["--systems=B200-SXM-180GBx8_TRT", "--benchmarks=gpt-oss-120b,qwen3.6-27b", "--scenarios=Offline"]
    code, out, _ = planned(capsys, tmp_path, *chosen, "--json")
    legs = [(leg["benchmark"], leg["leg"]) for leg in json.loads(out)["legs"]]
    assert code == 0
    assert [leg for benchmark, leg in legs if benchmark == "qwen3.6-27b"] == ["performance", "accuracy"]
    assert ("gpt-oss-120b", "TEST07") in legs
    code, _, err = planned(capsys, tmp_path, *chosen, "--legs=TEST07")
    assert code == 2
    assert "has no audit TEST07 of qwen3.6-27b" in err


def test_engines_are_told_where_they_are_asked_for(capsys, tmp_path):
    assert "requests of 35840 tokens that fit at once" in planned(capsys, tmp_path, *GB300, "--engines")[1]


def test_json_is_the_same_as_data(capsys, tmp_path):
    code, out, _ = planned(capsys, tmp_path, *GB300, "--legs=performance", "--json")
    data = json.loads(out)
    assert code == 0
    assert [leg["scenario"] for leg in data["legs"]] == ["Offline", "Server"]
    assert data["legs"][1]["stopping"]["allowed_over"] == 278
    assert data["can_be_valid"] is True


def test_a_leg_that_cannot_be_valid_is_code_1(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("harness.runs.sizing.free_bytes", lambda root: 0)
    code, out, _ = planned(capsys, tmp_path, *GB300)
    assert code == 1
    assert "cannot be VALID" in out


def test_run_harness_says_so_before_anything_starts(capsys, tmp_path, monkeypatch):
    monkeypatch.setattr("harness.cli.run_harness.run_legs", lambda legs, **options: [])
    monkeypatch.setattr(Rates, "measured", lambda *asked: Known(1000.0, "a faster run"))
    options = [*GB300, "--scenarios=Offline", f"--results_dir={tmp_path / 'results'}"]
    assert main.main(["run_harness", *options]) == 0
    said = " ".join(capsys.readouterr().err.split())
    assert "Offline/performance: cannot be VALID: target_qps 53 is too low" in said
    assert planned(capsys, tmp_path, *options[:3])[0] == 1


@pytest.mark.parametrize(
    ("options", "code", "said"),
    [
        (["--systems=GB301"], 2, "GB301"),
        (["--benchmarks=gpt-oss-121b", GB300[0]], 2, "gpt-oss-121b"),
        ([*GB300, "--scenarios=Serve"], 2, "Serve"),
        ([*GB300, "--legs=perf"], 2, "perf"),
        ([*GB300, "--test_mode=Performance"], 2, "Performance"),
        ([*GB300, "--variant=none"], 2, "none"),
        ([*GB300, "--round=v9.9"], 2, "v9.9"),
    ],
)
def test_names_that_there_are_not(capsys, tmp_path, options, code, said):
    got, _, err = planned(capsys, tmp_path, *options)
    assert got == code
    assert said in err


def test_a_results_folder_that_is_a_file_has_no_runs(capsys, tmp_path):
    (tmp_path / "results").write_text("no folder")
    assert planned(capsys, tmp_path, *GB300)[0] == 0


def test_all_systems_take_little_time(capsys, tmp_path):
    before = time.process_time()
    assert planned(capsys, tmp_path)[0] == 0
    assert time.process_time() - before < 5  # under 1.5 on an idle core; other tests may keep this one busy
