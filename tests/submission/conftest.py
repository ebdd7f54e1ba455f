from __future__ import annotations

import functools

import pytest

from harness.config.files import Project
from harness.ledger.store import ResultsStore
from harness.submission import secrets
from harness.submission.secrets import Names
from tests.logs.loadgen_runs import loadgen_runs
from tests.submission.made_up import SCENARIOS, add_run, make_project

__all__ = ["loadgen_runs"]


@pytest.fixture(autouse=True)
def _no_clone_and_no_data(monkeypatch, tmp_path):
    monkeypatch.delenv("MLPERF_INFERENCE_DIR", raising=False)
    monkeypatch.delenv("MLPERF_EVALUATOR_PYTHON", raising=False)
    monkeypatch.setenv("HARNESS_DATA_DIR", str(tmp_path / "no data"))


@functools.cache
def _found_once(text, names, paths, hits=secrets._hits):
    return tuple(hits(text, names, paths))


@pytest.fixture(autouse=True)
def _a_text_is_searched_once(monkeypatch):
    """Each tree carries the harness's source: two seconds of searching the same text again."""
    monkeypatch.setattr(secrets, "_hits", _found_once)


@pytest.fixture
def project(tmp_path) -> Project:
    """A submitter's folder with one system, ``box``, entered in open with both scenarios."""
    return make_project(tmp_path / "work")


@pytest.fixture
def store(project, loadgen_runs) -> ResultsStore:
    """Four finished legs with the logs of real LoadGen runs."""
    store = ResultsStore(project.root / "results")
    for scenario in SCENARIOS:
        for leg in ("performance", "accuracy"):
            add_run(store, loadgen_runs, scenario, leg)
    return store


@pytest.fixture
def names() -> Names:
    """A host and a user that no log names by chance."""
    return Names(host="buildhost7", user="zaphod")
