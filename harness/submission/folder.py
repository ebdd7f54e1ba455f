"""One submitter's folder in one division, file by file."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

import harness
from harness.config.files import Project
from harness.config.models import Entry
from harness.events import Observer
from harness.ledger.store import ACCURACY, ACCURACY_TXT, DETAIL, LOGS, SUMMARY, USER_CONF, StoredRun
from harness.rules import RulePack
from harness.submission import layout, secrets, texts
from harness.submission.accuracy import FiledLeg, file_leg
from harness.submission.agentic import readme_names
from harness.submission.audits import file_audit_leg
from harness.submission.client_files import check_against_report, client_files
from harness.submission.effort import reasoning_effort
from harness.submission.legs import Leg
from harness.submission.manifest import (
    NAME,
    LegEntry,
    MadeBy,
    Manifest,
    RowEntry,
    SecretEntry,
    TruncatedEntry,
)
from harness.submission.mapping import mapping_of, mapping_text
from harness.submission.official import Clone
from harness.submission.rows import Row, check_against_log
from harness.submission.secrets import Names
from harness.submission.source import SOURCE_KEY, copy_source, ran_here, source_note
from harness.submission.systems import SystemEntry
from harness.submission.tree import GENERATED, SubmitterTree
from harness.submission.truncate import FiledAccuracy

_ENTRIES = "submission.yaml"


@dataclass(frozen=True, slots=True)
class PackedRow:
    """One row of the tree, for people: its result and accuracy in a line each, its attempts, and what marks it."""

    division: str
    system: str
    benchmark: str
    scenario: str
    folder: PurePosixPath
    """Below the submitter's folder."""
    result: str
    accuracy: str
    legs: tuple[LegEntry, ...]
    marks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Context:
    """What all folders of one tree are made with; ``packed`` and ``notes`` gather what is told of it."""

    project: Project
    texts: texts.Texts
    pack: RulePack
    demonstration: bool
    clone: Clone | None
    scratch: Path
    names: Names
    observe: Observer
    packed: list[PackedRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class SubmitterFolder:
    """A folder ``<division>/<submitter>`` while it is built; :meth:`finish` writes what depends on all the rest."""

    def __init__(self, root: Path, division: str, context: Context) -> None:
        self._tree = SubmitterTree(root)
        self._division = division
        self._context = context
        self._rows: list[RowEntry] = []
        self._truncated: list[TruncatedEntry] = []
        self._calibration: dict[str, str] = {}
        self._bandwidth: dict[str, str] = {}
        self._reasons: dict[str, tuple[str, ...]] = {}
        self._entries: list[Entry] = []
        self._copied: set[tuple[PurePosixPath, str]] = set()

    def add_system(self, entry: SystemEntry) -> None:
        """Its description, and its part of the bandwidth document."""
        sources = entry.file.sources
        said = [f"{key} ({sources[key]})" if key in sources else key for key in entry.description.said]
        origin = f"captured by run {entry.captured_by}; said in systems/{entry.name}/system.yaml: {', '.join(said)}"
        text = json.dumps(entry.fields, indent=4, ensure_ascii=False) + "\n"
        self._write(layout.system(entry.name), text, origin)
        self._bandwidth[entry.name] = self._context.texts.bandwidth(entry.name, entry.file, entry.fields)
        self._reasons[f"systems/{entry.name}.json"] = entry.marks

    def add_row(self, row: Row, system: SystemEntry) -> None:
        """All files of one scenario, and the source that made it."""
        context = self._context
        folder = layout.scenario(row.entry.system, row.entry.folder, row.scenario)
        performance = row.performance.run
        code = layout.source(row.entry.folder, performance.record.engine.kind)
        if (code, row.entry.system) not in self._copied:
            copy_source(self._tree, code, context.project, row.entry.benchmark, row.entry.system)
            self._copied.add((code, row.entry.system))
        accuracy = self._add_client_files(row, folder) if row.layout == "endpoints" else self._add_logs(row, folder)
        self._add_texts(row, folder, system, code, accuracy)
        entry = self._row_entry(row)
        self._rows.append(entry)
        self._entries.append(row.entry)
        self._reasons[str(folder)] = row.marks
        untold = [leg.run for leg in entry.legs if leg.leg in row.audits and leg.reasoning_effort is None]
        context.notes.extend(f"{run}: the manifest has no effort of its prompts, which are not here" for run in untold)
        context.notes.extend(f"{row.name}: {name} is not laid out: {why}" for name, why in row.wanting.items())
        if row.passed_over:
            context.notes.append(f"{row.name}: filed in the layout {row.layout}; finished runs of the other are left")
        ran = performance.record.versions.get(SOURCE_KEY)
        if not ran_here(ran):
            context.notes.append(f"src/ is not what made {performance.record.id}. {source_note(ran)}")
        result = performance.record.result
        context.packed.append(
            PackedRow(
                division=self._division,
                system=row.entry.system,
                benchmark=row.entry.benchmark,
                scenario=row.scenario,
                folder=folder,
                result="none" if result is None else f"{result.value:,.2f} {result.units}",
                accuracy=accuracy,
                legs=tuple(entry.legs),
                marks=row.marks,
            )
        )

    def _add_logs(self, row: Row, folder: PurePosixPath) -> str:
        """What LoadGen and the harness wrote of a row's legs. Returns what its accuracy comes to, in a line."""
        context, performance = self._context, row.performance.run
        self._add_run_file(folder / USER_CONF, performance, USER_CONF)
        for name in (DETAIL, SUMMARY):
            self._add_run_file(folder / layout.PERFORMANCE / name, performance, f"{LOGS}/{name}")
            self._add_run_file(folder / layout.ACCURACY / name, row.accuracy.run, f"{LOGS}/{name}")
        check_against_log(performance, context.pack)
        filed = self._add_accuracy(folder / layout.ACCURACY, row.accuracy.run)
        context.notes.extend(filed.notes)
        for name, leg in row.audits.items():
            self._add_audit(folder / name, leg.run)
        return filed.line

    def _add_client_files(self, row: Row, folder: PurePosixPath) -> str:
        """What the endpoints client wrote of its run, unedited. Returns what its accuracy comes to, in a line."""
        context, run = self._context, row.performance.run
        check_against_report(run, context.pack, self._division)
        for file in client_files(run, context.pack):
            self._add_run_file(folder / file.place, run, str(file.kept))
        by = "the endpoints client's score; the harness told it a second time"
        own = "" if run.record.accuracy is None or not run.record.accuracy.subsets else f"{run.record.id}: {by}"
        context.notes.extend(filter(None, [own, f"{run.record.id}: {run.record.note}" if run.record.note else ""]))
        return texts.accuracy_line(run.record.accuracy)

    def finish(self) -> Manifest:
        """Documents, the mark of a demonstration, the search for secrets, and the manifest of it all."""
        context = self._context
        self._document(layout.CALIBRATION, "Calibration", self._calibration)
        self._document(layout.BANDWIDTH, "Bandwidth", self._bandwidth)
        if mapping := mapping_of(self._entries):
            self._write(PurePosixPath(context.pack.tree.model_mapping.value), mapping_text(mapping), _ENTRIES)
        if context.demonstration:
            self._write(layout.DEMONSTRATION, texts.demonstration_note(self._reasons), GENERATED)
        made = Manifest(
            round=context.pack.round,
            demonstration=context.demonstration,
            made_by=MadeBy(harness=harness.__version__),
            files=self._tree.entries,
            rows=self._rows,
            truncated=self._truncated,
            findings=list(self._search()),
        )
        (self._tree.root / NAME).write_text(made.text(), encoding="utf-8")
        return made

    def _document(self, path: PurePosixPath, title: str, parts: Mapping[str, str]) -> None:
        self._write(path, f"# {title}\n\n" + "\n".join(parts.values()), "templates in measurements/")

    def _add_run_file(self, path: PurePosixPath, run: StoredRun, name: str) -> None:
        self._tree.copy_of_run(path, run.folder / name, f"run {run.record.id} {name}", run.record.hashes.get(name))

    def _add_accuracy(self, folder: PurePosixPath, run: StoredRun) -> FiledLeg:
        self._tree.check(run.logs / ACCURACY, run.record.hashes.get(f"{LOGS}/{ACCURACY}"))
        self._tree.check(run.folder / ACCURACY_TXT, run.record.hashes.get(ACCURACY_TXT))
        context = self._context
        filed = file_leg(run, context.clone, context.pack, context.scratch, observe=context.observe)
        self._write_accuracy(folder, run, filed.files, filed.text_origin)
        return filed

    def _add_audit(self, folder: PurePosixPath, run: StoredRun) -> None:
        """An audit's logs, its verdict as the run wrote it, its accuracy log truncated."""
        context = self._context
        self._tree.check(run.logs / ACCURACY, run.record.hashes.get(f"{LOGS}/{ACCURACY}"))
        for name in (DETAIL, SUMMARY):
            self._add_run_file(folder / layout.PERFORMANCE / name, run, f"{LOGS}/{name}")
        verdict = context.pack.benchmark(run.record.id.benchmark).audit_rules[run.record.id.leg].verdict_file.value
        self._add_run_file(folder / verdict, run, verdict)
        filed = file_audit_leg(run, context.clone, context.pack, context.scratch)
        origin = f"the hash of {LOGS}/{ACCURACY} of run {run.record.id}"
        self._write_accuracy(folder / layout.ACCURACY, run, filed.files, origin)
        context.notes.extend(filed.notes)

    def _write_accuracy(self, folder: PurePosixPath, run: StoredRun, files: FiledAccuracy, text_origin: str) -> None:
        log = folder / ACCURACY
        self._tree.write(log, files.log, f"run {run.record.id} {LOGS}/{ACCURACY}, truncated")
        self._tree.write(folder / ACCURACY_TXT, files.text, text_origin)
        self._truncated.append(
            TruncatedEntry(path=str(log), sha256_full=files.sha256_full, bytes_full=files.bytes_full)
        )

    def _add_texts(
        self, row: Row, folder: PurePosixPath, system: SystemEntry, code: PurePosixPath, accuracy: str
    ) -> None:
        context = self._context
        record = row.performance.record
        measured = context.texts.measurements(record, context.pack)
        text = json.dumps(measured, indent=4, ensure_ascii=False) + "\n"
        self._write(folder / "measurements.json", text, f"measurements/{row.entry.benchmark}/measurements.yaml")
        readme = context.texts.readme(
            row,
            system.fields,
            code,
            demonstration=context.demonstration,
            accuracy=accuracy,
            more=readme_names(row, context.pack),
        )
        template = f"measurements/{row.entry.benchmark}/{texts.README_TEMPLATES[row.layout]}"
        self._write(folder / "README.md", readme, template)
        part = f"{row.entry.benchmark} on {row.entry.system}"
        self._calibration[part] = context.texts.calibration(record, measured, context.pack)

    def _row_entry(self, row: Row) -> RowEntry:
        return RowEntry(
            division=self._division,
            system=row.entry.system,
            benchmark=row.entry.folder,
            scenario=row.scenario,
            fingerprint=row.performance.record.fingerprint.digest,
            legs=[_leg_entry(name, leg) for name, leg in row.legs.items()],
            not_submittable=list(row.not_submittable),
            deviations=list(row.deviations),
        )

    def _search(self) -> Iterator[SecretEntry]:
        for entry in self._tree.entries:
            of_a_run = PurePosixPath(entry.path).parts[0] == layout.RESULTS
            for hit in secrets.search(self._tree.root / entry.path, entry.path, self._context.names, paths=of_a_run):
                yield SecretEntry(path=hit.path, line=hit.line, kind=hit.kind.value, masked=hit.masked)

    def _write(self, path: PurePosixPath, text: str, origin: str) -> None:
        self._tree.write(path, text.encode(), origin)


def _leg_entry(name: str, leg: Leg) -> LegEntry:
    effort = reasoning_effort(leg.record)
    return LegEntry.of(name, leg.record, leg.attempts_total, reasoning_effort=effort, named=leg.named or None)
