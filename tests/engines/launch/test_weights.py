from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from harness.config.engines import ServedCheckpoint, TinyCheckpoint
from harness.engines.checkpoint import STAND_IN
from harness.engines.launch import weights
from harness.engines.launch.weights import config_number, described, folder_of
from harness.errors import ConfigError
from harness.events import ignore
from tests.engines.launch.made import Notes


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))


def write_weights(path: Path, dtype: str = "BF16") -> None:
    header = json.dumps({"w": {"dtype": dtype, "shape": [4], "data_offsets": [0, 8]}}).encode()
    path.write_bytes(len(header).to_bytes(8, "little") + header + np.arange(8, dtype=np.uint8).tobytes())


@pytest.fixture
def hub_folder(tmp_path: Path) -> Path:
    """A checkpoint as a hub's cache has it: a snapshot of links into a folder of blobs."""
    blobs, snapshot = tmp_path / "hub" / "blobs", tmp_path / "hub" / "snapshots" / "b5c939de"
    blobs.mkdir(parents=True)
    snapshot.mkdir(parents=True)
    (blobs / "0a").write_text(json.dumps({"text_config": {"vocab_size": 7}, "max_position_embeddings": 9}))
    write_weights(blobs / "0b")
    (snapshot / "config.json").symlink_to(blobs / "0a")
    (snapshot / "model-00001-of-00001.safetensors").symlink_to(blobs / "0b")
    return snapshot


def served(path: Path, weight_data_type: str = "bf16") -> ServedCheckpoint:
    return ServedCheckpoint(name="openai/gpt-oss-120b", path=path, weight_data_type=weight_data_type)


def test_a_hubs_snapshot(hub_folder: Path) -> None:
    found = described(served(hub_folder), ignore)
    assert found is not None
    assert (found.name, found.weight_data_type, found.stand_in) == ("openai/gpt-oss-120b", "bf16", False)
    assert config_number(hub_folder, "vocab_size") == 7
    assert config_number(hub_folder, "max_position_embeddings") == 9


def test_it_is_hashed_once_until_a_file_changes(hub_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    hashed: list[Path] = []
    real = weights.describe

    def describe(folder: Path) -> object:
        hashed.append(folder)
        return real(folder)

    monkeypatch.setattr(weights, "describe", describe)
    first = described(served(hub_folder), ignore)
    assert described(served(hub_folder), ignore) == first
    assert len(hashed) == 1
    blob = hub_folder.parents[1] / "blobs" / "0b"
    write_weights(blob, "F16")
    os.utime(blob, ns=(1, 1))
    second = described(served(hub_folder, "fp16"), ignore)
    assert len(hashed) == 2
    assert first is not None
    assert second is not None
    assert second.sha256 != first.sha256


def test_a_damaged_memory_is_made_again(hub_folder: Path, tmp_path: Path) -> None:
    first = described(served(hub_folder), ignore)
    (memory,) = (tmp_path / "cache" / "digests").iterdir()
    for damage in ("{", "[]", '{"checkpoint": {}}', '{"checkpoint": {"name": 1}}'):
        memory.write_text(damage)
        assert described(served(hub_folder), ignore) == first


def test_a_large_one_is_told_of(hub_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "_GIGA", 10)
    notes = Notes()
    described(served(hub_folder), notes)
    described(served(hub_folder), notes)
    assert len(notes.lines) == 1
    assert "hashing the checkpoint" in notes.lines[0]


def test_another_data_type_than_stated(hub_folder: Path) -> None:
    with pytest.raises(ConfigError, match="the weights are bf16, the configuration says mxfp4"):
        described(served(hub_folder, "mxfp4"), ignore)


def test_a_quantizing_tool_says_no_data_type(hub_folder: Path) -> None:
    config = {"quantization_config": {"quant_method": "modelopt"}}
    (hub_folder.parents[1] / "blobs" / "0a").write_text(json.dumps(config))
    found = described(served(hub_folder, "nvfp4"), ignore)
    assert found is not None
    assert found.weight_data_type == "nvfp4"


@pytest.mark.parametrize("stated", ["bf16", "BF16", "fp16", "fp32"])
def test_what_a_tool_quantized_is_not_stated_as_full_precision(hub_folder: Path, stated: str) -> None:
    config = {"quantization_config": {"quant_method": "modelopt"}}
    (hub_folder.parents[1] / "blobs" / "0a").write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=f"the weights are modelopt, the configuration says {stated}"):
        described(served(hub_folder, stated), ignore)


def test_out_of_sight(tmp_path: Path) -> None:
    assert described(served(tmp_path / "in-the-container"), ignore) is None


def test_a_folder_that_is_no_checkpoint(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    with pytest.raises(ConfigError, match="this folder is no checkpoint"):
        described(served(tmp_path / "models"), ignore)


def test_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert folder_of(served(Path("~/models/x"))) == Path("/home/me/models/x")
    made = tmp_path / "cache" / "checkpoints"
    assert folder_of(TinyCheckpoint(make="tiny-gpt-oss", seed=3)) == made / "tiny-gpt-oss-64x2-3"
    assert folder_of(TinyCheckpoint(make="tiny-qwen3-vl", layers=4)) == made / "tiny-qwen3-vl-64x4-0"


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"vocab_size": "7"}', '{"vocab_size": true}', '{"text_config": []}'])
def test_no_number(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.json").write_text(text)
    assert config_number(tmp_path, "vocab_size") is None
    assert config_number(tmp_path / "nowhere", "vocab_size") is None


@pytest.mark.parametrize("name", ["tiny-gpt-oss", "tiny-qwen3-vl"])
def test_a_stand_in_is_made_where_it_lies_and_known_as_one(
    name: Literal["tiny-gpt-oss", "tiny-qwen3-vl"], monkeypatch: pytest.MonkeyPatch
) -> None:
    def make(folder: Path, **asked: int) -> Path:
        folder.mkdir(parents=True)
        (folder / "config.json").write_text('{"vocab_size": 9}')
        (folder / STAND_IN).write_text(json.dumps({"name": f"tiny of {asked}"}))
        write_weights(folder / "model.safetensors")
        return folder

    monkeypatch.setattr(weights, "MAKERS", {name: make})
    tiny = TinyCheckpoint(make=name, hidden_size=16, layers=1)
    assert described(tiny, ignore) is None
    folder = weights.made(tiny)
    assert folder == folder_of(tiny)
    found = described(tiny, ignore)
    assert found is not None
    assert (found.stand_in, found.name) == (True, "tiny of {'seed': 0, 'hidden_size': 16, 'layers': 1}")
    assert config_number(folder, "vocab_size") == 9
