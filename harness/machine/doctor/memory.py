"""The host's memory: does it correct errors, were there any, is there enough, is any of it swapped out."""

from __future__ import annotations

from typing import Final

import psutil

from harness.machine.doctor.check import Check, Question, check
from harness.machine.doctor.host import GUESTS_MEND, Host
from harness.machine.doctor.needs import Needs
from harness.machine.error_correction import ACCELERATORS, HOST, is_guest
from harness.machine.facts import sized

ECC_RULE: Final = "policies/inference_rules.adoc ECC (closed and network, datacenter), gate rule SYS-ECC"
_EDAC: Final = "sys/devices/system/edac/mc"
_SCARCE, _LOW = 0.05, 0.2
_SWAPPED: Final = 64 << 20


@check(
    "memory",
    "ecc-host",
    expected="error correction on in the host's memory",
    why="closed refuses a datacenter result whose memory did not correct its errors while it was measured",
    authority=ECC_RULE,
    mend="turn ECC on in the firmware's setup and reboot; to have it read: sudo modprobe -a amd64_edac i10nm_edac, or "
    "run as root where dmidecode is installed",
)
def ecc_host(ask: Question, host: Host, needs: Needs) -> Check:
    """Error correction of the host's memory, as a leg's record has it."""
    if host.ecc.host is None and is_guest(host.root):
        return ask.unknown(host.ecc.sources[HOST], mend=GUESTS_MEND)
    return judged_ecc(ask, host.ecc.host, host.ecc.sources[HOST], needs)


@check(
    "memory",
    "ecc-accelerators",
    expected="error correction on in every accelerator's memory, and left on by the next reset",
    why="closed refuses a datacenter result whose memory did not correct its errors while it was measured",
    authority=ECC_RULE,
    mend="sudo nvidia-smi -e 1 && sudo nvidia-smi --gpu-reset",
)
def ecc_accelerators(ask: Question, host: Host, needs: Needs) -> Check | None:
    """Error correction of all accelerators, as a leg's record has it; and whether a reset would take it away."""
    boards = host.boards
    if not boards:
        return None
    source = host.ecc.sources[ACCELERATORS]
    pending_off = [str(board.index) for board in boards if board.ecc_pending is False]
    if host.ecc.accelerators is True and pending_off:
        return ask.warn(f"on, and off after the next reset of {', '.join(pending_off)}", f"{source} (pending)")
    return judged_ecc(ask, host.ecc.accelerators, source, needs)


def judged_ecc(ask: Question, on: bool | None, source: str, needs: Needs) -> Check:
    """Off forbids a run only where the rule holds for what is named; elsewhere it is worth knowing."""
    if on is None:
        return ask.unknown(source)
    if on:
        return ask.ok("on", source)
    if needs.corrected:
        return ask.fail("off", source)
    return ask.warn(
        "off", source, expected=f"{ask.expected} for closed, datacenter; {needs.named} is not entered there"
    )


@check(
    "memory",
    "memory-errors",
    expected="no error that could not be corrected since the machine was started",
    why="such an error ends a process, or goes into a result; many corrected ones slow a machine down",
    authority="Linux Documentation/driver-api/edac.rst (ue_count, ce_count)",
    mend="look which module it is: edac-util -v, or journalctl -k -g EDAC; replace it",
)
def memory_errors(ask: Question, host: Host, needs: Needs) -> Check:
    """Errors that the host's memory controllers counted."""
    controllers = sorted((host.root / _EDAC).glob("mc*/ue_count"))
    if not controllers:
        mend = GUESTS_MEND if is_guest(host.root) else "sudo modprobe -a amd64_edac i10nm_edac (what the processor has)"
        return ask.unknown(f"no memory controller below /{_EDAC}: nobody counts", mend=mend)
    lost = sum(int(path.read_text()) for path in controllers)
    mended = sum(int(path.with_name("ce_count").read_text()) for path in controllers)
    told = f"{lost} uncorrected, {mended} corrected", f"/{_EDAC}/mc*/ue_count and ce_count"
    return ask.fail(*told) if lost else ask.warn(*told) if mended else ask.ok(*told)


@check(
    "memory",
    "memory-free",
    expected=f"more than {_LOW:.0%} of memory available",
    why="weights are read through the host's memory, and all prompts and answers of a run are kept there",
    authority="harness: psutil's available is what can be had without swapping",
    mend="end what holds it: ps -eo pid,rss,comm --sort=-rss | head",
)
def memory_free(ask: Question, host: Host, needs: Needs) -> Check:
    """Memory that can be had."""
    memory = psutil.virtual_memory()
    share = memory.available / memory.total
    told = f"{sized(memory.available)} of {sized(memory.total)} available ({share:.0%})", "psutil: virtual_memory"
    return ask.fail(*told) if share < _SCARCE else ask.warn(*told) if share < _LOW else ask.ok(*told)


@check(
    "memory",
    "swap",
    expected="nothing swapped out",
    why="a page that must come back from a disk stops a thread for milliseconds in the middle of a measurement",
    authority="harness: latencies are measured on this host",
    mend="sudo swapoff -a && sudo swapon -a, once memory is free; sudo swapoff -a for the time of the runs",
)
def swap(ask: Question, host: Host, needs: Needs) -> Check:
    """What of memory lies on a disk."""
    found = psutil.swap_memory()
    source = "psutil: swap_memory"
    if not found.total:
        return ask.ok("no swap", source)
    told = f"{sized(found.used)} of {sized(found.total)} used"
    return ask.warn(told, source) if found.used > _SWAPPED else ask.ok(told, source)


CHECKS = (ecc_host, ecc_accelerators, memory_errors, memory_free, swap)
