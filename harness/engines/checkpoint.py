"""Checkpoints: what one is called and hashes to, and tiny stand-ins with the architecture of the real ones.

:func:`digest` and :func:`describe` read files only; torch and transformers are imported only when there is something
to make: by :func:`make_tiny_gpt_oss` here, by :mod:`~harness.engines.tiny_qwen3_vl` and
:mod:`~harness.engines.tiny_deepseek_v3` for the other targets.

A stand-in has the target's layers, attention sinks, sliding window, mixture of experts and full vocabulary at a
fraction of its width. Its weights are random: it shows that inference runs, never how well the target answers. It
carries :data:`STAND_IN` in its folder, so that no run of it can pass for one of the target.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any

from harness.engines.base import Checkpoint
from harness.errors import ConfigError, MissingError

if TYPE_CHECKING:
    from transformers import PreTrainedModel

STAND_IN = "STAND_IN.json"
"""The file that marks a checkpoint as a stand-in and says how it was made."""

_CHUNK_BYTES = 1 << 22
_DATA_TYPES = {"F32": "fp32", "F16": "fp16", "BF16": "bf16", "F8_E4M3": "fp8", "F8_E5M2": "fp8"}

# Of https://huggingface.co/openai/gpt-oss-120b: config.json and generation_config.json.
_GPT_OSS_VOCABULARY = 201_088
_SHARED_COORDINATE = 0.1  # five times the standard deviation of the others
_AGAINST_THE_END = -10.0
_GPT_OSS_IDS = {"bos_token_id": 199_998, "pad_token_id": 199_999, "eos_token_id": 200_002}


def digest(folder: Path) -> str:
    """The sha256, in hex, over the relative names, sizes and contents of all files under ``folder``, in order of name.

    Raises MissingError where there is no such folder.
    """
    if not folder.is_dir():
        raise _no_folder(folder)
    total = hashlib.sha256()
    files = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    for name in sorted(files):
        with files[name].open("rb") as file:
            total.update(json.dumps([name, files[name].stat().st_size]).encode() + b"\n")
            while chunk := file.read(_CHUNK_BYTES):
                total.update(chunk)
    return total.hexdigest()


def describe(folder: Path) -> Checkpoint:
    """What the checkpoint in ``folder`` is. Raises MissingError (no folder), ConfigError (not a checkpoint)."""
    config = read_config(folder)
    stand_in = _read_stand_in(folder)
    return Checkpoint(
        name=folder.resolve().name if stand_in is None else str(stand_in.get("name", folder.name)),
        sha256=digest(folder),
        stand_in=stand_in is not None,
        weight_data_type=_weight_data_type(folder, config),
    )


def read_config(folder: Path) -> dict[str, Any]:
    """The ``config.json`` of a checkpoint. Raises MissingError (no folder), ConfigError (none, or not JSON)."""
    if not folder.is_dir():
        raise _no_folder(folder)
    config = read_json(folder / "config.json")
    if config is None:
        raise ConfigError(
            "this folder is no checkpoint: it has no config.json",
            where=folder,
            expected="config.json and *.safetensors, as transformers' save_pretrained writes them",
            mend="give the folder that holds the weights",
        )
    if not any(folder.glob("*.safetensors")):
        raise ConfigError(
            "this checkpoint has no weights",
            where=folder,
            expected="one or more *.safetensors beside config.json",
            mend="finish the download, or give the folder that holds the weights",
        )
    return config


def weight_data_type(folder: Path) -> str:
    """The type of most of the weights' bytes, or the quantization that the checkpoint declares; nothing is hashed.

    Raises as :func:`read_config` does.
    """
    return _weight_data_type(folder, read_config(folder))


def make_tiny_gpt_oss(
    folder: Path,
    *,
    seed: int,
    hidden_size: int = 64,
    layers: int = 2,
    heads: int = 8,
    key_value_heads: int = 2,
    head_dim: int = 16,
    experts: int = 8,
    experts_per_token: int = 2,
    vocab_size: int = _GPT_OSS_VOCABULARY,
) -> Path:
    """A GPT-OSS of random weights in ``folder``, bfloat16; returns ``folder``.

    Whatever is not an argument is as in the 120B model: attention sinks, a sliding window of 128 in every other layer,
    yarn-scaled positions, the ids of its special tokens. A stand-in made earlier with the same arguments and library
    versions is used again, one made otherwise is replaced; a folder that is no stand-in is left alone (ConfigError).
    MissingError where torch or transformers is not installed.
    """
    config = {
        "vocab_size": vocab_size,
        "hidden_size": hidden_size,
        "intermediate_size": hidden_size,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "num_key_value_heads": key_value_heads,
        "head_dim": head_dim,
        "num_local_experts": experts,
        "num_experts_per_tok": experts_per_token,
        **(_GPT_OSS_IDS if vocab_size == _GPT_OSS_VOCABULARY else {}),
    }
    asked = {
        "name": f"tiny-gpt-oss-h{hidden_size}-l{layers}-seed{seed}",
        "what": "a stand-in of gpt-oss-120b: its architecture, far narrower, with random weights",
        "architecture": "GptOssForCausalLM",
        "seed": seed,
        "end_token": "never sampled",
        "config": config,
        "versions": library_versions(),
    }
    return stand_in(folder, asked, lambda made: _save_gpt_oss(made, config, seed))


def stand_in(folder: Path, asked: Mapping[str, object], save: Callable[[Path], None]) -> Path:
    """A stand-in that is as ``asked``, which :data:`STAND_IN` will say; ``save`` writes the rest into a new folder.

    One made earlier is used again where it says the same. ConfigError where ``folder`` is no stand-in.
    """
    if not _there_already(folder, asked):
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix=f".{folder.name}.") as scratch:
            made = Path(scratch) / "new"
            save(made)
            (made / STAND_IN).write_text(json.dumps(asked, indent=2) + "\n", encoding="utf-8")
            _put_in_place(made, folder, asked, Path(scratch) / "old")
    return folder


def _save_gpt_oss(folder: Path, config: dict[str, int], seed: int) -> None:
    import torch
    from transformers import GptOssConfig, GptOssForCausalLM, logging

    logging.disable_progress_bar()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = GptOssForCausalLM(GptOssConfig(**config))
    end = model.config.eos_token_id
    if end is not None and end < model.config.vocab_size:
        never_sampled(model, slice(end, end + 1))
    model.to(torch.bfloat16).save_pretrained(folder)


def never_sampled(model: PreTrainedModel, ids: slice) -> None:
    """Keeps tokens of a random model from being sampled: its end token, so that every answer runs to its cap.

    A random model samples each token about as often as any other: once in some ten thousand answers the end token would
    come first or second, and an answer so short is a failed sample. The first coordinate of every embedding is made the
    same, well above the others, and the tokens' rows of the head are set against it.
    """
    import torch

    with torch.no_grad():
        model.get_input_embeddings().weight[:, 0] = _SHARED_COORDINATE
        model.get_output_embeddings().weight[ids, 0] = _AGAINST_THE_END


def _there_already(folder: Path, asked: Mapping[str, object]) -> bool:
    if not folder.exists():
        return False
    found = _read_stand_in(folder) if folder.is_dir() else None
    if found is None:
        raise ConfigError(
            "a stand-in checkpoint would replace something that is none",
            where=folder,
            expected=f"nothing there, or a folder with a {STAND_IN}",
            mend="give another folder, or move this one away",
        )
    return found == asked


def _put_in_place(made: Path, folder: Path, asked: Mapping[str, object], aside: Path) -> None:
    """Renames ``made`` to ``folder``; another process that was first with the same stand-in wins."""
    if folder.exists():
        folder.rename(aside)
    try:
        made.rename(folder)
    except OSError:
        if not _there_already(folder, asked):
            raise
    shutil.rmtree(aside, ignore_errors=True)


def library_versions() -> dict[str, str]:
    """The versions of what makes weights from a seed. Raises MissingError where it is not installed."""
    return {name: _version(name) for name in ("torch", "transformers")}


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        raise MissingError(
            f"{package} is not installed",
            expected="the packages of the torch engine",
            mend="pip install 'mlperf-inference-harness[torch]'",
        ) from None


def _no_folder(folder: Path) -> MissingError:
    return MissingError("there is no such checkpoint", where=folder, mend="make it or fetch it first, or mend the path")


def _read_stand_in(folder: Path) -> dict[str, Any] | None:
    return read_json(folder / STAND_IN)


def read_json(path: Path) -> dict[str, Any] | None:
    """The JSON object in ``path``, None where there is no such file. Raises ConfigError for anything else."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except (ValueError, RecursionError) as error:
        raise ConfigError(
            f"this file is not JSON: {error}", where=path, mend="fetch or make the checkpoint again"
        ) from None
    if not isinstance(found, dict):
        raise ConfigError("this file holds no JSON object", where=path, mend="fetch or make the checkpoint again")
    return found


