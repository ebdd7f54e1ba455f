"""One number set in a YAML file, every other byte left as it is."""

from __future__ import annotations

import difflib
import errno
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.config import Project
from harness.config.rewrite import plain, with_number, write_number
from harness.errors import ConfigError, MissingError
from tests.harness_process import ROOT

KEYS = ("scenarios", "Server", "target_qps")


def put(text: str, number: float = 71.3) -> str:
    return with_number(text, KEYS, number, where="x.yaml")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (
            "scenarios:\n  Server:\n    target_qps: 48   # guess\n",
            "scenarios:\n  Server:\n    target_qps: 71.3   # guess\n",
        ),
        (
            "scenarios:\n  Server:\n    target_qps: {offline_share: 0.85}   # of 20.8\n",
            "scenarios:\n  Server:\n    target_qps: 71.3   # of 20.8\n",
        ),
        (
            "scenarios: {Offline: {target_qps: 70}, Server: {target_qps: 48}} # both\n",
            "scenarios: {Offline: {target_qps: 70}, Server: {target_qps: 71.3}} # both\n",
        ),
        (
            "scenarios: {Offline: {target_qps: 70}}\n",
            "scenarios: {Offline: {target_qps: 70}, Server: {target_qps: 71.3}}\n",
        ),
        ("scenarios: {Server: {}}\n", "scenarios: {Server: {target_qps: 71.3}}\n"),
        ("scenarios: {}\n", "scenarios: {Server: {target_qps: 71.3}}\n"),
        ("scenarios:\n  Server:\n", "scenarios:\n  Server: {target_qps: 71.3}\n"),
        ("scenarios:\n  Server: ~ # none\nx: 1\n", "scenarios:\n  Server: {target_qps: 71.3} # none\nx: 1\n"),
        (
            "# head\nextends: a.yaml # base\n# tail\n",
            "# head\nextends: a.yaml # base\nscenarios:\n  Server:\n    target_qps: 71.3\n# tail\n",
        ),
        (
            "scenarios:\n   Offline:\n      target_qps: 5 # 5\n   # of Server\nx: 1",
            "scenarios:\n   Offline:\n      target_qps: 5 # 5\n   Server:\n     target_qps: 71.3\n   # of Server\nx: 1",
        ),
        (
            "scenarios:\n  Server:\n    engine_options: {a: [1,\n      2]} # two\n",
            "scenarios:\n  Server:\n    engine_options: {a: [1,\n      2]} # two\n    target_qps: 71.3\n",
        ),
        (
            "scenarios:\n  Server:\n    note: |\n      text\n",
            "scenarios:\n  Server:\n    note: |\n      text\n    target_qps: 71.3\n",
        ),
        ("", "scenarios:\n  Server:\n    target_qps: 71.3\n"),
        ("# nothing\n", "# nothing\nscenarios:\n  Server:\n    target_qps: 71.3\n"),
        ("a: 1", "a: 1\nscenarios:\n  Server:\n    target_qps: 71.3"),
        ("a: 1\r\nb: 2\r\n", "a: 1\r\nb: 2\r\nscenarios:\r\n  Server:\r\n    target_qps: 71.3\r\n"),
        (
            "scenarios:\n  Server:\n    target_qps: # why\n      rate: unmeasured # nobody\n      times:\n"
            "        # published\n        published: {value: 72.4, source: 'a # b'}\n    min_query_count: 9\n",
            "scenarios:\n  Server:\n    target_qps: 71.3\n      # why\n      # nobody\n      # published\n"
            "    min_query_count: 9\n",
        ),
        (
            "scenarios: &s\n  Offline: &o {target_qps: 5}\n  Server: {target_qps: 5}\n",
            "scenarios: &s\n  Offline: &o {target_qps: 5}\n  Server: {target_qps: 71.3}\n",
        ),
        ("base: &b {x: 1}\nother: *b\n", "base: &b {x: 1}\nother: *b\nscenarios:\n  Server:\n    target_qps: 71.3\n"),
        ("\ufeffa: 1\n", "\ufeffa: 1\nscenarios:\n  Server:\n    target_qps: 71.3\n"),
        ("\"scenarios\":\n  'Server':\n    target_qps : 1\n", "\"scenarios\":\n  'Server':\n    target_qps : 71.3\n"),
    ],
)
def test_the_one_number_changes(before: str, after: str) -> None:
    assert put(before) == after


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("rate: &r 5\nscenarios:\n  Server:\n    target_qps: *r\n", "alias of a value that stands elsewhere"),
        ("scenarios:\n  Server:\n    target_qps: &r 5\nrate: *r\n", "has an anchor"),
        ("s: &s {Server: {target_qps: 5}}\nscenarios: *s\n", "alias of a value that stands elsewhere"),
        ("scenarios: &s\n  Server: {target_qps: 5}\nagain: *s\n", "other values would change"),
        ("x: &x [*x]\nscenarios: {Server: {target_qps: 5}}\n", "an alias stands for what it is part of"),
        ("scenarios: [1]\n", "scenarios is no mapping"),
        ("scenarios:\n  Server: 5\n", "Server is no mapping"),
        ("- 1\n", "the file is no mapping"),
        ("5\n", "the file is no mapping"),
    ],
)
def test_what_cannot_be_done_is_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError) as caught:
        put(text)
    assert why in caught.value.what
    assert caught.value.where == "x.yaml"
    assert caught.value.mend == "write it by hand: scenarios: Server: target_qps: 71.3"


@pytest.mark.parametrize("text", ["a: [1\n", "a: 1\n---\nb: 2\n", "a: 2020-99-99\n"])
def test_a_file_that_is_no_yaml(text: str) -> None:
    with pytest.raises(ConfigError, match="not YAML"):
        put(text)


