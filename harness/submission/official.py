"""The reference's own programs on the same files, where there is a clone: theirs is filed, ours is the cross-check.

Nothing is copied from the clone; its programs run in scratch folders, and their exit codes are not trusted (they are 0
on failure too): only what they wrote counts.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from harness.env import MLPERF_EVALUATOR_PYTHON, MLPERF_EVALUATOR_TOKENIZER, MLPERF_INFERENCE_DIR
from harness.errors import ConfigError, Refused
from harness.gate.clone import EVALUATORS, UNKNOWN_COMMIT
from harness.gate.clone import Clone as NamedClone
from harness.ledger import hashes
from harness.ledger.record import AccuracyEcho
from harness.submission.truncate import FiledAccuracy

TRUNCATE = Path("tools/submission/truncate_accuracy_log.py")

TRUNCATE_TIMEOUT_S = 600.0
EVALUATOR_TIMEOUT_S = 6 * 3600.0

# aime25    144    240    8    18.00    60.00%
_SUBSET = re.compile(r"^(\w[\w.-]*)\s+(\d+)\s+(\d+)\s+\d+\s+[\d.]+\s+[\d.]+%\s*$", re.MULTILINE)
_METRIC = re.compile(r"^'(\w+)': ([\d.]+)\s*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Clone(NamedClone):
    """A clone of mlcommons/inference, and the Python of its evaluators (None: they cannot run).

    ``tokenizer`` is the folder of theirs; None: they ask a hub.
    """

    evaluator_python: Path | None
    tokenizer: Path | None = None

    @classmethod
    def from_environment(cls) -> Clone | None:
        """The clone that the environment names; None where it names none. ConfigError: there is no clone there."""
        root = cls.named_root()
        if root is None:
            return None
        found = cls(root, MLPERF_EVALUATOR_PYTHON.path(), MLPERF_EVALUATOR_TOKENIZER.path())
        if not found.has(TRUNCATE):
            raise ConfigError(
                f"{MLPERF_INFERENCE_DIR.name} names no clone of mlcommons/inference",
                where=root,
                expected=f"a folder with {TRUNCATE}",
                mend=f"correct {MLPERF_INFERENCE_DIR.name}, or unset it",
            )
        return found

    @property
    def commit(self) -> str:
        """Which state of the reference it is, with ``-dirty`` where its programs were changed; or that nobody knows."""
        return self.revision([TRUNCATE, *EVALUATORS.values()]) or UNKNOWN_COMMIT


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What the reference evaluator printed: counts (right, all) of each subset, and its metric."""

    text: str
    counts: dict[str, tuple[int, int]]
    key: str
    value: float


class EvaluatorFailed(Exception):
    """The evaluator did not come to a score; the text says why."""


def truncate(clone: Clone, log: Path, text: bytes | None, scratch: Path, audit: str = "") -> tuple[bytes, bytes]:
    """Runs the reference truncation on copies: the bytes of the accuracy log and of accuracy.txt as it leaves them.

    ``text`` is the accuracy.txt that it finds; None of an ``audit``, which has none before. Refused where it leaves no
    hash.
    """
    scratch = scratch.absolute()  # the programs work there, so a path from here would lead them elsewhere
    accuracy = scratch / "tree/open/Scratch/results/system/benchmark/scenario" / audit / "accuracy"
    accuracy.mkdir(parents=True)
    shutil.copyfile(log, accuracy / "mlperf_log_accuracy.json")
    if text is not None:
        (accuracy / "accuracy.txt").write_bytes(text)
    arguments = ["--input", str(scratch / "tree"), "--submitter", "Scratch", "--backup", str(scratch / "backup")]
    output = _run([sys.executable, str(clone.root / TRUNCATE), *arguments], scratch, TRUNCATE_TIMEOUT_S)
    written = accuracy / "accuracy.txt"
    filed = written.read_bytes() if written.exists() else b""
    if f"hash={hashes.sha256(log)}".encode() not in filed:
        raise Refused(
            "the reference truncation left no hash of the accuracy log",
            where=log,
            expected=f"a line hash=... in accuracy.txt; it said: {_tail(output.log)}",
            mend="look at the clone; without MLPERF_INFERENCE_DIR the harness's own truncation is filed",
        )
    return (accuracy / "mlperf_log_accuracy.json").read_bytes(), filed


