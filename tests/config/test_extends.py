"""Files that extend others: whose value holds, where it stands, and chains that are none."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from harness.config import BenchmarkFile, Project
from harness.config.extends import read_layered
from harness.config.merge import merged
from harness.config.yaml_files import read_model, read_model_and_places
from harness.errors import ConfigError


class Lamp(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    watts: int | None = None
    colours: list[str] = []


class Room(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)
    name: str
    lamps: dict[str, Lamp] = {}


def write(folder: Path, **files: str) -> Path:
    """Writes the files and returns the first."""
    for name, text in files.items():
        path = folder / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder / f"{next(iter(files))}.yaml"


def refused(path: Path, root: Path | None = None) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        read_model(path, Room, root)
    assert caught.value.exit_code == 2
    return caught.value


BASE = "name: base\nlamps:\n  desk: {watts: 5, colours: [red, blue]}\n  wall:\n    watts: 7\n"


def test_own_values_win_mappings_merge_and_lists_are_replaced(tmp_path: Path) -> None:
    own = write(
        tmp_path, own="extends: base.yaml\nlamps:\n  desk: {colours: [green]}\n  floor: {watts: 1}\n", base=BASE
    )
    room = read_model(own, Room)
    assert room.name == "base"
    assert room.lamps == {
        "desk": Lamp(watts=5, colours=["green"]),
        "wall": Lamp(watts=7),
        "floor": Lamp(watts=1),
    }


def test_null_is_a_value(tmp_path: Path) -> None:
    own = write(tmp_path, own="extends: base.yaml\nlamps: {wall: {watts: null}}\n", base=BASE)
    assert read_model(own, Room).lamps["wall"].watts is None


def test_a_chain_is_relative_to_each_file(tmp_path: Path) -> None:
    write(tmp_path / "a" / "b", own="extends: ../middle.yaml\nname: own\n")
    write(tmp_path / "a", middle="extends: ../base.yaml\nlamps: {desk: {watts: 6}}\n")
    write(tmp_path, base=BASE)
    layered = read_layered(tmp_path / "a" / "b" / "own.yaml", tmp_path)
    assert [path.name for path in layered.files] == ["own.yaml", "middle.yaml", "base.yaml"]
    assert layered.data["lamps"]["desk"] == {"watts": 6, "colours": ["red", "blue"]}
    assert "extends" not in layered.data


def test_each_value_knows_the_file_and_line_it_stands_in(tmp_path: Path) -> None:
    own = write(tmp_path, own="extends: base.yaml\n\nlamps:\n  desk:\n    colours: [green]\n", base=BASE)
    _, layered = read_model_and_places(own, Room)

    def place(*key: str | int) -> str:
        at = layered.place(*key)
        return f"{at.file.name}:{at.line}"

    assert place("name") == "base.yaml:1"
    assert place("lamps") == "own.yaml:3"
    assert place("lamps", "desk", "watts") == "base.yaml:3"
    assert place("lamps", "desk", "colours", 0) == "own.yaml:5"
    assert place("lamps", "desk", "colours", 1) == "own.yaml:5", "the second colour of the base is gone"
    assert place("lamps", "wall", "watts") == "base.yaml:5"
    assert place("nowhere") == "own.yaml:1"


@pytest.mark.parametrize(
    ("own", "base", "where"),
    [
        ("extends: base.yaml\nname: own\n", "name: base\nlamps:\n  desk: {watt: 5}\n", "base.yaml:3"),
        ("extends: base.yaml\nlamps: {desk: {watts: bright}}\n", BASE, "own.yaml:2"),
        ("extends: base.yaml\n", "name: 7\n", "base.yaml:1"),
        ("extends: base.yaml\nlamps: []\n", BASE, "own.yaml:2"),
        ("extends: base.yaml\nname: n\nextend: base.yaml\n", "{}\n", "own.yaml:3"),
    ],
)
def test_an_error_names_the_file_and_line_of_the_value(tmp_path: Path, own: str, base: str, where: str) -> None:
    error = refused(write(tmp_path, own=own, base=base))
    assert error.where == str(tmp_path / where)


def test_a_typo_of_extends_is_told(tmp_path: Path) -> None:
    assert refused(write(tmp_path, own="name: n\nextend: base.yaml\n")).mend == "did you mean 'extends'?"


def test_a_key_that_nobody_said_is_missing_in_the_file_that_was_read(tmp_path: Path) -> None:
    error = refused(write(tmp_path, own="extends: base.yaml\n", base="lamps: {}\n"))
    assert error.what == "'name' is missing"
    assert error.where == str(tmp_path / "own.yaml:1")


def test_a_circle(tmp_path: Path) -> None:
    own = write(
        tmp_path,
        own="extends: one.yaml\nname: n\n",
        one="extends: two.yaml\n",
        two="name: x\nextends: ../" + tmp_path.name + "/one.yaml\n",
    )
    error = refused(own)
    assert error.what == "files extend each other in a circle"
    assert error.where == str(tmp_path / "two.yaml:2")
    assert error.expected == "one.yaml -> two.yaml -> one.yaml"


def test_a_file_that_extends_itself(tmp_path: Path) -> None:
    assert "circle" in refused(write(tmp_path, own="extends: own.yaml\nname: n\n")).what


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("nowhere.yaml", "names a file that is not there: nowhere.yaml"),
        (".", "names a file that is not there"),
        ("/etc/passwd", "names an absolute path"),
        ("../outside.yaml", "leaves the project"),
        ("[a.yaml, b.yaml]", "is no file's name"),
        ("null", "is no file's name"),
        ("''", "is no file's name"),
        ("7", "is no file's name"),
    ],
)
def test_what_cannot_be_extended(tmp_path: Path, name: str, said: str) -> None:
    write(tmp_path, outside="name: secret\n")
    root = tmp_path / "project"
    error = refused(write(root, own=f"name: n\nextends: {name}\n"), root)
    assert said in error.what
    assert error.where == str(root / "own.yaml:2")


def test_a_link_does_not_lead_out_of_the_project(tmp_path: Path) -> None:
    root = tmp_path / "project"
    own = write(root, own="name: n\nextends: link.yaml\n")
    (root / "link.yaml").symlink_to(write(tmp_path, outside="name: secret\n"))
    assert "leaves the project" in refused(own, root).what


@pytest.mark.parametrize("base", ["", "- a\n", "word\n"])
def test_a_base_that_is_no_mapping(tmp_path: Path, base: str) -> None:
    error = refused(write(tmp_path, own="extends: base.yaml\nname: n\n", base=base))
    assert error.what == "a file that is extended is no mapping"
    assert error.where == str(tmp_path / "base.yaml")


def test_a_base_that_does_not_parse_is_told_by_its_own_line(tmp_path: Path) -> None:
    error = refused(write(tmp_path, own="extends: base.yaml\nname: n\n", base="name: n\nlamps: [\n"))
    assert error.what.startswith("not YAML")
    assert (error.where or "").startswith(str(tmp_path / "base.yaml:"))


def test_projects_read_layered_files(tmp_path: Path) -> None:
    folder = tmp_path / "systems" / "BOX"
    folder.mkdir(parents=True)
    (folder / "system.yaml").write_text(
        "extends: ../parts/box.yaml\nsystem_name: own\nnumber_of_nodes: 1\nhost_networking_topology: null\n"
    )
    (tmp_path / "systems" / "parts").mkdir()
    (tmp_path / "systems" / "parts" / "box.yaml").write_text("cooling: air\nsystem_name: base\n")
    project = Project(tmp_path)
    system, layered = project.system_and_places("BOX")
    assert (system.system_name, system.cooling) == ("own", "air")
    assert layered.place("cooling").file.name == "box.yaml"
    assert project.system_names() == ["BOX"], "a folder of parts is no system"


# -- properties --------------------------------------------------------------------------------------------------------

LEAVES = st.none() | st.booleans() | st.integers(-9, 9) | st.text("abc", max_size=3) | st.lists(st.integers(0, 3))
KEYS = st.sampled_from("abcd")
SHAPES: st.SearchStrategy[Any] = st.recursive(st.none(), lambda below: st.dictionaries(KEYS, below), max_leaves=8)


def tree_of(shape: Any) -> st.SearchStrategy[Any]:
    """Trees in which each path is always a mapping or always a value; any key may be missing."""
    if not isinstance(shape, dict):
        return LEAVES
    return st.fixed_dictionaries({}, optional={key: tree_of(below) for key, below in shape.items()})


@st.composite
def three_trees(draw: st.DrawFn) -> tuple[Any, Any, Any]:
    shape = draw(st.dictionaries(KEYS, SHAPES))
    tree = tree_of(shape)
    return draw(tree), draw(tree), draw(tree)


@given(three_trees())
def test_the_merge_is_associative_and_changes_nothing(trees: tuple[Any, Any, Any]) -> None:
    one, two, three = trees
    kept = copy.deepcopy(trees)
    assert merged(merged(one, two), three) == merged(one, merged(two, three))
    assert merged(one, {}) == one == merged({}, one) == merged(one, one)
    assert trees == kept


@given(three_trees())
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_a_chain_of_files_is_the_merge_of_what_they_say(tmp_path: Path, trees: tuple[Any, Any, Any]) -> None:
    base, middle, own = trees
    (tmp_path / "base.yaml").write_text(yaml.safe_dump(base))
    (tmp_path / "middle.yaml").write_text(yaml.safe_dump({**middle, "extends": "base.yaml"}))
    (tmp_path / "own.yaml").write_text(yaml.safe_dump({**own, "extends": "middle.yaml"}))
    layered = read_layered(tmp_path / "own.yaml", tmp_path)
    assert layered.data == merged(merged(base, middle), own)
    for key in layered.data:
        said = [name for name, tree in (("own", own), ("middle", middle), ("base", base)) if key in tree]
        assert layered.place(key).file.stem == said[0]


ENGINES = st.fixed_dictionaries(
    {
        "kind": st.just("http"),
        "server": st.just("vllm"),
        "version": st.just("0.32"),
        "checkpoint": st.fixed_dictionaries(
            {"name": st.just("org/model"), "path": st.just("/models/m"), "weight_data_type": st.sampled_from(["fp8"])}
        ),
        "replicas": st.integers(1, 8),
        "options": st.dictionaries(st.text("abc_", min_size=1, max_size=5), LEAVES, max_size=3),
        "launch": st.fixed_dictionaries({"port": st.integers(1, 60000), "ready_s": st.floats(1, 9)}),
    }
)


@given(ENGINES)
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
def test_what_is_written_is_what_is_read(tmp_path: Path, engine: dict[str, Any]) -> None:
    model = BenchmarkFile.model_validate({"engine": engine, "scenarios": {"Offline": {"target_qps": 2}}})
    path = tmp_path / "gpt-oss-120b.yaml"
    path.write_text(yaml.safe_dump(model.model_dump(mode="json")))
    assert read_model(path, BenchmarkFile) == model
