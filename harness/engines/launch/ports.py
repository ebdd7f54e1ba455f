"""Whether a server can listen where it is to, and who listens there if not."""

from __future__ import annotations

import errno
import socket

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


def _by_whom(port: int) -> str:
    """`` by process 123 (words of its command)``, as far as /proc tells this user."""
    try:
        holders = [
            each.pid
            for each in psutil.net_connections("tcp")
            if each.status == psutil.CONN_LISTEN and each.laddr and each.laddr[1] == port and each.pid
        ]
        if not holders:
            return ""
        words = " ".join(psutil.Process(holders[0]).cmdline())
    except (psutil.Error, OSError):
        return ""
    return f" by process {holders[0]} ({words[:120]})"
