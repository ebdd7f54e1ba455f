"""Real processes: how servers come up, go wrong, and leave nothing behind."""

from __future__ import annotations

import itertools
import os
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.engines.launch import fleet, supervisor
from harness.engines.launch.fleet import Fleet, running
from harness.engines.launch.http import get
from harness.engines.launch.plan import ServerPlan
from harness.engines.launch.process import start_server
from harness.errors import ConfigError, EngineDied, HarnessError, MissingError
from harness.events import ignore
from tests.engines.launch.made import FAKE_SERVER, Notes, fake_plan, free_ports, pids_in
from tests.harness_process import ROOT, living, wait_until

READY_S = 60.0


def failing(kind: type[HarnessError], *plans: ServerPlan, ready_s: float = READY_S) -> HarnessError:
    """What comes of starting servers that do not get healthy."""
    with pytest.raises(kind) as caught, running(plans, ready_s=ready_s, observer=ignore, grace_s=0.2):
        pytest.fail("they were healthy")
    return caught.value


def test_serves_and_leaves_nothing(tmp_path: Path, port: int) -> None:
    forked = tmp_path / "forked"
    notes = Notes()
    with running([fake_plan(tmp_path, port, "--forks", forked)], ready_s=READY_S, observer=notes, grace_s=0.3) as up:
        assert get(f"http://127.0.0.1:{port}", "/health", timeout_s=5).status == 200
        assert up.ending() is None
        pids = [*pids_in(forked), *up.pids]
        assert living(pids) == pids
    assert not living(pids)
    assert up.ending() is None
    assert notes.lines == [
        f"starting trtllm-serve 0 (http://127.0.0.1:{port}) (its log: {tmp_path / 'server-0.log'})",
        next(line for line in notes.lines if "is healthy after" in line),
    ]
    log = (tmp_path / "server-0.log").read_text()
    assert log.startswith("=== ")
    assert log.splitlines()[1] == "loading the weights"
    up.stop()


def test_a_server_that_ends_on_sigterm_is_not_waited_for(tmp_path: Path, port: int) -> None:
    with running([fake_plan(tmp_path, port)], ready_s=READY_S, observer=ignore, grace_s=60):
        begun = time.monotonic()
    assert time.monotonic() - begun < 30


def test_a_server_that_ignores_sigterm_is_killed(tmp_path: Path, port: int) -> None:
    with running([fake_plan(tmp_path, port, "--ignores-term")], ready_s=READY_S, observer=ignore, grace_s=0.2) as up:
        pids = supervisor.below(up.pids[0])
        assert pids
    assert not living(pids)


def test_dies_before_it_is_healthy(tmp_path: Path, port: int) -> None:
    error = failing(EngineDied, fake_plan(tmp_path, port, "--never-healthy", "--dies-after", 0.1, "--status", 7))
    assert "ended with status 7 before all servers were healthy; its log ends with" in error.what
    assert error.what.endswith("the last words")
    assert (error.where, error.exit_code) == (str(tmp_path / "server-0.log"), 4)


def test_the_signal_that_ended_it_is_named(tmp_path: Path, port: int) -> None:
    error = failing(EngineDied, fake_plan(tmp_path, port, "--never-healthy", "--dies-after", 0.1, "--signal", 9))
    assert "was ended by SIGKILL before all servers were healthy" in error.what
    assert "dmesg" in str(error.mend)


def test_never_healthy(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet, "LIFE_EVERY_S", 0.1)
    notes = Notes()
    plan = fake_plan(tmp_path, port, "--never-healthy")
    up = Fleet([start_server(plan, grace_s=0.2)])
    try:
        wait_until(lambda: get(plan.url, "/health", timeout_s=5).status == 503, "its answer")
        clock = itertools.count(0, 0.3)  # of its looks, so that there are as many on a busy machine
        monkeypatch.setattr(fleet, "time", SimpleNamespace(monotonic=lambda: next(clock), sleep=time.sleep))
        with pytest.raises(EngineDied) as caught:
            up.await_healthy(1, notes)
    finally:
        up.stop()
    assert "is not healthy after 1 s: its /health answers 503; its log ends with" in caught.value.what
    assert any("its log grew by" in line and "loading the weights" in line for line in notes.lines)
    assert any("its log has not grown" in line for line in notes.lines)


