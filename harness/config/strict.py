"""What every model of the user's files is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """No unknown key, no change, no number that is none.

    Strict: YAML knows its types, and ``target_qps: yes`` is no rate of 1 per second.
    """

    # defer_build: of many models only those that are read are made ready, which is a fifth of a command's start.
    model_config = ConfigDict(defer_build=True, extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
