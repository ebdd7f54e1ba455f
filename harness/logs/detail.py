"""What ``mlperf_log_detail.txt`` tells: one ``:::MLLOG {json}`` record a line, by key.

What LoadGen 6.0.17 writes there, as far as it is used: ``requested_*`` and ``effective_*`` settings, ``generated_*``
counts, ``loaded_qsl_set``, ``power_begin``/``power_end`` (wall clock around issuing and answering), ``result_*``
(performance runs only), and records whose metadata say ``is_error`` or ``is_warning``.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.logs.detail_reader import KEPT, Reader, Record
from harness.logs.errors import LogError
from harness.logs.files import FilePass, passing
from harness.logs.values import TypedValues, shown

__all__ = ["KEPT", "DetailLog", "Record"]

_POWER_FORMAT = "%m-%d-%Y %H:%M:%S.%f"


@dataclass(frozen=True, slots=True)
class DetailLog(TypedValues):
    """A detail log. ``values`` and ``lines`` are by key; of a key that is repeated the first record counts.

    ``errors`` and ``warnings`` are the first :data:`KEPT` of ``error_count`` and ``warning_count``. ``loaded_samples``
    is the length of all ``loaded_qsl_set`` records together, ``loaded_distinct`` how many indices differ; the indices
    themselves are not kept. ``stray_lines`` counts lines that bear no marker. ``contradictions`` are the first
    :data:`KEPT` records, whatever their flags, that give a key another value than the first did; LoadGen writes none,
    but for the keys of messages. ``invalid_reasons`` is why LoadGen says INVALID, where it says so.
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
    invalid_reasons: tuple[str, ...] = ()

    @classmethod
    def read(cls, source: Path | FilePass) -> DetailLog:
        """Reads one log, line by line. LogError tells file and line of what is not LoadGen's.

        With a pass over the file, which stays open, the caller can have its hash too.
        """
        with passing(source) as file:
            reader = Reader(file.path)
            for number, raw in file.lines():
                reader.take(number, raw)
        reader.end()
        return cls(
            path=reader.path,
            values=reader.values,
            lines=reader.lines,
            errors=tuple(reader.errors.kept),
            warnings=tuple(reader.warnings.kept),
            error_count=reader.errors.count,
            warning_count=reader.warnings.count,
            contradictions=tuple(reader.contradictions.kept),
            loaded_samples=reader.loaded.samples,
            loaded_distinct=reader.loaded.distinct,
            stray_lines=reader.strays,
            invalid_reasons=tuple(filter(None, reader.reasons)),
        )

    def value(self, key: str) -> Any:  # noqa: ANN401 - whatever LoadGen logged
        """The value of a key, or None where the log has no such key."""
        return self.values.get(key)

    def effective(self, setting: str) -> Any:  # noqa: ANN401 - whatever LoadGen logged
        """The value of ``effective_<setting>``: what LoadGen worked with."""
        return self.values.get(f"effective_{setting}")

    def requested(self, setting: str) -> Any:  # noqa: ANN401 - whatever LoadGen logged
        """The value of ``requested_<setting>``: what the configuration files said."""
        return self.values.get(f"requested_{setting}")

    def wrong(self, key: str, expected: str) -> LogError:
        """The error of a value that is not what was expected, with the line of its record."""
        return LogError(f"{key} is {shown(self.values[key])}", self.path, self.lines.get(key), expected=expected)

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
        return self._span_ns("result_scheduled_samples_per_sec")

    @property
    def issued_span_ns(self) -> int | None:
        """When the last query was issued, from the run's start: SingleStream only, None elsewhere.

        LoadGen holds this against the minimum duration there, and logs ``(queries - 1) / last issue`` as
        ``result_qps_with_loadgen_overhead``, with six digits (loadgen/results.cc).
        """
        return self._span_ns("result_qps_with_loadgen_overhead")

    def _span_ns(self, key: str) -> int | None:
        """From the run's start to its last query, of which ``key`` is the rate of all but the first."""
        queries, rate = self.integer("result_query_count"), self.number(key)
        if queries is None or rate is None or rate <= 0:
            return None
        span_ns = (queries - 1) / rate * 1e9
        if not math.isfinite(span_ns):
            raise self.wrong(key, "a rate that a run can have")
        return int(span_ns)

    def _instant(self, key: str) -> datetime.datetime | None:
        text = self.text(key)
        if text is None:
            return None
        try:
            return datetime.datetime.strptime(text, _POWER_FORMAT).replace(tzinfo=datetime.timezone.utc)
        except ValueError:
            raise self.wrong(key, "a time like 02-13-2026 14:08:52.439") from None
