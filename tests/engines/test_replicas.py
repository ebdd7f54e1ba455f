from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from harness.engines import frames, wire
from harness.engines.address import EngineAddress, Lane, lanes_before, lanes_each
from harness.engines.base import (
    REPLICA_DIED,
    Answers,
    EngineCore,
    EngineInfo,
    Event,
    Failure,
    PromptTable,
    Replies,
    Requests,
    TokenEvents,
    Workload,
)
from harness.engines.bodies import BodyStore
from harness.engines.group import Member, start_group
from harness.engines.replicas import ReplicasEngine, connect
from harness.engines.scripted import ScriptedCore
from harness.engines.scripted_settings import Faults, ScriptedSettings
from harness.engines.start import EngineSpec
from harness.errors import EngineDied
from tests.engines.test_host import hosted
from tests.engines.test_remote import Puppet
from tests.engines.test_scripted import answers_of, requests, workload


class ListeningCore(ScriptedCore):
    """Answers as a scripted core does, knows several replicas, and keeps what it was asked."""

    def __init__(self, settings: ScriptedSettings, replicas: tuple[str, ...] = ("0",)) -> None:
        super().__init__(settings)
        self.replicas = replicas
        self.asked: list[tuple[int, int]] = []
        self.batches: list[int] = []

    def info(self) -> EngineInfo:
        said = super().info()
        return EngineInfo(
            said.kind,
            said.vocab_size,
            said.max_total_tokens,
            said.slots,
            None,
            said.versions,
            said.settings,
            said.not_submittable,
            self.replicas,
        )

    def submit(self, requests: Requests) -> None:
        self.asked += [(number, requests.workload.replica) for number in requests.numbers]
        self.batches.append(requests.workload.replica)
        super().submit(requests)

    def counters(self) -> dict[str, int]:
        return {"asked": len(self.asked), "retries": 1}


class ChattyCore(ListeningCore):
    """Answers each chat with its row."""

    def submit(self, requests: Requests) -> None:
        self.asked += [(number, requests.workload.replica) for number in requests.numbers]
        data = [b'{"content":"%d"}' % row for row in requests.rows]
        n, now = len(data), (time.monotonic_ns(),)
        ends = np.cumsum([len(reply) for reply in data]).tolist()
        self._ready.append(Replies(requests.numbers, b"".join(data), ends, [4] * n, now * n, now * n, [0] * n))


Serve = Callable[..., ReplicasEngine]


@pytest.fixture
def serve(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serve]:
    """Cores behind sockets of their own, and an engine over them."""
    with contextlib.ExitStack() as stack:

        def build(*cores: EngineCore, lanes: tuple[Lane, ...] | None = None) -> ReplicasEngine:
            paths = [stack.enter_context(hosted(core, tmp_path_factory.mktemp("replica"))) for core in cores]
            logs = tuple(str(path.with_name("engine.log")) for path in paths)
            address = EngineAddress(tuple(map(str, paths)), logs, lanes or lanes_each(len(cores)))
            engine = ReplicasEngine(address, timeout_s=20)
            stack.callback(engine.close)
            return engine

        yield build


def all_events(engine: ReplicasEngine, n: int) -> list[Event]:
    """What comes until n requests have ended."""
    events: list[Event] = []
    deadline = time.monotonic() + 30
    while (
        sum(len(event) if isinstance(event, Answers | Replies) else isinstance(event, Failure) for event in events) < n
    ):
        assert time.monotonic() < deadline
        events += engine.poll(1)
    return events


def two() -> tuple[ListeningCore, ListeningCore]:
    return ListeningCore(ScriptedSettings()), ListeningCore(ScriptedSettings())


