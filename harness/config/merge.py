"""One mapping over another: what ``extends`` does to files and ``engine_options`` to an engine's options."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """``below`` with ``above`` over it: mappings merge deeply, every other value (null and lists too) is replaced."""
    both = dict(below)
    for key, value in above.items():
        under = both.get(key)
        both[key] = merged(under, value) if isinstance(under, Mapping) and isinstance(value, Mapping) else value
    return both
