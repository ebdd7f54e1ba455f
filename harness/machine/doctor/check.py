"""What the doctor says of a machine: one check is a question, what was read, and how to mend it.

A question is declared where it is asked, with :func:`check`; documentation and tests take them from :func:`questions`.
"""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias

import psutil

from harness.errors import EXIT_OK, MissingError, Refused
from harness.machine.facts import Unreadable

if TYPE_CHECKING:
    from harness.machine.doctor.host import Host
    from harness.machine.doctor.needs import Needs


SUBJECTS: Final = (
    "memory", "accelerators", "processors", "clock", "network", "limits", "storage", "load", "software", "data",
)  # fmt: skip
"""What is looked at, in the order in which people read it."""


class State(str, enum.Enum):
    """How a check came out, the worst first; what could not be read is never ``ok``."""

    FAIL = "fail"
    WARN = "warn"
    UNKNOWN = "unknown"
    OK = "ok"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    ``read`` is the value in words and ``source`` where it was read; of an unknown one ``source`` is why nothing was.
    ``expected`` and ``why`` say what it should be, ``authority`` who says so. ``mend`` is a command, or a sentence
    where none mends it; None where all is well. ``missing`` marks what must be there for a run to start.
    """

    subject: str
    name: str
    state: State
    read: str
    source: str
    expected: str
    why: str
    authority: str
    mend: str | None = None
    missing: bool = False

    def __post_init__(self) -> None:
        if self.subject not in SUBJECTS:
            raise ValueError(f"no such subject: {self.subject}")
        if not (self.name and self.read and self.source and self.expected and self.why):
            raise ValueError(f"a check says all: {self}")
        if (self.mend is None) != (self.state is State.OK):
            raise ValueError(f"what is not well is told how to mend, and nothing else: {self}")
        if self.missing and self.state is not State.FAIL:
            raise ValueError(f"what is missing fails: {self}")


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked of every machine, and how its check is made from what was read."""

    subject: str
    name: str
    expected: str
    why: str
    authority: str
    mend: str

    def ok(self, read: str, source: str, *, expected: str | None = None) -> Check:
        """All is well."""
        return self._check(State.OK, read, source, expected, None)

    def warn(self, read: str, source: str, *, expected: str | None = None, mend: str | None = None) -> Check:
        """Worth knowing: a run may suffer, or somebody may ask."""
        return self._check(State.WARN, read, source, expected, mend or self.mend)

    def fail(self, read: str, source: str, *, expected: str | None = None, mend: str | None = None) -> Check:
        """A run would be spoilt or may not be filed."""
        return self._check(State.FAIL, read, source, expected, mend or self.mend)

    def missing(self, read: str, source: str, *, expected: str | None = None, mend: str | None = None) -> Check:
        """No run could start."""
        return self._check(State.FAIL, read, source, expected, mend or self.mend, missing=True)

    def unknown(self, why: str, *, mend: str | None = None) -> Check:
        """Nobody could read it."""
        return self._check(State.UNKNOWN, "unknown", why, None, mend or self.mend)

    def _check(
        self, state: State, read: str, source: str, expected: str | None, mend: str | None, *, missing: bool = False
    ) -> Check:
        return Check(
            subject=self.subject,
            name=self.name,
            state=state,
            read=read,
            source=source,
            expected=expected or self.expected,
            why=self.why,
            authority=self.authority,
            mend=mend,
            missing=missing,
        )


Asked: TypeAlias = Callable[["Host", "Needs"], "Check | None"]
"""A check of a host against what is needed; None where it has nothing to be asked about."""

_QUESTIONS: dict[str, Question] = {}


def question(subject: str, name: str, *, expected: str, why: str, authority: str, mend: str) -> Question:
    """Declares a question. Names are unique: a second one of the same name is a fault of the harness."""
    if name in _QUESTIONS:
        raise ValueError(f"two checks with the name {name}")
    _QUESTIONS[name] = Question(subject, name, expected, why, authority, mend)
    return _QUESTIONS[name]


def questions() -> tuple[Question, ...]:
    """All questions by subject; importing the modules has declared them."""
    return tuple(sorted(_QUESTIONS.values(), key=lambda one: SUBJECTS.index(one.subject)))


def check(
    subject: str, name: str, *, expected: str, why: str, authority: str, mend: str
) -> Callable[[Callable[[Question, Host, Needs], Check | None]], Asked]:
    """Declares a question and makes its function one that never raises for a machine: what it could not read, or make
    sense of, is unknown.
    """
    asked = question(subject, name, expected=expected, why=why, authority=authority, mend=mend)

    def declare(function: Callable[[Question, Host, Needs], Check | None]) -> Asked:
        @functools.wraps(function)
        def ask(host: Host, needs: Needs) -> Check | None:
            try:
                return function(asked, host, needs)
            except Unreadable as error:
                return asked.unknown(str(error))
            except (OSError, ValueError, LookupError, psutil.Error) as error:
                # A kernel or a driver of another version may tell it otherwise: not known, never a traceback.
                return asked.unknown(f"could not be understood: {type(error).__name__}: {error}")

        return ask

    return declare


def exit_code(checks: Sequence[Check]) -> int:
    """3 where something needed is missing, 1 where something would spoil or forbid a run, else 0."""
    if any(one.missing for one in checks):
        return MissingError.exit_code
    return Refused.exit_code if any(one.state is State.FAIL for one in checks) else EXIT_OK
