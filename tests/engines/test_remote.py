from __future__ import annotations

import contextlib
import socket
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from harness.engines import frames, wire
from harness.engines.base import Answers, EngineInfo, PromptTable, Requests, TokenEvents, Workload
from harness.engines.connection import MOST_WORKLOADS
from harness.engines.remote import RemoteEngine
from harness.engines.scripted import ScriptedCore
from harness.engines.scripted_settings import Faults, ScriptedSettings
from harness.errors import EngineDied
from tests.engines.test_host import collect, hosted
from tests.engines.test_scripted import answers_of, requests, workload

AN_HOUR_S = 3600.0
INFO = EngineInfo("scripted", 10, 20, 3, None, {}, {})


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("remote")


class WorkloadsCore(ScriptedCore):
    """Keeps the workload of each request as the host understood it."""

    def __init__(self, settings: ScriptedSettings) -> None:
        super().__init__(settings)
        self.seen: dict[int, Workload] = {}

    def submit(self, requests: Requests) -> None:
        self.seen |= dict.fromkeys(requests.numbers, requests.workload)
        super().submit(requests)


class Puppet:
    """The other end of a RemoteEngine, in the test's hands."""

    def __init__(self, folder: Path, *, hello: bytes | None = None) -> None:
        self.path = folder / "socket"
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(1)
        self.hello = wire.info_frame(INFO) if hello is None else hello

    def __enter__(self) -> Puppet:
        self.accepted = threading.Thread(target=self.accept)
        self.accepted.start()
        return self

    def accept(self) -> None:
        self.connection, _ = self.listener.accept()
        self.connection.settimeout(10)
        self.connection.sendall(self.hello)

    def connect(self, **options: object) -> RemoteEngine:
        engine = RemoteEngine(self.path, timeout_s=10, **options)  # type: ignore[arg-type]
        self.accepted.join(10)
        return engine

    def requests(self, count: int, engine: RemoteEngine | None = None) -> tuple[dict[int, Workload], int]:
        """The workload of each request by its number, as a host understands it; how many workloads it keeps."""
        decoder, told, read = frames.Decoder(), dict[int, Workload](), dict[int, Workload]()
        self.connection.setblocking(False)
        deadline = time.monotonic() + 30
        while len(read) < count:
            assert time.monotonic() < deadline
            if engine is not None:
                engine.poll(0)
            with contextlib.suppress(BlockingIOError):
                for frame in decoder.feed(self.connection.recv(1 << 20)):
                    if frame.kind is frames.Kind.WORKLOAD:
                        told[frame.n] = wire.read_workload(frame)
                    else:
                        found = wire.read_requests(frame, told)
                        read |= dict.fromkeys(found.numbers, found.workload)
        return read, len(told)

    def __exit__(self, *_: object) -> None:
        self.accepted.join(10)
        self.connection.close()
        self.listener.close()


def test_info_is_what_the_engine_said(folder: Path) -> None:
    with Puppet(folder) as puppet:
        engine = puppet.connect()
        assert engine.info() == INFO
        engine.close()
        engine.close()


def test_nobody_listens(folder: Path) -> None:
    with pytest.raises(EngineDied, match="no engine answers"):
        RemoteEngine(folder / "socket")


def test_a_queue_of_clients_that_is_full(folder: Path) -> None:
    path = folder / "socket"
    with socket.socket(socket.AF_UNIX) as listener, socket.socket(socket.AF_UNIX) as first:
        listener.bind(str(path))
        listener.listen(0)
        first.connect(str(path))
        with pytest.raises(EngineDied, match="temporarily unavailable"):
            RemoteEngine(path, timeout_s=0.05)


def test_an_engine_that_says_nothing(folder: Path) -> None:
    with Puppet(folder, hello=b"") as puppet, pytest.raises(EngineDied, match="one at a time"):
        RemoteEngine(puppet.path, timeout_s=0.1)


