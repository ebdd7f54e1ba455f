"""Disk and memory that a leg needs: bounds from above, of what is known before it runs."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from harness.errors import MissingError
from harness.gate.run_facts import PERFORMANCE
from harness.runs.leg_settings import asked_rows, output_cap
from harness.runs.plan import PlannedLeg

_HEX_BYTES_PER_TOKEN: Final = 8
"""The accuracy log writes each int32 as eight hexadecimal digits."""
_HEX_BYTES_PER_TOKEN_OF_TEXT: Final = 32
"""And each byte of a chat as two; tokens of more than 16 bytes are rare."""
_JSON_BYTES_PER_TOKEN: Final = 16
"""The reply of a turn is logged as it came."""
_BYTES_PER_TURN: Final = 1024
"""Its names and times."""
_TOKEN_BYTES: Final = 4
SPARE_BYTES: Final = 256 << 20
"""Detail and summary logs, samples.arrow, user.conf."""


def logged_bytes(leg: PlannedLeg, rows: int, turns: int | None, *, of_text: bool) -> int:
    """How long what a leg logs of its answers may be: of a performance leg nothing but what turns came to.

    Args:
        leg: the leg.
        rows: rows of the data set, of which a short leg asks fewer.
        turns: requests of the rows that are asked, where a row is a trajectory.
        of_text: whether answers are text; else they are token ids.

    """
    cap = output_cap(leg)
    if turns is not None:
        return turns * (cap * _JSON_BYTES_PER_TOKEN + _BYTES_PER_TURN)
    if leg.leg == PERFORMANCE:
        return 0
    return asked_rows(leg, rows) * cap * (_HEX_BYTES_PER_TOKEN_OF_TEXT if of_text else _HEX_BYTES_PER_TOKEN)


def library_bytes(leg: PlannedLeg, rows: int) -> int | None:
    """Prompts of a leg in LoadGen's process, all as long as the longest; None where the round tells no length."""
    longest = leg.rules.longest_prompts
    of_leg = None if longest is None else longest.value.get(leg.which)
    return None if of_leg is None else asked_rows(leg, rows) * of_leg * _TOKEN_BYTES


def free_bytes(root: Path) -> int | None:
    """What is free on the disk of a results folder that need not be there yet; None where nobody says."""
    above = (root.absolute(), *root.absolute().parents)
    try:
        return shutil.disk_usage(next(folder for folder in above if folder.exists())).free
    except OSError:
        return None


def check_disk(root: Path, logged: int) -> None:
    """MissingError where the results folder's disk has no room for the logs of a leg."""
    needed = SPARE_BYTES + logged
    free = shutil.disk_usage(root).free
    if free < needed:
        raise MissingError(
            f"no room for the leg's logs: {free >> 20} MiB free, up to {needed >> 20} MiB needed",
            where=root,
            mend="free space on this disk, or give --results_dir on another",
        )
