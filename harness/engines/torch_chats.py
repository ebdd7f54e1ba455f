"""Chats as a model's body gets them: out of stores, or as prompts themselves; and what ends their answers."""

from __future__ import annotations

import itertools
from collections.abc import Hashable
from dataclasses import dataclass
from pathlib import Path

from harness.engines.base import Requests
from harness.engines.bodies import NO_SESSION, BodyStore
from harness.engines.checkpoint import read_json
from harness.engines.slot_prompts import Unservable
from harness.errors import ConfigError, DatasetError


@dataclass(frozen=True, slots=True)
class StoredChat:
    """The JSON of a chat, and the session that it is a turn of; None for one that stands alone."""

    body: memoryview
    session: Hashable | None


class StoredChats:
    """The chats of whatever stores requests name."""

    def __init__(self) -> None:
        self._stores: dict[str, BodyStore] = {}
        self._asked: dict[tuple[str, int], dict[int, int]] = {}
        self._passes = itertools.count()

    def read(self, requests: Requests, place: int) -> StoredChat:
        """The chat of one request. Raises Unservable where there is none."""
        path, row = requests.workload.bodies, int(requests.rows[place])
        store = self._open(path)
        if not 0 <= row < len(store):
            raise Unservable("bad_row", f"row {row} of {len(store)} chats")
        session = int(store.sessions[row])
        return StoredChat(store[row], None if session == NO_SESSION else self._pass(path, session, row))

    def forget(self) -> None:
        """Every session begins anew, and no store is held: a run's own goes when the run is over."""
        self._asked.clear()
        self._stores.clear()

    def _open(self, path: str) -> BodyStore:
        if path not in self._stores:
            try:
                self._stores[path] = BodyStore.open(Path(path))
            except DatasetError as error:
                raise Unservable("no_chats", str(error)) from None
        return self._stores[path]

    def _pass(self, path: str, session: int, row: int) -> int:
        """Which time it is that a session is gone through: the one whose last row is the one before, or a new one.

        A trajectory that LoadGen issues again, while the first is under way or later, has the very prompts of the first
        and shares nothing with it.
        """
        rows = self._asked.setdefault((path, session), {})
        going_on = (number for number, last in reversed(rows.items()) if last == row - 1)
        number = next(going_on, None)
        if number is None:
            number = next(self._passes)
        rows.pop(number, None)
        rows[number] = row
        return number


def end_tokens(folder: Path) -> tuple[int, ...]:
    """The tokens that end an answer to a chat, by the checkpoint's ``generation_config.json``. Raises ConfigError."""
    found = (read_json(folder / "generation_config.json") or {}).get("eos_token_id", [])
    ends = found if isinstance(found, list) else [found]
    if not ends or not all(isinstance(each, int) for each in ends):
        raise ConfigError(
            f"the tokens that end an answer are {found!r}",
            where=folder / "generation_config.json",
            expected="eos_token_id: one id or several",
        )
    return tuple(ends)
