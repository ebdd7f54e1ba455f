from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.scripted_settings import NO_FAULTS, Faults, ScriptedSettings, ServiceTime, read_answers
from harness.errors import ConfigError, MissingError, UnknownName

ROWS = st.frozensets(st.integers(0, 9_999), max_size=3)
SECONDS = st.floats(0, 100, allow_nan=False)
TIMES = st.builds(ServiceTime, SECONDS, st.sampled_from(["fixed", "exponential", "lognormal"]), SECONDS)
FAULTS = st.builds(
    Faults, ROWS, ROWS, ROWS, ROWS, st.none() | st.integers(0, 9), st.dictionaries(st.integers(0, 9), SECONDS)
)
SETTINGS = st.builds(
    ScriptedSettings,
    answers=st.dictionaries(st.text(), st.just(Path("a/b.npz")), max_size=2),
    length=st.integers(0, 9),
    vocab_size=st.integers(1, 99),
    slots=st.none() | st.integers(1, 9),
    first_token=TIMES,
    per_token=TIMES,
    seed=st.integers(0, 9),
    faults=st.dictionaries(st.text(), FAULTS, max_size=2),
)


@given(SETTINGS)
def test_json_and_back(settings: ScriptedSettings) -> None:
    assert ScriptedSettings.parse(json.loads(json.dumps(settings.to_json()))) == settings


def test_faults_of_a_data_set_its_own_or_everyones() -> None:
    own, everyones = Faults(fail=frozenset({1})), Faults(fail=frozenset({2}))
    settings = ScriptedSettings(faults={"acc": own, "*": everyones})
    assert settings.faults_of("acc") is own
    assert settings.faults_of("perf") is everyones
    assert ScriptedSettings(faults={"acc": own}).faults_of("perf") is NO_FAULTS


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ({"lenght": 3}, "did you mean 'length'"),
        ({"length": -1}, "length is -1"),
        ({"length": "3"}, "length is '3'"),
        ({"slots": 0}, "slots is 0"),
        ({"slots": True}, "slots is True"),
        ({"first_token": {"mean_s": -1}}, "mean_s is -1"),
        ({"first_token": {"mean_s": float("inf")}}, "mean_s is inf"),
        ({"first_token": 3}, "first_token"),
        ({"per_token": {"law": "lognorm"}}, "did you mean 'lognormal'"),
        ({"faults": {"perf": {"fial": [1]}}}, "did you mean 'fail'"),
        ({"faults": {"perf": {"fail": 1}}}, "a list of rows"),
        ({"faults": {"perf": {"fail": ["1"]}}}, "faults.fail is '1'"),
        ({"faults": {"perf": {"slow": {"x": 1}}}}, "the number of a row"),
        ({"faults": {"perf": {"die": -1}}}, "faults.die"),
        ({"faults": []}, "a mapping"),
        ([], "a mapping"),
    ],
)
def test_bad_settings_are_told(bad: object, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        ScriptedSettings.parse(bad)
    assert message in str(caught.value)


def test_an_unknown_key_is_an_unknown_name() -> None:
    with pytest.raises(UnknownName):
        ScriptedSettings.parse({"token": 1})


class TestReadAnswers:
    def test_no_file(self, tmp_path: Path) -> None:
        with pytest.raises(MissingError, match="not there"):
            read_answers(tmp_path / "no.npz", 10)

    @pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip", b"text"])
    def test_not_an_archive(self, tmp_path: Path, content: bytes) -> None:
        path = tmp_path / "bad.npz"
        path.write_bytes(content)
        with pytest.raises(ConfigError, match="not a file of scripted answers"):
            read_answers(path, 10)

    @pytest.mark.parametrize(
        ("arrays", "message"),
        [
            ({"tokens": np.zeros(2, np.int32)}, "ends"),
            ({"tokens": np.zeros(2, np.int64), "ends": np.array([2])}, "int64"),
            ({"tokens": np.zeros((1, 2), np.int32), "ends": np.array([2])}, "2-D"),
            ({"tokens": np.zeros(2, np.int32), "ends": np.array([1])}, "do not rise"),
            ({"tokens": np.zeros(2, np.int32), "ends": np.array([2, 1, 2])}, "do not rise"),
            ({"tokens": np.zeros(2, np.int32), "ends": np.array([], np.int64)}, "do not rise"),
            ({"tokens": np.array([3, 10], np.int32), "ends": np.array([2])}, "vocabulary"),
            ({"tokens": np.array([-1, 3], np.int32), "ends": np.array([2])}, "vocabulary"),
        ],
    )
    def test_not_answers(self, tmp_path: Path, arrays: dict[str, np.ndarray], message: str) -> None:
        path = tmp_path / "bad.npz"
        np.savez(path, **arrays)
        with pytest.raises(ConfigError, match=message):
            read_answers(path, 10)
