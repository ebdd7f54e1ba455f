from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.machine.doctor import CHECKS, Check, State, examine, exit_code, questions
from harness.machine.doctor.check import SUBJECTS, Question, check, question
from harness.machine.doctor.host import Host, listed
from harness.machine.doctor.needs import Needs
from harness.machine.facts import Unreadable
from tests.machine.doctor.made_host import NOTHING, made, put

ASKED = Question("memory", "x", "e", "w", "a", "m")


def test_a_check_says_all_and_mends_what_is_not_well() -> None:
    assert ASKED.ok("1", "here").mend is None
    assert ASKED.warn("1", "here").mend == "m"
    assert ASKED.fail("1", "here", mend="other", expected="2").expected == "2"
    assert ASKED.unknown("no right").source == "no right"
    with pytest.raises(ValueError, match="says all"):
        ASKED.ok("", "here")
    with pytest.raises(ValueError, match="told how to mend"):
        Check("memory", "n", State.WARN, "r", "f", "e", "w", "a")
    with pytest.raises(ValueError, match="no such subject"):
        Check("weather", "n", State.OK, "r", "f", "e", "w", "a")
    with pytest.raises(ValueError, match="missing"):
        Check("memory", "n", State.WARN, "r", "f", "e", "w", "a", "m", missing=True)


@pytest.mark.parametrize(
    ("checks", "code"),
    [
        ([], 0),
        ([ASKED.ok("1", "f"), ASKED.warn("1", "f"), ASKED.unknown("f")], 0),
        ([ASKED.warn("1", "f"), ASKED.fail("1", "f")], 1),
        ([ASKED.fail("1", "f"), ASKED.missing("1", "f")], 3),
    ],
)
def test_exit_codes(checks: list[Check], code: int) -> None:
    assert exit_code(checks) == code


def test_names_are_unique() -> None:
    with pytest.raises(ValueError, match="two checks with the name swap"):
        question("memory", "swap", expected="e", why="w", authority="a", mend="m")
    names = [one.name for one in questions()]
    assert len(names) == len(set(names)) > 35
    assert all(one.authority and one.mend for one in questions())
    there = [*dict.fromkeys(one.subject for one in questions())]  # data sets are asked about by another room
    assert there in ([*SUBJECTS], [*SUBJECTS[:-1]])


def test_checks_come_by_subject(tmp_path: Path) -> None:
    """So that a report can group them."""
    subjects = [one.subject for one in examine(made(tmp_path), NOTHING)]
    assert subjects == sorted(subjects, key=SUBJECTS.index)


def test_what_cannot_be_read_is_unknown_and_a_fault_of_ours_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("harness.machine.doctor.check._QUESTIONS", {})  # what is declared here is no one's question

    def asks(error: Exception) -> Check | None:
        @check("memory", f"raises-{type(error).__name__}", expected="e", why="w", authority="a", mend="m")
        def ask(asked: Question, host: Host, needs: Needs) -> Check:
            raise error

        return ask(made(tmp_path), NOTHING)

    for error in (Unreadable("no right"), OSError(13, "denied"), ValueError("no number"), IndexError("short")):
        found = asks(error)
        assert found is not None and found.state is State.UNKNOWN
        assert found.source
    with pytest.raises(TypeError):
        asks(TypeError("ours"))


BELOW_THE_ROOT = {
    "ecc-host", "memory-errors", "cpu-governor", "cpu-boost", "numa-balancing", "huge-pages", "clocksource",
    "port-range", "accept-queue", "time-wait", "keep-alive", "shared-memory", "processor-quota", "memory-limit",
}  # fmt: skip
"""Checks of what files say."""


def test_a_machine_that_tells_nothing_is_never_ok_for_it(tmp_path: Path) -> None:
    """Nothing below the root: what is read there is unknown, and nothing raises."""
    found = {one.name: one.state for one in examine(made(tmp_path), NOTHING)}
    assert {name for name in BELOW_THE_ROOT if found[name] is not State.UNKNOWN} == set()


FILES = [
    "proc/cpuinfo", "proc/self/cgroup", "proc/net/sockstat", "proc/sys/net/ipv4/ip_local_port_range",
    "proc/sys/net/ipv4/ip_local_reserved_ports", "proc/sys/net/ipv4/tcp_tw_reuse", "proc/sys/net/core/somaxconn",
    "proc/sys/net/ipv4/tcp_max_syn_backlog", "proc/sys/net/ipv4/tcp_keepalive_time", "proc/sys/kernel/numa_balancing",
    "proc/sys/net/netfilter/nf_conntrack_tcp_timeout_established", "sys/fs/cgroup/cpu.max", "sys/fs/cgroup/cpu.stat",
    "sys/fs/cgroup/memory.max", "sys/fs/cgroup/pids.max", "sys/devices/system/edac/mc/mc0/ue_count",
    "sys/devices/system/edac/mc/mc0/ce_count", "sys/devices/system/edac/mc/mc0/dimm0/dimm_edac_mode",
    "sys/devices/system/clocksource/clocksource0/current_clocksource", "sys/kernel/mm/transparent_hugepage/enabled",
    "sys/kernel/mm/transparent_hugepage/defrag", "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor",
]  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.text(alphabet=st.characters(codec="utf-8"), max_size=40), min_size=len(FILES), max_size=len(FILES)))
def test_no_text_of_a_kernel_breaks_a_check(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    folder = tmp_path_factory.mktemp("host")
    put(folder / "root", dict(zip(FILES, ["0::/", *texts[1:]], strict=True)))
    host = made(folder)
    asked = [ask(host, NOTHING) for ask in CHECKS if ask.__name__.replace("_", "-") in BELOW_THE_ROOT]
    assert len(asked) == len(BELOW_THE_ROOT)


def test_the_kernels_lists() -> None:
    assert listed("0-3,8\n") == {0, 1, 2, 3, 8}
    assert listed("") == set()
    with pytest.raises(ValueError, match="invalid literal"):
        listed("a-b")
