"""The run of a packaged row whose reports are the endpoints client's: one run is both of its phases."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, Final

from harness.gate.endpoints_accuracy import gate_value
from harness.gate.endpoints_facts import EndpointsFacts, read_configuration, read_document
from harness.logs import Document, EndpointsAudit, LogError, ScoredDataset
from harness.report.book.client_figures import client_figures, no_client_figures
from harness.report.book.content import Figure, Margin, RunView
from harness.report.book.limits import limits_of
from harness.report.book.margins import accuracy_margins, client_margins
from harness.report.book.run_record import UNREAD, flat, key_of
from harness.report.book.tree_files import TreeRow, rejects, said
from harness.rules.layouts import EndpointsLayout

LEG: Final = "endpoints"

_MEASURED: Final = ("config.yaml", "config.yml", "performance", "accuracy", "audit")
"""What of a row's folder the client wrote."""
_PARTS: Final = ("settings", "model_params")


def client_view(row: TreeRow, layout: EndpointsLayout) -> RunView:
    """The view of a row's run, by the client's reports."""
    facts = _facts(row, layout)
    findings = row.findings_below(*(row.folder / name for name in _MEASURED))
    metric = row.report.metric
    unread = not facts.summary.data
    return RunView(
        key=key_of(f"{row.folder}/{LEG}"),
        title=str(row.folder),
        leg=LEG,
        word=UNREAD if unread else "INVALID" if rejects(findings) else "VALID",
        headline="no result" if metric is None else f"{metric.value:,.2f} {metric.units}",
        place=str(row.folder),
        started_at=_text(facts, "test_datetime"),
        seconds=_seconds(facts),
        not_submittable=row.marks,
        deviations=row.deviations,
        margins=_margins(row, facts),
        figures=_figures(row, facts),
        counts=tuple(_counts(facts)),
        scores=tuple(scores_of(facts).items()),
        facts=tuple((group, pairs) for group, pairs in _groups(row, facts) if pairs),
        findings=tuple(map(said, findings)),
    )


def scores_of(facts: EndpointsFacts) -> dict[str, float]:
    """What was scored: the benchmark's own number by the round's key, its further ones, then each data set's."""
    value, _ = gate_value(facts)
    found = {} if value is None else {facts.target.value.key: value}
    with contextlib.suppress(LogError):  # told by the gate
        for one in facts.scored:
            with contextlib.suppress(LogError):
                found |= _further(one, facts)
                found.setdefault(one.name or "a data set without a name", one.score_number())
    return found


def _further(one: ScoredDataset, facts: EndpointsFacts) -> dict[str, float]:
    """The benchmark's further targets, which a data set's breakdown tells."""
    if (breakdown := one.breakdown) is None:
        return {}
    keys = (ruled.value.key for ruled in facts.rules.accuracy_more_targets)
    return {key: value for key in keys if (value := breakdown.number(key)) is not None}


def audit_words(row: TreeRow) -> dict[str, str]:
    """What each audit of the row came to that has a verdict there, or must have one: PASS, FAIL or what is lacking."""
    found: dict[str, str] = {}
    for name, ruled in row.pack.benchmark(row.report.place.benchmark).endpoints_audits.items():
        path = row.folder / ruled.value.file
        if row.index.file(path) is None:
            found |= {name: "no verdict"} if ruled.value.required else {}
            continue
        try:
            passed = EndpointsAudit(read_document(row.index, path, Document.read_json)).passed
        except LogError as error:
            found[name] = error.what
        else:
            found[name] = "PASS" if passed is True else "FAIL"
    return found


def _facts(row: TreeRow, layout: EndpointsLayout) -> EndpointsFacts:
    """The reports; what cannot be read is empty, and the gate says why."""

    def paths(role: str) -> list[PurePosixPath]:
        value = layout.files[role].value
        return [row.folder / name for name in ([value] if isinstance(value, str) else value)]

    def report(role: str) -> Document:
        with contextlib.suppress(LogError):
            return read_document(row.index, paths(role)[0], Document.read_json)
        return Document(Path(paths(role)[0]), {})

    config = Document(Path(paths("config")[0]), {})
    with contextlib.suppress(LogError):
        config = read_configuration(row.index, paths("config"))
    summary, accuracy = report("performance_summary"), report("accuracy_results")
    return EndpointsFacts(row.report.place, row.pack, layout, config, summary, accuracy)


def _margins(row: TreeRow, facts: EndpointsFacts) -> tuple[Margin, ...]:
    place = row.report.place
    scores: dict[str, float | None] = dict(scores_of(facts))
    return (
        *client_margins(facts.log, row.pack, place.benchmark, place.scenario),
        *accuracy_margins(scores, row.pack, place.benchmark, place.scenario, "endpoints"),
    )


def _figures(row: TreeRow, facts: EndpointsFacts) -> tuple[Figure, ...]:
    if not facts.summary.data:
        return no_client_figures("the client's report of what it measured is not there, or cannot be read")
    return client_figures(facts.summary, limits_of(row.pack, row.report.place.benchmark, row.report.place.scenario))


def _counts(facts: EndpointsFacts) -> Iterator[tuple[str, int]]:
    for name, role in (("issued", "issued"), ("answered", "completed"), ("failed", "failed")):
        with contextlib.suppress(LogError):
            count = facts.integer(role)
            if count is not None:
                yield name, count


def _seconds(facts: EndpointsFacts) -> float | None:
    with contextlib.suppress(LogError):
        lasted_ns = facts.number("duration_ns")
        return None if lasted_ns is None else lasted_ns / 1e9
    return None


def _text(facts: EndpointsFacts, key: str) -> str | None:
    with contextlib.suppress(LogError):
        return facts.log.text(key)
    return None


def _groups(row: TreeRow, facts: EndpointsFacts) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    filed = row.leg(LEG)
    named = ("run", "attempt", "attempts_total", "fingerprint")
    yield "filed run", tuple((key, str(filed[key])) for key in named if filed.get(key) is not None)
    yield "versions", tuple(_versions(row, facts))
    yield "machine", tuple((key, str(value)) for key, value in row.system.items() if value not in (None, ""))
    yield "weights", tuple((key, str(value)) for key, value in row.measurements.items())
    yield "settings", tuple(pair for part in _PARTS for pair in flat(part, _part(facts.config, part)))


def _part(config: Document, name: str) -> Any:  # noqa: ANN401 - whatever was configured
    value = config.data.get(name)
    return value if isinstance(value, dict) else {}


def _versions(row: TreeRow, facts: EndpointsFacts) -> Iterator[tuple[str, str]]:
    for name, key in (("endpoints client", "version"), ("endpoints client, commit", "git_sha")):
        value = facts.summary.data.get(key)
        if isinstance(value, str) and value:
            yield name, value
    if row.submitter.made_by is not None:
        yield "packaged by harness", row.submitter.made_by
    engine = row.leg(LEG).get("engine")
    if isinstance(engine, dict):
        yield from flat("engine", engine)
