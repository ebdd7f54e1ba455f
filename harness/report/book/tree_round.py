"""Which round a tree is of: what its manifests say, else by the seeds that its runs were made with."""

from __future__ import annotations

import contextlib
import itertools
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.gate.leg_facts import DETAIL
from harness.gate.manifest_check import NAME
from harness.gate.row_layout import RUN
from harness.logs import DetailLog, EndpointsLog, LogError
from harness.logs.endpoints import CONFIGS, SAMPLE_INDEX_SEED
from harness.rules import LATEST, RulePack, load, rounds

_LOOKED_AT: Final = 8
"""Rows that are asked for their seeds: those of one tree are of one round."""
_ROWS: Final = "*/*/results/*/*/*"


@dataclass(frozen=True, slots=True)
class RoundOfTree:
    """The round whose rules a tree is read by, and what is to be known of the choice; None where it is plain."""

    pack: RulePack
    note: str | None = None


def round_of_tree(root: Path) -> RoundOfTree:
    """The round that a tree's manifests name, or whose seeds its logs have; the latest where neither tells."""
    told = sorted(set(_told(root)))
    known = [name for name in told if name in rounds()]
    if len(told) == 1 and known:
        return RoundOfTree(load(known[0]))
    if told:
        latest = known[-1] if known else LATEST
        return RoundOfTree(
            load(latest), f"its manifests name {' and '.join(told)}: it is read by the rules of {latest}"
        )
    seeds = next(_seeds(root), None)
    for name in rounds():
        if seeds is not None and seeds == load(name).seeds.sample_index.value:
            return RoundOfTree(load(name))
    why = "no log tells a seed" if seeds is None else f"its seed {seeds} is of no round that is known here"
    return RoundOfTree(
        load(LATEST), f"nothing says which round it is of, and {why}: it is read by the rules of {LATEST}"
    )


def _told(root: Path) -> Iterator[str]:
    for path in sorted(root.glob(f"*/*/{NAME}")):
        with contextlib.suppress(OSError, ValueError, RecursionError):  # what is no manifest, the gate tells
            content = json.loads(path.read_bytes())
            if isinstance(content, dict) and isinstance(content.get("round"), str):
                yield content["round"]


def _seeds(root: Path) -> Iterator[int]:
    """The seed of the sample index, by the first rows that tell one."""
    for path in itertools.islice(sorted(root.glob(f"{_ROWS}/{RUN}/{DETAIL}")), _LOOKED_AT):
        with contextlib.suppress(LogError):
            seed = DetailLog.read(path).integer("effective_sample_index_rng_seed")
            if seed is not None:
                yield seed
    for path in itertools.islice(sorted(root.glob(f"{_ROWS}/{CONFIGS[0].stem}.y*ml")), _LOOKED_AT):
        with contextlib.suppress(LogError):
            seed = EndpointsLog.read(path.parent).integer(SAMPLE_INDEX_SEED)
            if seed is not None:
                yield seed
