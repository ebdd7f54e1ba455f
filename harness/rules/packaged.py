"""Reads YAML files that come with the package."""

from __future__ import annotations

import importlib.resources
from typing import Final

import yaml

# libyaml's, where PyYAML was built with it: every process reads a pack, and Python's takes eight times as long.
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def read(package: str, name: str) -> object:
    """The plain data of a file in a package of ours."""
    text = importlib.resources.files(package).joinpath(name).read_text(encoding="utf-8")
    return yaml.load(text, Loader=_LOADER)  # noqa: S506 - both are safe loaders
