"""Where an engine is reached that is made of several processes, and what they are together."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass

from harness.engines.base import EngineInfo
from harness.errors import RunBroke


@dataclass(frozen=True, slots=True)
class Lane:
    """One way to a replica: through which process, what that process calls it, and its place in ``info().replicas``."""

    process: int
    asked_as: int
    replica: int


@dataclass(frozen=True, slots=True)
class EngineAddress:
    """The sockets of an engine's processes, their logs, and the lanes to its replicas. Plain, to be written down."""

    sockets: tuple[str, ...]
    logs: tuple[str, ...]
    lanes: tuple[Lane, ...]

    def __post_init__(self) -> None:
        if not self.sockets or len(self.sockets) != len(self.logs):
            raise ValueError(f"{len(self.sockets)} sockets and {len(self.logs)} logs")
        if {lane.process for lane in self.lanes} != set(range(len(self.sockets))):
            raise ValueError("each process needs a lane, and each lane a process")
        if {lane.replica for lane in self.lanes} != set(range(self.replicas)):
            raise ValueError("each replica needs a lane")

    @property
    def replicas(self) -> int:
        """How many replicas the lanes lead to."""
        return max(lane.replica for lane in self.lanes) + 1

    @property
    def simple(self) -> bool:
        """Whether there is one process with one replica: nothing to choose from."""
        return len(self.lanes) == 1


def lanes_before(replicas: int, processes: int) -> tuple[Lane, ...]:
    """The lanes of client processes that all reach the same replicas; ValueError where they cannot be shared evenly."""
    if processes > replicas and processes % replicas:
        raise ValueError(f"{processes} processes before {replicas} replicas")
    return tuple(Lane(lane % processes, lane % replicas, lane % replicas) for lane in range(max(processes, replicas)))


def lanes_each(processes: int) -> tuple[Lane, ...]:
    """The lanes of processes each of which is a replica."""
    return tuple(Lane(process, 0, process) for process in range(processes))


def together(infos: Sequence[EngineInfo], replicas: int) -> EngineInfo:
    """What an engine says of itself whose processes say this. RunBroke where they do not agree.

    Where each knows all replicas, that is it; where each is one, they are named by their number and slots add up.
    """
    first = infos[0]
    if len(infos) == 1 and len(first.replicas) == replicas:
        return first
    for info in infos[1:]:
        differ = [
            field.name for field in dataclasses.fields(info) if getattr(info, field.name) != getattr(first, field.name)
        ]
        if differ:
            raise RunBroke(
                f"the processes of the {first.kind} engine do not agree on their {', '.join(differ)}",
                expected="one software and one set of settings in all replicas",
            )
    if len(first.replicas) == replicas:
        return first
    if len(first.replicas) != 1 or len(infos) != replicas:
        raise RunBroke(f"{len(infos)} processes of {len(first.replicas)} replicas each do not make {replicas}")
    names = tuple(str(number) for number in range(replicas))
    return dataclasses.replace(first, slots=sum(info.slots for info in infos), replicas=names)
