from __future__ import annotations

import json
import os
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.engines import frames
from harness.engines.base import Answers, EngineCore, Event
from harness.engines.host import Host
from harness.engines.remote import RemoteEngine
from harness.engines.scripted import ScriptedCore
from harness.engines.scripted_settings import Faults, ScriptedSettings, ServiceTime
from harness.errors import EngineDied, RunBroke
from tests.engines.test_scripted import answers_of, requests, workload


class WatchedCore(ScriptedCore):
    """Counts what it answered, and breaks when it is told to."""

    answered = 0
    breaks: Exception | None = None

    def step(self) -> list[Event]:
        if self.breaks is not None:
            raise self.breaks
        events = super().step()
        self.answered += sum(len(event) for event in events if isinstance(event, Answers))
        return events


@contextmanager
def hosted(core: EngineCore, folder: Path) -> Iterator[Path]:
    """Serves the core from a thread; what the host raises comes out at the end."""
    path = folder / "socket"
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(path))
    listener.listen(1)
    their_end, our_end = os.pipe()
    raised: list[BaseException] = []

    def run() -> None:
        try:
            Host(core, listener, their_end).serve()
        except (RuntimeError, ConnectionError) as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield path
    finally:
        os.close(our_end)
        thread.join(20)
        os.close(their_end)
        listener.close()
        assert not thread.is_alive()
    if raised:
        raise raised[0]


def collect(engine: RemoteEngine, enough: Callable[[dict[int, list[int]]], bool]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    deadline = time.monotonic() + 30
    while not enough(found):
        assert time.monotonic() < deadline
        found |= answers_of(engine.poll(1))
    return found


@pytest.fixture
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("host")


def test_serves_answers(folder: Path) -> None:
    with hosted(ScriptedCore(ScriptedSettings()), folder) as path:
        engine = RemoteEngine(path)
        engine.submit(requests([5, 6]))
        assert collect(engine, lambda found: len(found) == 2) == {100: [5, 6], 101: [6, 7]}
        engine.close()


def test_the_next_client_finds_it_clean(folder: Path) -> None:
    core = ScriptedCore(ScriptedSettings(slots=1, faults={"*": Faults(hang=frozenset({0}))}))
    with hosted(core, folder) as path:
        first = RemoteEngine(path)
        first.submit(requests([0, 1]))
        first.ping(10)  # the engine has the requests
        first.close()
        second = RemoteEngine(path)
        second.submit(requests([7], first_number=900))
        assert collect(second, lambda found: len(found) == 1) == {900: [7, 8]}
        second.close()


def test_a_client_that_never_reads_does_not_stop_the_core(folder: Path) -> None:
    core = WatchedCore(ScriptedSettings(length=1_000))
    n = 5_000  # 20 MB of answers
    with hosted(core, folder) as path:
        engine = RemoteEngine(path)
        for first in range(0, n, 10):
            engine.submit(requests([1] * 10, workload(cap=1_000), first))
            engine._connection.flush()
        deadline = time.monotonic() + 20
        while core.answered < n and time.monotonic() < deadline:
            time.sleep(0.01)
        assert core.answered == n
        found = collect(engine, lambda found: len(found) == n)
        assert all(answer == list(range(1, 1_001)) for answer in found.values())
        engine.close()


def test_a_client_that_talks_nonsense_is_dropped_and_the_next_one_served(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with hosted(ScriptedCore(ScriptedSettings()), folder) as path:
        with socket.socket(socket.AF_UNIX) as stranger:
            stranger.connect(str(path))
            stranger.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n")
            stranger.settimeout(10)
            while stranger.recv(4096):
                pass
        engine = RemoteEngine(path)
        engine.submit(requests([5]))
        assert collect(engine, bool) == {100: [5, 6]}
        engine.close()
    assert "a client is dropped" in capsys.readouterr().err


def test_a_client_cannot_say_what_engines_say(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with hosted(ScriptedCore(ScriptedSettings()), folder) as path, socket.socket(socket.AF_UNIX) as stranger:
        stranger.connect(str(path))
        stranger.sendall(frames.json_frame(frames.Kind.FATAL, 0, {"message": "x"}))
        stranger.settimeout(10)
        while stranger.recv(4096):
            pass
    assert "does not say FATAL" in capsys.readouterr().err


def test_a_core_that_breaks_is_told_and_raised(folder: Path) -> None:
    core = WatchedCore(ScriptedSettings())
    core.breaks = RuntimeError("out of slots")
    with pytest.raises(RuntimeError, match="out of slots"), hosted(core, folder) as path:
        engine = RemoteEngine(path)
        engine.submit(requests([1]))
        with pytest.raises(EngineDied, match="RuntimeError: out of slots"):
            engine.poll(10)
        with pytest.raises(EngineDied, match="out of slots"):
            engine.poll(10)
        engine.close()


def test_an_error_of_the_core_is_not_taken_for_the_clients_end(folder: Path) -> None:
    core = WatchedCore(ScriptedSettings())
    core.breaks = ConnectionResetError("the server behind it hung up")
    with pytest.raises(ConnectionResetError), hosted(core, folder) as path:
        engine = RemoteEngine(path)
        engine.submit(requests([1]))
        with pytest.raises(EngineDied, match="the server behind it hung up"):
            engine.poll(10)
        engine.close()


def test_clients_that_leave_at_once_do_no_harm(folder: Path) -> None:
    with hosted(ScriptedCore(ScriptedSettings()), folder) as path:
        for _ in range(20):
            with socket.socket(socket.AF_UNIX) as visitor:
                visitor.connect(str(path))
        engine = RemoteEngine(path)
        engine.submit(requests([5]))
        assert collect(engine, bool) == {100: [5, 6]}
        engine.close()


def test_timed_answers_come_in_time(folder: Path) -> None:
    with hosted(ScriptedCore(ScriptedSettings(first_token=ServiceTime(0.02))), folder) as path:
        engine = RemoteEngine(path)
        start = time.monotonic_ns()
        engine.submit(requests([1]))
        events: list[Event] = []
        while not answers_of(events):
            events += engine.poll(5)
        (answer,) = (event for event in events if isinstance(event, Answers))
        assert answer.first_ns[0] - start >= 20_000_000
        assert answer.done_ns[0] <= time.monotonic_ns()
        engine.close()


class DistantCore(ScriptedCore):
    """Answers come from elsewhere: an eventfd tells of them, and ``wait_s`` knows nothing of when."""

    def __init__(self, settings: ScriptedSettings) -> None:
        super().__init__(settings)
        self.bell = os.eventfd(0, os.EFD_NONBLOCK)
        self.steps = 0

    def wait_s(self) -> float | None:
        return None

    def descriptor(self) -> int:  # type: ignore[override]  # that of a scripted core has none
        return self.bell

    def step(self) -> list[Event]:
        self.steps += 1
        os.eventfd_read(self.bell)
        return super().step()


@pytest.fixture
def distant() -> Iterator[DistantCore]:
    core = DistantCore(ScriptedSettings())
    yield core
    os.close(core.bell)


def test_a_core_is_stepped_when_its_descriptor_says_so(folder: Path, distant: DistantCore) -> None:
    with hosted(distant, folder) as path:
        engine = RemoteEngine(path)
        engine.submit(requests([5]))
        engine.ping(10)
        assert distant.steps == 0
        os.eventfd_write(distant.bell, 1)
        assert collect(engine, bool) == {100: [5, 6]}
        assert distant.steps == 1
        engine.close()


def test_a_core_without_a_client_is_stepped_too(folder: Path, distant: DistantCore) -> None:
    with hosted(distant, folder) as path:
        for steps in (1, 2):
            os.eventfd_write(distant.bell, 1)
            deadline = time.monotonic() + 20
            while distant.steps < steps and time.monotonic() < deadline:
                time.sleep(0.001)
        engine = RemoteEngine(path)
        assert engine.poll(0.01) == []
        engine.close()
    assert distant.steps == 2


def test_descriptors_beyond_what_select_takes(folder: Path, distant: DistantCore) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, min(hard, 4_096)), hard))
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(1_100)]
    try:
        with hosted(distant, folder) as path:
            engine = RemoteEngine(path)
            engine.submit(requests([5]))
            os.eventfd_write(distant.bell, 1)
            engine.ping(10)
            os.eventfd_write(distant.bell, 1)
            assert collect(engine, bool) == {100: [5, 6]}
            engine.close()
    finally:
        for descriptor in held:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