def test_nothing_listens(tmp_path: Path, port: int) -> None:
    plan = fake_plan(tmp_path, port, command=(sys.executable, "-c", "import time; time.sleep(600)"))
    error = failing(EngineDied, plan, ready_s=0.3)
    assert re.search("nothing answers there .*refused.*; it logged nothing", error.what)


def test_dies_in_mid_run(tmp_path: Path, port: int) -> None:
    plans = [fake_plan(tmp_path, port, "--dies-when", tmp_path / "now", "--status", 3)]
    with running(plans, ready_s=READY_S, observer=ignore) as up:
        assert up.ending() is None
        (tmp_path / "now").touch()
        wait_until(up.ending, "the end of the server")
        said = up.ending()
        assert said is not None
        assert said.startswith(f"trtllm-serve 0 (http://127.0.0.1:{port}) ended with status 3; its log ends with")
        assert "the last words" in said


def test_of_two_replicas_the_one_that_died_is_named_and_both_go(tmp_path: Path) -> None:
    first = free_ports(2)
    plans = [
        fake_plan(tmp_path, first),
        fake_plan(tmp_path, first + 1, "--dies-when", tmp_path / "now", name="1"),
    ]
    with running(plans, ready_s=READY_S, observer=ignore) as up:
        pids = [pid for leader in up.pids for pid in supervisor.below(leader)]
        (tmp_path / "now").touch()
        wait_until(up.ending, "the end of a server")
        assert str(up.ending()).startswith("trtllm-serve 1 ")
        assert living(pids[:1]) == pids[:1]
    assert not living(pids)


def test_one_dies_while_the_other_loads(tmp_path: Path) -> None:
    first = free_ports(2)
    loads = fake_plan(tmp_path, first, "--never-healthy")
    error = failing(EngineDied, loads, fake_plan(tmp_path, first + 1, "--dies-after", 1, name="1"))
    assert re.match("trtllm-serve 1 .* ended with status 7", error.what)


def test_what_a_server_leaves_when_it_ends_is_ended_too(tmp_path: Path, port: int) -> None:
    forked = tmp_path / "forked"
    plans = [fake_plan(tmp_path, port, "--forks", forked, "--dies-when", tmp_path / "now")]
    with running(plans, ready_s=READY_S, observer=ignore, grace_s=0.2) as up:
        pids = pids_in(forked)
        (tmp_path / "now").touch()
        wait_until(up.ending, "the end of the server")
        assert not living(pids)


def test_a_supervisor_that_is_killed_takes_its_session_along(tmp_path: Path, port: int) -> None:
    forked = tmp_path / "forked"
    with running([fake_plan(tmp_path, port, "--forks", forked)], ready_s=READY_S, observer=ignore) as up:
        server, child, daemon = pids_in(forked)
        os.kill(up.pids[0], signal.SIGKILL)
        wait_until(up.ending, "the end of the supervisor")
        assert "was ended by SIGKILL" in str(up.ending())
    os.kill(daemon, signal.SIGKILL)  # it left the session, and nobody is left who knew of it
    assert not living([server, child])


