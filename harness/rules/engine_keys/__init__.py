"""The options that each server knows, by version, as dated data with sources; and what the options mean."""

from harness.rules.engine_keys.keys import (
    EngineKeys,
    KeyProblem,
    Meaning,
    MeaningName,
    lists,
    load,
    load_or_older,
    versions,
)

__all__ = ["EngineKeys", "KeyProblem", "Meaning", "MeaningName", "lists", "load", "load_or_older", "versions"]
