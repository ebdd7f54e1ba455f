"""The official description of a system: what was captured, what a person said of it, and what the entry says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from harness.config.models import SystemFile
from harness.ledger.record import Machine
from harness.machine.accelerators import NOT_APPLICABLE
from harness.rules import RulePack

Value: TypeAlias = str | int

WHOLE_NUMBERS = ("number_of_nodes", "accelerators_per_node", "host_processors_per_node")
"""Fields that the official programs read as whole numbers."""
_ACCELERATOR = "accelerator"


@dataclass(frozen=True, slots=True)
class Filing:
    """What an entry says of a system, and who submits it; None is not said."""

    division: str | None
    submitter: str | None
    status: str | None
    system_type: str | None


@dataclass(frozen=True, slots=True)
class Lack:
    """A field that may not be filed as it is: ``why``, and ``mend``, what to type or edit."""

    field: str
    why: str
    mend: str
    number: bool = False
    """Whether the official programs read it as a number, so that no word can stand in its place."""

    def __str__(self) -> str:
        return f"{self.field}: {self.why}; {self.mend}"


@dataclass(frozen=True, slots=True)
class Description:
    """``fields`` in the round's order, None where nobody knows; ``origins`` say where each came from.

    ``said`` are the fields that the system's file has a value for.
    """

    fields: dict[str, Value | None]
    origins: dict[str, str]
    said: tuple[str, ...]
    lacks: tuple[Lack, ...]

    def filled(self, unknown: str) -> dict[str, Value]:
        """The fields with ``unknown`` for those that lack a value; empty where the round lets them be empty."""
        lacking = {lack.field for lack in self.lacks}
        return {
            key: unknown if key in lacking else "" if value is None else value for key, value in self.fields.items()
        }


def describe(name: str, machine: Machine | None, system: SystemFile, filing: Filing, pack: RulePack) -> Description:
    """Describes system ``name``. A value that a person gave wins over the captured one.

    ``machine`` None: no leg has run there yet, and what only a machine can tell is lacking.
    """
    in_file = system.model_dump()
    entered = {
        "division": filing.division,
        "submitter": filing.submitter,
        "status": filing.status,
        "system_type": filing.system_type,
    }
    captured = machine.facts if machine is not None else {}
    of_others = _of_others(captured, system)
    fields: dict[str, Value | None] = {}
    origins: dict[str, str] = {}
    said: list[str] = []
    for field in pack.system_fields.required.value:
        if field in entered:
            fields[field], origins[field] = entered[field], "submission.yaml"
        elif in_file.get(field) not in (None, ""):
            source = f": {system.sources[field]}" if field in system.sources else ""
            fields[field], origins[field] = in_file[field], f"systems/{name}/system.yaml{source}"
            said.append(field)
        elif field in of_others:
            fields[field], origins[field] = (
                None,
                "read on a machine without accelerators, which is not the one that is said",
            )
        else:
            fields[field] = captured.get(field)
            unsaid = f"systems/{name}/system.yaml" if field in in_file else "read off the machine by a leg"
            origins[field] = machine.sources.get(field, unsaid) if machine is not None else unsaid
    may_be_empty = set(pack.system_fields.may_be_empty.value)
    judged = (_judge(name, field, fields[field], origins[field], machine, may_be_empty) for field in fields)
    lacks = [lack for lack in judged if lack is not None]
    lacks += _not_applicable(name, fields, {lack.field for lack in lacks})
    return Description(fields, origins, tuple(said), tuple(lacks))


def _of_others(captured: Mapping[str, Value | None], system: SystemFile) -> set[str]:
    """What a client's machine says of accelerators that it does not have, where the servers are said to have some."""
    if not system.accelerators_per_node:
        return set()
    return {key for key, value in captured.items() if key.startswith(_ACCELERATOR) and value == NOT_APPLICABLE}


def _judge(
    name: str, field: str, value: Value | None, origin: str, machine: Machine | None, may_be_empty: set[str]
) -> Lack | None:
    number = field in WHOLE_NUMBERS
    if value in (None, "", 0) and not (field in may_be_empty and not number):
        why = f"not read ({origin})" if machine is not None and field in machine.facts else "nobody has said it"
        return Lack(field, why, _mend(name, field, machine), number)
    if isinstance(value, str) and '"' in value:
        # The official summary.csv quotes its values and escapes nothing.
        return Lack(field, "a double quote breaks the official table", _mend(name, field, machine))
    if number and not str(value).isdigit():
        return Lack(field, f"not a whole number: {value}", _mend(name, field, machine), number)
    return None


def _not_applicable(name: str, fields: Mapping[str, Value | None], known: set[str]) -> list[Lack]:
    """N/A is an answer only about the accelerators of a machine that is said, or was found, to have none."""
    has_none = str(fields.get("accelerators_per_node")) == "0"
    return [
        Lack(field, f"{NOT_APPLICABLE} is for machines without accelerators", _edit(name, field))
        for field, value in fields.items()
        if str(value).strip().upper() in (NOT_APPLICABLE, "NA")
        and field not in known
        and not (field.startswith(_ACCELERATOR) and has_none)
    ]


def _mend(name: str, field: str, machine: Machine | None) -> str:
    if field == "submitter":
        return "edit submission.yaml: submitter"
    if field in ("division", "status", "system_type"):
        return f"add an entry of {name} to submission.yaml: division, availability and category are said there"
    known = SystemFile.model_fields.get(field)
    if known is not None and known.is_required():  # what no machine tells
        return _edit(name, field)
    if field == "framework" or (machine is None and not field.endswith("_notes")):
        return "run a leg on the machine: what can be read off it is captured then"
    if machine is None or field not in machine.facts:
        return _edit(name, field)
    mend = f"see `make system SYSTEM={name}` on the machine, mend what it names, and run the leg again"
    return mend if known is None else f"{_edit(name, field)}; or {mend}"


def _edit(name: str, field: str) -> str:
    return f"edit systems/{name}/system.yaml: {field}"
