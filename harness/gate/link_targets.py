"""Where symbolic links of a tree lead. The old official checker refuses broken ones; the rules say nothing of links."""

from __future__ import annotations

import enum
import os
from pathlib import Path

from harness.gate.index import Node, TreeIndex


class Target(str, enum.Enum):
    """What a link leads to, in words that end a sentence."""

    NOTHING = "nothing, or to itself"
    ABSOLUTE = "an absolute path, which is another on every machine"
    OUTSIDE = "a place outside the tree"
    ABOVE = "a folder that it lies in"
    SPECIAL = "what is neither a file nor a folder"
    FILE = "a file of the tree"
    FOLDER = "a folder of the tree"


def target_of(index: TreeIndex, link: Node) -> Target:
    """Where a link leads, whatever other links are on the way."""
    path = index.locate(link.path)
    try:
        if os.path.isabs(os.readlink(path)):  # noqa: PTH115, PTH117 - Path would tidy it
            return Target.ABSOLUTE
        root = index.root.resolve()
        # The parent is the tree's own: only the link itself can lead away.
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):  # RuntimeError: a loop, before Python 3.13
        return Target.NOTHING
    if not target.is_relative_to(root):
        return Target.OUTSIDE
    return _inside(target, path.parent.resolve())


def _inside(target: Path, parent: Path) -> Target:
    if target.is_dir():
        return Target.ABOVE if parent.is_relative_to(target) else Target.FOLDER
    return Target.FILE if target.is_file() else Target.SPECIAL
