"""The rows that a run loaded, from its ``loaded_qsl_set`` records: how many, and how many different ones.

A detail log is little else in bytes, and the gate reads some thousand of them: what LoadGen wrote is read without the
detour over JSON; what is laid out otherwise is given over as the list that it holds.
"""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

MAX_ROWS = 1 << 18
"""Rows that a library may have; five times the largest data set."""

_ZEROS = re.compile(rb",0[0-9]")
"""Leading zeros, in a list that begins with a comma: JSON has none, and NumPy would take them."""


class LoadedRows:
    """Counts rows; ``samples`` counts them as often as they come."""

    def __init__(self) -> None:
        self.samples = 0
        self._seen = np.zeros(MAX_ROWS, dtype=np.bool_)

    @property
    def distinct(self) -> int:
        """How many different rows there were."""
        return int(np.count_nonzero(self._seen))

    def take_text(self, body: bytes) -> bool:
        """Takes what stands between the brackets of a list without spaces; False, and nothing taken, where it is none.

        ValueError where rows are outside any library.
        """
        listed = b"," + body + b","
        if body.translate(None, b"0123456789,") or b",," in listed or _ZEROS.search(listed):
            return False
        self._take(np.fromstring(body, dtype=np.int64, sep=","))
        return True

    def take_list(self, rows: object) -> None:
        """Takes a list of row numbers. ValueError where it is none, or rows are outside any library."""
        if not isinstance(rows, list) or list(map(type, rows)).count(int) != len(rows):
            raise ValueError("is not a list of row numbers")
        try:
            self._take(np.array(rows, dtype=np.int64))
        except OverflowError:
            raise _outside() from None

    def _take(self, rows: npt.NDArray[np.int64]) -> None:
        if len(rows) and (rows.min() < 0 or rows.max() >= MAX_ROWS):
            raise _outside()
        self.samples += len(rows)
        self._seen[rows] = True


def _outside() -> ValueError:
    return ValueError(f"has rows outside the first {MAX_ROWS}")
