"""The system under test as LoadGen sees it, over any engine.

LoadGen's thread hands queries over and returns at once; one completion thread drains the engine and makes one call of
each kind for all that came: LoadGen loses the order of a first token and its completion when they come from different
threads, and every call needs the interpreter lock. Requests go by LoadGen's own response ids. At ten thousand queries a
second each microsecond of Python here is a hundredth of a core, which is why lone answers have a short way and many go
in columns.
"""

from __future__ import annotations

import collections
import ctypes
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, cast

import mlperf_loadgen as loadgen
import numpy as np

from harness.benchmarks.base import Logged
from harness.clients.loadgen.failures import another_kind, empty, not_outstanding, too_short
from harness.clients.loadgen.job import FAILED_MARKER
from harness.clients.loadgen.record import Record, pack_done, pack_first, pack_issued
from harness.engines.base import (
    NOT_TOLD,
    Answers,
    Engine,
    Event,
    Failure,
    Int32Array,
    Int64Array,
    PromptTable,
    Replies,
    Requests,
    Tokens,
    Workload,
)
from harness.engines.replies import contents, wholes

_BATCH = 1024  # completions per LoadGen call; larger calls hold the interpreter lock for longer and gain nothing
_FEW = 16  # up to so many answers, a loop is faster than columns
_JOIN_S = 10.0
_MARKER_ADDRESS: int = FAILED_MARKER.ctypes.data
_FIRST_BYTES = 4
"""Of a first token LoadGen is handed an id; a chat's, which no server tells, is -1, as the marker begins."""


