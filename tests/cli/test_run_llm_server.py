"""``run_llm_server`` as a user runs it: processes, signals, exit codes, and nothing left behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from harness.cli import run_llm_server
from harness.engines.launch.http import get
from harness.errors import ConfigError, InUseError, MissingError
from harness.runs.server_state import STATE, state_of
from tests.engines.launch.made import free_ports, pids_in
from tests.harness_process import ScriptedProject, end_of, living, wait_until
from tests.runs.fake_servers import fake_engine

WORDS = ("run_llm_server", "--systems=SCRIPTED")


class Project:
    """A project whose engine is fake servers."""

    def __init__(self, scripted: ScriptedProject, tmp_path: Path) -> None:
        self.scripted = scripted
        self.outside = tmp_path / "outside"
        self.folder = scripted.results / "SCRIPTED" / "gpt-oss-120b"

    def write(self, *words: object, scenarios: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
        """Writes the benchmark's file; the engine that is in it."""
        engine = fake_engine(self.outside, *words, **changes)
        content = {"engine": engine}
        self.scripted.write_benchmark(content if scenarios is None else content | {"scenarios": scenarios})
        return engine

    def start(self, *words: object) -> subprocess.Popen[str]:
        return self.scripted.start(*WORDS, *words)

    def state(self) -> dict[str, Any]:
        wait_until((self.folder / STATE).exists, "servers.json")
        found: dict[str, Any] = json.loads((self.folder / STATE).read_text())
        return found


@pytest.fixture
def project(scripted_project: ScriptedProject, tmp_path: Path) -> Project:
    return Project(scripted_project, tmp_path)


def test_serves_until_it_is_told_to_end(project: Project) -> None:
    forked = project.outside / "forked"
    port = project.write("--meek", "--forks", forked)["launch"]["port"]
    process = project.start()
    pids = [*pids_in(forked), *(server["pid"] for server in project.state()["servers"])]
    assert get(f"http://127.0.0.1:{port}", "/health", timeout_s=5).status == 200
    assert process.stdout is not None
    told = process.stdout.readline()  # the state is written before: an interrupt may fall between the two
    process.send_signal(signal.SIGINT)
    ended = end_of(process)
    assert ended.code == 0, ended.err
    assert f"SCRIPTED/gpt-oss-120b: server 0 serves gpt-oss-120b at http://127.0.0.1:{port}" in told
    assert str(project.folder / "server-0.log") in ended.err
    assert "ending the servers" in ended.err
    assert not living(pids)
    assert not (project.folder / STATE).exists()


def test_an_interrupt_before_they_are_healthy(project: Project) -> None:
    forked = project.outside / "forked"
    project.write("--never-healthy", "--meek", "--forks", forked)
    process = project.start()
    pids = pids_in(forked)
    process.send_signal(signal.SIGINT)
    assert end_of(process).code == 130
    assert not living(pids)


def test_a_server_that_dies_ends_all_and_is_named(project: Project) -> None:
    now = project.outside / "now"
    first = project.write("--dies-when", now, replicas=2)["launch"]["port"]
    process = project.start()
    leaders = [server["pid"] for server in project.state()["servers"]]
    now.touch()
    ended = end_of(process)
    assert ended.code == 4
    assert (
        f"trtllm-serve 0 (http://127.0.0.1:{first}) ended with status 7" in ended.err or "trtllm-serve 1" in ended.err
    )
    assert "the last words" in ended.err
    assert not living(leaders)


def test_killing_it_leaves_nothing(project: Project) -> None:
    forked = project.outside / "forked"
    project.write("--meek", "--forks", forked)
    process = project.start()
    pids = [*pids_in(forked), *(server["pid"] for server in project.state()["servers"])]
    process.kill()
    process.communicate()
    wait_until(lambda: not living(pids), "the end of all it had started", timeout_s=90)


