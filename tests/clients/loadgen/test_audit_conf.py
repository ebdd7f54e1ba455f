"""audit.config: whatever is not the approved settings is refused before LoadGen sees it."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.clients.loadgen.audit_conf import parse, read
from harness.errors import ConfigError, MissingError
from harness.rules import Ruled, load
from harness.rules.audits import AuditConfig
from tests.harness_process import ROOT

BENCHMARK = "gpt-oss-120b"
AUDITS = load("v6.1").benchmark(BENCHMARK).audit_rules
FILES = [ROOT / "compliance" / test / BENCHMARK / "audit.config" for test in AUDITS]


def write(project: Path, text: str, test: str = "TEST07") -> Path:
    path = project / "compliance" / test / BENCHMARK / "audit.config"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    return path


@pytest.mark.parametrize("test", AUDITS)
def test_the_repositorys_own_are_approved_settings_in_other_words(test: str) -> None:
    file = read(ROOT, test, BENCHMARK, AUDITS[test].config)
    assert parse(file.content.decode()) == AUDITS[test].config.settings.value
    assert not file.approved_text
    assert file.sha256 == hashlib.sha256(file.content).hexdigest()


def test_every_audit_of_the_round_has_its_file_and_no_other_lies_there() -> None:
    assert sorted((ROOT / "compliance").rglob("audit.config")) == sorted(FILES)


def test_the_approved_text_is_taken_whatever_else_stands_in_it(tmp_path: Path) -> None:
    text = "*.*.mode = 2\n*.*.test07_accuracy_threshold = 60.698\n"
    rules = AUDITS["TEST07"].config
    approved = AuditConfig(
        sha256=Ruled(value=hashlib.sha256(text.encode()).hexdigest(), source="made up"),
        settings=rules.settings,
        logged=rules.logged,
    )
    write(tmp_path, text)
    assert read(tmp_path, "TEST07", BENCHMARK, approved).approved_text
    write(tmp_path, text + "\n")
    with pytest.raises(ConfigError, match="is not one that LoadGen reads"):
        read(tmp_path, "TEST07", BENCHMARK, approved)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="settings of TEST07 cannot be read"):
        read(tmp_path, "TEST07", BENCHMARK, AUDITS["TEST07"].config)


@given(data=st.data())
def test_a_setting_that_was_changed(data: st.DataObject, tmp_path_factory: pytest.TempPathFactory) -> None:
    wanted = AUDITS["TEST07"].config.settings.value
    settings = dict(wanted)
    key = data.draw(st.sampled_from([*sorted(wanted), "max_query_count", "test05"]))
    value = data.draw(st.none() | st.integers(0, 2**62))
    if value is None:
        settings.pop(key, None)
    else:
        settings[key] = value
    project = tmp_path_factory.mktemp("project")
    write(project, "".join(f"*.*.{name} = {number}\n" for name, number in settings.items()))
    if settings == wanted:
        read(project, "TEST07", BENCHMARK, AUDITS["TEST07"].config)
        return
    with pytest.raises(ConfigError, match="not the approved settings") as caught:
        read(project, "TEST07", BENCHMARK, AUDITS["TEST07"].config)
    assert key in caught.value.what
    assert f"{key} {wanted.get(key, 'unset')}" in (caught.value.expected or "")


@pytest.mark.parametrize(
    "line",
    [
        "*.*.mode=2",
        "*.*.mode = 2 # performance",
        "#*.*.mode = 2",
        "*.*.mode = 2.0",
        "*.*.mode = -2",
        "*.*.mode = 010",
        "gpt-oss-120b.*.mode = 2",
        "*.Offline.mode = 2",
        "mode = 2",
        "*.*.mode = \u0662",
        "*.*.mode = 2\n*.*.mode = 2",
    ],
)
def test_a_line_that_loadgen_would_take_otherwise(line: str) -> None:
    with pytest.raises(ConfigError, match=r"audit\.config line") as caught:
        parse(f"# a comment\n\n{line}\n", where="audit.config")
    assert caught.value.where == "audit.config"


def test_a_file_that_is_no_text(tmp_path: Path) -> None:
    write(tmp_path, "").write_bytes(b"\xff\xfe*")
    with pytest.raises(ConfigError):
        read(tmp_path, "TEST07", BENCHMARK, AUDITS["TEST07"].config)
