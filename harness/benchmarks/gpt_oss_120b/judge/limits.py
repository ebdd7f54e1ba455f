"""What one solution may use."""

from __future__ import annotations

import math
from dataclasses import dataclass

MIB = 1 << 20

_SPARE_S_PER_TEST = 1
_SPARE_S = 5


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one solution. ``test_s`` is the wall time of one test, and of compiling: the reference's number.

    The rest is our own, wide of what a right solution needs: address space of one process, bytes of a file and of the
    whole working folder, bytes of one answer, processes and threads.
    """

    test_s: float
    memory_bytes: int = 4096 * MIB
    folder_bytes: int = 64 * MIB
    output_bytes: int = 64 * MIB
    processes: int = 64

    def __post_init__(self) -> None:
        if min(self.test_s, self.memory_bytes, self.folder_bytes, self.output_bytes, self.processes) <= 0:
            raise ValueError(f"not limits: {self}")

    def total_s(self, tests: int) -> float:
        """Wall time of one solution on so many tests, in seconds, as LiveCodeBench's check_correctness has it."""
        return (self.test_s + _SPARE_S_PER_TEST) * tests + _SPARE_S

    def resources(self, tests: int) -> dict[str, int]:
        """Resource limits by the names of the module ``resource``."""
        return {
            "RLIMIT_AS": self.memory_bytes,
            "RLIMIT_CPU": math.ceil(self.total_s(tests)),
            "RLIMIT_FSIZE": self.folder_bytes,
            "RLIMIT_NPROC": self.processes,
            "RLIMIT_NOFILE": 64,
            "RLIMIT_CORE": 0,
        }
