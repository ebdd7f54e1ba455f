"""Checks of a row whose reports are the endpoints client's; of a tree, and of one run right after it ends."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from harness.gate import endpoints_rules as R  # noqa: N812 - a namespace of constants
from harness.gate import tree_rules
from harness.gate.endpoints_accuracy import ACCURACY_CHECKS, gate_value
from harness.gate.endpoints_config import CONFIG_CHECKS
from harness.gate.endpoints_facts import EndpointsFacts, at, read_configuration, read_document
from harness.gate.endpoints_metric import NoMetric, endpoints_metric
from harness.gate.endpoints_run import RUN_CHECKS, Check, guarded
from harness.gate.findings import Finding, Severity, Verdict, ordered, verdict
from harness.gate.index import TreeIndex, Unreadable
from harness.gate.metric import ResultMetric
from harness.gate.row_layout import RowPlace
from harness.logs import Document, EndpointsAudit, LogError
from harness.logs.values import shown
from harness.rules import RulePack
from harness.rules.layouts import EndpointsLayout

_NETWORK = "network"
_TURNS = "scores.json"
"""What the client writes of trajectories that it scored inline; not asked for."""


@dataclass(frozen=True, slots=True)
class EndpointsRow:
    """What a row's reports tell and all that is said of it; ``metric`` and ``accuracy`` are None where they do not.

    ``accuracy`` is the benchmark's own, over all of its data sets, in the units of its target.
    """

    metric: ResultMetric | None
    accuracy: float | None
    findings: tuple[Finding, ...] = field(repr=False)

    @property
    def verdict(self) -> Verdict:
        """The worst of the findings."""
        return verdict(self.findings)


def check_endpoints_run(folder: Path, place: RowPlace, pack: RulePack) -> EndpointsRow:
    """The checks of one run in the folder that the client wrote, before there is a tree.

    ``place`` says which row it is to be; paths of findings are relative to ``folder``.
    """
    index, here = TreeIndex(folder), dataclasses.replace(place, folder=PurePosixPath())
    row = check_endpoints_row(index, here, pack)
    absent = [] if pack.layouts.endpoints is None else list(_absent(index, here, pack.layouts.endpoints))
    return dataclasses.replace(row, findings=tuple(ordered([*absent, *row.findings])))


def check_endpoints_row(index: TreeIndex, place: RowPlace, pack: RulePack) -> EndpointsRow:
    """All that is wrong with a row's reports. What every row of a tree must have besides is checked elsewhere."""
    layout = pack.layouts.endpoints
    if layout is None or place.benchmark not in layout.benchmarks.value:
        return EndpointsRow(None, None, (R.ROUND.broken(place.folder, f"{place.benchmark} in {pack.round}"),))
    found: list[Finding] = []
    if place.division == _NETWORK:
        found.append(R.NETWORK.broken(place.folder, "a row of the network division"))
    facts = _facts(index, place, pack, layout, found)
    found += _checked(facts)
    found += _audits(index, facts)
    found += _turns(index, facts)
    return EndpointsRow(_metric(facts), _accuracy(facts), tuple(ordered(found)))


def _absent(index: TreeIndex, place: RowPlace, layout: EndpointsLayout) -> Iterator[Finding]:
    for role in ("config", "performance_summary", "accuracy_results"):
        names = _names(layout, role)
        if not any(index.has_content(place.folder / name) for name in names):
            yield tree_rules.FILE.broken(place.folder / names[0], "no such file, or an empty one")


def _names(layout: EndpointsLayout, role: str) -> list[str]:
    value = layout.files[role].value
    return [value] if isinstance(value, str) else value


