"""What a system's file lacks: the values that an import has for it, and the keys that are left for a person."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.config.models import SystemFile
from harness.config.system_form import EXPECTED, Form
from harness.ledger.record import Machine
from harness.machine.describe import Description, Value
from harness.machine.sysinfo import SysinfoCapture

_TOLD_BY_A_LEG = {"framework"}
"""What an engine says of itself once it is up."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One field as it was imported, as a person said it, and as it was read here; None for nothing."""

    field: str
    imported: Value
    said: Value | None
    read: Value | None

    @property
    def is_taken(self) -> bool:
        """Whether it goes into the file: nobody said anything, and a leg would not read the same anyway."""
        return self.said is None and str(self.read) != str(self.imported)

    @property
    def word(self) -> str:
        """How it stands to what is known already."""
        if self.said is not None:
            return "as said" if str(self.said) == str(self.imported) else "differs from what is said"
        if self.read is None:
            return "new"
        return "as read" if str(self.read) == str(self.imported) else "differs from what is read"


def compared(file: SystemFile, machine: Machine, imported: SysinfoCapture) -> list[Compared]:
    """Each imported value beside what is said and what is read here."""
    return [
        Compared(field, value, _said(file, field), machine.facts.get(field)) for field, value in imported.values.items()
    ]


def form_of(file: SystemFile, description: Description, lines: Sequence[Compared], source: str) -> Form:
    """What is to be written: the imported values that are taken, with their source, and all that is then lacking."""
    taken = {line.field: line.imported for line in lines if line.is_taken}
    values = {field: taken[field] for field in EXPECTED if field in taken}
    lacking = {lack.field for lack in description.lacks} - _TOLD_BY_A_LEG | {"bandwidth"}
    wanted = [field for field in EXPECTED if field in lacking and _said(file, field) is None and field not in values]
    return Form(values, dict.fromkeys(values, source), wanted)


def _said(file: SystemFile, field: str) -> Value | None:
    value: Value | None = getattr(file, field)
    return None if value == "" else value
