"""Upstream's run_verification.py on an audit's own logs, where there is a clone: its text is filed, ours is the check.

Nothing is copied from the clone. Its programs run in a scratch folder, because they write where they stand, and their
exit codes are not trusted (one of them is 0 whatever came out): only the text that they leave counts.
"""

from __future__ import annotations

import hashlib
import os
import shlex
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from harness.benchmarks.base import Dataset
from harness.clients.loadgen.audit_conf import NAME as AUDIT_CONFIG
from harness.env import MLPERF_EVALUATOR_PYTHON, MLPERF_EVALUATOR_TOKENIZER, MLPERF_INFERENCE_DIR
from harness.errors import ConfigError
from harness.gate.audit_verdict import MEAN, numbers
from harness.gate.clone import EVALUATORS, UNKNOWN_COMMIT, Clone
from harness.ledger.store import LOGS
from harness.rules.audits import AuditRules
from harness.runs.audit import AuditVerdict

SCORE = "Accuracy score"

_TIMEOUT_S = 3600.0
_TOKENIZER = "tokenizer"
_SCORE_DIGITS = 5e-4  # it is printed with three digits after the point
_LENGTH_DIGITS = 0.0051  # and lengths with two
_LENGTH_LABELS = ("Total samples", MEAN, "Min output tokens", "Max output tokens", "Std deviation")


class ReferenceFailed(Exception):
    """The reference came to no number; the text says why. That is no verdict on the audit."""


@dataclass(frozen=True, slots=True)
class Reference:
    """The clone that the environment names, and the Python in which its accuracy evaluator runs (None: it cannot)."""

    clone: Clone
    evaluator_python: Path | None
    tokenizer: Path | None

    @classmethod
    def from_environment(cls) -> Reference | None:
        """None where the environment names no clone."""
        root = Clone.named_root()
        if root is None:
            return None
        return cls(Clone(root), MLPERF_EVALUATOR_PYTHON.path(), MLPERF_EVALUATOR_TOKENIZER.path())

    def check(self, test: str, benchmark: str, audit: AuditRules) -> None:
        """ConfigError, before anything is run, where the clone cannot verify this audit by the round's thresholds."""
        for name in (script(test), approved_config(test, benchmark)):
            if not self.clone.has(name):
                raise ConfigError(
                    f"the clone cannot verify {test}: it has no {name}",
                    where=self.clone.root,
                    mend=f"correct {MLPERF_INFERENCE_DIR.name}, or unset it",
                )
        config = self.clone.root / approved_config(test, benchmark)
        found, wanted = hashlib.sha256(config.read_bytes()).hexdigest(), audit.config.sha256.value
        if found != wanted:
            raise ConfigError(
                f"the clone's {AUDIT_CONFIG} of {test} is not the round's: sha256 {found}",
                where=config,
                expected=f"sha256 {wanted}",
                mend=f"check out the round's commit in the clone, or unset {MLPERF_INFERENCE_DIR.name}",
            )

    def verifier(self, test: str, benchmark: str) -> str:
        """Who verified, with the clone's commit."""
        programs = [script(test), approved_config(test, benchmark), *EVALUATORS.values()]
        return f"mlcommons/inference @ {self.clone.revision(programs) or UNKNOWN_COMMIT}"

    def verify(self, folder: Path, test: str, benchmark: str, audit: AuditRules, dataset: Dataset) -> str:
        """The text of the verdict file as the reference writes it, from the logs of the run in ``folder``.

        ReferenceFailed where it comes to no number, which says nothing about the run.
        """
        arguments = ["-c", LOGS, "-o", "out", "--audit-config", str(self.clone.root / approved_config(test, benchmark))]
        with tempfile.TemporaryDirectory(dir=folder, prefix="verification-") as scratch:
            (Path(scratch) / LOGS).symlink_to((folder / LOGS).absolute(), target_is_directory=True)
            if audit.score is not None:
                arguments += ["--accuracy-script", self._evaluator(benchmark, dataset, Path(scratch))]
            command = [sys.executable, str(self.clone.root / script(test)), *arguments]
            said = _run(command, Path(scratch))
            try:
                text = (Path(scratch) / audit.verdict_file.value).read_text(encoding="utf-8", errors="replace")
            except OSError:
                raise ReferenceFailed(f"run_verification.py of {test} wrote no verdict; it said: {said}") from None
        if not numbers(text, SCORE if audit.score is not None else MEAN):
            raise ReferenceFailed(f"run_verification.py of {test} came to no number; it said: {said}")
        return text

    def _evaluator(self, benchmark: str, dataset: Dataset, scratch: Path) -> str:
        """The evaluator's command as run_verification.py wants it: for a shell, braces doubled but for the log's."""
        if self.evaluator_python is None:
            raise ReferenceFailed(f"{MLPERF_EVALUATOR_PYTHON.name} is not set")
        tables = [file.path for file in dataset.files if file.path.suffix == ".parquet"]
        if benchmark not in EVALUATORS or not tables:
            raise ReferenceFailed("there is no evaluator, or no table that it reads")
        # By short names: the evaluator writes them into its text, and the paths of this machine are nobody's business.
        table = scratch / tables[0].name
        table.symlink_to(tables[0].absolute())
        words = [
            str(self.evaluator_python),
            str(self.clone.root / EVALUATORS[benchmark]),
            "--reference-data",
            table.name,
        ]
        if self.tokenizer is not None:
            (scratch / _TOKENIZER).symlink_to(self.tokenizer.absolute(), target_is_directory=True)
            words += ["--tokenizer", _TOKENIZER]
        return shlex.join(words).replace("{", "{{").replace("}", "}}") + " --mlperf-log {accuracy_log}"


def script(test: str) -> Path:
    """The program that verifies an audit, below the clone."""
    return Path("compliance", test, "run_verification.py")


def approved_config(test: str, benchmark: str) -> Path:
    """The approved audit.config, below the clone; the programs read their thresholds from it."""
    return Path("compliance", test, benchmark, AUDIT_CONFIG)


def differences(theirs: str, ours: AuditVerdict, audit: AuditRules) -> list[tuple[str, str]]:
    """Where the reference's text and ours tell other numbers: theirs and ours of each, as far as they are printed."""
    labels, slack = ((SCORE,), _SCORE_DIGITS) if audit.score is not None else (_LENGTH_LABELS, _LENGTH_DIGITS)
    found = []
    for label in labels:
        their, our = _last(theirs, label), _last(ours.text, label)
        if their is None or our is None or abs(their - our) > slack:
            found.append((f"{label} {their}", f"{label} {our}"))
    return found


def _last(text: str, label: str) -> float | None:
    said = numbers(text, label)
    return said[-1] if said else None


def _run(command: list[str], cwd: Path) -> str:
    """Runs one program and returns the last line it said."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment |= {"PYTHONUTF8": "1", "PYTHONDONTWRITEBYTECODE": "1"}  # the clone stays as it is
    try:
        done = subprocess.run(
            command, cwd=cwd, capture_output=True, text=True, errors="replace", timeout=_TIMEOUT_S, check=False,
            env=environment, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"nothing in {_TIMEOUT_S:g} s"
    except OSError as error:
        return f"{command[0]} does not run: {error.strerror}"
    lines = [line.strip() for line in (done.stderr or done.stdout).splitlines() if line.strip()]
    return lines[-1][:300] if lines else "nothing"
