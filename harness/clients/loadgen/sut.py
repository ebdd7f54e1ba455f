"""The system under test as LoadGen sees it, over any engine.

LoadGen's thread hands queries over and returns at once; one completion thread drains the engine and makes one call of
each kind for all that came: LoadGen loses the order of a first token and its completion when they come from different
threads, and every call needs the interpreter lock. Everything is kept in columns, so that a million Offline samples
cost no object each; what is recorded is appended to arrays and put together after the test.
"""

from __future__ import annotations

import ctypes
import itertools
import operator
import threading
import time
from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

import mlperf_loadgen as loadgen
import numpy as np

from harness.clients.loadgen.job import FAILED_MARKER
from harness.engines.base import Answers, Engine, Event, Failure, Int32Array, PromptTable, Requests, Tokens, Workload
from harness.errors import RunBroke

_BATCH = 1024  # completions per LoadGen call; larger calls hold the interpreter lock for longer and gain nothing
_JOIN_S = 10.0
_MARKER_ADDRESS: int = FAILED_MARKER.ctypes.data
_FIRST_TOLD, _DONE = 1, 2  # bits of a sample's state


@dataclass(slots=True)
class Record:
    """What happened to each sample, in columns of int64; ``number`` n is the n-th sample that LoadGen issued.

    ``issue_count`` and ``issue_ns`` have an entry a query, ``rows`` one a sample, the others one an event.
    """

    rows: list[int] = field(default_factory=list)
    issue_count: array[int] = field(default_factory=lambda: array("q"))
    issue_ns: array[int] = field(default_factory=lambda: array("q"))
    first_number: array[int] = field(default_factory=lambda: array("q"))
    first_ns: array[int] = field(default_factory=lambda: array("q"))
    done_number: array[int] = field(default_factory=lambda: array("q"))
    done_ns: array[int] = field(default_factory=lambda: array("q"))
    done_tokens: array[int] = field(default_factory=lambda: array("q"))
    done_finish: array[int] = field(default_factory=lambda: array("q"))
    engine_first_ns: array[int] = field(default_factory=lambda: array("q"))
    engine_done_ns: array[int] = field(default_factory=lambda: array("q"))
    failures: list[Failure] = field(default_factory=list)