def _facts(
    index: TreeIndex, place: RowPlace, pack: RulePack, layout: EndpointsLayout, found: list[Finding]
) -> EndpointsFacts:
    def paths(role: str) -> list[PurePosixPath]:
        return [place.folder / name for name in _names(layout, role)]

    there = [path for path in paths("config") if path in index.nodes]
    config = _read(index, paths("config")[0], found, lambda: read_configuration(index, paths("config")))
    if len(there) > 1:
        said = f"{' and '.join(path.name for path in there)}, of which {config.path.name} counts"
        found.append(R.CONTRADICTION.broken(config.path, said, "one configuration", severity=Severity.REVIEW))
    summary, accuracy = (_report(index, paths(role)[0], found) for role in ("performance_summary", "accuracy_results"))
    return EndpointsFacts(place, pack, layout, config, summary, accuracy, _told(index, place, layout))


def _told(index: TreeIndex, place: RowPlace, layout: EndpointsLayout) -> str:
    texts = []
    for role in ("readme", "measurements"):
        with contextlib.suppress(Unreadable):  # told where the files of a row are
            texts.append(index.read_text(place.folder / _names(layout, role)[0]))
    return "\n".join(texts)


def _report(index: TreeIndex, path: PurePosixPath, found: list[Finding]) -> Document:
    return _read(index, path, found, lambda: read_document(index, path, Document.read_json))


def _read(index: TreeIndex, path: PurePosixPath, found: list[Finding], read: Callable[[], Document]) -> Document:
    """A document, an empty one where there is none to be had; an absent file is told where the files of a row are."""
    nothing = Document(Path(path), {})
    if not any(index.file(one) for one in (path, path.with_suffix(".yml"))):
        return nothing
    try:
        document = read()
    except LogError as error:
        found.append(R.FILES.broken(at(error, path), error.what, error.expected))
        return nothing
    if not document.data:
        found.append(R.FILES.broken(document.path, "nothing in it"))
    return document


def _checked(facts: EndpointsFacts) -> Iterable[Finding]:
    checks: list[Check] = []
    if facts.config.data and facts.summary.data:
        checks += [*RUN_CHECKS, *CONFIG_CHECKS]
    if facts.accuracy.data:
        checks += ACCURACY_CHECKS
    return [finding for check in checks for finding in guarded(check, facts)]


def _audits(index: TreeIndex, facts: EndpointsFacts) -> Iterator[Finding]:
    for audit, ruled in facts.rules.endpoints_audits.items():
        path, rules = facts.place.folder / ruled.value.file, ruled.value
        if path not in index.nodes:
            if rules.required:
                yield R.AUDIT.broken(path, f"no report of {audit}", source=ruled.source)
            continue
        try:
            report = EndpointsAudit(read_document(index, path, Document.read_json))
            test, passed = report.test, report.passed
        except LogError as error:
            yield R.AUDIT.broken(at(error, path), error.what, source=ruled.source)
            continue
        if test != rules.test:
            yield R.AUDIT.broken(path, f"test {shown(test)}", rules.test, source=ruled.source)
        if passed is not True:
            yield R.AUDIT.broken(path, f"passed {shown(passed)}", source=ruled.source)


def _turns(index: TreeIndex, facts: EndpointsFacts) -> Iterator[Finding]:
    ruled = getattr(facts.rules, "missing_turns_at_most", None)
    path = facts.place.folder / _TURNS
    if ruled is None or not index.has_content(path):
        return
    try:
        missing = read_document(index, path, Document.read_json).integer("turns.missing")
    except LogError as error:
        yield R.TURNS.broken(at(error, path), error.what, severity=Severity.REVIEW)
        return
    if missing is None or missing > ruled.value:
        severity = None if facts.place.strict else Severity.REVIEW
        yield R.TURNS.broken(path, f"{missing} turns missing", severity=severity, source=ruled.source)


def _metric(facts: EndpointsFacts) -> ResultMetric | None:
    try:
        return endpoints_metric(facts)
    except (LogError, NoMetric):  # a finding of the run's checks
        return None


def _accuracy(facts: EndpointsFacts) -> float | None:
    value, _ = gate_value(facts)
    if value is not None:
        return value
    try:
        return next((one.score_number() for one in facts.accuracies if one.score is not None), None)
    except LogError:  # a finding of the accuracy's checks
        return None
