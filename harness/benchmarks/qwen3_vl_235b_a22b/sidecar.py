"""What a table is, said in a file beside it: the mlcommons client's own files do not say of which revision they are."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from harness.benchmarks.base import file_sha256
from harness.benchmarks.qwen3_vl_235b_a22b.files import NAME, TableSource
from harness.errors import DatasetError

How: TypeAlias = Literal["fetched", "stated"]
FETCH = f"python -m harness fetch_dataset --benchmark={NAME}"


@dataclass(frozen=True, slots=True)
class Sidecar:
    """``how`` tells whether the harness fetched the revision, or a person stated it. ``sha256`` is the parquet's.

    ``pillow`` is the version that encoded the pictures; "" where nobody knows.
    """

    repo: str
    revision: str
    splits: str
    rows: int
    sha256: str
    pillow: str
    how: How

    def write(self, parquet: Path) -> None:
        """Writes it beside the table."""
        place = beside(parquet)
        part = place.with_name(place.name + ".part")
        part.write_text(json.dumps(asdict(self), indent=2) + "\n", encoding="utf-8")
        part.replace(place)


def beside(parquet: Path) -> Path:
    """Where a table's sidecar lies."""
    return parquet.with_name(parquet.name + ".json")


def read(parquet: Path) -> Sidecar | None:
    """What lies beside a table; None where nothing does. Raises DatasetError for one that says nothing."""
    place = beside(parquet)
    if not place.exists():
        return None
    try:
        content: Any = json.loads(place.read_text(encoding="utf-8"))
        found = Sidecar(**content)
    except (OSError, ValueError, TypeError) as error:
        raise DatasetError(f"not a description of a table: {error}", where=place, mend=_mend(parquet)) from error
    for name, kind in (("rows", int), ("repo", str), ("revision", str), ("splits", str), ("sha256", str)):
        if not isinstance(getattr(found, name), kind):
            raise DatasetError(f"{name} is {getattr(found, name)!r}", where=place, mend=_mend(parquet))
    return found


def check(parquet: Path, wanted: TableSource) -> Sidecar:
    """What is known of a table that is no stand-in. DatasetError where nothing is, or it is of another revision."""
    found, source = read(parquet), wanted.source
    expected = f"{source.repo} at {source.revision}"
    if found is None:
        raise DatasetError(
            "the revision of the table is unknown: nothing beside it says what it was made of",
            where=parquet,
            expected=f"{beside(parquet).name} beside it, which says {expected}",
            mend=_mend(parquet, source.revision),
        )
    if (found.repo, found.revision) != (source.repo, source.revision):
        raise DatasetError(
            f"the table is of another revision: {found.repo} at {found.revision}",
            where=parquet,
            expected=expected,
            mend=FETCH,
        )
    digest = file_sha256(parquet)
    if digest != found.sha256:
        raise DatasetError(
            f"the table is not the one that was described: its sha256 is {digest}",
            where=parquet,
            expected=found.sha256,
            mend=f"delete it and run: {FETCH}",
        )
    return found


def _mend(parquet: Path, revision: str = "SHA") -> str:
    return (
        f"fetch it with: {FETCH}; or, where you know that this one was made of the right revision, say so with: "
        f"{FETCH} --adopt={parquet} --revision={revision}"
    )
