"""The client's own account of every sample, ``events.jsonl``, read to count and time them a second time.

The client's summary is what is filed; what is counted here must not tell another story.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

import numpy as np
import orjson

from harness.engines.base import Int64Array
from harness.logs import LogError

EVENTS: Final = PurePosixPath("events.jsonl")
INDEX: Final = PurePosixPath("sample_idx_map.json")
PERFORMANCE: Final = "performance"
"""The phase of the measured run; those of accuracy are called as their data sets are in the configuration."""

_ISSUED, _FIRST, _COMPLETE = "sample.issued", "sample.recv_first", "sample.complete"
_ERROR: Final = "error."
_NEVER: Final = -1
_CHUNK_BYTES: Final = 1 << 22
_BEYOND: Final = 1 << 62
"""Above any row or time: sums and differences stay within 64 bits."""


@dataclass(slots=True)
class _Sample:
    issued_ns: int = _NEVER
    first_ns: int = _NEVER
    done_ns: int = _NEVER
    error: str | None = None
    finish: str | None = None
    empty: bool = False
    text: str | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """The samples of one phase. ``rows`` are those of the data set; times are the client's, int64 ns, -1 for never.

    ``errors`` are what failed samples were told, by their place; ``texts`` are answers, None where nothing came back.
    """

    rows: Int64Array
    issued_ns: Int64Array
    first_ns: Int64Array
    done_ns: Int64Array
    errors: Mapping[int, str] = field(repr=False)
    texts: tuple[str | None, ...] = field(repr=False)
    unfinished: int = 0
    """Answers without a reason why they ended: streams that were cut, which the client takes for whole."""
    empty: int = 0
    """Answers without a text: to the client they are answers like all others, and fast ones."""

    @property
    def issued(self) -> int:
        """Samples that were issued."""
        return int((self.issued_ns != _NEVER).sum())

    @property
    def completed(self) -> int:
        """Samples that came back, failed ones among them."""
        return int((self.done_ns != _NEVER).sum())

    @property
    def span_ns(self) -> int | None:
        """From the first issue to the last completion; None where nothing was issued, or came back."""
        issued, done = (times[times != _NEVER] for times in (self.issued_ns, self.done_ns))
        return int(done.max() - issued.min()) if len(issued) and len(done) else None

    @property
    def latencies_ns(self) -> Int64Array:
        """From issue to completion, of those that came back, int64 (completed,)."""
        there = (self.done_ns != _NEVER) & (self.issued_ns != _NEVER)
        spans: Int64Array = self.done_ns[there] - self.issued_ns[there]
        return spans

    @property
    def ttft_ns(self) -> Int64Array:
        """From issue to the first token, of those that streamed one, int64."""
        there = (self.first_ns != _NEVER) & (self.issued_ns != _NEVER)
        spans: Int64Array = self.first_ns[there] - self.issued_ns[there]
        return spans


def read_phases(report: Path) -> dict[str, Phase]:
    """The phases of a report, by name. LogError where a file of the two is not as the client writes it.

    What the client does outside its phases (a warm-up) is left out.
    """
    index = _index(report / INDEX)
    phase_of = {uuid: name for name, rows in index.items() for uuid in rows}
    samples: dict[str, _Sample] = {uuid: _Sample() for uuid in phase_of}
    for event in _events(report / EVENTS):
        sample = samples.get(event["sample_uuid"])
        if sample is not None:
            _take(sample, event, keep=phase_of[event["sample_uuid"]] != PERFORMANCE)
    return {name: _phase([samples[uuid] for uuid in rows], list(rows.values())) for name, rows in index.items()}


def _index(path: Path) -> dict[str, dict[str, int]]:
    try:
        found = orjson.loads(path.read_bytes())
    except OSError as error:
        raise LogError(f"cannot be read: {error.strerror}", path) from None
    except orjson.JSONDecodeError as error:
        raise LogError(f"not JSON: {error}", path) from None
    if not isinstance(found, dict) or not all(map(_is_of_rows, found.values())):
        raise LogError("not an object of each phase's samples and their rows", path)
    return found


def _is_of_rows(samples: object) -> bool:
    return isinstance(samples, dict) and all(_is_count(row) for row in samples.values())


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _BEYOND


def _events(path: Path) -> Iterator[dict[str, Any]]:
    try:
        with path.open("rb", buffering=_CHUNK_BYTES) as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield _event(line, path, number)
    except OSError as error:
        raise LogError(f"cannot be read: {error.strerror}", path) from None


def _event(line: bytes, path: Path, number: int) -> dict[str, Any]:
    try:
        event = orjson.loads(line)
        named = isinstance(event["event_type"], str) and isinstance(event["sample_uuid"], str)
        if named and _is_count(event["timestamp_ns"]):
            return dict(event)
    except (ValueError, LookupError, TypeError):  # orjson's own error is a ValueError
        pass
    raise LogError("no event as the client writes them", path, number)


def _take(sample: _Sample, event: Mapping[str, Any], *, keep: bool) -> None:
    kind, at_ns = event["event_type"], event["timestamp_ns"]
    if kind == _ISSUED:
        sample.issued_ns = at_ns
    elif kind == _FIRST:
        sample.first_ns = at_ns
    elif kind == _COMPLETE:
        text = text_of(event.get("data"))
        sample.done_ns, sample.finish, sample.empty = at_ns, _text_or_none(event.get("finish_reason")), not text
        if keep:
            sample.text = text
    elif kind.startswith(_ERROR):
        sample.error = _error_of(event.get("data"))


def text_of(data: object) -> str | None:
    """The answer of a completion's data as the client's scorers take it: reasoning, if any, before the content.

    None where nothing came back.
    """
    if not isinstance(data, list) or not data:
        return None
    output, reasoning = (data[at] if len(data) > at else None for at in (1, 2))
    return _joined(reasoning) + _joined(output)


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _joined(part: object) -> str:
    """A text, or the chunks of a streamed one."""
    if isinstance(part, list):
        return "".join(chunk for chunk in part if isinstance(chunk, str))
    return part if isinstance(part, str) else ""


def _error_of(data: object) -> str:
    if not isinstance(data, list):
        return "error"
    return ": ".join(str(part) for part in data[1:] if part) or "error"


def _phase(samples: list[_Sample], rows: list[int]) -> Phase:
    def column(values: list[int]) -> Int64Array:
        return np.array(values, np.int64)

    answered = [s for s in samples if s.done_ns != _NEVER and s.error is None]
    return Phase(
        rows=column(rows),
        issued_ns=column([s.issued_ns for s in samples]),
        first_ns=column([s.first_ns for s in samples]),
        done_ns=column([s.done_ns for s in samples]),
        errors={at: s.error for at, s in enumerate(samples) if s.error is not None},
        texts=tuple(s.text for s in samples),
        unfinished=sum(s.finish is None for s in answered),
        empty=sum(s.empty for s in answered),
    )
