"""A capture of mlperf-sysinfo (``system_desc.json``): a second opinion on a machine, taken as it is and marked as such.

It is known to be wrong in places: memory in powers of ten without a unit's name (``25G``), virtual disks as ``HDD``.
Whoever imports it sees each value beside what is read here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from harness.config.models import SystemFile
from harness.errors import ConfigError
from harness.machine.describe import WHOLE_NUMBERS

Value: TypeAlias = str | int

ENTERED = ("division", "submitter", "status", "system_type")
"""What an entry of submission.yaml says, not a system's file."""
_TOOL = "mlperf_sysinfo"
_COUNTS = (*WHOLE_NUMBERS, "host_processor_core_count")


@dataclass(frozen=True, slots=True)
class SysinfoCapture:
    """``values`` by key of a system file; ``elsewhere`` are those whose place is another file or none."""

    values: Mapping[str, Value]
    elsewhere: Mapping[str, Value]
    source: str
    incomplete: str | None
    """Why the tool itself says that it did not see all."""


def read_capture(path: Path) -> SysinfoCapture:
    """Reads a capture; what is empty is no value. ConfigError where it is none, or a value has another type."""
    data = _read(path)
    tool = data.get(_TOOL)
    if not isinstance(tool, dict) or not isinstance(tool.get("version"), str):
        raise ConfigError(
            "not a capture of mlperf-sysinfo",
            where=path,
            expected=f"an object with {_TOOL}.version, as `mlperf-sysinfo capture` writes it",
            mend="give the system_desc.json of its output folder",
        )
    values: dict[str, Value] = {}
    elsewhere: dict[str, Value] = {}
    for key, value in data.items():
        if key == _TOOL or value is None or value == "":
            continue
        said = _value(path, key, value)
        (values if key in SystemFile.model_fields and key != "sources" and said != 0 else elsewhere)[key] = said
    captured_at = tool.get("captured_at")
    source = f"mlperf-sysinfo {tool['version']}" + (f", captured {captured_at}" if captured_at else "")
    return SysinfoCapture(values, elsewhere, source, _incomplete(tool))


def _read(path: Path) -> dict[str, Any]:
    try:
        data = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError("no such file", where=path) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", where=path, expected="a UTF-8 text file") from None
    except (json.JSONDecodeError, RecursionError) as error:
        raise ConfigError(f"not JSON: {error}", where=path, expected="the system_desc.json of a capture") from None
    if not isinstance(data, dict):
        raise ConfigError("not a capture of mlperf-sysinfo", where=path, expected="one object")
    return data


def _value(path: Path, key: str, value: object) -> Value:
    """A whole number where the key is one, else text; the tool writes either as the other."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise ConfigError(
            f"{key!r} is no text and no number but a {type(value).__name__}", where=path, mend="correct the value"
        )
    text = str(value).strip()
    if key not in _COUNTS:
        return text
    if not (text.isascii() and text.isdigit()):
        raise ConfigError(f"{key!r} is no whole number: {value}", where=path, mend="correct the value")
    return int(text)


def _incomplete(tool: Mapping[str, Any]) -> str | None:
    if tool.get("complete") is False:
        return f"{tool.get('nodes_collected')} of {tool.get('nodes_expected')} nodes were collected"
    return None
