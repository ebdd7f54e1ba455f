"""Processes that make chats: ``python -m harness.benchmarks.qwen3_vl_235b_a22b.builders TABLE VERSION``.

A builder reads pieces (four int64) from standard input until it ends, and answers each on standard output with a frame:
a kind, two int64 (chats, bytes), the sizes and the token counts of the chats as int64, the chats. Instead it may answer
with an error as JSON. It leaves ^C to its starter, and ends when that is gone, for then its standard input ends.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import struct
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, BinaryIO, Final, get_args

from harness.benchmarks.qwen3_vl_235b_a22b.catalogue import Piece
from harness.benchmarks.qwen3_vl_235b_a22b.prompts import Version
from harness.benchmarks.qwen3_vl_235b_a22b.requests import Packed, Packer
from harness.engines.start import error_of_json, error_to_json
from harness.errors import HarnessError, RunBroke

_MODULE: Final = "harness.benchmarks.qwen3_vl_235b_a22b.builders"
_PIECE: Final = struct.Struct("<4q")
_HEAD: Final = struct.Struct("<3q")
_CHATS, _ERROR = 0, 1
_AHEAD: Final = 2
"""Pieces that a builder is given before the first of them is taken: it should never wait."""
_ROOT: Final = Path(__file__).resolve().parents[3]


def in_order(table: Path, version: Version, pieces: list[Piece], processes: int) -> Iterator[Packed]:
    """The chats of the pieces, in their order. Builders that are not through when the iterator is closed are ended.

    Raises what a builder raised for the first piece that it could not do, RunBroke where one died.
    """
    with contextlib.ExitStack() as stack:
        builders = [stack.enter_context(_Builder(table, version)) for _ in range(processes)]
        waiting: deque[Future[Packed]] = deque()
        for k, piece in enumerate(pieces):
            if len(waiting) > _AHEAD * processes:
                yield waiting.popleft().result()
            waiting.append(builders[k % processes].submit(piece))
        while waiting:
            yield waiting.popleft().result()


class _Builder:
    """A process, and a thread of this one that talks to it."""

    def __init__(self, table: Path, version: Version) -> None:
        paths = [str(_ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
        self._process = subprocess.Popen(
            [sys.executable, "-m", _MODULE, str(table), version],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"},
        )
        self._thread = ThreadPoolExecutor(max_workers=1)

    def __enter__(self) -> _Builder:
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._thread.shutdown(cancel_futures=True)
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
        self._process.wait()

    def submit(self, piece: Piece) -> Future[Packed]:
        """Asks for a piece; pieces are asked for one after the other."""
        return self._thread.submit(self._ask, piece)

    def _ask(self, piece: Piece) -> Packed:
        questions, answers = self._process.stdin, self._process.stdout
        if questions is None or answers is None:
            raise ValueError("a builder's input and output must be pipes")
        try:
            questions.write(_PIECE.pack(*dataclasses.astuple(piece)))
            questions.flush()
            return _receive(answers)
        except (BrokenPipeError, EOFError) as error:
            raise RunBroke(
                f"a process that makes requests ended with {self._process.wait()} at row {piece.first}",
                mend="the kernel's log says whether memory ran out (dmesg); run again",
            ) from error


def _receive(stream: IO[bytes]) -> Packed:
    kind, chats, size = _HEAD.unpack(_exactly(stream, _HEAD.size))
    numbers = struct.unpack(f"<{2 * chats}q", _exactly(stream, 16 * chats))
    data = _exactly(stream, size)
    if kind == _ERROR:
        raise error_of_json(json.loads(data))
    return Packed(data, numbers[:chats], numbers[chats:])


def _send(stream: BinaryIO, packed: Packed) -> None:
    chats = len(packed.sizes)
    stream.write(_HEAD.pack(_CHATS, chats, len(packed.data)))
    stream.write(struct.pack(f"<{2 * chats}q", *packed.sizes, *packed.tokens))
    stream.write(packed.data)
    stream.flush()


def _exactly(stream: IO[bytes], size: int) -> bytes:
    data = stream.read(size)
    if len(data) != size:
        raise EOFError
    return data


def _build(table: Path, version: Version, questions: BinaryIO, answers: BinaryIO) -> None:
    packer = None
    while question := questions.read(_PIECE.size):
        try:
            packer = packer or Packer(table, version)
            packed = packer.pack(Piece(*_PIECE.unpack(question)))
        except HarnessError as error:
            told = json.dumps(error_to_json(error)).encode()
            answers.write(_HEAD.pack(_ERROR, 0, len(told)) + told)
            answers.flush()
            return
        _send(answers, packed)


def _main() -> None:
    table, said = sys.argv[1:]
    version = next(known for known in get_args(Version) if known == said)
    with contextlib.suppress(BrokenPipeError):  # The starter is gone.
        _build(Path(table), version, sys.stdin.buffer, sys.stdout.buffer)


if __name__ == "__main__":
    _main()
