from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.env import MLPERF_INFERENCE_DIR
from harness.logs import AccuracyResults, EndpointsAudit, EndpointsLog, LogError, audit_files, read_config
from harness.logs import endpoints as ep
from tests.logs.endpoints_files import ACCURACY, CONFIG, SUMMARY, ScenarioFolder, scored
from tests.logs.hostile import ODD_VALUES, ask_everything


@pytest.fixture
def folder():
    return ScenarioFolder()


def test_what_a_folder_tells(folder, tmp_path):
    log = EndpointsLog.read(folder.write(tmp_path))
    assert log.text(ep.SCENARIO) == log.text("type") == "online"
    assert log.number(ep.MIN_DURATION_MS) == 600000
    assert log.integer(ep.SCHEDULE_SEED) == log.integer("settings.runtime.scheduler_random_seed") == (1 << 64) - 1
    assert log.integer(ep.SAMPLE_INDEX_SEED) == 11
    assert (log.integer(ep.ISSUED), log.integer(ep.COMPLETED), log.integer(ep.FAILED)) == (6396, 6396, 0)
    assert (log.number("qps"), log.number("tps"), log.number("latency.avg")) == (9.9, 12578.0, 1e9)
    assert log.number("output_sequence_lengths.avg") == 1270.5
    assert (log.flag("complete"), log.text("state")) == (True, "complete")
    assert log.text("model_params.name") == "openai/gpt-oss-120b"
    assert log.issued_per_second == pytest.approx(10.0)
    assert log.value("absent") is None
    assert log.contradictions == ()
    # Both files have a version; the report's is the client's.
    assert (log.text("version"), log.config.text("version")) == ("0.3.0", "1.0")


def test_percentiles_are_those_of_early_stopping(folder, tmp_path):
    folder.summary["ttft"]["early_stopping_percentiles"] = {"99": 7, "99.9": 8, "90.0": None}
    folder.summary["tpot"]["early_stopping_percentiles"] = None
    log = EndpointsLog.read(folder.write(tmp_path))
    assert log.percentile("latency", 99) == 3e9 + 99
    assert log.percentile("latency", 99.9) == 3e9 + 99.9
    assert (log.percentile("ttft", 99), log.percentile("ttft", 99.9)) == (7, 8)
    assert (log.percentile("ttft", 90), log.percentile("ttft", 50), log.percentile("tpot", 99)) == (None, None, None)


def test_a_name_in_the_report_hides_the_setting_and_is_told(folder, tmp_path):
    folder.summary |= {"min_duration_ms": 600001, "effective_scenario": "offline", "generated_query_count": 9}
    log = EndpointsLog.read(folder.write(tmp_path))
    assert (log.number(ep.MIN_DURATION_MS), log.text(ep.SCENARIO), log.integer(ep.ISSUED)) == (600001, "offline", 9)
    told = {c.name: (c.taken.key, c.taken.value, c.other.key, c.other.value) for c in log.contradictions}
    assert told == {
        "effective_scenario": ("effective_scenario", "offline", "type", "online"),
        "generated_query_count": ("generated_query_count", 9, "n_samples_issued", 6396),
        "min_duration_ms": ("min_duration_ms", 600001, "settings.runtime.min_duration_ms", 600000),
    }
    assert str(log.contradictions[2].other) == "settings.runtime.min_duration_ms 600000 in config.yaml"


@pytest.mark.parametrize(
    ("where", "value"),
    [
        ("scheduler_random_seed", 1),
        ("dataloader_random_seed", True),
        ("load_pattern", {"type": "poisson", "target_qps": 9}),
    ],
)
def test_the_settings_that_the_report_repeats_are_compared(folder, tmp_path, where, value):
    folder.config["settings"]["runtime"]["dataloader_random_seed"] = 1
    folder.summary["run_config"]["dataloader_random_seed"] = 1
    folder.summary["run_config"][where] = value
    (found,) = EndpointsLog.read(folder.write(tmp_path)).contradictions
    assert found.other.key.startswith(f"run_config.{where}")


def test_equal_values_in_two_places_are_no_contradiction(folder, tmp_path):
    folder.summary |= {"min_duration_ms": 600000.0, "generated_query_duration": 639_600_000_000, "max_duration_ms": 0}
    # As a name of the official reader's this is the count issued; where written, it may be another.
    folder.summary["n_samples_from_dataset"] = 1
    assert EndpointsLog.read(folder.write(tmp_path)).contradictions == ()


