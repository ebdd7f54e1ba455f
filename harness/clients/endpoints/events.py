"""The client's own account of every sample, ``events.jsonl``, read to count and time them a second time.

The client's summary is what is filed; what is counted here must not tell another story.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import orjson

from harness.clients.endpoints.answers import Came, came
from harness.clients.endpoints.report import PERFORMANCE
from harness.engines.base import Int64Array
from harness.logs import LogError

EVENTS: Final = PurePosixPath("events.jsonl")
INDEX: Final = PurePosixPath("sample_idx_map.json")
_ISSUED, _FIRST, _COMPLETE = "sample.issued", "sample.recv_first", "sample.complete"
_ERROR: Final = "error."
_NEVER: Final = -1
_CHUNK_BYTES: Final = 1 << 22
_BEYOND: Final = 1 << 62
"""Above any row or time: sums and differences stay within 64 bits."""
_MESSAGES, _TOOLS = 3, 4
"""Places in the client's list of what was asked."""
_SKIPPED: Final = "TurnAbortedByPriorFailure"
"""What the client says of a turn that it never sent: one before it had failed."""


@dataclass(slots=True)
class _Sample:
    issued_ns: int = _NEVER
    first_ns: int = _NEVER
    done_ns: int = _NEVER
    error: str | None = None
    finish: str | None = None
    empty: bool = False
    came: Came | None = None
    asked: bytes | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """The samples of one phase. ``rows`` are those of the data set; times are the client's, int64 ns, -1 for never.

    ``errors`` are what failed samples were told, by their place; ``skipped`` are those among them that were never sent.
    ``answers`` are None where nothing came back, or nobody wanted to know. ``asked`` are digests of the messages and
    tools that were sent (:func:`digest`), by sample, where they were wanted; else there are none.
    """

    rows: Int64Array
    issued_ns: Int64Array
    first_ns: Int64Array
    done_ns: Int64Array
    errors: Mapping[int, str] = field(repr=False)
    answers: tuple[Came | None, ...] = field(repr=False)
    asked: tuple[bytes | None, ...] = field(default=(), repr=False)
    cut: frozenset[int] = frozenset()
    """Answers without a reason why they ended, by their place: streams that broke off, which the client takes for
    whole."""
    blank: frozenset[int] = frozenset()
    """Answers with nothing in them."""
    skipped: frozenset[int] = frozenset()

    @property
    def unfinished(self) -> int:
        """How many answers were cut."""
        return len(self.cut)

    @property
    def empty(self) -> int:
        """How many answers say nothing."""
        return len(self.blank)

    @property
    def answered(self) -> npt.NDArray[np.bool_]:
        """Which samples came back whole, with something in them, bool (samples,)."""
        there: npt.NDArray[np.bool_] = (self.done_ns != _NEVER) & (self.issued_ns != _NEVER)
        there[[*self.errors, *self.cut, *self.blank]] = False
        return there

    @property
    def texts(self) -> tuple[str | None, ...]:
        """The words of each answer; None where nothing came back."""
        return tuple(None if each is None else each.text for each in self.answers)

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
    def answered_ns(self) -> Int64Array:
        """The same of the answered ones, int64: samples that were never sent take no time at all."""
        spans: Int64Array = self.done_ns[self.answered] - self.issued_ns[self.answered]
        return spans

    @property
    def most_at_once(self) -> int:
        """How many samples were under way at once, at most."""
        there = (self.done_ns != _NEVER) & (self.issued_ns != _NEVER)
        times = np.concatenate([self.done_ns[there], self.issued_ns[there]])
        steps = np.repeat(np.array([-1, 1]), int(there.sum()))
        order = np.lexsort((steps, times))  # at one moment, what ends does so before what begins
        return int(np.cumsum(steps[order]).max(initial=0))

    @property
    def ttft_ns(self) -> Int64Array:
        """From issue to the first token, of those that streamed one, int64."""
        there = (self.first_ns != _NEVER) & (self.issued_ns != _NEVER)
        spans: Int64Array = self.first_ns[there] - self.issued_ns[there]
        return spans


def read_phases(report: Path, *, whole: bool = False) -> dict[str, Phase]:
    """The phases of a report, by name. LogError where a file of the two is not as the client writes it.

    What the client does outside its phases (a warm-up) is left out. With ``whole`` the answers of the measured phase
    are kept too, and what was asked is digested.
    """
    index = _index(report / INDEX)
    phase_of = {uuid: name for name, rows in index.items() for uuid in rows}
    samples: dict[str, _Sample] = {uuid: _Sample() for uuid in phase_of}
    for event in _events(report / EVENTS):
        sample = samples.get(event["sample_uuid"])
        if sample is not None:
            _take(sample, event, keep=whole or phase_of[event["sample_uuid"]] != PERFORMANCE)
            if whole and event["event_type"] == _ISSUED:
                sample.asked = _digest_of(event.get("data"))
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


def digest(messages: object, tools: object) -> bytes:
    """SHA-256 over the JSON of what is asked, whatever the order of its keys; what is null in it counts as absent."""
    asked = orjson.dumps([_without_nulls(messages), _without_nulls(tools)], option=orjson.OPT_SORT_KEYS)
    return hashlib.sha256(asked).digest()


def _without_nulls(part: object) -> object:
    """The messages, or the tools, without the fields that are null."""
    if not isinstance(part, list):
        return part
    return [
        {key: value for key, value in each.items() if value is not None} if isinstance(each, dict) else each
        for each in part
    ]


def _digest_of(data: object) -> bytes | None:
    if not isinstance(data, list) or len(data) <= _MESSAGES:
        return None
    try:
        return digest(data[_MESSAGES], data[_TOOLS] if len(data) > _TOOLS else None)
    except orjson.JSONEncodeError:  # nested deeper than can be written: nothing that was recorded is
        return None


def _take(sample: _Sample, event: Mapping[str, Any], *, keep: bool) -> None:
    kind, at_ns = event["event_type"], event["timestamp_ns"]
    if kind == _ISSUED:
        sample.issued_ns = at_ns
    elif kind == _FIRST:
        sample.first_ns = at_ns
    elif kind == _COMPLETE:
        answer = came(event.get("data"))
        sample.done_ns, sample.finish = at_ns, _text_or_none(event.get("finish_reason"))
        sample.empty = answer is None or answer.empty
        sample.came = answer if keep else None
    elif kind.startswith(_ERROR):
        sample.error = _error_of(event.get("data"))


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _error_of(data: object) -> str:
    if not isinstance(data, list):
        return "error"
    return ": ".join(str(part) for part in data[1:] if part) or "error"


def _phase(samples: list[_Sample], rows: list[int]) -> Phase:
    def column(values: list[int]) -> Int64Array:
        return np.array(values, np.int64)

    came_back = [at for at, s in enumerate(samples) if s.done_ns != _NEVER and s.error is None]
    return Phase(
        rows=column(rows),
        issued_ns=column([s.issued_ns for s in samples]),
        first_ns=column([s.first_ns for s in samples]),
        done_ns=column([s.done_ns for s in samples]),
        errors={at: s.error for at, s in enumerate(samples) if s.error is not None},
        answers=tuple(s.came for s in samples),
        asked=tuple(s.asked for s in samples),
        cut=frozenset(at for at in came_back if samples[at].finish is None),
        blank=frozenset(at for at in came_back if samples[at].empty),
        skipped=frozenset(
            at for at, s in enumerate(samples) if s.error is not None and s.error.partition(":")[0] == _SKIPPED
        ),
    )
