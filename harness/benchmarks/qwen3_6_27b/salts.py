"""Salts: what makes the prompts of a trajectory's repeats differ, so that no cache carries from one to the next.

A salted system prompt begins with the salt of the repeat and ends with that of the trajectory: the turns of one
trajectory share all they have, trajectories of one pass share the system prompt, passes share nothing.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from harness.benchmarks.qwen3_6_27b.trajectories import Trajectory
from harness.errors import ConfigError

UPSTREAM_BYTES: Final = 2
RUN_BYTES: Final = 8


@dataclass(frozen=True, slots=True)
class Salts:
    """How prompts are salted.

    Without ``run`` as the mlcommons client does it: 16 bits, of the repeat's number and of the trajectory's id alone
    (mlcommons/endpoints ea332753, ``load_generator/agentic_inference_strategy.py``), so that every run asks the very
    same and a server that was not restarted may answer the second from what it kept of the first. With ``run``, 64 bits
    that are another run's with another ``run``.
    """

    run: int | None = None

    def salted(self, trajectory: Trajectory, repeat: int) -> str:
        """The system prompt of a trajectory in its repeat, from 1. Raises ConfigError where it has none."""
        if not trajectory.system:
            raise ConfigError(
                "a trajectory without a system prompt cannot be salted",
                where=f"conversation {trajectory.id!r}",
                expected="system in one of its rows",
                mend="run it without salts, one pass alone, or mend the data set",
            )
        return f"[salt: {self._of(str(repeat))}]\n\n{trajectory.system}\n\n[salt: {self._of(trajectory.id)}]"

    def _of(self, text: str) -> str:
        if self.run is None:
            return hashlib.blake2b(text.encode(), digest_size=UPSTREAM_BYTES).hexdigest()
        key = hashlib.blake2b(str(self.run).encode()).digest()
        return hashlib.blake2b(text.encode(), digest_size=RUN_BYTES, key=key).hexdigest()


def session_id(trajectory: Trajectory, repeat: int) -> str:
    """The value of the header ``X-Session-ID`` of a trajectory in its repeat, from 1, as upstream has it."""
    return trajectory.id if repeat == 1 else f"{trajectory.id}__repeat_{repeat}"
