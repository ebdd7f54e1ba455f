"""Rule packs: what a round demands, as dated data with sources."""

from harness.rules.pack import BenchmarkRules, Metric, RulePack, ScenarioRules, Subset, load, rounds

__all__ = ["BenchmarkRules", "Metric", "RulePack", "ScenarioRules", "Subset", "load", "rounds"]
