"""Where the recorded trajectories lie, and whether the file is the round's.

They are a file of mlcommons/endpoints (Apache-2.0, derived from SWE-bench, MIT): that of its edge agentic example.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from harness.benchmarks.base import DataFile, file_sha256
from harness.errors import DatasetError
from harness.rules.benchmark import PerformanceData

NAME: Final = "qwen3.6-27b"
TRAJECTORY_TABLE: Final = "trajectories"
"""What the harness calls the table of them."""

REPOSITORY: Final = "mlcommons/endpoints"
EXAMPLE: Final = "examples/11_Edge_Agentic_Example"
"""The folder of that repository that has the file."""
REQUESTS_FOLDER: Final = "requests"
STAND_IN_KEY: Final = "harness_stand_in"
"""The key of a metadata row that marks a file made by the harness."""
FETCH: Final = f"make fetch_dataset ARGS=--benchmark={NAME}"
MEND: Final = f"{FETCH}, or for a stand-in make make_dataset ARGS=--benchmark={NAME}"


def path_of(folder: Path, data: PerformanceData) -> Path:
    """The trajectories below the data set's folder (``<data>/qwen3.6-27b``)."""
    return folder / data.file


def find(folder: Path, data: PerformanceData) -> Path:
    """The file of trajectories. Raises DatasetError where it is not there."""
    path = path_of(folder, data)
    if not path.is_file():
        raise DatasetError("the trajectories are missing", where=path, expected=data.file, mend=MEND)
    return path


def verified(path: Path, data: PerformanceData, origin: object = None, mend: str | None = None) -> DataFile:
    """The file with its hash. Raises DatasetError where it is another than the round's.

    Of a file that is only on its way to its place, ``origin`` says where it comes from, ``mend`` what helps.
    """
    file = DataFile(path, file_sha256(path))
    if file.sha256 != data.sha256:
        raise DatasetError(
            f"the trajectories are others than the round's: sha256 {file.sha256}",
            where=path if origin is None else origin,
            expected=data.sha256,
            mend=mend or f"move the file away, then {FETCH}",
        )
    return file
