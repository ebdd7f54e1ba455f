"""The machine that is looked at: its files below a root, its limits, its accelerators, each read once."""

from __future__ import annotations

import functools
import os
import resource
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from harness.ledger.record import Ecc
from harness.machine.accelerators import Accelerators
from harness.machine.doctor.boards import Board, read_boards
from harness.machine.doctor.timex import Timex, read_timex
from harness.machine.error_correction import read_ecc
from harness.machine.facts import COMMAND_TIMEOUT_S, Unreadable

INFINITE: Final = sys.maxsize
"""A limit that is none."""
GUESTS_MEND: Final = "ask whoever runs this virtual machine's host, and say in hw_notes what they told"


def own_limits(which: int) -> tuple[int, int]:
    """A resource limit of this process, soft and hard; INFINITE for none."""
    soft, hard = (INFINITE if n == resource.RLIM_INFINITY else n for n in resource.getrlimit(which))
    return soft, hard


def listed(text: str) -> set[int]:
    """The kernel's list of numbers, ``0-3,8``. Raises ValueError."""
    found: set[int] = set()
    for part in filter(None, text.strip().split(",")):
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    return found


@dataclass(frozen=True)
class Host:
    """What is looked at, and through what. ``root`` has ``proc``, ``sys`` and ``dev`` below it.

    ``results`` and ``data`` are folders of runs and of data sets, whether they exist or not; ``library`` is the module
    that asks NVIDIA's driver.
    """

    results: Path
    data: Path
    root: Path = Path("/")
    library: str = "pynvml"
    environ: Mapping[str, str] = field(default_factory=lambda: os.environ)
    limits: Callable[[int], tuple[int, int]] = own_limits
    timex: Callable[[], Timex] = read_timex

    def text(self, name: str) -> str:
        """A file below the root, without blanks around it. Raises Unreadable with the reason."""
        path = self.root / name
        try:
            return path.read_text(encoding="utf-8", errors="replace").strip()
        except OSError as error:
            raise Unreadable(f"/{name}: {error.strerror}") from None

    def number(self, name: str) -> int:
        """A file that holds one whole number. Raises Unreadable."""
        text = self.text(name)
        try:
            return int(text)
        except ValueError:
            raise Unreadable(f"/{name} is {text[:40]!r}, no number") from None

    def told(self, name: str) -> str | None:
        """A file below the root, None where it cannot be read."""
        try:
            return self.text(name)
        except Unreadable:
            return None

    def output(self, *words: str) -> str:
        """What a program prints that is found as the harness would find it. Raises Unreadable."""
        try:
            done = subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
                timeout=COMMAND_TIMEOUT_S, check=False, env=dict(self.environ),
            )  # fmt: skip
        except FileNotFoundError:
            raise Unreadable(f"{words[0]} is not on PATH") from None
        except (OSError, subprocess.TimeoutExpired) as error:
            raise Unreadable(f"{words[0]} does not answer: {error}") from None
        if done.returncode != 0:
            last = (done.stderr.strip().splitlines() or [f"exit status {done.returncode}"])[-1]
            raise Unreadable(f"{words[0]} failed: {last}")
        return done.stdout

    @functools.cached_property
    def _read(self) -> tuple[Accelerators, list[Board], str | None]:
        return read_boards(self.root, self.library)

    @property
    def devices(self) -> Accelerators:
        """The accelerators, as every leg reads them."""
        return self._read[0]

    @property
    def boards(self) -> list[Board]:
        """The state of each accelerator. Raises Unreadable where there are some and their driver does not answer."""
        _, boards, why = self._read
        if why is not None:
            raise Unreadable(why)
        return boards

    @functools.cached_property
    def ecc(self) -> Ecc:
        """Error correction, as every leg reads it."""
        return read_ecc(self.devices, self.root)
