"""Which rows of a data set a script answers rightly, by the share that was stated of each subset."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from harness.errors import ConfigError, UnknownName

_WHERE = "the shares of right answers"


def right_rows(subsets: Sequence[str], shares: Mapping[str, float], seed: int) -> set[int]:
    """Rows drawn by the seed: of the n rows of a subset ``round(share * n)``. ``subsets`` says of each row whose it is.

    Raises UnknownName for a share of no subset, ConfigError for one that is no share.
    """
    rows_of: dict[str, list[int]] = {}
    for row, subset in enumerate(subsets):
        rows_of.setdefault(subset, []).append(row)
    right: set[int] = set()
    for subset, share in shares.items():
        if subset not in rows_of:
            raise UnknownName("subset", subset, rows_of, where=_WHERE)
        if not 0 <= share <= 1:
            raise ConfigError(f"{share} is not a share", where=f"the share of {subset}", expected="0 to 1")
        rows = rows_of[subset]
        rng = random.Random(f"{seed}/right/{subset}")  # noqa: S311 - a script, not a secret
        right.update(rng.sample(rows, round(share * len(rows))))
    return right
