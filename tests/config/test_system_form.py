"""A system's file that is filled in by a tool: nothing that a person wrote is lost, and it says what was meant."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.config.models import SystemFile
from harness.config.system_form import EXPECTED, HEAD, SOURCES, Form, filled
from harness.config.yaml_files import read_model
from harness.errors import ConfigError

SAID = """\
# ours
system_name: Box   # the marketing name
cooling: null
number_of_nodes:
hw_notes: ""  # none yet
host_networking_topology: ~   # ask the network team
"""


def form(values: dict[str, Any] | None = None, wanted: list[str] | None = None, source: str = "a capture") -> Form:
    values = values or {}
    return Form(values, dict.fromkeys(values, source), wanted or [])


def test_every_key_has_a_word_on_what_is_expected() -> None:
    assert list(EXPECTED) == [key for key in SystemFile.model_fields if key != SOURCES]


def test_a_new_file_is_one_that_can_be_read(tmp_path: Path) -> None:
    required = [key for key, field in SystemFile.model_fields.items() if field.is_required()]
    path = tmp_path / "system.yaml"
    path.write_text(filled("", form({"host_memory_capacity": "2 TiB"}, required), path))
    file = read_model(path, SystemFile)
    assert file.number_of_nodes is file.cooling is file.system_name is None
    assert file.host_memory_capacity == "2 TiB"
    assert file.sources == {"host_memory_capacity": "a capture"}
    assert path.read_text().startswith(HEAD)
    assert f"cooling: null  # {EXPECTED['cooling']}\n" in path.read_text()


def test_what_was_said_and_every_comment_stay_where_they_are() -> None:
    wanted = ["cooling", "host_networking_topology", "bandwidth"]
    after = filled(SAID, form({"number_of_nodes": 2, "hw_notes": "a: b # c"}, wanted), "f")
    assert after == (
        "# ours\n"
        "system_name: Box   # the marketing name\n"
        f"cooling: null  # {EXPECTED['cooling']}\n"
        "number_of_nodes: 2\n"
        "hw_notes: 'a: b # c'  # none yet\n"
        "host_networking_topology: ~   # ask the network team\n"
        f"bandwidth: null  # {EXPECTED['bandwidth']}\n"
        "sources:\n  number_of_nodes: a capture\n  hw_notes: a capture\n"
    )


def test_filling_in_twice_adds_nothing() -> None:
    wanted = form(wanted=["cooling", "bandwidth", "system_name"])
    once = filled("cooling: null\n", wanted, "f")
    assert filled(once, wanted, "f") == once


@pytest.mark.parametrize(
    ("sources", "after"),
    [
        ("sources:\n  a: b  # c\n", "sources:\n  a: b  # c\n  cooling: a capture\n"),
        ("sources:\n    a: b", "sources:\n    a: b\n    cooling: a capture"),
        ("sources: {}\n", "sources: {cooling: a capture}\n"),
        ("sources: {a: b}   # c\n", "sources: {a: b, cooling: a capture}   # c\n"),
        ("sources:\n  a: >\n    b\nsw_notes: x\n", "sources:\n  a: >\n    b\n  cooling: a capture\nsw_notes: x\n"),
    ],
)
def test_sources_that_are_there_are_added_to(sources: str, after: str) -> None:
    assert filled(f"cooling:\n{sources}", form({"cooling": "air"}), "f") == f"cooling: air\n{after}"


def test_line_ends_of_another_system_stay() -> None:
    after = filled("cooling:\r\nsources:\r\n  a: b\r\n", form({"cooling": "air"}, ["bandwidth"]), "f")
    assert after.replace("\r\n", "").count("\n") == 0
    assert after.startswith("cooling: air\r\nsources:\r\n  a: b\r\n  cooling: a capture\r\nbandwidth: null")


@pytest.mark.parametrize(
    "text",
    [
        "{cooling: null}\n",
        "- cooling\n",
        "cooling\n",
        "sources:\nsystem_name: a\n",
        "sources: [a]\n",
        "a: b\n...\n",
        "cooling: water\n",
    ],
)
def test_a_file_that_cannot_be_added_to(text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        filled(text, form({"cooling": "air"}, ["bandwidth"]), "systems/box/system.yaml")
    assert "cannot be added to" in caught.value.what
    assert caught.value.where == "systems/box/system.yaml"


@pytest.mark.parametrize(
    ("values", "sources", "wanted"),
    [({"colling": 1}, {}, []), ({}, {}, ["sources"]), ({}, {"cooling": "a"}, []), ({"cooling": "a"}, {}, ["cooling"])],
)
def test_forms_that_are_none(values: dict[str, Any], sources: dict[str, str], wanted: list[str]) -> None:
    with pytest.raises(ValueError, match=r"not keys|a source is of a value"):
        Form(values, sources, wanted)


TEXTS = st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cs"]), min_size=1, max_size=12)
KEYS = st.sampled_from(list(EXPECTED))


@given(st.dictionaries(KEYS, st.none() | TEXTS, max_size=5), st.dictionaries(KEYS, TEXTS, max_size=5), st.sets(KEYS))
def test_any_form_over_any_file_says_both(
    said: dict[str, str | None], values: dict[str, str], wanted: set[str]
) -> None:
    values = {key: value for key, value in values.items() if said.get(key) is None}
    wanted -= set(values)
    text = yaml.safe_dump(said, allow_unicode=True) if said else ""
    after = yaml.safe_load(filled(text, Form(values, dict(values), wanted), "f")) or {}
    sources = after.pop(SOURCES, {})
    assert after == {**dict.fromkeys(wanted), **said, **values}
    assert sources == values
