"""A clone of mlcommons/inference that the user names: where it is, which commit, and whether it was changed.

Programs of the clone are run, never copied, and nothing in it is written to.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from harness.env import MLPERF_INFERENCE_DIR

UNKNOWN_COMMIT = "unknown commit"
EVALUATORS = {"gpt-oss-120b": Path("language/gpt-oss-120b/eval_mlperf_accuracy.py")}
"""What scores the answers of a benchmark, of accuracy legs and of audits; paths below the clone."""

_GIT_TIMEOUT_S = 60.0


@dataclass(frozen=True, slots=True)
class Clone:
    """A clone by its folder; that it holds the program that is asked for, ``has`` tells."""

    root: Path

    @staticmethod
    def named_root() -> Path | None:
        """The folder that ``MLPERF_INFERENCE_DIR`` names, whatever is there; None where it is unset."""
        return MLPERF_INFERENCE_DIR.path()

    def has(self, program: Path) -> bool:
        """Whether a program (a path below the clone) is there and can be looked at."""
        try:
            return (self.root / program).is_file()
        except OSError:  # a folder on the way that may not be entered, a name that is too long
            return False

    def revision(self, programs: Iterable[Path]) -> str | None:
        """The clone's commit, with ``-dirty`` where one of ``programs`` (files or folders) was changed.

        None where git does not tell: no repository, no git.
        """
        head = self._git("rev-parse", "--verify", "HEAD")
        top = self._git("rev-parse", "--show-prefix")
        if head is None or top is None or top.strip():  # a folder inside some other repository has no commit of its own
            return None
        changed = self._git("status", "--porcelain", "--", *map(str, programs))
        return head.strip() + ("-dirty" if changed is None or changed.strip() else "")

    def _git(self, *arguments: str) -> str | None:
        """What git prints, None where it fails. It is told not to write, and that the owner may be another."""
        command = ["git", "--no-optional-locks", "-c", f"safe.directory={self.root}", "-C", str(self.root), *arguments]
        try:
            done = subprocess.run(
                command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                timeout=_GIT_TIMEOUT_S, check=False,
            )  # fmt: skip
        except (OSError, subprocess.TimeoutExpired):
            return None
        return done.stdout if done.returncode == 0 else None
