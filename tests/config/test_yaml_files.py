"""What a user may write wrong in YAML, and what is said of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from harness.config import BenchmarkFile, SubmissionFile, SystemFile
from harness.config.plain_yaml import read_yaml
from harness.config.yaml_files import read_model
from harness.errors import ConfigError, UnknownName


class Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)


class Circle(Strict):
    kind: Literal["circle"]
    radius: float


class Square(Strict):
    kind: Literal["square"]
    side: float


class Drawing(Strict):
    name: str
    shapes: list[Annotated[Circle | Square, Field(discriminator="kind")]] = []
    by_name: dict[str, Circle] = {}
    frame: Square | None = None


def read(tmp_path: Path, text: str | bytes) -> Drawing:
    path = tmp_path / "drawing.yaml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_model(path, Drawing)


def refused(tmp_path: Path, text: str | bytes) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read(tmp_path, text)
    assert caught.value.exit_code == 2
    assert str(tmp_path / "drawing.yaml") in (caught.value.where or "")
    return caught.value


def line(error: ConfigError) -> int:
    assert error.where is not None
    return int(error.where.rpartition(":")[2])


def test_a_file_as_it_should_be(tmp_path: Path) -> None:
    drawing = read(tmp_path, "name: n\nshapes:\n- {kind: circle, radius: 1}\n- {kind: square, side: 2.5}\n")
    assert drawing == Drawing(name="n", shapes=[Circle(kind="circle", radius=1.0), Square(kind="square", side=2.5)])


@pytest.mark.parametrize(
    ("text", "key", "at", "near"),
    [
        ("name: n\n\nshape: []\n", "'shape'", 3, "'shapes'"),
        ("name: n\nframe:\n  kind: square\n  sid: 3\n  side: 1\n", "'frame.sid'", 4, "'side'"),
        (
            "name: n\nshapes:\n- kind: circle\n  radius: 1\n- kind: circle\n  radius: 2\n  radios: 3\n",
            "'shapes.1.radios'",
            7,
            "'radius'",
        ),
        (
            "name: n\nby_name:\n  big:\n    kind: circle\n    radius: 9\n    raduis: 9\n",
            "'by_name.big.raduis'",
            6,
            "'radius'",
        ),
    ],
)
def test_an_unknown_key_at_each_level(tmp_path: Path, text: str, key: str, at: int, near: str) -> None:
    error = refused(tmp_path, text)
    assert f"unknown key {key}" in error.what
    assert line(error) == at
    assert error.mend == f"did you mean {near}?"
    assert near.strip("'") in (error.expected or "")


def test_an_unknown_key_like_no_other(tmp_path: Path) -> None:
    error = refused(tmp_path, "name: n\nqqqq: 1\n")
    assert error.mend == "remove it"
    assert error.expected == "one of by_name, extends, frame, name, shapes"


def test_more_than_one_problem_is_counted(tmp_path: Path) -> None:
    assert "(and 1 more)" in refused(tmp_path, "name: 3\nshapes: 4\n").what


def test_a_tag_that_does_not_exist(tmp_path: Path) -> None:
    error = refused(tmp_path, "name: n\nshapes:\n- kind: circel\n  radius: 1\n")
    assert "unknown 'circel'" in error.what
    assert error.expected == "one of circle, square"
    assert error.mend == "did you mean 'circle'?"
    assert line(error) == 3


def test_a_missing_tag(tmp_path: Path) -> None:
    error = refused(tmp_path, "name: n\nshapes:\n- radius: 1\n")
    assert "kind" in str(error)
    assert line(error) == 3


def test_a_missing_key(tmp_path: Path) -> None:
    error = refused(tmp_path, "shapes: []\n")
    assert error.what == "'name' is missing"
    assert error.mend == "add 'name'"


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("name: 12\n", 1),
        ("name: [a]\n", 1),
        ("name: n\nshapes:\n- {kind: circle, radius: wide}\n", 3),
        ("name: n\nshapes:\n- kind: circle\n  radius: yes\n", 4),
        ("name: n\nframe:\n  kind: square\n  side: '2'\n", 4),
        ("[1, 2]\n", 1),
        ("just words\n", 1),
        ("", 1),
    ],
)
def test_a_value_of_another_type(tmp_path: Path, text: str, at: int) -> None:
    assert line(refused(tmp_path, text)) == at


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("name: n\nshapes: [1,\n", 3),
        ("name: n\n\tshapes: 1\n", 2),
        ("name: 'n\n", 2),
        ("name: *nowhere\n", 1),
        ("name: {a: }}\n", 1),
        ("? [a]\n: b\n? {c: d}\n: e\n", 1),
    ],
)
def test_what_does_not_parse_is_told_by_line(tmp_path: Path, text: str, at: int) -> None:
    error = refused(tmp_path, text)
    assert error.what.startswith("not YAML")
    assert line(error) == at


@pytest.mark.parametrize(
    "text", ["name: 2024-13-40\n", "name: !!int four\n", "name: " + "[" * 5000 + "]" * 5000, "name: " + "9" * 5000]
)
def test_values_that_break_the_parser(tmp_path: Path, text: str) -> None:
    refused(tmp_path, text)


@pytest.mark.parametrize(
    ("text", "at"), [("name: n\nname: m\n", 2), ("name: n\nframe:\n  kind: square\n  side: 1\n  side: 2\n", 5)]
)
def test_a_key_that_stands_twice(tmp_path: Path, text: str, at: int) -> None:
    error = refused(tmp_path, text)
    assert "stands twice" in error.what
    assert line(error) == at


def test_an_alias_may_repeat_but_not_hold_itself(tmp_path: Path) -> None:
    drawing = read(tmp_path, "name: n\nby_name: {a: &one {kind: circle, radius: 1}, b: *one}\n")
    assert drawing.by_name["a"] == drawing.by_name["b"]
    assert "part of" in refused(tmp_path, "name: n\nshapes: &all [*all]\n").what


def test_aliases_of_aliases_take_no_time(tmp_path: Path) -> None:
    levels = "".join(f"l{i}: &l{i} [{', '.join([f'*l{i - 1}'] * 9)}]\n" for i in range(1, 30))
    assert "unknown key" in refused(tmp_path, "name: n\nl0: &l0 [x]\n" + levels).what


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        read_model(tmp_path / "none.yaml", Drawing)


@pytest.mark.parametrize("content", ["name: n\u00e4\n".encode("latin-1"), b"\xff\xfen\x00", b"name: \x00\n"])
def test_a_file_that_is_no_utf8_text(tmp_path: Path, content: bytes) -> None:
    refused(tmp_path, content)


def test_a_folder_in_place_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "drawing.yaml").mkdir()
    with pytest.raises(ConfigError, match="cannot be read"):
        read_model(tmp_path / "drawing.yaml", Drawing)


def test_lines_of_keys_and_items(tmp_path: Path) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a: 1\nb:\n  - x\n  - c: 2\n")
    data, lines = read_yaml(path)
    assert data == {"a": 1, "b": ["x", {"c": 2}]}
    assert lines == {(): 1, ("a",): 1, ("b",): 2, ("b", 0): 3, ("b", 1): 4, ("b", 1, "c"): 4}


MODELS: tuple[type[BaseModel], ...] = (BenchmarkFile, SubmissionFile, SystemFile, Drawing)
KEYS = sorted({name for model in MODELS for name in model.model_fields} | {"kind", "make", "scripted", "torch", "<<"})
SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5) | st.sampled_from(KEYS)
TREES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(SCALARS, inner, max_size=4), max_leaves=12
)


def model_or_error(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8", errors="surrogatepass")
    for model in MODELS:
        try:
            assert isinstance(read_model(path, model), model)
        except ConfigError as error:
            assert error.what
            assert str(path) in (error.where or "") or isinstance(error, UnknownName)


FIXTURE = [HealthCheck.function_scoped_fixture]


@settings(max_examples=60, deadline=None, suppress_health_check=FIXTURE)
@given(st.text(max_size=40) | st.text(alphabet="ab:-[]{}&*!#|>?%@,'\" \n\t0.~<", max_size=40))
@example("&a [*a]")
@example("&a {b: *a}")
@example("1: 2")
@example("? [1]\n: 2")
@example("<<: 3")
@example("=: 3")
@example("\ud800")
def test_any_text_is_a_model_or_a_configuration_error(tmp_path: Path, text: str) -> None:
    model_or_error(tmp_path / "any.yaml", text)


@settings(max_examples=60, deadline=None, suppress_health_check=FIXTURE)
@given(st.dictionaries(st.sampled_from(KEYS), TREES, max_size=5))
def test_any_tree_is_a_model_or_a_configuration_error(tmp_path: Path, tree: dict[str, Any]) -> None:
    import yaml

    model_or_error(tmp_path / "any.yaml", yaml.safe_dump(tree))
