"""user.conf: what we write, what LoadGen would misread, and what it says it was asked for."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.clients.loadgen.user_conf import Setting, misread, parse, write
from harness.errors import ConfigError, UnknownName

MODEL = "gpt-oss-120b"
WHOLE = ("target_latency", "min_duration", "max_duration", "min_query_count", "max_query_count")
GOOD = f"{MODEL}.Offline.target_qps = 12.5\n"


def test_a_file_as_it_is_written() -> None:
    text = write(MODEL, "Server", {"target_qps": 1 / 3, "min_duration": 600000})
    assert text == f"{MODEL}.Server.target_qps = 0.333333\n{MODEL}.Server.min_duration = 600000\n"
    assert parse(text)[1] == Setting(MODEL, "Server", "min_duration", "600000")


@pytest.mark.parametrize(
    ("value", "text"), [(100, "100"), (1e6, "1000000"), (0.5, "0.5"), (1e-6, "0.000001"), (1.5e3, "1500"), (0, "0")]
)
def test_numbers_have_no_exponent(value: float, text: str) -> None:
    assert write(MODEL, "Offline", {"target_qps": value}) == f"{MODEL}.Offline.target_qps = {text}\n"


@given(
    st.sampled_from([MODEL, "*", "qwen3.6-27b"]),
    st.sampled_from(["Offline", "Server"]),
    st.floats(1e-6, 1e12),
    st.dictionaries(st.sampled_from(WHOLE), st.integers(0, 2**63)),
)
def test_what_is_written_is_parsed(model: str, scenario: str, qps: float, whole: dict[str, int]) -> None:
    settings = parse(write(model, scenario, {"target_qps": qps, **whole}))
    assert {(s.model, s.scenario) for s in settings} == {(model, scenario)}
    assert float(settings[0].value) == pytest.approx(qps, abs=5.1e-7)
    assert {s.key: int(s.value) for s in settings[1:]} == whole


@pytest.mark.parametrize("value", [float("inf"), float("nan"), -1.0, 1e-9])
@pytest.mark.parametrize("key", ["target_qps", "min_duration"])
def test_what_cannot_be_written(key: str, value: float) -> None:
    with pytest.raises(ConfigError):
        write(MODEL, "Offline", {key: value})


@pytest.mark.parametrize(
    ("key", "near"), [("target_qp", "target_qps"), ("min_queries", "min_query_count"), ("performance_sample_count", "")]
)
def test_keys_that_loadgen_ignores(key: str, near: str) -> None:
    with pytest.raises(UnknownName) as caught:
        parse(f"{MODEL}.Offline.{key} = 4\n")
    assert near in (caught.value.mend or "")


@pytest.mark.parametrize(
    "line",
    [
        "{m}.Offline.target_qps=4",  # ignored
        "{m}.Offline.target_qps =4",  # drops the file
        "{m}.Offline.target_qps = ",  # ignored
        "{m}.Offline.target_qps 4",  # drops the file
        "{m}.Offline.target_qps = 4 5",  # the last one counts
        "{m}.Offline.target_qps = 4 # per second",  # drops the file
        "{m}.Offline.target_qps  =  4",
        "{m}.Offline.target_qps = four",  # drops the file
        "{m}.Offline.min_query_count = 1.5e3",  # reads 1
        "{m}.Offline.min_query_count = 12.0",  # reads 12
        "{m}.Offline.min_query_count = 010",  # reads 8
        "{m}.Offline.min_query_count = 0x10",  # reads 16
        "{m}.Offline.min_query_count = -1",  # reads 2^64 - 1
        "{m}.Offline.min_query_count = ٣",  # drops the file
        "{m}.Offline.target_qps = 1e3",
        "{m}.Offline.target_qps = inf",
        "{m}.offline.target_qps = 4",  # ignored
        "Offline.target_qps = 4",  # ignored
        "target_qps = 4",  # ignored
        "#{m}.Offline.target_qps 4",  # drops the file
        "#a comment",  # drops the file
        "\ufeff{m}.Offline.target_qps = 4",  # ignored
        "{m}.Offline.target_qps = 4\x0c{m}.Offline.min_duration = 5",  # one line to LoadGen
    ],
)
def test_lines_that_loadgen_ignores_or_misreads(line: str) -> None:
    with pytest.raises(ConfigError):
        parse(GOOD + line.format(m=MODEL) + "\n")


def test_the_line_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        parse(GOOD + "\n# a comment\ntarget_qps=5\n", where="here/user.conf")
    assert "line 4" in caught.value.what
    assert "target_qps=5" in caught.value.what
    assert caught.value.where == "here/user.conf"


def test_comments_and_empty_lines() -> None:
    assert parse(f"# a comment\n\n   \n  # another\n#\n{GOOD}\n") == [Setting(MODEL, "Offline", "target_qps", "12.5")]
    assert parse(f"{MODEL}.Offline.target_qps = 12.5\r\n") == parse(GOOD)
    assert parse("") == []


@given(st.text(max_size=60) | st.from_regex(r"[a-z*#. =0-9e]{0,40}", fullmatch=True))
def test_any_text_is_settings_or_a_configuration_error(text: str) -> None:
    try:
        settings = parse(text)
    except ConfigError:
        return
    assert all(isinstance(setting, Setting) for setting in settings)


LOGGED: dict[str, Any] = {
    "requested_offline_expected_qps": 12.5,
    "requested_server_target_qps": 0.333333,
    "requested_server_target_latency_ns": 3_000_000,
    "requested_single_stream_expected_latency_ns": 1.23457e12,
    "requested_min_duration_ms": 600000,
    "requested_min_query_count": 270336,
}


@pytest.mark.parametrize(
    ("scenario", "key", "value"),
    [
        ("Offline", "target_qps", "12.5"),
        ("Server", "target_qps", "0.333333"),
        ("Server", "target_latency", "3"),
        ("Server", "min_duration", "600000"),
        ("*", "min_query_count", "270336"),
        ("SingleStream", "target_qps", "7"),  # LoadGen echoes none there
        ("SingleStream", "target_latency", "1234567"),
    ],
)
def test_settings_that_loadgen_took(scenario: str, key: str, value: str) -> None:
    assert misread([Setting(MODEL, scenario, key, value)], LOGGED) == []


@pytest.mark.parametrize(
    ("scenario", "key", "value"),
    [
        ("Offline", "target_qps", "12.51"),
        ("Server", "target_latency", "4"),
        ("SingleStream", "target_latency", "1234600"),
        ("Server", "min_duration", "600001"),
        ("Server", "min_query_count", "270337"),
        ("Server", "max_query_count", "1"),
    ],
)
def test_settings_that_loadgen_did_not_take(scenario: str, key: str, value: str) -> None:
    (sentence,) = misread([Setting(MODEL, scenario, key, value)], LOGGED)
    assert f"{key} = {value} was written" in sentence
    assert "LoadGen logged requested_" in sentence


def test_a_float_that_loadgen_printed_with_six_digits_is_the_same() -> None:
    setting = Setting(MODEL, "Offline", "target_qps", "1234567.891")
    assert misread([setting], {"requested_offline_expected_qps": 1.23457e6}) == []
