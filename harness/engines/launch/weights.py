"""The weights that servers are given: where they lie, what they are, hashed once however often they are served."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from harness.config.engines import ServedCheckpoint, TinyCheckpoint
from harness.engines.base import Checkpoint
from harness.engines.checkpoint import describe, make_tiny_gpt_oss
from harness.engines.tiny_deepseek_v3 import make_tiny_deepseek_v3
from harness.engines.tiny_qwen3_vl import make_tiny_qwen3_vl
from harness.env import cache_dir
from harness.errors import ConfigError
from harness.events import Note, Observer

PLAIN_TYPES: Final = frozenset({"fp32", "fp16", "bf16", "fp8", "mxfp4"})
"""What :func:`describe` finds that is a data type; others (``modelopt``) name the tool that quantized."""
FULL_TYPES: Final = frozenset({"fp32", "fp16", "bf16"})
"""Those that nothing quantized has."""
_GIGA: Final = 10**9
MAKERS: Final[Mapping[str, Callable[..., Path]]] = {
    "tiny-gpt-oss": make_tiny_gpt_oss,
    "tiny-qwen3-vl": make_tiny_qwen3_vl,
    "tiny-deepseek-v3": make_tiny_deepseek_v3,
}


def folder_of(checkpoint: ServedCheckpoint | TinyCheckpoint) -> Path:
    """Where the weights lie, or will once they are made. Nothing is made or looked for."""
    if isinstance(checkpoint, ServedCheckpoint):
        return checkpoint.path.expanduser().absolute()
    name = f"{checkpoint.make}-{checkpoint.hidden_size}x{checkpoint.layers}-{checkpoint.seed}"
    return cache_dir() / "checkpoints" / name


def made(checkpoint: ServedCheckpoint | TinyCheckpoint) -> Path:
    """The folder of the weights; a stand-in is made where it is not there yet. Raises MissingError."""
    folder = folder_of(checkpoint)
    if isinstance(checkpoint, TinyCheckpoint):
        make = MAKERS[checkpoint.make]
        make(folder, seed=checkpoint.seed, hidden_size=checkpoint.hidden_size, layers=checkpoint.layers)
    return folder


def described(checkpoint: ServedCheckpoint | TinyCheckpoint, observer: Observer) -> Checkpoint | None:
    """What the weights are; None where they lie in a container or on another machine, out of sight.

    Hashing hundreds of gigabytes takes minutes: it is done once, and again when a file's size or time has changed.
    ConfigError where the folder is no checkpoint, or its data type is not the one that the configuration states.
    """
    folder = folder_of(checkpoint)
    if not folder.is_dir():
        return None
    found = _remembered(folder, observer)
    if isinstance(checkpoint, TinyCheckpoint):
        return found
    stated, read = checkpoint.weight_data_type, found.weight_data_type
    plain = read in PLAIN_TYPES
    if read != stated.lower() if plain else stated.lower() in FULL_TYPES:
        raise ConfigError(
            f"the weights are {read}, the configuration says {stated}",
            where=folder,
            expected=f"weight_data_type {read}" if plain else f"the type that {read} quantized them to, such as nvfp4",
            mend="mend engine.checkpoint",
        )
    return dataclasses.replace(found, name=checkpoint.name, weight_data_type=stated)


def config_number(folder: Path, key: str) -> int | None:
    """A whole number of ``config.json``, or of its ``text_config``; None where there is none."""
    try:
        config = json.loads((folder / "config.json").read_bytes())
        found = config.get(key, config.get("text_config", {}).get(key))
    except (OSError, ValueError, AttributeError, RecursionError):
        return None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _remembered(folder: Path, observer: Observer) -> Checkpoint:
    path = cache_dir() / "digests" / f"{hashlib.sha256(str(folder).encode()).hexdigest()[:32]}.json"
    files = _files(folder)
    known = _read(path)
    if known is not None and known.get("files") == files:
        return Checkpoint(**known["checkpoint"])
    size = sum(entry[1] for entry in files)
    if size > _GIGA:
        observer(Note(f"hashing the checkpoint in {folder}, {size / _GIGA:.1f} GB; once, then it is remembered"))
    found = describe(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"folder": str(folder), "files": files, "checkpoint": dataclasses.asdict(found)}
    scratch = path.with_suffix(".new")
    scratch.write_text(json.dumps(content), encoding="utf-8")
    scratch.replace(path)
    return found


def _files(folder: Path) -> list[list[Any]]:
    """Name, size and time of each file, as JSON has them."""
    found = ((path.relative_to(folder).as_posix(), path) for path in folder.rglob("*") if path.is_file())
    return [[name, stat.st_size, stat.st_mtime_ns] for name, path in sorted(found) for stat in [path.stat()]]


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_bytes())
        Checkpoint(**found["checkpoint"])
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return found if isinstance(found, dict) else None