@pytest.fixture
def _here(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.scripted.folder)
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(project.outside / "cache"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.mark.usefixtures("_here")
class TestDryRun:
    def test_prints_and_starts_nothing(
        self, project: Project, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HF_TOKEN", "hf_1234567")
        first = free_ports(2)
        launch = {"port": first, "env": {"PATH": "/bin"}}
        project.write(replicas=2, launch=launch)
        assert run_llm_server.run([*WORDS[1:], "--dry-run"]) == 0
        out = capsys.readouterr().out
        path = str(project.outside / "models" / "gpt-oss-120b")
        assert out.count("cat > ") == 2
        assert (
            f"# replica 1: http://127.0.0.1:{first + 1}, model gpt-oss-120b, log {project.folder}/server-1.log" in out
        )
        assert f"trtllm-serve {path} --host 127.0.0.1 --port {first} --tokenizer {path}" in out
        assert "max_seq_len: 35840\n" in out
        assert "CUDA_VISIBLE_DEVICES=1" in out
        assert "HF_TOKEN='***'" in out
        assert "hf_1234567" not in out
        assert not project.scripted.results.exists()
        assert not (project.outside / "cache").exists()

    def test_without_checkpoint_program_or_gpu(self, project: Project, capsys: pytest.CaptureFixture[str]) -> None:
        checkpoint = {"name": "x/y", "path": "/nowhere/y", "weight_data_type": "mxfp4"}
        project.write(checkpoint=checkpoint, launch={"env": {"PATH": "/nowhere"}}, options={"max_batch_size": None})
        assert run_llm_server.run([*WORDS[1:], "--dry_run"]) == 0
        assert "max_batch_size: null" in capsys.readouterr().out

    def test_a_stand_in(self, project: Project, capsys: pytest.CaptureFixture[str]) -> None:
        project.write(replicas=2)
        assert run_llm_server.run([*WORDS[1:], "--stand_in", "--dry-run"]) == 0
        out = capsys.readouterr().out
        assert out.startswith("# servers on the CPU stand in for trtllm-serve: never submittable\n# replica 0: ")
        assert out.count("-m harness serve --engine torch") == 2


@pytest.mark.usefixtures("_here")
class TestRefused:
    def test_two_of_them(self, project: Project) -> None:
        project.write()
        project.folder.mkdir(parents=True)
        with (
            state_of(project.folder, "digest", [("0", "http://127.0.0.1:1")], [os.getpid()]),
            pytest.raises(InUseError, match=f"process {os.getpid()}.* keeps servers running here already"),
        ):
            run_llm_server.run(list(WORDS[1:]))

    def test_a_port_in_use(self, project: Project) -> None:
        with socket.socket() as holder:
            holder.bind(("127.0.0.1", 0))
            holder.listen(1)
            port = holder.getsockname()[1]
            project.write(launch={"port": port, "env": project.write()["launch"]["env"]})
            with pytest.raises(MissingError, match=f"port {port} is in use by process {os.getpid()}"):
                run_llm_server.run(list(WORDS[1:]))

    def test_an_engine_that_is_no_server(self, project: Project) -> None:
        project.scripted.write_benchmark({})
        with pytest.raises(ConfigError, match="an engine of kind scripted is no server"):
            run_llm_server.run([*WORDS[1:], "--dry-run"])

    def test_servers_of_somebody_else(self, project: Project) -> None:
        project.write(endpoints=["http://127.0.0.1:1"])
        with pytest.raises(ConfigError, match=r"these servers are somebody else's: http://127.0.0.1:1"):
            run_llm_server.run(list(WORDS[1:]))

    def test_scenarios_with_engines_of_their_own(self, project: Project, capsys: pytest.CaptureFixture[str]) -> None:
        own = {"target_qps": 5, "engine_options": {"stream_interval": 20}}
        project.write(scenarios={"Offline": {"target_qps": 5}, "Server": own})
        with pytest.raises(ConfigError, match="Offline and Server have engines of their own") as caught:
            run_llm_server.run([*WORDS[1:], "--dry-run"])
        assert "--scenarios" in str(caught.value)
        assert run_llm_server.run([*WORDS[1:], "--scenarios=Server", "--dry-run"]) == 0
        assert "stream_interval: 20" in capsys.readouterr().out