def cross_check(ours: FiledAccuracy, log: bytes, text: bytes, where: Path) -> None:
    """Refused where the reference's truncation differs from ours by a byte."""
    for name, mine, theirs in (("mlperf_log_accuracy.json", ours.log, log), ("accuracy.txt", ours.text, text)):
        if mine != theirs:
            raise Refused(
                f"the reference truncation and the harness's differ in {name}",
                where=where,
                expected=f"the same bytes: reference sha256 {_sha256(theirs)}, harness sha256 {_sha256(mine)}",
                mend="do not file this row; tell the harness's maintainers which clone it was",
            )


def evaluate(clone: Clone, benchmark: str, log: Path, reference: Path, scratch: Path) -> Evaluation:
    """Runs the reference evaluator on a whole accuracy log and the data set's file. EvaluatorFailed says why not."""
    if clone.evaluator_python is None:
        raise EvaluatorFailed(f"{MLPERF_EVALUATOR_PYTHON.name} is not set")
    script = EVALUATORS.get(benchmark)
    if script is None or not (clone.root / script).is_file():
        raise EvaluatorFailed(f"the clone has no evaluator for {benchmark}")
    arguments = ["--mlperf-log", str(log.absolute()), "--reference-data", str(reference.absolute())]
    if clone.tokenizer is not None:
        arguments += ["--tokenizer", str(clone.tokenizer)]
    scratch.mkdir(parents=True, exist_ok=True)
    command = [str(clone.evaluator_python), str(clone.root / script), *arguments]
    output = _run(command, scratch, EVALUATOR_TIMEOUT_S)
    try:
        return parse_evaluation(output.out)
    except EvaluatorFailed as error:
        raise EvaluatorFailed(f"{error}; it said: {_tail(output.log)}") from None


def parse_evaluation(text: str) -> Evaluation:
    """Reads the evaluator's table. EvaluatorFailed where the table or the metric line is not in it."""
    counts = {name: (int(right), int(total)) for name, right, total in _SUBSET.findall(text)}
    metrics = _METRIC.findall(text)
    if not counts or len(metrics) != 1:
        raise EvaluatorFailed(f"no score: {len(counts)} subsets, {len(metrics)} metric lines")
    key, value = metrics[0]
    return Evaluation(text, counts, key, float(value))


def disagreements(theirs: Evaluation, ours: AccuracyEcho) -> list[str]:
    """In what the two scores differ, by subset. Where ours left samples unscored, theirs may lie in that gap."""
    found = []
    for name in sorted(theirs.counts.keys() | ours.subsets.keys()):
        if name not in theirs.counts or name not in ours.subsets:
            found.append(f"{name}: only {'the harness' if name in ours.subsets else 'the reference'} has it")
            continue
        right, total = theirs.counts[name]
        subset = ours.subsets[name]
        if total != subset.samples:
            found.append(f"{name}: reference {total} samples, harness {subset.samples}")
        elif not subset.correct <= right <= subset.correct + subset.unscored:
            gap = f" to {subset.correct + subset.unscored}" if subset.unscored else ""
            found.append(f"{name}: reference {right} right, harness {subset.correct}{gap}")
    return found


@dataclass(frozen=True, slots=True)
class _Output:
    out: str
    log: str


def _run(command: list[str], cwd: Path, timeout_s: float) -> _Output:
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"  # the clone stays as it is
    try:
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, errors="replace", timeout=timeout_s, check=False,
            env=environment, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return _Output("", f"nothing in {timeout_s:g} s")
    except OSError as error:
        return _Output("", f"{command[0]} does not run: {error.strerror}")
    return _Output(done.stdout, done.stderr or done.stdout)


def _tail(log: str) -> str:
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    return lines[-1][:300] if lines else "nothing"


def _sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
