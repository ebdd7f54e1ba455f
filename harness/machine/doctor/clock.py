"""The clocks: cheap to read, kept right, and not stepped while a run is measured."""

from __future__ import annotations

import datetime
import time
from typing import Final

import psutil

from harness.machine.doctor.check import Check, Question, check
from harness.machine.doctor.host import Host
from harness.machine.doctor.needs import Needs

_SOURCE: Final = "sys/devices/system/clocksource/clocksource0/current_clocksource"
_IN_USER_SPACE: Final = ("tsc", "arch_sys_counter", "kvm-clock", "hyperv_clocksource_tsc_page")
"""Clock sources that a program reads without a system call."""
_DAEMONS: Final = frozenset({"chronyd", "ntpd", "systemd-timesyncd", "ptp4l", "phc2sys", "ntpd-rs", "openntpd"})
_NAME_LENGTH: Final = 15
"""The kernel cuts a process's name to so many letters."""
_SEEN_FOR_S: Final = 0.1
_STEP_NS: Final = 1_000_000


@check(
    "clock",
    "clocksource",
    expected="tsc, or arch_sys_counter on ARM",
    why="LoadGen reads it twice for every sample; another one is a system call, or a device's register, each time",
    authority="vdso(7); the kernel gives tsc up where it is unstable: dmesg",
    mend="echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource; if it is not there: "
    "dmesg | grep -i tsc",
)
def clocksource(ask: Question, host: Host, needs: Needs) -> Check:
    """What the kernel's clocks are read from."""
    current = host.text(_SOURCE)
    return ask.ok(current, f"/{_SOURCE}") if current in _IN_USER_SPACE else ask.fail(current, f"/{_SOURCE}")


@check(
    "clock",
    "time-sync",
    expected="a clock that the kernel says is kept synchronised",
    why="the wall clock goes into the logs that the gate compares (LG-CLOCK), and into those of several nodes",
    authority="adjtimex(2): STA_UNSYNC; gate rule LG-CLOCK",
    mend="sudo timedatectl set-ntp true, or install chrony; on a virtual machine see that its host keeps it",
)
def time_sync(ask: Question, host: Host, needs: Needs) -> Check:
    """Whether something keeps the clock right, as far as the kernel was told."""
    timex = host.timex()
    running = ", ".join(sorted(_daemons())) or "no daemon that this user may see"
    if timex.leap:
        return ask.fail(f"a leap second is due at the end of the day ({running})", "adjtimex: STA_INS, STA_DEL",
                        mend="measure tomorrow: the clock will be stepped or smeared at midnight UTC")  # fmt: skip
    if not timex.synchronised:
        return ask.warn(f"not synchronised ({running})", "adjtimex: STA_UNSYNC")
    return ask.ok(f"synchronised, off by at most {timex.error_us / 1000:.1f} ms ({running})", "adjtimex: maxerror")


@check(
    "clock",
    "clock-steps",
    expected="a wall clock that runs as the monotonic one does, and tells a day after the round's rules",
    why="a step in a run makes it longer or shorter in LoadGen's log than it was, and the gate asks about it",
    authority="gate rule LG-CLOCK; clock_gettime(2): CLOCK_REALTIME against CLOCK_MONOTONIC",
    mend="see what steps it: journalctl -u chronyd -u systemd-timesyncd; let it slew: makestep 1 3 in chrony.conf",
)
def clock_steps(ask: Question, host: Host, needs: Needs) -> Check:
    """Both clocks side by side for a moment, and the day against that of the rules."""
    before = time.time_ns() - time.monotonic_ns()
    time.sleep(_SEEN_FOR_S)
    apart = time.time_ns() - time.monotonic_ns() - before
    source = f"time_ns and monotonic_ns, {_SEEN_FOR_S * 1000:g} ms apart"
    if abs(apart) > _STEP_NS:
        return ask.fail(f"stepped by {apart / 1e6:.1f} ms", source)
    today = datetime.datetime.now(datetime.timezone.utc).date()
    if needs.round is not None:
        newest = max(one.as_of for one in needs.round.sources.values())
        if today < newest:
            return ask.fail(f"the clock says {today}, the rules are of {newest}", "the rule pack's dates",
                            mend="set the clock: sudo timedatectl set-ntp true")  # fmt: skip
    return ask.ok(f"{abs(apart) / 1000:.0f} us apart, {today}", source)


def _daemons() -> set[str]:
    """Programs that keep a clock, among the processes that this user may see."""
    short = {name[:_NAME_LENGTH]: name for name in _DAEMONS}
    return {short[name] for one in psutil.process_iter(["name"]) if (name := one.info["name"] or "") in short}


CHECKS = (clocksource, time_sync, clock_steps)
