"""The operating system, and the software stack that the caller and the drivers name."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from importlib import metadata

from harness.machine.facts import Fact, Facts, Unreadable

OS_KEYS = ("operating_system",)
STACK_KEYS = ("framework", "other_software_stack")

_BELOW = ("mlcommons-loadgen", "numpy")
"""Packages beside the engine's that take part in every measurement."""


def read_operating_system() -> Facts:
    """Distribution and kernel. Raises Unreadable where the system has no os-release."""
    try:
        release = platform.freedesktop_os_release()
    except OSError:
        raise Unreadable("the system has no os-release file") from None
    name = f"{release.get('NAME', '')} {release.get('VERSION_ID', '')}".strip()
    if not name:
        raise Unreadable("os-release names no system")
    return {"operating_system": Fact(f"{name}, kernel {platform.release()}", "os-release and uname")}


def stack(framework: Mapping[str, str], drivers: Mapping[str, str]) -> Facts:
    """``framework`` is what computes (name to version, as the engine says); beside it Python, LoadGen and drivers."""
    computes = ", ".join(f"{name} {version}" for name, version in framework.items()) or None
    beside = {f"Python {platform.python_version()}": None, **{f"{n} {v}": None for n, v in drivers.items()}}
    for package in _BELOW:
        version = _installed(package)
        if version is not None and package not in framework:
            beside[f"{package} {version}"] = None
    return {
        "framework": Fact(computes, "the engine" if computes else "no engine has named its software"),
        "other_software_stack": Fact(", ".join(beside), "installed packages and drivers"),
    }


def _installed(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
