"""Checkpoints: digest, description, and how stand-ins are made, used again and kept from replacing anything else."""

from __future__ import annotations

import json
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from harness.engines import checkpoint
from harness.engines.checkpoint import STAND_IN, describe, digest, make_tiny_gpt_oss
from harness.errors import ConfigError, MissingError


def write_safetensors(path: Path, tensors: dict[str, tuple[str, int]]) -> None:
    """A safetensors file of zeros: name -> (data type, bytes)."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, (dtype, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": [size], "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + bytes(at))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A checkpoint, as far as its files tell."""
    found = tmp_path / "some-model"
    found.mkdir()
    (found / "config.json").write_text('{"architectures": ["SomeForCausalLM"]}')
    write_safetensors(found / "model-1.safetensors", {"norm": ("F32", 64), "head": ("BF16", 640)})
    return found


def test_digest_is_of_names_and_contents_alone(folder: Path, tmp_path: Path) -> None:
    before = digest(folder)
    assert len(bytes.fromhex(before)) == 32
    moved = folder.rename(tmp_path / "elsewhere")
    for path in moved.iterdir():
        path.touch()
    assert digest(moved) == before
    seen = {before}
    for change in (
        lambda: (moved / "config.json").write_text("{}"),
        lambda: (moved / "model-1.safetensors").rename(moved / "model-2.safetensors"),
        lambda: (moved / "empty").touch(),
        lambda: ((moved / "sub").mkdir(), (moved / "empty").rename(moved / "sub" / "empty")),
    ):
        change()
        seen.add(digest(moved))
    assert len(seen) == 5


def test_digest_tells_where_one_file_ends_and_the_next_begins(tmp_path: Path) -> None:
    found = set()
    for name, contents in (("a", {"x": b"12", "y": b"3"}), ("b", {"x": b"1", "y": b"23"})):
        (tmp_path / name).mkdir()
        for file, content in contents.items():
            (tmp_path / name / file).write_bytes(content)
        found.add(digest(tmp_path / name))
    assert len(found) == 2


def test_describe_reads_what_is_there(folder: Path) -> None:
    found = describe(folder)
    assert (found.name, found.stand_in, found.weight_data_type) == ("some-model", False, "bf16")
    assert found.sha256 == digest(folder)


@pytest.mark.parametrize(
    ("tensors", "config", "expected"),
    [
        ({"a": ("F32", 8), "b": ("BF16", 4)}, {}, "fp32"),
        ({"a": ("F8_E4M3", 8)}, {}, "fp8"),
        ({"a": ("I8", 8)}, {}, "i8"),
        ({"a": ("U8", 8), "b": ("BF16", 4)}, {"quantization_config": {"quant_method": "mxfp4"}}, "mxfp4"),
    ],
)
def test_the_weights_say_their_type(
    folder: Path, tensors: dict[str, tuple[str, int]], config: dict[str, Any], expected: str
) -> None:
    (folder / "config.json").write_text(json.dumps(config))
    write_safetensors(folder / "model-1.safetensors", tensors)
    assert describe(folder).weight_data_type == expected


def test_an_absent_folder_is_missing(tmp_path: Path) -> None:
    for ask in (digest, describe):
        with pytest.raises(MissingError, match="no such checkpoint"):
            ask(tmp_path / "absent")


@pytest.mark.parametrize(
    ("file", "content", "words"),
    [
        ("config.json", None, "no config.json"),
        ("config.json", b"{", "not JSON"),
        ("config.json", b"\xff\xfe", "not JSON"),
        ("config.json", b"[" * 100_000, "not JSON"),
        ("config.json", b"[]", "no JSON object"),
        ("model-1.safetensors", None, "no weights"),
        ("model-1.safetensors", b"", "not safetensors"),
        ("model-1.safetensors", struct.pack("<Q", 1 << 60) + b"{}", "not safetensors"),
        ("model-1.safetensors", struct.pack("<Q", 2) + b"[]", "not safetensors"),
        ("model-1.safetensors", struct.pack("<Q", 8) + b'{"a": 1}', "not safetensors"),
        (STAND_IN, b"no", "not JSON"),
    ],
)
def test_what_is_no_checkpoint_is_refused(folder: Path, file: str, content: bytes | None, words: str) -> None:
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(content)
    with pytest.raises(ConfigError, match=words) as caught:
        describe(folder)
    assert str(folder) in str(caught.value)


