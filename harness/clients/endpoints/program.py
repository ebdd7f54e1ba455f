"""The client's program: where it is, which one it is, and whether it takes what it will be told."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.clients.endpoints import probe
from harness.clients.endpoints.probe import DISTRIBUTION
from harness.env import ENDPOINTS_BIN
from harness.errors import ConfigError, MissingError
from harness.rules.benchmark import ClientExtra
from harness.rules.layouts import EndpointsLayout

_PATIENCE_S: Final = 180.0
"""For a short answer of the program: it imports much, and a cold disk or a busy machine makes that slow."""
_NEEDED_KEY: Final = "early_stopping"
_UNKNOWN_KEY: Final = re.compile(rf"\b{_NEEDED_KEY}\s+Extra inputs are not permitted")
_LAST_LINES: Final = 8
_SHEBANG_BYTES: Final = 4096
_NOT_INHERITED: Final = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONSAFEPATH", "BFCL_V4_DATASET_URI")
"""Variables of the Python that runs the harness, which the client's must not see; and one by which it would ask other
questions than those of the package that is looked at."""
_BFCL_FOLDER: Final = "BFCL_PROJECT_ROOT"
"""Where bfcl-eval makes folders as soon as it is imported; beside its own files, if nobody says."""


@dataclass(frozen=True, slots=True)
class ClientProgram:
    """The program at ``path``. ``commit`` is None where neither pip nor a clone tells it; ``sha256`` is over its
    source, which tells clients of one version apart.
    """

    path: Path
    python: str
    version: str
    commit: str | None
    sha256: str

    @property
    def versions(self) -> dict[str, str]:
        """As a run's record keeps them."""
        told = {"endpoints": self.version, "endpoints_python": self.python, "endpoints_source": self.sha256}
        return told if self.commit is None else {**told, "endpoints_commit": self.commit}

    def check_extra(self, extra: ClientExtra, layout: EndpointsLayout) -> str:
        """Looks whether the client can score what it will ask; a line for people.

        MissingError where it cannot: it would tell so after hours, when all is measured.
        """
        mend = f"{_pip(self.path)} install -e './endpoints[{extra.name}]', of the clone that the client is from"
        with tempfile.TemporaryDirectory(prefix="probe-") as scratch:
            asked = [*_interpreter(self.path), "-I", probe.__file__, extra.package, extra.module]
            ended = _run(asked, self.path, {_BFCL_FOLDER: scratch})
        told = _answer(ended)
        if told is None or told["problem"] is not None:
            why = "its Python does not answer" if told is None else told["problem"]
            raise MissingError(
                f"the endpoints client cannot score with {extra.package}: {why}",
                where=self.path,
                expected=f"the extra [{extra.name}] of {layout.client.value.repo} in its environment",
                mend=mend,
            )
        if told["version"] != extra.version:
            raise MissingError(
                f"the endpoints client would ask and score with {extra.package} {told['version']}",
                where=self.path,
                expected=f"{extra.package} {extra.version}",
                mend=mend,
            )
        return f"the endpoints client scores with {extra.package} {extra.version}"

    def check(self, config: Path, layout: EndpointsLayout) -> None:
        """Has the client read a configuration, before servers take minutes to come up.

        MissingError where it is older than the first that will do, ConfigError where it refuses it for another reason.
        """
        ended = _run([str(self.path), "validate-yaml", "--config", str(config)], self.path)
        if ended.returncode == 0:
            return
        said = f"{ended.stdout}\n{ended.stderr}"
        lines = [line for line in said.splitlines() if line.strip() and "errors.pydantic.dev" not in line]
        last = "".join(f"\n    {line.strip()}" for line in lines[-_LAST_LINES:])
        if _UNKNOWN_KEY.search(said):
            raise MissingError(
                f"the endpoints client is too old: it does not know {_NEEDED_KEY}, by which the round's checker reads "
                f"latencies{last}",
                where=self.path,
                expected=f"commit {layout.client.value.first_commit[:8]} or a later one",
                mend=install_guide(layout),
            )
        raise ConfigError(f"the endpoints client refuses its configuration:{last}", where=config)


def find_program(layout: EndpointsLayout, environ: Mapping[str, str] | None = None) -> ClientProgram:
    """The program that ENDPOINTS_BIN names. MissingError, with how to install it, where there is none that runs."""
    path = ENDPOINTS_BIN.path(environ)
    if path is None:
        raise MissingError(
            f"the endpoints client is not here: {ENDPOINTS_BIN.name} is not set",
            expected="the path of its inference-endpoint program",
            mend=install_guide(layout),
        )
    if path.is_dir():
        path = path / DISTRIBUTION
    if not path.is_file() or not os.access(path, os.X_OK):
        raise MissingError(f"{ENDPOINTS_BIN.name} names no program", where=path, mend=install_guide(layout))
    return _probed(path, layout)


def install_guide(layout: EndpointsLayout) -> str:
    """How the client is had: from the user's own clone, in an environment of its own."""
    client = layout.client.value
    return (
        f"git clone {client.repo} (commit {client.first_commit[:8]} or later); "
        f"python{client.python} -m venv endpoints-env; endpoints-env/bin/pip install -e ./endpoints; "
        f"export {ENDPOINTS_BIN.name}=$PWD/endpoints-env/bin/{DISTRIBUTION}"
    )


def client_environment() -> dict[str, str]:
    """This process's environment without what belongs to its own Python."""
    return {key: value for key, value in os.environ.items() if key not in _NOT_INHERITED}


def _probed(path: Path, layout: EndpointsLayout) -> ClientProgram:
    ended = _run([*_interpreter(path), "-I", probe.__file__], path)
    told = _answer(ended)
    if told is None or not isinstance(told["version"], str) or not isinstance(told.get("sha256"), str):
        last = "".join(f"\n    {line}" for line in ended.stderr.splitlines()[-_LAST_LINES:])
        raise MissingError(
            f"{ENDPOINTS_BIN.name} names a program whose Python has no {DISTRIBUTION}{last}",
            where=path,
            mend=install_guide(layout),
        )
    return ClientProgram(path, told["python"], told["version"], told["commit"], told["sha256"])


def _answer(ended: subprocess.CompletedProcess[str]) -> dict[str, Any] | None:
    """What the probe printed last, whatever was printed before; None where that is no answer of its."""
    try:
        told = json.loads(ended.stdout.splitlines()[-1])
    except (ValueError, LookupError):
        return None
    return told if isinstance(told, dict) and "version" in told else None


def _pip(program: Path) -> str:
    return str(program.parent / "pip")


def _interpreter(path: Path) -> list[str]:
    """The Python of an installed program: what its first line says, else the one beside it."""
    with path.open("rb") as file:
        first = file.readline(_SHEBANG_BYTES).decode("utf-8", "replace").strip()
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    if words and "python" in Path(words[0]).name:
        return words
    return [str(path.parent / "python")]


def _run(command: list[str], program: Path, more: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            env={**client_environment(), **(more or {})},
            check=False,
        )
    except OSError as error:
        raise MissingError(
            f"the endpoints client cannot be started: {error.strerror}",
            where=command[0],
            mend=f"reinstall it, or let {ENDPOINTS_BIN.name} name another",
        ) from None
    except subprocess.TimeoutExpired:
        raise MissingError(
            f"the endpoints client does not answer within {_PATIENCE_S:.0f} s",
            where=program,
            mend="start it by hand with --version and see what it waits for",
        ) from None
