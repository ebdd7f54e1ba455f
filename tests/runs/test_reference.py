"""Upstream's verification: ours is the cross-check, and what its programs say of themselves is not trusted."""

from __future__ import annotations

import hashlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks.base import DataFile, Dataset
from harness.engines.base import PromptTable
from harness.env import MLPERF_EVALUATOR_PYTHON, MLPERF_EVALUATOR_TOKENIZER, MLPERF_INFERENCE_DIR
from harness.errors import ConfigError
from harness.gate.clone import EVALUATORS, Clone
from harness.logs import AccuracyLog
from harness.rules import Ruled
from harness.runs.audit import Lengths, judge_lengths
from harness.runs.audit_leg import judge_audit
from harness.runs.reference import Reference, ReferenceFailed, approved_config, differences, script
from tests.runs.made_legs import PACK, leg
from tests.submission.real_clone import CLONE, needs_clone

BENCHMARK = "gpt-oss-120b"
RULES = PACK.benchmark(BENCHMARK).audit_rules

# Programs with the habits of the real ones: they write where they stand, and one of them ends with 0 whatever came out.
LENGTHS = """
import json, sys
log = json.load(open(sys.argv[sys.argv.index("-c") + 1] + "/mlperf_log_accuracy.json"))
lengths = [len(entry["data"]) // 8 for entry in log]
mean = sum(lengths) / len(lengths) + {off}
with open("verify_output_len.txt", "w") as out:
    out.write(f"TEST09: Verify Output Token Length\\nTotal samples: {{len(lengths)}}\\n")
    out.write(f"Mean output tokens: {{mean:.2f}}\\n")
    out.write(f"Min output tokens: {{min(lengths)}}\\nMax output tokens: {{max(lengths)}}\\nStd deviation: 0.00\\n")
    out.write("TEST PASS\\n" if 1150.38 <= mean <= 1406.02 else "TEST FAIL\\n")
sys.exit(3)
"""
SCORES = """
import os, re, subprocess, sys
command = sys.argv[sys.argv.index("--accuracy-script") + 1].format(accuracy_log="logs/mlperf_log_accuracy.json")
said = subprocess.run(command, shell=True, capture_output=True, text=True).stdout
score = re.search(r"'exact_match': ([0-9.]+)", said)
with open("verify_accuracy.txt", "w") as out:
    out.write(said + "\\nTEST07 Verification Summary\\n")
    out.write(f"Accuracy score: {score[1]}\\nTEST PASS\\n" if score else "Error: Could not parse\\nTEST FAIL\\n")
"""
EVALUATOR = """
import sys
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
assert open(arguments["--mlperf-log"]).read() and open(arguments["--reference-data"], "rb").read() == b"the table"
assert open(arguments["--tokenizer"] + "/tokenizer.json").read() == "words"
assert not any(argument.startswith("/") for argument in sys.argv[1:]), "a path of this machine would be filed"
print("'exact_match': 61.616")
"""


@dataclass(frozen=True)
class Made:
    """A made-up clone in a folder whose name would break a shell, and the rules that its audit.config fulfils."""

    root: Path
    reference: Reference

    def rules(self, test: str) -> Any:
        text = (self.root / approved_config(test, BENCHMARK)).read_bytes()
        digest = Ruled(value=hashlib.sha256(text).hexdigest(), source="made up")
        return RULES[test].model_copy(update={"config": RULES[test].config.model_copy(update={"sha256": digest})})


@pytest.fixture
def made(tmp_path: Path) -> Made:
    root = tmp_path / "a {clone} of 'mine'"
    for test, program in (("TEST07", SCORES), ("TEST09", LENGTHS.format(off=0))):
        write(root / script(test), program)
        write(root / approved_config(test, BENCHMARK), "*.*.mode = 2\n")
    write(root / EVALUATORS[BENCHMARK], EVALUATOR)
    write(tmp_path / "a {tokenizer}/tokenizer.json", "words")
    return Made(root, Reference(Clone(root), Path(sys.executable), tmp_path / "a {tokenizer}"))


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run's folder with an accuracy log of four answers of 1,278 tokens."""
    entries = [{"seq_id": i, "qsl_idx": i, "data": "01000000" * 1278, "token_count": 1278} for i in range(4)]
    write(tmp_path / "run/logs/mlperf_log_accuracy.json", "[\n" + ",\n".join(map(json.dumps, entries)) + "\n]\n")
    return tmp_path / "run"


def dataset(folder: Path) -> Dataset:
    path = folder / "table.parquet"
    path.write_bytes(b"the table")
    prompts = PromptTable.from_lists([[1]])
    return Dataset("d", "TEST07", prompts, ("g",), ("A",), (DataFile(path, "ab"),), stand_in=True)


def test_lengths_as_the_program_tells_them(made: Made, run: Path, tmp_path: Path) -> None:
    text = made.reference.verify(run, "TEST09", BENCHMARK, RULES["TEST09"], dataset(tmp_path))
    assert "Mean output tokens: 1278.00" in text
    assert [path.name for path in run.iterdir()] == ["logs"]


def test_a_score_by_the_evaluator_in_its_own_python(made: Made, run: Path, tmp_path: Path) -> None:
    text = made.reference.verify(run, "TEST07", BENCHMARK, RULES["TEST07"], dataset(tmp_path))
    assert "Accuracy score: 61.616" in text


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("import sys; sys.exit('no module named prm800k')", "wrote no verdict; it said: no module named prm800k"),
        ("open('verify_accuracy.txt', 'w').write('TEST PASS')", "came to no number"),
    ],
)
def test_a_program_that_comes_to_no_number_is_no_verdict(
    made: Made, run: Path, tmp_path: Path, program: str, said: str
) -> None:
    write(made.root / script("TEST07"), program)
    with pytest.raises(ReferenceFailed, match=said):
        made.reference.verify(run, "TEST07", BENCHMARK, RULES["TEST07"], dataset(tmp_path))


