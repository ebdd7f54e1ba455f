"""Memory before and after loading: read off NVML, and held against weights and cache."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.runs.gpu_check.memory import GIB, Card, judge_memory, read_cards, weights_bytes
from harness.runs.gpu_check.report import Status


class NvmlError(Exception):
    pass


def nvml(cards: Sequence[Card] = (), *, starts: bool = True, tells: bool = True) -> SimpleNamespace:
    """A made-up ``pynvml``."""

    def init() -> None:
        if not starts:
            raise NvmlError("driver not loaded")

    def memory(i: int) -> SimpleNamespace:
        if not tells:
            raise NvmlError("not supported")
        return SimpleNamespace(total=cards[i].total, used=cards[i].used)

    return SimpleNamespace(
        NVMLError=NvmlError,
        nvmlInit=init,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetCount=lambda: len(cards),
        nvmlDeviceGetHandleByIndex=lambda i: i,
        nvmlDeviceGetMemoryInfo=memory,
        nvmlDeviceGetName=lambda i: cards[i].model,
    )


def test_cards_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    cards = (Card("NVIDIA B200", 180 * GIB, GIB), Card("NVIDIA B200", 180 * GIB, 0))
    monkeypatch.setitem(sys.modules, "made_up_nvml", nvml(cards))
    assert read_cards("made_up_nvml") == cards


@pytest.mark.parametrize(
    ("library", "says"),
    [
        (nvml(), "counts no device"),
        (nvml(starts=False), "driver not loaded"),
        (nvml([Card("x", 1, 0)], tells=False), "not supported"),
        (None, "made_up_nvml is not installed"),
    ],
)
def test_no_cards_and_why(library: object, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "made_up_nvml", library)
    found = read_cards("made_up_nvml")
    assert isinstance(found, str)
    assert says in found


def card(used: float, total: float = 180) -> Card:
    return Card("B200", int(total * GIB), int(used * GIB))


@pytest.mark.parametrize(
    ("before", "after", "weights", "fraction", "status", "says"),
    [
        # 60 + 0.8 * (179 - 60) = 155.2 of weights and cache, and up to 18 of workspace
        ([card(1)], [card(161)], 60, 0.8, Status.PASSED, "estimated 155.2 to 173.2 GiB"),
        ([card(1)], [card(101)], 60, 0.8, Status.FAILED, "100.0 GiB of 180.0"),
        ([card(1)], [card(179)], 60, 0.8, Status.FAILED, "178.0 GiB of 180.0"),
        ([card(0)], [card(62)], 60, None, Status.PASSED, "estimated 60.0 to 78.0"),
        # of two cards one is used, and tensor parallel uses both
        ([card(0), card(0)], [card(0), card(160)], 60, 0.8, Status.PASSED, "on 1 of them"),
        ([card(0), card(0)], [card(155), card(155)], 60, 0.8, Status.PASSED, "on 2 of them"),
        ([card(1)], [card(1)], 60, 0.8, Status.FAILED, "no card took a share"),
        ("NVML: no driver", [card(1)], 60, 0.8, Status.NOT_ASKED, "no driver"),
        ([card(1)], "NVML: gone", 60, 0.8, Status.NOT_ASKED, "gone"),
    ],
)
def test_memory_is_judged(
    before: Sequence[Card] | str,
    after: Sequence[Card] | str,
    weights: int,
    fraction: float | None,
    status: Status,
    says: str,
) -> None:
    outcome = judge_memory(before, after, weights * GIB, fraction)
    assert outcome.status is status, outcome.seen
    assert says in outcome.seen


def test_weights_are_what_lies_on_disk(tmp_path: Path) -> None:
    for name, size in (("a.safetensors", 10), ("b.safetensors", 5), ("tokenizer.json", 100)):
        (tmp_path / name).write_bytes(bytes(size))
    assert weights_bytes(tmp_path) == 15
