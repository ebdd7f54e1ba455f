"""Checks of a row's audits: the folder of each, its verdict, its own LoadGen run, and whether they belong together."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from harness.gate import audit_rules as R  # noqa: N812 - a namespace of constants
from harness.gate import leg_facts, run_rules
from harness.gate.audit_verdict import MEAN, check_verdict, numbers
from harness.gate.findings import Finding, Severity
from harness.gate.index import TreeIndex, Unreadable
from harness.gate.metric import mean_answer_tokens
from harness.gate.row_layout import ACCURACY_FOLDER, RUN, RowPlace
from harness.gate.run import check_run, unreadable
from harness.gate.run_facts import Coverage
from harness.logs import AccuracyLog, DetailLog, LogError, is_shortened
from harness.rules import RulePack
from harness.rules.audits import AuditRules

DETAIL = RUN / leg_facts.DETAIL
SUMMARY = RUN / leg_facts.SUMMARY
ACCURACY_LOG = ACCURACY_FOLDER / "mlperf_log_accuracy.json"
ACCURACY_TEXT = ACCURACY_FOLDER / "accuracy.txt"
FILES = (DETAIL, SUMMARY, ACCURACY_LOG, ACCURACY_TEXT)
"""What lies in an audit's folder beside its verdict."""

_MANIFEST = "MANIFEST.json"
_HASH_LINE = re.compile(r"hash=([0-9a-f]{64})", re.ASCII)
_SAME_MEAN = 0.01  # LoadGen's rates may count the answers of a run a little differently than the log of its answers


@dataclass(frozen=True, slots=True)
class AuditLogs:
    """The detail logs of a row's audits by leg, and what is wrong with those that cannot be read."""

    details: Mapping[str, DetailLog]
    findings: tuple[Finding, ...] = field(repr=False)


def read_audit_logs(index: TreeIndex, place: RowPlace, pack: RulePack) -> AuditLogs:
    """Reads the detail logs of the audits that the row must have: for the check of LoadGen's version, and for
    :func:`check_audits`.
    """
    details: dict[str, DetailLog] = {}
    found: list[Finding] = []
    for name in _required(place, pack):
        path = place.folder / name / DETAIL
        if not index.has_content(path):
            continue  # told among the audit's files
        try:
            with index.opened(path) as file:
                details[name] = DetailLog.read(file)
        except LogError as error:
            found.append(unreadable(error, str(path)))
    return AuditLogs(details, tuple(found))


def check_audits(index: TreeIndex, place: RowPlace, pack: RulePack, logs: AuditLogs) -> list[Finding]:
    """What is wrong with the audits that the row must have; nothing where its division asks for none."""
    found = list(logs.findings)
    for name, audit in _required(place, pack).items():
        folder = place.folder / name
        text = _verdict_text(index, folder / audit.verdict_file.value, name, found)
        if not index.is_folder(folder):
            continue
        found += _files(index, folder, audit)
        coverage = _hash_and_coverage(index, folder, audit, pack, found)
        detail = logs.details.get(name)
        if detail is not None:
            found += _run(index, place, pack, name, detail, coverage, found)
        if text is not None:
            found += check_verdict(text, folder / audit.verdict_file.value, audit)
        if text is not None and detail is not None:
            found += _one_run(text, folder / audit.verdict_file.value, place, pack, detail)
    return found


def _required(place: RowPlace, pack: RulePack) -> dict[str, AuditRules]:
    if not pack.holds("audits", place.division):
        return {}
    return dict(pack.benchmark(place.benchmark).audit_rules)


def _verdict_text(index: TreeIndex, path: PurePosixPath, name: str, found: list[Finding]) -> str | None:
    if index.file(path) is None:
        found.append(R.MISSING.broken(path, f"no verdict of {name}"))
        return None
    try:
        return index.read_text(path)
    except Unreadable as error:
        found.append(R.VERDICT.broken(path, str(error)))
        return None


def _files(index: TreeIndex, folder: PurePosixPath, audit: AuditRules) -> Iterator[Finding]:
    for name in FILES:
        if not index.has_content(folder / name):
            yield R.FILES.broken(folder / name, "no such file, or an empty one")
    known = {folder / name for name in (*FILES, PurePosixPath(audit.verdict_file.value))}
    for node in index.files_below(folder):
        if node.path not in known:
            yield R.FILES.broken(node.path, "a file that is none of an audit's")


