"""Asks a Python which endpoints client it has: ``python -I probe.py`` prints one JSON object.

``python -I probe.py PACKAGE MODULE`` asks it instead for what a scorer of the client's needs. Standard library only,
and nothing of the package: it runs in the client's environment, not in the harness's.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.metadata
import importlib.util
import json
import platform
import subprocess
import sys
from pathlib import Path

PACKAGE = "inference_endpoint"
DISTRIBUTION = "inference-endpoint"
_GIT_S = 10.0
_LEVELS = 3
"""A clone's top is so many folders above the package at most; a repository further up is somebody else's."""


def told() -> dict[str, str | None]:
    """Version, commit and source hash of the client, None for what cannot be told; and the Python's own version."""
    answer: dict[str, str | None] = {"python": platform.python_version(), "version": None, "commit": None}
    found = importlib.util.find_spec(PACKAGE)
    if found is None or found.origin is None:
        return answer | {"sha256": None}
    folder = Path(found.origin).resolve().parent
    with contextlib.suppress(importlib.metadata.PackageNotFoundError, ValueError):
        distribution = importlib.metadata.distribution(DISTRIBUTION)
        answer["version"] = distribution.version
        origin = json.loads(distribution.read_text("direct_url.json") or "{}")
        answer["commit"] = origin.get("vcs_info", {}).get("commit_id")
    if answer["commit"] is None:
        answer["commit"] = clone_commit(folder)
    return answer | {"sha256": source_sha256(folder)}


def usable(package: str, module: str) -> dict[str, str | None]:
    """The version of a package, None where it is not installed, and what keeps its module from being used."""
    answer: dict[str, str | None] = {"version": None, "problem": None}
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        answer["version"] = importlib.metadata.version(package)
    try:
        importlib.import_module(module)
    except Exception as error:  # noqa: BLE001 - whatever a package's own imports raise, it cannot be used
        answer["problem"] = f"{type(error).__name__}: {error}"
    return answer


def clone_commit(folder: Path) -> str | None:
    """The commit that is checked out where the package lies in a clone; None where it does not."""
    try:
        git = ["git", "-C", str(folder), "rev-parse", "--show-toplevel", "HEAD"]
        said = subprocess.run(git, capture_output=True, text=True, timeout=_GIT_S, check=True).stdout.split("\n")
    except (OSError, subprocess.SubprocessError):
        return None
    return said[1] if Path(said[0]).resolve() in folder.parents[:_LEVELS] else None


def source_sha256(folder: Path) -> str:
    """SHA-256 over the package's Python files: names and contents, in order."""
    digest = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return digest.hexdigest()


if __name__ == "__main__":
    asked = sys.argv[1:]
    answered = usable(*asked) if asked else told()
    sys.stdout.write(json.dumps(answered) + "\n")
