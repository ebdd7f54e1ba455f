"""Reader of ``mlperf_log_summary.txt``: the text that people read, as keys and values.

A performance run's summary has a head (names, headline rate, verdict), "Additional Stats" and "Test Parameters Used",
then how many warnings and errors there were. An accuracy run's has nothing but the last.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.logs.errors import LogError
from harness.logs.files import FilePass, passing

_HEAD = "MLPerf Results Summary"
_STATS = "Additional Stats"
_PARAMETERS = "Test Parameters Used"
_MAX_LINE_BYTES = 1 << 16
_MAX_BYTES = 1 << 20

_PERCENTILE = re.compile(r"([0-9]{1,3}\.[0-9]{1,6}) percentile (.+)")
_COUNT = re.compile(r"(No|[0-9]{1,18}) (warning|error)s?\b.*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class SummaryLog:
    """A summary. ``head``, ``stats`` and ``parameters`` keep LoadGen's own keys and texts."""

    path: Path
    head: Mapping[str, str]
    stats: Mapping[str, str]
    parameters: Mapping[str, str]
    warnings: int | None
    errors: int | None

    @classmethod
    def read(cls, source: Path | FilePass) -> SummaryLog:
        """Reads one summary. LogError where it is no text, or ends before the counts of warnings and errors."""
        sections: dict[str, dict[str, str]] = {_HEAD: {}, _STATS: {}, _PARAMETERS: {}}
        counts: dict[str, int] = {}
        section = _HEAD
        with passing(source) as file:
            path, seen = file.path, 0
            for number, raw in file.lines(_MAX_LINE_BYTES):
                seen += len(raw) + 1
                if seen > _MAX_BYTES:
                    raise LogError(f"a summary of more than {_MAX_BYTES} bytes", path, number)
                text = _decoded(path, number, raw).strip()
                count = _COUNT.fullmatch(text)
                key, colon, value = text.partition(":")
                if text in sections:
                    section = text
                elif count is not None:
                    counts[count[2].lower()] = 0 if count[1].lower() == "no" else int(count[1])
                elif key and colon:
                    sections[section].setdefault(key.rstrip(), value.lstrip())
        if "error" not in counts:
            raise LogError("a summary that does not end with its count of errors", path)
        return cls(
            path, sections[_HEAD], sections[_STATS], sections[_PARAMETERS], counts.get("warning"), counts["error"]
        )

    @property
    def validity(self) -> str | None:
        """``VALID`` or ``INVALID``; None for an accuracy run."""
        return self.head.get("Result is")

    @property
    def scenario(self) -> str | None:
        """LoadGen's name of the scenario; None for an accuracy run."""
        return self.head.get("Scenario")

    @property
    def mode(self) -> str | None:
        """``PerformanceOnly``; None for an accuracy run."""
        return self.head.get("Mode")

    @property
    def headline(self) -> tuple[str, float] | None:
        """The last rate above the verdict (tokens where there are tokens), e.g. ("Tokens per second", 910468.0)."""
        found = None
        for key, text in self.head.items():
            if key == "Result is":
                break
            if "per second" in key and (value := _number(text)) is not None:
                found = (key, value)
        return found

    def stat(self, key: str) -> float | None:
        """A figure of "Additional Stats" by LoadGen's own key, e.g. ``Max latency (ns)``."""
        return _number(self.stats.get(key, ""))

    def percentiles(self) -> dict[str, dict[float, float]]:
        """What LoadGen calls each latency -> percentile -> value (ns for all that it writes)."""
        found: dict[str, dict[float, float]] = {}
        for key, text in self.stats.items():
            match = _PERCENTILE.fullmatch(key)
            value = _number(text)
            if match is not None and value is not None:
                found.setdefault(match[2], {})[float(match[1])] = value
        return found


def _decoded(path: Path, number: int, raw: bytes) -> str:
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise LogError(f"not text: {error.reason}", path, number) from None


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