def _weight_data_type(folder: Path, config: dict[str, Any]) -> str:
    """The type of most of the weights' bytes, or the quantization that ``config.json`` declares."""
    quantization = config.get("quantization_config")
    if isinstance(quantization, dict) and isinstance(quantization.get("quant_method"), str):
        return str(quantization["quant_method"])
    sizes: Counter[str] = Counter()
    for path in sorted(folder.glob("*.safetensors")):
        for dtype, size in _tensor_sizes(path):
            sizes[dtype] += size
    dtype = sizes.most_common(1)[0][0] if sizes else "none"
    return _DATA_TYPES.get(dtype, dtype.lower())


def _tensor_sizes(path: Path) -> list[tuple[str, int]]:
    """Data type and bytes of each tensor of a safetensors file, from its header (8 bytes of length, then JSON)."""
    try:
        with path.open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            if length > path.stat().st_size:
                raise ValueError("the header ends beyond the file")
            header: dict[str, Any] = json.loads(file.read(length))
        tensors = [entry for name, entry in header.items() if name != "__metadata__"]
        return [(str(entry["dtype"]), entry["data_offsets"][1] - entry["data_offsets"][0]) for entry in tensors]
    except (struct.error, ValueError, AttributeError, KeyError, TypeError, IndexError, RecursionError):
        raise ConfigError(
            "this file is not safetensors", where=path, mend="fetch or make the checkpoint again"
        ) from None