def test_an_engine_that_is_no_engine(folder: Path) -> None:
    puppet = Puppet(folder, hello=b"220 mail.example.org ESMTP\r\n")
    with puppet, pytest.raises(EngineDied, match="not frames of this protocol"):
        puppet.connect()


def test_submit_does_not_wait_for_an_engine_that_does_not_read(folder: Path) -> None:
    table = PromptTable.from_lists([list(range(1_000))])
    with Puppet(folder) as puppet:
        engine = puppet.connect()
        start = time.monotonic()
        n = 1_000_000  # 4 GB of prompts, were they all encoded
        engine.submit(Requests(workload(), range(n), [0] * n, table, [0] * n))
        for i in range(5_000):
            engine.submit(Requests(workload(), [n + i], [0], table, [0]))
        for _ in range(20):
            assert engine.poll(0.001) == []
        assert time.monotonic() - start < 10
        engine.close()


def test_what_waited_is_sent_in_order(folder: Path) -> None:
    """More than a socket holds, then single requests; the engine answers each with its row."""
    n = 30_000
    table = PromptTable.from_lists([list(range(200))])
    work = workload(TokenEvents.NONE)
    with hosted(ScriptedCore(ScriptedSettings(length=1)), folder) as path:
        engine = RemoteEngine(path)
        engine.submit(Requests(work, range(n), range(n), table, [0] * n))
        for i in range(n, n + 100):
            engine.submit(Requests(work, [i], [i], table, [0]))
        found = collect(engine, lambda found: len(found) == n + 100)
        assert list(found) == list(range(n + 100))
        assert all(answer == [number] for number, answer in found.items())
        engine.close()


def test_two_threads(folder: Path) -> None:
    n = 3_000
    with hosted(ScriptedCore(ScriptedSettings()), folder) as path:
        engine = RemoteEngine(path)
        found: dict[int, list[int]] = {}

        def complete() -> None:
            while len(found) < n:
                found.update(answers_of(engine.poll(10)))

        thread = threading.Thread(target=complete)
        thread.start()
        work = [workload(cap=1), workload(cap=2)]
        for i in range(n):
            engine.submit(requests([i], work[i % 2], i))
        thread.join(30)
        assert found == {i: [i, i + 1][: 1 + i % 2] for i in range(n)}
        engine.close()


def test_the_engine_goes_away(folder: Path) -> None:
    log = folder / "engine.log"
    log.write_text("loading\nCUDA error: the device fell off\n", encoding="utf-8")
    with Puppet(folder) as puppet:
        engine = puppet.connect(log=log)
        engine.submit(requests([1]))
        puppet.connection.close()
        with pytest.raises(EngineDied) as caught:
            engine.poll(10)
        assert "the scripted engine went away" in str(caught.value)
        assert "the device fell off" in str(caught.value)
        assert str(log) in str(caught.value)
        engine.submit(requests([2]))
        with pytest.raises(EngineDied):
            engine.poll(10)
        engine.close()


def test_what_came_before_the_end_is_told_first(folder: Path) -> None:
    (events,) = [ScriptedCore(ScriptedSettings())]
    events.submit(requests([1], workload(TokenEvents.NONE)))
    answer = b"".join(frame for event in events.step() for frame in wire.event_frames(event))
    with Puppet(folder) as puppet:
        engine = puppet.connect()
        puppet.connection.sendall(answer + frames.json_frame(frames.Kind.FATAL, 0, {"message": "no memory"}))
        puppet.connection.close()
        assert answers_of(engine.poll(10)) == {100: [1, 2]}
        with pytest.raises(EngineDied, match="no memory"):
            engine.poll(10)
        engine.close()


def test_garbage_in_mid_run(folder: Path) -> None:
    with Puppet(folder) as puppet:
        engine = puppet.connect()
        puppet.connection.sendall(b"Segmentation fault")
        with pytest.raises(EngineDied, match="not frames"):
            engine.poll(10)
        engine.close()