@pytest.mark.parametrize(
    ("value", "ask"),
    [
        ("600000", "number"), (True, "number"), (math.nan, "number"), (math.inf, "number"), (10**400, "number"),
        (1 << 64, "integer"), (1.5, "integer"), (1, "flag"), (1, "text"), ([1], "text"),
    ],
)  # fmt: skip
def test_a_value_of_the_wrong_type_is_told_with_file_and_path(folder, tmp_path, value, ask):
    folder.config["settings"]["runtime"]["min_duration_ms"] = value
    folder.summary["qps"] = value
    log = EndpointsLog.read(folder.write(tmp_path))
    with pytest.raises(LogError, match=r"settings\.runtime\.min_duration_ms is") as caught:
        getattr(log, ask)(ep.MIN_DURATION_MS)
    assert caught.value.where == str(tmp_path / "config.yaml")
    with pytest.raises(LogError, match="qps is") as caught:
        getattr(log, ask)("qps")
    assert caught.value.where == str(tmp_path / "performance/result_summary.json")


@pytest.mark.parametrize("duration", [0, -1])
def test_a_rate_over_no_time(folder, tmp_path, duration):
    folder.summary["duration_ns"] = duration
    with pytest.raises(LogError, match="duration_ns is"):
        _ = EndpointsLog.read(folder.write(tmp_path)).issued_per_second
    folder.summary["duration_ns"] = None
    assert EndpointsLog.read(folder.write(tmp_path)).issued_per_second is None


def test_the_first_configuration_that_is_yaml_counts(folder, tmp_path):
    folder.write(tmp_path)
    (tmp_path / "config.yml").write_text("type: other\n")
    assert read_config(tmp_path).text("type") == "online"
    (tmp_path / "config.yaml").write_text("type: [")
    assert read_config(tmp_path).path.name == "config.yml"
    (tmp_path / "config.yaml").write_text("- a list\n")  # YAML, which the official reader would not pass over
    with pytest.raises(LogError, match="a YAML list"):
        read_config(tmp_path)
    (tmp_path / "config.yaml").write_text("")
    assert read_config(tmp_path).data == {}
    (tmp_path / "config.yaml").unlink()
    assert read_config(tmp_path).text("type") == "other"
    (tmp_path / "config.yml").unlink()
    with pytest.raises(LogError, match="no such file") as caught:
        read_config(tmp_path)
    assert caught.value.where == str(tmp_path / "config.yaml")
    (tmp_path / "config.yaml").write_text("type: [")
    with pytest.raises(LogError, match="not YAML"):
        read_config(tmp_path)


def test_scored_data_sets(folder, tmp_path):
    results = AccuracyResults.read(folder.write(tmp_path))
    names = [entry.name for entry in results.scored]
    assert names == ["performance", "aime25", "gpqa", "livecodebench"]
    assert results.samples == 240 + 990 + 3165
    assert results.published.name == "aime25"
    gpqa = results.scored[2]
    assert (gpqa.score, gpqa.score_number(), gpqa.complete, gpqa.is_accuracy) == (0.8, 0.8, True, True)
    assert (gpqa.unit_samples, gpqa.num_repeats, gpqa.total_samples, gpqa.samples) == (198, 5, 990, 990)
    assert gpqa.response_counts == {"issued": 990, "scored": 990, "empty": 0, "missing": 0}
    assert gpqa.breakdown.number("overall_accuracy") == 80.0
    assert results.scored[1].breakdown is None
    assert not results.scored[0].is_accuracy
    assert results.log.text(ep.SCENARIO) == "online"


def test_where_totals_are_absent_the_answers_issued_count(folder, tmp_path):
    without_type = scored("a", 1, 5, 1, total_samples=None)
    del without_type["dataset_type"]
    folder.accuracy["accuracy_scores"] = [without_type, scored("b", 1, 6, 1, total_samples=None, response_counts={})]
    results = AccuracyResults.read(folder.write(tmp_path))
    assert results.samples == 5
    assert results.scored[1].samples is None
    assert results.scored[1].response_counts == {}


@pytest.mark.parametrize("empty", [[], {}])
@pytest.mark.parametrize("key", ["total_samples", "dataset_type"])
def test_an_empty_value_where_the_official_checker_takes_it_as_it_is(folder, tmp_path, key, empty):
    folder.accuracy["accuracy_scores"] = [scored("a", 1, 5, 1) | {key: empty}]
    results = AccuracyResults.read(folder.write(tmp_path))
    with pytest.raises(LogError, match=rf"accuracy_scores\.0\.{key} is"):
        _ = results.samples


