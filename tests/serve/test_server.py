"""How the server starts and ends: ports, signals, a dead engine, bad options."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from harness.cli import serve as verb
from harness.engines.start import EngineSpec
from harness.errors import ConfigError, MissingError
from harness.serve.server import TOGETHER_S
from harness.serve.settings import ServeSettings
from tests.harness_process import ROOT, wait_until
from tests.serve.client import Server, ask, run_serve

SCRIPT = json.dumps({"vocab_size": 300, "length": 100, "faults": {"serve": {"hang": [7], "die": 9}}})
OPTIONS = ("--engine=scripted", "--script", SCRIPT)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_open_streams_and_leaves_nothing(number: int) -> None:
    with Server(*OPTIONS) as server:
        idle = server.connection()
        ask(idle, "GET", "/health")
        hanging, stalled = server.open_completion([1], row=7), server.open_completion([1], row=1, fault="stall")
        stalled.until(b"token_ids")
        hanging.until(b"200 OK")
        os.kill(server.process.pid, number)
        assert idle.sock.recv(1) == b""
        assert b"the server is ending" in hanging.rest()
        assert not stalled.rest().endswith(b"0\r\n\r\n")
        code, said = server.end()
        assert (code, "Traceback" in said) == (0, False), said
        assert not server.engine.is_running()
        for each in (idle, hanging, stalled):
            each.close()


def test_a_dead_engine_is_told_and_ends_the_server() -> None:
    with Server(*OPTIONS) as server:
        hanging = server.open_completion([1], row=7)
        hanging.until(b"200 OK")
        raw = server.open_completion([1], row=9)
        for each in (raw, hanging):
            assert b"server_error" in each.until(b"0\r\n\r\n")
            each.close()
        assert server.get("/health").status == 503
        answer = server.complete([1])
        assert (answer.status, answer.json["type"]) == (500, "InternalServerError")
        assert server.get("/health_generate").status == 500
        code, said = server.end()
        assert code == 4
        assert "went away" in said and "Traceback" not in said


def test_an_engine_that_is_told_to_end_with_its_server_did_not_go_away() -> None:
    """Whoever ends a session of processes tells each of them, in any order."""
    for first in ("engine", "server"):
        with Server(*OPTIONS) as server:
            assert server.get("/health").status == 200
            pids = [server.engine.pid, server.process.pid]
            for pid in pids if first == "engine" else reversed(pids):
                os.kill(pid, signal.SIGTERM)
            assert server.end() == (0, "")


def test_a_dead_server_that_is_told_to_end_says_why_it_died() -> None:
    with Server(*OPTIONS) as server:
        server.engine.kill()
        wait_until(lambda: server.get("/health").status == 503, "the death is seen")
        time.sleep(1.2 * TOGETHER_S)
        os.kill(server.process.pid, signal.SIGTERM)
        code, said = server.end()
        assert code == 4
        assert "went away" in said


def test_a_killed_engine_cuts_chats() -> None:
    with Server(*OPTIONS) as server:
        connection = server.connection()
        body = {"model": "m", "messages": [{"role": "user", "content": "hi"}], "stream": True}
        connection.request("POST", "/v1/chat/completions", json.dumps(body), {"X-Row": "7"})
        response = connection.getresponse()
        server.engine.kill()
        with pytest.raises(http.client.IncompleteRead):
            response.read()
        connection.close()
        assert server.end()[0] == 4


def test_a_killed_server_takes_its_engine_along() -> None:
    with Server(*OPTIONS) as server:
        server.process.kill()
        server.end()
        assert not server.engine.is_running()


def test_a_port_in_use_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = run_serve(*OPTIONS, "--port", port)
    assert ended.returncode == 3
    assert f"port {port} of 127.0.0.1 is in use" in ended.stderr


def test_a_port_can_be_had_again_at_once() -> None:
    with Server(*OPTIONS) as server:
        port = server.port
        raw = server.open_completion([1], row=7)
        server.process.terminate()
        server.end()
        raw.close()
    with Server(*OPTIONS, port=port) as server:
        assert server.port == port


BAD = [
    (("--host=no..host", "--port=0"), "nothing can listen at host"),
    (("--fault=reset",), "not a planned fault"),
    (("--fault=rest@1",), "unknown fault 'rest'"),
    (("--checkpoint=x",), "takes no --checkpoint"),
    (("--tiny_gpt_oss",), "takes no --tiny_gpt_oss"),
    (("--threads=2",), "takes no --threads"),
    (("--engine=torch",), "needs weights"),
    (("--engine=torch", "--checkpoint=x", "--tiny_gpt_oss"), "needs weights"),
    (("--engine=torch", "--tiny_gpt_oss", "--script", SCRIPT), "takes no --script"),
]


@pytest.mark.parametrize(("options", "words"), BAD)
def test_options_that_cannot_be_meant(options: tuple[str, ...], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        verb.run(["--engine=scripted", *options])


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("--port=70000", "is no port"),
        ("--port=x", "is no port"),
        ("--slots=0", "no number of at least 1"),
        ("--stream_interval=x", "no number of at least 1"),
        ("--seed=-1", "is no seed"),
        ("--ready_s=0", "no seconds"),
        ("--ready_s=nan", "no seconds"),
        ("--script={", "no JSON"),
        ("--script=[]", "not a JSON object"),
        ("--engine=torc", "invalid choice"),
    ],
)
def test_options_that_cannot_be_read(option: str, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as refused:
        verb.run([option])
    assert refused.value.code == 2
    assert words in capsys.readouterr().err


def test_the_page_names_every_option() -> None:
    page = (ROOT / "docs" / "serve.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(--\w+)", page[page.index("## Options") : page.index("## Endpoints")]))
    known = {action.option_strings[0] for action in verb._parser()._actions} - {"-h"}
    assert named == known


def test_an_address_of_another_machine() -> None:
    with pytest.raises(MissingError, match="is not to be had"):
        verb.run([*OPTIONS, "--host=192.0.2.1", "--port=0"])


def test_the_engines_own_refusal_comes_out(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ConfigError, match="unknown setting of the scripted engine 'lenght'"):
        verb.run(["--engine=scripted", "--script", '{"lenght": 3}', "--port=0"])
    with pytest.raises(ConfigError, match="vocabulary has 300 ids"):
        verb.run([*OPTIONS, "--chat=gpt-oss", "--port=0"])
    assert capfd.readouterr().out == ""


@pytest.mark.torch
def test_a_checkpoint_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="there is no such checkpoint"):
        verb.run(["--checkpoint", str(tmp_path / "none"), "--port=0"])


def test_a_package_that_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [each for each in sys.modules if each.startswith("harness.serve")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    with pytest.raises(MissingError, match="the verb serve needs the package uvicorn"):
        verb.run(["--engine=scripted"])


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"chat": "plane"}, "unknown format of chats 'plane'"),
        ({"port": 1 << 16}, "cannot be served: port 65536"),
        ({"stream_interval": 0}, "stream_interval 0"),
        ({"seed": -1}, "seed -1"),
        ({"ready_s": float("nan")}, "ready_s nan"),
    ],
)
def test_settings_that_cannot_be(fields: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ServeSettings(EngineSpec("scripted"), "m", **fields)


def test_a_port_that_another_took_while_the_engine_came_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two may hold a port that neither listens at yet; only one can listen."""
    from harness.serve import server

    with server.bound("127.0.0.1", 0) as first:
        port = first.getsockname()[1]
        start = server.start_engine

        def start_and_be_late(*args: Any, **named: Any) -> Any:
            first.listen()
            return start(*args, **named)

        monkeypatch.setattr(server, "start_engine", start_and_be_late)
        with pytest.raises(MissingError, match=f"port {port} of 127.0.0.1 is in use"):
            verb.run([*OPTIONS, f"--port={port}"])


def test_an_ipv6_address() -> None:
    if not socket.has_ipv6:
        pytest.skip("no IPv6 here")
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("no IPv6 loopback here")
    from harness.serve.server import bound

    with bound("::1", 0) as listener:
        assert listener.family is socket.AF_INET6
