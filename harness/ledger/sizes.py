"""How large legs are before they run: what LoadGen will issue, how long it will take, what it needs, what is wrong."""

from __future__ import annotations

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Known:
    """A number, and who says it."""

    value: float
    origin: str

    def __post_init__(self) -> None:
        if not math.isfinite(self.value) or self.value <= 0:
            raise ValueError(f"{self.origin}: {self.value} is no rate")


@dataclass(frozen=True, slots=True)
class AtShare:
    """What a constant share of answers over the limit takes: ``queries`` and ``seconds``, None where none are enough
    (or nobody knows the rate).
    """

    share: float
    queries: int | None
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Stopping:
    """LoadGen's early stopping of a leg: of its queries so many may be over a limit at the percentile.

    ``allowed_over`` is -1 where even none over would be too few queries; ``fewest`` are enough for none over.
    """

    percentile: float
    queries: int
    allowed_over: int
    fewest: int
    at_shares: tuple[AtShare, ...] = ()

    @property
    def allowed_share(self) -> float:
        """The largest share over the limit with which the leg still passes."""
        return max(self.allowed_over, 0) / self.queries if self.queries else 0.0


@dataclass(frozen=True, slots=True)
class LegSize:
    """One leg. ``expected_s`` is None where nothing says how long it takes; ``unknown`` then says why.

    ``rate`` is what LoadGen is told, ``answers`` how fast the engine answers, both in samples/s. ``logged_bytes`` and
    ``library_bytes`` are bounds from above; the latter is None where the round does not say how long prompts are.
    ``faults`` are why the leg cannot be VALID as it is configured, ``advice`` what is needlessly long or tight.
    """

    system: str
    benchmark: str
    scenario: str
    leg: str
    rate: Known | None
    answers: Known | None
    issued: int | None
    expected_s: float | None
    unknown: str
    warmup_s: float | None
    logged_bytes: int
    library_bytes: int | None
    stopping: Stopping | None = None
    faults: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if (self.expected_s is None) != bool(self.unknown):
            raise ValueError(f"{self.name}: a time of {self.expected_s} s, which is not known because {self.unknown!r}")

    @property
    def name(self) -> str:
        """For people: ``system/benchmark/scenario/leg``."""
        return f"{self.system}/{self.benchmark}/{self.scenario}/{self.leg}"


@dataclass(frozen=True, slots=True)
class MatrixSize:
    """All legs of a plan, in the order they run, and what they need together.

    ``starts`` is how often an engine is started; ``free_bytes`` what the disk of the results folder has left, None
    where that could not be read. ``notes`` are what was calculated of the engines.
    """

    legs: tuple[LegSize, ...]
    starts: int
    results: str
    free_bytes: int | None
    needed_bytes: int
    notes: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def known_s(self) -> float:
        """The time of the legs whose time is known, with their warm-ups; without starts of engines."""
        return sum((leg.expected_s or 0) + (leg.warmup_s or 0) for leg in self.legs)

    @property
    def unknown_legs(self) -> int:
        """How many legs nothing says the time of."""
        return sum(leg.expected_s is None for leg in self.legs)

    @property
    def can_be_valid(self) -> bool:
        """Whether nothing that is configured stands against it."""
        return not self.faults and not any(leg.faults for leg in self.legs)
