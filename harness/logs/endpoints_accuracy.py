"""What ``accuracy/accuracy_results.json`` of the endpoints client tells: an entry for each data set that was scored."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.logs.documents import Document
from harness.logs.endpoints import ACCURACY_RESULTS, EndpointsLog

_SCORES = "accuracy_scores"
_ACCURACY = "accuracy"


@dataclass(frozen=True, slots=True)
class ScoredDataset:
    """One entry. Every property is None where the entry does not tell it, and a LogError where it tells nonsense."""

    entry: Document

    @property
    def name(self) -> str | None:
        """The data set, as the configuration names it."""
        return self.entry.text("dataset_name")

    @property
    def dataset_type(self) -> str | None:
        """``accuracy``, or ``performance`` where the answers of the measured run were scored."""
        self._no_empty_container("dataset_type", "a text")
        return self.entry.text("dataset_type")

    @property
    def is_accuracy(self) -> bool:
        """Whether its samples count as accuracy samples: its type says so, or is absent."""
        return self.dataset_type in (None, _ACCURACY)

    @property
    def score(self) -> Any:  # noqa: ANN401 - whatever was written
        """The score as written: a number, its text, or an object of several."""
        return self.entry.value("score")

    def score_number(self, keys: Iterable[str] = ()) -> float:
        """The score as a number: itself, its text read, or of an object the first of ``keys`` that is one of these.

        LogError where there is none, and where that one is a flag or not finite: the official checker goes on to the
        next key from no number.
        """
        score = self.score
        values = [score.get(key) for key in keys] if isinstance(score, dict) else [score]
        number = next((found for found in map(_number, values) if found is not None), math.nan)
        if not math.isfinite(number):
            raise self.entry.wrong("score", "a number")
        return number

    @property
    def unit_samples(self) -> int | None:
        """Rows of the data set."""
        return self._count("unit_samples")

    @property
    def num_repeats(self) -> int | None:
        """How often each row was asked."""
        return self._count("num_repeats")

    @property
    def total_samples(self) -> int | None:
        """Samples that were scored, or were to be."""
        self._no_empty_container("total_samples", "a whole number")
        return self._count("total_samples")

    @property
    def complete(self) -> bool | None:
        """Whether the score is of all that was to be scored."""
        return self.entry.flag("complete")

    @property
    def response_counts(self) -> Mapping[str, int]:
        """How many answers were ``issued``, ``scored``, ``empty``, ``missing``; empty where it has no counts."""
        counts = self.entry.child("response_counts")
        if counts is None:
            return {}
        return {key: _whole(counts, key) for key in counts.data}

    @property
    def samples(self) -> int | None:
        """Samples by the official count: ``total_samples``, or else the answers that were issued."""
        total = self.total_samples
        return self._count("response_counts.issued") if total is None else total

    @property
    def breakdown(self) -> Document | None:
        """Scores of the data set's parts."""
        return self.entry.child("breakdown")

    def _no_empty_container(self, key: str, expected: str) -> None:
        """LogError for an empty list or object, which counts as absent elsewhere: the official checker takes these keys
        as they are.
        """
        if isinstance(self.entry.data.get(key), list | dict) and not self.entry.data[key]:
            raise self.entry.wrong(key, expected)

    def _count(self, key: str) -> int | None:
        return None if self.entry.value(key) is None else _whole(self.entry, key)


@dataclass(frozen=True, slots=True)
class AccuracyResults:
    """The entries, in their order, and the report's other values with the configuration's (``log``)."""

    log: EndpointsLog
    scored: tuple[ScoredDataset, ...]

    @classmethod
    def of(cls, log: EndpointsLog) -> AccuracyResults:
        """The entries of an accuracy report. LogError where they are no list of objects."""
        if log.report.data.get(_SCORES, ()) is None:
            raise log.report.wrong(_SCORES, "a list of objects")
        return cls(log, tuple(map(ScoredDataset, log.report.children(_SCORES))))

    @classmethod
    def read(cls, folder: Path) -> AccuracyResults:
        """Reads the accuracy report and the configuration of a scenario's folder."""
        return cls.of(EndpointsLog.read(folder, ACCURACY_RESULTS))

    @property
    def published(self) -> ScoredDataset | None:
        """The entry whose score the official checker publishes: the first that has one."""
        return next((entry for entry in self.scored if entry.score is not None), None)

    @property
    def samples(self) -> int | None:
        """Accuracy samples by the official count: the sum over the accuracy entries; None where none tells."""
        counts = [entry.samples for entry in self.scored if entry.is_accuracy]
        told = [count for count in counts if count is not None]
        return sum(told) if told else None


def _whole(document: Document, key: str) -> int:
    count = document.integer(key)
    if count is None or count < 0:
        raise document.wrong(key, "a whole number")
    return count


def _number(value: object) -> float | None:
    """A number, or the text of one; not a finite one for what only the official checker takes for a number."""
    if isinstance(value, bool):
        return math.nan
    if not isinstance(value, int | float | str):
        return None
    try:
        return float(value)
    except OverflowError:
        return math.inf
    except ValueError:
        return None
