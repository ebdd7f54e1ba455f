"""Tiny checkpoints, made once for all tests of this folder that need weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def tiny_gpt_oss(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a GPT-OSS 64 wide with 2 layers and the full vocabulary, seed 7."""
    from harness.engines.checkpoint import make_tiny_gpt_oss

    return make_tiny_gpt_oss(tmp_path_factory.mktemp("checkpoints") / "tiny-gpt-oss", seed=7)


@pytest.fixture(scope="session")
def tiny_qwen3_vl(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a Qwen3-VL 64 wide with 2 layers, a vision tower and the full vocabulary, seed 7."""
    from harness.engines.tiny_qwen3_vl import make_tiny_qwen3_vl

    return make_tiny_qwen3_vl(tmp_path_factory.mktemp("checkpoints") / "tiny-qwen3-vl", seed=7)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """torch at one thread, whatever the test asks of it."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tiny_deepseek_v3(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a DeepSeek-V3 64 wide with 2 layers and the vocabulary of Qwen3, seed 7."""
    from harness.engines.tiny_deepseek_v3 import make_tiny_deepseek_v3

    return make_tiny_deepseek_v3(tmp_path_factory.mktemp("checkpoints") / "tiny-deepseek-v3", seed=7)
