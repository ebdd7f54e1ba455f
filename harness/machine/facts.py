"""A fact: what one source said of the machine, or why it said nothing. Nothing else of the package is known here."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias

COMMAND_TIMEOUT_S = 5.0


@dataclass(frozen=True, slots=True)
class Fact:
    """One value and its source. ``value`` None: it could not be read, and ``source`` is the reason."""

    value: str | int | None
    source: str

    def __post_init__(self) -> None:
        if not self.source:
            raise ValueError("a fact names its source, or the reason why there is none")
        if self.value == "":
            raise ValueError("an empty value is not a fact; None with a reason is")


Facts: TypeAlias = dict[str, Fact]


def told(value: str | int | None, source: str) -> Fact:
    """A value with its source, or None with the source that did not tell it."""
    return Fact(value, source if value is not None else f"not told by {source}")


class Unreadable(Exception):
    """A source that gave nothing; the text is the reason that stands beside the None."""


def read(keys: Iterable[str], reader: Callable[[], Facts]) -> Facts:
    """The reader's facts for ``keys``; one that fails gives None for all of them, with its reason."""
    try:
        found = reader()
    except Unreadable as error:
        return {key: Fact(None, str(error)) for key in keys}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        # A tool of another version may print what no parser expects: a missing fact, never a broken leg.
        return {key: Fact(None, f"could not be understood: {type(error).__name__}: {error}") for key in keys}
    return {key: found.get(key) or Fact(None, "not told by its source") for key in keys}


def command(*argv: str) -> str:
    """What a command prints in the C locale. Raises Unreadable: not installed, failed, or too slow."""
    try:
        done = subprocess.run(
            argv,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=COMMAND_TIMEOUT_S,
            check=False,
            env={"LC_ALL": "C", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin:/usr/local/sbin:/usr/local/bin"},
        )
    except FileNotFoundError:
        raise Unreadable(f"{argv[0]} is not installed") from None
    except subprocess.TimeoutExpired:
        raise Unreadable(f"{argv[0]} did not answer in {COMMAND_TIMEOUT_S:g} s") from None
    except OSError as error:
        raise Unreadable(f"{argv[0]} does not run: {error.strerror}") from None
    if done.returncode != 0:
        reason = done.stderr.strip().splitlines()
        raise Unreadable(f"{argv[0]} failed: {reason[0] if reason else f'exit status {done.returncode}'}")
    return done.stdout


def gib(size_bytes: int) -> str:
    """A size as people write it, binary, with one decimal where it is not whole."""
    size = size_bytes / 2**30
    unit = "GiB"
    if size >= 1024:
        size, unit = size / 1024, "TiB"
    return f"{round(size, 1):g} {unit}"


def counted(things: Iterable[str]) -> str:
    """``["a", "b", "a"]`` as ``2x a, 1x b``, in order of first appearance."""
    counts: dict[str, int] = {}
    for thing in things:
        counts[thing] = counts.get(thing, 0) + 1
    return ", ".join(f"{count}x {thing}" for thing, count in counts.items())


def sized(size_bytes: int) -> str:
    """A size as :func:`gib` has it, one below a GiB in MiB."""
    return gib(size_bytes) if size_bytes >= 2**30 else f"{size_bytes / 2**20:.0f} MiB"