@pytest.mark.parametrize(
    ("score", "number"),
    [
        (0.5, 0.5), (1, 1.0), ("0.5", 0.5), ({"x": 1, "f1": "0.7"}, 0.7), ({"f1": "no", "score": 0.6}, 0.6),
        ("x", None), ("nan", None), (math.inf, None), (True, None), ([], None), ({}, None), ({"x": 1}, None),
        (10**400, None), (None, None), ({"f1": True}, None),
        ({"f1": False, "score": 0.9}, None), ({"f1": 10**400, "score": 0.9}, None),
        ({"f1": "-inf", "score": 0.9}, None),
    ],
)  # fmt: skip
def test_scores_as_numbers(folder, tmp_path, score, number):
    folder.accuracy["accuracy_scores"] = [scored("a", score, 5, 1)]
    (entry,) = AccuracyResults.read(folder.write(tmp_path)).scored
    if number is None:
        with pytest.raises(LogError, match=r"accuracy_scores\.0\.score is"):
            entry.score_number(("f1", "score", "accuracy"))
    else:
        assert entry.score_number(("f1", "score", "accuracy")) == number


@pytest.mark.parametrize("scores", [None, {"aime25": {}}, [1], "x", [None], 3])
def test_scores_that_are_no_list_of_objects(folder, tmp_path, scores):
    folder.accuracy["accuracy_scores"] = scores
    with pytest.raises(LogError, match="accuracy_scores is"):
        AccuracyResults.read(folder.write(tmp_path))


def test_nothing_scored(folder, tmp_path):
    folder.accuracy = {}
    results = AccuracyResults.read(folder.write(tmp_path))
    assert (results.scored, results.samples, results.published) == ((), None, None)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("total_samples", "5"), ("total_samples", 5.0), ("total_samples", -1), ("unit_samples", True), ("complete", 1),
        ("num_repeats", math.nan), ("response_counts", [1]), ("response_counts", {"issued": None}), ("breakdown", 1),
        ("response_counts", {"missing": -1}), ("dataset_name", 1), ("dataset_type", 1),
    ],
)  # fmt: skip
def test_nonsense_in_an_entry_is_told_with_its_path(folder, tmp_path, key, value):
    folder.accuracy["accuracy_scores"][1][key] = value
    entry = AccuracyResults.read(folder.write(tmp_path)).scored[1]
    with pytest.raises(LogError, match=rf"accuracy_scores\.1\.{key}"):
        getattr(entry, {"dataset_name": "name"}.get(key, key))


def test_audits(folder, tmp_path):
    assert audit_files(tmp_path) == ()
    (path,) = audit_files(folder.write(tmp_path))
    audit = EndpointsAudit.read(path)
    assert (audit.name, audit.test, audit.passed) == ("output_caching_test", "output_caching_test", True)
    path.write_text('{"passed": "yes"}')
    audit = EndpointsAudit.read(path)
    assert audit.test is None
    with pytest.raises(LogError, match="passed is"):
        _ = audit.passed


# -- whatever is in the files ------------------------------------------------------------------------------------------


def assert_read(folder):
    """Reads and asks everything: values, or LogErrors that name a file of the folder."""
    try:
        log = EndpointsLog.read(folder)
        ask_everything(
            log, [*ep.CONFIG_PATHS, *ep.CONFIG_PATHS.values(), *ep.REPORT_PATHS, "qps", "tps", "latency.avg"]
        )
        for series in ("latency", "ttft", "tpot"):
            ask_everything(log, [f"{series}.early_stopping_percentiles.99.0"])
        [str(found.taken) + str(found.other) for found in log.contradictions]
        results = AccuracyResults.read(folder)
        ask_everything(results.log, ["result.failed", "n_samples_failed"])
        for entry in results.scored:
            ask_everything(entry.entry, ["score", "total_samples", "response_counts", "breakdown", "dataset_name"])
            for name in (
                "score",
                "samples",
                "total_samples",
                "complete",
                "response_counts",
                "breakdown",
                "is_accuracy",
            ):
                asked(lambda entry=entry, name=name: getattr(entry, name))
            asked(lambda entry=entry: entry.score_number(("f1",)))
        asked(lambda: results.samples)
        for path in audit_files(folder):
            audit = EndpointsAudit.read(path)
            asked(lambda audit=audit: (audit.name, audit.test))
            asked(lambda audit=audit: audit.passed)
    except LogError as error:
        assert error.where.startswith(str(folder))


