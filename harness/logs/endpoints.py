"""Reader of one scenario's folder as the endpoints client's results are filed.

::

    config.yaml                        or config.yml: what the client was told
    performance/result_summary.json    what it measured
    accuracy/accuracy_results.json     what was scored
    audit/audit_<name>.json            verdicts of audits, if any

A value is looked up as the official checker does: first in the report (the measured or the scored one), then in the
configuration, in each under more than one name. So a name in the report hides a setting: :attr:`EndpointsLog.
contradictions` tells where the places differ.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from harness.logs.documents import Document, NotParsable
from harness.logs.errors import LogError
from harness.logs.values import TypedValues

CONFIGS = (PurePosixPath("config.yaml"), PurePosixPath("config.yml"))
RESULT_SUMMARY = PurePosixPath("performance/result_summary.json")
ACCURACY_RESULTS = PurePosixPath("accuracy/accuracy_results.json")
AUDITS = PurePosixPath("audit")

SCENARIO = "effective_scenario"
MIN_DURATION_MS = "min_duration_ms"
SAMPLE_INDEX_SEED = "effective_sample_index_rng_seed"
SCHEDULE_SEED = "effective_schedule_rng_seed"
ISSUED = "generated_query_count"
DURATION_NS = "generated_query_duration"
COMPLETED = "result.total"
FAILED = "result.failed"

CONFIG_PATHS = {
    SCENARIO: "type",
    MIN_DURATION_MS: "settings.runtime.min_duration_ms",
    "max_duration_ms": "settings.runtime.max_duration_ms",
    SAMPLE_INDEX_SEED: "settings.runtime.dataloader_random_seed",
    SCHEDULE_SEED: "settings.runtime.scheduler_random_seed",
    "min_sample_count": "settings.runtime.n_samples_to_issue",
    "target_qps": "settings.load_pattern.target_qps",
    "load_pattern": "settings.load_pattern.type",
    "streaming": "model_params.streaming",
    "endpoints_version": "version",
}
"""Name of a setting -> where the configuration has it; there it is tried before the name itself."""

REPORT_PATHS = {
    ISSUED: "n_samples_issued",
    DURATION_NS: "duration_ns",
    COMPLETED: "n_samples_completed",
    FAILED: "n_samples_failed",
    "n_samples_from_dataset": "n_samples_issued",
    "test_datetime": "test_started_at",
    "endpoints_git_commit_hash": "git_sha",
}
"""Name of a figure -> where the report has it, tried after the name itself."""

_RUN_CONFIG_PATHS = {
    SAMPLE_INDEX_SEED: "run_config.dataloader_random_seed",
    SCHEDULE_SEED: "run_config.scheduler_random_seed",
    "target_qps": "run_config.load_pattern.target_qps",
    "load_pattern": "run_config.load_pattern.type",
}
"""Where the report repeats a setting. The official checker does not look there."""

_OTHER_MEANINGS = ("n_samples_from_dataset", "endpoints_version")
"""Names whose second place holds something else where both are written."""

_NAMES = {path: name for name, path in CONFIG_PATHS.items() if name not in _OTHER_MEANINGS}


@dataclass(frozen=True, slots=True)
class Told:
    """A value and where it stands: the file, and the dotted path in it."""

    document: Document
    key: str
    value: Any

    def __str__(self) -> str:
        return f"{self.key} {self.value!r} in {self.document.path.name}"


@dataclass(frozen=True, slots=True)
class Contradiction:
    """Two places that tell one thing differently; the official checker takes ``taken``."""

    name: str
    taken: Told
    other: Told


@dataclass(frozen=True, slots=True)
class EndpointsLog(TypedValues):
    """A report and the configuration of the run. Keys are the names above, or dotted paths in the files."""

    report: Document
    config: Document

    @classmethod
    def read(cls, folder: Path, report: PurePosixPath = RESULT_SUMMARY) -> EndpointsLog:
        """Reads the report and the configuration of a scenario's folder. LogError tells the file that is bad."""
        return cls(Document.read_json(folder / report), read_config(folder))

    def value(self, key: str) -> Any:  # noqa: ANN401 - whatever was written
        """What the official checker takes for a name or a path, or None."""
        told = self.told(key)
        return None if told is None else told.value

    def told(self, key: str) -> Told | None:
        """The value that counts for a name or a path, with its place."""
        return next(self._tellings(_NAMES.get(key, key)), None)

    def wrong(self, key: str, expected: str) -> LogError:
        """The error of a value that is not what was expected, with file and path."""
        told = self.told(key)
        return self.report.wrong(key, expected) if told is None else told.document.wrong(told.key, expected)

    def percentile(self, series: str, percentile: float) -> int | float | None:
        """A percentile of ``latency``, ``ttft`` or ``tpot``, ns, as early stopping estimates it.

        None where the estimate is absent or null: too few samples, or a client without early stopping.
        """
        return self.number(f"{series}.early_stopping_percentiles.{float(percentile)}")

    @property
    def issued_per_second(self) -> float | None:
        """Samples issued over the measured duration, per second; None where the report tells one of them not."""
        issued, duration_ns = self.integer(ISSUED), self.integer(DURATION_NS)
        if issued is None or duration_ns is None:
            return None
        if duration_ns < 1:
            raise self.wrong(DURATION_NS, "at least a nanosecond")
        return issued / (duration_ns / 1e9)

    @property
    def contradictions(self) -> tuple[Contradiction, ...]:
        """What is told in several places and not alike, by name."""
        found = []
        for name in sorted((CONFIG_PATHS | REPORT_PATHS).keys() - set(_OTHER_MEANINGS)):
            told = [*self._tellings(name), *_told(self.report, _RUN_CONFIG_PATHS.get(name))]
            found += [
                Contradiction(name, told[0], other) for other in told[1:] if not _alike(told[0].value, other.value)
            ]
        return tuple(found)

    def _tellings(self, name: str) -> Iterator[Told]:
        """All places that tell a name, in the official order."""
        yield from _told(self.report, name)
        yield from _told(self.report, REPORT_PATHS.get(name))
        yield from _told(self.config, CONFIG_PATHS.get(name))
        yield from _told(self.config, name)


