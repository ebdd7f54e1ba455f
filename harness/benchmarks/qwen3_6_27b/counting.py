"""Tokens of prompts and answers of a run, counted by several processes, of each prompt only what is new in it.

``python -m harness.benchmarks.qwen3_6_27b.counting FOLDER STORE`` is such a process: it reads rows of a store of chats
(int64) from standard input, or without STORE a JSON list of texts, and answers their counts (int64) on standard output,
or an error as JSON and with status 3. FOLDER is a checkpoint's, or "" for the tokenizer of stand-ins.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import numpy as np
import orjson

from harness.benchmarks.qwen3_6_27b.tokenizers import ChatTokenizer, tokenizer_of
from harness.engines.base import Int64Array
from harness.engines.bodies import BodyStore
from harness.engines.chats.problems import BadChat
from harness.engines.start import error_of_json, error_to_json
from harness.errors import DatasetError, HarnessError, RunBroke

PROCESSES_AT_MOST: Final = 16
BYTES_A_PROCESS: Final = 32 << 20
"""Fewer are not worth the seconds that a process takes to start."""
_ERROR: Final = 3
_MODULE: Final = "harness.benchmarks.qwen3_6_27b.counting"
_ROOT: Final = Path(__file__).resolve().parents[3]


def prompt_tokens(
    store: BodyStore, chats: Sequence[int] | Int64Array, folder: Path | None = None, processes: int | None = None
) -> Int64Array:
    """Tokens of each of these chats of a store, int64, in the order in which they are asked for; any may come twice.

    ``folder`` is the served checkpoint's, None for the tokenizer of stand-ins. MissingError where it has none,
    DatasetError for a chat that is none. IndexError for a row that is not in the store.
    """
    rows, places = np.unique(np.asarray(chats, np.int64), return_inverse=True)
    sizes = [len(store[row]) for row in rows.tolist()]
    many = _processes(sum(sizes)) if processes is None else processes
    if many <= 1:
        found = _of_chats(store, rows.tolist(), tokenizer_of(folder))
    else:
        parts = _parts(rows, store.sessions[rows], np.array(sizes, np.int64), many)
        found = np.concatenate(_counted(folder, [str(store.path)], [part.tobytes() for part in parts]))
    return found[places]


def text_tokens(texts: Sequence[str], folder: Path | None = None, processes: int | None = None) -> Int64Array:
    """Tokens of each text, int64; what is told of ``folder`` and raised is as in :func:`prompt_tokens`."""
    texts = [text.encode("utf-8", "replace").decode() for text in texts]  # halves of characters are in no tokenizer
    many = _processes(sum(map(len, texts))) if processes is None else processes
    if many <= 1 or not texts:
        return _of_texts(texts, tokenizer_of(folder))
    each = -(-len(texts) // many)
    parts = [texts[at : at + each] for at in range(0, len(texts), each)]
    return np.concatenate(_counted(folder, [], [orjson.dumps(list(part)) for part in parts]))


def answer_text(reply: Mapping[str, Any]) -> str:
    """What of a reply counts as answered: reasoning, content, and of each call the function's name and its arguments.

    What a model writes around them is in no reply: such a count is a little short of the server's.
    """
    calls = [call.get("function") or {} for call in reply.get("tool_calls") or () if isinstance(call, Mapping)]
    said = [reply.get("reasoning"), reply.get("content")]
    said += [call.get(name) for call in calls if isinstance(call, Mapping) for name in ("name", "arguments")]
    return "".join(text for text in said if isinstance(text, str))


def _processes(size: int) -> int:
    return max(1, min(len(os.sched_getaffinity(0)), PROCESSES_AT_MOST, size // BYTES_A_PROCESS))


def _parts(rows: Int64Array, sessions: Int64Array, sizes: Int64Array, many: int) -> list[Int64Array]:
    """The rows in parts of about one size, in order; chats of a session stay together."""
    ends = np.cumsum(sizes)
    wanted = ends[-1] * np.arange(1, many) / many
    cuts = np.searchsorted(ends, wanted)
    begins = np.flatnonzero(np.diff(sessions, prepend=sessions[:1] - 1))
    at_sessions = begins[np.clip(np.searchsorted(begins, cuts), 0, len(begins) - 1)]
    return [part for part in np.split(rows, np.unique(at_sessions)) if len(part)]


def _of_chats(store: BodyStore, rows: Iterable[int], tokenizer: ChatTokenizer) -> Int64Array:
    return np.fromiter((_of_chat(store, row, tokenizer) for row in rows), np.int64)


def _of_chat(store: BodyStore, row: int, tokenizer: ChatTokenizer) -> int:
    try:
        return tokenizer.prompt_tokens(orjson.loads(store[row]))
    except (BadChat, orjson.JSONDecodeError) as error:
        raise DatasetError(f"a chat that cannot be counted: {error}", where=f"{store.path}, row {row}") from error


def _of_texts(texts: Iterable[str], tokenizer: ChatTokenizer) -> Int64Array:
    return np.fromiter(map(tokenizer.text_tokens, texts), np.int64)


def _counted(folder: Path | None, more: Sequence[str], questions: Sequence[bytes]) -> list[Int64Array]:
    """What a process each answers to the questions. All have ended when this returns or raises."""
    with ThreadPoolExecutor(len(questions)) as threads, contextlib.ExitStack() as ending:
        running = [ending.enter_context(_started(folder, more)) for _ in questions]
        for process in running:
            ending.callback(process.kill)
        return list(threads.map(_answer, running, questions))


def _started(folder: Path | None, more: Sequence[str]) -> subprocess.Popen[bytes]:
    paths = [str(_ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return subprocess.Popen(
        [sys.executable, "-m", _MODULE, "" if folder is None else str(folder), *more],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths), "TOKENIZERS_PARALLELISM": "false"},
    )


def _answer(process: subprocess.Popen[bytes], question: bytes) -> Int64Array:
    answer, _ = process.communicate(question)
    if process.returncode == _ERROR:
        raise error_of_json(json.loads(answer))
    if process.returncode:
        raise RunBroke(
            f"a process that counts tokens ended with {process.returncode}",
            mend="the kernel's log says whether memory ran out (dmesg); run again",
        )
    return np.frombuffer(answer, np.int64)


def _main() -> int:
    folder, *store = sys.argv[1:]
    question = sys.stdin.buffer.read()
    try:
        tokenizer = tokenizer_of(Path(folder) if folder else None)
        if store:
            found = _of_chats(BodyStore.open(Path(store[0])), np.frombuffer(question, np.int64).tolist(), tokenizer)
        else:
            found = _of_texts(orjson.loads(question), tokenizer)
    except HarnessError as error:
        sys.stdout.write(json.dumps(error_to_json(error)))
        return _ERROR
    sys.stdout.buffer.write(found.tobytes())
    return 0


if __name__ == "__main__":
    sys.exit(_main())
