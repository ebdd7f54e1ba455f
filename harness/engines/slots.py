"""Continuous batching: which request works in which slot, and what the next forward pass is over. Pure bookkeeping.

A request waits in arrival order, takes a slot, has its prompt read in pieces of bounded size, and then gets one token a
step until it stops. A step's :class:`~harness.engines.slot_plans.Plan` is one flat row of tokens: one each of the slots
that decode, in order of slot, then the pieces of prompts. Requests join and leave between steps; nobody waits for the
longest of a batch. A slot keeps what it computed for a session's next request:
:mod:`~harness.engines.slot_sessions`.

Whoever computes asks :meth:`SlotTable.plan`, runs it, and hands the chosen tokens to :meth:`SlotTable.settle`.
"""

from __future__ import annotations

from bisect import insort
from collections import deque
from collections.abc import Collection
from dataclasses import dataclass
from operator import length_hint

import numpy as np

from harness.engines.base import (
    Answers,
    Event,
    Failure,
    Finish,
    Int32Array,
    Int64Array,
    Requests,
    Sampling,
    TokenEvents,
    Tokens,
)
from harness.engines.dropping import Line, leave
from harness.engines.slot_plans import Piece, Plan
from harness.engines.slot_prompts import Prompt, Reader, Tell, TokenIds, Unservable
from harness.engines.slot_sessions import RestingSlots
from harness.events import Occupancy

_FAILURES_PER_STEP = 1024


@dataclass(slots=True)
class _Working:
    """The request in one slot, whose cache held ``cached`` tokens of it and now holds ``read`` of its prompt."""

    number: int
    prompt: Prompt
    sampling: Sampling
    token_events: TokenEvents
    cached: int
    read: int
    first_ns: int = 0


