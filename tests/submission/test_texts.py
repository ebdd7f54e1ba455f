from __future__ import annotations

from typing import get_args

import pytest

from harness.config.models import Engine
from harness.errors import ConfigError
from harness.ledger.record import AccuracyEcho
from harness.rules import load
from harness.submission import source
from harness.submission.texts import Texts, accuracy_line, fill, label, note
from tests.submission.made_up import BENCHMARK, REPOSITORY, SUBSETS

PACK = load("v6.1")
KINDS = [get_args(model.model_fields["kind"].annotation)[0] for model in get_args(get_args(Engine)[0])]


@pytest.fixture
def record(store):
    return store.latest_finished("box", BENCHMARK, "Offline", "performance").record


@pytest.mark.parametrize("kind", KINDS)
def test_every_engine_has_measurements(record, kind):
    ran = record.model_copy(update={"engine": record.engine.model_copy(update={"kind": kind, "checkpoint": None})})
    measured = Texts(REPOSITORY / "measurements").measurements(ran, PACK)
    assert list(measured) == PACK.measurements_fields.value
    assert all(measured.values())
    assert measured["retraining"] == "No"


def test_an_engine_without_a_template_is_named(record):
    other = record.model_copy(update={"engine": record.engine.model_copy(update={"kind": "abacus"})})
    with pytest.raises(ConfigError, match="'abacus'") as caught:
        Texts(REPOSITORY / "measurements").measurements(other, PACK)
    assert "torch" in caught.value.expected


def test_a_template_that_leaves_a_field_out_is_named(record, tmp_path):
    folder = tmp_path / BENCHMARK
    folder.mkdir()
    (folder / "measurements.yaml").write_text("every_engine: {retraining: 'No'}\nengines: {torch: {}}\n")
    with pytest.raises(ConfigError, match="input_data_types"):
        Texts(tmp_path).measurements(record, PACK)


@pytest.mark.parametrize("template", ["$nothing_fills_this", "a lone $ sign"])
def test_a_template_with_a_name_that_nothing_fills(tmp_path, template):
    with pytest.raises(ConfigError, match="nothing fills") as caught:
        fill(template, {"known": 1}, tmp_path / "README.template.md")
    assert "known" in caught.value.expected


def test_a_template_that_is_not_there(record, tmp_path):
    with pytest.raises(ConfigError, match="cannot be read"):
        Texts(tmp_path).calibration(record, {})


def test_labels_and_notes():
    assert label("open", ("output cap 32",), demonstration=False) == "MLPerf Open."
    assert "- stand-in" in label("open", ("stand-in",), demonstration=True)
    assert note("a box", ("x",), demonstration=False) == "a box"
    assert note("", ('the "x" one',), demonstration=True) == "DEMONSTRATION, not a submission: the 'x' one"


def test_an_accuracy_is_a_number_or_says_why_not():
    echo = AccuracyEcho(key="exact_match", value=None, subsets=SUBSETS, evaluator="the harness")
    assert accuracy_line(echo) == "no exact_match: 3165 samples unscored; by the harness"
    short = echo.model_copy(update={"subsets": {"aime25": SUBSETS["aime25"]}})
    assert accuracy_line(short) == "no exact_match: only 240 samples were asked; by the harness"
    assert accuracy_line(echo.model_copy(update={"value": 83.8712})) == "exact_match 83.871, by the harness"
    assert accuracy_line(None) == "not scored"


def test_the_source_that_ran_is_told_from_another(monkeypatch):
    monkeypatch.setattr(source, "source_sha256", lambda: "ab" * 32)
    assert source.source_note("ab" * 32).startswith("It is the source that ran")
    assert "another state" in source.source_note("cd" * 32)
    assert "not recorded" in source.source_note(None)
