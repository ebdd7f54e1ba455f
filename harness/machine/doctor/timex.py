"""What the kernel knows of its clock: adjtimex(2), asked without changing anything."""

from __future__ import annotations

import ctypes
import os
from dataclasses import dataclass
from typing import Final

from harness.machine.facts import Unreadable

_UNSYNCHRONISED: Final = 0x0040  # STA_UNSYNC
_INSERT, _DELETE = 0x0010, 0x0020  # STA_INS, STA_DEL
_NANO: Final = 0x2000  # STA_NANO: offset is in nanoseconds


@dataclass(frozen=True, slots=True)
class Timex:
    """``error_us`` is the most that the clock may be off by, ``offset_ns`` what is still to be slewed away.

    ``leap`` is whether a second is to be inserted or deleted at the end of the day.
    """

    synchronised: bool
    error_us: int
    offset_ns: int
    leap: bool


class _Struct(ctypes.Structure):
    """struct timex of sys/timex.h, with room behind it for what later kernels add."""

    _fields_ = (
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("spare", ctypes.c_char * 256),
    )


def read_timex() -> Timex:
    """Asks the kernel; no right is needed. Raises Unreadable where the C library has no such call."""
    try:
        adjtimex = ctypes.CDLL(None, use_errno=True).adjtimex
    except (OSError, AttributeError):
        raise Unreadable("the C library has no adjtimex") from None
    found = _Struct()
    if adjtimex(ctypes.byref(found)) < 0:
        raise Unreadable(f"adjtimex: {os.strerror(ctypes.get_errno())}")
    status = int(found.status)
    return Timex(
        synchronised=not status & _UNSYNCHRONISED,
        error_us=int(found.maxerror),
        offset_ns=int(found.offset) * (1 if status & _NANO else 1000),
        leap=bool(status & (_INSERT | _DELETE)),
    )
