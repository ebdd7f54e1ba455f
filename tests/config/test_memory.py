"""Sizes as system files tell them."""

from __future__ import annotations

import pytest

from harness.config.memory import Cache, capacity_bytes, estimate, kv_element_bytes
from harness.rules.models import find


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("180 GB", 180 * 10**9),
        ("180GB", 180 * 10**9),
        ("179.1 GiB HBM3e", int(179.1 * 2**30)),
        ("1.5 TB", 1_500_000_000_000),
        (" 81559 MiB", 81559 * 2**20),
        ("Shared with host", None),
        ("N/A", None),
        ("", None),
        ("288", None),
        ("288 GBit", None),
    ],
)
def test_capacities(text: str, size: int | None) -> None:
    assert capacity_bytes(text) == size


def test_sizes_of_an_element() -> None:
    assert [kv_element_bytes(dtype) for dtype in ("FP8", "auto", "nvfp4", "int3")] == [1.0, 2.0, 0.5625, None]


def test_a_type_that_is_not_known_is_the_callers_fault() -> None:
    facts = find("openai/gpt-oss-120b")
    assert facts is not None
    with pytest.raises(ValueError, match="int3"):
        estimate(facts, 1, 10, Cache("int3", 0.9, True, 1, 1), 10, None)


def test_pipeline_parallel_divides_layers() -> None:
    facts = find("openai/gpt-oss-120b")
    assert facts is not None
    found = estimate(facts, 8 * 10**9, 10**11, Cache("bf16", 1.0, True, 1, 4), 1000, None)
    assert found.problem is None
    assert found.lines[2] == "KV of a request: 5 layers x 1024 elements x 2 bytes x 1000 tokens = 0.010 GB"
