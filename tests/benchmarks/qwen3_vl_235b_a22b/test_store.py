from __future__ import annotations

import fcntl
import shutil
import threading
from pathlib import Path
from typing import NamedTuple

import pytest

from harness.benchmarks.qwen3_vl_235b_a22b import files, images, requests, store
from harness.engines.bodies import BodyStore
from harness.errors import DatasetError, MissingError
from tests.benchmarks.qwen3_vl_235b_a22b.made import Catalogue, row

pytestmark = pytest.mark.qwen3vl


@pytest.fixture
def told() -> list[str]:
    return []


def test_the_store_is_made_once(catalogue: Catalogue, told: list[str]) -> None:
    catalogue.write([row(i) for i in range(5)])
    dataset = catalogue.read(5)
    ready = store.prepare(dataset, catalogue.folder, "v6.1", told.append)
    assert ready.chats is not None
    assert ready.chats.parent == catalogue.folder / files.REQUESTS_FOLDER
    made = BodyStore.open(ready.chats)
    assert ready.prompt_tokens.tolist() == made.tokens.tolist()
    assert ready.max_prompt_tokens == max(made.tokens)
    assert "5 rows, 1 at a time" in told[0]
    assert str(ready.chats) in told[-1]
    stamp = ready.chats.stat().st_mtime_ns
    told.clear()
    again = store.prepare(dataset, catalogue.folder, "v6.1", told.append)
    assert (again.chats, told) == (ready.chats, [])
    assert ready.chats.stat().st_mtime_ns == stamp


def test_a_part_of_the_rows_has_a_store_of_its_own(catalogue: Catalogue, told: list[str]) -> None:
    catalogue.write([row(i) for i in range(5)])
    dataset = catalogue.read(5)
    whole = store.prepare(dataset, catalogue.folder, "v6.1", told.append)
    head = store.prepare(dataset.head(2), catalogue.folder, "v6.1", told.append)
    assert whole.chats is not None
    assert head.chats is not None
    assert len(BodyStore.open(head.chats)) == len(head.prompt_tokens) == 2
    assert whole.chats != head.chats


def test_what_the_key_depends_on(catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch) -> None:
    catalogue.write([row(i) for i in range(2)])
    dataset = catalogue.read(2)
    keys = {store.key(dataset, "v6.1"), store.key(dataset, "v6.0")}
    monkeypatch.setattr(images, "pillow_version", lambda: "1.1.7")
    keys.add(store.key(dataset, "v6.1"))
    monkeypatch.setattr(requests, "VERSION", 0)
    keys.add(store.key(dataset, "v6.1"))
    catalogue.write([row(i) for i in range(1, 3)])
    keys.add(store.key(catalogue.read(2), "v6.1"))
    assert len(keys) == 5


@pytest.mark.parametrize("damage", ["", "half"])
def test_a_store_that_is_damaged_is_made_again(catalogue: Catalogue, told: list[str], damage: str) -> None:
    catalogue.write([row(i) for i in range(5)])
    dataset = catalogue.read(5)
    path = store.prepare(dataset, catalogue.folder, "v6.1", told.append).chats
    assert path is not None
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2] if damage else b"")
    assert store.prepare(dataset, catalogue.folder, "v6.1", told.append).chats == path
    assert path.read_bytes() == content


def test_a_row_that_is_wrong_leaves_no_store(catalogue: Catalogue, told: list[str]) -> None:
    catalogue.write([row(0), row(1, **{files.IMAGE: None})])
    with pytest.raises(DatasetError, match="row 1"):
        store.prepare(catalogue.read(2), catalogue.folder, "v6.1", told.append)
    left = [path.suffix for path in (catalogue.folder / files.REQUESTS_FOLDER).iterdir()]
    assert left == [".lock"]


def test_a_disk_that_is_too_small_is_told_before(
    catalogue: Catalogue, told: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage(NamedTuple):
        total: int
        used: int
        free: int

    catalogue.write([row(0)])
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(1, 1, 1_000_000))
    with pytest.raises(MissingError, match="the requests need some 67 MB, and 1 MB are free"):
        store.prepare(catalogue.read(1), catalogue.folder, "v6.1", told.append)
    assert told == []


def test_a_disk_that_fills_up_is_told(catalogue: Catalogue, told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **options: object) -> None:
        raise OSError(28, "No space left on device")

    catalogue.write([row(0)])
    monkeypatch.setattr(requests, "build", full)
    with pytest.raises(MissingError, match=r"cannot write the requests: .*No space left"):
        store.prepare(catalogue.read(1), catalogue.folder, "v6.1", told.append)


def test_about_how_large_a_store_will_be(catalogue: Catalogue, told: list[str]) -> None:
    catalogue.write([row(i, **{files.DESCRIPTION: "x" * 20_000}) for i in range(200)])
    ready = store.prepare(catalogue.read(200), catalogue.folder, "v6.1", told.append)
    assert ready.chats is not None
    room = store.expected_bytes(ready.files[0].path, 200) - (64 << 20)
    assert ready.chats.stat().st_size <= room <= 1.3 * ready.chats.stat().st_size


def test_who_comes_second_waits_and_takes_what_the_first_made(catalogue: Catalogue, told: list[str]) -> None:
    catalogue.write([row(i) for i in range(5)])
    dataset = catalogue.read(5)
    path = store.prepare(dataset, catalogue.folder, "v6.1", told.append).chats
    assert path is not None
    content = path.read_bytes()
    path.unlink()
    told.clear()
    waits = threading.Event()

    def tell(line: str) -> None:
        told.append(line)
        waits.set()

    second = threading.Thread(target=lambda: store.prepare(dataset, catalogue.folder, "v6.1", tell))
    with path.with_name(path.name + ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second.start()
        assert waits.wait(30)
        path.write_bytes(content)
    second.join(30)
    assert not second.is_alive()
    assert told == [f"another process is making these requests; waiting for it: {path}"]


@pytest.mark.parametrize(("cpus", "rows", "expected"), [(1, 10**6, 1), (2, 48_289, 2), (8, 512, 1), (200, 10**6, 16)])
def test_how_many_processes(monkeypatch: pytest.MonkeyPatch, cpus: int, rows: int, expected: int) -> None:
    monkeypatch.setattr(store.os, "sched_getaffinity", lambda pid: set(range(cpus)))
    assert store.processes(rows) == expected


def test_progress_is_told_now_and_then(catalogue: Catalogue, told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "_TELL_EVERY_S", 0.0)
    catalogue.write([row(i) for i in range(130)])
    store.prepare(catalogue.read(130), catalogue.folder, "v6.1", told.append)
    assert [line for line in told if line.startswith("requests: ")] == [
        "requests: 64 of 130",
        "requests: 128 of 130",
        "requests: 130 of 130",
    ]


def test_a_folder_that_cannot_be_written(catalogue: Catalogue, told: list[str], tmp_path: Path) -> None:
    catalogue.write([row(0)])
    place = tmp_path / "file"
    place.write_text("")
    with pytest.raises(MissingError, match="cannot write the requests"):
        store.prepare(catalogue.read(1), place, "v6.1", told.append)
