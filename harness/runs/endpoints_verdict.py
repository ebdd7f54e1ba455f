"""What a run of the endpoints client came to: the gate's verdict, the client's result, and both told a second time."""

from __future__ import annotations

import dataclasses
import datetime
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final

from harness.benchmarks.base import Benchmark, Dataset, Logged, Score
from harness.clients.endpoints.answers import Came
from harness.clients.endpoints.config import CONFIG, REPORT
from harness.clients.endpoints.events import EVENTS, INDEX, Phase
from harness.clients.endpoints.importer import Imported, hash_report
from harness.gate import endpoints_ledger_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.error_correction import check_run_memory
from harness.gate.findings import Finding, Severity, ordered
from harness.gate.metric import ResultMetric
from harness.gate.row_endpoints import EndpointsRow, check_endpoints_run
from harness.gate.row_layout import RowPlace
from harness.ledger.record import AccuracyEcho, Result, RunRecord, State, Verdict, VerdictFinding
from harness.logs import Document, read_config
from harness.logs.values import shown
from harness.rules import RulePack
from harness.runs.endpoints_expected import Departure, expected_pack, judged
from harness.runs.endpoints_recount import recounted
from harness.runs.endpoints_replay import Replay
from harness.runs.endpoints_turns import told_turns
from harness.runs.scoring import score_echo

_DIGITS: Final = 1e-9
_PERCENT, _WRITTEN = 100, 2
"""Parts of a score are in percent, written with so many digits."""
_SUBMITTER: Final = "submitter"


@dataclass(frozen=True, slots=True)
class Judgement:
    """What a run is judged with. ``dataset`` is what the client was given, row by row; None where it had its own.

    ``replay`` are the trajectories of the measured phase, None where it asks ``dataset`` too. ``told`` is whether the
    harness wrote the client's configuration: of an imported run it did not.
    """

    pack: RulePack
    departure: Departure
    division: str
    benchmark: Benchmark
    dataset: Dataset | None
    replay: Replay | None = None
    told: bool = True


def conclude(run_folder: Path, record: RunRecord, imported: Imported, judgement: Judgement) -> RunRecord:
    """The finished record of a run whose report lies in its folder."""
    run, pack = record.id, judgement.pack
    expected = expected_pack(pack, run.benchmark, run.scenario, judgement.departure)
    place = RowPlace(
        PurePosixPath(), judgement.division, _SUBMITTER, run.system, run.benchmark, run.scenario
    )  # fmt: skip
    row = check_endpoints_run(run_folder / REPORT, place, expected)
    score = _score(imported, judgement)
    rules = expected.benchmark(run.benchmark)
    of_turns, turns = judgement.replay is not None, told_turns(imported, judgement.replay, rules)
    held_to = rules.scenario(run.scenario)
    findings = [
        *judged(row.findings, judgement.departure, rules),
        *recounted(imported, judgement.dataset, expected, held_to, told=judgement.told, turns=of_turns),
        *(() if turns is None else turns.findings),
        *_rescored(imported, score, judgement.dataset),
        *check_run_memory(record, pack),
        *(_unlike_told(run_folder) if judgement.told else ()),
    ]
    marks = [*record.not_submittable, *(["failed samples"] if imported.failure_kinds else [])]
    return record.model_copy(
        update={
            "state": State.FINISHED,
            "ended_at": record.ended_at or datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
            "counts": imported.counts,
            "turns": None if turns is None else turns.counts,
            "turn_figures": None if turns is None else turns.figures,
            "failures": imported.failures,
            "failure_kinds": imported.failure_kinds,
            "client_counters": imported.latencies_ns or None,
            "loadgen_settings": _settings(run_folder / REPORT),
            "hashes": hash_report(run_folder),
            "verdict": _verdict(findings),
            "result": _result(row.metric, imported),
            "accuracy": _accuracy(row, imported, score, judgement),
            "comparisons": imported.comparisons,
            "not_submittable": list(dict.fromkeys(marks)),
        }
    )


def _verdict(findings: list[Finding]) -> Verdict:
    told = [
        VerdictFinding(**(dataclasses.asdict(finding) | {"severity": finding.severity.value}))
        for finding in ordered(findings)
    ]
    return Verdict(valid=all(f.severity is not Severity.REJECT for f in findings), loadgen=None, findings=told)


def _result(metric: ResultMetric | None, imported: Imported) -> Result | None:
    """The round's metric; of a report in the old form, of which the gate reads nothing, samples over seconds."""
    if metric is not None:
        return Result(key=metric.key, value=metric.value, units=metric.units)
    rate = imported.report.samples_per_second
    if imported.report.form == "split" or rate is None:
        return None
    return Result(key="results.total / results.elapsed_time", value=rate, units="Samples/s")


def _settings(report: Path) -> dict[str, str]:
    """What was asked of the client, as it resolved it: its runtime settings and its load pattern."""
    if not any((report / name).is_file() for name in ("config.yaml", "config.yml")):
        return {}
    settings = read_config(report).value("settings")
    if not isinstance(settings, dict):
        return {}
    sections = {name: settings.get(name) for name in ("runtime", "load_pattern", "warmup", "client")}
    return {
        f"{name}.{key}": str(value)
        for name, section in sections.items()
        if isinstance(section, dict)
        for key, value in section.items()
        if not isinstance(value, dict | list)
    }


