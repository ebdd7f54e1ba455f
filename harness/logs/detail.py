"""Reader of ``mlperf_log_detail.txt``: one ``:::MLLOG {json}`` record a line.

What LoadGen 6.0.17 writes there, as far as it is used: ``requested_*`` and ``effective_*`` settings, ``generated_*``
counts, ``loaded_qsl_set``, ``power_begin``/``power_end`` (wall clock around issuing and answering), ``result_*``
(performance runs only), and records whose metadata say ``is_error`` or ``is_warning``.
"""

from __future__ import annotations

import datetime
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.logs.errors import LogError
from harness.logs.files import lines

MARKER = ":::MLLOG"
KEPT = 100
"""Error and warning records kept; all are counted. A broken run writes one a sample."""

_LOADED_SET = "loaded_qsl_set"
_MESSAGE = "generic_message"
"""The key of free text, of which a log may have any number."""
_POWER_FORMAT = "%m-%d-%Y %H:%M:%S.%f"


@dataclass(frozen=True, slots=True)
class Record:
    """One record of the log; ``line`` counts from 1."""

    key: str
    value: Any
    line: int
    is_error: bool
    is_warning: bool

    def __str__(self) -> str:
        return f"{self.key}: {str(self.value)[:200]}"


@dataclass(frozen=True, slots=True)
class DetailLog:
    """A detail log. ``values`` and ``lines`` are by key; where LoadGen repeats a key the last wins.

    ``errors`` and ``warnings`` are the first :data:`KEPT` of ``error_count`` and ``warning_count``. ``loaded_samples``
    is the length of all ``loaded_qsl_set`` records together, ``loaded_distinct`` how many indices differ.
    ``stray_lines`` counts lines that bear no marker. ``contradictions`` are the records that give a key another value
    than an earlier one did; LoadGen writes none but its messages, and readers differ in which they believe.
    """

    path: Path
    values: Mapping[str, Any] = field(repr=False)
    lines: Mapping[str, int] = field(repr=False)
    errors: tuple[Record, ...]
    warnings: tuple[Record, ...]
    error_count: int
    warning_count: int
    contradictions: tuple[Record, ...]
    loaded_samples: int
    loaded_distinct: int
    stray_lines: int

    @classmethod
    def read(cls, path: Path) -> DetailLog:
        """Reads one log, line by line. LogError tells file and line of what is not LoadGen's."""
        reader = _Reader(path)
        for number, raw in lines(path):
            reader.take(number, raw)
        return reader.log()

    def value(self, key: str) -> Any:  # noqa: ANN401 - whatever LoadGen logged
        """The value of a key, or None where the log has no such key."""
        return self.values.get(key)

    def effective(self, setting: str) -> Any:  # noqa: ANN401 - whatever LoadGen logged
        """The value of ``effective_<setting>``: what LoadGen worked with."""
        return self.values.get(f"effective_{setting}")

    def requested(self, setting: str) -> Any:  # noqa: ANN401 - whatever LoadGen logged
        """The value of ``requested_<setting>``: what the configuration files said."""
        return self.values.get(f"requested_{setting}")

    def number(self, key: str) -> int | float | None:
        """The value of a key as a number, None where absent; LogError where it is something else."""
        value = self.values.get(key)
        if value is not None and (isinstance(value, bool) or not isinstance(value, int | float)):
            raise self._wrong(key, "a number")
        return value

    def integer(self, key: str) -> int | None:
        """The value of a key as an integer, None where absent; LogError where it is something else."""
        value = self.number(key)
        if isinstance(value, float):
            raise self._wrong(key, "an integer")
        return value

    def flag(self, key: str) -> bool | None:
        """The value of a key as true or false, None where absent; LogError where it is something else."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, bool):
            raise self._wrong(key, "true or false")
        return value

    def text(self, key: str) -> str | None:
        """The value of a key as text, None where absent; LogError where it is something else."""
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise self._wrong(key, "a text")
        return value

    @property
    def scenario(self) -> str | None:
        """LoadGen's name of the scenario, e.g. ``Server`` (for Interactive too)."""
        return self.text("effective_scenario")

    @property
    def mode(self) -> str | None:
        """``PerformanceOnly`` or ``AccuracyOnly``."""
        return self.text("effective_test_mode")

    @property
    def validity(self) -> str | None:
        """``VALID`` or ``INVALID``; None in accuracy mode, which has no verdict."""
        return self.text("result_validity")

    @property
    def invalid_reasons(self) -> tuple[str, ...]:
        """Why LoadGen says INVALID, where it says so."""
        reason = self.text("result_invalid_reason")
        return () if reason is None else (reason,)

    @property
    def loadgen_version(self) -> str | None:
        """Version and commit, e.g. ``6.0.17 @ d6147c7eb7``."""
        return self.text("loadgen_version")

    @property
    def reported_total_count(self) -> int | None:
        """Rows that the sample library said it has."""
        return self.integer("qsl_reported_total_count")

    @property
    def issued_samples(self) -> int | None:
        """Samples that LoadGen issued; where it logged no result, those that it generated queries for."""
        queries = self.integer("result_query_count")
        if queries is None:
            queries = self.integer("generated_query_count")
        each = self.integer("generated_samples_per_query")
        return None if queries is None or each is None else queries * each

    @property
    def wall_span_ns(self) -> int | None:
        """From the first query to the last completion by the wall clock (``power_begin``, ``power_end``), to 1 ms."""
        begin, end = self._instant("power_begin"), self._instant("power_end")
        return None if begin is None or end is None else (end - begin) // datetime.timedelta(microseconds=1) * 1000

    @property
    def scheduled_span_ns(self) -> int | None:
        """When the last issued query was scheduled, from the run's start: Server only, None elsewhere.

        LoadGen logs ``(queries - 1) / last scheduled time`` as ``result_scheduled_samples_per_sec``, with six digits:
        this is good to one part in 10^5.
        """
        queries, rate = self.integer("result_query_count"), self.number("result_scheduled_samples_per_sec")
        if queries is None or rate is None or not 0 < rate < float("inf"):
            return None
        return int((queries - 1) / rate * 1e9)

    def _instant(self, key: str) -> datetime.datetime | None:
        text = self.text(key)
        if text is None:
            return None
        try:
            return datetime.datetime.strptime(text, _POWER_FORMAT).replace(tzinfo=datetime.timezone.utc)
        except ValueError:
            raise self._wrong(key, "a time like 02-13-2026 14:08:52.439") from None

    def _wrong(self, key: str, expected: str) -> LogError:
        value = json.dumps(self.values[key])[:80]
        return LogError(f"{key} is {value}", self.path, self.lines.get(key), expected=expected)


