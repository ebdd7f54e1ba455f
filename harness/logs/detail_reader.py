"""Takes the lines of a detail log in turn and keeps what is told of them, never more than its bounds.

The official reader takes the first record of a key that is repeated, of a name twice in one record the last value, and
a lone carriage return for the end of a line; the first two are read so here, and the last is refused.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from harness.logs.errors import LogError
from harness.logs.loaded_rows import LoadedRows
from harness.logs.values import parse_json

MARKER = b":::MLLOG"
KEPT = 100
"""Error, warning and contradicting records kept; all are counted. A broken run writes one a sample."""

MAX_KEPT_CHARACTERS = 8 << 20
"""Of the records that are kept, together; LoadGen's have some tens of thousands."""

MAX_OTHER_LINES = 100_000
"""Lines that are no records, blank ones too; a log of nothing else is not read to its end."""

_LOADED_SET = "loaded_qsl_set"
_LOADED_START = b':::MLLOG {"key": "loaded_qsl_set", "value": ['
_REASON = "result_invalid_reason"
_MESSAGES = ("generic_message", _REASON)
"""The keys of free text, of which a log may have any number; so it may of those that tell errors and warnings."""
_MESSAGE_PREFIXES = ("error_", "warning_")


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


@dataclass(slots=True)
class Tally:
    """How many records there were of a kind, and the first of them."""

    count: int = 0
    kept: list[Record] = field(default_factory=list)

    def add(self, record: Record) -> bool:
        """Counts a record; whether it is one of those kept."""
        self.count += 1
        if self.count <= KEPT:
            self.kept.append(record)
        return self.count <= KEPT


class Reader:
    """What has been read of one log so far."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.values: dict[str, Any] = {}
        self.lines: dict[str, int] = {}
        self.errors = Tally()
        self.warnings = Tally()
        self.contradictions = Tally()
        self.reasons: list[str] = []
        self.loaded = LoadedRows()
        self.strays = 0
        self._others = 0
        self._seen = 0
        self._kept_characters = 0

    def take(self, number: int, raw: bytes) -> None:
        """Takes one line, without its end. LogError where LoadGen never writes such a line."""
        if b"\r" in raw:
            raise LogError("a line with a carriage return in it", self.path, number)
        if raw.startswith(_LOADED_START):
            raw = self._without_rows(number, raw)
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            raise LogError(f"not UTF-8 text: {error.reason}", self.path, number) from None
        if raw.startswith(MARKER):
            self._take_record(number, text[len(MARKER) :])
        elif number == 1:
            expected = f"a first line that begins {MARKER.decode()}"
            raise LogError("not a detail log of LoadGen's", self.path, 1, expected=expected)
        else:
            self._take_other(number, text)

    def _take_other(self, number: int, text: str) -> None:
        self._others += 1
        self.strays += bool(text.strip())
        if self._others > MAX_OTHER_LINES:
            raise LogError(f"more than {MAX_OTHER_LINES} lines that are no records", self.path, number)

    def end(self) -> None:
        """Tells that the file has ended. LogError where nothing was in it."""
        if not self._seen:
            raise LogError("an empty log", self.path)

    def _without_rows(self, number: int, raw: bytes) -> bytes:
        """A record of loaded rows as LoadGen writes it, less the rows, which are counted; any other as it is."""
        end = raw.find(b"]")
        if end < 0:
            return raw
        with self._told(number):
            taken = self.loaded.take_text(raw[len(_LOADED_START) : end])
        return _LOADED_START + raw[end:] if taken else raw

    def _take_record(self, number: int, text: str) -> None:
        data, is_error, is_warning = self._parse(number, text)
        key, value = data["key"], data["value"]
        self._seen += 1
        kept = False
        if key == _LOADED_SET:
            with self._told(number):
                self.loaded.take_list(value)
        elif key not in self.values:
            self.values[key] = value
            self.lines[key] = number
            kept = True
        elif self._contradicts(key, value):
            kept = self.contradictions.add(Record(key, value, number, is_error, is_warning))
        if key == _REASON:
            self._take_reason(number, value)
        if is_error or is_warning:
            kept |= self._take_flagged(Record(key, value, number, is_error, is_warning))
        if kept:
            self._keep(number, len(text))

    def _keep(self, number: int, characters: int) -> None:
        self._kept_characters += characters
        if self._kept_characters > MAX_KEPT_CHARACTERS:
            raise LogError(f"records of more than {MAX_KEPT_CHARACTERS} characters", self.path, number)

    def _take_flagged(self, record: Record) -> bool:
        kept = record.is_error and self.errors.add(record)
        return (record.is_warning and self.warnings.add(record)) or kept

    def _contradicts(self, key: str, value: object) -> bool:
        if key in _MESSAGES or key.startswith(_MESSAGE_PREFIXES):
            return False
        kept = self.values[key]
        if type(kept) is type(value) and not isinstance(value, list | dict):
            return bool(kept != value)
        # As text, for to Python 1, 1.0 and true are equal.
        return json.dumps(kept) != json.dumps(value)

    def _take_reason(self, number: int, value: object) -> None:
        if not isinstance(value, str):
            raise LogError(f"{_REASON} is no text", self.path, number)
        if len(self.reasons) < KEPT:
            self.reasons.append(value[:1000])

    @contextlib.contextmanager
    def _told(self, line: int) -> Iterator[None]:
        try:
            yield
        except ValueError as error:
            raise LogError(f"{_LOADED_SET} {error}", self.path, line) from None

    def _parse(self, number: int, text: str) -> tuple[dict[str, Any], bool, bool]:
        """A record that has key and value, and whether it is an error and a warning."""
        try:
            data = parse_json(text)
        except ValueError as error:
            raise LogError(f"a record that is not JSON: {error}", self.path, number) from None
        metadata = data.get("metadata") if isinstance(data, dict) else None
        if not isinstance(metadata, dict) or not isinstance(data.get("key"), str) or "value" not in data:
            raise LogError("a record without key, value or metadata", self.path, number)
        is_error, is_warning = metadata.get("is_error"), metadata.get("is_warning")
        if not isinstance(is_error, bool) or not isinstance(is_warning, bool):
            raise LogError("a record that does not tell whether it is an error or a warning", self.path, number)
        return data, is_error, is_warning
