"""Connections to the servers: ports for all of them, a queue that takes them, and nothing that cuts them off."""

from __future__ import annotations

from typing import Final

import psutil

from harness.machine.doctor.check import Check, Question, check
from harness.machine.doctor.host import Host, listed
from harness.machine.doctor.needs import CONNECTING_AT_ONCE, Needs
from harness.machine.facts import Unreadable

_IPV4: Final = "proc/sys/net/ipv4"
_RANGE: Final = f"{_IPV4}/ip_local_port_range"
_RESERVED: Final = f"{_IPV4}/ip_local_reserved_ports"
_TRACKED: Final = "proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established"
_SPARE: Final = 2
"""Ports are in use after their connection has ended; half of them may wait."""
_WAITING_S: Final = 60


@check(
    "network",
    "port-range",
    expected="twice as many local ports as there are connections to one server",
    why="each connection takes one, and keeps it for a minute after its end",
    authority="Linux Documentation/networking/ip-sysctl.rst (ip_local_port_range)",
    mend='sudo sysctl -w net.ipv4.ip_local_port_range="32768 60999"',
)
def port_range(ask: Question, host: Host, needs: Needs) -> Check:
    """How many local ports there are against the connections of the configuration."""
    first, last = _local_ports(host)
    ports, expected = last - first + 1, f"at least {_SPARE * needs.connections}: {needs.connections} connections"
    told = f"{first} to {last}, {ports} ports", f"/{_RANGE}"
    if ports < needs.connections:
        return ask.missing(*told, expected=expected)
    return (ask.ok if ports >= _SPARE * needs.connections else ask.warn)(*told, expected=expected)


@check(
    "network",
    "fixed-ports",
    expected="servers' ports that nobody else has, and that are not given to connections",
    why="a connection that happens to have the port keeps the server from listening there",
    authority="Linux Documentation/networking/ip-sysctl.rst (ip_local_reserved_ports)",
    mend="give engine.launch.port one below the local ports, or reserve them: "
    "sudo sysctl -w net.ipv4.ip_local_reserved_ports=<first>-<last>",
)
def fixed_ports(ask: Question, host: Host, needs: Needs) -> Check | None:
    """The ports that servers will listen on, against those in use and those that are given away."""
    if not needs.ports:
        return None
    named = f"{needs.ports[0]} to {needs.ports[-1]}"
    taken = _taken(needs.ports)
    if taken:
        return ask.missing(
            f"{named}; in use: {', '.join(taken)}", "psutil: net_connections",
            mend="end what listens there, or give engine.launch.port another",
        )  # fmt: skip
    first, last = _local_ports(host)
    reserved = _reserved(host)
    given = [str(port) for port in needs.ports if first <= port <= last and port not in reserved]
    source = f"psutil: net_connections, /{_RANGE}, /{_RESERVED}"
    if given:
        return ask.warn(f"{named}; among the local ports: {', '.join(given[:8])}", source)
    return ask.ok(f"{named}: free, and not among the local ports {first} to {last}", source)


@check(
    "network",
    "accept-queue",
    expected=f"room for {CONNECTING_AT_ONCE} connections that a server has not taken yet",
    why="those beyond are dropped unseen and tried again a second later: first tokens come late",
    authority="Linux Documentation/networking/ip-sysctl.rst (somaxconn); the harness's client opens as many at once",
    mend="sudo sysctl -w net.core.somaxconn=4096 net.ipv4.tcp_max_syn_backlog=4096",
)
def accept_queue(ask: Question, host: Host, needs: Needs) -> Check:
    """The longest queue that a listening socket may have."""
    queue, backlog = host.number("proc/sys/net/core/somaxconn"), host.number(f"{_IPV4}/tcp_max_syn_backlog")
    told = f"somaxconn {queue}, tcp_max_syn_backlog {backlog}", "/proc/sys/net/core/somaxconn"
    return ask.ok(*told) if min(queue, backlog) >= CONNECTING_AT_ONCE else ask.fail(*told)


