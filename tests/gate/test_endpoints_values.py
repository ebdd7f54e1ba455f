"""Whatever stands in a file of the endpoints client: the gate says findings, and never breaks."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.gate.findings import Verdict
from harness.gate.row_endpoints import EndpointsRow, check_endpoints_run
from harness.gate.row_layout import RowPlace
from tests.gate.made_endpoints import AGENT, GPT, QWEN, ROUND, accuracy, config, make_row, summary

FILES = {
    "config.yaml": config,
    "performance/result_summary.json": summary,
    "accuracy/accuracy_results.json": accuracy,
}
ROWS = [(GPT, "Server"), (QWEN, "Interactive"), (AGENT, "SingleStream")]

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([10**400, -(10**400), 2**63, 2**64])
    | st.floats()
    | st.text(max_size=8)
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def paths(data: Any) -> list[tuple[str | int, ...]]:
    """The way to each value at any depth."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    return [(key, *rest) for key, inner in items for rest in [(), *paths(inner)]]


def with_value(data: Any, way: tuple[str | int, ...], value: Any) -> Any:
    """A copy in which a way leads to ``value``."""
    if not way:
        return value
    changed = dict(data) if isinstance(data, dict) else list(data)
    changed[way[0]] = with_value(data[way[0]], way[1:], value)
    return changed


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """(benchmark, scenario) -> the folder of a run, of which each test writes one file anew."""
    base = tmp_path_factory.mktemp("runs")
    for benchmark, scenario in ROWS:
        make_row(base / benchmark, benchmark, scenario)
    return {row: base / row[0] for row in ROWS}


def judged(folder: Path, row: tuple[str, str], division: str) -> EndpointsRow:
    benchmark, scenario = row
    place = RowPlace(PurePosixPath(division, "A", "results", "B", *row), division, "A", "B", benchmark, scenario)
    return check_endpoints_run(folder, place, ROUND)


def judged_with(folder: Path, name: str, content: bytes, row: tuple[str, str], division: str) -> EndpointsRow:
    path = folder / name
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        return judged(folder, row, division)
    finally:
        path.write_bytes(before)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_any_value_at_any_key(folders, data):
    row = data.draw(st.sampled_from(ROWS))
    name = data.draw(st.sampled_from(sorted(FILES)))
    whole = FILES[name](*row)
    way = data.draw(st.sampled_from(paths(whole)))
    changed = with_value(whole, way, data.draw(values))
    text = yaml.safe_dump(changed) if name.endswith("yaml") else json.dumps(changed)
    content = text.encode("utf-8", "surrogatepass")
    judged_with(folders[row], name, content, row, data.draw(st.sampled_from(["closed", "open", "network"])))


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_files_that_end_anywhere(folders, data):
    row = data.draw(st.sampled_from(ROWS))
    name = data.draw(st.sampled_from(sorted(FILES)))
    content = (folders[row] / name).read_bytes()
    end = data.draw(st.integers(0, len(content) - 1))
    report = judged_with(folders[row], name, content[:end], row, "closed")
    if name.endswith("json"):  # the first lines of a YAML file are YAML too
        assert report.verdict is Verdict.REJECT


@settings(max_examples=60, deadline=None)
@given(content=st.binary(max_size=60), name=st.sampled_from(sorted(FILES)), row=st.sampled_from(ROWS))
def test_files_of_any_bytes(folders, content, name, row):
    assert judged_with(folders[row], name, content, row, "open").verdict is Verdict.REJECT
