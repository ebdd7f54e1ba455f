"""Puts a finished tree where it belongs: whole or not at all, and never over what somebody else made."""

from __future__ import annotations

import contextlib
import errno
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from harness.errors import MissingError, Refused
from harness.submission.manifest import strangers_in

_SHOWN = 5


def check_target(out: Path) -> None:
    """Refuses a target that holds anything but a tree of this program's, unchanged. An empty folder is free."""
    if out.name in ("", ".."):  # it is renamed to its place, and these are places of other names
        raise Refused("the target has no name of its own", where=out, mend="give a folder by its name with --out")
    if not out.exists() and not out.is_symlink():
        return
    if not out.is_dir() or out.is_symlink():
        raise Refused("the target is not a folder", where=out, mend="give another with --out")
    if not any(out.iterdir()):
        return
    strangers = strangers_in(out)
    if strangers:
        more = f" (and {len(strangers) - _SHOWN} more)" if len(strangers) > _SHOWN else ""
        raise Refused(
            "the target holds what this program did not write: " + "; ".join(strangers[:_SHOWN]) + more,
            where=out,
            mend="move that folder away, or give another with --out",
        )


@contextlib.contextmanager
def workplace(out: Path) -> Iterator[Path]:
    """A folder beside ``out`` to build in; what is left of it goes away at the end. MissingError: no space."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        folder = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}."))
    except OSError as error:
        raise _cannot_write(out, error) from error
    try:
        yield folder
    except OSError as error:
        raise _cannot_write(out, error) from error
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def place(tree: Path, out: Path) -> Path | None:
    """Renames ``tree`` to ``out``. What was there becomes ``<out>.previous-<n>``, which is returned (else None)."""
    tree.chmod(0o755)  # temporary folders are for their owner alone
    previous = _free_name(out) if out.is_dir() and any(out.iterdir()) else None
    try:
        if previous is not None:
            out.rename(previous)
        tree.rename(out)
    except BaseException:  # an interrupt between the two renames must not cost the tree that was there
        if previous is not None and previous.exists() and not out.exists():
            previous.rename(out)
        raise
    return previous


def _free_name(out: Path) -> Path:
    n = 1
    while (free := out.with_name(f"{out.name}.previous-{n}")).exists():
        n += 1
    return free


def _cannot_write(out: Path, error: OSError) -> MissingError:
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    mend = "free space on this disk" if full else "make it a place to write to, or give another with --out"
    return MissingError(
        f"the tree could not be written: {error.strerror or error}",
        where=error.filename2 or error.filename or out,  # of a copy the second is the one that is written
        mend=f"{mend}; the results are as they were",
    )
