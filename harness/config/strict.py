"""What every model of the user's files is."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Strict(BaseModel):
    """No unknown key, no change, no number that is none.

    Strict: YAML knows its types, and ``target_qps: yes`` is no rate of 1 per second.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
