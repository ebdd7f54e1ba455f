"""``search_<nn>.json``: what a search for a rate asked, what came of it, and what it ended with. Beside its probes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from harness.ledger.store import LedgerError, write_atomically

_NAME: Final = "search_{}.json"
_FILE: Final = re.compile(r"search_(\d+)\.json")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class LimitEcho(_Strict):
    """How a limited latency lay: milliseconds (None: nothing was answered), and how many of how many were over."""

    name: str
    limit_ms: float
    p50_ms: float | None
    p99_ms: float | None
    queries: int
    over: int


class SearchRun(_Strict):
    """One run of a search. ``rate`` was asked for, ``came`` is what LoadGen's random arrivals came to, ``sustained``
    what was answered, all in samples a second. ``former``: a search made it that did not come to its end.
    """

    run: str
    kind: Literal["probe", "full"]
    purpose: str
    rate: float
    came: float | None
    sustained: float | None
    queries: int
    seconds: float | None
    limits: list[LimitEcho]
    outcome: str
    reason: str
    former: bool = False


class SearchEcho(_Strict):
    """A search, ended or under way. ``found`` is the rate of a VALID full run; None with ``why`` where there is none.

    ``rules`` are the shares and counts that it went by. ``test_run``: what it calls a full run was a short one.
    """

    search: str
    system: str
    benchmark: str
    scenario: str
    test_run: bool
    started_at: str
    ended_at: str | None = None
    guess: float
    guess_from: str
    rules: dict[str, float]
    runs: list[SearchRun] = Field(default_factory=list)
    found: float | None = None
    why: str = ""
    notes: list[str] = Field(default_factory=list)

    @property
    def probes(self) -> list[SearchRun]:
        """Its short runs."""
        return [run for run in self.runs if run.kind == "probe"]


def searches(folder: Path) -> list[str]:
    """The numbers of the searches that ended, of the row whose probes are in a folder; oldest first."""
    return sorted(found[1] for path in folder.glob(_NAME.format("*")) if (found := _FILE.fullmatch(path.name)))


def read_search(folder: Path, number: str) -> SearchEcho:
    """A search that ended. LedgerError where it cannot be read."""
    path = folder / _NAME.format(number)
    try:
        return SearchEcho.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise LedgerError(
            f"not a readable record of a search: {str(error).splitlines()[0]}", where=path, mend="move it away"
        ) from None


def write_search(folder: Path, echo: SearchEcho) -> Path:
    """Writes what a search ended with."""
    path = folder / _NAME.format(echo.search)
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(path, echo.model_dump_json(indent=1) + "\n")
    return path
