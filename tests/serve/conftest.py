"""One scripted server for all tests of the protocol: 10 tokens an answer, a chunk at 1, 4, 8 and 10."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from tests.serve.client import Server

VOCAB = 50_000
LENGTH = 10
INTERVAL = 4
HANGING_ROW, FAILING_ROW = 7, 8
SPOKEN = (
    "hello, wörld",
    "<think>why not</think>because",
    'so: <tool_call>{"name": "look", "arguments": {"at": "sky"}}</tool_call><tool_call>{"name": "wait"}</tool_call>',
    "a < b <tool_call>no JSON</tool_call>",
)
"""What the second server says by row, as UTF-8 bytes."""


@pytest.fixture(scope="session")
def scripted() -> Iterator[Server]:
    script = {
        "length": LENGTH,
        "vocab_size": VOCAB,
        "faults": {"serve": {"hang": [HANGING_ROW], "fail": [FAILING_ROW]}},
    }
    options = ("--engine=scripted", "--max_total_tokens=200", f"--stream_interval={INTERVAL}", "--model=stand-in")
    with Server(*options, "--script", json.dumps(script)) as server:
        yield server


@pytest.fixture(scope="session")
def speaking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path: Path = tmp_path_factory.mktemp("serve") / "answers.npz"
    texts = [text.encode() for text in SPOKEN]
    tokens = np.frombuffer(b"".join(texts), np.uint8).astype(np.int32)
    np.savez(path, tokens=tokens, ends=np.cumsum([len(text) for text in texts]).astype(np.int64))
    script = {"answers": {"serve": str(path)}, "vocab_size": VOCAB}
    with Server("--engine=scripted", "--script", json.dumps(script), "--stream_interval=3") as server:
        yield server
