"""What a benchmark offers to those who run, score and file it. A benchmark never knows which engine answers.

A benchmark is bound to the rules of one round (:func:`harness.benchmarks.get`), so that none of its methods has to be
told a number of MLCommons'.
"""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal, Protocol, TypeAlias

import numpy as np

from harness.benchmarks.scripts import ScriptedAnswers, ScriptedReplies
from harness.engines.base import Int64Array, PromptTable, Sampling
from harness.engines.bodies import BodyStore

Which: TypeAlias = Literal["performance", "accuracy", "TEST07"]
"""What performance legs, accuracy legs and the TEST07 audit ask; which table that is, :meth:`Benchmark.table` says."""

Logged: TypeAlias = Literal["content", "reply"]
"""What of a reply to a chat is logged and scored: its text, or all of its JSON."""

Answer: TypeAlias = tuple[int, bytes]
"""One entry of an accuracy log: the data set's row, and the answer as it was logged (token ids as int32, or UTF-8: see
:attr:`Benchmark.logged`)."""

CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class DataFile:
    """One file that a data set was read from. ``sha256`` is over its content, in hexadecimal."""

    path: Path
    sha256: str


@dataclass(frozen=True, slots=True, eq=False)
class Dataset:
    """One table of a data set, checked: row i is ``prompts[i]``, of ``subsets[i]``, answered by ``ground_truth[i]``.

    ``name`` is what :class:`harness.engines.base.Workload` calls it. ``stand_in`` tells data made by the harness from
    the benchmark's own: a run on it may never be filed. ``whole`` is False where rows were left away, or a stand-in was
    made with fewer than the round's. Where chats are asked, ``prompts`` are empty and ``chats`` is the
    :class:`~harness.engines.bodies.BodyStore` that row i is ``[i]`` of, once :meth:`Benchmark.prepare` made it. With
    ``trajectories`` row i is the chats of session i there, which lie one after the other and are asked so; ``salt`` is
    the number that a run's own prompts were salted by. A store may hold more rows than are asked.
    """

    name: str
    table: str
    prompts: PromptTable
    subsets: tuple[str, ...]
    ground_truth: tuple[str | None, ...]
    files: tuple[DataFile, ...]
    stand_in: bool
    whole: bool = True
    chats: Path | None = None
    trajectories: bool = False
    salt: int | None = None

    def __post_init__(self) -> None:
        if not len(self.prompts) == len(self.subsets) == len(self.ground_truth):
            raise ValueError(
                f"{len(self.prompts)} prompts, {len(self.subsets)} subsets, {len(self.ground_truth)} ground truths"
            )

    @property
    def rows(self) -> int:
        """How many samples there are."""
        return len(self.prompts)

    def head(self, rows: int) -> Dataset:
        """The first rows alone, for short runs; the files and their hash stay those of the whole.

        Itself where that is all of them; ValueError where there are fewer.
        """
        if not 0 <= rows <= self.rows:
            raise ValueError(f"the first {rows} rows of {self.rows}")
        if rows == self.rows:
            return self
        prompts = PromptTable(self.prompts.flat, self.prompts.starts[:rows], self.prompts.lengths[:rows])
        return replace(
            self, prompts=prompts, subsets=self.subsets[:rows], ground_truth=self.ground_truth[:rows], whole=False
        )

    @property
    def prompt_tokens(self) -> Int64Array:
        """Tokens of each prompt, int64 (rows,); of a chat as its store counts them, 0 where nobody counted.

        Of a trajectory those of its longest chat.
        """
        if self.chats is None:
            return self.prompts.lengths
        store = BodyStore.open(self.chats)
        if not self.trajectories:
            return store.tokens[: self.rows]
        bounds = np.searchsorted(store.sessions, np.arange(self.rows + 1))
        return np.maximum.reduceat(store.tokens[: bounds[-1]], bounds[:-1]) if self.rows else store.tokens[:0]

    @property
    def max_prompt_tokens(self) -> int:
        """Tokens of the longest prompt; 0 where there is no row."""
        return int(self.prompt_tokens.max(initial=0))

    @property
    def sha256(self) -> str:
        """One hash for the files the table was read from: over the lines ``<sha256>  <name>`` in order of name."""
        lines = sorted(f"{file.sha256}  {file.path.name}\n" for file in self.files)
        return hashlib.sha256("".join(lines).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class Made:
    """What became of a request for a stand-in data set.

    ``rows`` by table, ``sha256`` by file below ``folder``; ``made`` is False where an equal one was there already.
    """

    folder: Path
    seed: int
    rows: Mapping[str, int]
    sha256: Mapping[str, str]
    made: bool


def forget_run(dataset: Dataset, folder: Path) -> None:
    """Removes the chats that :meth:`Benchmark.prepare_run` made below a run's folder, where it made some.

    They can be made again: the data set's ``salt`` is all that they depend on beside its files.
    """
    if dataset.chats is not None and dataset.chats.absolute().is_relative_to(folder.absolute()):
        dataset.chats.unlink(missing_ok=True)


def file_sha256(path: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal; read once a process while the file stays as it is."""
    stat = path.stat()
    return _file_sha256(path, stat.st_size, stat.st_mtime_ns)


@functools.cache
def _file_sha256(path: Path, size: int, mtime_ns: int) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


@dataclass(frozen=True, slots=True)
class SubsetScore:
    """How the rows of one subset came out, as counts; each row is in exactly one of four states.

    ``failed`` rows have no answer of the model's, ``unscored`` ones an answer that nobody graded: neither is wrong.
    ``output_tokens`` is the sum over the rows that did not fail, None where the answers are logged as text.
    ``repeats`` is how often each question was asked.
    """

    name: str
    repeats: int
    correct: int
    wrong: int
    failed: int
    unscored: int
    output_tokens: int | None

    def __post_init__(self) -> None:
        if min(self.correct, self.wrong, self.failed, self.unscored, self.output_tokens or 0) < 0 or self.repeats < 1:
            raise ValueError(f"not a score: {self}")

    @property
    def samples(self) -> int:
        """Rows of the subset."""
        return self.correct + self.wrong + self.failed + self.unscored

    @property
    def mean_output_tokens(self) -> float | None:
        """Tokens an answer, over the rows that have one; None where no row has, or nobody counted."""
        answered = self.samples - self.failed
        return self.output_tokens / answered if answered and self.output_tokens is not None else None


@dataclass(frozen=True, slots=True)
class Score:
    """What an accuracy log came to. ``key`` is the metric's name in accuracy.txt, ``value`` the metric.

    There is a value only where every row was asked, answered and graded: no number stands for a part of the whole.
    ``stand_in`` and ``whole`` are those of the data set it was scored against, ``evaluator`` says who scored.
    ``notes`` are sentences for whoever reads it: why rows are unscored. ``also`` are further figures, by name, that
    nothing is judged by.
    """

    key: str
    value: float | None
    subsets: tuple[SubsetScore, ...]
    evaluator: str
    stand_in: bool
    whole: bool = True
    notes: tuple[str, ...] = ()
    also: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.value is not None and not self.complete:
            raise ValueError(
                f"a {self.key} of {self.value} with {self.failed} failed and {self.unscored} unscored rows"
                + ("" if self.whole else " of a part of the data set")
            )

    @property
    def samples(self) -> int:
        """Rows of all subsets."""
        return sum(subset.samples for subset in self.subsets)

    @property
    def failed(self) -> int:
        """Rows without an answer."""
        return sum(subset.failed for subset in self.subsets)

    @property
    def unscored(self) -> int:
        """Rows with an answer that nobody graded."""
        return sum(subset.unscored for subset in self.subsets)

    @property
    def complete(self) -> bool:
        """Whether every row was asked, answered and graded."""
        return self.whole and self.samples > 0 and not self.failed and not self.unscored


@dataclass(frozen=True, slots=True)
class Chats:
    """Chats to ask that are in no data set, as bodies of a :class:`~harness.engines.bodies.BodyStore`."""

    bodies: tuple[Mapping[str, object], ...]

    def __len__(self) -> int:
        return len(self.bodies)

    def __iter__(self) -> Iterator[Mapping[str, object]]:
        return iter(self.bodies)


Questions: TypeAlias = PromptTable | Chats
"""What canaries and the warm-up ask, each in the kind of its benchmark."""


@dataclass(frozen=True, slots=True)
class CanaryFinding:
    """One thing that a canary's answer shows to be wrong."""

    what: str
    expected: str


class Canary(Protocol):
    """A few requests sent to an engine before anything is measured, and what their answers must be like."""

    @property
    def name(self) -> str:
        """Short, for people and for the ledger."""

    @property
    def prompts(self) -> Questions:
        """What to ask; none of it is in the data set."""

    @property
    def max_new_tokens(self) -> int:
        """Cap of each answer: a canary is quick."""

    def check(self, answers: Sequence[bytes]) -> list[CanaryFinding]:
        """What is wrong with the answers, as they would be logged, in order of the prompts; empty where all is well."""


class Benchmark(Protocol):
    """A benchmark under the rules of one round."""

    @property
    def name(self) -> str:
        """As the round spells it, e.g. ``gpt-oss-120b``."""

    @property
    def logged(self) -> Logged:
        """What of a reply is logged; nothing to benchmarks of token ids."""

    def table(self, which: Which, scenario: str) -> str:
        """The name of the table that a leg asks in a scenario."""

    def dataset(self, data_dir: Path, table: str) -> Dataset:
        """One table of the data set under ``data_dir/<name>``, checked against the rules.

        Raises DatasetError, and MissingError where a table is made on the way and cannot be.
        """

    def prepare(self, dataset: Dataset, data_dir: Path, tell: Callable[[str], None]) -> Dataset:
        """The data set with all that legs need beyond what was read, such as ``chats``; made where it is not there yet.

        Of a part that :meth:`Dataset.head` took only what that part needs is made, where it makes a difference.
        ``tell`` is given lines for people while that takes time. Raises DatasetError and MissingError.
        """

    def prepare_run(self, dataset: Dataset, folder: Path, tell: Callable[[str], None]) -> Dataset:
        """The data set as one run alone asks it, with what was made for that below the run's ``folder``; itself where
        all runs ask the same. To be called once for a run, before it is measured; :func:`forget_run` takes away what it
        made. Raises as :meth:`prepare`.
        """

    def make_dataset(self, data_dir: Path, *, seed: int, rows: int | None = None) -> Made:
        """Makes a stand-in for the data set under ``data_dir/<name>``: the same for the same seed, with the rules'
        counts, or ``rows`` where the benchmark can be had shorter.

        ConfigError where the folder holds anything but a stand-in, or for ``rows`` that cannot be; MissingError without
        the tokenizer or disk space.
        """

    def sampling(self, which: Which, *, seed: int, max_new_tokens: int | None = None) -> Sampling:
        """How such legs sample; ``max_new_tokens`` in place of the rules' cap is a deviation to state."""

    def encode(self, text: str) -> list[int]:
        """Token ids of a text. Raises MissingError where the tokenizer is not to be had."""

    def warmup_prompts(self, n: int, *, like: Dataset, seed: int) -> Questions:
        """n prompts with lengths drawn from a data set's, none of them in it."""

    def canaries(self, *, stand_in_checkpoint: bool) -> tuple[Canary, ...]:
        """What is asked of an engine before a leg; less is expected of a checkpoint that has learnt nothing.

        Raises MissingError where the tokenizer is not to be had.
        """

    def score(
        self,
        answers: Iterable[Answer],
        dataset: Dataset,
        *,
        failed: AbstractSet[int] = frozenset(),
        where: object = None,
    ) -> Score:
        """Grades an accuracy log: every row exactly once, ``failed`` ones failed whatever was logged for them.

        Whether a row is in ``failed`` is asked once its answer was drawn. ``where`` names the log in errors. Raises
        RunBroke for rows that are missing, doubled or not of the data set.
        """

    def ready_to_score(self, dataset: Dataset) -> tuple[str, ...]:
        """Looks, before a leg is run, whether its answers could be scored; lines for people.

        Raises DatasetError and MissingError for what would leave them unscored and can be mended before.
        """

    def deviations(self, which: Which) -> tuple[str, ...]:
        """In what such legs, or their scoring, depart from what they should be: by how the benchmark is asked, or by
        options of this command.
        """

    def accuracy_text(self, score: Score) -> str:
        """What accuracy.txt says of a score, each line ended."""

    def scripted_answers(
        self, dataset: Dataset, shares: Mapping[str, float], *, seed: int, answer_tokens: int
    ) -> ScriptedAnswers | ScriptedReplies:
        """Well-formed answers of which the stated share of each subset is right, to the row.

        Rows that no share speaks of get ``answer_tokens`` tokens of text. Of trajectories there is one for each chat of
        their store, and where no share speaks of them the recorded one. Raises UnknownName for a share of no subset.
        """
