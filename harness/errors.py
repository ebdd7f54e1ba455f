"""Everything that can go wrong and be told to a user, each with the exit code of ``python -m harness``.

::

    HarnessError
    ├── ConfigError          2   fix your configuration; no flag overrides it
    │   └── UnknownName      2   a name that is not known, with the nearest that is
    ├── MissingError         3   a server, data set, package, disk space or lock is not to be had
    │   ├── DatasetError     3   the data set is absent, or is not what the benchmark wants
    │   └── InUseError       3   another process works in the same results folder
    ├── RunBroke             4   a leg started and did not end as legs end
    │   └── EngineDied       4   the engine went away in mid-run
    ├── Refused              1   the work was done and the verdict is no
    └── Interrupted        130   ^C

A message says what is wrong, where, what was expected, and how to mend it. Whatever is not one of these is a
fault of the harness and keeps its traceback.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import ClassVar

EXIT_OK = 0


class HarnessError(Exception):
    """A problem a user can act on.

    ``what`` is one sentence; ``where`` names the file, line or key; ``expected`` and ``mend`` complete it.
    """

    exit_code: ClassVar[int] = 4

    def __init__(
        self, what: str, *, where: object = None, expected: str | None = None, mend: str | None = None
    ) -> None:
        self.what = what
        self.where = None if where is None else str(where)
        self.expected = expected
        self.mend = mend
        super().__init__(what)

    def __str__(self) -> str:
        lines = [self.what]
        for label, text in (("where", self.where), ("expected", self.expected), ("mend", self.mend)):
            if text is not None:
                lines.append(f"  {label}: {text}")
        return "\n".join(lines)


class ConfigError(HarnessError):
    """What the user wrote cannot be meant; nothing is started."""

    exit_code = 2


class UnknownName(ConfigError):
    """A name that is not among the known ones; the nearest is offered."""

    def __init__(self, kind: str, name: str, known: Iterable[str], *, where: object = None) -> None:
        self.name = name
        self.known = tuple(sorted(known))
        near = difflib.get_close_matches(name, self.known, n=1, cutoff=0.5)
        mend = f"did you mean {near[0]!r}?" if near else None
        expected = ("one of " + ", ".join(self.known)) if self.known else None
        super().__init__(f"unknown {kind} {name!r}", where=where, expected=expected, mend=mend)


class MissingError(HarnessError):
    """Something the work needs is not there."""

    exit_code = 3


class DatasetError(MissingError):
    """The data set is absent, or its rows, columns or token ids are not the benchmark's."""


class InUseError(MissingError):
    """The results folder is locked by another process."""


class RunBroke(HarnessError):
    """A leg started and broke; what it had written is kept."""

    exit_code = 4


class EngineDied(RunBroke):
    """The engine's process ended, or stopped answering, while requests were outstanding."""


class Refused(HarnessError):
    """All was done, and the answer is no (an INVALID run, a run that may not be filed)."""

    exit_code = 1


class Interrupted(HarnessError):
    """The user pressed ^C."""

    exit_code = 130
