"""The vocabulary of gpt-oss (o200k_harmony): found or made without a network, and text to ids and back.

openai-harmony knows the special tokens but ships no ranks; it would fetch ``o200k_base.tiktoken``. The file is looked
for in TIKTOKEN_ENCODINGS_BASE, then in the harness' cache; failing both it is rebuilt, byte for byte, from the ranks
that the package quicktok-v1 carries. Whatever was found must have the published hash.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import importlib.util
import os
import struct
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from harness.engines.base import Int32Array
from harness.env import TIKTOKEN_ENCODINGS_BASE, cache_dir
from harness.errors import MissingError

FILE_NAME = "o200k_base.tiktoken"
FILE_SHA256 = "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d"
VOCAB_SIZE = 201_088
"""Ids of o200k_harmony, reserved ones included: 0 to 201,087."""
FIRST_SPECIAL = 199_998
"""All ids from here on are special tokens; below are the byte-pair ranks."""
INSTALL = "pip install '.[gpt-oss]'"


class Encoding(Protocol):
    """What is used of openai-harmony's encoding."""

    def encode(
        self, text: str, *, allowed_special: str | set[str] = ..., disallowed_special: object = ...
    ) -> list[int]:
        """Text to ids."""

    def decode(self, tokens: Sequence[int], errors: str = ...) -> str:
        """Ids to text."""

    def render_conversation_for_completion(self, conversation: object, next_turn_role: object) -> list[int]:
        """A conversation to the ids of a prompt."""


@dataclass(frozen=True, slots=True)
class BadIds:
    """Ids that no text belongs to: the first one outside the vocabulary, and where it stands."""

    position: int
    token: int

    def __str__(self) -> str:
        return f"token id {self.token} at position {self.position} is not in 0..{VOCAB_SIZE - 1}"


def find() -> Path:
    """The folder that holds ``o200k_base.tiktoken`` with the published hash, made in the cache where there is none.

    Raises MissingError where the file is wrong, or is nowhere and cannot be made.
    """
    stated = TIKTOKEN_ENCODINGS_BASE.path()
    if stated is not None:
        return _checked(stated / FILE_NAME, mend=f"put the file there, or unset {TIKTOKEN_ENCODINGS_BASE.name}")
    cached = cache_dir() / "vocab" / FILE_NAME
    if not cached.exists():
        _write_atomically(cached, _ranks_as_tiktoken(_quicktok_ranks()))
    return _checked(cached, mend="delete the file; it is made again")


@functools.cache
def encoding() -> Encoding:
    """openai-harmony's encoding of gpt-oss, loaded once a process (about 0.4 s). Raises MissingError."""
    try:
        import openai_harmony
    except ImportError as error:
        raise MissingError("the package openai-harmony is not installed", mend=INSTALL) from error
    folder = find()
    with _encodings_base(folder):
        try:
            loaded: Encoding = openai_harmony.load_harmony_encoding("HarmonyGptOss")
        except openai_harmony.HarmonyError as error:
            raise MissingError(f"openai-harmony cannot load the vocabulary: {error}", where=folder) from error
    return loaded


def encode(text: str) -> list[int]:
    """Token ids of a text; what spells a special token becomes that token."""
    return encoding().encode(text, allowed_special="all")


def encode_plain(text: str) -> list[int]:
    """Token ids of a text in which nothing is special, whatever it spells."""
    return encoding().encode(text, disallowed_special=())


def decode(ids: Sequence[int] | Int32Array) -> str | BadIds:
    """The text of ids, special tokens spelled out, what is not UTF-8 as U+FFFD; or what is wrong with the ids."""
    array = np.asarray(ids, dtype=np.int64)
    outside = np.flatnonzero((array < 0) | (array >= VOCAB_SIZE))
    if len(outside):
        return BadIds(int(outside[0]), int(array[outside[0]]))
    return encoding().decode(array.tolist(), errors="replace")


def _checked(path: Path, *, mend: str) -> Path:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise MissingError(f"no vocabulary file: {error.strerror}", where=path, mend=mend) from error
    digest = hashlib.sha256(content).hexdigest()
    if digest != FILE_SHA256:
        raise MissingError(
            f"not the vocabulary of gpt-oss: sha256 {digest}", where=path, expected=f"sha256 {FILE_SHA256}", mend=mend
        )
    return path.parent


def _quicktok_ranks() -> Path:
    # find_spec does not import the package, which would load its compiled part.
    spec = importlib.util.find_spec("quicktok")
    for place in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(place) / "data" / "o200k.vocab"
        if path.exists():
            return path
    raise MissingError(
        f"the vocabulary {FILE_NAME} is nowhere",
        expected=f"{TIKTOKEN_ENCODINGS_BASE.name} set to its folder, or the package quicktok-v1 to make it from",
        mend=INSTALL,
    )


def _ranks_as_tiktoken(path: Path) -> bytes:
    """quicktok's ranks in tiktoken's format.

    There: a u32 count, then for each token a u16 length, its bytes and a u32 rank, little-endian.
    Here: a line a token in order of rank, base64 of the bytes, a blank, the rank.
    """
    data = path.read_bytes()
    try:
        ranks = dict(_tokens(data))
    except struct.error as error:
        raise MissingError(f"the ranks cannot be read: {error}", where=path, mend=INSTALL) from error
    content = b"".join(base64.b64encode(ranks[rank]) + b" %d\n" % rank for rank in sorted(ranks))
    digest = hashlib.sha256(content).hexdigest()
    if digest != FILE_SHA256:
        raise MissingError(
            f"the ranks make another vocabulary: sha256 {digest}",
            where=path,
            expected=f"sha256 {FILE_SHA256}",
            mend=INSTALL,
        )
    return content


def _tokens(data: bytes) -> Iterator[tuple[int, bytes]]:
    (count,) = struct.unpack_from("<I", data)
    at = 4
    for _ in range(count):
        (length,) = struct.unpack_from("<H", data, at)
        token = data[at + 2 : at + 2 + length]
        (rank,) = struct.unpack_from("<I", data, at + 2 + length)
        yield rank, token
        at += 2 + length + 4


def _write_atomically(path: Path, content: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(name).replace(path)
    except OSError as error:
        raise MissingError(f"cannot write the vocabulary: {error.strerror}", where=path) from error


@contextmanager
def _encodings_base(folder: Path) -> Iterator[None]:
    """openai-harmony takes the folder from the environment alone; it is set for the time of loading."""
    name = TIKTOKEN_ENCODINGS_BASE.name
    before = os.environ.get(name)
    os.environ[name] = str(folder)
    try:
        yield
    finally:
        if before is None:
            del os.environ[name]
        else:
            os.environ[name] = before