def _score(imported: Imported, judgement: Judgement) -> Score | None:
    """The answers of the accuracy phase graded by the harness; None where that cannot be done.

    That takes our own rows, each asked once, and the client's events.
    """
    phase, dataset = _scored_phase(imported), judgement.dataset
    if phase is None or dataset is None or sorted(phase.rows.tolist()) != list(range(dataset.rows)):
        return None
    logged, empty = judgement.benchmark.logged, Came()
    pairs = sorted(enumerate(_our_rows(phase, judgement.replay)), key=lambda pair: pair[1])
    came = [(at, row, phase.answers[at] or empty) for at, row in pairs]
    failed = {row for at, row, answer in came if at in phase.errors or _says_nothing(answer, logged)}
    answers = ((row, answer.reply if logged == "reply" else answer.text.encode()) for _, row, answer in came)
    asked = dataclasses.replace(dataset, whole=True)  # all that the client was given: its score is of as much
    return judgement.benchmark.score(answers, asked, failed=failed, where=imported.report.folder / EVENTS)


def _our_rows(phase: Phase, replay: Replay | None) -> list[int]:
    """Which row of our table each sample of a phase is."""
    rows: list[int] = phase.rows.tolist()
    return rows if replay is None else [replay.places[row] for row in rows]


def _says_nothing(answer: Came, logged: Logged) -> bool:
    return answer.empty if logged == "reply" else not answer.text


def _scored_phase(imported: Imported) -> Phase | None:
    """The one phase of the data set that was scored; None where there are several, or none."""
    found = [imported.phases.get(one.name) for one in imported.report.scored]
    return found[0] if len(found) == 1 else None


def _accuracy(row: EndpointsRow, imported: Imported, score: Score | None, judgement: Judgement) -> AccuracyEcho | None:
    """The client's score, which is what is filed, with the harness's count of right and wrong where there is one."""
    version = " ".join(filter(None, ("inference-endpoint", imported.report.version, imported.report.commit)))
    theirs = row.accuracy
    if theirs is None:
        theirs = _first_score(imported)
    if theirs is None:
        return None
    if score is None:
        key = judgement.pack.benchmark(judgement.benchmark.name).accuracy_target.value.key
        return AccuracyEcho(key=key, value=theirs, subsets={}, evaluator=version)
    own = score_echo(score)
    whole = judgement.dataset is None or judgement.dataset.whole
    value = theirs if score.complete and whole else None
    return own.model_copy(update={"value": value, "evaluator": f"{version}; told a second time by {own.evaluator}"})


def _rescored(imported: Imported, score: Score | None, dataset: Dataset | None) -> Iterator[Finding]:
    """Where the client grades the answers otherwise. Samples without one are told of before."""
    if score is None and dataset is not None and _scored_phase(imported) is not None:
        yield R.RESCORED.broken(INDEX, "other rows in the scored phase", f"each of {dataset.rows} rows once")
    if score is None:
        return
    parts = next((one.parts for one in imported.report.scored if one.parts), {})
    theirs: Mapping[str, float | None] = parts
    if parts:
        own = _own_parts(score)
    else:
        own = {} if score.value is None else {score.key: score.value}
        theirs = dict.fromkeys(own, _first_score(imported))
    for key in own.keys() & (theirs.keys() | {score.key}):
        told = theirs.get(key)
        if told is None or not math.isclose(own[key], told, rel_tol=0, abs_tol=_DIGITS):
            yield R.RESCORED.broken(EVENTS, f"{key} {own[key]}", f"the client's {told}")


def _own_parts(score: Score) -> dict[str, float]:
    """The figures of a breakdown, in percent, of the rows that were asked, be they all or not."""
    if not score.samples or score.failed or score.unscored:
        return {}
    correct = sum(subset.correct for subset in score.subsets)
    return {**score.also, score.key: round(_PERCENT * correct / score.samples, _WRITTEN)}


def _first_score(imported: Imported) -> float | None:
    return next((one.score for one in imported.report.scored if one.score is not None), None)


def _unlike_told(run_folder: Path) -> Iterator[Finding]:
    """Where the configuration that the client wrote beside its report is not the one it was given."""
    given = Document.read_yaml(run_folder / CONFIG)
    resolved = read_config(run_folder / REPORT)
    for key, wanted, found in _differences(given.data, resolved.data):
        yield R.ASKED.broken(resolved.path.name, f"{key} {shown(found)}", shown(wanted))


def _differences(
    given: Mapping[str, Any], found: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, Any, Any]]:
    """What was given and is not there; what the client adds to it are its defaults, and nulls it leaves out."""
    for key, wanted in given.items():
        value, place = found.get(key), f"{prefix}{key}"
        if isinstance(wanted, dict) and isinstance(value, dict):
            yield from _differences(wanted, value, f"{place}.")
        elif isinstance(wanted, list) and isinstance(value, list) and len(wanted) == len(value):
            yield from _differences(_numbered(wanted), _numbered(value), f"{place}.")
        elif wanted != value:
            yield place, wanted, value


def _numbered(items: list[Any]) -> dict[str, Any]:
    return {str(at): item for at, item in enumerate(items)}
