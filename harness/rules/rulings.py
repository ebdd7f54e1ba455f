"""Where the rules and the tools of a round disagree, and what is taken; and the rules of other programmes."""

from __future__ import annotations

import datetime
from typing import Annotated, Any

from pydantic import Field

from harness.rules.values import LayoutName, ModelParams, Range, Ruled, SeverityName, Strict


class Said(Strict):
    """What a source says, and where."""

    says: str
    source: str


class Concerns(Strict):
    """What a ruling is about; an empty list is all."""

    benchmarks: list[str] = Field(default_factory=list)
    scenarios: list[str] = Field(default_factory=list)
    layouts: list[LayoutName] = Field(default_factory=list)
    divisions: list[str] = Field(default_factory=list)
    legs: list[str] = Field(default_factory=list)


class Ruling(Strict):
    """One disagreement. ``value`` is what the gate takes, from ``follows``; ``other`` says otherwise.

    ``severity`` is the finding where a result keeps ``value`` and only ``other`` objects (None: nothing is said),
    ``breach`` where ``value`` itself is not kept. ``accepted`` are further values with severities of their own,
    ``in_layout`` is a severity in place of ``severity`` in a layout, ``measured`` one for what was measured rather than
    set. ``when_other_objects`` says for people when that is.
    """

    id: Annotated[str, Field(pattern="^[A-Z0-9]+(-[A-Z0-9]+)*$")]
    concerns: Concerns
    value: int | float | str
    unit: str | None = None
    follows: Said
    other: Said
    severity: SeverityName | None
    breach: SeverityName | None
    accepted: dict[str, SeverityName] = Field(default_factory=dict)
    in_layout: dict[LayoutName, SeverityName] = Field(default_factory=dict)
    measured: SeverityName | None = None
    when_other_objects: str | None = None
    why: str | None = None


class StaleSince(Strict):
    """The commit and day with which upstream moved on, and to what."""

    commit: str
    day: datetime.date
    became: str


class SweBench(Strict):
    """A bound on SWE-bench: percent of instances, over some runs."""

    percent_at_least: float
    instances: int
    mean_of: int


class Profile(Strict):
    """Rules of another programme that a user may ask for by name; never those of a row of the round."""

    programme: Ruled[str]
    stale_since: Ruled[StaleSince] | None = None
    stale_severity: SeverityName
    model: Ruled[str]
    trajectories: Ruled[int]
    settings: Ruled[dict[str, Any]]
    model_params: Ruled[ModelParams]
    inline_percent_at_least: Ruled[float]
    mean_output_tokens: Ruled[Range]
    mean_output_tokens_over: Ruled[list[str]]
    swe_bench: Ruled[SweBench]
    speculative_decoding: Ruled[str]
