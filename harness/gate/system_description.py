"""Checks of systems/<system>.json."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations
from pathlib import PurePosixPath
from typing import Any

from harness.gate import tree_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.file_rules import SYSTEM_UNKNOWN
from harness.gate.findings import Finding, Severity
from harness.gate.index import TreeIndex, Unreadable
from harness.gate.network import check_network
from harness.rules import RulePack

COUNTS = ("host_processors_per_node",)
"""Counts that the official programs take as they are; those that they turn into whole numbers are the pack's."""
NOTES = ("hw_notes", "sw_notes")
"""The fields that they put together to one text."""


def check_system(
    system: Mapping[str, Any], path: PurePosixPath, division: str, submitter: str, pack: RulePack
) -> Iterator[Finding]:
    """What is wrong with a system description that lies in the folder of ``division`` and ``submitter``."""
    yield from _fields(system, path, pack)
    yield from _numbers(system, path, pack)
    yield from _fixed_values(system, path, division, submitter, pack)
    yield from check_network(system, path, division, pack)
    yield from _unknown(system, path, pack)


def categories_of(system: Mapping[str, Any]) -> set[str]:
    """The categories that a description claims."""
    value = system.get("system_type")
    return set(value.split(",")) if isinstance(value, str) else set()


def claims_datacenter(index: TreeIndex, path: PurePosixPath) -> bool:
    """Whether the description at ``path`` is of a datacenter system, or of one that nobody can tell the category of."""
    try:
        categories = categories_of(index.read_object(path))
    except Unreadable:
        return True
    return not categories or "datacenter" in categories


def _unknown(system: Mapping[str, Any], path: PurePosixPath, pack: RulePack) -> Iterator[Finding]:
    fields = pack.system_fields
    unknown = sorted(system.keys() - {*fields.required.value, *fields.network_required.value, *fields.power.value})
    if unknown:
        yield SYSTEM_UNKNOWN.broken(path, ", ".join(unknown))


def _fields(system: Mapping[str, Any], path: PurePosixPath, pack: RulePack) -> Iterator[Finding]:
    may_be_empty = set(pack.system_fields.may_be_empty.value)
    for field in pack.system_fields.required.value:
        if field not in system:
            yield R.SYSTEM_FIELD.broken(path, f"no field {field}", source=pack.system_fields.required.source)
        elif not system[field] and field not in may_be_empty:
            source = pack.system_fields.may_be_empty.source
            yield R.SYSTEM_EMPTY.broken(path, f"{field} is {system[field]!r}", source=source)
        elif isinstance(system[field], list | dict) or (field in NOTES and not isinstance(system[field], str | None)):
            # Only notes are put together; of any other field the published table shows the list.
            severity = None if field in NOTES and system[field] else Severity.REVIEW
            yield R.SYSTEM_VALUE.broken(path, f"{field} is a {type(system[field]).__name__}", severity=severity)
        elif isinstance(system[field], str) and '"' in system[field]:
            yield R.SYSTEM_QUOTE.broken(path, f"{field} has a double quote")


def _numbers(system: Mapping[str, Any], path: PurePosixPath, pack: RulePack) -> Iterator[Finding]:
    whole = pack.system_fields.whole_numbers
    for field in (*whole.value, *COUNTS):
        if system.get(field) and not _is_whole(system[field]):
            milder = Severity.REVIEW if field not in whole.value or _is_made_whole(system[field]) else None
            yield R.SYSTEM_NUMBER.broken(path, f"{field} is {system[field]!r}", severity=milder, source=whole.source)


def _is_whole(value: object) -> bool:
    return isinstance(value, int | str) and not isinstance(value, bool) and _is_made_whole(value) and int(value) >= 0


def _is_made_whole(value: object) -> bool:
    """Whether the official programs get a whole number out of it."""
    try:
        return isinstance(value, int | float | str) and int(value) is not None
    except (ValueError, OverflowError):
        return False


def _fixed_values(
    system: Mapping[str, Any], path: PurePosixPath, division: str, submitter: str, pack: RulePack
) -> Iterator[Finding]:
    kinds = pack.categories.value
    types = [",".join(some) for n in range(1, len(kinds) + 1) for some in permutations(kinds, n)]
    if (found := system.get("system_type")) not in types:
        yield R.SYSTEM_TYPE.broken(path, f"system_type is {found!r}", "one of " + ", ".join(map(repr, types)))
    wanted = (
        (R.SYSTEM_STATUS, "status", pack.availability.value),
        (R.SYSTEM_DIVISION, "division", [division]),
        (R.SYSTEM_SUBMITTER, "submitter", [submitter]),
    )
    for rule, field, values in wanted:
        found = system.get(field)
        text = found if isinstance(found, str) else ""
        if text not in values:  # the official checker forgives the case
            severity = Severity.REVIEW if text.lower() in (v.lower() for v in values) else None
            expected = "one of " + ", ".join(values) if len(values) > 1 else values[0]
            yield rule.broken(path, f"{field} is {found!r}", expected, severity=severity)
