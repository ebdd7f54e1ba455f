"""What a run's record says of it, for the report: everything but figures that are in other files."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from harness.ledger.record import RunRecord, State
from harness.ledger.store import StoredRun
from harness.report.book.content import RunView, Said, Severity, Subset
from harness.report.tables import result_text, verdict_word
from harness.rules import RulePack

UNREAD: Final = "unread"
KILLED: Final = "killed while it ran: it says that it runs, and no harness works in the results folder"
_UNKNOWN: Final = "not read"
_SEVERITIES: Final[Mapping[str, Severity]] = {"reject": "reject", "review": "review", "note": "note"}
_STATES: Final = {
    State.RUNNING: "it runs",
    State.MEASURED: "measured and not judged: --resume judges it",
    State.BROKEN: "it broke",
    State.INTERRUPTED: "it was interrupted",
}
_NS_PER_MS: Final = 1e6
_OF_A_LEG: Final = 5
"""Folders from the results folder to a run: system, benchmark, scenario, leg, attempt."""

Facts = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]


def recorded(run: StoredRun, root: Path, *, alive: bool) -> RunView:
    """The view of a run by its record alone. ``root`` is the results folder, ``alive`` whether one works there."""
    record = run.record
    accuracy = record.accuracy
    return RunView(
        key=key_of(str(record.id)),
        title=str(record.id),
        leg=record.id.leg,
        word=_word(record, alive=alive),
        headline=_headline(record, alive=alive),
        place=place_of(run.folder, root),
        started_at=record.started_at,
        seconds=_seconds(record),
        not_submittable=tuple(record.not_submittable),
        deviations=tuple(record.deviations),
        counts=tuple(_counts(record)),
        failure_kinds=tuple(sorted(record.failure_kinds.items(), key=lambda kind: (-kind[1], kind[0]))),
        failures=tuple(f"row {each.index}, {each.kind}: {each.message}" for each in record.failures),
        subsets=tuple(_subsets(record)),
        comparisons=tuple((each.figure, each.loadgen, each.harness, each.ratio) for each in record.comparisons),
        facts=tuple((group, pairs) for group, pairs in _facts(record) if pairs),
        findings=tuple(_findings(record)),
        probe=record.probe is not None,
        scores=() if accuracy is None else tuple(_scores(accuracy.key, accuracy.value, accuracy.also)),
    )


def unread(folder: Path, why: str, root: Path) -> RunView:
    """The view of a run whose record cannot be read, or that has none."""
    place = place_of(folder, root)
    parts = place.split("/")
    named = len(parts) == _OF_A_LEG
    title = "/".join(parts[:-1]) + "#" + parts[-1].removeprefix("attempt_").lstrip("0") if named else place
    return RunView(
        key=key_of(title), title=title, leg=parts[3] if named else "", word=UNREAD, headline=why, place=place
    )


def no_rules(record: RunRecord, pack: RulePack | None) -> str:
    """What is said of a run whose round is not known here (``pack`` is None), or knows no such benchmark."""
    if pack is None:
        return f"the run is of the round {record.round}, of which there are no rules here: no limits and no margins"
    return f"the round {record.round} has no rules of {record.id.benchmark}: no limits and no margins"


def key_of(text: str) -> str:
    """A text as letters, digits and ``-``."""
    return re.sub(r"[^A-Za-z0-9]+", "-", text).strip("-") or "run"


def unique(keys: Iterable[str]) -> list[str]:
    """Keys as they are, or with a number behind those that came before: names may differ in other signs alone."""
    taken: dict[str, None] = {}
    for key in keys:
        number, free = 1, key
        while free in taken:
            number += 1
            free = f"{key}-{number}"
        taken[free] = None
    return list(taken)


def place_of(folder: Path, root: Path) -> str:
    """Where a run lies, below the results folder."""
    return folder.relative_to(root).as_posix() if folder.is_relative_to(root) else folder.name


def flat(prefix: str, value: Any) -> Iterator[tuple[str, str]]:  # noqa: ANN401 - whatever was recorded
    """A value of JSON as dotted names and texts."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from flat(f"{prefix}.{key}", inner)
    else:
        yield prefix, _text(value)


def _pairs(values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for key, value in values.items():
        yield from flat(key, value)


def _text(value: Any) -> str:  # noqa: ANN401 - whatever was recorded
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value)) or "none"
    return "none" if value is None or value == {} else str(value)


def _word(record: RunRecord, *, alive: bool) -> str:
    return State.INTERRUPTED.value if record.state is State.RUNNING and not alive else verdict_word(record)


