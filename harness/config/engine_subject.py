"""An engine that is to be checked: its options and what they mean, what it is for, and where it is written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from harness.config.engines import HttpEngine, ServedCheckpoint, TrtllmEngine
from harness.config.extends import Layered
from harness.config.models import OutputCaps, SystemFile
from harness.errors import ConfigError
from harness.rules import BenchmarkRules
from harness.rules.engine_keys import EngineKeys, MeaningName, load
from harness.rules.models import ModelFacts, find

Served = HttpEngine | TrtllmEngine
DIVIDING: tuple[MeaningName, ...] = ("tensor", "pipeline", "context", "data")
"""What a replica is divided into over GPUs."""

_COUNT_IN_NAME = re.compile(r"x(\d+)(?=_|$)")
_ARCHITECTURES = ("x86_64", "x86-64")
STRICT_DIVISIONS = ("closed", "network")
"""Those in which the rules of closed hold for engines."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What an engine is checked for.

    ``division`` is the strictest of the entries of this system and benchmark; None where it is not entered.
    ``declared_weights`` is what measurements.yaml says of weight_data_types; None where it says nothing fixed.
    ``places`` are those of the benchmark's file. ``machine`` is None where the rules alone are asked.
    """

    system: str
    scenario: str
    machine: SystemFile | None
    rules: BenchmarkRules
    caps: OutputCaps
    division: str | None = None
    declared_weights: str | None = None
    places: Layered | None = None

    @property
    def closed(self) -> bool:
        """Whether the rules of closed hold."""
        return self.division in STRICT_DIVISIONS

    def where(self, *key: str) -> object:
        """The file and line of a key of the engine, as the scenario has it."""
        if self.places is None:
            return ".".join(("engine", *key))
        own = ("scenarios", self.scenario)
        for at in ((*own, "engine_options", *key[1:]) if key[:1] == ("options",) else (), (*own, "engine", *key)):
            if at and at in self.places.places:
                return self.places.place(*at)
        base = (*own, "engine") if (*own, "engine") in self.places.places else ("engine",)
        return self.places.place(*base, *key)


@dataclass(frozen=True, slots=True)
class Checked:
    """An engine beside the list of its options and what it is checked for."""

    engine: Served
    keys: EngineKeys
    subject: Subject

    def value(self, name: MeaningName) -> Any:  # noqa: ANN401 - options hold anything
        """What the options say, or what the server takes where they do not."""
        return self.keys.meaning(self.engine.options, name)

    def whole(self, name: MeaningName) -> int | None:
        """A count that the options say or the server takes; None where there is none. ConfigError for what is none."""
        value = self.value(name)
        if value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and value >= 1:
            return value
        raise ConfigError(
            f"{self.keys.key_of(name)} is {value!r}", where=self.where(name), expected="a whole number of at least 1"
        )

    def where(self, name: MeaningName) -> object:
        """The line of the option that means ``name``, or of the options where it is not said."""
        return self.subject.where("options", *(self.keys.key_of(name) or "").split("."))

    @property
    def facts(self) -> ModelFacts | None:
        """The shape of the model; None where nothing is known of the checkpoint."""
        checkpoint = self.engine.checkpoint
        return find(checkpoint.name) if isinstance(checkpoint, ServedCheckpoint) else None

    @property
    def gpus_each(self) -> int:
        """GPUs that a replica takes."""
        total = 1
        for name in DIVIDING:
            total *= self.whole(name) or 1
        return total

    @property
    def attention_dp(self) -> bool:
        """Whether each GPU keeps requests of its own, and attention is not divided."""
        value = self.value("attention_dp")
        return value is True or (isinstance(value, int) and value > 1)


def gpus_in_name(system: str) -> int | None:
    """The accelerators that a system's name tells: the last ``x<number>`` that ends a part of it.

    ``B200-SXM-180GBx8_TRT`` has 8, ``GB300-NVL4_GB300-288GB_aarch64x4_TRT`` 4, ``CPU-torch`` tells none.
    """
    for architecture in _ARCHITECTURES:
        system = system.replace(architecture, "")
    found = _COUNT_IN_NAME.findall(system)
    return int(found[-1]) if found else None


def keys_of(engine: Served) -> EngineKeys:
    """The list that an engine's options are held against. UnknownName where its version has none."""
    return load(engine.server if isinstance(engine, HttpEngine) else engine.kind, engine.version)


def declared_weights(measurements: Mapping[str, Any], kind: str) -> str | None:
    """What measurements.yaml says of the weights of an engine's runs; None where it leaves that to the run."""
    engines = measurements.get("engines")
    own = engines.get(kind) if isinstance(engines, Mapping) else None
    said = own.get("weight_data_types") if isinstance(own, Mapping) else None
    return said if isinstance(said, str) and "$" not in said else None
