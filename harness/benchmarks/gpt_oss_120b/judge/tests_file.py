"""Reader of LiveCodeBench's problems with their tests, as its data set is published and as the stand-in is written.

The data set livecodebench/code_generation_lite is shards of JSON lines (test.jsonl, test2.jsonl, ...), one problem a
line. Private tests are JSON, or JSON pickled, compressed and in base64 (lcb_runner/benchmarks/code_generation.py).
A release is some gigabytes: problems are read one at a time, and only those that are asked for are unpacked.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import io
import json
import pickle
import pickletools
import re
import zlib
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from harness.benchmarks.gpt_oss_120b.judge.problems import Json, Problem, Test
from harness.errors import DatasetError

MEND = "download livecodebench/code_generation_lite again, all shards of release_v6"
MAX_UNPACKED = 2 << 30
"""Bytes that the private tests of one problem may unpack to."""

_TEXT = {"UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"}
_AROUND_TEXT = {"PROTO", "FRAME", "MEMOIZE", "PUT", "BINPUT", "LONG_BINPUT", "STOP"}

_ID = re.compile(rb'"question_id"\s*:\s*"((?:[^"\\]|\\.)*)"')


@dataclass(frozen=True, slots=True)
class TestsFolder:
    """A folder of shards: ``*.jsonl`` or ``*.jsonl.gz``."""

    __test__ = False  # pytest takes the name for one of its own

    path: Path

    def shards(self) -> list[Path]:
        """The files, in order of name; none where the folder is absent or empty."""
        return sorted(path for path in self.path.glob("*.jsonl*") if path.name.endswith((".jsonl", ".jsonl.gz")))

    def ids(self) -> set[str]:
        """The problems there are. Raises DatasetError for a line without an id, and for one that stands twice."""
        found: set[str] = set()
        for where, line in self._lines():
            name = _id(where, line)
            if name in found:
                raise DatasetError(f"the problem {name} is there twice", where=where, expected="once", mend=MEND)
            found.add(name)
        return found

    def problems(self, wanted: Collection[str]) -> Iterator[Problem]:
        """The problems asked for, as they stand in the files. Raises DatasetError for one that cannot be read."""
        for where, line in self._lines():
            if _id(where, line) in wanted:
                yield _problem(where, line)

    def _lines(self) -> Iterator[tuple[str, bytes]]:
        for shard in self.shards():
            number = 0
            try:
                with _open(shard) as file:
                    for number, line in enumerate(file, start=1):
                        if line.strip():
                            yield f"{shard}, line {number}", line
            except (OSError, EOFError, zlib.error) as error:
                raise DatasetError(
                    f"cannot be read: {error}", where=f"{shard}, line {number + 1}", mend=MEND
                ) from error


def _open(shard: Path) -> BinaryIO:
    if shard.suffix == ".gz":
        return io.BufferedReader(gzip.GzipFile(shard, "rb"))
    return shard.open("rb")


def _id(where: str, line: bytes) -> str:
    found = _ID.search(line)
    if found is None:
        raise DatasetError("no problem of LiveCodeBench: it has no question_id", where=where, mend=MEND)
    return str(json.loads(b'"' + found[1] + b'"')) if b"\\" in found[1] else found[1].decode("utf-8", "replace")


def _problem(where: str, line: bytes) -> Problem:
    try:
        row = json.loads(line)
        public = json.loads(row["public_test_cases"])
        private = _private(row["private_test_cases"])
        tests = tuple(Test(given=test["input"], expected=test["output"]) for test in [*public, *private])
        if not all(isinstance(text, str) for test in tests for text in (test.given, test.expected)):
            raise TypeError("a test whose input or output is no text")
        function = json.loads(row["metadata"]).get("func_name")
        return Problem(str(row["question_id"]), None if function is None else str(function), tests)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise DatasetError(
            f"no problem of LiveCodeBench: {type(error).__name__}: {str(error)[:200]}", where=where, mend=MEND
        ) from error


def _private(text: str) -> Json:
    try:
        return json.loads(text)
    except ValueError:
        return json.loads(unpacked(text))


def unpacked(text: str) -> str:
    """The JSON in a packed field. ValueError for anything but one pickled string, which is all that may be in there."""
    try:
        stream = zlib.decompressobj()
        data = stream.decompress(base64.b64decode(text, validate=True), MAX_UNPACKED)
    except (binascii.Error, zlib.error) as error:
        raise ValueError(f"the private tests cannot be unpacked: {error}") from error
    if not stream.eof:
        raise ValueError(f"the private tests are cut off, or more than {MAX_UNPACKED} bytes")
    return _pickled_text(data)


def _pickled_text(data: bytes) -> str:
    """The text in a pickle. It is read, not run: an instruction that only other objects need is refused."""
    texts: list[str] = []
    for instruction, argument, _ in pickletools.genops(io.BytesIO(data)):
        if instruction.name in _TEXT:
            texts.append(str(argument))
        elif instruction.name not in _AROUND_TEXT:
            raise ValueError(f"the private tests are no pickled text: it has the instruction {instruction.name}")
    if len(texts) != 1:
        raise ValueError(f"the private tests are {len(texts)} pickled texts, expected is one")
    return texts[0]


def packed(content: str) -> str:
    """A field of private tests as LiveCodeBench packs it."""
    return base64.b64encode(zlib.compress(pickle.dumps(content, protocol=4))).decode("ascii")
