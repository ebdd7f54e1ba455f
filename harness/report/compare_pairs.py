"""Which rows of two books are the same row."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Final

from harness.report.book.content import RowView


def paired(
    before: Sequence[RowView], after: Sequence[RowView]
) -> tuple[list[tuple[RowView, RowView]], list[RowView], list[RowView]]:
    """The pairs in the order of ``before``, and what is left on each side.

    Rows are one that have one benchmark and scenario and one system's name (of one division and submitter, before
    others), or else one boundary; where a single row of a benchmark and scenario is left on each side, these two.
    """
    partner: dict[int, int] = {}
    for key in _KEYS:
        _match(before, after, key, partner)
    _match_the_last(before, after, partner)
    taken = set(partner.values())
    pairs = [(row, after[partner[n]]) for n, row in enumerate(before) if n in partner]
    left = [row for n, row in enumerate(before) if n not in partner]
    return pairs, left, [row for n, row in enumerate(after) if n not in taken]


_KEYS: Final[tuple[Callable[[RowView], Hashable], ...]] = (
    lambda row: (row.benchmark, row.scenario, row.system, row.division, row.submitter),
    lambda row: (row.benchmark, row.scenario, row.system, row.division),
    lambda row: (row.benchmark, row.scenario, row.system),
    lambda row: (row.benchmark, row.scenario, tuple((name, text.casefold()) for name, text in row.boundary)),
)
"""By what two rows are one, the surest first."""


def _match(
    before: Sequence[RowView], after: Sequence[RowView], key: Callable[[RowView], Hashable], partner: dict[int, int]
) -> None:
    free: dict[Hashable, list[int]] = {}
    taken = set(partner.values())
    for number, row in enumerate(after):
        if number not in taken:
            free.setdefault(key(row), []).append(number)
    for number, row in enumerate(before):
        if number not in partner and free.get(key(row)):
            partner[number] = free[key(row)].pop(0)


def _match_the_last(before: Sequence[RowView], after: Sequence[RowView], partner: dict[int, int]) -> None:
    taken = set(partner.values())
    left = _by_scenario(before, set(partner))
    right = _by_scenario(after, taken)
    for key, mine in left.items():
        if len(mine) == 1 and len(right.get(key, [])) == 1:
            partner[mine[0]] = right[key][0]


def _by_scenario(rows: Sequence[RowView], gone: set[int]) -> dict[tuple[str, str], list[int]]:
    found: dict[tuple[str, str], list[int]] = {}
    for number, row in enumerate(rows):
        if number not in gone:
            found.setdefault((row.benchmark, row.scenario), []).append(number)
    return found
