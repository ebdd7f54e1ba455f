"""Where each file lies below a submitter's folder, in the layout of LoadGen results since v6.0."""

from __future__ import annotations

from pathlib import PurePosixPath

CALIBRATION = PurePosixPath("documentation/calibration.md")
BANDWIDTH = PurePosixPath("documentation/bandwidth.md")
DEMONSTRATION = PurePosixPath("DEMONSTRATION")
DEMONSTRATION_SUBMITTER = "Demonstration"

RESULTS = "results"
PERFORMANCE = PurePosixPath("performance/run_1")
ACCURACY = PurePosixPath("accuracy")


def system(name: str) -> PurePosixPath:
    """The description of a system."""
    return PurePosixPath("systems") / f"{name}.json"


def scenario(system_name: str, benchmark: str, scenario_name: str) -> PurePosixPath:
    """The folder of one result row. The checker tells scenarios by the exact spelling of this folder."""
    return PurePosixPath(RESULTS) / system_name / benchmark / scenario_name


def source(benchmark: str, implementation: str) -> PurePosixPath:
    """The folder of the code that made the results of a benchmark."""
    return PurePosixPath("src") / benchmark / implementation
