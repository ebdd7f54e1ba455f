"""The rows of BFCL that are asked, kept as a file: made once of the package's, read and checked wherever legs run.

The file is JSON lines, a row each, in the order in which they are asked; of the same package its bytes are the same
everywhere, and the rule pack has their hash.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final, TypeAlias

from harness.benchmarks.qwen3_6_27b.bfcl.environment import MEND, Environment
from harness.benchmarks.qwen3_6_27b.bfcl.sampling import sample
from harness.benchmarks.qwen3_6_27b.bfcl.subsets import CATEGORY_OF, HALLUCINATION, SUBSETS
from harness.errors import DatasetError, MissingError
from harness.rules.benchmark import TrajectoryRules

TABLE: Final = "bfcl"
"""What the harness calls the table."""
NAME: Final = "bfcl_v4_single_turn.jsonl"
"""The table's file, in the benchmark's data folder."""
STAND_IN: Final = "standin_"
"""What the ids of made-up rows begin with: a table of such rows alone is a stand-in."""

REMAKE: Final = "remove the file: it is made again"

Json: TypeAlias = Any
"""What json.loads gives."""


@dataclass(frozen=True, slots=True)
class Row:
    """One question: what is sent, the functions as the checker wants them, and the calls that are right.

    ``truth`` is None where no call is right; else one object a call, of one name, with the values that are accepted
    for each argument.
    """

    id: str
    subset: str
    messages: list[dict[str, str]]
    tools: list[Json]
    functions: list[Json]
    truth: list[Json] | None

    def __post_init__(self) -> None:
        if self.subset not in CATEGORY_OF:
            raise ValueError(f"{self.subset} is no subset that is asked")
        if not self.messages or not self.tools or len(self.tools) != len(self.functions):
            raise ValueError(f"{len(self.messages)} messages, {len(self.tools)} tools, {len(self.functions)} functions")
        if self.wants_calls != bool(self.truth):
            raise ValueError("the calls that are right are not told" if self.wants_calls else "no call can be right")

    @property
    def category(self) -> str:
        """The category of the row's subset."""
        return CATEGORY_OF[self.subset]

    @property
    def wants_calls(self) -> bool:
        """Whether calls are right; else to call nothing is."""
        return self.category != HALLUCINATION


@dataclass(frozen=True, slots=True)
class Table:
    """Rows in the order in which they are asked. ``sha256`` is that of their file, ``whole`` says whether they are as
    many as the round asks.
    """

    rows: tuple[Row, ...]
    sha256: str
    stand_in: bool
    whole: bool

    def __len__(self) -> int:
        return len(self.rows)

    def head(self, rows: int) -> Table:
        """The first rows alone, for short runs; itself where that is all. ValueError where there are fewer."""
        if not 0 <= rows <= len(self.rows):
            raise ValueError(f"the first {rows} rows of {len(self.rows)}")
        return self if rows == len(self.rows) else replace(self, rows=self.rows[:rows], whole=False)


def make(environment: Environment, rules: TrajectoryRules) -> bytes:
    """The content of the table as the installed package makes it. MissingError for an environment that does not."""
    told = environment.rows(SUBSETS)
    named = {subset: [(subset, row) for row in told[subset]] for subset in SUBSETS}
    # Only now are they looked at: some of the others have no functions.
    return encoded(
        _row(subset, row, environment.python) for subset, row in sample(named, rules.accuracy_sampling.value)
    )


def write(folder: Path, environment: Environment, rules: TrajectoryRules) -> Table:
    """Makes the table and writes it into the benchmark's data folder; what was made is read back.

    DatasetError where it is not the round's, MissingError where it cannot be made or written.
    """
    content = make(environment, rules)
    path = folder / NAME
    unfinished = path.with_name(path.name + ".part")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        unfinished.write_bytes(content)
        unfinished.replace(path)
    except OSError as error:
        raise MissingError(f"cannot write the questions of BFCL: {error}", where=path) from error
    return read(folder, rules)


def prepare(folder: Path, rules: TrajectoryRules) -> Table:
    """The table in the benchmark's data folder, made where it is not there yet. DatasetError and MissingError."""
    if (folder / NAME).exists():
        return read(folder, rules)
    return write(folder, Environment.named(rules.accuracy_data.value), rules)


def read(folder: Path, rules: TrajectoryRules) -> Table:
    """The table in the benchmark's data folder: the round's, or a stand-in. DatasetError where it is neither."""
    path = folder / NAME
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        raise DatasetError("the questions of BFCL are not there", where=path, mend=MEND) from None
    except OSError as error:
        raise DatasetError(f"the questions of BFCL cannot be read: {error}", where=path) from None
    digest = hashlib.sha256(content).hexdigest()
    rows = tuple(_decoded(line, f"{path}, line {number}") for number, line in enumerate(content.splitlines(), 1))
    _check_ids(rows, path)
    stand_in = bool(rows) and all(row.id.startswith(STAND_IN) for row in rows)
    if not stand_in and digest != rules.accuracy_data.value.sha256:
        raise DatasetError(
            f"the questions of BFCL are not the round's: sha256 {digest}",
            where=path,
            expected=f"sha256 {rules.accuracy_data.value.sha256}, as {rules.accuracy_data.value.version} makes it",
            mend=REMAKE,
        )
    return Table(rows, digest, stand_in, whole=len(rows) == rules.datasets["accuracy"].value)


def encoded(rows: Iterable[Row]) -> bytes:
    """The file of rows."""
    return b"".join(json.dumps(asdict(row), ensure_ascii=False, separators=(",", ":")).encode() + b"\n" for row in rows)


def chat_messages(question: Json) -> list[dict[str, str]]:
    """The messages of a question, which is a list of turns; a content that is null is empty, as servers want it."""
    return [{"role": said["role"], "content": said.get("content") or ""} for turn in question for said in turn]


def _row(subset: str, told: Mapping[str, Json], where: object) -> Row:
    try:
        messages = chat_messages(told["question"])
        return Row(told["id"], subset, messages, told["tools"], told["functions"], told["truth"] or None)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DatasetError(f"bfcl-eval has a row of {subset} that is none: {error}", where=where, mend=MEND) from None


def _decoded(line: bytes, where: str) -> Row:
    try:
        return Row(**json.loads(line))
    except (TypeError, ValueError, RecursionError) as error:
        raise DatasetError(
            f"not a question of BFCL: {error}",
            where=where,
            expected="a row that this project wrote",
            mend=REMAKE,
        ) from None


def _check_ids(rows: tuple[Row, ...], path: Path) -> None:
    seen: set[str] = set()
    for number, row in enumerate(rows, 1):
        if row.id in seen:
            raise DatasetError(f"the question {row.id} is there twice", where=f"{path}, line {number}", mend=REMAKE)
        seen.add(row.id)
