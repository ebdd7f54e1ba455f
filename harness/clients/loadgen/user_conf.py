"""``user.conf``: what we ask of LoadGen, written and checked by us because LoadGen checks nothing.

LoadGen ignores unknown keys and lines without blanks around ``=``, drops the whole file for a bad value or a comment
without a blank after its ``#``, takes the last of several values on a line, and where it wants an integer reads
``1.5e3`` as 1 and ``010`` as 8. So a file is only handed over when :func:`parse` accepts it, and what LoadGen
says it was asked for is compared afterwards (:func:`misread`). The round's own values come from the mlperf.conf inside
LoadGen and are not repeated here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass

from harness.errors import ConfigError, UnknownName

SCENARIOS = ("Offline", "Server", "SingleStream", "MultiStream", "*")

# Key -> (type, key of the detail log that echoes it, factor from the file's unit to the log's).
_KEYS: dict[str, tuple[type, str | None, float]] = {
    "target_qps": (float, None, 1),
    "target_latency": (int, None, 1e6),
    "min_duration": (int, "requested_min_duration_ms", 1),
    "max_duration": (int, "requested_max_duration_ms", 1),
    "min_query_count": (int, "requested_min_query_count", 1),
    "max_query_count": (int, "requested_max_query_count", 1),
    "performance_sample_count_override": (int, "requested_performance_sample_count_override", 1),
    "accuracy_sample_count_override": (int, "requested_accuracy_sample_count_override", 1),
}
_ECHO_BY_SCENARIO = {
    ("target_qps", "Offline"): "requested_offline_expected_qps",
    ("target_qps", "Server"): "requested_server_target_qps",
    ("target_latency", "Server"): "requested_server_target_latency_ns",
    ("target_latency", "SingleStream"): "requested_single_stream_expected_latency_ns",
}
"""SingleStream knows no rate, and takes the latency for what one query is expected to take, no more."""
_WHOLE, _DECIMAL = r"0|[1-9][0-9]*", r"[0-9]+(\.[0-9]+)?"
_LINE = re.compile(r"(?P<model>[\w.\-]+|\*)\.(?P<scenario>[A-Za-z]+|\*)\.(?P<key>\w+) = (?P<value>\S+)")


@dataclass(frozen=True, slots=True)
class Setting:
    """One line: ``model.scenario.key = value``."""

    model: str
    scenario: str
    key: str
    value: str

    def __post_init__(self) -> None:
        if self.scenario not in SCENARIOS:
            raise UnknownName("scenario", self.scenario, SCENARIOS)
        if self.key not in _KEYS:
            raise UnknownName("user.conf key", self.key, _KEYS)
        pattern = _WHOLE if _KEYS[self.key][0] is int else _DECIMAL
        if not re.fullmatch(pattern, self.value):
            raise ConfigError(
                f"user.conf: {self.key} = {self.value!r} is not a number that LoadGen reads",
                expected="a whole number" if _KEYS[self.key][0] is int else "a decimal number without exponent",
            )

    def __str__(self) -> str:
        return f"{self.model}.{self.scenario}.{self.key} = {self.value}"


def write(model: str, scenario: str, values: Mapping[str, float]) -> str:
    """The text of a user.conf for one run. ``scenario`` is LoadGen's; numbers keep six decimals at most."""
    settings = [Setting(model, scenario, key, _number(key, value)) for key, value in values.items()]
    return "".join(f"{setting}\n" for setting in settings)


def parse(text: str, *, where: object = None) -> list[Setting]:
    """The settings of a user.conf. ConfigError names the line that LoadGen would ignore or misread."""
    settings = []
    for number, line in enumerate(text.split("\n"), 1):
        if line.split()[:1] in ([], ["#"]):
            continue
        match = _LINE.fullmatch(line.rstrip())
        if match is None:
            raise ConfigError(
                f"user.conf line {number} is not one that LoadGen reads: {line!r}",
                where=where,
                expected="model.Scenario.key = value, with blanks around the equals sign and nothing after the value; "
                "or a comment, with a blank after its #",
            )
        settings.append(Setting(**match.groupdict()))
    return settings


def misread(settings: list[Setting], logged: Mapping[str, object]) -> list[str]:
    """Where LoadGen's log says that it was asked for something else than we wrote: one sentence each.

    ``logged`` maps the detail log's keys to their values.
    """
    wrong = []
    for setting in settings:
        kind, echo, factor = _KEYS[setting.key]
        echo = echo or _ECHO_BY_SCENARIO.get((setting.key, setting.scenario))
        if echo is None:
            continue
        asked = kind(setting.value) * factor
        told = logged.get(echo)
        # LoadGen prints floats with six significant digits.
        slack = 0 if kind is int and isinstance(told, int) else 1e-5 * asked
        if not isinstance(told, (int, float)) or abs(told - asked) > slack:
            wrong.append(f"{setting} was written, but LoadGen logged {echo} = {told}")
    return wrong


def _number(key: str, value: float) -> str:
    if not math.isfinite(value):
        raise ConfigError(f"user.conf: {key} takes a number, not {value}")
    if key in _KEYS and _KEYS[key][0] is int:
        if value != int(value):
            raise ConfigError(f"user.conf: {key} takes a whole number, not {value}")
        return str(int(value))
    text = f"{value:.6f}".rstrip("0").rstrip(".")
    if value and not float(text):
        raise ConfigError(f"user.conf: {key} = {value:g} is too small to be written with six decimals")
    return text
