"""What the client reports, in both of the forms that it has had.

::

    config.yaml                          what it was told, resolved
    performance/result_summary.json      what it measured             (now)
    accuracy/accuracy_results.json       what it scored               (now)
    results.json                         both, and every answer       (before July 2026)
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal

import orjson

from harness.errors import ConfigError, MissingError
from harness.logs import AccuracyResults, Document, EndpointsLog, LogError, ScoredDataset
from harness.logs.endpoints import ACCURACY_RESULTS, COMPLETED, CONFIGS, DURATION_NS, FAILED, ISSUED, RESULT_SUMMARY

Form = Literal["split", "single"]

SINGLE: Final = PurePosixPath("results.json")
PERFORMANCE: Final = "performance"
"""The phase of the measured run; those of accuracy are called as their data sets are in the configuration."""
_NS_PER_S: Final = 1e9
_PARTS: Final = ("category_scores", "subset_scores")
_MAX_SINGLE_BYTES: Final = 1 << 31
"""The old form holds every answer of both phases: some tens of megabytes a pass."""
_FIGURES: Final = tuple(
    f"{series}.{figure}"
    for series in ("latency", "ttft", "tpot")
    for figure in ("avg", "percentiles.50.0", "percentiles.99.0", "early_stopping_percentiles.99.0")
)
"""Latencies that are kept of a report, by their place in it."""


@dataclass(frozen=True, slots=True)
class Scored:
    """What the client says of one data set that it scored; None for what its form does not tell.

    ``parts`` are the figures of its breakdown, categories among them, by name.
    """

    name: str
    score: float | None
    samples: int | None
    issued: int | None = None
    scored: int | None = None
    empty: int | None = None
    missing: int | None = None
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClientReport:
    """A report, whichever its form. Times in ns; None for what is not told.

    ``completed`` has failed samples among it. ``figures`` are latencies in ns by their key in the report, those that a
    number is told for. ``inline`` is the score of the measured answers, where the client scored those too.
    """

    folder: Path
    form: Form
    issued: int | None
    completed: int | None
    failed: int | None
    duration_ns: float | None
    qps: float | None
    tokens: int | None
    version: str | None
    commit: str | None
    figures: Mapping[str, float] = field(default_factory=dict)
    scored: tuple[Scored, ...] = ()
    inline: float | None = None

    @property
    def samples_per_second(self) -> float | None:
        """Samples issued over the duration."""
        if not self.issued or not self.duration_ns:
            return None
        return self.issued / (self.duration_ns / _NS_PER_S)


def find_report(folder: Path) -> Path:
    """The folder that holds a report: the one that is named, or ``report`` in it (a run's folder was named).

    MissingError where there is no such folder, ConfigError where no report of the client is in it.
    """
    if not folder.is_dir():
        raise MissingError("there is no such folder to import", where=folder, mend="name the client's report_dir")
    for place in (folder, folder / "report"):
        if any((place / name).is_file() for name in (RESULT_SUMMARY, SINGLE)):
            return place
    raise ConfigError(
        "no report of the endpoints client is in this folder",
        where=folder,
        expected=f"{RESULT_SUMMARY}, or {SINGLE} of clients before July 2026",
        mend="name the client's report_dir; of a run that was ended before its end there is nothing to import",
    )


def read_report(folder: Path) -> ClientReport:
    """Reads a report. LogError, with file and key, where it is not as the client writes it."""
    if (folder / RESULT_SUMMARY).is_file():
        return _split(folder)
    return _single(folder)


def report_files(folder: Path) -> list[PurePosixPath]:
    """The files of a report, below its folder, by path. Links and what begins with a dot are none of the client's."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    inner = (PurePosixPath(path.relative_to(folder).as_posix()) for path in found)
    return [path for path in inner if not any(part.startswith(".") for part in path.parts)]


def _split(folder: Path) -> ClientReport:
    summary = Document.read_json(folder / RESULT_SUMMARY)
    log = EndpointsLog(summary, Document(folder / CONFIGS[0], {}))
    series = summary.child("output_sequence_lengths")
    told = {key: log.number(key) for key in _FIGURES}
    return ClientReport(
        folder=folder,
        form="split",
        issued=log.integer(ISSUED),
        completed=log.integer(COMPLETED),
        failed=log.integer(FAILED),
        duration_ns=log.number(DURATION_NS),
        qps=log.number("qps"),
        tokens=None if series is None else _whole(series.number("total")),
        version=summary.text("version"),
        commit=summary.text("git_sha"),
        figures={key: float(value) for key, value in told.items() if value is not None},
        scored=tuple(_scored(folder)),
        inline=_inline(folder),
    )


def _entries(folder: Path) -> tuple[ScoredDataset, ...]:
    if not (folder / ACCURACY_RESULTS).is_file():
        return ()
    document = Document.read_json(folder / ACCURACY_RESULTS)
    return AccuracyResults.of(EndpointsLog(document, Document(folder, {}))).scored


def _inline(folder: Path) -> float | None:
    measured = [one for one in _entries(folder) if one.dataset_type == PERFORMANCE and one.score is not None]
    return measured[0].score_number() if measured else None


def _scored(folder: Path) -> Iterator[Scored]:
    for one in _entries(folder):
        if not one.is_accuracy:
            continue
        counts = one.response_counts
        score = None if one.score is None else one.score_number()
        told = {key: counts.get(key) for key in ("issued", "scored", "empty", "missing")}
        inner = [] if one.breakdown is None else [one.breakdown, *(one.breakdown.child(name) for name in _PARTS)]
        parts = {name: value for each in inner for name, value in _numbers(each).items()}
        yield Scored(one.name or "", score, one.samples, **told, parts=parts)


def _numbers(document: Document | None) -> dict[str, float]:
    """The numbers of an object, by key."""
    data = {} if document is None else document.data
    return {key: float(v) for key, v in data.items() if isinstance(v, int | float) and not isinstance(v, bool)}


def _single(folder: Path) -> ClientReport:
    document = _read_single(folder / SINGLE)
    results = document.child("results")
    if results is None:
        raise document.wrong("results", "an object")
    issued, failed = results.integer("total"), results.integer("failed")
    seconds = results.number("elapsed_time")
    return ClientReport(
        folder=folder,
        form="single",
        issued=issued,
        completed=issued,
        failed=failed,
        duration_ns=None if seconds is None else seconds * _NS_PER_S,
        qps=results.number("qps"),
        tokens=None,
        version=None,
        commit=None,
        scored=_old_scores(document),
    )


def _old_scores(document: Document) -> tuple[Scored, ...]:
    """Of the old form an object by data set: how many rows, how often, and the score."""
    scores = document.child("accuracy_scores")
    if scores is None:
        return ()
    found = []
    for name in scores.data:
        entry = Document(document.path, _object(scores, name), f"{scores.prefix}{name}.")
        rows, repeats, score = entry.integer("num_samples"), entry.integer("n_repeats"), entry.value("score")
        number = score.get("f1", score.get("score")) if isinstance(score, dict) else score
        whole = None if rows is None else rows * (repeats or 1)
        found.append(Scored(name, Document(document.path, {"score": number}, entry.prefix).number("score"), whole))
    return tuple(found)


def _object(scores: Document, name: str) -> Mapping[str, Any]:
    entry = scores.data[name]
    if not isinstance(entry, dict):
        raise LogError(f"{scores.prefix}{name} is no object", scores.path)
    return entry


def _read_single(path: Path) -> Document:
    """The old form without its answers, which may be large."""
    try:
        if path.stat().st_size > _MAX_SINGLE_BYTES:
            raise LogError("larger than any report of the client's", path)
        found = orjson.loads(path.read_bytes())
    except OSError as error:
        raise LogError(f"cannot be read: {error.strerror}", path) from None
    except orjson.JSONDecodeError as error:
        raise LogError(f"not JSON: {error}", path) from None
    if not isinstance(found, dict):
        raise LogError(f"a JSON {type(found).__name__}", path, expected="an object")
    return Document(path, {key: value for key, value in found.items() if key != "responses"})


def _whole(number: float | None) -> int | None:
    return None if number is None else int(number)
