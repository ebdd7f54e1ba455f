"""Benchmarks: from a data set to prompts, and from logged answers to a score."""

from harness.benchmarks.registry import get, names

__all__ = ["get", "names"]
