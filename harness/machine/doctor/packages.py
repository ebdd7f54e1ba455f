"""Packages as they are installed beside the harness, and what the harness says that it requires."""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib import metadata
from typing import Final

from harness.machine.facts import Unreadable

DISTRIBUTION: Final = "mlperf-inference-harness"
LOADGEN: Final = "mlcommons-loadgen"
_REQUIREMENT: Final = re.compile(r"([A-Za-z0-9._-]+)\s*([^;]*)(?:;.*extra == ['\"]([\w-]+)['\"])?")
_BOUND: Final = re.compile(r"(>=|<|==)\s*(\d+(?:\.\d+)*)")


def requirements() -> Iterator[tuple[str, str, str | None]]:
    """What the harness requires: a package, its bounds, and the extra that asks for it."""
    try:
        lines = metadata.requires(DISTRIBUTION) or []
    except metadata.PackageNotFoundError:
        raise Unreadable(f"{DISTRIBUTION} is not installed (pip install -e .)") from None
    for line in lines:
        found = _REQUIREMENT.match(line)
        if found is not None:
            yield found[1].lower(), found[2].strip(), found[3]


def version(package: str) -> str | None:
    """The version of an installed package; None where it is not."""
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def satisfied(found: str | None, bounds: str) -> bool:
    """Whether a version is there and within bounds such as ``>=3.10,<3.13`` or ``==2.13.0``; others bound nothing."""
    if found is None:
        return False
    return all(_fits(numbers(found), bound) for bound in _BOUND.findall(bounds))


def _fits(found: tuple[int, ...], bound: tuple[str, str]) -> bool:
    sign, limit = bound[0], numbers(bound[1])
    if sign == "==":
        return found[: len(limit)] == limit
    return found >= limit if sign == ">=" else found < limit


def numbers(text: str) -> tuple[int, ...]:
    """``2.13.0+cpu`` as (2, 13, 0)."""
    found = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in found[0].split(".")) if found is not None else ()


def is_one_of(found: str, configured: str) -> bool:
    """Whether a version is of those that a configuration names: 1.2.1 is a 1.2."""
    wanted = numbers(configured)
    return numbers(found)[: len(wanted)] == wanted


def python_bounds() -> str:
    """The versions of Python that the harness says it is for. Raises Unreadable where it is not installed."""
    try:
        lines = metadata.distribution(DISTRIBUTION).metadata.get_all("Requires-Python") or []
    except metadata.PackageNotFoundError:
        raise Unreadable(f"{DISTRIBUTION} is not installed (pip install -e .)") from None
    return ",".join(lines)