class TestSpreading:
    def test_single_requests_take_turns(self, serve: Serve) -> None:
        cores = two()
        engine = serve(*cores)
        work = workload()
        for number in range(100, 106):
            engine.submit(requests([number], work, number))
        assert answers_of(all_events(engine, 6)) == {number: [number, number + 1] for number in range(100, 106)}
        assert [[number for number, _ in core.asked] for core in cores] == [[100, 102, 104], [101, 103, 105]]
        assert engine.replicas_of(np.array([105, 100, 101, 7])).tolist() == [1, 0, 1, -1]

    def test_a_few_at_once(self, serve: Serve) -> None:
        cores = two()
        engine = serve(*cores)
        engine.submit(requests([5, 6, 7, 8]))
        assert answers_of(all_events(engine, 4)) == {100: [5, 6], 101: [6, 7], 102: [7, 8], 103: [8, 9]}
        assert [len(core.asked) for core in cores] == [2, 2]

    def test_many_at_once_are_split_by_columns(self, serve: Serve) -> None:
        cores = two()
        engine = serve(*cores)
        n = 1_001
        table = PromptTable.from_lists([[1] * (length + 1) for length in range(50)])
        rows = [(7 * i) % 50 for i in range(n)]
        engine.submit(Requests(workload(TokenEvents.NONE), range(n), rows, table, rows))
        assert answers_of(all_events(engine, n)) == {i: [rows[i], rows[i] + 1] for i in range(n)}
        tokens = [sum(rows[number] + 1 for number, _ in core.asked) for core in cores]
        assert abs(len(cores[0].asked) - len(cores[1].asked)) == 1
        assert abs(tokens[0] - tokens[1]) <= 50
        assert [number for number, _ in cores[0].asked] == sorted(number for number, _ in cores[0].asked)
        found = engine.replicas_of(np.arange(n))
        assert found.dtype == np.int16
        assert [set(np.flatnonzero(found == i).tolist()) for i in range(2)] == [
            {number for number, _ in core.asked} for core in cores
        ]

    def test_a_slow_replica_is_asked_less(self, serve: Serve) -> None:
        settings = ScriptedSettings(faults={"*": Faults(hang=frozenset({0}))})
        slow, quick = ListeningCore(settings), ListeningCore(settings)
        engine = serve(slow, quick)
        work = workload()
        engine.submit(requests([0], work, 0))
        for number in range(1, 20):
            engine.submit(requests([1], work, number))
            all_events(engine, 1)
        assert (len(slow.asked), len(quick.asked)) == (1, 19)

    def test_replicas_behind_one_process(self, serve: Serve) -> None:
        core = ListeningCore(ScriptedSettings(), ("east", "west"))
        engine = serve(core, lanes=lanes_before(2, 1))
        assert engine.info().replicas == ("east", "west")
        for number in range(4):
            engine.submit(requests([number], first_number=number))
        all_events(engine, 4)
        assert core.asked == [(0, 0), (1, 1), (2, 0), (3, 1)]
        assert engine.replicas_of(np.arange(4)).tolist() == [0, 1, 0, 1]

    def test_no_replica_behind_a_process_waits_for_all_of_anothers_prompts(self, serve: Serve) -> None:
        core = ListeningCore(ScriptedSettings(), ("east", "west"))
        engine = serve(core, lanes=lanes_before(2, 1))
        n = 4_000
        table = PromptTable.from_lists([list(range(1_000))])  # 16 MB in all, in frames of one
        engine.submit(Requests(workload(TokenEvents.NONE), range(n), [0] * n, table, [0] * n))
        all_events(engine, n)
        assert len(core.batches) > 8
        assert set(core.batches[:2]) == {0, 1}
        assert all(a != b for a, b in zip(core.batches, core.batches[1:], strict=False))

    def test_two_client_processes_before_one_replica(self, serve: Serve) -> None:
        cores = two()
        engine = serve(*cores, lanes=lanes_before(1, 2))
        for number in range(6):
            engine.submit(requests([number], first_number=number))
        all_events(engine, 6)
        assert [len(core.asked) for core in cores] == [3, 3]
        assert engine.replicas_of(np.arange(6)).tolist() == [0] * 6

    def test_sessions_stay_together(self, serve: Serve, tmp_path: Path) -> None:
        chats = [{"messages": [{"role": "user", "content": str(row)}]} for row in range(8)]
        store = BodyStore.write(tmp_path / "chats", chats, sessions=[0, 1, 0, 1, -1, 2, 0, 2])
        cores = ChattyCore(ScriptedSettings()), ChattyCore(ScriptedSettings())
        engine = serve(*cores)
        work = Workload("agents", workload().sampling, TokenEvents.FIRST, bodies=str(store.path))
        none = PromptTable.from_lists([])
        for row in range(8):
            engine.submit(Requests(work, [row], [row], none, ()))
        events = all_events(engine, 8)
        assert {n for event in events if isinstance(event, Replies) for n in event.numbers} == set(range(8))
        replicas = engine.replicas_of(np.arange(8)).tolist()
        assert replicas[0] == replicas[2] == replicas[6]
        assert replicas[1] == replicas[3] == 1 - replicas[0]
        assert replicas[5] == replicas[7]

    def test_turns_one_by_one_go_where_their_trajectory_is(self, serve: Serve, tmp_path: Path) -> None:
        """Each is asked when the one before is answered; trajectories end at different times and others begin."""
        lengths = [5, 1, 3, 2, 4, 1]
        chats = [{"messages": [{"role": "user", "content": "x"}]}] * sum(lengths)
        owners = [session for session, n in enumerate(lengths) for _ in range(n)]
        store = BodyStore.write(tmp_path / "chats", chats, sessions=owners)
        engine = serve(*(ChattyCore(ScriptedSettings()) for _ in range(3)))
        work = Workload("agents", workload().sampling, TokenEvents.FIRST, bodies=str(store.path))
        none = PromptTable.from_lists([])
        left = [list(store.rows_of(session)) for session in range(len(lengths))]
        under_way, sizes = [left.pop(0), left.pop(0), left.pop(0)], []
        while under_way:
            rows = [turns.pop(0) for turns in under_way]
            for row in rows:
                engine.submit(Requests(work, [row], [row], none, ()))
            all_events(engine, len(rows))
            (sessions,) = engine._with_sessions
            sizes.append(sessions.under_way())
            under_way = [turns or (left.pop(0) if left else []) for turns in under_way]
            under_way = [turns for turns in under_way if turns]
        replicas = engine.replicas_of(np.arange(len(owners)))
        assert all(len(set(replicas[store.rows_of(session)].tolist())) == 1 for session in range(len(lengths)))
        assert max(max(each) for each in sizes) == 1  # three at once, on three replicas
        assert sizes[-1] == [0, 0, 0]

    def test_a_number_used_again(self, serve: Serve) -> None:
        engine = serve(*two())
        for _ in range(3):
            engine.submit(requests([1], first_number=5))
            all_events(engine, 1)
        assert engine.replicas_of(np.array([5])).tolist() == [0]
        assert engine.replicas_of(np.zeros(0, np.int64)).tolist() == []

    def test_nothing_was_given_to_anybody(self, serve: Serve) -> None:
        assert serve(*two()).replicas_of(np.array([5])).tolist() == [-1]