def read_config(folder: Path) -> Document:
    """The configuration of a scenario's folder: of :data:`CONFIGS` the first that is there and is YAML."""
    first, second = (folder / name for name in CONFIGS)
    if not _exists(first) and _exists(second):
        return Document.read_yaml(second)
    try:
        return Document.read_yaml(first)
    except NotParsable:
        if _exists(second):
            return Document.read_yaml(second)
        raise


@dataclass(frozen=True, slots=True)
class EndpointsAudit:
    """The verdict of an audit. ``name`` is that of the file, ``test`` what is written in it."""

    document: Document

    @classmethod
    def read(cls, path: Path) -> EndpointsAudit:
        """Reads one verdict. LogError where it is no JSON object."""
        return cls(Document.read_json(path))

    @property
    def name(self) -> str:
        """The audit by its file's name, ``audit_<name>.json``."""
        return self.document.path.stem.removeprefix("audit_")

    @property
    def test(self) -> str | None:
        """The audit by the verdict."""
        return self.document.text("test")

    @property
    def passed(self) -> bool | None:
        """Whether it passed; None where the verdict does not say."""
        return self.document.flag("passed")


def audit_files(folder: Path) -> tuple[Path, ...]:
    """The verdicts of audits in a scenario's folder, by name; none where there is no such folder."""
    try:
        return tuple(sorted((folder / AUDITS).glob("*.json")))
    except OSError as error:
        raise LogError(f"cannot be read: {error.strerror}", folder / AUDITS) from None


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # it is there, or its folder is; reading it says what is wrong
        return True


def _told(document: Document, key: str | None) -> Iterator[Told]:
    value = None if key is None else document.value(key)
    if key is not None and value is not None:
        yield Told(document, key, value)


def _alike(one: object, other: object) -> bool:
    """Equal, and not merely equal to Python, to which True is 1."""
    return isinstance(one, bool) == isinstance(other, bool) and one == other
