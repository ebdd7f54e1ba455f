"""The recorded trajectories from where they are published, at the round's commit; or a copy that a person has."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from harness.benchmarks.base import CHUNK_BYTES, DataFile
from harness.benchmarks.download.web import BrokeOff, Part, Web, read_some
from harness.benchmarks.qwen3_6_27b.files import EXAMPLE, NAME, REPOSITORY, path_of, verified
from harness.benchmarks.standins import refuse_stand_in
from harness.errors import DatasetError, MissingError
from harness.rules import RulePack
from harness.rules.benchmark import PerformanceData

SOURCE: Final = "endpoints"
"""The pack's source that is the repository, at the commit whose file has the round's hash."""
BY_HAND: Final = f"take it from a clone of {REPOSITORY}: make fetch_dataset ARGS='--benchmark={NAME} --adopt=FILE'"


def address(pack: RulePack, data: PerformanceData) -> str:
    """Where the file is published."""
    commit = pack.sources[SOURCE].commit
    return f"https://raw.githubusercontent.com/{REPOSITORY}/{commit}/{EXAMPLE}/{data.file}"


def fetch(folder: Path, url: str, data: PerformanceData, web: Web | None = None) -> DataFile:
    """The file below the data set's folder, fetched where it is not there yet.

    Raises ConfigError where a stand-in lies there, DatasetError for another content than the round's, MissingError
    without a network or disk space.
    """
    path = path_of(folder, data)
    refuse_stand_in(folder)
    if path.exists():
        return verified(path, data)
    try:
        with (web or Web(BY_HAND)).part(url, 0) as part:
            return _placed(path, data, _content(part), url)
    except BrokeOff as error:
        raise MissingError(f"the trajectories cannot be fetched: {error}", where=url, mend=BY_HAND) from None


def adopt(file: Path, folder: Path, data: PerformanceData) -> DataFile:
    """Copies a file that a person has. Raises ConfigError, DatasetError and MissingError as :func:`fetch` does."""
    path = path_of(folder, data)
    refuse_stand_in(folder)
    if path.exists():
        return verified(path, data)
    if not file.is_file():
        raise DatasetError("there is no such file", where=file, expected=f"a copy of {data.file}", mend=BY_HAND)
    with file.open("rb") as source:
        return _placed(path, data, iter(lambda: source.read(CHUNK_BYTES), b""), file)


def _content(part: Part) -> Iterator[bytes]:
    """All of it, or BrokeOff where fewer bytes come than the server told of."""
    came = 0
    while chunk := read_some(part, CHUNK_BYTES):
        came += len(chunk)
        yield chunk
    if came < part.total:
        raise BrokeOff(f"{came} of {part.total} bytes came")


def _placed(path: Path, data: PerformanceData, chunks: Iterator[bytes], origin: object) -> DataFile:
    part = path.with_name(path.name + ".part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            with part.open("wb") as new:
                new.writelines(chunks)
            verified(part, data, origin, BY_HAND)
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise MissingError(f"cannot write the data set: {error}", where=path) from error
    return verified(path, data)
