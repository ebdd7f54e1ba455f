"""What the user writes, read and checked."""

from harness.config.files import Project
from harness.config.models import BenchmarkFile, Entry, Scenario, SubmissionFile, SystemFile

__all__ = ["BenchmarkFile", "Entry", "Project", "Scenario", "SubmissionFile", "SystemFile"]
