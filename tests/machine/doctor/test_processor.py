from __future__ import annotations

from pathlib import Path

import pytest

from harness.machine.doctor import processor
from tests.machine.doctor.made_host import OK, UNKNOWN, WARN, asked, made, states

CPU = "sys/devices/system/cpu"
GOVERNOR = CPU + "/cpu{}/cpufreq/scaling_governor"
PAGES = "sys/kernel/mm/transparent_hugepage"


@pytest.mark.parametrize(
    ("governors", "state", "read"),
    [
        (["performance", "performance"], OK, "2x performance"),
        (["powersave", "performance"], WARN, "1x performance, 1x powersave"),
        (["schedutil"], WARN, "1x schedutil"),
    ],
)
def test_governors(tmp_path: Path, governors: list[str], state: str, read: str) -> None:
    files = {GOVERNOR.format(i): f"{name}\n" for i, name in enumerate(governors)}
    found = asked(processor.cpu_governor, made(tmp_path, files))
    assert (*states(found), found.read) == (state, False, read)


@pytest.mark.parametrize(
    ("files", "state"),
    [
        ({"intel_pstate/no_turbo": "0"}, OK),
        ({"intel_pstate/no_turbo": "1"}, WARN),
        ({"cpufreq/boost": "1"}, OK),
        ({"cpufreq/boost": "0"}, WARN),
        ({}, UNKNOWN),
    ],
)
def test_boost(tmp_path: Path, files: dict[str, str], state: str) -> None:
    found = asked(processor.cpu_boost, made(tmp_path, {f"{CPU}/{name}": text for name, text in files.items()}))
    assert states(found) == (state, False)


@pytest.mark.parametrize("ask", [processor.cpu_governor, processor.cpu_boost])
def test_a_guests_clock_is_its_hosts(tmp_path: Path, ask) -> None:
    found = asked(ask, made(tmp_path, {"proc/cpuinfo": "flags : hypervisor\n"}))
    assert states(found) == (UNKNOWN, False)
    assert "virtual machine" in found.source and "hw_notes" in (found.mend or "")


@pytest.mark.parametrize(
    ("nodes", "on", "state"), [(1, "1", OK), (2, "1", WARN), (2, "0", OK), (2, None, UNKNOWN), (2, "2", WARN)]
)
def test_pages_that_move(tmp_path: Path, nodes: int, on: str | None, state: str) -> None:
    files = {f"sys/devices/system/node/node{i}/cpulist": f"{i}\n" for i in range(nodes)}
    files |= {} if on is None else {"proc/sys/kernel/numa_balancing": on}
    assert states(asked(processor.numa_balancing, made(tmp_path, files))) == (state, False)


@pytest.mark.parametrize(
    ("enabled", "defrag", "state"),
    [
        ("always [madvise] never", "always defer defer+madvise [madvise] never", OK),
        ("[always] madvise never", "always defer [defer+madvise] madvise never", OK),
        ("[always] madvise never", "[always] defer defer+madvise madvise never", WARN),
        ("always madvise [never]", "always defer defer+madvise [madvise] never", WARN),
        ("always madvise never", "never", UNKNOWN),
    ],
)
def test_huge_pages(tmp_path: Path, enabled: str, defrag: str, state: str) -> None:
    host = made(tmp_path, {f"{PAGES}/enabled": enabled, f"{PAGES}/defrag": defrag})
    assert states(asked(processor.huge_pages, host)) == (state, False)
