"""What a client of HTTP servers is told: which servers, how many connections, how long to wait."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from harness.engines.base import EngineInfo
from harness.engines.http.dialects import DIALECTS
from harness.engines.wire import info_of_json
from harness.errors import ConfigError, UnknownName

LONGEST_KEEP_ALIVE_S: Final = 4.9
"""Servers close a connection that is idle for 5 s (uvicorn's default); one that is used just then is lost."""
SPARE_DESCRIPTORS: Final = 64
PORT_RANGE: Final = Path("/proc/sys/net/ipv4/ip_local_port_range")


@dataclass(frozen=True, slots=True)
class Address:
    """One endpoint: its name, and the parts of its URL."""

    name: str
    host: str
    port: int
    prefix: str
    url: str

    @classmethod
    def parse(cls, found: object, where: str) -> Address:
        """From ``{"name": ..., "url": "http://host:port"}``. Raises ConfigError."""
        if not isinstance(found, Mapping) or not all(isinstance(found.get(key), str) for key in ("name", "url")):
            raise ConfigError(f"not an endpoint: {found!r}", where=where, expected='{"name": "0", "url": "http://…"}')
        url = str(found["url"]).rstrip("/")
        try:
            parts = urlsplit(url)
            port = parts.port or 80
        except ValueError as error:
            raise ConfigError(f"the URL {url!r} cannot be read: {error}", where=where) from None
        if parts.scheme == "https":
            raise ConfigError(
                f"the URL {url!r} asks for TLS, which this client does not speak",
                where=where,
                expected="http://host:port",
                mend="give the address behind the proxy, or a tunnel's local end",
            )
        odd = parts.query or parts.fragment or parts.username or parts.password
        if parts.scheme != "http" or not parts.hostname or odd or not url.isascii() or " " in url:
            raise ConfigError(f"the URL {url!r} is none of a server", where=where, expected="http://host:port")
        return cls(str(found["name"]), parts.hostname, port, parts.path, url)

    @property
    def authority(self) -> str:
        """The value of the Host header."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@dataclass(frozen=True, slots=True)
class HttpSettings:
    """How an :class:`~harness.engines.http.core.HttpCore` is made.

    ``connections`` are the most at once to each endpoint; further requests wait. A connection that was idle for
    ``keep_alive_s`` is not used again. ``request_timeout_s`` runs from when a request is sent, None for ever.
    ``api_key_env`` names the environment variable with a key to send, "" for none. ``stream`` tells apart several
    clients of one run, so that their seeds differ. ``info`` is what the servers said of themselves.
    """

    server: str
    model: str
    endpoints: tuple[Address, ...]
    connections: int
    info: EngineInfo
    keep_alive_s: float = 4.0
    connect_timeout_s: float = 10.0
    request_timeout_s: float | None = None
    api_key_env: str = ""
    stream: int = 0

    def __post_init__(self) -> None:
        if self.server not in DIALECTS:
            raise UnknownName("kind of server", self.server, DIALECTS)
        if not self.model or not self.endpoints:
            raise ConfigError(
                "the http engine lacks a model's name or endpoints", expected="a name, and at least one endpoint"
            )
        names = [endpoint.name for endpoint in self.endpoints]
        if len(set(names)) < len(names):
            raise ConfigError(f"the http engine's endpoints are named {', '.join(names)}", expected="different names")
        if not 0 < self.keep_alive_s <= LONGEST_KEEP_ALIVE_S:
            raise ConfigError(
                f"the http engine's keep_alive_s is {self.keep_alive_s}",
                expected=f"more than 0 and at most {LONGEST_KEEP_ALIVE_S}: servers close idle connections at 5 s",
            )
        for name in ("connect_timeout_s", "request_timeout_s"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise ConfigError(f"the http engine's {name} is {value}", expected="more than 0")
        self._check_connections()

    def _check_connections(self) -> None:
        ports = ephemeral_ports()
        if not 1 <= self.connections <= ports:
            raise ConfigError(
                f"the http engine's connections are {self.connections}",
                where="engine.clients.connections",
                expected=f"1 to {ports}, the ports that this machine gives to connections ({PORT_RANGE})",
            )

    @classmethod
    def parse(cls, settings: Mapping[str, Any]) -> HttpSettings:
        """From an engine spec's settings. Raises ConfigError."""
        known = {each.name for each in fields(cls)}
        for name in settings:
            if name not in known:
                raise UnknownName("setting of the http engine", name, known)
        missing = [name for name in ("server", "model", "endpoints", "connections", "info") if name not in settings]
        if missing:
            raise ConfigError(f"the http engine lacks {', '.join(missing)}", expected="all of these settings")
        values = dict(settings)
        values["endpoints"] = _endpoints(settings["endpoints"])
        values["info"] = _info(settings["info"])
        values["api_key_env"] = settings.get("api_key_env") or ""
        for name, (kinds, expected) in _KINDS.items():
            value = values.get(name, _DEFAULTS.get(name))
            if not isinstance(value, kinds) or isinstance(value, bool):
                raise ConfigError(f"the http engine's {name} is {value!r}", expected=expected)
        return cls(**values)


_NUMBER: Final = ((int, float), "a number of seconds")
_KINDS: Final[Mapping[str, tuple[tuple[type, ...], str]]] = {
    "server": ((str,), "a kind of server"),
    "model": ((str,), "the name under which the servers serve the model"),
    "connections": ((int,), "an integer of at least 1"),
    "keep_alive_s": _NUMBER,
    "connect_timeout_s": _NUMBER,
    "request_timeout_s": ((int, float, type(None)), "a number of seconds, or null"),
    "api_key_env": ((str,), "the name of an environment variable, or null"),
    "stream": ((int,), "an integer"),
}
_DEFAULTS: Final[Mapping[str, object]] = {
    "keep_alive_s": 4.0,
    "connect_timeout_s": 10.0,
    "request_timeout_s": None,
    "stream": 0,
}


def _endpoints(found: object) -> tuple[Address, ...]:
    if not isinstance(found, list | tuple):
        raise ConfigError(f"the http engine's endpoints are {found!r}", expected="a list")
    return tuple(Address.parse(each, f"endpoints[{place}]") for place, each in enumerate(found))


def _info(found: object) -> EngineInfo:
    if isinstance(found, EngineInfo):
        return found
    try:
        if isinstance(found, Mapping):
            return info_of_json(dict(found))
    except (KeyError, TypeError):
        pass
    raise ConfigError(f"the http engine's info is {found!r}", expected="the fields of an EngineInfo")


def ephemeral_ports() -> int:
    """How many ports this machine gives to connections."""
    try:
        first, last = PORT_RANGE.read_text(encoding="ascii").split()
        return int(last) - int(first) + 1
    except (OSError, ValueError):
        return 28_232  # what Linux has where nobody changed it


def allow_descriptors(wanted: int) -> None:
    """Raises this process's limit of open files to as many and some. Raises ConfigError where it may not be."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted += SPARE_DESCRIPTORS
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    if hard != resource.RLIM_INFINITY and hard < wanted:
        raise ConfigError(
            f"the http engine's connections need {wanted} open files and this process may have {hard}",
            where="engine.clients.connections",
            mend="fewer connections, more client processes, or a higher limit (ulimit -Hn)",
        )
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