class SlotTable:
    """The waiting queue and the slots. ``max_total_tokens`` bounds prompt plus output cap of a request."""

    def __init__(
        self, slots: int, max_total_tokens: int, vocab_size: int, prefill_chunk: int, reader: Reader | None = None
    ) -> None:
        self._max_total_tokens = max_total_tokens
        self._vocab_size = vocab_size
        self._prefill_chunk = prefill_chunk
        self._reader = reader or TokenIds()
        self._waiting: Line = deque()
        self._working: list[_Working | None] = [None] * slots
        self._free = list(range(slots))
        self._resting = RestingSlots()
        self.prompt_tokens = 0
        """Of all requests that got a slot since this was made; ``cached_tokens`` are those not computed anew."""
        self.cached_tokens = 0
        self._prefilling: deque[int] = deque()
        self._decodes = np.zeros(slots, np.bool_)
        self._answers = np.zeros((slots, max_total_tokens), np.int32)
        self._answered = np.zeros(slots, np.int64)
        self._position = np.zeros(slots, np.int64)
        self._cap = np.zeros(slots, np.int64)
        self._stops = np.full((slots, 1), -1, np.int64)

    @property
    def idle(self) -> bool:
        """Whether no request waits or works."""
        return not self._waiting and len(self._free) == len(self._working)

    def occupancy(self) -> Occupancy:
        """Requests in slots and waiting for one, and the share of all slots' positions that those in slots take."""
        taken = sum(self._held(slot) for slot, working in enumerate(self._working) if working is not None)
        return Occupancy(
            running=len(self._working) - len(self._free),
            waiting=sum(length_hint(places) for _, places in self._waiting),
            kv_cache=taken / (len(self._working) * self._max_total_tokens),
        )

    def _held(self, slot: int) -> int:
        return int(self._position[slot]) if self._decodes[slot] else self._at(slot).read

    def submit(self, requests: Requests) -> None:
        """Takes any number of requests; constant time."""
        if len(requests):
            self._waiting.append((requests, iter(range(len(requests)))))

    def clear(self) -> None:
        """Forgets all requests, and what is held of sessions."""
        self._waiting.clear()
        self._prefilling.clear()
        self._working = [None] * len(self._working)
        self._free = list(range(len(self._working)))
        self._resting.clear()
        self._reader.forget()
        self._decodes[:] = False

    def drop(self, numbers: Collection[int]) -> None:
        """Forgets the requests of these numbers, waiting or at work. Not between a plan and its settling."""
        leave(self._waiting, numbers)
        for slot, working in enumerate(self._working):
            if working is not None and working.number in numbers:
                if not self._decodes[slot]:
                    self._prefilling.remove(slot)
                self._leave(slot)

    def admit(self) -> list[Event]:
        """Moves waiting requests into free slots; returns the failures of those that cannot be served.

        No more than the next step reads of: to seat a request may mean to look at an image, for which the answers under
        way would wait.
        """
        failures: list[Event] = []
        unread = sum(self._unread(slot) for slot in self._prefilling)
        while self._free and unread < self._prefill_chunk and len(failures) < _FAILURES_PER_STEP:
            following = self._following()
            if following is None:
                break
            requests, place = following
            try:
                unread += self._seat(requests, place)
            except Unservable as problem:
                failures.append(Failure(int(requests.numbers[place]), problem.kind, str(problem)))
        return failures

    def _unread(self, slot: int) -> int:
        working = self._at(slot)
        return len(working.prompt.ids) - working.read

    def _following(self) -> tuple[Requests, int] | None:
        """The request that has waited longest, out of the line."""
        while self._waiting:
            requests, places = self._waiting[0]
            place = next(places, None)
            if place is not None:
                return requests, place
            self._waiting.popleft()
        return None

    def _seat(self, requests: Requests, place: int) -> int:
        """Gives a request a slot; returns how many tokens of its prompt are to be read there."""
        workload = requests.workload
        prompt = self._reader.read(requests, place)
        self._check(prompt.ids, workload.sampling.max_new_tokens)
        slot, cached = self._resting.choose(self._free, prompt.session, prompt.ids)
        self._reader.seat(slot, prompt)
        self._resting.wake(slot)
        self._free.remove(slot)
        self._working[slot] = _Working(
            int(requests.numbers[place]), prompt, workload.sampling, workload.token_events, cached, cached
        )
        self._prefilling.append(slot)
        self._answered[slot] = 0
        self._cap[slot] = workload.sampling.max_new_tokens
        self._set_stops(slot, prompt.stop_token_ids)
        self.prompt_tokens += len(prompt.ids)
        self.cached_tokens += cached
        return len(prompt.ids) - cached

    def _set_stops(self, slot: int, stops: tuple[int, ...]) -> None:
        if len(stops) > self._stops.shape[1]:
            wider = np.full((len(self._stops), len(stops)), -1, np.int64)
            wider[:, : self._stops.shape[1]] = self._stops
            self._stops = wider
        self._stops[slot] = -1
        self._stops[slot, : len(stops)] = stops

    def _leave(self, slot: int) -> None:
        """A slot's request is at its end; what is computed of it stays there for the next of its session."""
        working = self._at(slot)
        prompt = working.prompt
        if prompt.session is not None:
            decoded = int(self._position[slot]) - len(prompt.ids) if self._decodes[slot] else 0
            held = np.concatenate((prompt.ids[: working.read], self._answers[slot, :decoded]))
            self._resting.rest(slot, prompt.session, held)
        self._decodes[slot] = False
        self._working[slot] = None
        insort(self._free, slot)

    def _check(self, ids: Int32Array, cap: int) -> None:
        if not len(ids):
            raise Unservable("empty_prompt", "the prompt has no tokens")
        limit = self._max_total_tokens
        if len(ids) + cap > limit:
            text = f"a prompt of {len(ids)} tokens and a cap of {cap} exceed the engine's {limit} in all"
            raise Unservable("prompt_too_long", text)
        if int(ids.min()) < 0 or int(ids.max()) >= self._vocab_size:
            raise Unservable("bad_token", f"the prompt has token ids outside 0..{self._vocab_size - 1}")

    def plan(self) -> Plan | None:
        """The next forward pass: all slots that decode, and ``prefill_chunk`` tokens of prompts; None if idle."""
        decoding = np.flatnonzero(self._decodes)
        pieces = self._next_pieces()
        if not len(decoding) and not pieces:
            return None
        tokens: list[Int64Array] = [self._answers[decoding, self._answered[decoding] - 1].astype(np.int64)]
        slots, positions = [decoding], [self._position[decoding]]
        chosen_at, chosen_slots, end = list(range(len(decoding))), decoding.tolist(), len(decoding)
        for piece in pieces:
            ids = self._at(piece.slot).prompt.ids
            tokens.append(ids[piece.start : piece.start + piece.count].astype(np.int64))
            slots.append(np.full(piece.count, piece.slot, np.int64))
            positions.append(np.arange(piece.start, piece.start + piece.count, dtype=np.int64))
            end += piece.count
            if piece.ends:
                chosen_at.append(end - 1)
                chosen_slots.append(piece.slot)
        return Plan(
            np.concatenate(tokens),
            np.concatenate(slots),
            np.concatenate(positions),
            decoding,
            pieces,
            np.array(chosen_at, np.int64),
            np.array(chosen_slots, np.int64),
            tuple(self._at(slot).sampling for slot in chosen_slots),
        )

    def _next_pieces(self) -> tuple[Piece, ...]:
        room, pieces = self._prefill_chunk, []
        for slot in self._prefilling:
            working = self._at(slot)
            left = self._unread(slot)
            count = min(room, left)
            if not count:
                break
            pieces.append(Piece(slot, working.read, count, count == left))
            room -= count
        return tuple(pieces)

    def settle(self, plan: Plan, tokens: Int64Array, now_ns: int) -> list[Event]:
        """Books the tokens chosen after a plan, one each of ``plan.chosen_slots``; returns what is to be told."""
        self._book_pieces(plan, now_ns)
        slots = plan.chosen_slots
        if not len(slots):
            return []
        stopped = (self._stops[slots] == tokens[:, None]).any(axis=1)
        kept = slots[~stopped]
        self._answers[kept, self._answered[kept]] = tokens[~stopped]
        self._position[plan.decoding] += 1
        events = self._tell(kept, tokens[~stopped], now_ns)
        self._answered[kept] += 1
        finished = stopped | (self._answered[slots] == self._cap[slots])
        if finished.any():
            events += self._finish(slots[finished], stopped[finished], now_ns)
        return events

    def _book_pieces(self, plan: Plan, now_ns: int) -> None:
        for piece in plan.pieces:
            working = self._at(piece.slot)
            working.read += piece.count
            if piece.ends:
                working.first_ns = now_ns
                self._prefilling.popleft()
                self._decodes[piece.slot] = True
                self._position[piece.slot] = working.read

    def _tell(self, slots: Int64Array, tokens: Int64Array, now_ns: int) -> list[Event]:
        """The tokens that someone asked to see as they come."""
        told = [
            (place, self._at(slot).number)
            for place, slot in enumerate(slots.tolist())
            if self._at(slot).token_events is TokenEvents.ALL
            or (self._at(slot).token_events is TokenEvents.FIRST and not self._answered[slot])
        ]
        if not told:
            return []
        places = [place for place, _ in told]
        positions = self._answered[slots[places]].tolist()
        return [Tokens([number for _, number in told], positions, tokens[places].astype(np.int32), now_ns)]

    def _finish(
        self, slots: Int64Array, stopped: np.ndarray[tuple[int], np.dtype[np.bool_]], now_ns: int
    ) -> list[Event]:
        """Whole answers, those together that are told alike."""
        places: dict[Tell, list[int]] = {}
        for place, slot in enumerate(slots.tolist()):
            places.setdefault(self._at(slot).prompt.tell, []).append(place)
        events = [self._told(tell, slots[alike], stopped[alike], now_ns) for tell, alike in places.items()]
        for slot in slots.tolist():
            self._leave(slot)
        return events

    def _told(
        self, tell: Tell, slots: Int64Array, stopped: np.ndarray[tuple[int], np.dtype[np.bool_]], now_ns: int
    ) -> Event:
        done = [self._at(slot) for slot in slots.tolist()]
        answers = self._answers_in(slots, stopped, now_ns)
        return tell(answers, [len(each.prompt.ids) for each in done], [each.cached for each in done])

    def _answers_in(
        self, slots: Int64Array, stopped: np.ndarray[tuple[int], np.dtype[np.bool_]], now_ns: int
    ) -> Answers:
        done = [self._at(slot) for slot in slots.tolist()]
        answers = [self._answers[slot, : self._answered[slot]] for slot in slots.tolist()]
        return Answers(
            [working.number for working in done],
            np.concatenate(answers),
            np.cumsum([len(answer) for answer in answers]).tolist(),
            [working.first_ns for working in done],
            [now_ns] * len(done),
            [int(Finish.STOP if stop else Finish.LENGTH) for stop in stopped.tolist()],
        )

    def _at(self, slot: int) -> _Working:
        working = self._working[slot]
        if working is None:
            raise AssertionError(f"slot {slot} is empty")
        return working
