"""How full servers are, as their ``/metrics`` say: trtllm-serve's iteration statistics, and Prometheus' text of the
others. What a server does not tell, or does not tell now, is not known; nobody waits for it.

Of Prometheus' format three gauges are wanted, each by its name: that takes the name and the number of a line, and no
library.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final

from harness.engines.gauges import together
from harness.engines.launch.http import get
from harness.events import Occupancy

PATH: Final = "/metrics"
TIMEOUT_S: Final = 1.0

_SAMPLE: Final = re.compile(r"(?P<name>[a-zA-Z_:][\w:]*)(?:\{(?P<labels>.*)\})?\s+(?P<value>\S+)(?:\s+-?\d+)?\s*")
_OF_ONE_PRIORITY: Final = re.compile(r'(?:^|,)\s*priority="[^"]')
"""SGLang tells some gauges once more for each priority: a part of what it told already."""


@dataclass(frozen=True, slots=True)
class Names:
    """A server's own names for what :class:`~harness.events.Occupancy` has, newer ones first."""

    running: Sequence[str]
    waiting: Sequence[str]
    kv_cache: Sequence[str]


PROMETHEUS: Final[Mapping[str, Names]] = MappingProxyType(
    {
        "vllm": Names(
            ("vllm:num_requests_running",),
            ("vllm:num_requests_waiting",),
            ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc"),
        ),
        "sglang": Names(("sglang:num_running_reqs",), ("sglang:num_queue_reqs",), ("sglang:token_usage",)),
    }
)
"""By kind of server; the others tell iteration statistics. Read from vllm/v1/metrics/loggers.py and
sglang/srt/metrics/collector.py, as :func:`of_iterations` from tensorrt_llm/serve/openai_server.py.
"""


def of_servers(server: str, urls: Sequence[str], *, timeout_s: float = TIMEOUT_S) -> Occupancy | None:
    """What servers of one kind say together; None where one of them says nothing."""
    told: list[Occupancy] = []
    for url in urls:
        one = of_server(server, url, timeout_s=timeout_s)
        if one is None:
            return None  # those that are left could not change that
        told.append(one)
    return together(told)


def of_server(server: str, url: str, *, timeout_s: float = TIMEOUT_S) -> Occupancy | None:
    """What one server says now."""
    reply = get(url, PATH, timeout_s=timeout_s)
    names = PROMETHEUS.get(server)
    if names is None:
        return of_iterations(reply.json)
    return of_prometheus(reply.body, names) if reply.status == 200 else None


def of_prometheus(text: str, names: Names) -> Occupancy | None:
    """The gauges of one server. A server of several engines tells each by itself: requests add up, and caches are as
    full as they are in the mean.
    """
    found: dict[str, list[float]] = {}
    wanted = (*names.running, *names.waiting, *names.kv_cache)
    for line in text.splitlines():
        sample = _SAMPLE.fullmatch(line) if line.startswith(wanted) else None
        if sample is None or sample["name"] not in wanted or _OF_ONE_PRIORITY.search(sample["labels"] or ""):
            continue
        value = _number(sample["value"])
        if value is not None:
            found.setdefault(sample["name"], []).append(value)
    running, waiting, caches = (_first(found, of) for of in (names.running, names.waiting, names.kv_cache))
    return _some(
        None if running is None else round(sum(running)),
        None if waiting is None else round(sum(waiting)),
        None if caches is None else sum(caches) / len(caches),
    )


def of_iterations(statistics: object) -> Occupancy | None:
    """The newest of TensorRT-LLM's iteration statistics; there are none before it works, or where they are off."""
    newest = statistics[-1] if isinstance(statistics, list) and statistics else None
    if isinstance(newest, str):
        newest = _json(newest)
    if not isinstance(newest, dict):
        return None
    cache = newest.get("kvCacheStats")
    used, most = (cache.get(key) if isinstance(cache, dict) else None for key in ("usedNumBlocks", "maxNumBlocks"))
    share = used / most if _is_count(used) and _is_count(most) and most else None
    running, waiting = (newest.get(key) for key in ("numActiveRequests", "numQueuedRequests"))
    return _some(running if _is_count(running) else None, waiting if _is_count(waiting) else None, share)


def _some(running: int | None, waiting: int | None, kv_cache: float | None) -> Occupancy | None:
    told = Occupancy(running, waiting, kv_cache)
    return None if told == Occupancy() else told


def _first(found: Mapping[str, list[float]], names: Sequence[str]) -> list[float] | None:
    return next((found[name] for name in names if name in found), None)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) and value >= 0 else None


def _is_count(value: Any) -> bool:  # noqa: ANN401 - whatever JSON has
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _json(text: str) -> object:
    try:
        found: object = json.loads(text)
    except ValueError:
        return None
    return found