def _headline(record: RunRecord, *, alive: bool) -> str:
    if record.state is State.RUNNING and not alive:
        return KILLED
    text = result_text(record)
    if text or record.state is not State.FINISHED:
        return text or _STATES[record.state]
    rejects = [] if record.verdict is None else [f for f in record.verdict.findings if f.severity == "reject"]
    return f"no result: {rejects[0].rule} {rejects[0].found}".strip() if rejects else "no result"


def _seconds(record: RunRecord) -> float | None:
    """From start to end; None where there was none, or the times are none."""
    try:
        begun, ended = (datetime.datetime.fromisoformat(at or "") for at in (record.started_at, record.ended_at))
        return (ended - begun).total_seconds()
    except (ValueError, TypeError):  # a TypeError: only one of the two has a time zone
        return None


def _counts(record: RunRecord) -> Iterator[tuple[str, int]]:
    if record.counts is not None:
        yield from ((name.replace("_", " "), count) for name, count in record.counts.model_dump().items())
    if record.turns is not None:
        yield from ((f"turns {name}", count) for name, count in record.turns.model_dump().items())


def _subsets(record: RunRecord) -> Iterator[Subset]:
    for name, part in ({} if record.accuracy is None else record.accuracy.subsets).items():
        yield Subset(name, part.samples, part.correct, part.wrong, part.failed, part.unscored, part.mean_output_tokens)


def _scores(key: str, value: float | None, also: Mapping[str, float]) -> Iterator[tuple[str, float]]:
    if value is not None:
        yield key, value
    yield from also.items()


def _findings(record: RunRecord) -> Iterator[Said]:
    for each in [] if record.verdict is None else record.verdict.findings:
        severity = _SEVERITIES.get(each.severity, "review")
        yield Said(each.rule, severity, each.path, each.found, each.expected, each.mend, each.source)


def _facts(record: RunRecord) -> Iterator[tuple[str, tuple[tuple[str, str], ...]]]:
    yield "run", tuple(_of_the_run(record))
    yield "versions", tuple(record.versions.items())
    yield "machine", tuple((key, _UNKNOWN if v is None else _text(v)) for key, v in record.machine.facts.items())
    engine = record.engine
    yield (
        "engine",
        (
            ("kind", engine.kind),
            ("slots", str(engine.slots)),
            ("max_total_tokens", str(engine.max_total_tokens)),
            *((("replicas", _text(engine.replicas)),) if engine.replicas else ()),
            *_pairs(engine.versions),
            *_pairs(engine.settings),
        ),
    )
    yield "checkpoint", tuple(_pairs(engine.checkpoint or {}))
    yield "data set", tuple(_pairs(record.dataset.model_dump()))
    yield "settings", tuple(record.loadgen_settings.items())
    yield "client", tuple((name, str(count)) for name, count in (record.client_counters or {}).items())
    yield "turns", tuple(_of_turns(record))
    yield "fingerprint", (("digest", record.fingerprint.digest), *_pairs(record.fingerprint.keys))
    yield "files, sha256", tuple(record.hashes.items())


def _of_turns(record: RunRecord) -> Iterator[tuple[str, str]]:
    figures = record.turn_figures
    if figures is None:
        return
    if figures.mean_latency_ns is not None:
        yield "mean latency, ms", f"{figures.mean_latency_ns / _NS_PER_MS:,.3f}"
    if figures.turns_per_s is not None:
        yield "turns a second", f"{figures.turns_per_s:,.3f}"
    if figures.inline_score is not None:
        yield "inline score", f"{figures.inline_score:.4f}"
    yield from ((f"issued {trajectory}", str(times)) for trajectory, times in figures.issued.items())


def _of_the_run(record: RunRecord) -> Iterator[tuple[str, str]]:
    yield "round", record.round
    yield "state", record.state.value
    yield "command", " ".join(record.command)
    yield "started", record.started_at
    yield "ended", record.ended_at or "no"
    if record.test_run:
        yield "short", "yes (--test_run)"
    if record.rate is not None:
        yield "target_qps", f"{record.rate.target_qps:g} ({record.rate.origin})"
    if record.warmup is not None:
        warm = record.warmup
        yield "warm-up", f"{warm.answers} of {warm.requests} requests answered, {warm.samples_per_s:.2f} samples/s"
    if record.probe is not None:
        yield from flat("probe", record.probe.model_dump())
    if record.audit_config is not None:
        yield from flat("audit.config", record.audit_config.model_dump())
    if record.note:
        yield "note", record.note
