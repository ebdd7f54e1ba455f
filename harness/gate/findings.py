"""What the gate says: a finding is one broken rule in one place, with what was found, expected, and how to mend it.

A *reject* means that the official checker or an unambiguous rule of the round would refuse the result; a *review* is
what a peer would ask about; a *note* is worth knowing. Rule ids are stable: people grep for them.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass


class Severity(str, enum.Enum):
    """How bad a finding is; the worst first."""

    REJECT = "reject"
    REVIEW = "review"
    NOTE = "note"

    @property
    def rank(self) -> int:
        """0 for the worst."""
        return list(Severity).index(self)


class Verdict(str, enum.Enum):
    """What all findings together mean; a note changes nothing."""

    PASS = "pass"  # noqa: S105 - a verdict
    REVIEW = "review"
    REJECT = "reject"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing the gate says. ``path`` is relative to what was checked, with ``:line`` where one is known."""

    rule: str
    severity: Severity
    path: str
    found: str
    expected: str
    mend: str
    source: str

    def __post_init__(self) -> None:
        if not (self.rule and self.path and self.found and self.expected and self.mend and self.source):
            raise ValueError(f"a finding says all: {self}")


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule of the gate: what it demands, how its breach is mended, who demands it."""

    id: str
    severity: Severity
    demand: str
    mend: str
    source: str

    def broken(
        self,
        path: object,
        found: str,
        expected: str | None = None,
        *,
        mend: str | None = None,
        severity: Severity | None = None,
        source: str | None = None,
    ) -> Finding:
        """The finding that this rule is broken at ``path``; what is not given is the rule's own."""
        return Finding(
            rule=self.id,
            severity=severity or self.severity,
            path=printable(str(path), _PATH_LENGTH),
            found=printable(found),
            expected=printable(expected or self.demand),
            mend=mend or self.mend,
            source=source or self.source,
        )


_RULES: dict[str, Rule] = {}
_PATH_LENGTH = 4096


def rule(id: str, severity: Severity, demand: str, *, mend: str, source: str) -> Rule:  # noqa: A002 - rules have ids
    """Declares a rule of the gate. Ids are unique: a second rule of the same id is a fault of the harness."""
    if id in _RULES:
        raise ValueError(f"two rules with the id {id}")
    _RULES[id] = Rule(id, severity, demand, mend, source)
    return _RULES[id]


def rules() -> dict[str, Rule]:
    """All rules by id, sorted; importing the package has declared them."""
    return dict(sorted(_RULES.items()))


def verdict(findings: Iterable[Finding]) -> Verdict:
    """The worst of the findings: reject, review, or pass."""
    worst = min((f.severity.rank for f in findings), default=Severity.NOTE.rank)
    return {0: Verdict.REJECT, 1: Verdict.REVIEW}.get(worst, Verdict.PASS)


def ordered(findings: Iterable[Finding]) -> list[Finding]:
    """By severity, then rule, then path: a stable order, each finding once."""
    return sorted(dict.fromkeys(findings), key=lambda f: (f.severity.rank, f.rule, f.path, f.found))


def printable(text: str, limit: int = 300) -> str:
    """A text that a terminal and a log can show: one line, control characters as escapes, at most ``limit`` long."""
    plain = "".join(c if c.isprintable() else c.encode("unicode_escape", "surrogatepass").decode() for c in text)
    return plain if len(plain) <= limit else plain[: limit - 1] + "…"
