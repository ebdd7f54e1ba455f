"""The command of each kind of server, from the options that the user wrote under the server's own names."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from harness.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Served:
    """What a command is made of. ``options_file`` is where it may put them."""

    checkpoint: Path
    name: str
    host: str
    port: int
    options: Mapping[str, Any]
    options_file: Path


@dataclass(frozen=True, slots=True)
class Command:
    """A server's words, the name it gives the model, and the files it reads."""

    words: tuple[str, ...]
    model: str
    files: Mapping[Path, str] = field(default_factory=dict)


FLAGS_OF_TRTLLM_SERVE: Final = ("chat_template", "tool_parser")
"""Options that it takes on its command line alone (the key lists have them as ``flags``)."""


def _trtllm_serve(served: Served) -> Command:
    """Its options go into a file, which wins over its flags; the checkpoint's folder gives the model's name."""
    flags = {key: value for key, value in served.options.items() if key in FLAGS_OF_TRTLLM_SERVE}
    options = {key: value for key, value in served.options.items() if key not in flags}
    path = str(served.checkpoint)
    words = ["trtllm-serve", path, "--host", served.host, "--port", str(served.port), "--tokenizer", path]
    words += ["--extra_llm_api_options", str(served.options_file)]
    for key, value in flags.items():
        words += [] if value is None else [f"--{key}", _word(key, value)]
    text = yaml.safe_dump(options, sort_keys=False) if options else "{}\n"
    return Command(tuple(words), served.checkpoint.name, {served.options_file: text})


def _vllm(served: Served) -> Command:
    words = ["python3", "-m", "vllm.entrypoints.openai.api_server", "--model", str(served.checkpoint)]
    words += ["--served-model-name", served.name, "--host", served.host, "--port", str(served.port)]
    return Command((*words, *_flags(served.options, negated="no-")), served.name)


def _sglang(served: Served) -> Command:
    words = ["python3", "-m", "sglang.launch_server", "--model-path", str(served.checkpoint)]
    words += ["--served-model-name", served.name, "--host", served.host, "--port", str(served.port)]
    return Command((*words, *_flags(served.options, negated=None)), served.name)


def _torch(served: Served) -> Command:
    words = [sys.executable, "-m", "harness", "serve", "--engine", "torch", "--checkpoint", str(served.checkpoint)]
    words += ["--host", served.host, "--port", str(served.port)]
    words += [word for key, value in served.options.items() for word in (f"--{key}", str(value))]
    return Command(tuple(words), served.checkpoint.name)


COMMANDS: Final[Mapping[str, Callable[[Served], Command]]] = {
    "trtllm-serve": _trtllm_serve,
    "vllm": _vllm,
    "sglang": _sglang,
    "torch": _torch,
}


def _flags(options: Mapping[str, Any], *, negated: str | None) -> Iterator[str]:
    """Options as flags: ``max_model_len: 4096`` as ``--max-model-len 4096``, mappings as JSON, null left out.

    False is ``--no-…`` where the server has such flags. A ``disable…`` has none and is off unless it is given.
    """
    for key, value in options.items():
        flag = f"--{key.replace('_', '-')}"
        if value is True:
            yield flag
        elif value is False:
            if negated is not None and not key.startswith("disable"):
                yield f"--{negated}{flag[2:]}"
        elif isinstance(value, list):
            yield from (flag, *map(str, value))
        elif isinstance(value, dict):
            yield from (flag, json.dumps(value))
        elif value is not None:
            yield from (flag, _word(key, value))


def _word(key: str, value: object) -> str:
    if not isinstance(value, str | int | float):
        raise ConfigError(f"the option {key} is {value!r}", where="engine.options", expected="a value for a flag")
    return str(value)
