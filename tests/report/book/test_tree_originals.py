"""A tree beside the results folder that it was packaged from."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from harness.ledger.store import RECORD, SAMPLES, ResultsStore
from harness.report.book.content import Book, Distribution, Missing, RunView
from harness.report.book.tree import gather_tree
from harness.rules import load
from harness.submission import package
from harness.submission.secrets import Names
from tests.logs.loadgen_runs import loadgen_runs
from tests.report.book.made import made_columns, write_columns
from tests.submission.made_up import SCENARIOS, add_run, make_project, submission

__all__ = ["loadgen_runs"]
PACK = load("v6.1")
RUN = "box/gpt-oss-120b/Server/performance/attempt_01"


@pytest.fixture(scope="module")
def packaged(loadgen_runs: dict[tuple[str, str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with ``work/results`` and the tree ``out`` of it. The Server run has kept its samples. Read-only."""
    base = tmp_path_factory.mktemp("packaged")
    project = make_project(base / "work")
    store = ResultsStore(project.root / "results")
    for scenario in SCENARIOS:
        for leg in ("performance", "accuracy"):
            add_run(store, loadgen_runs, scenario, leg)
    write_columns(store.root / RUN, made_columns(500))
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("MLPERF_INFERENCE_DIR", raising=False)
        patch.setenv("HARNESS_DATA_DIR", str(base / "no data"))
        names = Names(host="buildhost7", user="zaphod")
        package(store, project, submission(), base / "out", demonstration=False, pack=PACK, names=names)
    return base


@pytest.fixture
def tree(packaged: Path, tmp_path: Path) -> Path:
    shutil.copytree(packaged / "out", tmp_path / "out")
    return tmp_path / "out"


@pytest.fixture
def results(packaged: Path, tmp_path: Path) -> Path:
    shutil.copytree(packaged / "work/results", tmp_path / "results")
    return tmp_path / "results"


def performance(book: Book) -> RunView:
    return next(run for run in book.runs if run.leg == "performance" and "Server" in run.title)


def whys(run: RunView) -> set[str]:
    return {figure.why for figure in run.figures if isinstance(figure, Missing)}


def test_a_run_whose_hash_is_the_trees_has_all_its_figures(tree: Path, results: Path) -> None:
    alone, beside = (performance(gather_tree(tree, PACK, folder)) for folder in (None, results))
    figures = {figure.key: figure for figure in beside.figures}
    tokens = figures["output_tokens"]
    assert isinstance(tokens, Distribution) and tokens.count == 500
    assert not isinstance(figures["throughput"], Missing)
    assert (beside.title, beside.word, beside.headline, beside.margins) == (
        alone.title,
        alone.word,
        alone.headline,
        alone.margins,
    )
    assert dict(dict(beside.facts)["fingerprint"])["system"] == "box"


def test_a_run_that_is_another_has_none(tree: Path, results: Path) -> None:
    log = tree / "open/Example/results/box/gpt-oss-120b/Server/performance/run_1/mlperf_log_detail.txt"
    log.write_text(log.read_text() + "\n")
    run = performance(gather_tree(tree, PACK, results))
    assert any("has another mlperf_log_detail.txt than the tree" in why for why in whys(run))
    assert any(isinstance(figure, Distribution) for figure in run.figures)  # LoadGen's percentiles


def test_a_run_that_is_gone_and_a_tree_that_names_none(tree: Path, results: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    gone = performance(gather_tree(tree, PACK, tmp_path / "other"))
    assert any(f"is not in {tmp_path / 'other'}" in why for why in whys(gone))
    (tree / "open/Example/MANIFEST.json").unlink()
    strange = performance(gather_tree(tree, PACK, results))
    assert any("no manifest names the run" in why for why in whys(strange))


def test_a_run_without_its_samples_says_so(tree: Path, results: Path) -> None:
    (results / RUN / SAMPLES).unlink()
    run = performance(gather_tree(tree, PACK, results))
    assert any(SAMPLES in why for why in whys(run))
    shutil.rmtree(results / RUN)
    assert not (results / RUN / RECORD).exists()
    assert any("is not in" in why for why in whys(performance(gather_tree(tree, PACK, results))))


def test_nothing_is_changed_by_looking(tree: Path, results: Path) -> None:
    def content() -> dict[Path, bytes]:
        return {path: path.read_bytes() for root in (tree, results) for path in root.rglob("*") if path.is_file()}

    before = content()
    gather_tree(tree, PACK, results)
    assert content() == before
