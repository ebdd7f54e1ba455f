from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import MissingError
from harness.ledger.samples import NONE, SCHEMA, SampleState, read_samples, write_samples

NAMES = [field.name for field in SCHEMA if field.name != "replica"]
SMALL = {"finish", "state"}
INT8, INT64 = st.integers(-128, 127), st.integers(-(2**63), 2**63 - 1)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.integers(0, 5))
def test_what_is_written_is_read(tmp_path: Path, data: st.DataObject, rows: int) -> None:
    columns = {
        name: np.array(data.draw(st.lists(INT8 if name in SMALL else INT64, min_size=rows, max_size=rows)), np.int64)
        for name in NAMES
    }
    replicas = np.array(data.draw(st.lists(st.integers(0, 1), min_size=rows, max_size=rows)), np.int16)
    path = tmp_path / "samples.arrow"
    write_samples(path, columns, replicas, ["left", "right"])
    read = read_samples(path)
    assert set(read) == {*NAMES, "replica"}
    for name in NAMES:
        assert read[name].dtype == np.int64
        assert (read[name] == columns[name]).all()
    assert (read["replica"] == replicas).all()


def columns(rows: int) -> dict[str, np.ndarray]:
    return {name: np.zeros(rows, np.int64) for name in NAMES}


def test_the_file_says_what_its_columns_are(tmp_path: Path) -> None:
    path = tmp_path / "samples.arrow"
    write_samples(path, columns(3), np.zeros(3, np.int16), ["0"])
    with pa.memory_map(str(path)) as source:
        schema = pa.ipc.open_file(source).schema
    assert b"CLOCK_MONOTONIC" in schema.field("issued_ns").metadata[b"is"]
    assert {state.value: state.name.lower() for state in SampleState} == {0: "answered", 1: "failed", 2: "outstanding"}
    assert schema.field("state").metadata[b"is"] == b"0 answered, 1 failed, 2 outstanding"
    assert NONE == -1


@pytest.mark.parametrize("content", [b"", b"ARROW1", b"x" * 500])
def test_a_file_that_is_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "samples.arrow"
    path.write_bytes(content)
    with pytest.raises(MissingError, match="not a readable samples file"):
        read_samples(path)


def test_a_file_that_was_cut(tmp_path: Path) -> None:
    path = tmp_path / "samples.arrow"
    write_samples(path, columns(300), np.zeros(300, np.int16), ["0"])
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(MissingError):
        read_samples(path)
    with pytest.raises(MissingError):
        read_samples(tmp_path / "none.arrow")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="cannot write"):
        write_samples(tmp_path / "none" / "samples.arrow", columns(1), np.zeros(1, np.int16), ["0"])


def test_a_sample_that_no_replica_was_given(tmp_path: Path) -> None:
    path = tmp_path / "samples.arrow"
    write_samples(path, columns(3), np.array([1, -1, 0], np.int16), ["east", "west"])
    assert read_samples(path)["replica"].tolist() == [1, -1, 0]


@pytest.mark.parametrize("change", ["another type", "one less", "twice", "nulls"])
def test_a_file_of_other_columns(tmp_path: Path, change: str) -> None:
    path = tmp_path / "samples.arrow"
    write_samples(path, columns(2), np.zeros(2, np.int16), ["0"])
    with pa.memory_map(str(path)) as source:
        table = pa.ipc.open_file(source).read_all()
        changed = {
            "another type": lambda: table.set_column(0, "index", pa.array([0.5, 1.5])),
            "one less": lambda: table.drop_columns(["finish"]),
            "twice": lambda: table.append_column("index", table["index"]),
            "nulls": lambda: table.set_column(3, "done_ns", pa.array([None, 1], pa.int64())),
        }[change]()
        other = tmp_path / "other.arrow"
        with pa.OSFile(str(other), "wb") as sink, pa.ipc.new_file(sink, changed.schema) as writer:
            writer.write_table(changed)
    with pytest.raises(MissingError, match=r"not a readable samples file: (its columns are|a number is wanting)"):
        read_samples(other)