class _Reader:
    """Takes the lines of one log in turn."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.values: dict[str, Any] = {}
        self.lines: dict[str, int] = {}
        self.kept: dict[str, list[Record]] = {"errors": [], "warnings": []}
        self.counts = {"errors": 0, "warnings": 0}
        self.contradictions: list[Record] = []
        self.loaded = 0
        self.distinct: set[int] = set()
        self.strays = 0
        self.seen = 0

    def take(self, number: int, raw: bytes) -> None:
        # The official reader takes the whole file for UTF-8, and a lone carriage return for the end of a line.
        if b"\r" in raw:
            raise LogError("a line with a carriage return in it", self.path, number)
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise LogError(f"not UTF-8 text: {error.reason}", self.path, number) from None
        marked = text.startswith(MARKER)
        if number == 1 and not marked:
            raise LogError("not a detail log of LoadGen's", self.path, 1, expected=f"a first line that begins {MARKER}")
        if marked:
            self._take_record(number, text[len(MARKER) :])
        elif text.strip():
            self.strays += 1

    def _take_record(self, number: int, text: str) -> None:
        record = self._parse(number, text)
        self.seen += 1
        if record.key == _LOADED_SET:
            self._take_loaded(record)
        else:
            self._take_value(record)
        for kind, counts in (("errors", record.is_error), ("warnings", record.is_warning)):
            if counts:
                self.counts[kind] += 1
                if len(self.kept[kind]) < KEPT:
                    self.kept[kind].append(record)

    def _take_value(self, record: Record) -> None:
        known = record.key in self.values and record.key != _MESSAGE and not (record.is_error or record.is_warning)
        if known and self.values[record.key] != record.value and len(self.contradictions) < KEPT:
            self.contradictions.append(record)
        self.values[record.key] = record.value
        self.lines[record.key] = record.line

    def _take_loaded(self, record: Record) -> None:
        indices = record.value
        if not isinstance(indices, list) or not all(type(i) is int for i in indices):
            raise LogError(f"{_LOADED_SET} is not a list of row numbers", self.path, record.line)
        self.loaded += len(indices)
        self.distinct.update(indices)

    def _parse(self, number: int, text: str) -> Record:
        try:
            data = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise LogError(f"a record that is not JSON: {error}", self.path, number) from None
        metadata = data.get("metadata") if isinstance(data, dict) else None
        if not isinstance(metadata, dict) or not isinstance(data.get("key"), str) or "value" not in data:
            raise LogError("a record without key, value or metadata", self.path, number)
        if not all(isinstance(metadata.get(flag), bool) for flag in ("is_error", "is_warning")):
            raise LogError("a record that does not tell whether it is an error or a warning", self.path, number)
        return Record(
            key=data["key"],
            value=data["value"],
            line=number,
            is_error=metadata["is_error"],
            is_warning=metadata["is_warning"],
        )

    def log(self) -> DetailLog:
        if not self.seen:
            raise LogError("an empty log", self.path)
        return DetailLog(
            path=self.path,
            values=self.values,
            lines=self.lines,
            errors=tuple(self.kept["errors"]),
            warnings=tuple(self.kept["warnings"]),
            error_count=self.counts["errors"],
            warning_count=self.counts["warnings"],
            contradictions=tuple(self.contradictions),
            loaded_samples=self.loaded,
            loaded_distinct=len(self.distinct),
            stray_lines=self.strays,
        )
