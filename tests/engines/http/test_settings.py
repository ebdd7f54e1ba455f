"""What settings are refused, and with which words."""

from __future__ import annotations

import dataclasses
import json
import resource
from typing import Any

import pytest

from harness.engines.http import settings as http_settings
from harness.engines.http.core import HttpCore
from harness.engines.http.settings import Address, HttpSettings, allow_descriptors, ephemeral_ports
from harness.engines.start import EngineSpec, build_core
from harness.errors import ConfigError, MissingError, UnknownName
from tests.engines.http.play import info

GOOD: dict[str, Any] = {
    "server": "vllm",
    "model": "m",
    "endpoints": [{"name": "0", "url": "http://127.0.0.1:30000"}],
    "connections": 16,
    "info": json.loads(json.dumps(dataclasses.asdict(info()))),
}


def test_good_ones() -> None:
    found = HttpSettings.parse(GOOD | {"api_key_env": None, "request_timeout_s": None})
    assert found.endpoints == (Address("0", "127.0.0.1", 30000, "", "http://127.0.0.1:30000"),)
    assert found.info == info() and found.keep_alive_s == 4.0 and found.api_key_env == ""


def test_a_core_is_built_of_a_spec() -> None:
    core = build_core(EngineSpec("http", GOOD | {"endpoints": [{"name": "x", "url": "http://127.0.0.1:1"}]}))
    assert isinstance(core, HttpCore)
    assert core.info().kind == "http" and core.info().replicas == ("x",)
    core.close()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"server": "tgi"}, "kind of server 'tgi'"),
        ({"server": 5}, "server is 5"),
        ({"model": ""}, "lacks a model's name"),
        ({"model": None}, "model is None"),
        ({"endpoints": []}, "or endpoints"),
        ({"endpoints": "http://x"}, "endpoints are"),
        ({"endpoints": ["http://x"]}, "not an endpoint"),
        ({"endpoints": [{"name": "0", "url": "http://a"}, {"name": "0", "url": "http://b"}]}, "are named 0, 0"),
        ({"connections": 0}, "connections are 0"),
        ({"connections": True}, "connections is True"),
        ({"connections": 1 << 20}, "connections are 1048576"),
        ({"keep_alive_s": 5.0}, "keep_alive_s is 5.0"),
        ({"keep_alive_s": 0}, "keep_alive_s is 0"),
        ({"connect_timeout_s": 0}, "connect_timeout_s is 0"),
        ({"request_timeout_s": -1.0}, "request_timeout_s is -1.0"),
        ({"request_timeout_s": "1"}, "request_timeout_s is '1'"),
        ({"api_key_env": 5}, "api_key_env is 5"),
        ({"info": {"kind": "http"}}, "info is"),
        ({"info": None}, "info is None"),
        ({"conections": 4}, "setting of the http engine 'conections'"),
    ],
)
def test_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        HttpSettings.parse(GOOD | changes)
    assert words in str(caught.value)


def test_a_typo_is_told_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="connections") as caught:
        HttpSettings.parse(GOOD | {"conections": 4})
    assert caught.value.mend == "did you mean 'connections'?"


def test_what_lacks_is_named() -> None:
    with pytest.raises(ConfigError, match="lacks model, info"):
        HttpSettings.parse({key: value for key, value in GOOD.items() if key not in ("model", "info")})


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("https://h:1", "asks for TLS"),
        ("ftp://h", "none of a server"),
        ("h:1", "none of a server"),
        ("http://", "none of a server"),
        ("http://u:p@h", "none of a server"),
        ("http://h?a=b", "none of a server"),
        ("http://h:x", "cannot be read"),
        ("http://h:70000", "cannot be read"),
        ("http://h/ü", "none of a server"),
    ],
)
def test_urls(url: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Address.parse({"name": "0", "url": url}, "endpoints[0]")
    assert words in str(caught.value) and caught.value.where == "endpoints[0]"


def test_addresses() -> None:
    assert Address.parse({"name": "0", "url": "http://h/"}, "").authority == "h:80"
    found = Address.parse({"name": "0", "url": "http://[::1]:8/a/"}, "")
    assert (found.authority, found.prefix, found.host) == ("[::1]:8", "/a", "::1")


def test_a_host_without_an_address() -> None:
    endpoints = [{"name": "0", "url": "http://no-such-host.invalid:1"}]
    with pytest.raises(MissingError, match=r"no-such-host\.invalid"):
        HttpCore(HttpSettings.parse(GOOD | {"endpoints": endpoints}))


def test_a_key_that_is_not_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SERVERS_KEY", raising=False)
    with pytest.raises(MissingError, match="SERVERS_KEY"):
        HttpCore(HttpSettings.parse(GOOD | {"api_key_env": "SERVERS_KEY"}))


def test_a_key_that_no_header_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    for key in ("a\nb", "ü"):
        monkeypatch.setenv("SERVERS_KEY", key)
        with pytest.raises(ConfigError, match="SERVERS_KEY") as caught:
            HttpCore(HttpSettings.parse(GOOD | {"api_key_env": "SERVERS_KEY"}))
        assert key not in str(caught.value)


def test_descriptors(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: (256, 4096))
    monkeypatch.setattr(resource, "setrlimit", lambda which, limits: asked.append(limits))
    allow_descriptors(100)
    assert asked == []
    allow_descriptors(1_000)
    assert asked == [(1_000 + http_settings.SPARE_DESCRIPTORS, 4096)]
    with pytest.raises(ConfigError, match="open files"):
        allow_descriptors(5_000)


def test_ports(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    assert ephemeral_ports() > 0
    path = tmp_path / "range"
    path.write_text("32768\t60999\n")
    monkeypatch.setattr(http_settings, "PORT_RANGE", path)
    assert ephemeral_ports() == 28_232
    path.write_text("odd")
    assert ephemeral_ports() == 28_232
