from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from harness.env import MLPERF_INFERENCE_DIR
from harness.errors import ConfigError, DatasetError, Refused
from harness.ledger.record import AccuracyEcho
from harness.rules import load
from harness.submission import accuracy, official, package
from harness.submission.official import EvaluatorFailed, disagreements, evaluate, parse_evaluation
from harness.submission.truncate import file_accuracy
from tests.submission.fake_clone import COUNTS, make_clone
from tests.submission.made_up import BENCHMARK, SUBSETS, add_run, submission
from tests.submission.real_clone import CLONE, needs_clone

PACK = load("v6.1")
REAL = Path(__file__).parents[3] / "shared" / "data" / "real_v6.0" / "closed"


@pytest.fixture
def reference(tmp_path, monkeypatch):
    """The data set's file is here."""
    path = tmp_path / "acc_eval_ref.parquet"
    path.write_bytes(b"PAR1")
    monkeypatch.setattr(accuracy, "reference_file", lambda record, pack: path)


@pytest.fixture
def pack_up(project, store, names, tmp_path, monkeypatch):
    def run(clone: Path, *, evaluator: bool = True):
        monkeypatch.setenv("MLPERF_INFERENCE_DIR", str(clone))
        if evaluator:
            monkeypatch.setenv("MLPERF_EVALUATOR_PYTHON", sys.executable)
        return package(store, project, submission(), tmp_path / "out", demonstration=False, pack=PACK, names=names)

    return run


def filed_text(report, scenario="Offline"):
    return (report.out / "open/Example/results/box" / BENCHMARK / scenario / "accuracy/accuracy.txt").read_text()


def test_the_references_output_is_what_is_filed(pack_up, tmp_path, reference):
    report = pack_up(make_clone(tmp_path / "clone"))
    text = filed_text(report)
    assert text.startswith("Loaded 1055 problems")
    assert "\n'exact_match': 61.500\n" in text
    assert text.splitlines()[-1].startswith("hash=")
    assert any("scored by the reference evaluator" in note for note in report.notes)
    assert any("truncated by the reference" in note for note in report.notes)
    assert report.rows[0].accuracy == "exact_match 61.500, by the reference evaluator"


def test_a_relative_output_folder_is_no_matter(project, store, names, tmp_path, monkeypatch, reference):
    monkeypatch.setenv("MLPERF_INFERENCE_DIR", str(make_clone(tmp_path / "clone")))
    monkeypatch.setenv("MLPERF_EVALUATOR_PYTHON", sys.executable)
    monkeypatch.chdir(tmp_path)
    report = package(store, project, submission(), Path("build/out"), demonstration=False, pack=PACK, names=names)
    assert filed_text(report).splitlines()[-1].startswith("hash=")


def test_without_the_evaluators_python_ours_is_filed_and_it_is_said(pack_up, tmp_path):
    report = pack_up(make_clone(tmp_path / "clone"), evaluator=False)
    assert filed_text(report).startswith("Scored by the harness")
    assert any("MLPERF_EVALUATOR_PYTHON is not set" in note for note in report.notes)


def test_an_evaluator_that_fails_and_exits_0_is_not_trusted(pack_up, tmp_path, reference):
    report = pack_up(make_clone(tmp_path / "clone", broken=True))
    assert filed_text(report).startswith("Scored by the harness")
    assert any("LiveCodeBench benchmark failed to load" in note for note in report.notes)


def test_scores_that_differ_stop_the_row(pack_up, tmp_path, reference):
    counts = [("aime25", 145, 240, 8), *COUNTS[1:]]
    with pytest.raises(Refused, match="aime25: reference 145 right, harness 144"):
        pack_up(make_clone(tmp_path / "clone", counts=counts))
    assert not (tmp_path / "out").exists()


def test_bytes_that_differ_stop_the_row(pack_up, tmp_path):
    with pytest.raises(Refused, match=r"differ in mlperf_log_accuracy.json") as caught:
        pack_up(make_clone(tmp_path / "clone", kept=4000), evaluator=False)
    assert caught.value.expected.count("sha256") == 2


def test_a_truncation_without_a_hash_stops_the_row(pack_up, tmp_path):
    with pytest.raises(Refused, match="left no hash"):
        pack_up(make_clone(tmp_path / "clone", hashes=False), evaluator=False)


def test_a_data_set_that_is_not_here_is_said(pack_up, tmp_path, monkeypatch):
    class Absent:
        def table(self, which, scenario):
            return which

        def dataset(self, data_dir, table):
            raise DatasetError("there is no such file")

    monkeypatch.setattr("harness.benchmarks.get", lambda name, pack: Absent())
    report = pack_up(make_clone(tmp_path / "clone"))
    assert any("the data set is not here: there is no such file" in note for note in report.notes)


def test_a_variable_that_names_no_clone(pack_up, tmp_path):
    with pytest.raises(ConfigError, match="MLPERF_INFERENCE_DIR"):
        pack_up(tmp_path)


def test_the_evaluators_table_is_read():
    lines = ["MLPerf Accuracy Evaluation Results", "Overall raw accuracy: 83.09% (3652/4395)"]
    for name, right, total, repeats in COUNTS:
        lines.append(
            f"{name:25s} {right:8d} {total:8d} {repeats:8d} {right / repeats:10.2f} {100 * right / total:9.2f}%"
        )
    lines += ["Score:   = 200/8 + 747/5 + 2705/3", "FINAL SCORE: 83.87% (1076.07/1283.00)", "'exact_match': 83.871"]
    evaluation = parse_evaluation("\n".join(lines) + "\n")
    assert evaluation.counts == {name: (right, total) for name, right, total, _ in COUNTS}
    assert (evaluation.key, evaluation.value) == ("exact_match", 83.871)