def asked(ask):
    try:
        return ask()
    except LogError:
        return None


FILES = sorted(ScenarioFolder().texts())


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_files_cut_and_changed_anywhere(tmp_path_factory, data):
    folder = ScenarioFolder().write(tmp_path_factory.mktemp("cut"))
    path = folder / data.draw(st.sampled_from(FILES))
    content = bytearray(path.read_bytes())
    content = content[: data.draw(st.integers(0, len(content)))]
    for _ in range(data.draw(st.integers(0, 3))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content))
    assert_read(folder)


def leaves(value, place=()):
    """The places of all values in JSON."""
    yield place
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield from leaves(inner, (*place, key))


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_any_value_replaced_by_an_odd_one(tmp_path_factory, data):
    folder = ScenarioFolder()
    name, parts = data.draw(
        st.sampled_from(
            [
                ("performance/result_summary.json", SUMMARY),
                ("accuracy/accuracy_results.json", ACCURACY),
                ("config.yaml", CONFIG),
            ]
        )
    )
    place = data.draw(st.sampled_from([place for place in leaves(parts) if place]))
    changed = json.loads(json.dumps(parts))
    inner = changed
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = "@odd@"
    path = folder.write(tmp_path_factory.mktemp("odd")) / name
    path.write_text(json.dumps(changed).replace('"@odd@"', data.draw(ODD_VALUES)))  # JSON is YAML too
    assert_read(path.parents[0] if name == "config.yaml" else path.parents[1])


# -- beside the official checker ---------------------------------------------------------------------------------------


@pytest.fixture
def official(monkeypatch):
    """The official parser, and its names of the values."""
    clone = MLPERF_INFERENCE_DIR.path()
    if clone is None:
        pytest.skip(f"{MLPERF_INFERENCE_DIR.name} names no clone to compare the readers with")
    monkeypatch.syspath_prepend(str(clone / "tools/submission"))
    from submission_checker import constants
    from submission_checker.parsers.endpoints_parser import EndpointsParser

    return EndpointsParser, constants


COMPUTED = {
    "performance": ["result_completed_samples_per_sec"],
    "accuracy": ["qsl_reported_total_count", "generated_query_count", "result_completed_samples_per_sec"],
}
"""What the official parser works out where the files do not tell it."""


def test_the_paths_are_the_official_checkers(official):
    constants = official[1]
    assert constants.ENDPOINTS_YAML_FIELD_MAP == ep.CONFIG_PATHS
    alternatives = {k: v for k, v in constants.ENDPOINTS_JSON_ALT_PATHS.items() if k in constants.ENDPOINTS_MAPPINGS}
    assert alternatives.items() <= ep.REPORT_PATHS.items()
    assert ep.REPORT_PATHS.items() <= constants.ENDPOINTS_JSON_ALT_PATHS.items()


@pytest.mark.parametrize(
    "change",
    [
        {}, {"min_duration_ms": 5}, {"effective_scenario": "offline"}, {"duration_ns": {}}, {"qps": None},
        {"latency.avg": 3}, {"latency": {"early_stopping_percentiles": {"99": 3}}}, {"result.failed": 4},
        {"generated_query_count": 0}, {"settings.runtime.min_duration_ms": 9}, {"type": "x"}, {"result": {"total": 3}},
    ],
)  # fmt: skip
def test_values_are_the_official_parsers(official, folder, tmp_path, change):
    parser, constants = official
    folder.summary |= change
    folder.accuracy |= change
    folder.write(tmp_path)
    for kind, report in (("performance", ep.RESULT_SUMMARY), ("accuracy", ep.ACCURACY_RESULTS)):
        theirs = parser(str(tmp_path), log_type=kind).get_messages()
        ours = EndpointsLog.read(tmp_path, report)
        for name, key in constants.ENDPOINTS_MAPPINGS.items():
            told = [message["value"] for message in theirs.get(key, [])]
            value = ours.value(name)
            if key in COMPUTED[kind] and value is None:
                continue
            assert told[:1] == [value] or (told == [] and value is None), name
    assert (
        AccuracyResults.read(tmp_path).samples
        == parser(str(tmp_path), log_type="accuracy")["effective_accuracy_sample_count"]
    )
