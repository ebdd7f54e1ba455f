"""The chats of many salted repeats of all trajectories, on disk: a library of whole trajectories to draw from.

Row r of the library is one trajectory in one repeat; its turns are chats that lie one after the other, in session r.
Repeat 1 of all trajectories comes first, then repeat 2. In memory is each message once, and one chat.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import orjson

from harness.benchmarks.making import alone
from harness.benchmarks.qwen3_6_27b import fields
from harness.benchmarks.qwen3_6_27b.dataset import TrajectorySet
from harness.benchmarks.qwen3_6_27b.files import REQUESTS_FOLDER, TRAJECTORY_TABLE
from harness.benchmarks.qwen3_6_27b.requests import EncodedTrajectory
from harness.benchmarks.qwen3_6_27b.salts import Salts, session_id
from harness.benchmarks.qwen3_6_27b.trajectories import Trajectory
from harness.config.models import Agentic
from harness.engines.bodies import MAGIC, BodyStore
from harness.errors import ConfigError, DatasetError, MissingError

Tell = Callable[[str], None]

REPEATS: Final = Agentic().repeats
"""Salted repeats of each trajectory, where nobody asks for another number."""
VERSION: Final = 1
"""Grows whenever the same trajectories make other chats."""
_INDEX_BYTES: Final = 32
"""What a store keeps of each chat beside its text."""


@dataclass(frozen=True, slots=True)
class Library:
    """What is on disk, or shall be: ``repeats`` of each trajectory of ``source``.

    Without ``salts`` all repeats ask the same. ``more`` are fields that every chat has beside what its row asks, such
    as ``chat_template_kwargs``. Raises ConfigError where a row asks for what a run sets for all requests alike, for
    repeats that are none, and for salts where a trajectory has no system prompt.
    """

    source: TrajectorySet
    repeats: int = REPEATS
    salts: Salts | None = field(default_factory=Salts)
    more: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.repeats < 1:
            raise ConfigError(f"{self.repeats} repeats of each trajectory", expected="at least 1")
        foreign = sorted(self.more.keys() - set(fields.OF_A_CHAT))
        if foreign:
            raise ConfigError(
                f"every chat shall have {', '.join(foreign)}", expected=f"some of {', '.join(fields.OF_A_CHAT)}"
            )
        for trajectory in self.source.trajectories:
            _check_asked(trajectory, self.source.file.path)
            self.system(trajectory, 1)

    @property
    def rows(self) -> int:
        """How many trajectories there are, repeats counted."""
        return self.repeats * len(self.source.trajectories)

    @property
    def chats(self) -> int:
        """How many requests there are."""
        return self.repeats * self.source.turns

    def repeat(self, row: int) -> int:
        """Which repeat a row is, from 1. IndexError for no row, as in what follows."""
        return self._place(row)[0] + 1

    def trajectory(self, row: int) -> Trajectory:
        """The trajectory that a row repeats."""
        return self.source.trajectories[self._place(row)[1]]

    def turns(self, row: int) -> range:
        """The chats of a row in the store, one a turn."""
        repeat, place = self._place(row)
        before = sum(len(trajectory.turns) for trajectory in self.source.trajectories[:place])
        first = repeat * self.source.turns + before
        return range(first, first + len(self.source.trajectories[place].turns))

    def session_id(self, row: int) -> str:
        """The value of ``X-Session-ID`` in all requests of a row."""
        return session_id(self.trajectory(row), self.repeat(row))

    def delays_ns(self, row: int) -> tuple[int, ...]:
        """How long a client waits before each turn of a row, where tools' delays are kept."""
        return tuple(turn.delay_ns for turn in self.trajectory(row).turns)

    def system(self, trajectory: Trajectory, repeat: int) -> str | None:
        """The system prompt of a trajectory in its repeat, from 1."""
        return trajectory.system if self.salts is None else self.salts.salted(trajectory, repeat)

    @property
    def key(self) -> str:
        """What names the store: another one when anything is other that its bytes depend on."""
        told = {
            "file": self.source.file.sha256,
            "trajectories": len(self.source.trajectories),
            "repeats": self.repeats,
            "salts": None if self.salts is None else [self.salts.run],
            "more": self.more,
            "requests": VERSION,
            "store": MAGIC.hex(),
        }
        return hashlib.sha256(orjson.dumps(told, option=orjson.OPT_SORT_KEYS)).hexdigest()[:16]

    def _place(self, row: int) -> tuple[int, int]:
        if not 0 <= row < self.rows:
            raise IndexError(f"row {row} of {self.rows} trajectories")
        return divmod(row, len(self.source.trajectories))


