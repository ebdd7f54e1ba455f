"""What the user writes, read and checked."""

from harness.config.files import Project
from harness.config.models import BenchmarkFile, Entry, Scenario, SubmissionFile, SystemFile
from harness.config.stand_in import stand_in

__all__ = ["BenchmarkFile", "Entry", "Project", "Scenario", "SubmissionFile", "SystemFile", "stand_in"]
