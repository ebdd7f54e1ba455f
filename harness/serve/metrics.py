"""``/metrics``: how full this server is, in the words of the server that it imitates."""

from __future__ import annotations

import time
from dataclasses import dataclass

from harness.serve.shapes import Content, to_json

JSON = "application/json"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(frozen=True, slots=True)
class Load:
    """What there is to tell. ``outstanding`` answers are under way or wait, for ``slots`` that work at once;
    ``positions`` are the tokens that fit the KV cache, of which the share ``kv_cache`` is taken (None: not told).
    """

    slots: int
    outstanding: int
    completed: int
    positions: int
    kv_cache: float | None

    @property
    def running(self) -> int:
        """Those of the outstanding that have a slot."""
        return min(self.slots, self.outstanding)

    @property
    def waiting(self) -> int:
        """The others."""
        return self.outstanding - self.running


@dataclass(frozen=True, slots=True)
class Told:
    """The body of a response and its type."""

    body: bytes
    media_type: str


def iterations(model: str, load: Load) -> Told:
    """trtllm-serve's: iteration statistics, of which there is the newest; blocks of the cache are of one token."""
    newest: Content = {
        "timestamp": time.strftime("%m-%d-%Y %H:%M:%S", time.gmtime()),
        "maxNumActiveRequests": load.slots,
        "numActiveRequests": load.running,
        "numQueuedRequests": load.waiting,
        "numCompletedRequests": load.completed,
    }
    if load.kv_cache is not None:
        used = round(load.kv_cache * load.positions)
        blocks = {"maxNumBlocks": load.positions, "usedNumBlocks": used, "freeNumBlocks": load.positions - used}
        newest = {**newest, "kvCacheStats": {**blocks, "tokensPerBlock": 1}}
    return Told(to_json([newest]), JSON)


def prometheus(model: str, load: Load) -> Told:
    """vLLM's, as far as it is about this."""
    gauges = {
        "vllm:num_requests_running": ("Requests that are computed.", float(load.running)),
        "vllm:num_requests_waiting": ("Requests that wait.", float(load.waiting)),
    }
    if load.kv_cache is not None:
        gauges["vllm:kv_cache_usage_perc"] = ("The share of the KV cache that is taken.", load.kv_cache)
    name = model.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
    lines = (
        f'# HELP {gauge} {meaning}\n# TYPE {gauge} gauge\n{gauge}{{engine="0",model_name="{name}"}} {value}\n'
        for gauge, (meaning, value) in gauges.items()
    )
    return Told("".join(lines).encode(), PROMETHEUS)
