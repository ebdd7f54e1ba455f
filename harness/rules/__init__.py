"""Rule packs: what a round demands, as dated data with sources."""

from harness.rules.pack import BenchmarkRules, Metric, RulePack, ScenarioRules, Subset, load, rounds

LATEST = "v6.1"
"""The round that verbs take where none is named."""

__all__ = ["LATEST", "BenchmarkRules", "Metric", "RulePack", "ScenarioRules", "Subset", "load", "rounds"]