def test_wake(folder: Path) -> None:
    with Puppet(folder) as puppet:
        engine = puppet.connect()
        threading.Timer(0.05, engine.wake).start()
        start = time.monotonic()
        assert engine.poll(60) == []
        assert time.monotonic() - start < 30
        engine.close()


def test_poll_ends_in_time(folder: Path) -> None:
    with Puppet(folder) as puppet:
        engine = puppet.connect()
        start = time.monotonic()
        assert engine.poll(0.05) == []
        assert 0.05 <= time.monotonic() - start < 10
        engine.close()


def test_ping(folder: Path) -> None:
    with hosted(ScriptedCore(ScriptedSettings()), folder) as path:
        engine = RemoteEngine(path)
        engine.submit(requests([3]))
        assert 0 < engine.ping(10) < 10
        assert collect(engine, bool) == {100: [3, 4]}
        engine.close()


class CountingCore(ScriptedCore):
    def counters(self) -> dict[str, int]:
        return {"steps": 3, "retries": 0}


def test_counters(folder: Path) -> None:
    with hosted(CountingCore(ScriptedSettings()), folder) as path:
        engine = RemoteEngine(path)
        engine.submit(requests([3]))
        assert engine.counters(10) == {"steps": 3, "retries": 0}
        assert engine.counters(10) == {"steps": 3, "retries": 0}
        assert collect(engine, bool) == {100: [3, 4]}
        assert engine.replicas_of(np.array([100, 101])).tolist() == [0, 0]
        engine.close()


def test_counters_of_an_engine_that_hangs(folder: Path) -> None:
    with Puppet(folder) as puppet:
        engine = puppet.connect()
        with pytest.raises(EngineDied, match="does not answer"):
            engine.counters(0.05)
        engine.close()


def test_ping_of_an_engine_that_hangs(folder: Path) -> None:
    with Puppet(folder) as puppet:
        engine = puppet.connect()
        with pytest.raises(EngineDied, match="does not answer"):
            engine.ping(0.05)
        engine.close()


def test_cancel_forgets_what_was_asked_and_what_was_answered(folder: Path) -> None:
    core = ScriptedCore(ScriptedSettings(slots=1, faults={"*": Faults(hang=frozenset({9}))}))
    with hosted(core, folder) as path:
        engine = RemoteEngine(path)
        engine.submit(requests([1, 9, 2]))
        engine.ping(10)
        engine.cancel()
        engine.submit(requests([5], first_number=700))
        events = engine.poll(10)
        while not answers_of(events):
            events += engine.poll(10)
        assert answers_of(events) == {700: [5, 6]}
        assert sum(isinstance(event, Answers) for event in events) == 1
        engine.close()


def test_cancel_while_much_waits(folder: Path) -> None:
    table = PromptTable.from_lists([list(range(1_000))])
    n = 20_000
    with hosted(ScriptedCore(ScriptedSettings()), folder) as path:
        engine = RemoteEngine(path)
        engine.submit(Requests(workload(), range(n), [0] * n, table, [0] * n))
        engine.poll(0.01)
        engine.cancel()
        engine.submit(requests([5], first_number=n))
        assert collect(engine, bool) == {n: [5, 6]}
        engine.close()


def test_drop_ends_the_work_on_some(folder: Path) -> None:
    core = ScriptedCore(ScriptedSettings(faults={"*": Faults(slow={9: AN_HOUR_S})}))
    with hosted(core, folder) as path:
        engine = RemoteEngine(path)
        engine.submit(requests([1, 9, 2], workload(TokenEvents.NONE)))
        engine.drop((101,))
        assert collect(engine, lambda found: len(found) == 2) == {100: [1, 2], 102: [2, 3]}
        engine.ping(10)
        assert core.wait_s() is None, "nothing is left of it"
        engine.close()


