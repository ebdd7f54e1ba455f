from __future__ import annotations

import fcntl
import hashlib
import json
import shutil
import threading
import tracemalloc
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from harness.benchmarks.qwen3_6_27b import store
from harness.benchmarks.qwen3_6_27b.dataset import TrajectorySet, read_file
from harness.benchmarks.qwen3_6_27b.requests import request
from harness.benchmarks.qwen3_6_27b.salts import Salts
from harness.benchmarks.qwen3_6_27b.store import Library, build, prepare
from harness.engines.bodies import BodyStore
from harness.errors import ConfigError, MissingError
from tests.benchmarks.qwen3_6_27b.made import assistant, demo, tool, user, write


@pytest.fixture
def source(tmp_path: Path) -> TrajectorySet:
    """Trajectories of two, three and two turns."""
    longer = [*demo("b"), user(5, "b", tool_choice="auto"), assistant(6, "b")]
    return read_file(write(tmp_path / "x.jsonl", [*demo("a"), *longer, *demo("c")]))


def test_what_is_in_it(source: TrajectorySet, tmp_path: Path) -> None:
    library = Library(source, repeats=3)
    told: list[str] = []
    found = prepare(library, tmp_path, told.append)
    assert (library.rows, library.chats, len(found)) == (9, 21, 21)
    assert found.sessions.tolist() == [row for row in range(9) for _ in library.turns(row)]
    assert found.tokens.tolist() == [0] * 21
    assert [list(library.turns(row)) for row in range(4)] == [[0, 1], [2, 3, 4], [5, 6], [7, 8]]
    for row in range(library.rows):
        trajectory, repeat = library.trajectory(row), library.repeat(row)
        assert (trajectory.id, repeat) == ("abc"[row % 3], row // 3 + 1)
        for place, chat in enumerate(library.turns(row)):
            salted = Salts().salted(trajectory, repeat)
            wanted = request(trajectory, place, {"max_completion_tokens": None}, salted)
            wanted.pop("stream")
            assert json.loads(bytes(found[chat])) == wanted
    assert [library.session_id(row) for row in (0, 4)] == ["a", "b__repeat_2"]
    assert library.delays_ns(4) == (0, 250_000_000, 0)
    assert told[0] == "making the requests of 9 trajectories, 21 turns in all"
    assert told[1].endswith(f"MB: {found.path}")


def test_rows_that_are_none(source: TrajectorySet) -> None:
    library = Library(source, repeats=2)
    for row in (-1, 6):
        with pytest.raises(IndexError, match=f"row {row} of 6 trajectories"):
            library.trajectory(row)


def test_passes_share_nothing_and_turns_all_they_have(source: TrajectorySet, tmp_path: Path) -> None:
    library = Library(source, repeats=2, salts=Salts(1))
    found = prepare(library, tmp_path, lambda _: None)
    first, second = (json.loads(bytes(found[library.turns(row)[0]]))["messages"] for row in (0, 3))
    assert first[1:] == second[1:]
    assert first[0]["content"][:30] != second[0]["content"][:30]
    one, two = (json.loads(bytes(found[chat]))["messages"] for chat in library.turns(0))
    assert two[: len(one)] == one


def test_the_same_bytes_for_the_same_seed(source: TrajectorySet, tmp_path: Path) -> None:
    def digest(name: str, salts: Salts | None) -> str:
        path = tmp_path / name
        build(Library(source, repeats=2, salts=salts), path, lambda _: None)
        return hashlib.sha256(path.read_bytes()).hexdigest()

    assert digest("1", Salts(5)) == digest("2", Salts(5))
    assert len({digest("3", salts) for salts in (Salts(5), Salts(6), Salts(), None)}) == 4


def test_it_is_made_once_and_again_where_it_is_damaged(source: TrajectorySet, tmp_path: Path) -> None:
    told: list[str] = []
    library = Library(source, repeats=2)
    place = prepare(library, tmp_path, told.append).path
    written = place.stat().st_mtime_ns
    assert prepare(library, tmp_path, told.append).path == place
    assert (len(told), place.stat().st_mtime_ns) == (2, written)
    place.write_bytes(place.read_bytes()[:-3])
    assert len(prepare(library, tmp_path, told.append)) == 14
    assert len(told) == 4


def test_whatever_it_depends_on_is_in_its_name(source: TrajectorySet, tmp_path: Path) -> None:
    keys = {
        Library(source).key,
        Library(source, repeats=2).key,
        Library(source, salts=None).key,
        Library(source, salts=Salts(0)).key,
        Library(source, salts=Salts(1)).key,
        Library(source, more={"chat_template_kwargs": {"thinking": False}}).key,
        Library(source.head(2)).key,
        Library(read_file(write(tmp_path / "y.jsonl", demo("a")))).key,
    }
    assert len(keys) == 8
    assert Library(source).repeats == 50


def test_what_every_chat_has_beside(source: TrajectorySet, tmp_path: Path) -> None:
    library = Library(source, repeats=1, more={"chat_template_kwargs": {"thinking": False}})
    found = prepare(library, tmp_path, lambda _: None)
    assert all(json.loads(bytes(found[i]))["chat_template_kwargs"] == {"thinking": False} for i in range(7))
    with pytest.raises(ConfigError, match="every chat shall have temperature"):
        Library(source, more={"temperature": 1})


@pytest.mark.parametrize("asked", [{"temperature": 0.5}, {"max_new_tokens": 5}, {"stream": False, "model": "x"}])
def test_rows_that_ask_for_what_a_run_sets(tmp_path: Path, asked: dict[str, Any]) -> None:
    source = read_file(write(tmp_path / "x.jsonl", demo(**asked)))
    with pytest.raises(ConfigError, match=f"asks for its own {', '.join(sorted(asked))}") as caught:
        Library(source)
    assert "conversation 'demo-1', turn 1" in str(caught.value)


def test_a_trajectory_that_cannot_be_salted(tmp_path: Path) -> None:
    source = read_file(write(tmp_path / "x.jsonl", [*demo("a"), user(1, "b")]))
    with pytest.raises(ConfigError, match="cannot be salted"):
        Library(source)
    found = prepare(Library(source, repeats=1, salts=None), tmp_path, lambda _: None)
    assert json.loads(bytes(found[2]))["messages"] == [{"role": "user", "content": "Question 1"}]


def test_repeats_that_are_none(source: TrajectorySet) -> None:
    with pytest.raises(ConfigError, match="0 repeats"):
        Library(source, repeats=0)


class Room(NamedTuple):
    free: int


def test_the_room_is_looked_for_first(source: TrajectorySet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    size = prepare(Library(source), tmp_path / "a", lambda _: None).path.stat().st_size
    monkeypatch.setattr(store.shutil, "disk_usage", lambda _: Room(size - 1))
    with pytest.raises(MissingError, match="the requests need some"):
        prepare(Library(source), tmp_path / "b", lambda _: None)
    assert not list((tmp_path / "b").rglob("*.chats*.part"))
    monkeypatch.setattr(store.shutil, "disk_usage", lambda _: Room(size * 2))
    assert len(prepare(Library(source), tmp_path / "b", lambda _: None)) == 350


def test_a_place_that_cannot_be_written(source: TrajectorySet, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MissingError, match="cannot write the requests"):
        prepare(Library(source), tmp_path / "file", lambda _: None)


def test_two_that_want_the_same_make_it_once(source: TrajectorySet, tmp_path: Path) -> None:
    library = Library(source, repeats=2)
    place = prepare(library, tmp_path / "first", lambda _: None).path
    there = tmp_path / "second" / place.relative_to(tmp_path / "first")
    there.parent.mkdir(parents=True)
    waiting, told = threading.Event(), list[str]()

    def tell(line: str) -> None:
        told.append(line)
        waiting.set()

    with there.with_name(there.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        other = threading.Thread(target=prepare, args=(library, tmp_path / "second", tell))
        other.start()
        assert waiting.wait(60)
        shutil.copyfile(place, there)
    other.join(60)
    assert not other.is_alive()
    assert [line.partition(";")[0] for line in told] == ["another process is making these requests"]
    assert len(BodyStore.open(there)) == 14


def test_memory_does_not_grow_with_the_repeats(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = demo("a")[:2]
    for turn in range(3, 43, 2):
        results = [{"tool_call_id": "c0", "content": "x" * 2000}]
        rows += [tool(turn, "a", tool_results=results), assistant(turn + 1, "a", tool_calls=rows[1]["tool_calls"])]
    library = Library(read_file(write(tmp_path / "x.jsonl", rows)), repeats=400)
    tracemalloc.start()
    try:
        found = build(library, tmp_path / "x.chats", lambda _: None)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert found.path.stat().st_size > 150e6
    assert peak < 3e6