def test_no_torch_is_needed_to_describe(folder: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from harness.engines.checkpoint import describe; "
        "import harness.engines.torch_cpu; describe(Path(sys.argv[1])); "
        "sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code, folder], check=True)


SMALL = {"hidden_size": 16, "heads": 2, "key_value_heads": 1, "experts": 2, "experts_per_token": 1, "vocab_size": 64}


@pytest.mark.torch
class TestStandIns:
    def test_it_has_the_architecture_of_the_target(self, tiny_gpt_oss: Path) -> None:
        config = json.loads((tiny_gpt_oss / "config.json").read_text())
        assert config["architectures"] == ["GptOssForCausalLM"]
        assert config["layer_types"] == ["sliding_attention", "full_attention"]
        assert (config["vocab_size"], config["sliding_window"], config["eos_token_id"]) == (201_088, 128, 200_002)
        assert config["rope_parameters"]["rope_type"] == "yarn"
        found = describe(tiny_gpt_oss)
        assert (found.name, found.stand_in, found.weight_data_type) == ("tiny-gpt-oss-h64-l2-seed7", True, "bf16")

    def test_it_says_what_it_is(self, tiny_gpt_oss: Path) -> None:
        import torch
        import transformers

        told = json.loads((tiny_gpt_oss / STAND_IN).read_text())
        assert told["seed"] == 7
        assert "stand-in" in told["what"]
        assert told["versions"] == {"torch": torch.__version__, "transformers": transformers.__version__}

    def test_a_seed_makes_the_same_weights_again_and_leaves_the_process_its_own(self, tmp_path: Path) -> None:
        import torch

        before = torch.get_rng_state()
        made = [make_tiny_gpt_oss(tmp_path / name, seed=seed, **SMALL) for name, seed in (("a", 1), ("b", 1), ("c", 2))]
        assert digest(made[0]) == digest(made[1]) != digest(made[2])
        assert torch.get_rng_state().equal(before)

    def test_one_that_is_there_is_used_again_and_another_replaced(self, tmp_path: Path) -> None:
        folder = tmp_path / "models" / "tiny"
        make_tiny_gpt_oss(folder, seed=1, **SMALL)
        first, weights = digest(folder), (folder / "model.safetensors").stat()
        make_tiny_gpt_oss(folder, seed=1, **SMALL)
        assert (folder / "model.safetensors").stat() == weights
        make_tiny_gpt_oss(folder, seed=2, **SMALL)
        assert digest(folder) != first
        assert [path.name for path in folder.parent.iterdir()] == ["tiny"], "nothing is left beside it"

    def test_what_is_no_stand_in_is_left_alone(self, folder: Path, tmp_path: Path) -> None:
        before = digest(folder)
        (tmp_path / "file").write_text("mine")
        for place in (folder, tmp_path / "file"):
            with pytest.raises(ConfigError, match="would replace something that is none"):
                make_tiny_gpt_oss(place, seed=1, **SMALL)
        assert digest(folder) == before
        assert (tmp_path / "file").read_text() == "mine"

    def test_nothing_is_left_of_one_that_failed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        def save(made: Path, *_: object) -> None:
            made.mkdir()
            (made / "half").touch()
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(checkpoint, "_save_gpt_oss", save)
        with pytest.raises(OSError, match="No space"):
            make_tiny_gpt_oss(tmp_path / "tiny", seed=1, **SMALL)
        assert list(tmp_path.iterdir()) == []

    def test_another_process_may_be_first(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        folder, save = tmp_path / "tiny", checkpoint._save_gpt_oss

        def save_late(made: Path, config: dict[str, int], seed: int) -> None:
            save(made, config, seed)
            monkeypatch.setattr(checkpoint, "_save_gpt_oss", save)
            make_tiny_gpt_oss(folder, seed=1, **SMALL)

        monkeypatch.setattr(checkpoint, "_save_gpt_oss", save_late)
        make_tiny_gpt_oss(folder, seed=1, **SMALL)
        assert describe(folder).stand_in
        assert list(tmp_path.iterdir()) == [folder]

    def test_without_the_packages_it_says_which(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        from importlib import metadata

        def version(package: str) -> str:
            raise metadata.PackageNotFoundError(package)

        monkeypatch.setattr(metadata, "version", version)
        with pytest.raises(MissingError, match="torch is not installed") as caught:
            make_tiny_gpt_oss(tmp_path / "tiny", seed=1, **SMALL)
        assert "[torch]" in str(caught.value)
