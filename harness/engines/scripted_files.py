"""Files of scripted answers: .npz archives of token ids, or of replies to chats."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from harness.engines.base import Int32Array, Int64Array
from harness.engines.scripted_answers import RecordedScript
from harness.engines.scripted_chats import RecordedReplies
from harness.errors import ConfigError, MissingError

Arrays = dict[str, npt.NDArray[Any]]


def read_script(path: Path, vocab_size: int) -> RecordedScript | RecordedReplies:
    """Reads the answers, or the replies, of a data set.

    Answer r is ``tokens[ends[r - 1] : ends[r]]`` (int32, flat); reply r is ``data[ends[r - 1] : ends[r]]`` (uint8),
    JSON of ``tokens[r]`` tokens. Raises MissingError where the file is not there, ConfigError where it is not of that
    form or holds ids outside the vocabulary.
    """
    arrays = _arrays(path)
    if "data" in arrays:
        return RecordedReplies(*_replies(path, arrays))
    return RecordedScript(*_answers(path, arrays, vocab_size))


def read_answers(path: Path, vocab_size: int) -> tuple[Int32Array, Int64Array]:
    """The tokens and ends of a file of token ids; see :func:`read_script`."""
    return _answers(path, _arrays(path), vocab_size)


def _arrays(path: Path) -> Arrays:
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as archive:
            return {key: archive[key] for key in archive.files}
    except FileNotFoundError:
        raise MissingError("the file of scripted answers is not there", where=path) from None
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError, zipfile.BadZipFile) as error:
        raise _not_answers(path, str(error)) from error


def _answers(path: Path, arrays: Arrays, vocab_size: int) -> tuple[Int32Array, Int64Array]:
    tokens, ends = _column(path, arrays, "tokens", np.int32), _column(path, arrays, "ends", np.int64)
    _check_ends(path, ends, len(tokens), "tokens")
    if len(tokens) and not 0 <= int(tokens.min()) <= int(tokens.max()) < vocab_size:
        raise _not_answers(path, f"there are ids outside the vocabulary of {vocab_size}")
    return tokens, ends


def _replies(path: Path, arrays: Arrays) -> tuple[npt.NDArray[np.uint8], Int64Array, Int32Array, npt.NDArray[np.bool_]]:
    data, ends = _column(path, arrays, "data", np.uint8), _column(path, arrays, "ends", np.int64)
    tokens = _column(path, arrays, "tokens", np.int32)
    _check_ends(path, ends, len(data), "bytes")
    if len(tokens) != len(ends) or (len(tokens) and int(tokens.min()) < 0):
        raise _not_answers(path, f"there are {len(tokens)} token counts for {len(ends)} replies")
    calls = np.zeros(len(ends), np.bool_)
    begin = 0
    for row, end in enumerate(ends.tolist()):
        calls[row] = _calls_tools(path, row, data[begin:end].tobytes())
        begin = end
    return data, ends, tokens, calls


def _calls_tools(path: Path, row: int, data: bytes) -> bool:
    """Whether a reply calls tools. ConfigError for one that is none."""
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        found = None
    if not isinstance(found, dict) or not isinstance(found.get("content"), str):
        raise _not_answers(path, f"reply {row} is no JSON object with a text as content")
    if not isinstance(found.get("reasoning") or "", str):
        raise _not_answers(path, f"the reasoning of reply {row} is no text")
    calls = found.get("tool_calls") or []
    if not isinstance(calls, list) or not all(map(_is_call, calls)):
        raise _not_answers(
            path, f"the tool calls of reply {row} are no list of functions with name and arguments as text"
        )
    return bool(calls)


def _is_call(call: object) -> bool:
    function = call.get("function") if isinstance(call, dict) else None
    return isinstance(function, dict) and all(isinstance(function.get(key), str) for key in ("name", "arguments"))


def _column(path: Path, arrays: Arrays, name: str, kind: type[np.generic]) -> npt.NDArray[Any]:
    if name not in arrays:
        raise _not_answers(path, f"there is no {name} in it")
    found = arrays[name]
    if found.dtype != kind or found.ndim != 1:
        raise _not_answers(path, f"{name} are {found.ndim}-D {found.dtype}")
    return found


def _check_ends(path: Path, ends: Int64Array, size: int, of: str) -> None:
    if (np.diff(ends, prepend=0) < 0).any() or (int(ends[-1]) if len(ends) else 0) != size:
        raise _not_answers(path, f"the ends do not rise from 0 to the number of {of}")


def _not_answers(path: Path, found: str) -> ConfigError:
    return ConfigError(
        f"not a file of scripted answers: {found}",
        where=path,
        expected="a .npz file with int32 `tokens` and rising int64 `ends`, for chats uint8 `data` too",
    )
