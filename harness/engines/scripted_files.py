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


def _replies(path: Path, arrays: Arrays) -> tuple[npt.NDArray[np.uint8], Int64Array, Int32Array]:
    data, ends = _column(path, arrays, "data", np.uint8), _column(path, arrays, "ends", np.int64)
    tokens = _column(path, arrays, "tokens", np.int32)
    _check_ends(path, ends, len(data), "bytes")
    if len(tokens) != len(ends) or (len(tokens) and int(tokens.min()) < 0):
        raise _not_answers(path, f"there are {len(tokens)} token counts for {len(ends)} replies")
    begin = 0
    for row, end in enumerate(ends.tolist()):
        if not _is_reply(data[begin:end].tobytes()):
            raise _not_answers(path, f"reply {row} is no JSON object with a text as content")
        begin = end
    return data, ends, tokens


def _is_reply(data: bytes) -> bool:
    try:
        found = orjson.loads(data)
    except orjson.JSONDecodeError:
        return False
    return isinstance(found, dict) and isinstance(found.get("content"), str)


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
