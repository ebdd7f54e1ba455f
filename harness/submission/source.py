"""The source that made the results, for ``src/``: the package, what builds it, and the files of the system."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

import harness
from harness.config.files import Project
from harness.ledger.hashes import source_sha256
from harness.submission.tree import SubmitterTree

SOURCE_KEY = "harness_source"
"""Under which name a run's versions have the hash of the source that ran."""

_TOP = ("Makefile", "setup.py", "pyproject.toml", "README.md", "LICENSE", "submission.yaml")
_CODE = {".py", ".yaml", ".typed", ".md"}


def copy_source(tree: SubmitterTree, folder: PurePosixPath, project: Project, benchmark: str, system: str) -> None:
    """Copies it below ``folder``: files of code only, no caches, nothing hidden, no links."""
    package = Path(harness.__file__).parent
    for path in _code_below(package):
        _copy(tree, folder, path, package.parent)
    for name in _TOP:
        if (project.root / name).is_file():
            _copy(tree, folder, project.root / name, project.root)
    measurements = project.root / "measurements"
    folders = (project.systems / system, measurements / benchmark)
    found = [*(p for below in folders for p in _code_below(below)), *sorted(measurements.glob("*.md"))]
    for path in dict.fromkeys([*found, *_extended(project, benchmark, system)]):
        _copy(tree, folder, path, project.root)


def _extended(project: Project, benchmark: str, system: str) -> Iterator[Path]:
    """The files that the system's own ones build on: without them nobody could run what ran."""
    own = project.systems / system
    variants = (None, *project.variant_names(system, benchmark))
    of_the_benchmark = (project.benchmark_and_places(system, benchmark, variant)[1] for variant in variants)
    for layered in (project.system_and_places(system)[1], *of_the_benchmark):
        for path in layered.files:
            place = Path(os.path.normpath(path))
            if not place.is_relative_to(own):
                yield place


def ran_here(ran: str | None) -> bool:
    """Whether the source that is copied is the source with this hash."""
    return ran == source_sha256()


def source_note(ran: str | None) -> str:
    """Whether the source that is copied is the source that ran, as one sentence. ``ran`` is the hash in the record."""
    here = source_sha256()
    if ran_here(ran):
        return f"It is the source that ran (sha256 of the package {here})."
    return f"It is another state of the source (sha256 {here}) than the one that ran ({ran or 'not recorded'})."


def _copy(tree: SubmitterTree, folder: PurePosixPath, path: Path, root: Path) -> None:
    inner = PurePosixPath(path.relative_to(root).as_posix())
    tree.copy(folder / inner, path, f"source {inner}")


def _code_below(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*")):
        inner = path.relative_to(folder).parts
        if path.suffix not in _CODE or path.is_symlink() or not path.is_file():
            continue
        if not any(part.startswith(".") or part == "__pycache__" for part in inner):
            yield path