def test_a_port_in_use_is_told_with_its_holder(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen(1)
        port = holder.getsockname()[1]
        error = failing(MissingError, fake_plan(tmp_path, port))
    assert error.what.startswith(f"port {port} is in use by process {os.getpid()} (")
    assert error.exit_code == 3
    assert not (tmp_path / "server-0.log").exists()


def test_an_address_of_another_machine(tmp_path: Path, port: int) -> None:
    error = failing(ConfigError, fake_plan(tmp_path, port, host="192.0.2.1"))
    assert f"cannot listen at 192.0.2.1:{port}" in error.what


def test_a_program_that_is_not_there(tmp_path: Path, port: int) -> None:
    error = failing(MissingError, fake_plan(tmp_path, port, command=("trtllm-serve-of-nowhere", "x")))
    assert "there is no trtllm-serve-of-nowhere" in error.what


def test_files_are_written_before_it_starts(tmp_path: Path, port: int) -> None:
    file = tmp_path / "server-0.yaml"
    with running([fake_plan(tmp_path, port, files={file: "a: 1\n"})], ready_s=READY_S, observer=ignore):
        assert file.read_text() == "a: 1\n"


def test_the_environment_is_the_plans_alone(tmp_path: Path, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    plan = fake_plan(tmp_path, port, environment={"PATH": os.environ["PATH"], "NCCL_DEBUG": "WARN"})
    with running([plan], ready_s=READY_S, observer=ignore):
        seen = get(plan.url, "/environ", timeout_s=5).json
    assert isinstance(seen, dict)
    assert seen["NCCL_DEBUG"] == "WARN"
    assert "HTTPS_PROXY" not in seen


def test_a_secret_that_the_server_prints_is_masked(tmp_path: Path, port: int) -> None:
    words = ("--says", "token is hf_abcdefgh", "--api-key", "sk-12345", "--never-healthy", "--dies-after", 0.2)
    environment = {"PATH": os.environ["PATH"], "HF_TOKEN": "hf_abcdefgh"}
    error = failing(EngineDied, fake_plan(tmp_path, port, *words, environment=environment))
    assert "token is ***" in error.what
    assert "hf_abcdefgh" not in str(error)
    first = (tmp_path / "server-0.log").read_text().splitlines()[0]
    assert "--api-key ***" in first
    assert "sk-12345" not in first


@pytest.mark.parametrize("at", ["starting", "is healthy"])
def test_an_interrupt_ends_all(tmp_path: Path, port: int, at: str) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    forked = tmp_path / "forked"
    first = free_ports(2)
    plans = [fake_plan(tmp_path, first, "--forks", forked), fake_plan(tmp_path, first + 1, name="1")]
    notes = Notes(at if at != "starting" else "starting trtllm-serve 1", interrupt)
    with pytest.raises(KeyboardInterrupt), running(plans, ready_s=READY_S, observer=notes, grace_s=0.2):
        pytest.fail("interrupted before")
    if forked.exists():
        assert not living(pids_in(forked))
    assert _nobody_runs(tmp_path)


def test_killing_the_harness_leaves_nothing(tmp_path: Path, port: int) -> None:
    forked = tmp_path / "forked"
    program = textwrap.dedent(
        f"""
        import sys, time
        from pathlib import Path
        from harness.engines.launch.fleet import Fleet, running
        from harness.events import ignore
        from tests.engines.launch.made import fake_plan
        with running([fake_plan(Path({str(tmp_path)!r}), {port}, "--forks", {str(forked)!r})],
                     ready_s={READY_S}, observer=ignore, grace_s=0.2) as up:
            print(up.pids[0], flush=True)
            time.sleep(600)
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)}
    ) as starter:
        assert starter.stdout is not None
        pids = [int(starter.stdout.readline()), *pids_in(forked)]
        assert living(pids) == pids
        starter.kill()
        starter.wait()
        wait_until(lambda: not living(pids), "the end of all that the harness had started")


def test_a_starter_that_is_killed_at_once(tmp_path: Path, port: int) -> None:
    """The lifeline ends before the supervisor has looked at it."""
    server = start_server(fake_plan(tmp_path, port), grace_s=0.2)
    assert server._process.stdin is not None
    server._process.stdin.close()
    wait_until(server.ending, "the end of the supervisor")
    server.await_end()
    assert _nobody_runs(tmp_path)


def test_a_starting_thread_that_ends_does_not_end_its_servers(tmp_path: Path, port: int) -> None:
    """The kernel's signal on a parent's death is sent for the thread that forked."""
    started = []
    thread = threading.Thread(target=lambda: started.append(start_server(fake_plan(tmp_path, port), grace_s=0.2)))
    thread.start()
    thread.join()
    (server,) = started
    wait_until(lambda: get(server.plan.url, "/health", timeout_s=5).status == 200, "a healthy server")
    assert server.ending() is None
    server.ask_to_end()
    server.await_end()


class TestSupervisor:
    def test_a_command_that_is_not_there(self, tmp_path: Path) -> None:
        done = _supervise("no-such-command")
        assert (done.returncode, done.stderr) == (
            supervisor.NOT_STARTED,
            "supervisor: cannot start no-such-command: No such file or directory\n",
        )

    @pytest.mark.parametrize(("code", "status"), [("raise SystemExit(3)", 3), ("import os; os.abort()", -6)])
    def test_it_ends_as_its_command_does(self, code: str, status: int) -> None:
        assert _supervise(sys.executable, "-c", code).returncode == status

    def test_interrupts_reach_the_command_that_its_starter_ignores(self) -> None:
        """trtllm-serve ends itself with SIGINT; under a shell's `&` that signal would be ignored for good."""
        code = "import os, signal; os.kill(os.getpid(), signal.SIGINT); raise SystemExit(9)"
        done = _supervise(sys.executable, "-c", code, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN))
        assert done.returncode != 9

    def test_a_container_is_removed_by_its_id(self, tmp_path: Path) -> None:
        told = tmp_path / "told"
        client = tmp_path / "docker"
        client.write_text(f'#!/bin/sh\necho "$@" >> {told}\n')
        client.chmod(0o755)
        id_file = tmp_path / "server-0.cid"
        id_file.write_text("0123abcd")
        done = _supervise("true", options=("--container", str(client), str(id_file)))
        assert done.returncode == 0
        assert told.read_text() == "rm --force 0123abcd\n"
        assert not id_file.exists()


def _supervise(*command: str, options: tuple[str, ...] = (), **changes: object) -> subprocess.CompletedProcess[str]:
    with subprocess.Popen(["sleep", "60"], stdout=subprocess.PIPE) as lifeline:
        try:
            return subprocess.run(
                [sys.executable, "-I", "-S", supervisor.__file__, *options, "--", *command],
                stdin=lifeline.stdout, capture_output=True, text=True, timeout=60, check=False, **changes,  # type: ignore[call-overload]
            )  # fmt: skip
        finally:
            lifeline.kill()


def _nobody_runs(folder: Path) -> bool:
    """Whether no fake server of this test's folder is left."""
    for each in supervisor.relatives():
        try:
            words = Path(f"/proc/{each.pid}/cmdline").read_bytes().split(b"\0")
            here = Path(f"/proc/{each.pid}/cwd").resolve() == folder.resolve()
        except OSError:
            continue
        if here and str(FAKE_SERVER).encode() in words and not each.zombie:
            return False
    return True


def test_a_port_that_went_to_another_is_not_measured(tmp_path: Path, port: int) -> None:
    """Two harnesses that start at once both find the port free; the slower one's server would be answered for."""
    with ExitStack() as stack:

        def start_another() -> None:
            (tmp_path / "theirs").mkdir()
            others.append(stack.enter_context(running([theirs], ready_s=READY_S, observer=ignore, grace_s=0.2)))

        others: list[Fleet] = []
        theirs = fake_plan(tmp_path / "theirs", port)
        notes = Notes("starting", start_another)
        with (
            pytest.raises(EngineDied) as caught,
            running([fake_plan(tmp_path, port, "--loads", 60)], ready_s=READY_S, observer=notes, grace_s=0.2),
        ):
            pytest.fail("the other's was taken for it")
    assert re.fullmatch(
        rf"process \d+ \(.*fake_server.py.*\) answers in place of trtllm-serve 0 \(http://127.0.0.1:{port}\), "
        "which was started and does not listen there",
        caught.value.what,
    )
    assert "another" in str(caught.value.mend)


def test_behind_a_prefix_nobody_can_say_whose_a_listener_is(tmp_path: Path, port: int) -> None:
    """A container's processes are not below ours."""
    (tmp_path / "theirs").mkdir()
    with running([fake_plan(tmp_path / "theirs", port)], ready_s=READY_S, observer=ignore, grace_s=0.2):
        ours = start_server(fake_plan(tmp_path, port, "--loads", 60, prefixed=True), grace_s=0.2)
        try:
            Fleet([ours]).await_healthy(READY_S, ignore)
        finally:
            Fleet([ours]).stop()
