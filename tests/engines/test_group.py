from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import pytest

from harness.engines import group as group_module
from harness.engines.address import lanes_before
from harness.engines.base import TokenEvents
from harness.engines.group import EngineGroup, Member, start_group
from harness.engines.remote import RemoteEngine
from harness.engines.replicas import ReplicasEngine
from harness.engines.start import EngineProcess, EngineSpec, begin_engine
from harness.errors import EngineDied, MissingError, RunBroke
from tests.engines.test_host import collect
from tests.engines.test_scripted import requests, workload
from tests.engines.test_start import runs, wait_for

SCRIPTED = Member(EngineSpec("scripted", {"slots": 4}))
HANGS_AT_9 = Member(EngineSpec("scripted", {"faults": {"*": {"hang": [9]}}}))
BROKEN = Member(EngineSpec("scripted", {"answers": {"perf": "/no/such/file.npz"}}))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "engine.log"


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[EngineProcess]:
    """Every process that a group begins, also of one that never comes to be."""
    processes: list[EngineProcess] = []

    def begin(spec: EngineSpec, *, log: Path, environment: dict[str, str]) -> EngineProcess:
        processes.append(begin_engine(spec, log=log, environment=environment))
        return processes[-1]

    monkeypatch.setattr(group_module, "begin_engine", begin)
    return processes


def start(log: Path, *members: Member) -> EngineGroup:
    return start_group(members, log=log, timeout_s=60)


def test_one_process_is_reached_as_before(log: Path) -> None:
    with start(log, SCRIPTED) as group:
        assert group.logs == (log,)
        assert (group.info.replicas, group.info.slots) == (("0",), 4)
        engine = group.connect()
        assert isinstance(engine, RemoteEngine)
        engine.submit(requests([5]))
        assert collect(engine, bool) == {100: [5, 6]}
        engine.close()


def test_two_are_one_engine(log: Path) -> None:
    with start(log, SCRIPTED, SCRIPTED) as group:
        assert [path.name for path in group.logs] == ["engine.log", "engine-1.log"]
        assert (group.info.replicas, group.info.slots) == (("0", "1"), 8)
        assert group.ending() is None
        for _ in range(2):
            engine = group.connect()
            assert isinstance(engine, ReplicasEngine)
            assert engine.info() == group.info
            engine.submit(requests([5, 6, 7]))
            assert collect(engine, lambda found: len(found) == 3) == {100: [5, 6], 101: [6, 7], 102: [7, 8]}
            engine.close()
        pids = [process.pid for process in group.processes]
    assert not any(map(runs, pids))
    group.stop()


def test_client_processes_before_one_replica(log: Path) -> None:
    members = [SCRIPTED, SCRIPTED]
    with start_group(members, log=log, timeout_s=60, lanes=lanes_before(1, 2)) as group:
        assert (group.info.replicas, group.info.slots) == (("0",), 4)


def test_each_process_has_its_own_environment(log: Path) -> None:
    members = [Member(SCRIPTED.spec, {"CUDA_VISIBLE_DEVICES": str(gpu)}) for gpu in (2, 3)]
    with start(log, *members) as group:
        environments = [Path(f"/proc/{process.pid}/environ").read_bytes() for process in group.processes]
    assert [b"CUDA_VISIBLE_DEVICES=%d\0" % gpu in found for gpu, found in zip((2, 3), environments, strict=True)] == [
        True,
        True,
    ]


@pytest.mark.parametrize("members", [(SCRIPTED, BROKEN), (BROKEN, SCRIPTED)])
def test_one_that_cannot_be_built_ends_all(
    log: Path, begun: list[EngineProcess], members: tuple[Member, Member]
) -> None:
    with pytest.raises(MissingError) as caught:
        start(log, *members)
    assert caught.value.where == "/no/such/file.npz"
    assert len(begun) == 2
    assert not any(runs(process.pid) for process in begun)


def test_processes_that_do_not_agree(log: Path, begun: list[EngineProcess]) -> None:
    with pytest.raises(RunBroke, match="do not agree on their slots, settings"):
        start(log, SCRIPTED, Member(EngineSpec("scripted", {"slots": 5})))
    assert not any(runs(process.pid) for process in begun)


def test_too_slow(log: Path, begun: list[EngineProcess]) -> None:
    with pytest.raises(EngineDied, match=r"not ready after 0 s|not ready after 0\.0"):
        start_group([SCRIPTED, SCRIPTED], log=log, timeout_s=0.01)
    assert not any(runs(process.pid) for process in begun)


def test_interrupted_while_it_starts(log: Path, begun: list[EngineProcess]) -> None:
    def interrupt() -> None:
        while len(begun) < 2:
            time.sleep(0.001)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        start(log, SCRIPTED, SCRIPTED)
    assert len(begun) == 2
    assert not any(runs(process.pid) for process in begun)


def test_a_killed_process_is_told_and_the_others_ended(log: Path) -> None:
    with start(log, HANGS_AT_9, HANGS_AT_9) as group:
        engine = group.connect()
        engine.submit(requests([9], workload(TokenEvents.NONE)))
        os.kill(group.processes[1].pid, signal.SIGKILL)
        with pytest.raises(EngineDied, match="the scripted engine went away"):
            for _ in range(100):
                engine.poll(1)
        engine.close()
        assert wait_for(lambda: group.ending() is not None)  # its socket closes a moment before it has ended
        assert group.ending() == "process 1 of the engine was ended by SIGKILL"
        pids = [process.pid for process in group.processes]
    assert not any(map(runs, pids))


def test_what_stands_behind_is_told_first(log: Path) -> None:
    told: list[str | None] = [None]
    with start_group([SCRIPTED], log=log, timeout_s=60, behind=lambda: told[0]) as group:
        assert group.ending() is None
        os.kill(group.processes[0].pid, signal.SIGKILL)
        told[0] = "server 1 ended with status 3"
        assert group.ending() == "server 1 ended with status 3"
