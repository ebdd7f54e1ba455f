"""Rule packs: what a round demands, as dated data with sources."""

from harness.rules.benchmark import (
    BenchmarkRules,
    DatasetDownload,
    ImageRules,
    ScenarioRules,
    TokenRules,
    TrajectoryRules,
)
from harness.rules.pack import RulePack, load, rounds
from harness.rules.rulings import Ruling
from harness.rules.values import Metric, Ruled, Subset

LATEST = "v6.1"
"""The round that verbs take where none is named."""

__all__ = [
    "LATEST",
    "BenchmarkRules",
    "DatasetDownload",
    "ImageRules",
    "Metric",
    "RulePack",
    "Ruled",
    "Ruling",
    "ScenarioRules",
    "Subset",
    "TokenRules",
    "TrajectoryRules",
    "load",
    "rounds",
]