@check(
    "network",
    "time-wait",
    expected="ports of ended connections used again (1; 2 does so on the loopback), few waiting",
    why="a client that opens many connections in turn runs out of ports while ended ones wait",
    authority="Linux Documentation/networking/ip-sysctl.rst (tcp_tw_reuse)",
    mend="sudo sysctl -w net.ipv4.tcp_tw_reuse=1",
)
def time_wait(ask: Question, host: Host, needs: Needs) -> Check:
    """Whether waiting ports may be used again, and how many wait."""
    reuse = host.number(f"{_IPV4}/tcp_tw_reuse")
    first, last = _local_ports(host)
    waiting = _waiting(host)
    read = f"tcp_tw_reuse {reuse}, {'an unknown number' if waiting is None else waiting} waiting"
    source = f"/{_IPV4}/tcp_tw_reuse, /proc/net/sockstat"
    if waiting is not None and last - first + 1 - waiting < needs.connections:
        mend = f"wait {_WAITING_S} s until they are free; see who opens them: ss -tan state time-wait | head"
        return ask.fail(f"{read} of {last - first + 1} ports", source, mend=mend)
    return ask.ok(read, source) if reuse == 1 or (reuse == 2 and not needs.elsewhere) else ask.warn(read, source)


@check(
    "network",
    "keep-alive",
    expected="nothing that forgets a connection before a long answer has come",
    why="an answer that is not streamed is silent until its end; who tracks connections drops those that are silent",
    authority="Linux Documentation/networking/nf_conntrack-sysctl.rst; neither client nor servers send keep-alives",
    mend="sudo sysctl -w net.netfilter.nf_conntrack_tcp_timeout_established=432000, on routers between as well",
)
def keep_alive(ask: Question, host: Host, needs: Needs) -> Check:
    """How long the kernel keeps silent connections, against how long one may wait for an answer."""
    idle = host.number(f"{_IPV4}/tcp_keepalive_time")
    tracked = host.told(_TRACKED)
    read = f"tcp_keepalive_time {idle} s, " + ("no tracking" if tracked is None else f"tracked for {tracked} s")
    source = f"/{_IPV4}/tcp_keepalive_time, /{_TRACKED}"
    expected = f"more than {needs.wait_s:g} s, the longest wait" if needs.wait_s else None
    if tracked is not None and int(tracked) <= needs.wait_s:
        return (ask.fail if needs.elsewhere else ask.warn)(read, source, expected=expected)
    if needs.elsewhere:
        return ask.unknown(f"{read} here; what lies between here and {', '.join(needs.elsewhere)} cannot be read here")
    return ask.ok(read, source, expected=expected)


def _local_ports(host: Host) -> tuple[int, int]:
    first, last = host.text(_RANGE).split()
    return int(first), int(last)


def _reserved(host: Host) -> set[int]:
    return listed(host.told(_RESERVED) or "")


def _taken(ports: tuple[int, ...]) -> list[str]:
    """Those of the ports that some socket of this machine has, with who holds it. Raises Unreadable."""
    try:
        sockets = [c for c in psutil.net_connections("tcp") if c.status != psutil.CONN_TIME_WAIT]
    except (psutil.Error, OSError) as error:
        raise Unreadable(f"psutil cannot list connections: {error}") from None
    found = {port: c.pid for c in sockets for port in c.laddr[1:] if port in ports}
    return [f"{port} by process {pid}" if pid else str(port) for port, pid in sorted(found.items())]


def _waiting(host: Host) -> int | None:
    """Sockets in TIME_WAIT: ``TCP: inuse 5 orphan 0 tw 12 alloc 9 mem 1``."""
    for line in (host.told("proc/net/sockstat") or "").splitlines():
        words = line.split()
        if line.startswith("TCP:") and "tw" in words:
            return int(words[words.index("tw") + 1])
    return None


CHECKS = (port_range, fixed_ports, accept_queue, time_wait, keep_alive)