def test_drop_reaches_the_engine_behind_what_waits(folder: Path) -> None:
    """A million bytes and more of requests go before it; those that it names are among them."""
    n = 5_000
    table = PromptTable.from_lists([list(range(500))])
    core = ScriptedCore(ScriptedSettings(length=1, faults={"*": Faults(slow=dict.fromkeys(range(10, n), AN_HOUR_S))}))
    with hosted(core, folder) as path:
        engine = RemoteEngine(path)
        engine.submit(Requests(workload(TokenEvents.NONE), range(n), range(n), table, [0] * n))
        engine.drop(range(10, n))
        assert sorted(collect(engine, lambda found: len(found) >= 10)) == list(range(10))
        engine.ping(30)
        assert core.wait_s() is None, "nothing is left of it"
        engine.close()


def test_drop_after_the_engine_is_gone(folder: Path) -> None:
    with Puppet(folder) as puppet:
        engine = puppet.connect()
        puppet.connection.close()
        engine.drop((1,))
        with pytest.raises(EngineDied):
            engine.poll(10)
        engine.close()


def test_ever_new_workloads_do_not_fill_the_tables(folder: Path) -> None:
    """Some come again and again, most never do, and every request is answered by its own."""
    core = WorkloadsCore(ScriptedSettings(length=1))
    with hosted(core, folder) as path:
        engine = RemoteEngine(path)
        asked: dict[int, Workload] = {}
        for i in range(3 * MOST_WORKLOADS):
            for cap in (i % 5 + 1, 10 + i):
                number = len(asked)
                asked[number] = workload(TokenEvents.NONE, cap)
                engine.submit(requests([number], asked[number], first_number=number))
        assert len(collect(engine, lambda found: len(found) == len(asked))) == len(asked)
        assert core.seen == asked
        assert len(engine._connection._workloads) == MOST_WORKLOADS
        engine.close()


def test_a_number_is_given_again_only_behind_the_requests_that_have_it(folder: Path) -> None:
    """With more than the socket takes before, everything waits, and nothing is sent out of turn."""
    n = 4_000
    table = PromptTable.from_lists([list(range(500))])
    with Puppet(folder) as puppet:
        engine = puppet.connect()
        asked: dict[int, Workload] = {}
        for i in range(MOST_WORKLOADS + 10):
            work = workload(TokenEvents.NONE, cap=i + 1)
            numbers = range(len(asked), len(asked) + (n if i < 2 else 1))
            asked |= dict.fromkeys(numbers, work)
            rows = [0] * len(numbers)
            engine.submit(Requests(work, numbers, rows, table, rows))
        read, kept = puppet.requests(len(asked), engine)
        assert read == asked
        assert kept == MOST_WORKLOADS
        engine.close()


def test_batches_in_turn_keep_their_numbers_while_they_wait(folder: Path) -> None:
    """The first is of the workload whose turn it would be to give its number up to the second's."""
    n = 3_000
    table = PromptTable.from_lists([list(range(500))])
    loads = [workload(TokenEvents.NONE, cap=i + 1) for i in range(MOST_WORKLOADS + 1)]
    with Puppet(folder) as puppet:
        engine = puppet.connect()
        asked: dict[int, Workload] = {}
        for i, work in enumerate(loads[:-1]):
            asked[i] = work
            engine.submit(Requests(work, [i], [0], table, [0]))
        batches = []
        for work in (loads[0], loads[-1]):
            numbers = range(len(asked), len(asked) + n)
            asked |= dict.fromkeys(numbers, work)
            batches.append(Requests(work, numbers, [0] * n, table, [0] * n))
        engine._connection.submit_in_turn(batches)
        assert puppet.requests(len(asked), engine) == (asked, MOST_WORKLOADS)
        with pytest.raises(ValueError, match="257 batches"):
            engine._connection.submit_in_turn(batches[:1] * (MOST_WORKLOADS + 1))
        engine.close()
