"""Configurations whose ``trtllm-serve`` is a fake: a program on the PATH that speaks and fails as it is told."""

from __future__ import annotations

import json
import os
import shlex
import sys
from pathlib import Path
from typing import Any

from harness.config.engines import HttpEngine
from tests.engines.launch.made import FAKE_SERVER, free_ports


def write_checkpoint(folder: Path) -> Path:
    """A folder that passes for a checkpoint: a config and one tensor."""
    folder.mkdir(parents=True)
    config = {
        "vocab_size": 201_088,
        "max_position_embeddings": 131_072,
        "quantization_config": {"quant_method": "mxfp4"},
    }
    (folder / "config.json").write_text(json.dumps(config))
    header = json.dumps({"w": {"dtype": "U8", "shape": [1], "data_offsets": [0, 1]}}).encode()
    (folder / "model.safetensors").write_bytes(len(header).to_bytes(8, "little") + header + b"\0")
    return folder


def fake_engine(folder: Path, *words: object, **changes: Any) -> dict[str, Any]:
    """The ``engine`` of a benchmark's file: fake servers that behave as ``words`` say, all below ``folder``."""
    programs = folder / "bin"
    if not programs.exists():
        programs.mkdir(parents=True)
        program = programs / "trtllm-serve"
        program.write_text(
            "#!/bin/sh\n"
            'eval "set -- --model \\"$(basename "$1")\\" \\"\\$@\\" $FAKE_WORDS"\n'  # the words are quoted for a shell
            f'exec {shlex.quote(sys.executable)} {shlex.quote(str(FAKE_SERVER))} "$@"\n'
        )
        program.chmod(0o755)
        write_checkpoint(folder / "models" / "gpt-oss-120b")
    replicas = changes.get("replicas", 1)
    env = {"PATH": f"{programs}:{os.environ['PATH']}", "FAKE_WORDS": shlex.join(map(str, words))}
    return {
        "kind": "http",
        "server": "trtllm-serve",
        "version": "1.2",
        "checkpoint": {
            "name": "openai/gpt-oss-120b",
            "path": str(folder / "models" / "gpt-oss-120b"),
            "weight_data_type": "mxfp4",
        },
        "options": {"max_batch_size": 64, "max_seq_len": 35_840, "kv_cache_config": {"enable_block_reuse": False}},
        "launch": {"port": free_ports(replicas), "env": env, "ready_s": 60},
        **changes,
    }


def fake_http_engine(folder: Path, *words: object, **changes: Any) -> HttpEngine:
    """The same, read."""
    return HttpEngine.model_validate(fake_engine(folder, *words, **changes))
