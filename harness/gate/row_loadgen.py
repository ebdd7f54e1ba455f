"""Checks of a row whose logs are LoadGen's: its files, its two runs, what was measured and how accurate it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from harness.gate import run_rules
from harness.gate import tree_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.accuracy_text import AccuracyText, check_accuracy_text, check_shortened_log, is_shortened
from harness.gate.file_lists import check_file_lists
from harness.gate.findings import Finding
from harness.gate.index import TreeIndex, Unreadable
from harness.gate.metric import ResultMetric, result_metric
from harness.gate.network import check_sut_name
from harness.gate.row_layout import ACCURACY_FOLDER, RUN, RowPlace
from harness.gate.run import check_run, unreadable
from harness.gate.run_facts import ACCURACY, PERFORMANCE, Coverage, Expectation, RunFacts
from harness.logs import AccuracyLog, DetailLog, LogError, SummaryLog
from harness.rules import BenchmarkRules, RulePack

DETAIL = "mlperf_log_detail.txt"
SUMMARY = "mlperf_log_summary.txt"
ACCURACY_JSON = "mlperf_log_accuracy.json"
ACCURACY_TXT = "accuracy.txt"

_AUDIT_VERDICT = "TEST PASS"
_AUDIT_FILES = {"TEST07": "verify_accuracy.txt", "TEST09": "verify_output_len.txt"}


def check_loadgen_row(
    index: TreeIndex, place: RowPlace, pack: RulePack
) -> tuple[ResultMetric | None, float | None, list[Finding]]:
    """Metric, accuracy (each None where the row does not tell it) and findings of a row in LoadGen's layout."""
    rules = pack.benchmark(place.benchmark)
    text, found = _accuracy_text(index, place, rules)
    found += check_shortened_log(index, place.folder / ACCURACY_FOLDER / ACCURACY_JSON, text, pack)
    logs: dict[str, DetailLog] = {}
    for leg, folder in ((PERFORMANCE, RUN), (ACCURACY, ACCURACY_FOLDER)):
        detail, leg_findings = _leg(index, place, pack, leg, place.folder / folder)
        found += leg_findings
        if detail is not None:
            logs[leg] = detail
    found += _versions(place, logs)
    found += _audits(index, place, rules)
    found += check_file_lists(index, place.folder, pack)
    if PERFORMANCE in logs:
        found += check_sut_name(index, place, place.folder / RUN / DETAIL, logs[PERFORMANCE].value("sut_name"), pack)
    value = text.values[0] if text is not None and len(text.values) == 1 else None
    return _metric(logs.get(PERFORMANCE), place, rules), value, found


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
    if not index.has_content(path):
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
    if not index.has_content(path):
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
    if not index.has_content(path):
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