class LoadGenSut:
    """Two callbacks for ``ConstructFastSUT`` and the thread that completes.

    ``on_broken`` is called, from either thread, when the test cannot go on (the engine died, a fault of ours): LoadGen
    itself would wait for ever. The same answers are handed over in every mode.
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
    ) -> None:
        self.record = Record()
        self._engine = engine
        self._prompts = prompts
        self._workload = workload
        self._min_tokens = min_answer_tokens
        self._tell_first = token_latencies
        self._on_broken = on_broken
        self._query_ids: list[int] = []
        self._state = bytearray()
        self._completed = 0
        self._closing = False
        self._recording = threading.Lock()
        self._last_progress_ns = time.monotonic_ns()
        self._thread = threading.Thread(target=self._complete, name="completion", daemon=True)

    # -- LoadGen's thread ------------------------------------------------------------------------------------------

    def issue(self, query_ids: list[int], rows: list[int]) -> None:
        """LoadGen's issue callback: response ids, and rows of the loaded sample library."""
        try:
            # The columns grow before the engine can answer: the completion thread reads them by number.
            numbers = self._record_issued(query_ids, rows)
            if numbers:
                self._engine.submit(Requests(self._workload, numbers, rows, self._prompts, rows))
        except Exception as error:  # noqa: BLE001 - an exception that reaches LoadGen leaves it broken and silent
            self._on_broken(error)

    def _record_issued(self, query_ids: list[int], rows: list[int]) -> range:
        """Numbers the samples of a query and notes them; none once the test is being ended."""
        with self._recording:
            if self._closing:
                return range(0)
            now = time.monotonic_ns()
            record = self.record
            first = len(self._query_ids)
            count = len(query_ids)
            if self._completed == first:
                self._last_progress_ns = now  # nothing was outstanding: the engine was not slow, it was idle
            self._query_ids.extend(query_ids)
            self._state.extend(bytes(count))
            record.rows.extend(rows)
            record.issue_count.append(count)
            record.issue_ns.append(now)
            return range(first, first + count)

    def flush(self) -> None:
        """LoadGen's flush callback; queries are handed over as they come, so there is nothing to do."""

    # -- the completion thread -------------------------------------------------------------------------------------

    def start(self) -> None:
        """Starts the completion thread."""
        self._thread.start()

    def close(self) -> None:
        """Ends the completion thread and takes no more queries: ``record`` stands still from now on.

        To be called when StartTest has returned, or when the test is given up while LoadGen still runs.
        """
        with self._recording:
            self._closing = True
        self._engine.wake()
        self._thread.join(timeout=_JOIN_S)

    @property
    def issued(self) -> int:
        """Samples that LoadGen has issued so far."""
        return len(self._query_ids)

    @property
    def completed(self) -> int:
        """Samples completed so far, failed ones among them."""
        return self._completed

    def stalled_s(self) -> float:
        """Seconds since the last completion or first token while samples are outstanding; 0 where none is."""
        if self._completed == self.issued:
            return 0.0
        return (time.monotonic_ns() - self._last_progress_ns) / 1e9

    def _complete(self) -> None:
        try:
            while not self._closing:
                events = self._engine.poll(1.0)
                if events:
                    self._tell(events)
        except Exception as error:  # noqa: BLE001 - a completion thread that ends in silence looks like a hang
            if not self._closing:
                self._on_broken(error)

    def _tell(self, events: list[Event]) -> None:
        """Reports all that came, first tokens before completions, in as few LoadGen calls as may be."""
        now = time.monotonic_ns()
        firsts: list[Any] = []
        dones: list[Any] = []
        failures: list[Failure] = []
        for event in events:
            if isinstance(event, Tokens):
                self._add_first_tokens(event, now, firsts)
            elif isinstance(event, Answers):
                self._add_answers(event, now, firsts, dones, failures)
            else:
                failures.append(event)
        for failure in failures:
            self._add_failure(failure, now, firsts, dones)
        if firsts:
            loadgen.FirstTokenComplete(firsts)
        # ``events`` keeps the answers' buffers alive until LoadGen has copied what it wants of them.
        for start in range(0, len(dones), _BATCH):
            loadgen.QuerySamplesComplete(dones[start : start + _BATCH] if len(dones) > _BATCH else dones)
        self._completed += len(dones)
        self._last_progress_ns = now

    def _add_first_tokens(self, event: Tokens, now: int, firsts: list[Any]) -> None:
        if not self._tell_first:
            return
        address = _address(event.tokens)
        for number, position in zip(event.numbers, event.positions, strict=True):
            if position == 0:
                self._tell_first_token_unless_told(number, address, now, firsts)
            address += 4

    def _add_answers(
        self, event: Answers, now: int, firsts: list[Any], dones: list[Any], failures: list[Failure]
    ) -> None:
        if len(event.numbers) == 1 and event.ends[0] >= self._min_tokens:
            self._add_one_answer(event, now, firsts, dones)
            return
        lengths = _lengths(event.ends)
        if min(lengths) < self._min_tokens:
            for i, length in enumerate(lengths):
                if length < self._min_tokens:
                    failures.append(_too_short(event.numbers[i], length, self._min_tokens))
                else:
                    self._add_answers(_only(event, i), now, firsts, dones, failures)
            return
        self._claim(event.numbers)
        self._record_done(event, lengths, now)
        self._add_responses(event, lengths, now, firsts, dones)

    def _add_one_answer(self, event: Answers, now: int, firsts: list[Any], dones: list[Any]) -> None:
        """As the rest does for many; a server's answers come alone, and each microsecond here is latency."""
        number, length = event.numbers[0], event.ends[0]
        address = _address(event.tokens)
        if self._tell_first:
            self._tell_first_token_unless_told(number, address, now, firsts)
        if self._state[number] & _DONE:
            raise _answered_twice(number)
        self._state[number] |= _DONE
        record = self.record
        record.done_number.append(number)
        record.done_tokens.append(length)
        record.done_finish.append(event.finish[0])
        record.engine_first_ns.append(event.first_ns[0])
        record.engine_done_ns.append(event.done_ns[0])
        record.done_ns.append(now)
        dones.append(loadgen.QuerySampleResponse(self._query_ids[number], address, 4 * length, length))

    def _add_responses(self, event: Answers, lengths: list[int], now: int, firsts: list[Any], dones: list[Any]) -> None:
        base = _address(event.tokens)
        ends, sizes = np.array(event.ends, np.int64) * 4, np.array(lengths, np.int64) * 4
        addresses = (ends - sizes + base).tolist()
        if self._tell_first:
            for number, address in zip(event.numbers, addresses, strict=True):
                self._tell_first_token_unless_told(number, address, now, firsts)
        dones.extend(
            map(
                loadgen.QuerySampleResponse,
                map(self._query_ids.__getitem__, event.numbers),
                addresses,
                sizes.tolist(),
                lengths,
            )
        )

    def _tell_first_token_unless_told(self, number: int, address: int, now: int, firsts: list[Any]) -> None:
        """LoadGen wants a first token for every answer; an engine may tell a short answer all at once."""
        if not self._state[number] & _FIRST_TOLD:
            self._state[number] |= _FIRST_TOLD
            firsts.append(loadgen.QuerySampleResponse(self._query_ids[number], address, 4, 1))
            self.record.first_number.append(number)
            self.record.first_ns.append(now)

    def _add_failure(self, failure: Failure, now: int, firsts: list[Any], dones: list[Any]) -> None:
        number = failure.number
        self._claim((number,))
        if self._tell_first:
            self._tell_first_token_unless_told(number, _MARKER_ADDRESS, now, firsts)
        dones.append(
            loadgen.QuerySampleResponse(
                self._query_ids[number], _MARKER_ADDRESS, FAILED_MARKER.nbytes, len(FAILED_MARKER)
            )
        )
        self.record.failures.append(failure)

    def _claim(self, numbers: Sequence[int]) -> None:
        """Marks samples as completed; completing one twice would be an error inside LoadGen."""
        state = self._state
        for number in numbers:
            before = state[number]
            if before & _DONE:
                raise _answered_twice(number)
            state[number] = before | _DONE

    def _record_done(self, event: Answers, lengths: list[int], now: int) -> None:
        record = self.record
        record.done_number.extend(event.numbers)
        record.done_tokens.extend(lengths)
        record.done_finish.extend(event.finish)
        record.engine_first_ns.extend(event.first_ns)
        record.engine_done_ns.extend(event.done_ns)
        record.done_ns.extend([now] * len(lengths))


def _lengths(ends: Sequence[int]) -> list[int]:
    return list(map(operator.sub, ends, itertools.chain((0,), ends)))


def _address(tokens: Int32Array) -> int:
    """Where the tokens lie, for a third of what ``ndarray.ctypes`` or ``__array_interface__`` take to say it."""
    try:
        return ctypes.addressof(ctypes.c_char.from_buffer(cast("Any", tokens)))
    except (TypeError, ValueError):  # read-only, or empty
        return tokens.ctypes.data


def _answered_twice(number: int) -> RunBroke:
    return RunBroke(f"the engine answered request {number} twice")


def _only(event: Answers, i: int) -> Answers:
    """Answer i of a batch, as a batch of one; its tokens are a view of the batch's."""
    begin = event.ends[i - 1] if i else 0
    tokens = event.tokens[begin : event.ends[i]]
    return Answers(
        numbers=(event.numbers[i],),
        tokens=tokens,
        ends=(len(tokens),),
        first_ns=(event.first_ns[i],),
        done_ns=(event.done_ns[i],),
        finish=(event.finish[i],),
    )


def _too_short(number: int, length: int, wanted: int) -> Failure:
    return Failure(number, "too_short", f"an answer of {length} tokens; LoadGen's token metrics need {wanted}")
