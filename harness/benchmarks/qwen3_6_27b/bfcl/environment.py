"""The environment of bfcl-eval: a Python of its own that is asked in JSON and answers in JSON, a process a question.

bfcl-eval names 150 packages, of other versions than the harness's; installed alone it needs none of them for what it
is asked here. Nothing of it is ever imported by the harness.
"""

from __future__ import annotations

import json
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.env import BFCL_PYTHON, bfcl_python
from harness.errors import MissingError
from harness.rules.benchmark import BfclData

DRIVER: Final = Path(__file__).parent / "inside" / "driver.py"
TIMEOUT_S: Final = 300.0
MEND: Final = f"make bfcl, or name the Python of such an environment in {BFCL_PYTHON.name}"
NAMED: Final = 5
"""Files that an error names before it only counts."""


@dataclass(frozen=True, slots=True)
class Environment:
    """``python`` is an environment's Python, ``data`` which package, of which version, has to be in it."""

    python: Path
    data: BfclData
    timeout_s: float = TIMEOUT_S

    @classmethod
    def named(cls, data: BfclData) -> Environment:
        """The one that the process's environment names, or that ``make bfcl`` makes. MissingError where it is not."""
        python = bfcl_python()
        if not python.is_file():
            raise MissingError(
                "the environment of bfcl-eval is not there: BFCL can be neither asked nor scored",
                where=python,
                expected=f"a Python that has {data.package} {data.version}",
                mend=MEND,
            )
        return cls(python, data)

    def rows(self, subsets: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
        """All rows of these subsets, as the driver tells them. MissingError."""
        found: dict[str, list[dict[str, Any]]] = self._ask({"do": "rows", "subsets": list(subsets)}, "rows")
        return found

    def check(self, answers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """A verdict on each answer, as the driver takes and gives them. MissingError where there are not as many."""
        found: list[dict[str, Any]] = self._ask({"do": "check", "answers": list(answers)}, "verdicts")
        if len(found) != len(answers):
            raise MissingError(
                f"bfcl-eval came to {len(found)} verdicts on {len(answers)} answers", where=self.python, mend=MEND
            )
        return found

    def _ask(self, request: Mapping[str, Any], wanted: str) -> Any:  # noqa: ANN401 - what the driver has under that key
        reply = self._reply(self._run(json.dumps(request).encode()))
        if "problem" in reply:
            raise MissingError(f"the environment cannot score BFCL: {reply['problem']}", where=self.python, mend=MEND)
        if not reply.keys() >= {"version", "changed", wanted}:
            raise self._broke("it answers, but not as asked")
        if reply["version"] != self.data.version:
            raise MissingError(
                f"the environment has {self.data.package} {reply['version']}",
                where=self.python,
                expected=self.data.version,
                mend=MEND,
            )
        if changed := reply["changed"]:
            named = ", ".join(changed[:NAMED]) + (", ..." if len(changed) > NAMED else "")
            raise MissingError(
                f"{len(changed)} files of {self.data.package} are not as they were installed: {named}",
                where=self.python,
                expected="the package as it was published",
                mend="remove that environment, then make bfcl",
            )
        return reply[wanted]

    def _run(self, request: bytes) -> subprocess.CompletedProcess[bytes]:
        with tempfile.TemporaryDirectory(prefix="bfcl-") as scratch:
            try:
                return subprocess.run(
                    [str(self.python), "-I", "-B", "-X", "utf8", str(DRIVER)],
                    input=request,
                    capture_output=True,
                    cwd=scratch,
                    env={"BFCL_PROJECT_ROOT": scratch, "LANG": "C.UTF-8"},
                    timeout=self.timeout_s,
                    check=False,
                )
            except subprocess.TimeoutExpired:
                raise self._broke(f"nothing in {self.timeout_s:g} s") from None
            except OSError as error:
                raise self._broke(f"it does not run: {error.strerror}") from None

    def _reply(self, done: subprocess.CompletedProcess[bytes]) -> dict[str, Any]:
        try:
            reply = json.loads(done.stdout)
        except ValueError:
            reply = None
        if done.returncode or not isinstance(reply, dict):
            lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
            raise self._broke(f"status {done.returncode}: {lines[-1][:300] if lines else 'it said nothing'}")
        return reply

    def _broke(self, how: str) -> MissingError:
        return MissingError(
            f"the environment of bfcl-eval does not answer: {how}",
            where=self.python,
            expected="a JSON object",
            mend=MEND,
        )
