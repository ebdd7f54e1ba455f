from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.scripted_settings import NO_FAULTS, Faults, ScriptedSettings, ServiceTime
from harness.errors import ConfigError, UnknownName

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