class TestTheRest:
    def test_counters_are_added(self, serve: Serve) -> None:
        engine = serve(*two())
        engine.submit(requests([1, 2, 3]))
        all_events(engine, 3)
        assert engine.counters(20) == {"asked": 3, "retries": 2}

    def test_events_that_come_while_counters_are_asked_are_kept(self, serve: Serve) -> None:
        engine = serve(*two())
        engine.submit(requests([1, 2, 3]))
        engine.counters(20)
        assert len(answers_of(all_events(engine, 3))) == 3

    def test_wake(self, serve: Serve) -> None:
        engine = serve(*two())
        threading.Timer(0.05, engine.wake).start()
        start = time.monotonic()
        assert engine.poll(60) == []
        assert time.monotonic() - start < 30

    def test_poll_ends_in_time(self, serve: Serve) -> None:
        engine = serve(*two())
        start = time.monotonic()
        assert engine.poll(0.05) == []
        assert 0.05 <= time.monotonic() - start < 10

    def test_two_threads(self, serve: Serve) -> None:
        n = 3_000
        engine = serve(*two())
        found: dict[int, list[int]] = {}

        def complete() -> None:
            while len(found) < n:
                found.update(answers_of(engine.poll(10)))

        thread = threading.Thread(target=complete)
        thread.start()
        work = workload()
        for i in range(n):
            engine.submit(requests([i], work, i))
        thread.join(30)
        assert found == {i: [i, i + 1] for i in range(n)}

    def test_closed_twice(self, serve: Serve) -> None:
        engine = serve(*two())
        engine.close()
        engine.close()

    def test_one_of_them_is_not_there(self, serve: Serve, tmp_path: Path) -> None:
        address = EngineAddress((str(tmp_path / "a"), str(tmp_path / "b")), ("a.log", "b.log"), lanes_each(2))
        with pytest.raises(EngineDied, match="no engine answers"):
            connect(address, timeout_s=1)


@contextlib.contextmanager
def puppets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Puppet, Puppet, ReplicasEngine]]:
    with (
        Puppet(tmp_path_factory.mktemp("a")) as first,
        Puppet(tmp_path_factory.mktemp("b")) as second,
    ):
        sockets = str(first.path), str(second.path)
        logs = tuple(str(puppet.path.with_name("engine.log")) for puppet in (first, second))
        engine = ReplicasEngine(EngineAddress(sockets, logs, lanes_each(2)), timeout_s=20)
        try:
            yield first, second, engine
        finally:
            engine.close()


def answer(number: int) -> bytes:
    one = Answers((number,), np.array([1, 2], np.int32), (2,), (5,), (6,), (0,))
    return b"".join(wire.event_frames(one))


def failure(number: int, kind: str, message: str) -> bytes:
    return frames.json_frame(frames.FAILURES, 1, [[number, kind, message]])


