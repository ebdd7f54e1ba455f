"""``serve``: an engine of ours behind trtllm-serve's protocol, with faults on demand."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import Any, Final, Literal

from harness.cli.console import OUT
from harness.cli.options import folder
from harness.config.engines import TinyCheckpoint
from harness.engines.base import EngineInfo
from harness.engines.launch.weights import made
from harness.engines.start import EngineSpec
from harness.errors import EXIT_OK, ConfigError, MissingError
from harness.serve.faults import PlannedFault
from harness.serve.settings import CHATS, LARGEST_PORT, LIKE, ServeSettings

_STAND_INS: Final[dict[str, Literal["tiny-gpt-oss", "tiny-qwen3-vl", "tiny-deepseek-v3"]]] = {
    "tiny_gpt_oss": "tiny-gpt-oss",
    "tiny_qwen3_vl": "tiny-qwen3-vl",
    "tiny_deepseek_v3": "tiny-deepseek-v3",
}
"""What each option has made."""


def run(argv: list[str]) -> int:
    """Serves until it is told to end (^C, SIGTERM): 0. 3: the port is in use; 4: the engine died."""
    options = _parser().parse_args(argv)
    try:
        from harness.serve.server import serve
    except ModuleNotFoundError as error:
        raise MissingError(f"the verb serve needs the package {error.name}", mend="pip install '.[serve]'") from error
    spec = _spec(options)
    settings = ServeSettings(
        engine=spec,
        model=options.model or _name(spec),
        host=options.host,
        port=options.port,
        chat=options.chat,
        like=options.like,
        stream_interval=options.stream_interval,
        seed=options.seed,
        faults=tuple(map(PlannedFault.parse, options.fault)),
        ready_s=options.ready_s,
        recorded=tuple(options.recorded),
    )
    serve(settings, lambda url, info: _listening(url, settings.model, info))
    return EXIT_OK


def _listening(url: str, model: str, info: EngineInfo) -> None:
    OUT.print(f"serving {model} ({info.kind} engine, {info.slots} slots) at {url}", markup=False)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m harness serve", description=__doc__)
    parser.add_argument("--engine", choices=("torch", "scripted"), default="torch", help="default: torch")
    parser.add_argument("--checkpoint", type=folder, metavar="DIR", help="torch: the weights")
    parser.add_argument(
        "--tiny_gpt_oss", "--tiny-gpt-oss", action="store_true", help="torch: a stand-in, made in the cache from --seed"
    )
    parser.add_argument(
        "--tiny_qwen3_vl", "--tiny-qwen3-vl", action="store_true", help="torch: one that looks at images, made likewise"
    )
    parser.add_argument(
        "--tiny_deepseek_v3", "--tiny-deepseek-v3", action="store_true",
        help="torch: one of Kimi's architecture whose chats have tools, made likewise",
    )  # fmt: skip
    parser.add_argument("--slots", type=_count, metavar="N", help="how many requests it works on at once")
    parser.add_argument("--threads", type=_count, metavar="N", help="torch: threads (default: 1)")
    parser.add_argument("--max_total_tokens", type=_count, metavar="N", help="prompt and answer together")
    parser.add_argument("--prefill_chunk", type=_count, metavar="N", help="torch: prompt tokens a step")
    parser.add_argument("--script", type=_object, default={}, metavar="JSON", help="scripted: its other settings")
    parser.add_argument(
        "--recorded", type=Path, action="append", default=[], metavar="FILE",
        help="scripted: trajectories, or chats with their replies, to be answered as recorded; may be given again",
    )  # fmt: skip
    parser.add_argument("--seed", type=_seed, default=0, metavar="N", help="for requests without one (default: 0)")
    parser.add_argument("--model", metavar="NAME", help="its name (default: the checkpoint's folder)")
    parser.add_argument("--host", default="127.0.0.1", help="where to listen (default: %(default)s)")
    parser.add_argument("--port", type=_port, default=8000, help="0: any, and it is printed (default: %(default)s)")
    parser.add_argument("--chat", choices=CHATS, default="auto", help="how chats become tokens (default: %(default)s)")
    parser.add_argument("--like", choices=LIKE, default=LIKE[0], help="whose manners it has (default: %(default)s)")
    parser.add_argument(
        "--stream_interval", type=_count, default=1, metavar="N", help="a chunk for the first token and every N-th"
    )
    parser.add_argument(
        "--fault", action="append", default=[], metavar="KIND@N[/M]",
        help="the N-th request comes to this, or every M-th from there; may be given again",
    )  # fmt: skip
    parser.add_argument(
        "--ready_s", type=_seconds, default=600.0, metavar="S", help="how long the engine may take to come up"
    )
    return parser


def _spec(options: argparse.Namespace) -> EngineSpec:
    sized = {name: getattr(options, name) for name in ("slots", "threads", "max_total_tokens", "prefill_chunk")}
    settings: dict[str, Any] = {name: value for name, value in sized.items() if value is not None}
    if options.engine == "scripted":
        for name in ("checkpoint", *_STAND_INS, "threads", "prefill_chunk"):
            if getattr(options, name):
                raise ConfigError(f"the scripted engine takes no --{name}")
        return EngineSpec("scripted", options.script | settings)
    if options.script:
        raise ConfigError("the torch engine takes no --script")
    return EngineSpec("torch", settings | {"checkpoint": str(_checkpoint(options).absolute())})


def _checkpoint(options: argparse.Namespace) -> Path:
    wanted = [make for option, make in _STAND_INS.items() if getattr(options, option)]
    if len(wanted) + (options.checkpoint is not None) != 1:
        raise ConfigError(
            "the torch engine needs weights, and of one model",
            expected=f"--checkpoint DIR, or one of {', '.join(f'--{option}' for option in _STAND_INS)}",
        )
    return made(TinyCheckpoint(make=wanted[0], seed=options.seed)) if wanted else Path(options.checkpoint)


def _name(spec: EngineSpec) -> str:
    return Path(str(spec.settings["checkpoint"])).name if spec.kind == "torch" else spec.kind


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of at least 1")
    return int(text)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} are no seconds")
    return seconds


def _seed(text: str) -> int:
    if not text.isdecimal() or int(text) >= 1 << 63:
        raise argparse.ArgumentTypeError(f"{text!r} is no seed: 0 to 2**63 - 1")
    return int(text)


def _port(text: str) -> int:
    if not text.isdecimal() or int(text) > LARGEST_PORT:
        raise argparse.ArgumentTypeError(f"{text!r} is no port: 0 to {LARGEST_PORT}")
    return int(text)


def _object(text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"no JSON: {error}") from None
    if not isinstance(found, dict):
        raise argparse.ArgumentTypeError(f"not a JSON object: {text!r}")
    return found