class LoadGenSut:
    """Two callbacks for ``ConstructFastSUT`` and the thread that completes.

    ``on_broken`` is called, from either thread, when the test cannot go on (the engine died, a fault of ours): LoadGen
    itself would wait for ever. The same answers are handed over in every mode; of a chat's reply that is ``logged``.

    ``token_latencies``: LoadGen is told of first tokens. It takes them in every scenario, and with its
    use_token_latencies off too: no error is logged, neither log mentions them, and what is measured stays what it is.
    """

    def __init__(
        self,
        engine: Engine,
        prompts: PromptTable,
        workload: Workload,
        *,
        min_answer_tokens: int,
        token_latencies: bool,
        on_broken: Callable[[BaseException], None],
        logged: Logged = "content",
    ) -> None:
        self.record = Record(tells_first_tokens=token_latencies)
        # Bound once: a look-up or two less each time.
        self._response = loadgen.QuerySampleResponse
        self._first_token_complete = loadgen.FirstTokenComplete
        self._samples_complete = loadgen.QuerySamplesComplete
        self._clock = time.monotonic_ns
        self._note_issued = self.record.issued.frombytes
        self._note_firsts = self.record.firsts.frombytes
        self._note_dones = self.record.dones.frombytes
        self._submit = engine.submit
        self._engine = engine
        self._prompts = prompts
        self._workload = workload
        self._kind: type[Answers | Replies] = Replies if workload.bodies else Answers
        self._add_whole: Callable[[Any, int, list[Any], list[Any]], object] = (
            self._add_replies if workload.bodies else self._add_answers
        )
        """Takes what is of the kind that was asked for; what it returns is kept until LoadGen was told."""
        self._logged: Logged = logged
        self._min_tokens = min_answer_tokens
        self._tell_first = token_latencies
        self._on_broken = on_broken
        self._alone = [loadgen.QuerySampleResponse(0, 0, 0, 0)]
        self._pending: dict[int, bool] = {}
        """Outstanding samples by id: whether their first token has been told."""
        self._completed = 0
        self._closing = False
        self._last_progress_ns = time.monotonic_ns()
        self._thread = threading.Thread(target=self._complete, name="completion", daemon=True)

    # -- LoadGen's thread ------------------------------------------------------------------------------------------

    def issue(self, query_ids: list[int], rows: list[int]) -> None:
        """LoadGen's issue callback: response ids, and rows of the loaded sample library."""
        try:
            if self._closing:
                return
            now = self._clock()
            if not self._pending:
                self._last_progress_ns = now  # nothing was outstanding: the engine was not slow, it was idle
            # All is noted before the engine can answer: the completion thread looks samples up by their ids.
            if len(query_ids) == 1:
                self._pending[query_ids[0]] = False
                self._note_issued(pack_issued(query_ids[0], rows[0], now))
            else:
                for query_id in query_ids:
                    self._pending[query_id] = False
                self.record.issued_many.append((query_ids, rows, now))
            self._submit(Requests(self._workload, query_ids, rows, self._prompts, rows))
        except Exception as error:  # noqa: BLE001 - an exception that reaches LoadGen leaves it broken and silent
            self._on_broken(error)

    def flush(self) -> None:
        """LoadGen's flush callback; queries are handed over as they come, so there is nothing to do."""

    # -- the completion thread -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the completion thread."""
        self._thread.start()

    def close(self) -> None:
        """Ends the completion thread and takes no more queries; then ``record`` can be frozen.

        To be called when StartTest has returned, or when the test is given up while LoadGen still runs.
        """
        self._closing = True
        self._engine.wake()
        self._thread.join(timeout=_JOIN_S)

    @property
    def issued(self) -> int:
        """Samples that LoadGen has issued so far."""
        return self.record.issued_count

    @property
    def completed(self) -> int:
        """Samples completed so far, failed ones among them."""
        return self._completed

    def stalled_s(self) -> float:
        """Seconds since the last completion or first token while samples are outstanding; 0 where none is."""
        if not self._pending:
            return 0.0
        return (time.monotonic_ns() - self._last_progress_ns) / 1e9

    def _complete(self) -> None:
        try:
            poll = self._engine.poll
            quick = Answers if self._kind is Answers else None
            while not self._closing:
                events = poll(1.0)
                if len(events) == 1 and type(events[0]) is quick and len(events[0].ends) == 1:
                    self._tell_one(events[0])
                elif events:
                    self._tell(events)
        except Exception as error:  # noqa: BLE001 - a completion thread that ends in silence looks like a hang
            if not self._closing:
                self._on_broken(error)

    def _tell(self, events: list[Event]) -> None:
        """Reports all that came, first tokens before completions, in as few LoadGen calls as may be."""
        now = time.monotonic_ns()
        firsts: list[Any] = []
        dones: list[Any] = []
        # ``events`` and ``held`` keep the answers' bytes alive until LoadGen has copied what it wants of them.
        held: list[object] = []
        for event in events:
            if isinstance(event, self._kind):
                held.append(self._add_whole(event, now, firsts, dones))
            elif isinstance(event, Tokens):
                self._add_first_tokens(event, now, firsts)
            elif isinstance(event, Failure):
                self._add_failure(event, now, firsts, dones)
            else:
                raise another_kind(event)
        if firsts:
            self._first_token_complete(firsts)
        if len(dones) <= _BATCH:
            if dones:
                self._samples_complete(dones)
        else:
            for start in range(0, len(dones), _BATCH):
                self._samples_complete(dones[start : start + _BATCH])
        self._completed += len(dones)
        self._last_progress_ns = now

    def _add_first_tokens(self, event: Tokens, now: int, firsts: list[Any]) -> None:
        if not self._tell_first:
            return
        address = _address(event.tokens)
        for number, position in zip(event.numbers, event.positions, strict=True):
            if position == 0 and not self._pending.get(number, True):
                self._pending[number] = True
                firsts.append(self._response(number, address, 4, 1))
                self._note_firsts(pack_first(number, now))
            address += 4

    def _tell_one(self, event: Answers) -> None:
        """What :meth:`_tell` does, for one answer that comes alone: at a moderate rate nearly all do."""
        length = event.ends[0]
        if length < self._min_tokens:
            self._tell([event])
            return
        now = self._clock()
        number = event.numbers[0]
        told = self._pending.pop(number, None)
        if told is None:
            raise not_outstanding(number)
        address = event.address or _address(event.tokens)
        # LoadGen copies what it is told: one response, written over, is told for less than a new one each time.
        response = self._alone[0]
        response.id, response.data = number, address
        # LoadGen wants a first token for every answer; an engine may tell a whole answer at once.
        if self._tell_first and not told:
            response.size, response.n_tokens = 4, 1
            self._first_token_complete(self._alone)
        response.size, response.n_tokens = 4 * length, length
        self._samples_complete(self._alone)
        self._note_dones(pack_done(number, length, event.finish[0], event.first_ns[0], event.done_ns[0], now))
        self._completed += 1
        self._last_progress_ns = now

    def _add_answers(self, event: Answers, now: int, firsts: list[Any], dones: list[Any]) -> None:
        if not self._tell_first and len(event.numbers) > _FEW:
            self._tell_many_answers(event, now, firsts, dones)
            return
        told = [self._claim(number) for number in event.numbers]
        address, begin = event.address or _address(event.tokens), 0
        for i, end in enumerate(event.ends):
            number, length = event.numbers[i], end - begin
            if length < self._min_tokens:
                self._add_marker(too_short(number, length, self._min_tokens), told[i], now, firsts, dones)
            else:
                if self._tell_first and not told[i]:
                    firsts.append(self._response(number, address, 4, 1))
                dones.append(self._response(number, address, 4 * length, length))
                self._note_dones(pack_done(number, length, event.finish[i], event.first_ns[i], event.done_ns[i], now))
            address += 4 * length
            begin = end

    def _tell_many_answers(self, event: Answers, now: int, firsts: list[Any], dones: list[Any]) -> None:
        """The same in columns, where no first tokens are told. Completes in batches as it goes: responses that are
        made and dropped in the processor's cache cost half of those that all live at once.
        """
        ends = np.array(event.ends, np.int64)
        lengths = ends - np.concatenate((ends[:1] * 0, ends[:-1]))
        if int(lengths.min()) < self._min_tokens:
            event, ends, lengths = self._without_short(event, ends, lengths, now, firsts, dones)
        tokens = lengths.tolist()
        base = event.address or _address(event.tokens)
        addresses = base + 4 * (ends - lengths)
        for at in range(0, len(tokens), _BATCH):
            batch = slice(at, at + _BATCH)
            numbers = event.numbers[batch]
            self._claim_all(numbers)
            times = event.first_ns[batch], event.done_ns[batch]
            self.record.dones_many.append((numbers, tokens[batch], event.finish[batch], *times, now))
            columns = numbers, addresses[batch].tolist(), (4 * lengths[batch]).tolist(), tokens[batch]
            responses = list(map(self._response, *columns))
            self._samples_complete(responses)
            self._completed += len(responses)

    def _without_short(
        self, event: Answers, ends: Int64Array, lengths: Int64Array, now: int, firsts: list[Any], dones: list[Any]
    ) -> tuple[Answers, Int64Array, Int64Array]:
        """A batch less its answers that are too short, which are failed samples."""
        kept = np.flatnonzero(lengths >= self._min_tokens)
        for i in np.flatnonzero(lengths < self._min_tokens).tolist():
            self._add_failure(too_short(event.numbers[i], int(lengths[i]), self._min_tokens), now, firsts, dones)
        numbers, finish, first_ns, done_ns = (
            [column[i] for i in kept.tolist()]
            for column in (event.numbers, event.finish, event.first_ns, event.done_ns)
        )
        left = Answers(numbers, event.tokens, ends[kept].tolist(), first_ns, done_ns, finish, event.address)
        return left, ends[kept], lengths[kept]

    def _add_replies(self, event: Replies, now: int, firsts: list[Any], dones: list[Any]) -> object:
        """Chats: LoadGen is handed their contents, or all of them. Returns the buffer that these lie in.

        A reply whose tokens nobody told is not too short.
        """
        texts = contents(event) if self._logged == "content" else wholes(event)
        buffer = np.frombuffer(b"".join(texts) or b"\0", np.uint8)
        address = buffer.ctypes.data
        for i, number in enumerate(event.numbers):
            told, size, tokens = self._claim(number), len(texts[i]), event.tokens[i]
            if not size:
                self._add_marker(empty(number, self._logged), told, now, firsts, dones)
            elif NOT_TOLD != tokens < self._min_tokens:
                self._add_marker(too_short(number, tokens, self._min_tokens), told, now, firsts, dones)
            else:
                if self._tell_first and not told:
                    firsts.append(self._response(number, _MARKER_ADDRESS, _FIRST_BYTES, 1))
                dones.append(self._response(number, address, size, max(tokens, 0)))
                self._note_dones(pack_done(number, tokens, event.finish[i], event.first_ns[i], event.done_ns[i], now))
            address += size
        return buffer

    def _add_failure(self, failure: Failure, now: int, firsts: list[Any], dones: list[Any]) -> None:
        self._add_marker(failure, self._claim(failure.number), now, firsts, dones)

    def _add_marker(self, failure: Failure, told: bool, now: int, firsts: list[Any], dones: list[Any]) -> None:
        """Completes a failed sample, whose first token was ``told`` or not."""
        number = failure.number
        if self._tell_first and not told:
            firsts.append(self._response(number, _MARKER_ADDRESS, _FIRST_BYTES, 1))
            self._note_firsts(pack_first(number, now))
        dones.append(self._response(number, _MARKER_ADDRESS, FAILED_MARKER.nbytes, len(FAILED_MARKER)))
        self.record.failures.append(failure)

    def _claim(self, number: int) -> bool:
        """Takes a sample off the outstanding ones: whether its first token was told. Completing one twice would be an
        error inside LoadGen.
        """
        told = self._pending.pop(number, None)
        if told is None:
            raise not_outstanding(number)
        return told

    def _claim_all(self, numbers: Sequence[int]) -> None:
        try:
            collections.deque(map(self._pending.pop, numbers), maxlen=0)  # the quickest loop there is
        except KeyError as error:
            raise not_outstanding(error.args[0]) from None


def _address(tokens: Int32Array) -> int:
    """Where the tokens lie, for a third of what ``ndarray.ctypes`` or ``__array_interface__`` take to say it."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(cast("Any", tokens)))
    except (TypeError, ValueError):  # read-only, or empty
        return tokens.ctypes.data
