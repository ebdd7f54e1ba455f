"""Where a solution runs: in namespaces of its own, or, where that was asked for by name, in none."""

from __future__ import annotations

import contextlib
import json
import os
import site
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias, get_args

Sandbox: TypeAlias = Literal["namespaces", "none"]
SANDBOXES: tuple[Sandbox, ...] = get_args(Sandbox)

INSIDE = Path(__file__).parent / "inside"
CONFINE, SOLVE = INSIDE / "confine.py", INSIDE / "solve.py"
_LIBRARIES = ("/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/usr/share/zoneinfo")
_ENVIRONMENT = {"LANG": "C.UTF-8", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@dataclass(frozen=True, slots=True)
class Cell:
    """What confine.py is told: see there. ``hidden`` are folders of outside that nothing inside may read."""

    sandbox: Sandbox
    hidden: tuple[Path, ...] = ()

    @contextlib.contextmanager
    def start(self, resources: dict[str, int], folder_bytes: int) -> Iterator[subprocess.Popen[bytes]]:
        """Starts solve.py with pipes to it; killed with all that it started when the context ends.

        It has an empty folder for its working directory, no environment of ours, and a session of its own. Standard
        error is confine.py's: lines ``refused: <why>`` and ``ended: <status>``.
        """
        with tempfile.TemporaryDirectory(prefix="judge-", ignore_cleanup_errors=True) as root:
            told = {
                "program": str(SOLVE),
                "namespaces": self.sandbox == "namespaces",
                "root": str(Path(root).resolve()),
                "visible": _visible(),
                "hidden": [str(path.resolve()) for path in self.hidden],
                "modules": _modules(),
                "limits": resources,
                "folder_bytes": folder_bytes,
            }
            command = [sys.executable, "-I", "-S", "-B", "-X", "utf8", str(CONFINE), json.dumps(told)]
            with subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=_ENVIRONMENT,
                cwd="/",
                bufsize=0,
                start_new_session=True,
            ) as process:
                try:
                    yield process
                finally:
                    _kill_group(process)


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Ends what is left of the group, the leader or not; once the leader was waited for its number may be another's."""
    if process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, 9)


def _modules() -> list[str]:
    """Folders of installed packages: solutions may use numpy, as they may where the reference runs them."""
    paths = [sysconfig.get_paths()[name] for name in ("purelib", "platlib")]
    system = site.getsitepackages() if sys.prefix == sys.base_prefix else []
    return list(dict.fromkeys([*paths, *system]))


def _visible() -> list[str]:
    """What Python reads when it runs: its own modules, packages and shared libraries; outermost folders first."""
    stdlib = [sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib")]
    wanted = [*_LIBRARIES, str(Path(sys.base_prefix) / "lib"), *stdlib, *_modules()]
    resolved = [str(Path(path).resolve()) for path in wanted if path not in _LIBRARIES]
    return sorted({*_LIBRARIES, *wanted, *resolved}, key=lambda path: (path.count("/"), path))
