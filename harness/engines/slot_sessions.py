"""What slots that rest still hold of sessions, and which slot a request gets.

A slot whose request has ended keeps its key-value cache for the next request of the same session, which then computes
only what goes beyond the ids that both have. Nothing is shared by two sessions, whatever their prompts have in common.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from harness.engines.base import Int32Array


@dataclass(frozen=True, slots=True)
class _Held:
    """A slot's cache is of ``ids``, from position 0 on."""

    session: Hashable
    ids: Int32Array


class RestingSlots:
    """The slots at rest that hold something, the one that has rested longest first."""

    def __init__(self) -> None:
        self._held: dict[int, _Held] = {}

    def rest(self, slot: int, session: Hashable, ids: Int32Array) -> None:
        """A slot goes to rest; its cache is of ``ids``."""
        self._held[slot] = _Held(session, ids)

    def choose(self, free: Sequence[int], session: Hashable | None, ids: Int32Array) -> tuple[int, int]:
        """The slot for a prompt, and how many tokens of it the slot holds already: never all, of which none would come.

        ``free`` are the slots without a request, at least one, in order. The session's own comes first; then the lowest
        that holds nothing; then the one that has rested longest. Nothing is rested there any more: it is to be written.
        """
        own = [(self._common(slot, ids), -slot) for slot, held in self._held.items() if held.session == session]
        if own:
            common, slot = max(own)
            slot = -slot
        else:
            common, slot = 0, next((each for each in free if each not in self._held), -1)
            if slot < 0:
                slot = next(iter(self._held))
        return slot, min(common, len(ids) - 1)

    def wake(self, slot: int) -> None:
        """A slot is written from now on: what it held is gone."""
        self._held.pop(slot, None)

    def clear(self) -> None:
        """Nothing is held."""
        self._held.clear()

    def _common(self, slot: int, ids: Int32Array) -> int:
        held = self._held[slot].ids
        length = min(len(held), len(ids))
        differ = np.flatnonzero(held[:length] != ids[:length])
        return int(differ[0]) if len(differ) else length
