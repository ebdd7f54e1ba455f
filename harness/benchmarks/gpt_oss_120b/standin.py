"""A stand-in data set in exactly the reference's files and columns, for machines that have not the real one.

The questions are our own (``questions.py``), the token ids those of the real tokenizer. It is marked as a stand-in in
every parquet file and by a file of its own, and whatever ran on it can never be submitted.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from harness.benchmarks import standins
from harness.benchmarks.base import Made, Which
from harness.benchmarks.gpt_oss_120b import code_questions, files, questions
from harness.benchmarks.gpt_oss_120b.graders import is_code
from harness.benchmarks.gpt_oss_120b.prompts import Effort, render
from harness.benchmarks.gpt_oss_120b.questions import Question
from harness.engines.base import Int32Array
from harness.errors import ConfigError
from harness.rules import TokenRules

VERSION = 2
"""Grows whenever the same seed makes other data."""
PROMPT_TOKENS = range(32, 257)
"""Lengths that prompts of a stand-in have, in tokens."""
PERFORMANCE_SUBSET = "summarization"
WHICH: tuple[Which, ...] = ("performance", "accuracy", "TEST07")

README = """# A stand-in for the data set of gpt-oss-120b

Made by `python -m harness make_dataset` from a seed (STAND_IN.json says which). It has the files, columns and row
counts of the benchmark's data set, and none of its content: the questions are simple ones made up by the harness.
Runs on it are demonstrations and can never be submitted.
"""


@dataclass(frozen=True, slots=True)
class Repeated:
    """A subset of the accuracy table: so many questions, each asked so many times."""

    questions: int
    repeats: int

    def __post_init__(self) -> None:
        if self.questions < 1 or self.repeats < 1:
            raise ValueError(f"not a subset: {self}")


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows to make: performance rows, the accuracy subsets in order, and rows of the TEST07 audit."""

    performance: int
    accuracy: Mapping[str, Repeated]
    audit: int

    @classmethod
    def by(cls, rules: TokenRules) -> Counts:
        """The counts of a round."""
        subsets = rules.accuracy_subsets.value
        return cls(
            performance=rules.datasets["performance"].value,
            accuracy={name: Repeated(s.samples // s.repeats, s.repeats) for name, s in subsets.items()},
            audit=rules.datasets["TEST07"].value,
        )


@dataclass(frozen=True, slots=True)
class _Row:
    question: Question
    subset: str
    ids: list[int]


def make_dataset(folder: Path, *, seed: int, counts: Counts) -> Made:
    """Makes the stand-in in ``folder`` (``<data>/gpt-oss-120b``): whole or not at all, the same for the same seed.

    An equal one is left as it is, another stand-in is replaced, anything else is refused with ConfigError. Raises
    MissingError where the tokenizer is not to be had or the disk is full.
    """
    described = {"seed": seed, "version": VERSION, "counts": _counts_as_json(counts)}
    return standins.make(folder, described, README, lambda new: _write(new, seed, counts, described))


def _counts_as_json(counts: Counts) -> dict[str, object]:
    accuracy = {name: [part.questions, part.repeats] for name, part in counts.accuracy.items()}
    return {"performance": counts.performance, "accuracy": accuracy, "TEST07": counts.audit}


def _tables(seed: int, counts: Counts) -> dict[Which, list[_Row]]:
    return {
        "performance": _ask(
            PERFORMANCE_SUBSET, questions.article_question, seed, Repeated(counts.performance, 1), effort="low"
        ),
        "accuracy": [
            row for name, part in counts.accuracy.items() for row in _ask(name, _maker(name), seed, part, effort="high")
        ],
        "TEST07": _audit_rows(seed, counts),
    }


def _audit_rows(seed: int, counts: Counts) -> list[_Row]:
    # The audit asks the multiple-choice questions of the accuracy table over again.
    for name, part in counts.accuracy.items():
        if "gpqa" in name:
            asked = Repeated(-(-counts.audit // part.repeats), part.repeats)
            return _ask(name, questions.choice_question, seed, asked, effort="high")[: counts.audit]
    raise ConfigError("no subset of the accuracy table is of GPQA's kind", expected="a name that holds 'gpqa'")


def _maker(subset: str) -> Callable[[int, int], Question]:
    makers = {
        "aime": questions.number_question,
        "gpqa": questions.choice_question,
        "livecodebench": code_questions.code_question,
    }
    for kind, maker in makers.items():
        if kind in subset:
            return maker
    raise ConfigError(f"no questions of the kind of {subset!r}", expected="a name that holds " + ", ".join(makers))


def _ask(
    subset: str, maker: Callable[[int, int], Question], seed: int, part: Repeated, *, effort: Effort
) -> list[_Row]:
    rows = []
    for i in range(part.questions):
        question = maker(seed, i)
        ids = render(question.text, effort)
        if len(ids) not in PROMPT_TOKENS:
            raise ValueError(f"question {i} of {subset} makes a prompt of {len(ids)} tokens, not {PROMPT_TOKENS}")
        rows += [_Row(question, subset, ids)] * part.repeats
    return rows


def _problems(seed: int, counts: Counts) -> list[dict[str, str]]:
    """The tests of the code questions, as rows of LiveCodeBench's data set."""
    asked = sum(part.questions for name, part in counts.accuracy.items() if is_code(name))
    return [code_questions.problem_row(seed, i) for i in range(asked)]


def _write(folder: Path, seed: int, counts: Counts, described: Mapping[str, object]) -> standins.Written:
    tables = _tables(seed, counts)
    written: list[Path] = []
    for which in WHICH:
        written += _write_table(files.table_files(folder, which), tables[which], described)
    shard = folder / files.TESTS_FOLDER / "test.jsonl"
    shard.parent.mkdir()
    shard.write_text("".join(f"{json.dumps(problem)}\n" for problem in _problems(seed, counts)), encoding="utf-8")
    return standins.Written((*written, shard), {which: len(tables[which]) for which in WHICH})


def _write_table(paths: files.TableFiles, rows: list[_Row], described: Mapping[str, object]) -> Iterable[Path]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    message = pa.struct([("role", pa.string()), ("content", pa.string())])
    table = pa.table(
        {
            files.TOKENS: pa.array([row.ids for row in rows], pa.list_(pa.int64())),
            files.COUNT: pa.array([len(row.ids) for row in rows], pa.int64()),
            files.TEXT: pa.array([row.question.text for row in rows], pa.string()),
            files.MESSAGES: pa.array(
                [[{"role": "user", "content": row.question.text}] for row in rows], pa.list_(message)
            ),
            files.TRUTH: pa.array([row.question.truth for row in rows], pa.string()),
            files.SUBSET: pa.array([row.subset for row in rows], pa.string()),
        }
    )
    paths.parquet.parent.mkdir(parents=True, exist_ok=True)
    marked = table.replace_schema_metadata({files.STAND_IN_KEY: json.dumps(described).encode()})
    pq.write_table(marked, paths.parquet)
    yield paths.parquet
    if paths.padded is not None and paths.lengths is not None:
        lengths = np.array([len(row.ids) for row in rows], np.int32)
        np.save(paths.padded, _padded(rows, lengths))
        np.save(paths.lengths, lengths)
        yield from (paths.padded, paths.lengths)


def _padded(rows: list[_Row], lengths: Int32Array) -> Int32Array:
    padded = np.zeros((len(rows), int(lengths.max(initial=0))), np.int32)
    for row, ids in zip(padded, (row.ids for row in rows), strict=True):
        row[: len(ids)] = ids
    return padded
