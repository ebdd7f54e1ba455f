"""What a scripted engine is told to do: its answers, its service times, its faults."""

from __future__ import annotations

import math
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

import numpy as np
import numpy.typing as npt

from harness.engines.base import Int64Array
from harness.errors import ConfigError, UnknownName

WHERE: Final = "settings of the scripted engine"
EVERY_DATASET: Final = "*"
LAWS: Final = ("fixed", "exponential", "lognormal")

T = TypeVar("T")


def _known_keys(cls: type[Any], found: object, kind: str) -> dict[str, Any]:
    known = [each.name for each in fields(cls)]
    values = _need_mapping(kind, found)
    for name in values:
        if name not in known:
            raise UnknownName(kind, str(name), known, where=WHERE)
    return dict(values)


def _need_mapping(name: str, found: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", _need(Mapping, name, found, "a mapping"))


def _need_list(name: str, found: object) -> list[int]:
    return list(_need((list, tuple, set, frozenset), name, found, "a list of rows"))


def _need(kind: type[T] | tuple[type, ...], name: str, found: object, expected: str) -> Any:  # noqa: ANN401
    if not isinstance(found, kind):
        raise ConfigError(f"{name} is {found!r}", where=WHERE, expected=expected)
    return found


def _row_of_key(key: object) -> int:
    """JSON's keys are strings."""
    text = str(key)
    if not text.isdecimal():
        raise ConfigError(f"faults.slow has the key {key!r}", where=WHERE, expected="the number of a row")
    return int(text)


def _need_integer(name: str, found: object, least: int) -> None:
    if not isinstance(found, int) or isinstance(found, bool) or found < least:
        raise ConfigError(f"{name} is {found!r}", where=WHERE, expected=f"an integer of at least {least}")


def _need_number(name: str, found: object, least: float) -> None:
    if not isinstance(found, (int, float)) or isinstance(found, bool) or not least <= found < math.inf:
        raise ConfigError(f"{name} is {found!r}", where=WHERE, expected=f"a finite number of at least {least:g}")


@dataclass(frozen=True, slots=True)
class ServiceTime:
    """How long something takes: always ``mean_s`` seconds, or drawn around it.

    A draw depends on the seed and the row alone, so neither order nor rate changes it. ``sigma`` is the standard
    deviation of the logarithm, for the log-normal law.
    """

    mean_s: float = 0.0
    law: str = "fixed"
    sigma: float = 0.5

    def __post_init__(self) -> None:
        if self.law not in LAWS:
            raise UnknownName("law of service times", self.law, LAWS, where=WHERE)
        _need_number("mean_s", self.mean_s, 0.0)
        _need_number("sigma", self.sigma, 0.0)

    def draw_ns(self, rows: Int64Array, stream: str) -> npt.NDArray[np.float64]:
        """One time in nanoseconds for each row; ``stream`` names the random stream."""
        mean_ns = self.mean_s * 1e9
        if self.law == "fixed" or mean_ns == 0:
            return np.full(len(rows), mean_ns)
        if self.law == "exponential":
            return -mean_ns * np.log(_uniform(rows, stream))
        normal = np.sqrt(-2 * np.log(_uniform(rows, stream))) * np.cos(2 * np.pi * _uniform(rows, stream + "/angle"))
        drawn: npt.NDArray[np.float64] = np.exp(math.log(mean_ns) - self.sigma**2 / 2 + self.sigma * normal)
        return drawn


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong, by row of one data set.

    ``fail``: a failure instead of an answer; ``short``: one token; ``empty``: none; ``hang``: never answered (and its
    slot never free again); ``die``: the engine's process ends; ``slow``: row to seconds more before the first token.
    """

    fail: frozenset[int] = frozenset()
    short: frozenset[int] = frozenset()
    empty: frozenset[int] = frozenset()
    hang: frozenset[int] = frozenset()
    die: int | None = None
    slow: Mapping[int, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("fail", "short", "empty", "hang"):
            for row in getattr(self, name):
                _need_integer(f"faults.{name}", row, 0)
        if self.die is not None:
            _need_integer("faults.die", self.die, 0)
        for row, seconds in self.slow.items():
            _need_integer("faults.slow", row, 0)
            _need_number(f"faults.slow.{row}", seconds, 0.0)

    def shortened(self, row: int) -> int | None:
        """To how many tokens the answer of this row is cut, None where it is whole."""
        if row in self.empty:
            return 0
        return 1 if row in self.short else None

    @classmethod
    def parse(cls, found: object) -> Faults:
        """From plain JSON values: lists of rows, and an object of row to seconds. Raises ConfigError."""
        values = _known_keys(cls, found, "fault")
        for name in ("fail", "short", "empty", "hang"):
            if name in values:
                values[name] = frozenset(_need_list(f"faults.{name}", values[name]))
        if "slow" in values:
            slow = _need_mapping("faults.slow", values["slow"])
            values["slow"] = {_row_of_key(row): seconds for row, seconds in slow.items()}
        return cls(**values)


NO_FAULTS: Final = Faults()


@dataclass(frozen=True, slots=True)
class ScriptedSettings:
    """All of it. Without a file of answers for a data set, an answer is ``length`` ids that count up from its row.

    ``answers`` maps a data set's name to its file, ``faults`` a name, or ``"*"`` for all others, to what goes wrong.
    ``slots`` None means that any number of requests is worked on at once.
    """

    answers: Mapping[str, Path] = field(default_factory=dict)
    length: int = 2
    vocab_size: int = 201_088
    max_total_tokens: int = 131_072
    slots: int | None = None
    first_token: ServiceTime = ServiceTime()
    per_token: ServiceTime = ServiceTime()
    seed: int = 0
    faults: Mapping[str, Faults] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _need_integer("length", self.length, 0)
        _need_integer("vocab_size", self.vocab_size, 1)
        _need_integer("max_total_tokens", self.max_total_tokens, 1)
        _need_integer("seed", self.seed, 0)
        if self.slots is not None:
            _need_integer("slots", self.slots, 1)
        object.__setattr__(self, "answers", MappingProxyType(dict(self.answers)))
        object.__setattr__(self, "faults", MappingProxyType(dict(self.faults)))

    def faults_of(self, dataset: str) -> Faults:
        """The faults of one data set; :data:`NO_FAULTS` itself where there are none."""
        return self.faults.get(dataset) or self.faults.get(EVERY_DATASET, NO_FAULTS)

    @classmethod
    def parse(cls, found: object) -> ScriptedSettings:
        """From plain JSON values. Raises ConfigError, with the nearest known key for an unknown one."""
        values = _known_keys(cls, found, "setting of the scripted engine")
        for name in ("first_token", "per_token"):
            if name in values:
                values[name] = ServiceTime(**_known_keys(ServiceTime, values[name], f"key of {name}"))
        if "answers" in values:
            answers = _need_mapping("answers", values["answers"])
            values["answers"] = {str(name): Path(str(path)) for name, path in answers.items()}
        if "faults" in values:
            faults = _need_mapping("faults", values["faults"])
            values["faults"] = {str(name): Faults.parse(each) for name, each in faults.items()}
        return cls(**values)

    def to_json(self) -> dict[str, object]:
        """What :meth:`parse` reads, in plain JSON values."""
        return {
            "answers": {name: str(path) for name, path in self.answers.items()},
            "length": self.length,
            "vocab_size": self.vocab_size,
            "max_total_tokens": self.max_total_tokens,
            "slots": self.slots,
            "first_token": _plain(self.first_token),
            "per_token": _plain(self.per_token),
            "seed": self.seed,
            "faults": {name: _plain(faults) for name, faults in self.faults.items()},
        }


def _uniform(rows: Int64Array, stream: str) -> npt.NDArray[np.float64]:
    """One number in (0, 1] for each row: the finaliser of SplitMix64 over row and stream."""
    mixed = rows.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(zlib.crc32(stream.encode()) << 31)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed ^= mixed >> np.uint64(31)
    shares: npt.NDArray[np.float64] = ((mixed >> np.uint64(11)).astype(np.float64) + 1) / 2**53
    return shares


def _plain(thing: ServiceTime | Faults) -> dict[str, object]:
    plain: dict[str, object] = {}
    for each in fields(thing):
        value = getattr(thing, each.name)
        if isinstance(value, frozenset):
            value = sorted(value)
        elif isinstance(value, Mapping):
            value = {str(row): seconds for row, seconds in value.items()}
        plain[each.name] = value
    return plain
