from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from harness import errors
from harness.engines import start
from harness.engines.base import Event, TokenEvents
from harness.engines.scripted_running import EXIT_SCRIPTED_DEATH
from harness.engines.start import EngineSpec, build_core, error_of_json, error_to_json, start_engine
from harness.errors import ConfigError, EngineDied, HarnessError, MissingError, UnknownName
from tests.engines.test_host import collect
from tests.engines.test_scripted import answers_of, requests, tokens_of, workload


def wait_for(condition: Callable[[], bool], timeout_s: float = 20) -> bool:
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def runs(pid: int) -> bool:
    """Whether a process is there and is not merely waiting to be reaped."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "engine.log"


class TestSpec:
    def test_json_and_back(self) -> None:
        spec = EngineSpec("scripted", {"length": 3, "answers": {"perf": "a.npz"}})
        assert EngineSpec.parse(spec.to_json()) == spec

    def test_unknown_kind(self) -> None:
        with pytest.raises(UnknownName, match="scriptd") as caught:
            EngineSpec("scriptd")
        assert "did you mean 'scripted'" in str(caught.value)

    @pytest.mark.parametrize("bad", [{1, 2}, float("nan"), Path("x")])
    def test_settings_must_be_json(self, bad: object) -> None:
        with pytest.raises(ConfigError, match="no JSON values"):
            EngineSpec("scripted", {"length": bad})

    @pytest.mark.parametrize("bad", [None, [], {}, {"kind": "scripted"}, {"kind": 1, "settings": {}}])
    def test_parse_tells_bad_input(self, bad: object) -> None:
        with pytest.raises(ConfigError):
            EngineSpec.parse(bad)

    def test_threads(self) -> None:
        assert EngineSpec("scripted").threads == 1
        assert EngineSpec("scripted", {"threads": 3}).threads == 3
        with pytest.raises(ConfigError, match="threads"):
            _ = EngineSpec("scripted", {"threads": 0}).threads

    def test_build_core_tells_bad_settings(self) -> None:
        with pytest.raises(UnknownName, match="lenght"):
            build_core(EngineSpec("scripted", {"lenght": 3}))

    @pytest.mark.torch
    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({}, "needs a checkpoint"),
            ({"checkpoint": 3}, "checkpoint"),
            ({"checkpoint": "x", "slot": 3}, "did you mean 'slots'"),
            ({"checkpoint": "x", "slots": "3"}, "slots"),
        ],
    )
    def test_build_core_tells_bad_settings_of_torch(self, settings: dict[str, object], message: str) -> None:
        with pytest.raises(ConfigError) as caught:
            build_core(EngineSpec("torch", settings))
        assert message in str(caught.value)


class TestErrors:
    @pytest.mark.parametrize("cls", [ConfigError, MissingError, errors.DatasetError, EngineDied, HarnessError])
    def test_there_and_back(self, cls: type[HarnessError]) -> None:
        found = error_of_json(error_to_json(cls("what", where="here", expected="this", mend="so")))
        assert type(found) is cls
        assert str(found) == str(cls("what", where="here", expected="this", mend="so"))

    def test_a_class_made_otherwise_becomes_its_parent_with_the_same_text(self) -> None:
        error = UnknownName("key", "lenght", ["length"], where="x.yaml")
        found = error_of_json(error_to_json(error))
        assert (type(found), str(found), found.exit_code) == (ConfigError, str(error), 2)


class TestLife:
    def test_starts_serves_and_stops_without_a_trace(self, log: Path) -> None:
        with start_engine(EngineSpec("scripted", {"length": 3}), log=log, timeout_s=60) as process:
            assert process.alive()
            assert process.info.not_submittable == ("scripted engine",)
            assert process.socket.parent.stat().st_mode & 0o077 == 0
            for _ in range(2):
                engine = process.connect()
                assert engine.info() == process.info
                engine.submit(requests([4]))
                assert collect(engine, bool) == {100: [4, 5, 6]}
                engine.close()
        assert not process.alive()
        assert not runs(process.pid)
        assert not process.socket.parent.exists()
        assert log.read_text(encoding="utf-8") == ""
        process.stop()

    @pytest.mark.torch
    def test_a_real_engine(self, log: Path, tiny_gpt_oss: Path) -> None:
        spec = EngineSpec("torch", {"checkpoint": str(tiny_gpt_oss), "slots": 2})
        with start_engine(spec, log=log, timeout_s=120) as process:
            assert (process.info.kind, process.info.slots) == ("torch", 2)
            assert process.info.checkpoint is not None
            engine = process.connect()
            engine.submit(requests([0, 1, 2], workload(TokenEvents.ALL, cap=4)))
            events: list[Event] = []
            while len(answers_of(events)) < 3:
                events += engine.poll(30)
            by_position = sorted(tokens_of(events))
            told = {n: [token for number, _, token in by_position if number == n] for n in (100, 101, 102)}
            assert told == answers_of(events)
            engine.close()

    def test_a_users_mistake_keeps_its_text_and_exit_code(self, log: Path, tmp_path: Path) -> None:
        missing = tmp_path / "no.npz"
        with pytest.raises(MissingError) as caught:
            start_engine(EngineSpec("scripted", {"answers": {"perf": str(missing)}}), log=log, timeout_s=60)
        assert caught.value.where == str(missing)
        assert caught.value.exit_code == 3
        assert str(missing) in log.read_text(encoding="utf-8")

    def test_an_engine_that_dies_early_shows_its_log(self, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("PYTHONHASHSEED", "nonsense")  # Python itself refuses to start
        with pytest.raises(EngineDied) as caught:
            start_engine(EngineSpec("scripted"), log=log, timeout_s=60)
        assert "ended with status 1 before it was ready" in str(caught.value)
        assert "PYTHONHASHSEED" in str(caught.value)

    def test_an_engine_that_is_not_ready_in_time_is_ended(self, log: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        started: list[subprocess.Popen[bytes]] = []

        class Sleeper(subprocess.Popen[bytes]):
            def __init__(self, command: list[str], **options: object) -> None:
                super().__init__(["sleep", "60"], **options)  # type: ignore[call-overload]
                started.append(self)

        monkeypatch.setattr(start.subprocess, "Popen", Sleeper)
        with pytest.raises(EngineDied, match=r"not ready after 0\.2 s"):
            start_engine(EngineSpec("scripted"), log=log, timeout_s=0.2)
        assert started[0].returncode == -signal.SIGTERM

    def test_a_death_in_mid_run(self, log: Path) -> None:
        spec = EngineSpec("scripted", {"faults": {"perf": {"die": 3}}})
        with start_engine(spec, log=log, timeout_s=60) as process:
            engine = process.connect()
            engine.submit(requests([3]))
            with pytest.raises(EngineDied) as caught:
                engine.poll(20)
            assert "the engine dies at row 3" in str(caught.value)
            assert wait_for(lambda: not process.alive())
            engine.close()
            with pytest.raises(EngineDied):
                process.connect()
        assert process._process.returncode == EXIT_SCRIPTED_DEATH

    def test_sigint_is_left_to_the_starter(self, log: Path) -> None:
        with start_engine(EngineSpec("scripted"), log=log, timeout_s=60) as process:
            os.kill(process.pid, signal.SIGINT)
            os.kill(process.pid, signal.SIGHUP)  # what the kernel sends when the starting thread ends
            engine = process.connect()
            assert engine.ping(20) < 20
            engine.close()

    def test_an_engine_that_ignores_sigterm_is_killed(self, log: Path) -> None:
        process = start_engine(EngineSpec("scripted"), log=log, timeout_s=60)
        os.kill(process.pid, signal.SIGSTOP)
        process.stop(grace_s=0.2)
        assert not runs(process.pid)

    @pytest.mark.parametrize("kind", ["scripted", "trtllm"])
    def test_it_has_the_time_to_end_that_its_kind_needs(
        self, log: Path, monkeypatch: pytest.MonkeyPatch, kind: str
    ) -> None:
        process = start_engine(EngineSpec("scripted"), log=log, timeout_s=60)
        process.spec = EngineSpec(kind)
        waited: list[float] = []
        monkeypatch.setattr(process, "_wait", waited.append)
        process.stop()
        assert waited == [{"scripted": 5.0, "trtllm": 30.0}[kind]]
        assert not runs(process.pid)

    @pytest.mark.parametrize("end", ["os._exit(0)", "os.kill(os.getpid(), 9)"])
    def test_it_does_not_outlive_its_starter(self, log: Path, end: str) -> None:
        program = (
            "import os, pathlib, sys\n"
            "from harness.engines.start import *\n"
            f"process = start_engine(EngineSpec('scripted'), log=pathlib.Path({str(log)!r}), timeout_s=60)\n"
            "print(process.pid, process.socket.parent, flush=True)\n"
            f"{end}\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60)
        pid, folder = done.stdout.split()
        assert wait_for(lambda: not runs(int(pid)))
        assert not Path(folder).exists()

    def test_a_long_temporary_folder(self, log: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        long = tmp_path / ("x" * 100)
        long.mkdir()
        monkeypatch.setattr(start.tempfile, "tempdir", str(long))
        with start_engine(EngineSpec("scripted"), log=log, timeout_s=60) as process:
            process.connect().close()
        assert list(long.iterdir()) == []

    def test_what_libraries_print_goes_to_the_log(self, log: Path, tmp_path: Path) -> None:
        answers = tmp_path / "answers.npz"
        np.savez(answers, tokens=np.array([1], np.int32), ends=np.array([1], np.int64))
        program = (
            "import os, sys\n"
            "from harness.engines import host\n"
            "sys.argv[1:1] = []\n"
            "own = host.own_standard_output()\n"
            "os.write(1, b'banner\\n'); print('print', flush=True)\n"
            "own.write('ready'); own.close()\n"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
        assert (done.stdout, done.stderr) == ("ready", "banner\nprint\n")
