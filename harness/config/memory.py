"""What weights and KV cache take of an accelerator's memory, with the arithmetic shown."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

from harness.rules.models import ModelFacts

_CAPACITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(MB|GB|TB|MiB|GiB|TiB)\b")
_UNITS = {"MB": 10**6, "GB": 10**9, "TB": 10**12, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}
_KV_BYTES = {
    "auto": 2.0,  # at most: a checkpoint may say fewer
    "bfloat16": 2.0,
    "bf16": 2.0,
    "float16": 2.0,
    "fp16": 2.0,
    "half": 2.0,
    "float32": 4.0,
    "fp8": 1.0,
    "fp8_e4m3": 1.0,
    "fp8_e5m2": 1.0,
    "int8": 1.0,
    "nvfp4": 0.5625,  # four bits, and a scale of eight for every sixteen elements
}


@dataclass(frozen=True, slots=True)
class Cache:
    """How the KV cache is kept: as what, with which share of the memory, and how it is divided.

    ``of_free``: ``fraction`` is of what the weights leave free, otherwise of the whole memory, weights included.
    ``split_heads`` is False where each GPU keeps requests of its own (attention data parallel).
    """

    dtype: str
    fraction: float
    of_free: bool
    tensor: int
    pipeline: int
    split_heads: bool = True


@dataclass(frozen=True, slots=True)
class Estimate:
    """The arithmetic in lines, and what is wrong with it: None where all fits."""

    lines: tuple[str, ...]
    problem: str | None


def capacity_bytes(text: str) -> int | None:
    """What a system file says of an accelerator's memory, in bytes; None where it tells no number. A GB is 10^9."""
    found = _CAPACITY.match(text)
    return None if found is None else int(float(found[1]) * _UNITS[found[2]])


def kv_element_bytes(dtype: str) -> float | None:
    """Bytes of one element of the KV cache; None for a type that is not known."""
    return _KV_BYTES.get(dtype.lower())


def estimate(
    facts: ModelFacts, tensor_bytes: int, capacity: int, cache: Cache, request_tokens: int, max_batch: int | None
) -> Estimate:
    """Whether the weights leave room for at least one request of ``request_tokens`` tokens on each GPU.

    Activations, CUDA graphs and the engine's own buffers are not counted: they come out of what is left.
    """
    gpus = cache.tensor * cache.pipeline
    weights = math.ceil(tensor_bytes / gpus)
    kv = int(cache.fraction * (capacity - weights)) if cache.of_free else int(cache.fraction * capacity) - weights
    request, lines = _request(facts, cache, request_tokens)
    share = (
        f"{cache.fraction:g} x ({_gb(capacity)} - {_gb(weights)})"
        if cache.of_free
        else (f"{cache.fraction:g} x {_gb(capacity)} - {_gb(weights)}")
    )
    told = [
        f"weights: {_gb(tensor_bytes)} / (tensor {cache.tensor} x pipeline {cache.pipeline}) = {_gb(weights)} a GPU",
        f"KV cache: {share} = {_gb(kv)} a GPU",
        *lines,
    ]
    if weights > capacity or kv <= 0:
        return Estimate(tuple(told), f"the weights take {_gb(weights)} of a GPU's {_gb(capacity)}")
    fit = kv // request
    bound = "" if max_batch is None else f" (max_batch is {max_batch}: beyond, requests wait or are shorter)"
    told.append(f"requests of {request_tokens} tokens that fit at once: {_gb(kv)} / {_gb(request)} = {fit}{bound}")
    problem = None if fit else f"one request of {request_tokens} tokens takes {_gb(request)}, {_gb(kv)} are free for it"
    return Estimate(tuple(told), problem)


def _request(facts: ModelFacts, cache: Cache, tokens: int) -> tuple[int, list[str]]:
    """Bytes that a request of ``tokens`` takes on one GPU, and how they come about."""
    element = kv_element_bytes(cache.dtype)
    if element is None:
        raise ValueError(f"no size of {cache.dtype!r} is known")
    elements = facts.kv_elements(cache.tensor if cache.split_heads else 1)
    layer = elements * element
    full = math.ceil((facts.layers - facts.window_layers) / cache.pipeline)
    windows = math.ceil(facts.window_layers / cache.pipeline)
    whole = math.ceil(full * layer * tokens)
    lines = [
        f"KV of a request: {full} layers x {elements} elements x {element:g} bytes x {tokens} tokens = {_gb(whole)}"
    ]
    if windows and facts.window is not None:
        held = min(tokens, facts.window)
        seen = math.ceil(windows * layer * held)
        lines.append(f"and {windows} layers that see {held} tokens at most, counted with so many = {_gb(seen)}")
        whole += seen
    return whole, lines


def _gb(size: int) -> str:
    return f"{size / 1e9:.3f} GB" if abs(size) < 10**10 else f"{size / 1e9:.1f} GB"
