"""``samples.arrow``: one row a sample, as the harness saw it. Written after the test, read by verdict and report."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from harness.errors import MissingError

NONE = -1
"""A time, length or finish that a sample does not have."""


class SampleState(enum.IntEnum):
    """Answered, failed, or (in a run that broke) outstanding."""

    ANSWERED = 0
    FAILED = 1
    OUTSTANDING = 2


Int64 = npt.NDArray[np.int64]

_REPLICA = "replica"

SCHEMA = pa.schema(
    [
        pa.field("index", pa.int64(), metadata={"is": "row of the data set"}),
        pa.field("issued_ns", pa.int64(), metadata={"is": "CLOCK_MONOTONIC when LoadGen handed it over"}),
        pa.field("first_token_ns", pa.int64(), metadata={"is": "when its first token was told to LoadGen; -1 never"}),
        pa.field("done_ns", pa.int64(), metadata={"is": "when its answer was told to LoadGen; -1 no answer"}),
        pa.field("engine_first_token_ns", pa.int64(), metadata={"is": "when the engine had its first token; -1 never"}),
        pa.field("engine_done_ns", pa.int64(), metadata={"is": "when the engine had its last; -1 never"}),
        pa.field("prompt_tokens", pa.int64()),
        pa.field(
            "answer_tokens",
            pa.int64(),
            metadata={"is": "tokens handed to LoadGen; -1 for a failed sample, or not counted"},
        ),
        pa.field("finish", pa.int8(), metadata={"is": "0 stop token, 1 output cap, 2 tool calls, -1 no answer"}),
        pa.field("state", pa.int8(), metadata={"is": "0 answered, 1 failed, 2 outstanding"}),
        pa.field("replica", pa.dictionary(pa.int16(), pa.string())),
    ]
)


def write_samples(path: Path, columns: dict[str, Any], replicas: npt.NDArray[np.int16], names: list[str]) -> None:
    """Writes the samples of a run; ``columns`` are those of SCHEMA but the replica, all of one length.

    ``replicas`` index ``names``; -1 is none: a sample that no replica was given. MissingError where the disk is full:
    the run's logs are there all the same.
    """
    arrays = [pa.array(columns[f.name], type=f.type) for f in SCHEMA if f.name != _REPLICA]
    places = pa.array(replicas, pa.int16(), mask=replicas < 0)
    arrays.append(pa.DictionaryArray.from_arrays(places, pa.array(names, pa.string())))
    table = pa.Table.from_arrays(arrays, schema=SCHEMA)
    try:
        with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_file(sink, SCHEMA) as writer:
            writer.write_table(table)
    except OSError as error:
        raise MissingError(f"cannot write: {error}", where=path, mend="free space on this disk") from error


def read_samples(path: Path) -> dict[str, Int64]:
    """The columns of a samples.arrow as int64 arrays, the replica as its index, -1 for none. MissingError where it
    cannot be read.
    """
    try:
        with pa.memory_map(str(path)) as source:
            table = pa.ipc.open_file(source).read_all()
    except (OSError, pa.ArrowException) as error:
        raise MissingError(f"not a readable samples file: {error}", where=path) from error
    numbers = [name for name in SCHEMA.names if name != _REPLICA]
    same = table.schema.names == SCHEMA.names and table.schema.types == SCHEMA.types
    if not same or any(table[name].null_count for name in numbers):
        found = "a number is wanting" if same else f"its columns are {', '.join(table.schema.names)}"
        raise MissingError(
            f"not a readable samples file: {found}",
            where=path,
            expected=f"{', '.join(SCHEMA.names)}, of the types that a run writes",
        )
    columns = {name: table[name].to_numpy().astype(np.int64) for name in numbers}
    columns[_REPLICA] = _replicas(table[_REPLICA])
    return columns


def _replicas(column: pa.ChunkedArray) -> Int64:
    indices = [chunk.indices.fill_null(NONE).to_numpy(zero_copy_only=False) for chunk in column.chunks]
    return np.concatenate([np.zeros(0, np.int64), *indices]).astype(np.int64)
