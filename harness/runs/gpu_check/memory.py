"""Memory of the accelerators, before and after an engine loaded, against the size of its weights."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.runs.gpu_check.report import Outcome, judged, not_asked

GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True)
class Card:
    """One accelerator: its model, and bytes of its memory in all and in use."""

    model: str
    total: int
    used: int


def read_cards(library: str = "pynvml") -> tuple[Card, ...] | str:
    """The accelerators that NVML counts, in its order; why there are none where there are none."""
    try:
        nvml = importlib.import_module(library)
    except ImportError:
        return f"the Python module {library} is not installed"
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        return f"NVML: {error}"
    try:
        cards = []
        for i in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(i)
            memory = nvml.nvmlDeviceGetMemoryInfo(handle)
            cards.append(Card(str(nvml.nvmlDeviceGetName(handle)), int(memory.total), int(memory.used)))
        return tuple(cards) or "NVML counts no device"
    except nvml.NVMLError as error:
        return f"NVML: {error}"
    finally:
        nvml.nvmlShutdown()


def weights_bytes(folder: Path) -> int:
    """Bytes of a checkpoint's weights as they lie on disk."""
    return sum(path.stat().st_size for path in folder.glob("*.safetensors"))


def judge_memory(
    before: Sequence[Card] | str, after: Sequence[Card] | str, weights: int, fraction: float | None
) -> Outcome:
    """Whether what loading took is what is expected: all of the weights, and of the rest the KV cache's share.

    ``fraction`` is of the memory that is free once the weights are loaded; None for an engine without such a setting.
    The workspace beside both is not known beforehand: up to a tenth of the card is allowed for it.
    """
    if isinstance(before, str) or isinstance(after, str):
        return not_asked(before if isinstance(before, str) else str(after))
    taken = [b.used - a.used for a, b in zip(before, after, strict=True)]
    cards = [i for i, each in enumerate(taken) if each > weights / (2 * len(taken))]
    seen = "; ".join(
        f"{card.model}: {each / GIB:.1f} GiB of {card.total / GIB:.1f}" for card, each in zip(after, taken, strict=True)
    )
    seen += f"; weights {weights / GIB:.1f} GiB"
    if not cards:
        return judged(False, f"{seen}: no card took a share of the weights")
    free = sum(after[i].total - before[i].used for i in cards)
    least = weights if fraction is None else weights + fraction * (free - weights)
    most = least + 0.1 * sum(after[i].total for i in cards)
    sum_taken = sum(taken[i] for i in cards)
    seen += f"; estimated {least / GIB:.1f} to {most / GIB:.1f} GiB on {len(cards)} of them"
    return judged(0.9 * least <= sum_taken <= most, seen)