class TestDeath:
    def test_what_the_living_said_is_told_first(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        with puppets(tmp_path_factory) as (first, second, engine):
            Path(second.path.with_name("engine.log")).write_text("the device fell off\n", encoding="utf-8")
            for number in range(4):
                engine.submit(requests([number], first_number=number))
            first.connection.sendall(answer(0) + answer(2))
            second.connection.close()
            time.sleep(0.05)
            assert len(answers_of(engine.poll(10))) == 2
            with pytest.raises(EngineDied) as caught:
                engine.poll(10)
            assert "went away: it closed the connection" in caught.value.what
            assert "the device fell off" in caught.value.what
            assert engine.replicas_of(np.arange(4)).tolist() == [0, 1, 0, 1]
            engine.submit(requests([9], first_number=9))
            with pytest.raises(EngineDied):
                engine.poll(10)

    def test_counters_of_those_that_are_left(self, serve: Serve, tmp_path_factory: pytest.TempPathFactory) -> None:
        breaks = ListeningCore(ScriptedSettings())
        folder = tmp_path_factory.mktemp("breaks")
        steps = breaks.step

        def step() -> list[Event]:
            if breaks.asked:
                raise RuntimeError("out of memory")
            return steps()

        breaks.step = step  # type: ignore[method-assign]  # to break once it is asked
        sound = ListeningCore(ScriptedSettings())
        with pytest.raises(RuntimeError, match="out of memory"), contextlib.ExitStack() as stack:
            paths = [
                str(stack.enter_context(hosted(core, place)))
                for core, place in ((sound, tmp_path_factory.mktemp("sound")), (breaks, folder))
            ]
            engine = ReplicasEngine(EngineAddress((paths[0], paths[1]), ("a", "b"), lanes_each(2)), timeout_s=20)
            stack.callback(engine.close)
            engine.submit(requests([1, 2]))
            with pytest.raises(EngineDied, match="out of memory"):
                for _ in range(100):
                    engine.poll(1)
            assert engine.counters(20) == {"asked": 1, "retries": 1}

    def test_a_replica_that_died_is_named(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        with puppets(tmp_path_factory) as (_, second, engine):
            for number in range(4):
                engine.submit(requests([number], first_number=number))
            second.connection.sendall(answer(1) + failure(3, REPLICA_DIED, "connection refused at port 30001"))
            events: list[Event] = []
            while len(events) < 2:
                events += engine.poll(10)
            assert [type(event) for event in events] == [Answers, Failure]
            with pytest.raises(EngineDied, match="replica 1 died: connection refused at port 30001"):
                engine.poll(10)

    def test_other_failures_are_none_of_a_replica(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        with puppets(tmp_path_factory) as (first, _, engine):
            engine.submit(requests([0], first_number=0))
            first.connection.sendall(failure(0, "http_500", "it hurts"))
            assert engine.poll(10) == [Failure(0, "http_500", "it hurts")]
            assert engine.poll(0.01) == []

    def test_the_only_replica_ends_a_plain_engine_too(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        with Puppet(tmp_path_factory.mktemp("a")) as puppet:
            engine = puppet.connect()
            engine.submit(requests([0], first_number=0))
            puppet.connection.sendall(failure(0, REPLICA_DIED, "connection reset"))
            assert engine.poll(10) == [Failure(0, REPLICA_DIED, "connection reset")]
            with pytest.raises(EngineDied, match="replica 0 died: connection reset"):
                engine.poll(10)
            engine.close()


def test_an_offline_query_of_a_million(tmp_path: Path) -> None:
    """Over two processes: each request is answered once, and what took longest is not the split."""
    n = 1_000_000
    table = PromptTable.from_lists([[1] * (1 + row) for row in range(64)])
    rows = [(31 * i) % 64 for i in range(n)]
    members = [Member(EngineSpec("scripted", {"length": 2}))] * 2
    with start_group(members, log=tmp_path / "engine.log", timeout_s=60) as group:
        engine = group.connect()
        start = time.monotonic()
        engine.submit(Requests(workload(TokenEvents.NONE), list(range(n)), rows, table, rows))
        submitted_s = time.monotonic() - start
        times = np.zeros(n, np.int8)
        answered = 0
        while answered < n:
            for event in engine.poll(20):
                assert isinstance(event, Answers)
                times[np.asarray(event.numbers)] += 1
                answered += len(event)
        all_s = time.monotonic() - start
        replicas = engine.replicas_of(np.arange(n))
        engine.close()
    assert times.min() == times.max() == 1
    assert np.bincount(replicas).tolist() == [n // 2, n // 2]
    assert submitted_s < all_s / 2
