"""Checks of one result row: its files, its two runs, what was measured and how accurate it was."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from harness.gate import run_rules
from harness.gate import tree_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.accuracy_text import AccuracyText, check_accuracy_text, check_shortened_log, is_shortened
from harness.gate.findings import Finding, Severity, Verdict, verdict
from harness.gate.index import TreeIndex, Unreadable
from harness.gate.metric import ResultMetric, result_metric
from harness.gate.run import check_run, unreadable
from harness.gate.run_facts import ACCURACY, PERFORMANCE, Coverage, Expectation, RunFacts
from harness.logs import AccuracyLog, DetailLog, LogError, SummaryLog
from harness.rules import BenchmarkRules, RulePack

RUN = PurePosixPath("performance/run_1")
ACCURACY_FOLDER = PurePosixPath("accuracy")
DETAIL = "mlperf_log_detail.txt"
SUMMARY = "mlperf_log_summary.txt"
ACCURACY_JSON = "mlperf_log_accuracy.json"
ACCURACY_TXT = "accuracy.txt"
MEASUREMENTS = "measurements.json"

FILES = (
    PurePosixPath(MEASUREMENTS),
    PurePosixPath("README.md"),
    PurePosixPath("user.conf"),
    RUN / DETAIL,
    RUN / SUMMARY,
    ACCURACY_FOLDER / DETAIL,
    ACCURACY_FOLDER / SUMMARY,
    ACCURACY_FOLDER / ACCURACY_JSON,
    ACCURACY_FOLDER / ACCURACY_TXT,
)
"""What every row must have, none of it empty."""

_AUDIT_VERDICT = "TEST PASS"
_AUDIT_FILES = {"TEST07": "verify_accuracy.txt", "TEST09": "verify_output_len.txt"}
_POWER = "power"
"""The folder beside the run by which the official checker takes a result for one with power measured."""


@dataclass(frozen=True, slots=True)
class RowPlace:
    """Which row: its folder in the tree and the names that lead there. ``benchmark`` is the official name."""

    folder: PurePosixPath
    division: str
    submitter: str
    system: str
    benchmark: str
    scenario: str

    @property
    def strict(self) -> bool:
        """Whether the rules of closed hold: everywhere but in open."""
        return self.division != "open"

    def __str__(self) -> str:
        return f"{self.division}/{self.submitter}/{self.system}/{self.folder.parent.name}/{self.scenario}"


@dataclass(frozen=True, slots=True)
class RowReport:
    """A row and all that is said of it; ``metric`` and ``accuracy`` are None where the tree does not tell them."""

    place: RowPlace
    metric: ResultMetric | None
    accuracy: float | None
    findings: tuple[Finding, ...] = field(repr=False)

    @property
    def verdict(self) -> Verdict:
        """The worst of the row's findings."""
        return verdict(self.findings)


def check_row(index: TreeIndex, place: RowPlace, pack: RulePack) -> RowReport:
    """Reads one row and says all that is wrong with it."""
    rules = pack.benchmark(place.benchmark)
    found = [*_files(index, place), *_measurements(index, place, pack), *_audits(index, place, rules)]
    text, text_findings = _accuracy_text(index, place, rules)
    found += text_findings
    found += check_shortened_log(index, place.folder / ACCURACY_FOLDER / ACCURACY_JSON, text, pack)
    logs: dict[str, DetailLog] = {}
    for leg, folder in ((PERFORMANCE, RUN), (ACCURACY, ACCURACY_FOLDER)):
        detail, leg_findings = _leg(index, place, pack, leg, place.folder / folder)
        found += leg_findings
        if detail is not None:
            logs[leg] = detail
    found += _versions(place, logs)
    value = text.values[0] if text is not None and len(text.values) == 1 else None
    return RowReport(place, _metric(logs.get(PERFORMANCE), place, rules), value, tuple(found))


def _files(index: TreeIndex, place: RowPlace) -> Iterator[Finding]:
    for name in FILES:
        path = place.folder / name
        node = index.file(path)
        if node is None:
            yield R.FILE.broken(path, "no such file")
        elif node.bytes == 0:
            yield R.FILE_EMPTY.broken(path, "an empty file")
    for run in index.folders(place.folder / RUN.parent):
        if run != RUN.name:
            severity = Severity.REJECT if run == _POWER else None
            yield R.EXTRA_RUN.broken(
                place.folder / RUN.parent / run, f"a folder {run} beside {RUN.name}", severity=severity
            )


def _measurements(index: TreeIndex, place: RowPlace, pack: RulePack) -> Iterator[Finding]:
    path = place.folder / MEASUREMENTS
    if not _has_content(index, path):
        return
    try:
        measurements = index.read_object(path)
    except Unreadable as error:
        yield R.MEASUREMENTS.broken(path, str(error))
        return
    for name in pack.measurements_fields.value:
        if not measurements.get(name):
            found = f"{name} is {measurements[name]!r}" if name in measurements else f"no field {name}"
            yield R.MEASUREMENTS_FIELD.broken(path, found, source=pack.measurements_fields.source)


