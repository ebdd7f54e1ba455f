"""Whether the client's account of every sample has room: it keeps it in memory's file system while it runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from harness.errors import MissingError

SHM: Final = Path("/dev/shm")  # noqa: S108 - the client's choice, not ours
_BYTES_PER_SAMPLE: Final = 1024
"""Issue, first token and completion, without the answer."""
_BYTES_PER_TOKEN: Final = 6


def check_room(phases: Iterable[tuple[int, int]], report_to: Path, shm: Path = SHM, *, asked_bytes: int = 0) -> None:
    """MissingError where ``events.jsonl`` may not fit where the client writes it first, or where it is copied to.

    ``phases`` are samples and new tokens at most of each; ``asked_bytes`` are those of all requests, where these are
    long: a turn has its whole history in it, and each is written. Containers have 64 MiB of /dev/shm unless told
    otherwise, which some 100,000 samples fill.
    """
    needed = asked_bytes + sum(count * (_BYTES_PER_SAMPLE + _BYTES_PER_TOKEN * cap) for count, cap in phases)
    for place, mend in (
        (shm, "give the container more (--shm-size), or free some"),
        (report_to, "free space on this disk, or give --results_dir on another"),
    ):
        free = shutil.disk_usage(place).free if place.is_dir() else needed
        if free < needed:
            raise MissingError(
                f"no room for the client's events: {free >> 20} MiB free, up to {needed >> 20} MiB needed",
                where=place,
                mend=mend,
            )
