"""Whether a server can listen where it is to, and who listens there if not."""

from __future__ import annotations

import errno
import socket
from collections.abc import Collection

import psutil

from harness.errors import ConfigError, MissingError


def check_port(host: str, port: int, *, elsewhere: bool = False) -> None:
    """Raises MissingError where the port is in use, ConfigError where this machine cannot listen there.

    ``elsewhere``: a prefix may take the server to another machine, whose addresses are not known here.
    """
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
            probe.listen(1)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise MissingError(
                f"port {port} is in use{_by_whom(port)}",
                where=f"{host}:{port}",
                mend="end what listens there, or give engine.launch.port another",
            ) from None
        if not elsewhere:
            raise ConfigError(
                f"this machine cannot listen at {host}:{port}: {error.strerror}", where="engine.launch"
            ) from None


def stranger(port: int, ours: Collection[int]) -> str:
    """Who else listens at a port where none of our processes does: ``process 123 (words of its command)``.

    "" where one of ours does, or nobody whom this user may see.
    """
    holders = _holders(port)
    return "" if not holders or set(holders) & set(ours) else _named(holders[0])


def _by_whom(port: int) -> str:
    holders = _holders(port)
    return f" by {_named(holders[0])}" if holders else ""


def _holders(port: int) -> list[int]:
    """The processes that listen at a port, as far as /proc tells this user."""
    try:
        return [
            each.pid
            for each in psutil.net_connections("tcp")
            if each.status == psutil.CONN_LISTEN and each.laddr and each.laddr[1] == port and each.pid
        ]
    except (psutil.Error, OSError):
        return []


def _named(pid: int) -> str:
    try:
        words = " ".join(psutil.Process(pid).cmdline())
    except (psutil.Error, OSError):
        return f"process {pid}"
    return f"process {pid} ({words[:120]})"
