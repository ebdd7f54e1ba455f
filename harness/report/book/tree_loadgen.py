"""The legs of a packaged row whose logs are LoadGen's."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, Final

from harness.gate import audit_verdict, leg_facts
from harness.gate.index import Unreadable
from harness.gate.leg_facts import of_leg
from harness.gate.row_layout import ACCURACY_FOLDER, RUN
from harness.gate.row_loadgen import ACCURACY_TXT
from harness.gate.run_facts import ACCURACY, PERFORMANCE, applied
from harness.ledger.record import AuditEcho
from harness.logs import DetailLog, LogError
from harness.report.book.accuracy_texts import scores_of, subsets_of
from harness.report.book.content import Figure, Margin, RunView
from harness.report.book.limits import Limits, limits_of
from harness.report.book.logged import logged_facts, logged_figures
from harness.report.book.margins import accuracy_margins, audit_margins, loadgen_margins
from harness.report.book.run_record import UNREAD, flat, key_of
from harness.report.book.sample_figures import all_missing
from harness.report.book.tree_files import TreeRow, rejects, said
from harness.rules.audits import AuditRules

_SETTINGS: Final = "effective_"
_CLOCK: Final = "%m-%d-%Y %H:%M:%S.%f"


@dataclass(frozen=True, slots=True)
class Leg:
    """A leg of a row: its name, its own folder, and the one that its detail log is in."""

    name: str
    folder: PurePosixPath
    logs: PurePosixPath


def legs_of(row: TreeRow) -> list[Leg]:
    """The legs that a row has or must have, the performance leg first; audits only where they are there."""
    audits = row.pack.benchmark(row.report.place.benchmark).audit_rules
    found = [
        Leg(PERFORMANCE, row.folder / RUN, row.folder / RUN),
        Leg(ACCURACY, row.folder / ACCURACY_FOLDER, row.folder / ACCURACY_FOLDER),
    ]
    there = [name for name in audits if row.index.is_folder(row.folder / name)]
    return [*found, *(Leg(name, row.folder / name, row.folder / name / RUN) for name in there)]


def leg_view(row: TreeRow, leg: Leg, why_no_more: str) -> RunView:
    """The view of one leg, by the logs that are in the tree. ``why_no_more`` stands in place of figures that they do
    not tell.
    """
    findings = row.findings_below(leg.folder)
    head: dict[str, Any] = {
        "key": key_of(str(leg.folder)),
        "title": str(leg.folder),
        "leg": leg.name,
        "place": str(leg.folder),
        "not_submittable": row.marks,
        "deviations": row.deviations,
        "findings": tuple(map(said, findings)),
    }
    try:
        detail = _detail(row, leg)
    except LogError as error:
        return RunView(
            **head, word=UNREAD, headline=f"{leg_facts.DETAIL}: {error.what}", figures=all_missing(error.what)
        )
    return RunView(
        **head,
        word="INVALID" if rejects(findings) else "VALID",
        headline=_headline(row, leg),
        started_at=_started(detail),
        seconds=_seconds(detail),
        margins=_margins(row, leg, detail),
        figures=_figures(row, leg, detail, why_no_more),
        counts=tuple(_counts(detail)),
        subsets=subsets_of(_text(row, leg)) if leg.name != PERFORMANCE else (),
        scores=tuple(_scores(row, leg).items()),
        facts=tuple((group, pairs) for group, pairs in _facts(row, leg, detail) if pairs),
    )


def audit_word(row: TreeRow, name: str) -> str:
    """What an audit came to: PASS, FAIL, or what is lacking."""
    rules = row.pack.benchmark(row.report.place.benchmark).audit_rules[name]
    text = _verdict_text(row, name)
    if text is None:
        return "no verdict"
    return "PASS" if _passed(text, rules) else "FAIL"


def _detail(row: TreeRow, leg: Leg) -> DetailLog:
    """LogError where it is not there or cannot be read."""
    path = leg.logs / leg_facts.DETAIL
    if row.index.file(path) is None:
        raise LogError("no such file", row.index.locate(path))
    with row.index.opened(path) as file:
        return DetailLog.read(file)


def _headline(row: TreeRow, leg: Leg) -> str:
    if leg.name == PERFORMANCE:
        metric = row.report.metric
        return "no result" if metric is None else f"{metric.value:,.2f} {metric.units}"
    if leg.name == ACCURACY:
        told = ", ".join(f"{name} {value:g}" for name, value in _scores(row, leg).items())
        return told or "accuracy.txt tells no number"
    echo = _audit(row, leg.name)
    return "no verdict that tells a number" if echo is None else str(echo)


def _started(detail: DetailLog) -> str | None:
    """When the first query was issued, in ISO form; LoadGen's wall clock tells no time zone."""
    with contextlib.suppress(LogError, ValueError):  # what is no time is a finding of the run's checks
        told = detail.text("power_begin")
        begun = None if told is None else datetime.datetime.strptime(told, _CLOCK)
        return None if begun is None else begun.isoformat(timespec="milliseconds")
    return None


def _seconds(detail: DetailLog) -> float | None:
    with contextlib.suppress(LogError):  # a finding of the run's checks
        return None if detail.wall_span_ns is None else detail.wall_span_ns / 1e9
    return None


