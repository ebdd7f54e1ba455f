"""The systems of a submission: one description each, of the one machine that all its runs ran on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from harness.config.files import Project
from harness.config.models import Entry, SubmissionFile, SystemFile
from harness.errors import ConfigError, HarnessError, Refused
from harness.ledger.record import RunRecord
from harness.machine.describe import Description, Filing, Value, describe
from harness.rules import RulePack
from harness.submission import layout
from harness.submission.rows import Row, raise_all
from harness.submission.texts import note

UNKNOWN = "unknown (demonstration)"


@dataclass(frozen=True, slots=True)
class SystemEntry:
    """One systems/<name>.json: its fields as filed, how they came to be, and what marks its runs."""

    name: str
    division: str
    file: SystemFile
    description: Description
    fields: dict[str, Value]
    marks: tuple[str, ...]
    captured_by: str


def describe_systems(
    rows: Sequence[Row], project: Project, submission: SubmissionFile, pack: RulePack, *, demonstration: bool
) -> dict[tuple[str, str], SystemEntry]:
    """The systems of all rows, by division and name. Raises Refused with every field that is lacking, and its mend."""
    by_system: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        by_system.setdefault((row.entry.division, row.entry.system), []).append(row)
    submitter = layout.DEMONSTRATION_SUBMITTER if demonstration else submission.submitter
    systems: dict[tuple[str, str], SystemEntry] = {}
    problems: list[HarnessError] = []

    def add(division: str, name: str, of_system: list[Row]) -> None:
        try:
            systems[division, name] = _entry(name, of_system, project, submitter, pack, demonstration)
        except Refused as problem:
            problems.append(problem)

    for (division, name), of_system in by_system.items():
        add(division, name, of_system)
    raise_all(problems)
    return systems


def _entry(
    name: str, rows: list[Row], project: Project, submitter: str | None, pack: RulePack, demonstration: bool
) -> SystemEntry:
    file = project.system(name)
    filing = _filing([row.entry for row in rows], submitter)
    records = [leg.record for row in rows for leg in row.legs.values()]
    described = {str(record.id): describe(name, record.machine, file, filing, pack) for record in records}
    newest = max(records, key=lambda record: record.machine.captured_at)
    description = described[str(newest.id)]
    _one_machine(name, records, described, newest)
    _nothing_lacks(name, file, filing, description, demonstration)
    unknown = tuple(f"{lack.field} of {name} is unknown ({lack.why})" for lack in description.lacks)
    if file.bandwidth is None and filing.division == "closed":
        unknown += (f"bandwidth of {name} is unknown (nobody has said it)",)
    marks = tuple(dict.fromkeys(mark for row in rows for mark in row.marks)) + unknown
    fields = description.filled(UNKNOWN)
    for key in ("hw_notes", "sw_notes"):
        fields[key] = note(str(fields[key]), marks, demonstration=demonstration)
    return SystemEntry(name, rows[0].entry.division, file, description, fields, marks, str(newest.id))


def _filing(entries: list[Entry], submitter: str | None) -> Filing:
    """What the entries of one system and division say together. ConfigError where they contradict each other."""
    availability = sorted({entry.availability for entry in entries})
    if len(availability) > 1:
        raise ConfigError(
            f"{entries[0].system} is entered as " + " and as ".join(availability) + f" in {entries[0].division}",
            where="submission.yaml",
            expected="one availability for one system",
        )
    categories = ",".join(sorted({entry.category for entry in entries}))
    return Filing(entries[0].division, submitter, availability[0], categories)


def _one_machine(name: str, records: list[RunRecord], described: dict[str, Description], newest: RunRecord) -> None:
    """One description stands for all runs: Refused where a run was of another machine, or found it otherwise."""
    for record in records:
        if record.machine.identity != newest.machine.identity:
            raise Refused(
                f"runs of {name} were made on different machines",
                where=f"{record.id} and {newest.id}",
                mend="give each machine a system of its own, or run the rows again on one",
            )
        one, other = described[str(record.id)].fields, described[str(newest.id)].fields
        different = [f"{key}: {one[key]!r} and {other[key]!r}" for key in one if one[key] != other[key]]
        if different:
            raise Refused(
                f"{name} was not the same in all runs: " + "; ".join(different),
                where=f"{record.id} and {newest.id}",
                mend=f"run the older again, or say what holds for all in systems/{name}/system.yaml",
            )


def _nothing_lacks(name: str, file: SystemFile, filing: Filing, description: Description, demonstration: bool) -> None:
    lacking = [str(lack) for lack in description.lacks if lack.number or not demonstration]
    if file.bandwidth is None and filing.division == "closed" and not demonstration:
        lacking.append(
            f"bandwidth: nobody has said it, and closed wants it; edit systems/{name}/system.yaml: bandwidth"
        )
    if lacking:
        raise Refused(
            f"the description of {name} is not complete:\n    " + "\n    ".join(lacking), where=f"systems/{name}.json"
        )
