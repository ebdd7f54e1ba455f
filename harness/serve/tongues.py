"""How the model behind the engine has text and chats, and what its checkpoint says of its answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from harness.benchmarks.gpt_oss_120b import vocab
from harness.engines.base import EngineInfo
from harness.engines.chats import picture, qwen3_vocab
from harness.engines.checkpoint import read_config
from harness.engines.start import EngineSpec
from harness.errors import ConfigError, MissingError
from harness.serve.chat_words import ChatFormat
from harness.serve.gpt_oss_chat import GptOssChat
from harness.serve.plain_chat import PlainChat
from harness.serve.qwen3_vl_chat import Qwen3Codec, Qwen3VlChat
from harness.serve.sampling import Defaults
from harness.serve.settings import ServeSettings
from harness.serve.texts import Codec, GptOssCodec, PlainCodec
from harness.serve.tool_chat import ToolChat

GENERATION: Final = "generation_config.json"
TOOL_CHATS: Final = "DeepseekV3ForCausalLM"
"""The architecture of stand-ins whose chats have tools."""
PREPROCESSOR: Final = "preprocessor_config.json"
NEUTRAL: Final = {"min_p": 0.0, "repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0}
"""What a checkpoint may ask of its sampling beside temperature, top_p and top_k: nothing that an engine here lacks."""

Tongue = tuple[Codec, ChatFormat]


def tongue(settings: ServeSettings, info: EngineInfo) -> Tongue:
    """Text and chats, the model's own where they can be. Raises MissingError where they must be and cannot."""
    wanted = _native(settings.engine, info) if settings.chat == "auto" else settings.chat
    if wanted == "plain":
        return _plain(info)
    size, make = _TONGUES[wanted]
    if info.vocab_size != size:
        raise ConfigError(
            f"the engine's vocabulary has {info.vocab_size} ids", expected=f"{size} for the chat of {wanted}"
        )
    try:
        return make(settings.engine)
    except MissingError:
        if settings.chat == "auto":
            return _plain(info)
        raise


def _native(spec: EngineSpec, info: EngineInfo) -> str:
    """By the checkpoint's architecture, for vocabularies are shared; of a script, by the size of its vocabulary."""
    folder = _folder(spec)
    if folder is not None and TOOL_CHATS in (read_config(folder).get("architectures") or ()):
        return "tool-chat"
    return next((name for name, (size, _) in _TONGUES.items() if size == info.vocab_size), "plain")


def end_ids(spec: EngineSpec) -> tuple[int, ...]:
    """What ends an answer by the checkpoint's own word; a script knows no end token."""
    folder = _folder(spec)
    if folder is None:
        return ()
    found: Any = _json(folder / GENERATION).get("eos_token_id", read_config(folder).get("eos_token_id"))
    return tuple(each for each in (found if isinstance(found, list) else [found]) if isinstance(each, int))


def defaults(spec: EngineSpec) -> Defaults:
    """How a request is sampled that does not say: as the checkpoint's generation_config has it.

    Raises ConfigError for a checkpoint that asks for what no engine here can do.
    """
    folder = _folder(spec)
    told = {} if folder is None else _json(folder / GENERATION)
    for name, neutral in NEUTRAL.items():
        if told.get(name, neutral) != neutral:
            raise ConfigError(
                f"the checkpoint's {name} is {told[name]!r}",
                where=f"{folder}/{GENERATION}",
                expected=f"{neutral:g}, or none",
            )
    own = Defaults()
    try:
        return Defaults(
            temperature=float(told.get("temperature", own.temperature)),
            top_p=float(told.get("top_p", own.top_p)),
            top_k=int(told.get("top_k", own.top_k)),
        )
    except (TypeError, ValueError) as error:
        raise ConfigError(f"a checkpoint's sampling that is none: {error}", where=f"{folder}/{GENERATION}") from None


def _plain(info: EngineInfo) -> Tongue:
    codec = PlainCodec(info.vocab_size)
    return codec, PlainChat(codec)


def _gpt_oss(_: EngineSpec) -> Tongue:
    return GptOssCodec(), GptOssChat()


def _qwen3_vl(spec: EngineSpec) -> Tongue:
    codec = Qwen3Codec()
    return codec, Qwen3VlChat(codec, _pixels(spec))


def _tool_chat(_: EngineSpec) -> Tongue:
    codec = Qwen3Codec()
    return codec, ToolChat(codec)


_TONGUES: Final[Mapping[str, tuple[int, Callable[[EngineSpec], Tongue]]]] = MappingProxyType(
    {
        "gpt-oss": (vocab.VOCAB_SIZE, _gpt_oss),
        "qwen3-vl": (qwen3_vocab.VOCAB_SIZE, _qwen3_vl),
        "tool-chat": (qwen3_vocab.VOCAB_SIZE, _tool_chat),
    }
)
"""By name: the size of the vocabulary, and what makes them of an engine's settings."""


def _pixels(spec: EngineSpec) -> tuple[int, int]:
    """The fewest and most pixels that the checkpoint's preprocessor makes of an image."""
    folder = _folder(spec)
    size = {} if folder is None else _json(folder / PREPROCESSOR).get("size", {})
    bounds = [size.get(f"{edge}_edge") if isinstance(size, dict) else None for edge in ("shortest", "longest")]
    least, most = (each if isinstance(each, int) else None for each in bounds)
    return least or picture.MIN_PIXELS, most or picture.MAX_PIXELS


def _folder(spec: EngineSpec) -> Path | None:
    return Path(str(spec.settings["checkpoint"])) if spec.kind == "torch" else None


def _json(path: Path) -> dict[str, Any]:
    """A file of the checkpoint's that it may lack. Raises ConfigError for one that is no JSON object."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise ConfigError(f"a file of the checkpoint cannot be read: {error}", where=path) from None
    if not isinstance(found, dict):
        raise ConfigError("a file of the checkpoint is no JSON object", where=path)
    return found
