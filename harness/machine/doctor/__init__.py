"""The doctor: holds this machine against what a run, a rule or a configuration needs of it, and says how to mend it."""

from __future__ import annotations

from typing import Final

from harness.machine.doctor import (
    accelerators,
    board_state,
    clock,
    limits,
    load,
    memory,
    network,
    processor,
    software,
    storage,
)
from harness.machine.doctor.check import Asked, Check, State, exit_code, questions
from harness.machine.doctor.host import Host
from harness.machine.doctor.needs import Needs, needs_of

CHECKS: Final[tuple[Asked, ...]] = (
    *memory.CHECKS, *accelerators.CHECKS, *board_state.CHECKS, *processor.CHECKS, *clock.CHECKS,
    *network.CHECKS, *limits.CHECKS, *storage.CHECKS, *load.CHECKS, *software.CHECKS,
)  # fmt: skip

__all__ = ["CHECKS", "Check", "Host", "Needs", "State", "examine", "exit_code", "needs_of", "questions"]


def examine(host: Host, needs: Needs) -> list[Check]:
    """All checks of a machine in their order, without those that have nothing to be asked about. Changes nothing."""
    return [found for ask in CHECKS if (found := ask(host, needs)) is not None]
