from __future__ import annotations

from typing import get_args

import pytest

from harness.config.models import Engine
from harness.errors import ConfigError
from harness.ledger.record import AccuracyEcho
from harness.rules import load
from harness.submission import source
from harness.submission.texts import Texts, _subsets, accuracy_line, fill, label, note
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
    (tmp_path / BENCHMARK).mkdir()
    (tmp_path / BENCHMARK / "measurements.yaml").write_text("every_engine: {}\nengines: {}\n")
    with pytest.raises(ConfigError, match="cannot be read"):
        Texts(tmp_path).calibration(record, {}, PACK)


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
    assert accuracy_line(echo.model_copy(update={"value": 83.8712})) == "exact_match 83.8712, by the harness"
    of_f1 = echo.model_copy(
        update={"key": "f1", "value": 0.782397}
    )  # a target has six digits, and so has what reached it
    assert accuracy_line(of_f1) == "f1 0.782397, by the harness"
    assert accuracy_line(None) == "not scored"


def test_the_source_that_ran_is_told_from_another(monkeypatch):
    monkeypatch.setattr(source, "source_sha256", lambda: "ab" * 32)
    assert source.source_note("ab" * 32).startswith("It is the source that ran")
    assert "another state" in source.source_note("cd" * 32)
    assert "not recorded" in source.source_note(None)


VLM = "qwen3-vl-235b-a22b"
NVFP4 = "nvidia/Qwen3-VL-235B-A22B-Instruct-NVFP4-MLPerf-Inference-Closed-V6.1-FP8-KV"
ROWS = PACK.benchmark(VLM).calibration_rows.value


def of_vlm(record, checkpoint, *, seen=True, revision=None):
    """The record as a run of Qwen3-VL on a server of this checkpoint would have it."""
    name, data_type = checkpoint
    written = {"name": name, "path": "/models/m", "revision": revision, "weight_data_type": data_type}
    told = {"name": name, "sha256": "ab" * 32, "stand_in": False, "weight_data_type": data_type}
    return record.model_copy(
        update={
            "id": record.id.model_copy(update={"benchmark": VLM}),
            "config": {"engine": {"kind": "http", "checkpoint": written}, "scenarios": {"Offline": {"engine": None}}},
            "engine": record.engine.model_copy(update={"kind": "http", "checkpoint": told if seen else None}),
        }
    )


def texts_of(ran):
    texts = Texts(REPOSITORY / "measurements")
    measured = texts.measurements(ran, PACK)
    return measured, texts.calibration(ran, measured, PACK)


@pytest.mark.parametrize("seen", [True, False])
def test_an_nvfp4_checkpoint_never_says_bf16_and_names_the_rows_it_was_calibrated_on(record, seen):
    measured, calibration = texts_of(of_vlm(record, (NVFP4, "nvfp4"), seen=seen))
    assert measured["weight_data_types"] == "nvfp4"
    assert NVFP4 in measured["starting_weights_filename"]
    assert ("ab" * 32 in measured["starting_weights_filename"]) == seen
    assert "bf16" not in "".join(measured.values()) + calibration
    assert len(ROWS) == 20
    assert calibration.count(", ".join(map(str, ROWS))) == 2
    assert "calibrated it on 20 rows of the benchmark's data set" in calibration.replace("\n", " ")


def test_a_checkpoint_as_it_was_trained_claims_no_calibration(record):
    ran = of_vlm(record, ("Qwen/Qwen3-VL-235B-A22B-Instruct", "bf16"), revision="710c1386")
    measured, calibration = texts_of(ran)
    assert measured["weight_data_types"] == "bf16"
    assert "revision 710c1386" in measured["starting_weights_filename"]
    assert "nothing was calibrated" in calibration
    assert ", ".join(map(str, ROWS)) in calibration


def test_of_a_checkpoint_that_nobody_knows_no_calibration_is_claimed(record):
    _, calibration = texts_of(of_vlm(record, ("ours/q", "fp8")))
    assert "Of a calibration of ours/q nothing is known here." in calibration


@pytest.mark.parametrize("kind", KINDS)
def test_every_engine_has_measurements_of_pictures(record, kind):
    ran = of_vlm(record, (NVFP4, "nvfp4"))
    measured = Texts(REPOSITORY / "measurements").measurements(
        ran.model_copy(update={"engine": ran.engine.model_copy(update={"kind": kind})}), PACK
    )
    assert list(measured) == PACK.measurements_fields.value
    assert all(measured.values())


def test_what_is_filed_of_a_benchmark_without_listed_rows_says_none(record):
    measured = Texts(REPOSITORY / "measurements").measurements(record, PACK)
    calibration = Texts(REPOSITORY / "measurements").calibration(record, measured, PACK)
    assert "calibrat" in calibration
    assert "$" not in calibration


def test_answers_that_are_logged_as_text_have_no_mean_of_tokens(record):
    echo = record.model_copy(update={"accuracy": AccuracyEcho.model_validate(uncounted())}).accuracy
    assert "| shopify_product_catalogue | 4 | 3 | 1 | 0 | 0 | not counted |" in _subsets(echo)


def uncounted():
    subset = {"samples": 4, "correct": 3, "wrong": 1, "failed": 0, "unscored": 0, "mean_output_tokens": None}
    return {"key": "f1", "value": 0.75, "subsets": {"shopify_product_catalogue": subset}, "evaluator": "harness"}


def test_where_no_weights_ran_none_were_calibrated(record):
    ran = of_vlm(record, (NVFP4, "nvfp4"))
    scripted = ran.engine.model_copy(update={"kind": "scripted", "checkpoint": None})
    _, calibration = texts_of(ran.model_copy(update={"engine": scripted, "config": {"engine": {"kind": "scripted"}}}))
    assert "No weights ran, and none were calibrated." in calibration
    assert "(reference/multimodal/qwen3-vl/README.md:198-225): 20232, 21162" in calibration
