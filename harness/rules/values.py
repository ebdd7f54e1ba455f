"""The small values that a rule pack is made of, each with the place it was read."""

from __future__ import annotations

import datetime
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field

T = TypeVar("T")
SeverityName = Literal["reject", "review", "note"]
LayoutName = Literal["loadgen", "endpoints"]


class Strict(BaseModel):
    """What every part of a pack is: no unknown key, no change, no number that is none."""

    # defer_build: of many models only those that are read are made ready, which is a fifth of a command's start.
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, allow_inf_nan=False)


class Source(Strict):
    """A text or program that rules were read from: what, which commit, on which day."""

    what: str
    commit: Annotated[str, Field(pattern="^[0-9a-f]{40}$")]
    as_of: datetime.date


class Ruled(Strict, Generic[T]):
    """One value of the round with its source (a key of the pack's ``sources``, then the place in it).

    ``as_of`` is the source's unless the value has a day of its own.
    """

    value: T
    source: str
    as_of: datetime.date | None = None


class Seeds(Strict):
    """LoadGen's three random seeds of the round."""

    qsl: Ruled[int]
    sample_index: Ruled[int]
    schedule: Ruled[int]


class FirstLoadGen(Strict):
    """The commit since which LoadGen is the round's, and the first version number after it."""

    commit: str
    version: str


class ErrorCorrection(Strict):
    """Where memory must correct its errors: in which divisions of which category, and what the rule asks in words."""

    divisions: list[str]
    category: str
    demand: str

    def holds(self, division: str, categories: str) -> bool:
        """Whether it holds for a result; ``categories`` may be several, as a description's system_type has them."""
        return division in self.divisions and self.category in [word.strip() for word in categories.split(",")]


class SystemFields(Strict):
    """The keys of a system description: all that must be there, which of them may be empty, which are asked for where
    the system is a network's, which are known for where power is measured, which must read as whole numbers.
    """

    required: Ruled[list[str]]
    may_be_empty: Ruled[list[str]]
    network_required: Ruled[list[str]]
    power: Ruled[list[str]]
    whole_numbers: Ruled[list[str]]


class Subset(Strict):
    """A part of the accuracy data set: rows, and how often each question is asked."""

    samples: int
    repeats: int


class Target(Strict):
    """The accuracy a closed result must reach: the key it is written under and its lower bound, inclusive."""

    key: str
    at_least: float


class UpperLimit(Strict):
    """A bound from above, inclusive, of what is written under a key."""

    key: str
    at_most: float


class Range(Strict):
    """Two bounds, both inclusive."""

    at_least: float
    at_most: float


class SamplingRule(Strict):
    """How the benchmark samples; ``top_k`` 0 is off."""

    temperature: float
    top_p: float
    top_k: int


class Speculation(Strict):
    """How a scenario may decode speculatively: with which drafter, how many tokens and branches a step."""

    drafter: str
    draft_tokens: int | None = None
    topk: int | None = None


class OutputCaps(Strict):
    """New tokens an answer may have, by kind of leg."""

    performance: Ruled[int]
    accuracy: Ruled[int]


class Metric(Strict):
    """The key of the detail log that is the result, its units, and what it is divided by to have them."""

    key: str
    units: str
    divide_by: int = 1


class EndpointsMetric(Strict):
    """What the official checker takes for the result of the endpoints layout: a key, or two for a quotient whose second
    is in nanoseconds. ``units`` are what it is in, ``labelled`` what the table calls it.
    """

    key: str | tuple[str, str]
    units: str
    labelled: str
    divide_by: int = 1


class ScenarioSet(Strict):
    """The scenarios that a closed benchmark must have: all of one list, and one of the other where it has any."""

    required: list[str]
    one_of: list[str]


class ModelParams(Strict):
    """Sampling in an endpoints configuration: ``required`` are there and equal; ``allowed`` are absent, null or equal;
    ``free`` have any value. What is in none of them is a deviation.
    """

    required: dict[str, Any]
    allowed: dict[str, Any]
    free: list[str]
