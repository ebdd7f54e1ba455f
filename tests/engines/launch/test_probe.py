"""What running servers say of themselves, and how it is held against the configuration."""

from __future__ import annotations

import json
import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.launch import probe
from harness.engines.launch.fleet import running
from harness.engines.launch.http import Reply, get
from harness.engines.launch.probe import Asked, Told, ask, check
from harness.errors import ConfigError, MissingError
from harness.events import ignore
from tests.engines.launch.made import fake_plan, free_ports

URL = "http://127.0.0.1:30000"


def told(**changes: Any) -> Told:
    values: dict[str, Any] = {"url": URL, "models": ("tiny",), "version": "1.2.1", "max_total_tokens": 4096}
    return Told(**values | changes)


def asked(**changes: Any) -> Asked:
    values: dict[str, Any] = {
        "version": "1.2", "model": "tiny", "max_total_tokens": 4096, "options": {},
    }  # fmt: skip
    return Asked(**values | changes)


def ask_fake(tmp_path: Path, server: str, *words: object) -> Told:
    plan = fake_plan(tmp_path, free_ports(), *words)
    with running([plan], ready_s=60, observer=ignore):
        return ask(server, plan.url)


class TestAsk:
    def test_trtllm_serve(self, tmp_path: Path) -> None:
        metrics = json.dumps([{"kvCacheStats": {}}, {"kvCacheStats": {"maxNumBlocks": 100, "tokensPerBlock": 32}}])
        found = ask_fake(tmp_path, "trtllm-serve", "--metrics", metrics)
        assert (found.models, found.version, found.max_total_tokens) == (("tiny",), "1.2.1", None)
        assert found.settings == {"kv_cache_blocks": 100, "kv_cache_tokens": 3200}

    def test_vllm(self, tmp_path: Path) -> None:
        found = ask_fake(tmp_path, "vllm", "--version", "0.32.0", "--model", "a/b", "--max-model-len", 4096)
        assert found == Told(found.url, ("a/b",), "0.32.0", 4096, {})

    def test_sglang(self, tmp_path: Path) -> None:
        info = json.dumps({"version": "0.5.3", "tp_size": 2, "api_key": "sk-1", "internal_states": [{}], "seed": None})
        found = ask_fake(tmp_path, "sglang", "--server-info", info)
        assert found.settings == {"version": "0.5.3", "tp_size": 2, "seed": None}

    def test_nobody_is_there(self) -> None:
        with pytest.raises(MissingError, match=r"no healthy vllm at http://127.0.0.1:\d+: .*refused") as caught:
            ask("vllm", f"http://127.0.0.1:{free_ports()}")
        assert caught.value.exit_code == 3

    def test_not_healthy(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(probe, "get", lambda *_, **__: Reply(503, "dead"))
        with pytest.raises(MissingError, match="/health answers 503"):
            ask("trtllm-serve", URL)

    @given(
        st.text()
        | st.recursive(
            st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)
        ).map(json.dumps)
    )
    def test_no_answer_is_too_odd(self, body: str) -> None:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(probe, "get", lambda *_, **__: Reply(200, body))
            for server in ("trtllm-serve", "vllm", "sglang", "torch"):
                check([ask(server, URL)], Asked(None, None, None, {}))


class TestCheck:
    def test_alike(self) -> None:
        check([told(), told(url="http://b:1")], asked())

    @pytest.mark.parametrize(
        "changes",
        [{"version": None}, {"models": ()}, {"max_total_tokens": None}, {"settings": {"tp_size": 9}}],
    )
    def test_what_is_not_told_is_not_held_against_it(self, changes: dict[str, Any]) -> None:
        check([told(**changes)], asked())

    def test_what_is_not_asked_is_not_held_against_it(self) -> None:
        check([told()], asked(version=None, model=None, max_total_tokens=None))

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"version": "1.20.0"}, "has version 1.20.0, the configuration says 1.2"),
            ({"version": "1.3.0rc7"}, "has version 1.3.0rc7, the configuration says 1.2"),
            ({"models": ("other", "third")}, "has model other, third, the configuration says tiny"),
            ({"max_total_tokens": 2048}, "has max_model_len 2048, the configuration says 4096"),
        ],
    )
    def test_differences(self, changes: dict[str, Any], message: str) -> None:
        with pytest.raises(ConfigError, match=message) as caught:
            check([told(), told(url="http://b:1", **changes)], asked())
        assert caught.value.where == "http://b:1"
        assert caught.value.exit_code == 2

    def test_an_option_that_the_server_tells_otherwise(self) -> None:
        check([told(settings={"tp_size": 2})], asked(options={"tp-size": 2, "unheard": 1, "unsaid": None}))
        with pytest.raises(ConfigError, match="has disable_radix_cache False, the configuration says True"):
            check([told(settings={"disable_radix_cache": False})], asked(options={"disable_radix_cache": True}))

    @pytest.mark.parametrize("version", ["1.2", "1.2.1", "v1.2.0", "1.2.0rc6.post3", "1.2rc1"])
    def test_versions_of_a_version(self, version: str) -> None:
        check([told(version=version)], asked())

    def test_replicas_differ(self) -> None:
        with pytest.raises(ConfigError, match=r"the servers differ: .*version 1.2.1, .*version 1.2.0, "):
            check([told(), told(version="1.2.0")], asked())

    def test_replicas_of_which_one_serves_another_model(self) -> None:
        with pytest.raises(ConfigError, match=r"the servers differ: .*model m, .*model other, "):
            check([told(models=("m",)), told(models=("other",))], asked(model=None))


class TestGet:
    @pytest.mark.parametrize("url", ["http://127.0.0.1:abc", "http://127.0.0.1:99999", "http://[::1", "http://a..b:1"])
    def test_what_is_no_url(self, url: str) -> None:
        assert get(url, "/health", timeout_s=1).status == 0

    @pytest.mark.parametrize("answer", [b"", b"SSH-2.0\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf"])
    def test_what_is_no_http(self, answer: bytes) -> None:
        with socket.create_server(("127.0.0.1", 0)) as listener:

            def serve() -> None:
                connection, _ = listener.accept()
                with connection:
                    connection.recv(4096)
                    connection.sendall(answer)

            thread = threading.Thread(target=serve)
            thread.start()
            reply = get(f"http://127.0.0.1:{listener.getsockname()[1]}", "/health", timeout_s=5)
            thread.join()
        assert (reply.status, reply.json) == (0, None)
        assert reply.body

    @pytest.mark.parametrize(
        "reply", [Reply(200, "{"), Reply(404, "{}"), Reply(0, "refused"), Reply(200, "[" * 100_000)]
    )
    def test_no_json(self, reply: Reply) -> None:
        assert reply.json is None
