"""The library ``tensorrt_llm``: imported when an engine is made, with the reason where that cannot be; read back after.

It has wheels for few Pythons, none on PyPI, and loads CUDA's libraries when it is imported; a machine without them can
still plan, package and check.
"""

from __future__ import annotations

import enum
import importlib
import sys
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from harness.engines.trtllm_settings import TrtllmSettings
from harness.errors import ConfigError, EngineDied, MissingError

_WHEELS_FOR: Final = ((3, 10), (3, 12))
_CONTAINER: Final = (
    "run the harness in NVIDIA's TensorRT-LLM container (nvcr.io/nvidia/tensorrt-llm/release), "
    "or reach a server in one: engine kind http, server trtllm-serve"
)
Plain: TypeAlias = bool | int | float | str | None


class Output(Protocol):
    """``CompletionOutput``: ``token_ids`` are all so far; ``finish_reason`` is stop, length, timeout or cancelled."""

    token_ids: list[int]
    finish_reason: str | None


class Result(Protocol):
    """``RequestOutput`` of a request made while an event loop ran. Iterating tells of every chunk, itself each time."""

    @property
    def finished(self) -> bool:
        """Whether nothing more will come."""

    @property
    def outputs(self) -> list[Output]:
        """One, for one answer was asked for."""

    def abort(self) -> None:
        """Ends it where it is; it finishes as cancelled."""

    async def aresult(self) -> object:
        """Waits until it is finished."""

    def __aiter__(self) -> AsyncIterator[Result]: ...


class Llm(Protocol):
    """``tensorrt_llm.LLM``, as far as it is used."""

    args: object

    def generate_async(self, inputs: dict[str, list[int]], *, sampling_params: object, streaming: bool) -> Result:
        """Makes a request; its result belongs to the event loop that runs now."""

    def get_stats(self, timeout: float | None = None) -> list[dict[str, Any]]:
        """Statistics of the iterations since the last call, the newest last; waits for up to so many seconds."""

    def shutdown(self) -> None:
        """Ends its processes."""


@dataclass(frozen=True, slots=True)
class Library:
    """What is used of ``tensorrt_llm`` and of the torch that it brings."""

    llm: Callable[..., Llm]
    sampling_params: Callable[..., object]
    request_error: type[Exception]
    versions: dict[str, str]


def load_library() -> Library:
    """Imports it. MissingError says why where that cannot be: no wheel, no CUDA library, no GPU."""
    try:
        package = importlib.import_module("tensorrt_llm")
        llmapi = importlib.import_module("tensorrt_llm.llmapi")
        torch = importlib.import_module("torch")
    except (ImportError, OSError, RuntimeError) as error:
        raise MissingError(
            f"tensorrt_llm cannot be imported: {type(error).__name__}: {error}", expected=_expected(), mend=_CONTAINER
        ) from error
    if not torch.cuda.device_count():
        raise MissingError(
            "TensorRT-LLM finds no GPU here",
            expected="a CUDA device that this process may see",
            mend="look at nvidia-smi and CUDA_VISIBLE_DEVICES; " + _CONTAINER,
        )
    return Library(package.LLM, package.SamplingParams, llmapi.RequestError, _versions(package, torch))


def _expected() -> str:
    here, there = sys.version_info[:2], " and ".join(f"{major}.{minor}" for major, minor in _WHEELS_FOR)
    known = "" if here in _WHEELS_FOR else f"; this is Python {here[0]}.{here[1]}, wheels are known for {there}"
    return f"tensorrt_llm with the CUDA libraries it needs{known}"


def _versions(package: Any, torch: Any) -> dict[str, str]:  # noqa: ANN401 - untyped modules
    return {
        "tensorrt_llm": str(package.__version__),
        "torch": str(torch.__version__),
        "CUDA": str(torch.version.cuda),
    }


def load_model(library: Library, settings: TrtllmSettings) -> Llm:
    """``tensorrt_llm.LLM`` of the settings, which takes minutes.

    ConfigError for options that it refuses or does not have afterwards, EngineDied where loading fails.
    """
    try:
        llm = library.llm(model=str(settings.checkpoint), skip_tokenizer_init=True, **settings.options)
    except (ValueError, TypeError) as error:
        raise ConfigError(
            f"TensorRT-LLM {library.versions['tensorrt_llm']} refuses these options: {error}", where="engine.options"
        ) from error
    except (RuntimeError, OSError) as error:
        raise EngineDied(
            f"TensorRT-LLM could not load the checkpoint: {error}",
            where=settings.checkpoint,
            mend="its log says more; memory that other processes hold is the usual reason",
        ) from error
    _compare(settings.options, read_back(llm.args))
    return llm


def read_back(args: object) -> dict[str, Plain]:
    """What LLM's arguments are now, flat (``kv_cache_config.dtype``), defaults included.

    Only plain values; environment variables, and strings that are paths of this machine, are left out.
    """
    return {key: value for key, value in _leaves("", args) if not _private(key, value)}


def _private(key: str, value: Plain) -> bool:
    return key.startswith("env_overrides") or (isinstance(value, str) and value.startswith("/"))


def _leaves(prefix: str, value: object) -> Iterator[tuple[str, Plain]]:
    if isinstance(value, enum.Enum):
        value = value.value
    if hasattr(value, "model_dump"):
        value = value.model_dump()
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield from _leaves(f"{prefix}.{key}" if prefix else str(key), inner)
    elif value is None or isinstance(value, bool | int | float | str):
        yield prefix, value


def _compare(asked: Mapping[str, object], found: Mapping[str, Plain]) -> None:
    for key, value in _leaves("", asked):
        if key in found and not _same(value, found[key]):
            raise ConfigError(
                f"TensorRT-LLM was asked for {key} {value!r} and has {found[key]!r}",
                where="engine.options",
                mend=f"if {found[key]!r} is what you want, say so there",
            )


def _same(asked: Plain, found: Plain) -> bool:
    if isinstance(asked, str) and isinstance(found, str):
        return asked.casefold() == found.casefold()
    return asked == found
