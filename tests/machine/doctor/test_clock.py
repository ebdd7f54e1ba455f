from __future__ import annotations

import ctypes
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from harness.machine.doctor import clock
from harness.machine.doctor.needs import Needs
from harness.machine.doctor.timex import Timex, read_timex
from harness.machine.facts import Unreadable
from harness.rules import load
from tests.machine.doctor.made_host import FAIL, OK, SYNCHRONISED, UNKNOWN, WARN, asked, made, states

SOURCE = "sys/devices/system/clocksource/clocksource0/current_clocksource"


@pytest.mark.parametrize(
    ("source", "state"),
    [("tsc", OK), ("arch_sys_counter", OK), ("kvm-clock", OK), ("hpet", FAIL), ("acpi_pm", FAIL), ("xen", FAIL)],
)
def test_what_clocks_are_read_from(tmp_path: Path, source: str, state: str) -> None:
    found = asked(clock.clocksource, made(tmp_path, {SOURCE: f"{source}\n"}))
    assert (*states(found), found.read) == (state, False, source)


@pytest.mark.parametrize(
    ("timex", "state", "said"),
    [
        (SYNCHRONISED, OK, "off by at most 1.5 ms"),
        (replace(SYNCHRONISED, synchronised=False), WARN, "not synchronised"),
        (replace(SYNCHRONISED, leap=True), FAIL, "a leap second"),
    ],
)
def test_whether_something_keeps_it(tmp_path: Path, timex: Timex, state: str, said: str) -> None:
    found = asked(clock.time_sync, made(tmp_path, timex=lambda: timex))
    assert states(found) == (state, False)
    assert said in found.read


def test_who_keeps_it_is_named(tmp_path, monkeypatch):
    class One:
        def __init__(self, name):
            self.info = {"name": name}

    monkeypatch.setattr(psutil, "process_iter", lambda names: [One("systemd-timesyn"), One("bash"), One(None)])
    assert "(systemd-timesyncd)" in asked(clock.time_sync, made(tmp_path)).read


def test_a_kernel_that_is_not_to_be_asked(tmp_path: Path) -> None:
    def refused() -> Timex:
        raise Unreadable("adjtimex: Operation not permitted")

    found = asked(clock.time_sync, made(tmp_path, timex=refused))
    assert states(found) == (UNKNOWN, False)
    assert found.source == "adjtimex: Operation not permitted"


def test_the_kernels_own_word() -> None:
    """On any Linux; what it says depends on the machine."""
    found = read_timex()
    assert found.error_us >= 0
    assert isinstance(found.synchronised, bool)


def test_a_library_without_the_call(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda *args, **options: object())
    with pytest.raises(Unreadable, match="no adjtimex"):
        read_timex()


@pytest.mark.parametrize(("step_ns", "state"), [(0, OK), (500_000, OK), (2_000_000, FAIL), (-3_600_000_000_000, FAIL)])
def test_steps_of_the_wall_clock(tmp_path, monkeypatch, step_ns, state):
    real, passed = time.time_ns, []

    def stepped() -> int:
        passed.append(1)
        return time.monotonic_ns() + 1_800_000_000 * 10**9 + (step_ns if len(passed) > 1 else 0)

    monkeypatch.setattr(clock.time, "time_ns", stepped)
    monkeypatch.setattr(clock.time, "sleep", lambda seconds: None)
    assert states(asked(clock.clock_steps, made(tmp_path))) == (state, False)
    assert real is not stepped


def test_a_clock_that_was_never_set(tmp_path, monkeypatch):
    class Past(clock.datetime.datetime):
        @classmethod
        def now(cls, tz=None):
            return cls(1970, 1, 1, tzinfo=tz)

    monkeypatch.setattr(clock.datetime, "datetime", Past)
    found = asked(clock.clock_steps, made(tmp_path), Needs(round=load("v6.1")))
    assert states(found) == (FAIL, False)
    assert "1970-01-01" in found.read and found.mend == "set the clock: sudo timedatectl set-ntp true"
