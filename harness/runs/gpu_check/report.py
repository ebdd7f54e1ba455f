"""What the check found: one line a question, and a file that can be sent to whoever maintains the harness."""

from __future__ import annotations

import enum
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Final

SCHEMA: Final = 1


class Status(enum.Enum):
    """How a question came out. What could not be asked has not passed."""

    PASSED = "passed"
    FAILED = "failed"
    NOT_ASKED = "not asked"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The answer to one question, and ``seen``: what it was judged by, in a sentence or two."""

    status: Status
    seen: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One question, where it was asked (``server``, ``in process``, ``machine``) and its outcome."""

    where: str
    name: str
    question: str
    outcome: Outcome


@dataclass(slots=True)
class Report:
    """All findings, in the order they were asked, and facts: versions, machine, settings."""

    facts: dict[str, object]
    findings: list[Finding] = field(default_factory=list)

    def count(self, status: Status) -> int:
        """How many questions came out so."""
        return sum(finding.outcome.status is status for finding in self.findings)

    def to_json(self) -> str:
        """The file: ``schema``, ``facts`` and ``findings``."""
        findings = [
            {
                "where": finding.where,
                "name": finding.name,
                "question": finding.question,
                "status": finding.outcome.status.value,
                "seen": finding.outcome.seen,
            }
            for finding in self.findings
        ]
        content = {"schema": SCHEMA, "facts": self.facts, "findings": findings}
        return json.dumps(content, indent=1, ensure_ascii=False, default=_plain) + "\n"


def passed(seen: str) -> Outcome:
    """It is as the harness takes it to be."""
    return Outcome(Status.PASSED, seen)


def failed(seen: str) -> Outcome:
    """It is not."""
    return Outcome(Status.FAILED, seen)


def not_asked(why: str) -> Outcome:
    """Nobody knows."""
    return Outcome(Status.NOT_ASKED, why)


def judged(well: bool, seen: str) -> Outcome:
    """Passed where ``well``."""
    return passed(seen) if well else failed(seen)


def few(values: Sequence[object], most: int = 12) -> str:
    """The first of a list, for a sentence."""
    shown = ", ".join(map(str, values[:most]))
    return f"[{shown}{', …' if len(values) > most else ''}]"


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    if hasattr(value, "__dataclass_fields__"):
        return asdict(value)  # type: ignore[call-overload, unused-ignore]  # a dataclass, as its fields say
    return str(value)
