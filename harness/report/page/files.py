"""Where a report is written, and what is never written over."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path
from typing import Final

from harness.errors import ConfigError, HarnessError, MissingError
from harness.ledger.store import RECORD, write_atomically

GENERATOR: Final = "mlperf-inference-harness report"

_OURS: Final = f'<meta name="generator" content="{GENERATOR}">'.encode()
_SOON: Final = 4096
"""A report of ours says so within so many bytes."""
_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EIO}


def refuse_to_replace(path: Path, *, force: bool) -> None:
    """ConfigError where a file that is no report of ours would be written over, or a folder is in its place."""
    try:
        with path.open("rb") as there:
            ours = _OURS in there.read(_SOON)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(
            f"the report cannot be written: {error.strerror}", where=path, mend="give another --out"
        ) from None
    if not (ours or force):
        raise ConfigError(
            "this file is no report of the harness: it is not written over",
            where=path,
            mend="give another --out, or --force",
        )


def refuse_inside(folder: Path, target: Path, option: str) -> None:
    """ConfigError for a target inside a packaged tree: what is submitted is not changed by who looks at it."""
    if Path(os.path.realpath(target)).is_relative_to(os.path.realpath(folder)):
        raise ConfigError(
            "a report inside the tree that it is of would change it", where=target, mend=f"give another {option}"
        )


def refuse_in_a_run(target: Path, option: str) -> None:
    """ConfigError for a target in the folder of a run: what was measured is never written over, whoever insists."""
    inside = Path(os.path.realpath(target))
    if any((folder / RECORD).is_file() for folder in inside.parents):
        raise ConfigError(
            "a report in the folder of a run might replace what it left", where=target, mend=f"give another {option}"
        )


def refuse_no_folder(path: Path, option: str) -> None:
    """ConfigError where a folder is to be made or used and something else is in its place, or above it."""
    there = next((each for each in (path, *path.parents) if os.path.lexists(each)), None)
    if there is not None and not there.is_dir():
        raise ConfigError("a file, and not a folder", where=there, mend=f"give another {option}")


def write_page(path: Path, page: str) -> None:
    """Writes the page so that readers see the old one or the new one. ConfigError where the path is none."""
    _write(path, page, "--out")


def write_plot(folder: Path, name: str, drawn: str, png: bytes) -> tuple[Path, Path]:
    """Writes a picture as SVG and as PNG into a folder, which is made; their paths come back."""
    vector, pixels = folder / f"{name}.svg", folder / f"{name}.png"
    _write(vector, drawn, "--plots")
    try:
        pixels.write_bytes(png)
    except OSError as error:
        raise _cannot(error, pixels, "--plots") from None
    return vector, pixels


def file_name(*parts: str) -> str:
    """Parts as the name of a file: letters, digits, ``.``, ``_`` and ``-``."""
    return "-".join(re.sub(r"[^A-Za-z0-9._-]+", "-", part).strip("-.") for part in parts)


def _write(path: Path, text: str, option: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, text)
    except MissingError as error:
        if not isinstance(error.__cause__, OSError):
            raise
        raise _cannot(error.__cause__, path, option) from None
    except OSError as error:
        raise _cannot(error, path, option) from None


def _cannot(error: OSError, path: Path, option: str) -> HarnessError:
    """A full disk is something missing; any other reason is a path that the user can correct."""
    kind = MissingError if error.errno in _FULL else ConfigError
    return kind(f"the report cannot be written: {error.strerror}", where=path, mend=f"give another {option}")
