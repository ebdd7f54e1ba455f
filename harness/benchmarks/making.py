"""One maker at a time: what takes long to make, and is kept, is made by one process while the others wait."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path


@contextlib.contextmanager
def alone(place: Path, tell: Callable[[str], None]) -> Iterator[None]:
    """Keeps others from making the same requests. The kernel lets go of the lock when its holder is gone."""
    with place.with_name(place.name + ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            tell(f"another process is making these requests; waiting for it: {place}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