def _hash_and_coverage(
    index: TreeIndex, folder: PurePosixPath, audit: AuditRules, pack: RulePack, found: list[Finding]
) -> Coverage | None:
    """What a whole accuracy log covers, None where it was shortened; and what is wrong with the hash beside it."""
    log, path = folder / ACCURACY_LOG, folder / ACCURACY_TEXT
    told = _told_hash(index, path, found)
    if not index.has_content(log):
        return None
    separator, kept = pack.accuracy_log_separator.value.encode(), pack.accuracy_log_kept_bytes.value
    try:
        own = index.sha256(log)
        shortened = is_shortened(index.locate(log), separator, kept)
    except (LogError, Unreadable) as error:
        found.append(run_rules.LOG.broken(log, str(error)))
        return None
    if told is not None and shortened and told == own:
        found.append(R.HASH.broken(path, "the hash of the shortened log: it was shortened twice, or hashed too late"))
    if told is not None and not shortened and told != own:
        found.append(R.HASH.broken(path, "a whole log with another hash than accuracy.txt tells", told))
    if shortened:
        return None
    try:
        return Coverage.of(AccuracyLog(index.locate(log)), audit.rows.value)
    except LogError as error:
        found.append(unreadable(error, str(log)))
        return None


def _told_hash(index: TreeIndex, path: PurePosixPath, found: list[Finding]) -> str | None:
    if not index.has_content(path):
        return None  # told among the audit's files
    try:
        lines = [line for line in re.split(r"\r\n|\n|\r", index.read_text(path)) if line.strip()]
    except Unreadable as error:
        found.append(R.HASH.broken(path, str(error)))
        return None
    match = _HASH_LINE.fullmatch(lines[-1]) if lines else None
    if match is None:
        found.append(R.HASH.broken(path, "no last line with a hash", severity=Severity.REVIEW))
    return None if match is None else match[1]


def _run(
    index: TreeIndex,
    place: RowPlace,
    pack: RulePack,
    name: str,
    detail: DetailLog,
    coverage: Coverage | None,
    found: list[Finding],
) -> list[Finding]:
    folder = place.folder / name / RUN
    summary = leg_facts.read_summary(index, folder / leg_facts.SUMMARY, found, Severity.REVIEW)
    effort = _stated_effort(index, place, name)
    return check_run(leg_facts.of_leg(place, pack, name, folder, detail, summary, coverage, effort))


def _stated_effort(index: TreeIndex, place: RowPlace, name: str) -> str | None:
    """The reasoning effort that the submitter's manifest tells of an audit's leg; None where it tells none."""
    try:
        manifest = index.read_object(PurePosixPath(place.division, place.submitter, _MANIFEST))
    except Unreadable:
        return None  # told where the manifest itself is checked
    own = {"system": place.system, "benchmark": place.benchmark, "scenario": place.scenario}
    for row in _objects(manifest.get("rows")):
        if all(row.get(key) == value for key, value in own.items()):
            for leg in _objects(row.get("legs")):
                effort = leg.get("reasoning_effort")
                if leg.get("leg") == name and isinstance(effort, str):
                    return effort
    return None


def _objects(value: object) -> list[dict[str, object]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _one_run(text: str, path: PurePosixPath, place: RowPlace, pack: RulePack, detail: DetailLog) -> Iterator[Finding]:
    """The verdict's mean answer beside the one that LoadGen measured in the filed log."""
    said = numbers(text, MEAN)
    scenario = pack.benchmark(place.benchmark).scenarios.get(place.scenario)
    if not said or scenario is None:
        return
    try:
        measured = mean_answer_tokens(detail, scenario)
    except LogError:
        return  # told by the run's own checks
    if measured is None or not abs(said[-1] - measured) <= _SAME_MEAN * measured:
        found = f"a verdict on a mean of {said[-1]} tokens"
        expected = "a log with that mean" if measured is None else f"the {measured:.2f} that the filed log tells"
        yield R.RUN.broken(path, found, expected)
