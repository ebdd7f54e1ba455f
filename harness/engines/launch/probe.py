"""What running servers say of themselves, held against what was asked of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from harness.engines.launch.http import Reply, get
from harness.engines.launch.secrets import is_secret
from harness.errors import ConfigError, MissingError

TIMEOUT_S: Final = 10.0
SERVER_INFO: Final = ("/server_info", "/get_server_info")
"""Of SGLang: by its newer name, and by the older one that later versions took away."""


@dataclass(frozen=True, slots=True)
class Told:
    """One server's word: software version, models it serves, prompt plus answer at most, its settings by name.

    What a server does not tell is None or empty.
    """

    url: str
    models: tuple[str, ...]
    version: str | None = None
    max_total_tokens: int | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def alike(self) -> str:
        """What replicas have in common, for people."""
        model = ", ".join(self.models) or "not told"
        return f"model {model}, version {self.version or 'not told'}, at most {self.max_total_tokens} tokens"


@dataclass(frozen=True, slots=True)
class Asked:
    """What the configuration says that a server can be held to. ``model`` None takes the one that is served."""

    version: str | None
    model: str | None
    max_total_tokens: int | None
    options: Mapping[str, Any]


def ask(server: str, url: str, *, timeout_s: float = TIMEOUT_S) -> Told:
    """Asks one running server. MissingError where it is not there or not healthy; it may lack any other route."""

    def answer(path: str) -> Reply:
        return get(url, path, timeout_s=timeout_s)

    health = answer("/health")
    if health.status != 200:
        said = f"/health answers {health.status}" if health.status else health.body
        raise MissingError(
            f"no healthy {server} at {url}: {said}",
            where=url,
            mend="start it (make run_llm_server), or mend engine.endpoints",
        )
    models = _entries(answer("/v1/models").json)
    settings = _told_by_sglang(answer) if server == "sglang" else {}
    settings |= _cache_of(answer("/metrics").json) if server == "trtllm-serve" else {}
    version = _mapping(answer("/version").json).get("version", settings.get("version"))
    longest = next((m["max_model_len"] for m in models if isinstance(m.get("max_model_len"), int)), None)
    return Told(
        url=url,
        models=tuple(str(model["id"]) for model in models if "id" in model),
        version=version if isinstance(version, str) else None,
        max_total_tokens=longest,
        settings=settings,
    )


def check(told: Sequence[Told], asked: Asked) -> None:
    """ConfigError naming both values where a server is not what was asked for, or two of them differ."""
    for each in told:
        for what, found, expected in _differences(each, asked):
            raise ConfigError(
                f"the server at {each.url} has {what} {found}, the configuration says {expected}",
                where=each.url,
                expected=f"{what} {expected}",
                mend="start it again with this configuration, or mend the configuration",
            )
        if each.alike() != told[0].alike():
            raise ConfigError(
                f"the servers differ: {told[0].url} has {told[0].alike()}, {each.url} has {each.alike()}",
                where=each.url,
                expected="replicas that are alike",
                mend="start all of them in the same way, or take out of engine.endpoints what is no replica",
            )


def _differences(told: Told, asked: Asked) -> list[tuple[str, object, object]]:
    found: list[tuple[str, object, object]] = []
    if asked.model is not None and told.models and asked.model not in told.models:
        found.append(("model", ", ".join(told.models), asked.model))
    if asked.version is not None and told.version is not None and not _is_version(told.version, asked.version):
        found.append(("version", told.version, asked.version))
    limits = (told.max_total_tokens, asked.max_total_tokens)
    if None not in limits and limits[0] != limits[1]:
        found.append(("max_model_len", *limits))
    for key, value in asked.options.items():
        own = told.settings.get(key, told.settings.get(key.replace("-", "_"), value))
        if value is not None and own != value:
            found.append((key, own, value))
    return found


def _is_version(told: str, asked: str) -> bool:
    """Whether ``1.2.1`` is a 1.2; 1.20 is none."""
    return re.match(rf"v?{re.escape(asked)}(?!\d)", told) is not None


def _told_by_sglang(answer: Callable[[str], Reply]) -> dict[str, Any]:
    """Its arguments, less keys and what is no plain value: they stand in the record of a run."""
    told = next((found for path in SERVER_INFO if (found := _mapping(answer(path).json))), {})
    return {
        key: value for key, value in told.items() if isinstance(value, str | int | float | None) and not is_secret(key)
    }


def _cache_of(metrics: object) -> dict[str, Any]:
    """Of TensorRT-LLM's newest iteration: its KV cache. Empty where nothing ran yet or statistics are off."""
    newest = metrics[-1] if isinstance(metrics, list) and metrics else None
    cache = _mapping(_mapping(newest).get("kvCacheStats"))
    blocks, size = cache.get("maxNumBlocks"), cache.get("tokensPerBlock")
    if not isinstance(blocks, int) or not isinstance(size, int):
        return {}
    return {"kv_cache_blocks": blocks, "kv_cache_tokens": blocks * size}


def _entries(models: object) -> list[dict[str, Any]]:
    data = _mapping(models).get("data")
    return [entry for entry in data if isinstance(entry, dict)] if isinstance(data, list) else []


def _mapping(found: object) -> dict[str, Any]:
    return dict(found) if isinstance(found, dict) else {}
