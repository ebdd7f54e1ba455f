"""The shapes of the models that the benchmarks run, and the sizes of their checkpoints, as dated data with sources."""

from harness.rules.models.facts import ModelFacts, find

__all__ = ["ModelFacts", "find"]
