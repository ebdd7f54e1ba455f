"""The GPUs that engine processes may be given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from harness.errors import ConfigError

GPUS: Final = "CUDA_VISIBLE_DEVICES"


def visible_gpus(wanted: int, environ: Mapping[str, str]) -> list[str]:
    """GPUs to hand out: those that an environment names, or the first of the machine. ConfigError for too few."""
    named = environ.get(GPUS)
    if named is None:
        return [str(i) for i in range(wanted)]
    visible = [name.strip() for name in named.split(",") if name.strip()]
    if len(visible) < wanted:
        raise ConfigError(
            f"the replicas take {wanted} GPUs, {GPUS} names {len(visible)}",
            where=f"{GPUS}={named}",
            expected="replicas x tensor x pipeline parallel GPUs",
            mend=f"unset {GPUS}, or lower engine.replicas or what each takes",
        )
    return visible
