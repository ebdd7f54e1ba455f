"""The double of TensorRT-LLM's LLM API in place of the library, and a checkpoint that it takes."""

from __future__ import annotations

import contextlib
import importlib
import json
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

DOUBLES = Path(__file__).parents[1] / "doubles"
_NAMES = ("tensorrt_llm", "tensorrt_llm.llmapi")


@contextlib.contextmanager
def double_in_place(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The double's ``llmapi``, fresh, on a machine of one GPU."""
    torch = SimpleNamespace(
        __version__="2.9.1", version=SimpleNamespace(cuda="13.0"), cuda=SimpleNamespace(device_count=lambda: 1)
    )
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.syspath_prepend(DOUBLES)
    for name in _NAMES:
        monkeypatch.delitem(sys.modules, name, raising=False)
    yield importlib.import_module("tensorrt_llm.llmapi")
    for name in _NAMES:
        del sys.modules[name]


def make_checkpoint(folder: Path, *, vocab_size: int = 1000) -> Path:
    """A folder that is a checkpoint as far as its files are looked at: one BF16 tensor."""
    folder.mkdir()
    (folder / "config.json").write_text(json.dumps({"vocab_size": vocab_size}))
    header = json.dumps({"w": {"dtype": "BF16", "shape": [2], "data_offsets": [0, 4]}}).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + bytes(4))
    return folder