def _margins(row: TreeRow, leg: Leg, detail: DetailLog) -> tuple[Margin, ...]:
    place = row.report.place
    if leg.name == PERFORMANCE:
        facts = of_leg(place, row.pack, leg.name, leg.logs, detail, None, None)
        ruled = applied(facts.rules, facts.scenario) is not None  # open may run what the round asks nothing of
        return loadgen_margins(facts) if ruled else ()
    if leg.name == ACCURACY:
        return accuracy_margins(dict(_scores(row, leg)), row.pack, place.benchmark, place.scenario, "loadgen")
    echo = _audit(row, leg.name)
    rules = row.pack.benchmark(place.benchmark).audit_rules[leg.name]
    source = rules.score.source if rules.score is not None else rules.pass_text.source
    if rules.mean_output_tokens is not None:
        source = rules.mean_output_tokens.source
    return () if echo is None else audit_margins(leg.name, echo, source)


def _figures(row: TreeRow, leg: Leg, detail: DetailLog, why_no_more: str) -> tuple[Figure, ...]:
    """LoadGen's percentiles of what it measured; accuracy legs are not measured."""
    place = row.report.place
    limits = limits_of(row.pack, place.benchmark, place.scenario) if leg.name == PERFORMANCE else Limits()
    logged = logged_figures(detail, limits) if leg.name != ACCURACY else ()
    keys = {figure.key for figure in logged}
    return (*logged, *(figure for figure in all_missing(why_no_more) if figure.key not in keys))


def _counts(detail: DetailLog) -> Iterator[tuple[str, int]]:
    """What LoadGen tells. It knows of no failed samples."""
    with contextlib.suppress(LogError):
        if detail.issued_samples is not None:
            yield "issued", detail.issued_samples


def _scores(row: TreeRow, leg: Leg) -> dict[str, float]:
    if leg.name == ACCURACY:
        rules, scenario = row.pack.benchmark(row.report.place.benchmark), row.report.place.scenario
        target = rules.target(scenario) if scenario in rules.scenarios else rules.accuracy_target
        return scores_of(_text(row, leg), rules, target)
    echo = None if leg.name == PERFORMANCE else _audit(row, leg.name)
    return {} if echo is None or echo.value is None else {echo.key: echo.value}


def _text(row: TreeRow, leg: Leg) -> str:
    """What is said of a leg's answers: its accuracy.txt, or the verdict of an audit; empty where it cannot be read."""
    if leg.name != ACCURACY:
        return _verdict_text(row, leg.name) or ""
    with contextlib.suppress(Unreadable):  # told by the gate
        return row.index.read_text(leg.folder / ACCURACY_TXT)
    return ""


def _verdict_text(row: TreeRow, name: str) -> str | None:
    rules = row.pack.benchmark(row.report.place.benchmark).audit_rules[name]
    with contextlib.suppress(Unreadable):
        return row.index.read_text(row.folder / name / rules.verdict_file.value)
    return None


def _passed(text: str, rules: AuditRules) -> bool:
    lines = {line.strip() for line in text.splitlines()}
    return rules.pass_text.value in lines and audit_verdict.FAIL not in lines


def _audit(row: TreeRow, name: str) -> AuditEcho | None:
    """The number of an audit by its verdict file; None where it tells none."""
    rules, text = row.pack.benchmark(row.report.place.benchmark).audit_rules[name], _verdict_text(row, name)
    if text is None:
        return None
    most: float | None = None
    if rules.score is not None:
        key, label, least = rules.score.value.key, "Accuracy score", rules.score.value.at_least
    elif rules.mean_output_tokens is not None:
        window = rules.mean_output_tokens.value
        key, label, least, most = "mean_output_tokens", audit_verdict.MEAN, window.at_least, window.at_most
    else:
        return None
    told = audit_verdict.numbers(text, label)
    if not told:
        return None
    return AuditEcho(
        key=key,
        value=told[-1],
        at_least=least,
        at_most=most,
        passed=_passed(text, rules) and told[-1] >= least,
        verdict_file=rules.verdict_file.value,
        verifier="told by the tree",
        harness_value=None,
    )


def _facts(row: TreeRow, leg: Leg, detail: DetailLog) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    filed = row.leg(leg.name)
    named = ("run", "attempt", "attempts_total", "fingerprint", "reasoning_effort")
    yield "filed run", tuple((key, str(filed[key])) for key in named if filed.get(key) is not None)
    yield "versions", tuple(_versions(row, filed.get("engine"), str(detail.value("loadgen_version") or "not told")))
    yield "machine", tuple((key, str(value)) for key, value in row.system.items() if value not in (None, ""))
    yield "weights", tuple((key, str(value)) for key, value in row.measurements.items())
    settings = (
        (key.removeprefix(_SETTINGS), value) for key, value in detail.values.items() if key.startswith(_SETTINGS)
    )
    yield "LoadGen says", logged_facts(detail)
    yield "settings", tuple(pair for key, value in settings for pair in flat(key, value))


def _versions(row: TreeRow, engine: object, loadgen: str) -> Iterator[tuple[str, str]]:
    yield "LoadGen", loadgen
    if row.submitter.made_by is not None:
        yield "packaged by harness", row.submitter.made_by
    if isinstance(engine, dict):
        yield from flat("engine", engine)
