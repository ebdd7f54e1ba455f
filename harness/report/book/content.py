"""What a report is made of: rows, runs and figures, already counted. Nothing here knows of a page or a plot.

A figure is small whatever the run was: a histogram and quantiles, never points. What cannot be shown is a
:class:`Missing` with the reason in its place. Times are nanoseconds where a name says so; a figure's values are in its
own ``unit``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from harness.ledger.turn_report import TurnReport

Unit: TypeAlias = Literal["ms", "s", "tokens", "samples", "samples/s", "tokens/s"]
Source: TypeAlias = Literal["results", "tree"]
Severity: TypeAlias = Literal["reject", "review", "note"]


@dataclass(frozen=True, slots=True)
class Limit:
    """What a percentile is held against. ``inclusive``: the value itself is allowed."""

    percentile: float
    value: float
    inclusive: bool
    source: str


@dataclass(frozen=True, slots=True)
class Distribution:
    """How the values of a run lie, in ``unit``.

    ``quantiles`` are (share from 0 to 1, value) pairs that rise, some hundreds at most, both ends among them.
    ``edges`` has one more entry than ``counts``, which add up to ``count``; ``log`` is whether the edges lie evenly on
    a logarithmic scale (those of whole numbers as evenly as these can). Where the values themselves are not known, only
    some percentiles of them, both are empty: then there is a line of quantiles and no histogram.
    """

    key: str
    """``latency``, ``ttft``, ``tpot``, ``input_tokens``, ``output_tokens``, ``turn_latency`` …: unique in a run."""
    title: str
    unit: Unit
    count: int
    mean: float
    p50: float
    p90: float
    p99: float
    max: float
    quantiles: tuple[tuple[float, float], ...]
    edges: tuple[float, ...]
    counts: tuple[int, ...]
    log: bool = False
    limit: Limit | None = None
    about: str = ""
    """What the values are and over which samples, where the title does not say it."""

    def __post_init__(self) -> None:
        histogram = sum(self.counts) == self.count and len(self.edges) == len(self.counts) + 1
        if self.count < 1 or not (histogram or not (self.counts or self.edges)):
            raise ValueError(f"{self.key}: a histogram of other values than it counts")
        shares, values = zip(*self.quantiles, strict=True) if self.quantiles else ((), ())
        if len(shares) < 2 or list(shares) != sorted(shares) or list(values) != sorted(values):
            raise ValueError(f"{self.key}: quantiles that do not rise")


@dataclass(frozen=True, slots=True)
class TimeLine:
    """Values over the time of a run: ``starts_s`` are the beginnings of equal spans of ``span_s``, some hundreds at
    most. Spans of which there is no value (no answer ended in them) are left out, so there may be gaps.
    """

    key: str
    title: str
    unit: Unit
    span_s: float
    starts_s: tuple[float, ...]
    values: tuple[float, ...]
    about: str = ""
    limit: Limit | None = None
    """Of a percentile over time: what the whole run's is held against."""

    def __post_init__(self) -> None:
        if not self.values or len(self.starts_s) != len(self.values):
            raise ValueError(f"{self.key}: a line of other times than values")


@dataclass(frozen=True, slots=True)
class Missing:
    """A figure that there is not, and why."""

    key: str
    title: str
    why: str


Figure: TypeAlias = Distribution | TimeLine | Missing


@dataclass(frozen=True, slots=True)
class Margin:
    """One limit and what was measured. ``share`` is measured over limit; None where nothing was measured."""

    name: str
    unit: str
    measured: float | None
    limit: float
    direction: Literal["below", "at most", "at least"]
    met: bool
    source: str

    @property
    def share(self) -> float | None:
        """Measured over limit."""
        return None if self.measured is None or not self.limit else self.measured / self.limit


@dataclass(frozen=True, slots=True)
class Said:
    """A finding, for the report."""

    rule: str
    severity: Severity
    place: str
    found: str
    expected: str
    mend: str
    source: str


@dataclass(frozen=True, slots=True)
class Subset:
    """Accuracy of one part of the data. correct + wrong + failed + unscored = samples."""

    name: str
    samples: int
    correct: int
    wrong: int
    failed: int
    unscored: int
    mean_output_tokens: float | None


@dataclass(frozen=True, slots=True)
class RunView:
    """One run, or one leg of a row of a tree.

    ``word`` is VALID, INVALID, or the state of a run that has no verdict (``interrupted`` of one that says it is
    running and was killed), or ``unread`` with ``headline`` the reason. ``facts`` are (name, value) pairs in the order
    they are shown, by group: versions, machine, engine, data set, settings, fingerprint.
    """

    key: str
    """Unique in the book, usable in an address: letters, digits, ``-``."""
    title: str
    """system/benchmark/scenario/leg#attempt, or the folder of a row's leg in a tree."""
    leg: str
    word: str
    headline: str
    """The result with its unit, the score, the audit's number, or why there is none."""
    place: str
    started_at: str | None = None
    seconds: float | None = None
    not_submittable: tuple[str, ...] = ()
    deviations: tuple[str, ...] = ()
    margins: tuple[Margin, ...] = ()
    figures: tuple[Figure, ...] = ()
    counts: tuple[tuple[str, int], ...] = ()
    """issued, answered, failed, outstanding, output tokens."""
    failure_kinds: tuple[tuple[str, int], ...] = ()
    failures: tuple[str, ...] = ()
    """The first of the failed samples, a line each."""
    subsets: tuple[Subset, ...] = ()
    comparisons: tuple[tuple[str, float, float, float], ...] = ()
    """figure, LoadGen's, the harness's, ratio."""
    turns: TurnReport | None = None
    facts: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    findings: tuple[Said, ...] = ()
    probe: bool = False
    """A shortened run of a search for a rate: it tells of the search, and is never a row's."""
    scores: tuple[tuple[str, float], ...] = ()
    """Figures of the accuracy by name: the one that is judged first, then those that nothing is judged by."""
    notes: tuple[str, ...] = ()
    """What of the run could not be read or looked at, and why."""


@dataclass(frozen=True, slots=True)
class RowView:
    """A result row: what is or would be submitted for (system, benchmark, scenario).

    ``boundary`` is what must be equal for two rows to be compared in percent (benchmark, scenario, division, category,
    accelerators, nodes, model …), name to value as text. ``verified`` names who verified the figure, None where nobody
    did. ``runs`` are keys of the book's runs, the performance leg first.
    """

    key: str
    system: str
    benchmark: str
    scenario: str
    division: str | None
    category: str | None
    submitter: str | None
    word: str
    metric: str | None
    """The key of the metric, as the round names it."""
    value: float | None
    unit: str
    higher_is_better: bool
    accuracy: str
    audits: tuple[tuple[str, str], ...]
    """Audit, and PASS, FAIL or what is lacking."""
    margins: tuple[Margin, ...]
    reasons: tuple[str, ...]
    """Why it cannot be submitted, or what a reviewer will ask."""
    boundary: tuple[tuple[str, str], ...]
    runs: tuple[str, ...]
    demonstration: bool = False
    verified: str | None = None


@dataclass(frozen=True, slots=True)
class Book:
    """All of a report. ``notes`` say what could not be read or looked at, and why."""

    title: str
    source: Source
    place: str
    round: str
    made_at: str
    made_by: str
    """Harness version."""
    rows: tuple[RowView, ...]
    runs: tuple[RunView, ...]
    findings: tuple[Said, ...] = ()
    notes: tuple[str, ...] = ()

    def run(self, key: str) -> RunView:
        """The run of a key; KeyError where there is none."""
        for run in self.runs:
            if run.key == key:
                return run
        raise KeyError(key)
