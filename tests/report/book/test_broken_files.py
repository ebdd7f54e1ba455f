"""Whatever is done to the files of runs, there is a book of them: what cannot be read is said, and nothing raises."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.ledger import ResultsStore
from harness.ledger.record import TurnCounts
from harness.ledger.samples import Int64
from harness.report.book.content import Missing
from harness.report.book.results import gather_results
from harness.report.book.sample_figures import SAMPLES, Limits, sample_figures
from harness.runs.turn_figures import write_turn_figures
from tests.clients.endpoints.reports import Report
from tests.report.book import test_endpoints_run as of_client
from tests.report.book.made import made_columns, made_run
from tests.runs.made_turns import A, MadeTurn, keep, small_library, turns_of

TURNS = TurnCounts(issued=2, answered=2, failed=0, skipped=0, outstanding=0)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory, server_logs: Path) -> Path:
    """A results folder with a run of LoadGen's, one of trajectories and one of the client's."""
    folder = tmp_path_factory.mktemp("runs")
    results = folder / "results"
    logs = made_run(results, 400).logs
    logs.rmdir()
    shutil.copytree(server_logs, logs)
    library = small_library(folder)
    whole = made_run(results, 3, scenario="SingleStream", turns=TURNS).folder
    turns = [MadeTurn(A, 0, 100, 400, 4, 5000, 0, 2), MadeTurn(A, 500, 550, 650, 3, 9000, 4500, 0)]
    keep(whole, library, turns_of(library, [0], [turns]))
    write_turn_figures(whole, library)
    of_client.made_run(results, Report())
    return results


def files(root: Path) -> list[Path]:
    return sorted(path for path in root.rglob("*") if path.is_file())


def test_the_runs_are_whole(root: Path) -> None:
    """Else what follows would show nothing."""
    book = gather_results(ResultsStore(root))
    assert {run.word for run in book.runs} == {"VALID"} and not book.notes
    by_leg = {run.title.split("/")[2] + run.leg: run for run in book.runs}
    assert {m.name for m in by_leg["Serverperformance"].margins} >= {
        "TTFT p99",
        "duration",
        "mean output tokens",
        "TTFT, early stopping",
    }
    facts = dict(by_leg["Serverperformance"].facts)
    assert dict(facts["LoadGen says"])["result_validity"] in ("VALID", "INVALID")
    turns = by_leg["SingleStreamperformance"]
    assert turns.turns is not None and turns.turns.turns.answered == 2
    assert {figure.key for figure in turns.figures if isinstance(figure, Missing)} <= {"ttft_over_time"}
    assert by_leg["Serverendpoints"].margins


@contextmanager
def changed(path: Path, content: bytes) -> Iterator[None]:
    before = path.read_bytes()
    path.write_bytes(content)
    try:
        yield
    finally:
        path.write_bytes(before)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_no_change_of_a_file_raises(root: Path, data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(files(root)), label="file")
    content = path.read_bytes()
    at = data.draw(st.integers(0, len(content)), label="at")
    put = data.draw(st.binary(max_size=40), label="put")
    behind = data.draw(st.sampled_from([at, at + len(put), len(content)]), label="behind")
    with changed(path, content[:at] + put + content[behind:]):
        book = gather_results(ResultsStore(root))
    assert len(book.runs) == 3, "each is there, be it unread"
    assert all(run.word and run.title and run.key for run in book.runs)


@pytest.mark.parametrize("name", ["folder", "gone"])
def test_files_that_are_gone_or_folders(root: Path, name: str) -> None:
    for path in files(root):
        if path.name == "run.json":
            continue
        kept = path.with_name(path.name + ".kept")
        path.rename(kept)
        if name == "folder":
            path.mkdir()
        try:
            assert len(gather_results(ResultsStore(root)).runs) == 3
        finally:
            if name == "folder":
                path.rmdir()
            kept.rename(path)


EXTREMES = [-(2**63), -(2**62), -1, 0, 1, 2, 77, 2**53, 2**62, 2**63 - 1]


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_no_numbers_raise(data: st.DataObject) -> None:
    """Columns as nobody writes them: each number may be any."""
    columns: dict[str, Int64] = made_columns(data.draw(st.integers(1, 6)))
    for name in ("state", "issued_ns", "first_token_ns", "done_ns", "answer_tokens", "prompt_tokens"):
        for at in range(len(columns[name])):
            if data.draw(st.booleans()):
                columns[name][at] = data.draw(st.sampled_from(EXTREMES))
    figures = sample_figures(columns, Limits(), SAMPLES)
    assert len({figure.key for figure in figures}) == len(figures) >= 10
    for figure in figures:
        values = getattr(figure, "values", ())
        assert np.isfinite(values).all()
