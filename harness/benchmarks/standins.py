"""How a stand-in data set gets into its folder: whole or not at all, and never over anything that is none."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.benchmarks.base import Made, file_sha256
from harness.errors import ConfigError, MissingError

STAND_IN_FILE: Final = "STAND_IN.json"
_WHAT: Final = "a stand-in data set made by the harness; nothing that ran on it can be submitted"


@dataclass(frozen=True, slots=True)
class Written:
    """The files that hold a stand-in, and how many rows each of its tables has."""

    files: tuple[Path, ...]
    rows: Mapping[str, int]


def make(folder: Path, described: Mapping[str, Any], readme: str, write: Callable[[Path], Written]) -> Made:
    """Has a stand-in written and puts it in ``folder``. ``described`` says all that its content depends on, as JSON.

    An equal one is left as it is, another stand-in is replaced, anything else is refused with ConfigError. Raises
    MissingError where the disk is full. ``described`` has a ``seed``.
    """
    before = _there(folder)
    if before is not None and {key: before.get(key) for key in described} == described and _intact(folder, before):
        return _summary(folder, before, made=False)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as scratch:
            new = Path(scratch) / "new"
            new.mkdir()
            content = _mark(new, described, readme, write(new))
            if folder.exists():
                folder.rename(Path(scratch) / "old")
            new.rename(folder)
    except OSError as error:
        raise MissingError(f"cannot write the stand-in data set: {error}", where=folder) from error
    return _summary(folder, content, made=True)


def refuse_stand_in(folder: Path) -> None:
    """ConfigError where the folder holds a stand-in, which is left as it is."""
    if (folder / STAND_IN_FILE).exists():
        raise ConfigError(
            "the folder holds a stand-in data set; it is left as it is",
            where=folder,
            expected="an empty folder, or one with the benchmark's own files",
            mend="name another data folder with --data_dir or HARNESS_DATA_DIR, or move this one away",
        )


def _mark(folder: Path, described: Mapping[str, Any], readme: str, written: Written) -> dict[str, Any]:
    content = {
        **described,
        "what": _WHAT,
        "rows": dict(written.rows),
        "sha256": {path.relative_to(folder).as_posix(): file_sha256(path) for path in written.files},
    }
    (folder / "README.md").write_text(readme, encoding="utf-8")
    (folder / STAND_IN_FILE).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return content


def _there(folder: Path) -> dict[str, Any] | None:
    """What the stand-in in the folder says of itself; None where the folder is empty or not there."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return None
    mark = folder / STAND_IN_FILE
    if not mark.is_file():
        raise ConfigError(
            "the folder holds something that is no stand-in; it is left as it is",
            where=folder,
            expected=f"an empty folder, or one with {STAND_IN_FILE}",
            mend="name another data folder, or move this one away",
        )
    try:
        content = json.loads(mark.read_text(encoding="utf-8"))
    except ValueError:
        content = None
    return content if isinstance(content, dict) else {}


def _intact(folder: Path, described: Mapping[str, Any]) -> bool:
    hashes = described.get("sha256")
    return isinstance(hashes, dict) and all(
        (folder / name).is_file() and file_sha256(folder / name) == digest for name, digest in hashes.items()
    )


def _summary(folder: Path, content: Mapping[str, Any], *, made: bool) -> Made:
    return Made(folder, int(content["seed"]), content["rows"], content["sha256"], made)