def prepare(library: Library, folder: Path, tell: Tell) -> BodyStore:
    """The library's store below ``folder`` (the data set's own), made where it is not there yet.

    One with the salts of a run is of no use to the next: that is better built into the run's own folder. ``tell`` is
    given lines for people. Raises MissingError without disk space.
    """
    name = f"{TRAJECTORY_TABLE}-{library.rows}-{library.key}.chats"
    return kept(folder / REQUESTS_FOLDER / name, library.chats, tell, lambda place: build(library, place, tell))


def kept(place: Path, chats: int, tell: Tell, make: Callable[[Path], BodyStore]) -> BodyStore:
    """The store of so many chats at a place, made where it is not there yet or is damaged, by one process alone.

    Raises MissingError where it cannot be written.
    """
    with writing(place):
        place.parent.mkdir(parents=True, exist_ok=True)
        with alone(place, tell):
            found = _there(place, chats)
            return make(place) if found is None else found


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """MissingError where a store cannot be written to a place."""
    try:
        yield
    except OSError as error:
        raise MissingError(f"cannot write the requests: {error}", where=place) from error


def build(library: Library, place: Path, tell: Tell) -> BodyStore:
    """Writes the library's store, which appears when it is whole. Raises MissingError without disk space, OSError."""
    encoded = [EncodedTrajectory.of(each, library.more) for each in library.source.trajectories]
    needed, free = _bytes(library, encoded), shutil.disk_usage(place.parent).free
    if free < needed:
        raise MissingError(
            f"the requests need some {needed / 1e6:,.0f} MB, and {free / 1e6:,.0f} MB are free",
            where=place.parent,
            mend="make room, or name a data folder on a larger disk with --data_dir or HARNESS_DATA_DIR",
        )
    tell(f"making the requests of {library.rows:,} trajectories, {library.chats:,} turns in all")
    began = time.monotonic()
    rows = range(library.rows)
    made = BodyStore.write(
        place,
        _bodies(library, encoded),
        sessions=[row for row in rows for _ in library.turns(row)],
        delays_ns=[delay for row in rows for delay in library.delays_ns(row)],
        session_names=[library.session_id(row) for row in rows],
    )
    tell(f"requests made in {time.monotonic() - began:.1f} s, {place.stat().st_size / 1e6:,.0f} MB: {place}")
    return made


def _bodies(library: Library, encoded: list[EncodedTrajectory]) -> Iterator[bytes]:
    for row in range(library.rows):
        system = library.system(library.trajectory(row), library.repeat(row))
        yield from encoded[row % len(encoded)].chats(system)


def _bytes(library: Library, encoded: list[EncodedTrajectory]) -> int:
    """About what the store takes: a system prompt is in every chat, its salts and JSON beside it."""
    texts = 0
    for trajectory, each in zip(library.source.trajectories, encoded, strict=True):
        longest = len(orjson.dumps(library.system(trajectory, library.repeats))) + len('{"messages":[]}') + 40
        texts += sum(each.lengths) + longest * len(trajectory.turns)
    return library.repeats * texts + _INDEX_BYTES * library.chats


def _check_asked(trajectory: Trajectory, path: Path) -> None:
    for turn in trajectory.turns:
        asked = sorted(turn.asked.keys() & fields.OF_A_RUN)
        if asked:
            raise ConfigError(
                f"a row asks for its own {', '.join(asked)}",
                where=f"{path}, conversation {trajectory.id!r}, turn {turn.number}",
                expected="rows that leave that to the run: all requests of a run are sampled alike",
                mend="take it out of the row",
            )


def _there(place: Path, chats: int) -> BodyStore | None:
    """The whole store that lies there; None where there is none, or one that is damaged."""
    try:
        found = BodyStore.open(place)
    except DatasetError:
        return None
    return found if len(found) == chats else None