def _audits(index: TreeIndex, place: RowPlace, rules: BenchmarkRules) -> Iterator[Finding]:
    if not place.strict:
        return
    for audit in rules.audits.value:
        folder = place.folder / audit
        verdicts = [n for n in index.children(folder) if n.kind == "file" and n.path.match("verify_*.txt")]
        if not verdicts:
            yield R.AUDIT.broken(folder, f"no verdict of {audit}", source=rules.audits.source)
        elif index.file(folder / _AUDIT_FILES[audit]) is None:
            yield R.AUDIT.broken(folder, f"no {_AUDIT_FILES[audit]}", source=rules.audits.source)
        for node in verdicts:
            try:
                lines = index.read_text(node.path).splitlines()
            except Unreadable as error:
                yield R.AUDIT_VERDICT.broken(node.path, str(error))
                continue
            if _AUDIT_VERDICT not in (line.strip() for line in lines):
                yield R.AUDIT_VERDICT.broken(node.path, f"no line {_AUDIT_VERDICT}")


def _accuracy_text(
    index: TreeIndex, place: RowPlace, rules: BenchmarkRules
) -> tuple[AccuracyText | None, list[Finding]]:
    path = place.folder / ACCURACY_FOLDER / ACCURACY_TXT
    if not _has_content(index, path):
        return None, []
    try:
        text = AccuracyText.parse(index.read_text(path), rules.accuracy_target.value.key)
    except Unreadable as error:
        return None, [R.ACCURACY_TEXT.broken(path, str(error))]
    return text, list(check_accuracy_text(text, path, rules, place.strict))


def _leg(
    index: TreeIndex, place: RowPlace, pack: RulePack, leg: str, folder: PurePosixPath
) -> tuple[DetailLog | None, list[Finding]]:
    """The leg's detail log (None where it cannot be read) and what its run's checks find."""
    found: list[Finding] = []
    path = folder / DETAIL
    if not _has_content(index, path):
        return None, found
    try:
        detail = DetailLog.read(index.locate(path))
    except LogError as error:
        return None, [unreadable(error, str(path))]
    facts = RunFacts(
        leg=leg,
        scenario=place.scenario,
        benchmark=place.benchmark,
        pack=pack,
        expectation=Expectation.of_round(pack, place.benchmark, place.scenario, leg),
        detail=detail,
        summary=_summary(index, folder / SUMMARY, found),
        coverage=_coverage(index, place, pack, folder, found) if leg == ACCURACY else None,
        label=str(path),
        division=place.division,
    )
    return detail, found + check_run(facts)


def _summary(index: TreeIndex, path: PurePosixPath, found: list[Finding]) -> SummaryLog | None:
    if not _has_content(index, path):
        return None
    try:
        return SummaryLog.read(index.locate(path))
    except LogError as error:
        found.append(run_rules.SUMMARY.broken(path, error.what))
        return None


def _coverage(
    index: TreeIndex, place: RowPlace, pack: RulePack, folder: PurePosixPath, found: list[Finding]
) -> Coverage | None:
    """What a whole accuracy log covers; None for one that is shortened (or told of as bad elsewhere)."""
    path = folder / ACCURACY_JSON
    node = index.file(path)
    if node is None or not 0 < node.bytes <= pack.accuracy_log_max_bytes.value:
        return None
    try:
        if is_shortened(index.read(path), pack):
            return None
        rows = Expectation.of_round(pack, place.benchmark, place.scenario, ACCURACY).dataset_rows
        return Coverage.of(AccuracyLog(index.locate(path)), rows)
    except LogError as error:
        found.append(unreadable(error, str(path)))
    except Unreadable as error:
        found.append(R.ACCURACY_LOG.broken(path, str(error)))
    return None


def _versions(place: RowPlace, logs: dict[str, DetailLog]) -> Iterator[Finding]:
    versions = {leg: str(log.value("loadgen_version")) for leg, log in logs.items()}
    if len(set(versions.values())) > 1:
        yield R.VERSIONS.broken(place.folder, ", ".join(f"{leg}: {version}" for leg, version in versions.items()))


def _metric(detail: DetailLog | None, place: RowPlace, rules: BenchmarkRules) -> ResultMetric | None:
    if detail is None:
        return None
    try:
        return result_metric(detail, rules.scenario(place.scenario))
    except LogError:  # a finding of the run's checks
        return None


def _has_content(index: TreeIndex, path: PurePosixPath) -> bool:
    node = index.file(path)
    return node is not None and node.bytes > 0