def test_an_evaluator_that_breaks_is_no_failed_audit(made: Made, run: Path, tmp_path: Path) -> None:
    write(made.root / EVALUATORS[BENCHMARK], "raise SystemExit('no tokenizer')")
    with pytest.raises(ReferenceFailed, match="came to no number"):
        made.reference.verify(run, "TEST07", BENCHMARK, RULES["TEST07"], dataset(tmp_path))


def test_without_the_evaluators_python_there_is_no_score(made: Made, run: Path, tmp_path: Path) -> None:
    reference = Reference(made.reference.clone, None, None)
    with pytest.raises(ReferenceFailed, match="MLPERF_EVALUATOR_PYTHON is not set"):
        reference.verify(run, "TEST07", BENCHMARK, RULES["TEST07"], dataset(tmp_path))


def test_a_clone_is_held_against_the_round_before_anything_runs(made: Made) -> None:
    made.reference.check("TEST09", BENCHMARK, made.rules("TEST09"))
    with pytest.raises(ConfigError, match="is not the round's: sha256") as caught:
        made.reference.check("TEST09", BENCHMARK, RULES["TEST09"])
    assert caught.value.expected == f"sha256 {RULES['TEST09'].config.sha256.value}"
    (made.root / script("TEST09")).unlink()
    with pytest.raises(ConfigError, match="cannot verify TEST09: it has no compliance"):
        made.reference.check("TEST09", BENCHMARK, RULES["TEST09"])


@pytest.mark.parametrize(("off", "agree"), [(0, True), (0.004, True), (0.02, False), (-700, False)])
def test_one_difference_stops_the_row_with_both_numbers(
    made: Made, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, off: float, agree: bool
) -> None:
    monkeypatch.setenv(MLPERF_INFERENCE_DIR.name, str(made.root))
    write(made.root / script("TEST09"), LENGTHS.format(off=off))
    log = AccuracyLog(run / "logs/mlperf_log_accuracy.json")
    benchmark: Any = None
    judged = judge_audit(leg("Offline", "TEST09"), run, log, None, dataset(tmp_path), benchmark)
    text = (run / "verify_output_len.txt").read_text()
    assert f"Mean output tokens: {1278 + off:.2f}" in text
    found = [finding for finding in judged.findings if finding.rule == "HN-AUDIT"]
    assert bool(found) is not agree
    if not agree:
        assert found[0].severity.value == "reject"
        assert str(round(1278 + off, 2)) in found[0].found
        assert "1278.0" in found[0].expected
    assert judged.echo.verifier.startswith("mlcommons/inference @ ")
    assert judged.echo.harness_value == 1278
    assert judged.echo.passed is (off > -100)


def test_where_the_reference_cannot_ours_is_filed_and_says_so(
    made: Made, run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(MLPERF_INFERENCE_DIR.name, str(made.root))
    write(made.root / script("TEST09"), "import sys; sys.exit('broken')")
    benchmark: Any = None
    log = AccuracyLog(run / "logs/mlperf_log_accuracy.json")
    judged = judge_audit(leg("Offline", "TEST09"), run, log, None, dataset(tmp_path), benchmark)
    assert judged.note is not None
    assert "verified by the harness alone" in judged.note
    assert "broken" in judged.note
    first = (run / "verify_output_len.txt").read_text().splitlines()[0]
    assert first == "Counted by mlperf-inference-harness, not by the reference's evaluator."
    assert "AUDIT-OURS" in {finding.rule for finding in judged.findings}


def test_the_environment_names_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in (MLPERF_INFERENCE_DIR, MLPERF_EVALUATOR_PYTHON, MLPERF_EVALUATOR_TOKENIZER):
        monkeypatch.delenv(variable.name, raising=False)
    assert Reference.from_environment() is None
    monkeypatch.setenv(MLPERF_INFERENCE_DIR.name, str(tmp_path))
    monkeypatch.setenv(MLPERF_EVALUATOR_PYTHON.name, "/a/python")
    found = Reference.from_environment()
    assert found is not None
    assert (found.clone.root, found.evaluator_python, found.tokenizer) == (tmp_path, Path("/a/python"), None)


@pytest.mark.slow
@needs_clone
@pytest.mark.parametrize("total", [7_357_831, 7_357_830, 8_992_904])
def test_the_real_program_says_the_same_at_the_bounds(tmp_path: Path, total: int) -> None:
    assert CLONE is not None
    audit = RULES["TEST09"]
    reference = Reference(Clone(CLONE), None, None)
    reference.check("TEST09", BENCHMARK, audit)
    least, more = divmod(total, 6396)
    lengths = [least + (row < more) for row in range(6396)]
    entries = [{"seq_id": i, "qsl_idx": i, "data": "01000000" * length} for i, length in enumerate(lengths)]
    write(tmp_path / "run/logs/mlperf_log_accuracy.json", "[\n" + ",\n".join(map(json.dumps, entries)) + "\n]\n")
    theirs = reference.verify(tmp_path / "run", "TEST09", BENCHMARK, audit, dataset(tmp_path))
    ours = judge_lengths(Lengths.of(lengths), audit)
    assert differences(theirs, ours, audit) == []
    assert ("TEST PASS" in theirs) is ("TEST PASS" in ours.text) is ours.echo.passed