BREAKS = """
import sys
from harness.engines import host, scripted
def step(self):
    raise RuntimeError("out of slots")
scripted.ScriptedCore.step = step
sys.exit(host.main(sys.argv[1:]))
"""


@contextmanager
def started(folder: Path, program: str) -> Iterator[subprocess.Popen[str]]:
    """A host as its own process, once it has said that it is ready."""
    (folder / "spec.json").write_text('{"kind": "scripted", "settings": {}}', encoding="utf-8")
    command = [sys.executable, "-c", program, "--socket", str(folder / "socket"), "--spec", str(folder / "spec.json")]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["ready"]["kind"] == "scripted"
        yield process


def test_a_core_that_breaks_ends_the_process_with_status_4_and_a_traceback(folder: Path) -> None:
    with started(folder, BREAKS) as process:
        engine = RemoteEngine(folder / "socket")
        engine.submit(requests([1]))
        with pytest.raises(EngineDied, match="out of slots"):
            engine.poll(20)
        engine.close()
        _, log = process.communicate(timeout=20)
    assert process.returncode == RunBroke.exit_code
    assert "Traceback" in log
    assert "out of slots" in log
    assert not (folder / "socket").exists()


@pytest.mark.parametrize("how", ["SIGTERM", "end of standard input"])
def test_ends_when_it_is_told_to(folder: Path, how: str) -> None:
    with started(folder, "import sys; from harness.engines import host; sys.exit(host.main())") as process:
        if how == "SIGTERM":
            process.terminate()
            process.wait(20)
        _, log = process.communicate(timeout=20)  # closes its standard input
    assert (process.returncode, log) == (0, "")
    assert not (folder / "socket").exists()
