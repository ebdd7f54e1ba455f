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


def scenario(system_name: str, entry_folder: str, scenario_name: str) -> PurePosixPath:
    """The folder of one result row. The checker tells scenarios by the exact spelling of this folder.

    ``entry_folder`` is the benchmark's name, or in open that of the model that was served.
    """
    return PurePosixPath(RESULTS) / system_name / entry_folder / scenario_name


def source(entry_folder: str, implementation: str) -> PurePosixPath:
    """The folder of the code that made the results of an entry."""
    return PurePosixPath("src") / entry_folder / implementation