@pytest.mark.shared
@pytest.mark.skipif(not REAL.exists(), reason="the shared data folder is not beside the repository")
def test_published_tables_are_read():
    texts = sorted(REAL.glob("*/results/*/gpt-oss-120b/*/accuracy/accuracy.txt"))
    assert texts
    for path in texts:
        evaluation = parse_evaluation(path.read_text())
        assert {name: total for name, (_, total) in evaluation.counts.items()} == {
            name: subset.samples for name, subset in SUBSETS.items()
        }
        repeats = {name: repeats for name, _, _, repeats in COUNTS}
        score = sum(right / repeats[name] for name, (right, _) in evaluation.counts.items())
        best = sum(total / repeats[name] for name, (_, total) in evaluation.counts.items())
        assert evaluation.value == pytest.approx(100 * score / best, abs=5e-4)


@pytest.mark.parametrize("text", ["", "'exact_match': 83.1\n", "aime25  1  2  3  4.0  5.0%\n"])
def test_half_a_table_is_no_score(text):
    with pytest.raises(EvaluatorFailed, match="no score"):
        parse_evaluation(text)


def evaluation_of(**changed):
    counts = {name: (right, total) for name, right, total, _ in COUNTS} | changed
    return official.Evaluation("", counts, "exact_match", 0.0)


def test_disagreements():
    ours = AccuracyEcho(key="exact_match", value=None, subsets=SUBSETS, evaluator="the harness")
    assert disagreements(evaluation_of(), ours) == []  # 2700 right lie in the 3165 that the harness left unscored
    assert disagreements(evaluation_of(aime25=(143, 240)), ours) == ["aime25: reference 143 right, harness 144"]
    assert disagreements(evaluation_of(aime25=(144, 239)), ours) == ["aime25: reference 239 samples, harness 240"]
    assert disagreements(evaluation_of(mmlu=(1, 2)), ours) == ["mmlu: only the reference has it"]
    half = {"aime25": SUBSETS["aime25"].model_copy(update={"wrong": 90, "unscored": 6})}
    ours = ours.model_copy(update={"subsets": {**SUBSETS, **half}})
    assert disagreements(evaluation_of(aime25=(151, 240)), ours) == ["aime25: reference 151 right, harness 144 to 150"]


def test_a_program_that_does_not_run_is_told(tmp_path):
    clone = official.Clone(make_clone(tmp_path / "clone"), tmp_path / "no-python")
    log = tmp_path / "log.json"
    log.write_text("[]")
    with pytest.raises(EvaluatorFailed, match="does not run"):
        evaluate(clone, BENCHMARK, log, log, tmp_path / "scratch")
    with pytest.raises(EvaluatorFailed, match="no evaluator for resnet"):
        evaluate(clone, "resnet", log, log, tmp_path / "scratch")


@needs_clone
@pytest.mark.parametrize("size", [4, 4095, 4096, 5000, 8192, 10_239, 10_240, 60_000])
def test_the_reference_truncates_to_the_same_bytes(tmp_path, size):
    log = tmp_path / "mlperf_log_accuracy.json"
    log.write_bytes((b'{ "seq_id" : 0, "qsl_idx" : 1, "data" : "00", "token_count" : 1 },\n' * 2000)[:size])
    text = b"score\n"
    theirs = official.truncate(official.Clone(CLONE, None), log, text, tmp_path / "scratch")
    official.cross_check(file_accuracy(log, text, PACK), *theirs, where=log)


@needs_clone
def test_a_tree_is_what_the_official_checker_accepts(project, store, names, tmp_path, monkeypatch):
    monkeypatch.setenv(MLPERF_INFERENCE_DIR.name, str(CLONE))
    report = package(store, project, submission(), tmp_path / "out", demonstration=False, pack=PACK, names=names)
    assert any(
        re.search(r"truncated by the reference at [0-9a-f]{40}, the harness's bytes agree", note)
        for note in report.notes
    )
    checker = CLONE / "tools/submission/submission_checker/main.py"
    arguments = ["--input", str(report.out), "--version", PACK.round, "--submitter", "Example", "--csv", "summary.csv"]
    done = subprocess.run(
        [sys.executable, str(checker), *arguments],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "SUMMARY: submission looks OK" in done.stderr, done.stderr[-3000:]
    assert len((tmp_path / "summary.csv").read_text().splitlines()) == 1 + 2


@needs_clone
def test_a_demonstration_is_accepted_too(project, store, names, tmp_path, loadgen_runs):
    add_run(store, loadgen_runs, "Server", "performance", not_submittable=["stand-in checkpoint"])
    report = package(store, project, submission(None), tmp_path / "out", demonstration=True, pack=PACK, names=names)
    checker = CLONE / "tools/submission/submission_checker/main.py"
    arguments = ["--input", str(report.out), "--version", PACK.round, "--csv", "summary.csv"]
    done = subprocess.run(
        [sys.executable, str(checker), *arguments],
        cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "SUMMARY: submission looks OK" in done.stderr, done.stderr[-3000:]
    assert "stand-in checkpoint" in (tmp_path / "summary.csv").read_text()
    assert json.loads((report.out / "open/Demonstration/systems/box.json").read_text())["submitter"] == "Demonstration"
