"""Checks of a row whose logs are LoadGen's: its files, its two runs, what was measured and how accurate it was."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePosixPath

from harness.gate import tree_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.accuracy_log import check_accuracy_log
from harness.gate.accuracy_text import AccuracyText, check_accuracy_text, check_more_targets
from harness.gate.audits import check_audits, read_audit_logs
from harness.gate.file_lists import check_file_lists
from harness.gate.findings import Finding
from harness.gate.index import TreeIndex, Unreadable
from harness.gate.leg_facts import DETAIL, SUMMARY, of_leg, read_summary
from harness.gate.metric import ResultMetric, result_metric
from harness.gate.network import check_sut_name
from harness.gate.row_layout import ACCURACY_FOLDER, RUN, RowPlace
from harness.gate.run import check_run, unreadable
from harness.gate.run_facts import ACCURACY, PERFORMANCE, Coverage, Expectation
from harness.logs import DetailLog, LogError
from harness.rules import BenchmarkRules, Ruled, RulePack, ScenarioRules
from harness.rules.values import Target

ACCURACY_JSON = "mlperf_log_accuracy.json"
ACCURACY_TXT = "accuracy.txt"


def check_loadgen_row(
    index: TreeIndex, place: RowPlace, pack: RulePack
) -> tuple[ResultMetric | None, float | None, list[Finding]]:
    """Metric, accuracy (each None where the row does not tell it) and findings of a row in LoadGen's layout."""
    rules = pack.benchmark(place.benchmark)
    text, found = _accuracy_text(index, place, rules)
    hashes = () if text is None else text.hashes
    rows = Expectation.of_round(pack, place.benchmark, place.scenario, ACCURACY).dataset_rows
    path = place.folder / ACCURACY_FOLDER / ACCURACY_JSON
    coverage, log_findings = check_accuracy_log(index, path, hashes, pack, rows)
    found += log_findings
    logs: dict[str, DetailLog] = {}
    for leg, folder in ((PERFORMANCE, RUN), (ACCURACY, ACCURACY_FOLDER)):
        detail, leg_findings = _leg(index, place, pack, leg, place.folder / folder, coverage)
        found += leg_findings
        if detail is not None:
            logs[leg] = detail
    audits = read_audit_logs(index, place, pack)
    found += _versions(place, {**logs, **audits.details})
    found += check_audits(index, place, pack, audits)
    found += check_file_lists(index, place.folder, pack)
    if PERFORMANCE in logs:
        found += check_sut_name(index, place, place.folder / RUN / DETAIL, logs[PERFORMANCE].value("sut_name"), pack)
    return _metric(logs.get(PERFORMANCE), place, pack), None if text is None else text.value, found


def _accuracy_text(
    index: TreeIndex, place: RowPlace, rules: BenchmarkRules
) -> tuple[AccuracyText | None, list[Finding]]:
    path = place.folder / ACCURACY_FOLDER / ACCURACY_TXT
    if not index.has_content(path):
        return None, []
    target = _target(place, rules)
    try:
        content = index.read_text(path)
    except Unreadable as error:
        return None, [R.ACCURACY_TEXT.broken(path, str(error))]
    text = AccuracyText.parse(content, rules, target.value.at_least)
    found = [*check_accuracy_text(text, path, rules, target, place.strict)]
    return text, [*found, *check_more_targets(content, path, rules, place.strict)]


def _target(place: RowPlace, rules: BenchmarkRules) -> Ruled[Target]:
    """The target of the scenario; of one that the round has no rules for, the benchmark's."""
    if place.scenario in rules.scenarios:
        return rules.target(place.scenario)
    return rules.loadgen_accuracy_target or rules.accuracy_target


def _leg(
    index: TreeIndex, place: RowPlace, pack: RulePack, leg: str, folder: PurePosixPath, coverage: Coverage | None
) -> tuple[DetailLog | None, list[Finding]]:
    """The leg's detail log (None where it cannot be read) and what its run's checks find."""
    found: list[Finding] = []
    path = folder / DETAIL
    if not index.has_content(path):
        return None, found
    try:
        with index.opened(path) as file:
            detail = DetailLog.read(file)
    except LogError as error:
        return None, [unreadable(error, str(path))]
    summary = read_summary(index, folder / SUMMARY, found)
    facts = of_leg(place, pack, leg, folder, detail, summary, coverage if leg == ACCURACY else None)
    return detail, found + check_run(facts)


def _versions(place: RowPlace, logs: dict[str, DetailLog]) -> Iterator[Finding]:
    versions = {leg: str(log.value("loadgen_version")) for leg, log in logs.items()}
    if len(set(versions.values())) > 1:
        yield R.VERSIONS.broken(place.folder, ", ".join(f"{leg}: {version}" for leg, version in versions.items()))


def _metric(detail: DetailLog | None, place: RowPlace, pack: RulePack) -> ResultMetric | None:
    rules = _metric_rules(place, pack)
    if detail is None or rules is None:
        return None
    try:
        return result_metric(detail, rules)
    except LogError:  # a finding of the run's checks
        return None


def _metric_rules(place: RowPlace, pack: RulePack) -> ScenarioRules | None:
    """Where the metric is; of a scenario that the benchmark has no rules for, where another has it that counts no
    tokens: LoadGen logs it the same way. None where none has.
    """
    own = pack.benchmark(place.benchmark).scenarios.get(place.scenario)
    others = (rules for rules in pack.benchmarks.values() if not rules.use_token_latencies.value)
    return own or next((o.scenarios[place.scenario] for o in others if place.scenario in o.scenarios), None)
