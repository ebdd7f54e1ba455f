from __future__ import annotations

import socket
from pathlib import Path

import psutil
import pytest

from harness.engines.http import pool, settings
from harness.machine.doctor import needs, network
from tests.machine.doctor.made_host import FAIL, NOTHING, OK, UNKNOWN, WARN, asked, made, needing, states

IPV4 = "proc/sys/net/ipv4"
WELL = {
    f"{IPV4}/ip_local_port_range": "32768\t60999\n",
    f"{IPV4}/ip_local_reserved_ports": "\n",
    f"{IPV4}/tcp_tw_reuse": "2\n",
    f"{IPV4}/tcp_max_syn_backlog": "4096\n",
    f"{IPV4}/tcp_keepalive_time": "7200\n",
    "proc/sys/net/core/somaxconn": "4096\n",
    "proc/net/sockstat": "sockets: used 99\nTCP: inuse 5 orphan 0 tw 12 alloc 9 mem 1\n",
}
TRACKED = "proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established"


def test_the_clients_own_numbers() -> None:
    """They stand on the same floor, so that neither may import the other."""
    assert needs.CONNECTING_AT_ONCE == pool.CONNECTING_AT_ONCE
    assert needs.SPARE_DESCRIPTORS == settings.SPARE_DESCRIPTORS


@pytest.mark.parametrize(
    ("ports", "connections", "state", "missing"),
    [
        ("32768 60999", 1024, OK, False),
        ("32768 60999", 20_000, WARN, False),
        ("50000 50999", 1024, FAIL, True),
        ("few", 1024, UNKNOWN, False),
    ],
)
def test_ports_for_connections(tmp_path: Path, ports: str, connections: int, state: str, missing: bool) -> None:
    host = made(tmp_path, {**WELL, f"{IPV4}/ip_local_port_range": ports})
    found = asked(network.port_range, host, needing(connections=connections))
    assert states(found) == (state, missing)


@pytest.mark.parametrize(
    ("ports", "reserved", "state"),
    [((30000, 30001), "", OK), ((32767, 32768), "", WARN), ((40000,), "39000-41000", OK), ((40000,), "39000", WARN)],
)
def test_ports_of_servers(monkeypatch, tmp_path, ports, reserved, state):
    monkeypatch.setattr(psutil, "net_connections", lambda kind: [])
    host = made(tmp_path, {**WELL, f"{IPV4}/ip_local_reserved_ports": reserved})
    assert states(asked(network.fixed_ports, host, needing(ports=ports))) == (state, False)


def test_a_port_that_somebody_has(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen(1)
        port = taken.getsockname()[1]
        found = asked(network.fixed_ports, made(tmp_path, WELL), needing(ports=(port,)))
    assert states(found) == (FAIL, True)
    assert f"in use: {port}" in found.read


def test_ports_that_nobody_may_list(monkeypatch, tmp_path):
    def refused(kind):
        raise psutil.AccessDenied

    monkeypatch.setattr(psutil, "net_connections", refused)
    assert states(asked(network.fixed_ports, made(tmp_path, WELL), needing(ports=(30000,)))) == (UNKNOWN, False)


def test_without_servers_no_port_is_asked_about(tmp_path: Path) -> None:
    assert network.fixed_ports(made(tmp_path, WELL), NOTHING) is None


@pytest.mark.parametrize(("queue", "backlog", "state"), [(4096, 2048, OK), (64, 2048, FAIL), (4096, 64, FAIL)])
def test_connections_that_wait_to_be_taken(tmp_path: Path, queue: int, backlog: int, state: str) -> None:
    files = {"proc/sys/net/core/somaxconn": str(queue), f"{IPV4}/tcp_max_syn_backlog": str(backlog)}
    assert states(asked(network.accept_queue, made(tmp_path, {**WELL, **files}))) == (state, False)


@pytest.mark.parametrize(
    ("reuse", "waiting", "elsewhere", "state"),
    [
        (2, 12, (), OK),
        (1, 12, ("node2",), OK),
        (2, 12, ("node2",), WARN),
        (0, 12, (), WARN),
        (1, 28_000, (), FAIL),
    ],
)
def test_ports_that_wait(tmp_path: Path, reuse: int, waiting: int, elsewhere: tuple[str, ...], state: str) -> None:
    files = {f"{IPV4}/tcp_tw_reuse": str(reuse), "proc/net/sockstat": f"TCP: inuse 5 orphan 0 tw {waiting} alloc 9\n"}
    found = asked(network.time_wait, made(tmp_path, {**WELL, **files}), needing(connections=1024, elsewhere=elsewhere))
    assert states(found) == (state, False)
    assert f"{waiting} waiting" in found.read


def test_a_kernel_that_does_not_count_what_waits(tmp_path: Path) -> None:
    found = asked(network.time_wait, made(tmp_path, {**WELL, "proc/net/sockstat": "TCP: inuse 5\n"}))
    assert (found.state.value, "an unknown number waiting" in found.read) == (OK, True)


@pytest.mark.parametrize(
    ("tracked", "elsewhere", "state"),
    [
        (None, (), OK),
        ("432000", (), OK),
        ("300", (), WARN),
        ("300", ("node2",), FAIL),
        ("432000", ("node2",), UNKNOWN),
    ],
)
def test_connections_that_are_silent(tmp_path, tracked, elsewhere, state):
    files = {**WELL, **({} if tracked is None else {TRACKED: tracked})}
    found = asked(network.keep_alive, made(tmp_path, files), needing(wait_s=900.0, elsewhere=elsewhere))
    assert states(found) == (state, False)
    if state == UNKNOWN:
        assert "node2" in found.source
