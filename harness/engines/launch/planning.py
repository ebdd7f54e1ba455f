"""From a configuration to the servers that it asks for, one plan a replica. Nothing is started or written."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.config.engines import HttpEngine, TinyCheckpoint
from harness.engines.gpus import visible_gpus
from harness.engines.launch.commands import COMMANDS, Served
from harness.engines.launch.environment import VOCABULARY, server_environment
from harness.engines.launch.plan import ServerPlan
from harness.engines.launch.prefix import Prefix, filled, with_container

ANY_ADDRESS: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 - compared with, never listened on
_HARNESS: Final = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What a plan depends on beside the configuration.

    ``gpus_each`` is how many GPUs one replica takes, 0 for a server on processors. Files and logs go to ``folder``,
    ``caches`` is where a server may write what it compiles, ``vocabulary`` holds o200k_base.tiktoken if it is there.
    """

    gpus_each: int
    checkpoint: Path
    folder: Path
    caches: Path
    vocabulary: Path | None = None
    environ: Mapping[str, str] | None = None

    @property
    def ours(self) -> Mapping[str, str]:
        """The environment that servers inherit some of."""
        return os.environ if self.environ is None else self.environ


def plan_servers(engine: HttpEngine, around: Surroundings) -> list[ServerPlan]:
    """One plan a replica: replica i listens on port + i and takes the GPUs from i x ``gpus_each`` on.

    ConfigError where CUDA_VISIBLE_DEVICES leaves fewer GPUs than all of them take, or the prefix cannot be filled in.
    """
    gpus = visible_gpus(engine.replicas * around.gpus_each, around.ours)
    each = around.gpus_each
    return [_plan(engine, i, gpus[i * each : (i + 1) * each], around) for i in range(engine.replicas)]


def _plan(engine: HttpEngine, number: int, gpus: Sequence[str], around: Surroundings) -> ServerPlan:
    launch = engine.launch
    name, port = str(number), launch.port + number
    environment = server_environment(
        around.ours,
        server=engine.server,
        prefix=launch.prefix,
        caches=around.caches,
        vocabulary=around.vocabulary,
        gpus=gpus,
        stated=launch.env,
    )
    if engine.server == "torch":
        environment = {"PYTHONPATH": str(_HARNESS)} | environment
    command = COMMANDS[engine.server](
        Served(
            checkpoint=around.checkpoint,
            name=_model_name(engine, around.checkpoint),
            host=launch.host,
            port=port,
            options=engine.options,
            options_file=around.folder / f"server-{name}.yaml",
        )
    )
    prefix = _prefix(engine, name, port, gpus, environment, around)
    return ServerPlan(
        name=name,
        server=engine.server,
        command=(*prefix.words, *command.words),
        environment=environment,
        files=command.files,
        folder=around.folder,
        caches=around.caches,
        log=around.folder / f"server-{name}.log",
        host=launch.host,
        port=port,
        url=_url(launch.host, port),
        model=command.model,
        container=prefix.container,
        prefixed=bool(prefix.words),
    )


def _prefix(
    engine: HttpEngine,
    name: str,
    port: int,
    gpus: Sequence[str],
    environment: Mapping[str, str],
    around: Surroundings,
) -> Prefix:
    prefix = engine.launch.prefix
    values = {"gpus": ",".join(gpus), "replica": name, "folder": str(around.folder), "port": str(port)}
    mounts = [around.folder, around.caches]
    if VOCABULARY in environment and VOCABULARY not in engine.launch.env:  # what the user sets is the image's own
        mounts.append(Path(environment[VOCABULARY]))
    id_file = around.folder / f"server-{name}.cid"
    return with_container(prefix, filled(prefix, values), environment, mounts=mounts, id_file=id_file)


def _model_name(engine: HttpEngine, checkpoint: Path) -> str:
    """What a server that can be told a name is told."""
    return checkpoint.name if isinstance(engine.checkpoint, TinyCheckpoint) else engine.checkpoint.name


def _url(host: str, port: int) -> str:
    """Where a server is asked that listens on ``host``."""
    asked = "127.0.0.1" if host in ANY_ADDRESS else host
    return f"http://[{asked}]:{port}" if ":" in asked else f"http://{asked}:{port}"
