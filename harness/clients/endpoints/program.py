"""The client's program: where it is, which one it is, and whether it takes what it will be told."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.clients.endpoints import probe
from harness.clients.endpoints.probe import DISTRIBUTION
from harness.env import ENDPOINTS_BIN
from harness.errors import ConfigError, MissingError
from harness.rules.layouts import EndpointsLayout

_PATIENCE_S: Final = 180.0
"""For a short answer of the program: it imports much, and a cold disk or a busy machine makes that slow."""
_NEEDED_KEY: Final = "early_stopping"
_UNKNOWN_KEY: Final = re.compile(rf"\b{_NEEDED_KEY}\s+Extra inputs are not permitted")
_LAST_LINES: Final = 8
_SHEBANG_BYTES: Final = 4096
_NOT_INHERITED: Final = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV", "PYTHONSAFEPATH")
"""Variables of the Python that runs the harness, which the client's must not see."""


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
    try:
        told = json.loads(ended.stdout.splitlines()[-1])
        if not isinstance(told["version"], str) or not isinstance(told["sha256"], str):
            raise ValueError
    except (ValueError, LookupError, TypeError):
        last = "".join(f"\n    {line}" for line in ended.stderr.splitlines()[-_LAST_LINES:])
        raise MissingError(
            f"{ENDPOINTS_BIN.name} names a program whose Python has no {DISTRIBUTION}{last}",
            where=path,
            mend=install_guide(layout),
        ) from None
    return ClientProgram(path, told["python"], told["version"], told["commit"], told["sha256"])


def _interpreter(path: Path) -> list[str]:
    """The Python of an installed program: what its first line says, else the one beside it."""
    with path.open("rb") as file:
        first = file.readline(_SHEBANG_BYTES).decode("utf-8", "replace").strip()
    words = first.removeprefix("#!").split() if first.startswith("#!") else []
    if words and "python" in Path(words[0]).name:
        return words
    return [str(path.parent / "python")]


def _run(command: list[str], program: Path) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_PATIENCE_S,
            env=client_environment(),
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