@pytest.mark.parametrize(("number", "written"), [(71.3, "71.3"), (72.0, "72"), (1e-05, "0.00001"), (1.5e7, "15000000")])
def test_numbers_have_no_exponents(number: float, written: str) -> None:
    assert plain(number) == written
    assert yaml.safe_load(written) == number


@pytest.mark.parametrize(
    "path", sorted((ROOT / "systems").glob("[!_]*/*.yaml")), ids=lambda p: f"{p.parent.name}/{p.name}"
)
def test_every_file_of_the_project_can_be_written(path: Path) -> None:
    """The rate of a scenario that the file has, or inherits."""
    text = path.read_text(encoding="utf-8")
    after = with_number(text, KEYS, 12.25)
    assert yaml.safe_load(after)["scenarios"]["Server"]["target_qps"] == 12.25
    added = [line[2:] for line in difflib.ndiff(text.splitlines(), after.splitlines()) if line.startswith("+ ")]
    assert 1 <= len(added) <= 3
    assert "target_qps: 12.25" in added[-1]
    assert all("#" not in line or line.partition("#")[2] in after for line in text.splitlines())


def test_an_inherited_rate_is_written_into_the_system_s_own_file(tmp_path: Path) -> None:
    system = tmp_path / "systems" / "BOX"
    system.mkdir(parents=True)
    (system / "system.yaml").write_text(
        "system_name: x\nnumber_of_nodes: 1\ncooling: null\nhost_networking_topology: null\n"
    )
    base = tmp_path / "systems" / "base.yaml"
    base.write_text("engine: {kind: scripted}\nscenarios:\n  Server:\n    target_qps: {offline_share: 0.5}\n")
    own = system / "gpt-oss-120b.yaml"
    own.write_text("# ours\nextends: ../base.yaml\n")
    own.chmod(0o640)
    kept = base.read_bytes()
    write_number(own, KEYS, 71.25)
    assert Project(tmp_path).benchmark("BOX", "gpt-oss-120b").scenarios["Server"].target_qps == 71.25
    assert base.read_bytes() == kept
    assert own.read_text() == "# ours\nextends: ../base.yaml\nscenarios:\n  Server:\n    target_qps: 71.25\n"
    assert own.stat().st_mode & 0o777 == 0o640
    assert sorted(path.name for path in system.iterdir()) == ["gpt-oss-120b.yaml", "system.yaml"]


def test_a_link_stays_one_and_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    real = tmp_path / "real.yaml"
    real.write_text("a: 1\n")
    (tmp_path / "link.yaml").symlink_to(real)
    write_number(tmp_path / "link.yaml", ("a",), 2.5)
    assert (tmp_path / "link.yaml").is_symlink()
    assert real.read_text() == "a: 2.5\n"
    real.write_bytes(b"a: \xff\n")
    with pytest.raises(ConfigError, match="cannot be read"):
        write_number(real, ("a",), 1)
    with pytest.raises(ConfigError, match="cannot be read"):
        write_number(tmp_path / "none.yaml", ("a",), 1)


def test_a_disk_that_says_no_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.yaml"
    path.write_text("a: 1\n")

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(MissingError, match="cannot write: No space left on device"):
        write_number(path, ("a",), 2)
    assert path.read_text() == "a: 1\n"
    assert list(tmp_path.iterdir()) == [path]


NAMES = st.sampled_from(["a", "b", "scenarios", "Server", "target_qps", "x y", "Offline"])
LEAVES = st.one_of(
    st.integers(-5, 5),
    st.floats(0, 9, width=16),
    st.booleans(),
    st.sampled_from(["t", "a # b", "", "#", "x: y", "l\nm\n"]),
    st.none(),
)
TREES = st.recursive(
    LEAVES,
    lambda child: st.one_of(st.lists(child, max_size=3), st.dictionaries(NAMES, child, max_size=4)),
    max_leaves=12,
)


def commented(text: str, where: list[int]) -> str:
    """Comments on lines of their own, where none would be text of a scalar."""
    lines = text.split("\n")
    for number, at in enumerate(where):
        lines.insert(at % len(lines), f"# comment {number}")
    return "\n".join(lines)


@given(
    data=st.dictionaries(NAMES, TREES, max_size=4),
    flow=st.sampled_from([True, False, None]),
    number=st.floats(0.001, 1e5, allow_nan=False),
    where=st.lists(st.integers(0, 40), max_size=4),
    crlf=st.booleans(),
)
@settings(max_examples=250, deadline=None)
def test_what_is_written_is_read_back_and_nothing_else_changes(
    data: dict[str, Any], flow: bool | None, number: float, where: list[int], crlf: bool
) -> None:
    text = commented(yaml.safe_dump(data, default_flow_style=flow, sort_keys=False), where)
    if crlf:
        text = text.replace("\n", "\r\n")
    try:
        before = yaml.safe_load(text)
    except yaml.YAMLError:
        return  # a comment in the middle of a folded scalar
    try:
        after = with_number(text, KEYS, number)
    except ConfigError as error:
        assert "no mapping" in error.what or "anchor" in error.what or "alias" in error.what, (text, error)
        return
    read = yaml.safe_load(after)
    assert read["scenarios"]["Server"]["target_qps"] == number
    del read["scenarios"]["Server"]["target_qps"]
    for data_of in (before if isinstance(before, dict) else {}, read):
        server = (data_of.get("scenarios") or {}).get("Server") or {}
        server.pop("target_qps", None)
        if not server and "scenarios" in data_of:
            (data_of["scenarios"] or {}).pop("Server", None)
        if not data_of.get("scenarios"):
            data_of.pop("scenarios", None)
    assert read == ({} if before is None else before)
    assert with_number(after, KEYS, number) == after
