from __future__ import annotations

import fcntl
import resource
import shutil
from collections import namedtuple
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from harness.benchmarks import download as room
from harness.benchmarks.base import CHUNK_BYTES
from harness.benchmarks.download import FileProgress, State, Told, Web
from harness.benchmarks.download import fetch as fetch_function
from harness.benchmarks.download.fetch import CONTACT_TRIES
from harness.benchmarks.download.transfer import TRIES
from harness.errors import ConfigError, DatasetError, InUseError, MissingError
from harness.events import Event, Note
from harness.rules import DatasetDownload
from tests.benchmarks.download.storage import BASE, INDEX, LIST, Storage, md5, md5_list, serving

BIG = np.random.default_rng(1).bytes(3 * CHUNK_BYTES + 17)
FILES = {"perf/big.parquet": BIG, "acc/small table.npy": b"a few bytes", "acc/empty.npy": b""}
BY_HAND = "carry it over by hand"


@pytest.fixture
def storage() -> Iterator[Storage]:
    with serving(Storage(dict(FILES))) as served:
        yield served


class Fetcher:
    """Fetches into a folder, never sleeps, remembers what it was told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.told: list[FileProgress] = []
        self.notes: list[Event] = []
        self.pauses: list[float] = []

    def __call__(self, storage: Storage, download: DatasetDownload | None = None) -> room.Fetched:
        return fetch_function(
            self.folder,
            download or storage.download(),
            web=Web(BY_HAND, timeout_s=5),
            told=Told(self.told.append, self.notes.append),
            pause=self.pauses.append,
        )

    def there(self) -> set[str]:
        return {path.relative_to(self.folder).as_posix() for path in self.folder.rglob("*") if path.is_file()}


@pytest.fixture
def fetcher(tmp_path: Path) -> Fetcher:
    return Fetcher(tmp_path / "data" / "gpt-oss-120b")


WHOLE = {*FILES, "gpt-oss-data.md5"}


def test_all_files_come_and_are_right(storage: Storage, fetcher: Fetcher) -> None:
    found = fetcher(storage)
    assert [(state.file.path, state.state, state.size) for state in found.states] == [
        (path, State.RIGHT, len(content)) for path, content in FILES.items()
    ]
    assert set(found.fetched) == set(FILES)
    assert {path: (fetcher.folder / path).read_bytes() for path in FILES} == FILES
    assert fetcher.there() == WHOLE
    assert FileProgress("acc/small table.npy", 11, 11) in fetcher.told
    done = [progress.done for progress in fetcher.told if progress.path == "perf/big.parquet"]
    assert (done[0], done[-1], done) == (0, len(BIG), sorted(done))
    assert fetcher.notes == [Note(f"3 files, 3.1 MB, from {storage.host}{BASE} to {fetcher.folder}")]


def test_what_is_there_and_right_asks_no_network(storage: Storage, fetcher: Fetcher) -> None:
    fetcher(storage)
    storage.asked.clear()
    assert fetcher(storage).fetched == ()
    assert storage.asked == []


def test_files_put_there_by_hand_are_only_checked(storage: Storage, fetcher: Fetcher) -> None:
    (fetcher.folder / "perf").mkdir(parents=True)
    (fetcher.folder / "perf" / "big.parquet").write_bytes(BIG)
    assert set(fetcher(storage).fetched) == set(FILES) - {"perf/big.parquet"}
    assert "perf/big.parquet" not in storage.downloads()


def test_a_download_goes_on_where_it_stopped(storage: Storage, fetcher: Fetcher) -> None:
    part = fetcher.folder / "perf" / "big.parquet.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(BIG[:1000])
    fetcher(storage)
    assert ("GET", f"{BASE}/perf/big.parquet", "bytes=1000-") in storage.asked
    assert (fetcher.folder / "perf" / "big.parquet").read_bytes() == BIG
    assert fetcher.there() == WHOLE


def test_a_storage_that_does_no_parts_is_asked_from_the_beginning(storage: Storage, fetcher: Fetcher) -> None:
    storage.parts = False
    part = fetcher.folder / "perf" / "big.parquet.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 1000)
    fetcher(storage)
    assert (fetcher.folder / "perf" / "big.parquet").read_bytes() == BIG


def test_a_part_that_is_larger_than_the_file_is_begun_anew(storage: Storage, fetcher: Fetcher) -> None:
    part = fetcher.folder / "acc" / "small table.npy.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(b"x" * 1000)
    fetcher(storage)
    assert (fetcher.folder / "acc" / "small table.npy").read_bytes() == b"a few bytes"


def test_a_connection_that_is_cut_is_taken_up_again(storage: Storage, fetcher: Fetcher) -> None:
    storage.cuts = [5000, 0, CHUNK_BYTES + 1, None]
    fetcher(storage)
    asked = [span for method, path, span in storage.asked if method == "GET" and "big" in path]
    assert asked == [None, "bytes=5000-", "bytes=5000-", f"bytes={5000 + CHUNK_BYTES + 1}-"]
    assert (fetcher.folder / "perf" / "big.parquet").read_bytes() == BIG
    assert len(fetcher.pauses) == 3
    assert fetcher.notes[1] == Note("perf/big.parquet: the connection was cut; it goes on from byte 5,000")


def test_one_that_is_cut_again_and_again_ends_and_keeps_what_came(storage: Storage, fetcher: Fetcher) -> None:
    storage.cuts = [1234, *[0] * TRIES]
    with pytest.raises(MissingError, match="the download broke off") as caught:
        fetcher(storage)
    assert "1234 are there" in str(caught.value)
    assert (fetcher.folder / "perf" / "big.parquet.part").read_bytes() == BIG[:1234]
    assert not (fetcher.folder / "perf" / "big.parquet").exists()
    storage.cuts = []
    fetcher(storage)
    assert (fetcher.folder / "perf" / "big.parquet").read_bytes() == BIG


def test_a_busy_storage_is_asked_again(storage: Storage, fetcher: Fetcher) -> None:
    storage.answers = {INDEX: [503], LIST: [429, 500], f"{BASE}/perf/big.parquet": [502, 503]}
    fetcher(storage)
    assert fetcher.there() == WHOLE
    assert len(fetcher.pauses) == 5


@pytest.mark.parametrize("path", [INDEX, LIST, f"{BASE}/perf/big.parquet"])
def test_what_is_not_there_is_said_with_its_address(storage: Storage, fetcher: Fetcher, path: str) -> None:
    storage.answers = {path: [404] * TRIES}
    with pytest.raises(DatasetError, match="HTTP 404") as caught:
        fetcher(storage)
    assert caught.value.where == storage.host + path
    assert caught.value.mend == BY_HAND
    assert not fetcher.folder.exists(), "nothing is begun"


@pytest.mark.parametrize("code", [401, 403, None])
def test_a_login(storage: Storage, fetcher: Fetcher, code: int | None) -> None:
    if code is None:
        storage.elsewhere = {INDEX}
    else:
        storage.answers = {INDEX: [code]}
    with pytest.raises(MissingError, match="wants a login") as caught:
        fetcher(storage)
    assert (caught.value.exit_code, caught.value.mend) == (3, BY_HAND)


def test_no_network(fetcher: Fetcher) -> None:
    with serving(Storage(dict(FILES))) as storage:
        download = storage.download()
    with pytest.raises(MissingError, match=r"storage does not answer: 127.0.0.1:.* cannot be reached") as caught:
        fetcher(storage, download)
    assert (caught.value.exit_code, caught.value.mend) == (3, BY_HAND)
    assert len(fetcher.pauses) == CONTACT_TRIES - 1
    assert not fetcher.folder.exists()


def test_content_of_another_md5_is_kept_aside_and_never_used(storage: Storage, fetcher: Fetcher) -> None:
    damaged = bytes([BIG[0] ^ 1]) + BIG[1:]
    storage.listed = md5_list(storage.files)
    storage.files["perf/big.parquet"] = damaged
    with pytest.raises(DatasetError, match=f"what was downloaded has the md5 {md5(damaged)}") as caught:
        fetcher(storage)
    assert caught.value.expected == md5(BIG)
    aside = fetcher.folder / "perf" / f"big.parquet.wrong-{md5(damaged)[:8]}"
    assert str(aside) in str(caught.value)
    assert aside.read_bytes() == damaged
    assert not (fetcher.folder / "perf" / "big.parquet").exists()
    assert not (fetcher.folder / "perf" / "big.parquet.part").exists()
    storage.files["perf/big.parquet"] = BIG
    fetcher(storage)
    assert (fetcher.folder / "perf" / "big.parquet").read_bytes() == BIG


def test_a_file_of_a_persons_with_another_content_is_put_aside_and_not_lost(storage: Storage, fetcher: Fetcher) -> None:
    mine = fetcher.folder / "acc" / "empty.npy"
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"mine")
    (aside,) = fetcher(storage).aside
    assert aside.read_bytes() == b"mine"
    assert mine.read_bytes() == b""


def test_a_file_that_is_not_as_large_as_was_said(storage: Storage, fetcher: Fetcher) -> None:
    storage.sizes = {f"{BASE}/perf/big.parquet": len(BIG) + 1}
    with pytest.raises(DatasetError, match=f"is of {len(BIG)} bytes now; it was of {len(BIG) + 1}"):
        fetcher(storage)
    assert not (fetcher.folder / "perf" / "big.parquet").exists()


def test_a_disk_that_is_too_small_is_told_before_anything_is_fetched(
    storage: Storage, fetcher: Fetcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    usage = namedtuple("usage", "total used free")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage(10**9, 0, 2_000_000))
    with pytest.raises(MissingError, match=r"needs 3\.1 MB more, and 2\.0 MB are free"):
        fetcher(storage)
    assert storage.downloads() == []
    assert not fetcher.folder.exists()


def test_a_disk_that_fills_up_keeps_what_came(storage: Storage, fetcher: Fetcher) -> None:
    """A limit on the size of files is a disk that is full after so many bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (CHUNK_BYTES + 100, hard))
    try:
        with pytest.raises(MissingError, match="what was downloaded cannot be written: File too large") as caught:
            fetcher(storage)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    part = fetcher.folder / "perf" / "big.parquet.part"
    assert caught.value.where == str(part)
    assert part.read_bytes() == BIG[: CHUNK_BYTES + 100]
    fetcher(storage)
    assert f"bytes={CHUNK_BYTES + 100}-" in {span for _, _, span in storage.asked}
    assert (fetcher.folder / "perf" / "big.parquet").read_bytes() == BIG


@pytest.mark.parametrize("taken", [".", "perf", "perf/big.parquet.part"])
def test_a_name_that_is_taken_by_something_else(storage: Storage, fetcher: Fetcher, taken: str) -> None:
    path = fetcher.folder / taken
    path.parent.mkdir(parents=True, exist_ok=True)
    if taken.endswith(".part"):
        path.mkdir()
    else:
        path.write_text("a file")
    with pytest.raises(ConfigError, match="a file and a folder want the same name"):
        fetcher(storage)


def test_another_process_at_the_same_file(storage: Storage, fetcher: Fetcher) -> None:
    part = fetcher.folder / "perf" / "big.parquet.part"
    part.parent.mkdir(parents=True)
    with part.open("wb") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(InUseError, match="another process downloads this file"):
            fetcher(storage)
    assert not (fetcher.folder / "perf" / "big.parquet").exists()


def test_a_list_that_lacks_what_legs_need(storage: Storage, fetcher: Fetcher) -> None:
    with pytest.raises(DatasetError, match=r"the list of the data set's files has no acc/gone\.parquet"):
        fetcher(storage, storage.download(required=["perf/big.parquet", "acc/gone.parquet"]))
    assert not fetcher.folder.exists()


def test_a_list_that_says_otherwise_than_the_rule_pack(storage: Storage, fetcher: Fetcher) -> None:
    with pytest.raises(DatasetError, match=r"another md5 of perf/big\.parquet") as caught:
        fetcher(storage, storage.download(md5={"perf/big.parquet": "0" * 32}))
    assert caught.value.expected == "0" * 32
    assert not fetcher.folder.exists()


@pytest.mark.parametrize("base", ["http://elsewhere.invalid/data", "file:///etc", "nonsense", "{host}/"])
def test_an_index_that_leads_elsewhere(storage: Storage, fetcher: Fetcher, base: str) -> None:
    storage.base = base.format(host=storage.host)
    with pytest.raises(DatasetError, match="the index names no address of its own host"):
        fetcher(storage)


@pytest.mark.parametrize("text", ["x" * (1 << 20) + "y", "\0"], ids=["too much", "no text"])
def test_a_list_that_is_no_small_text(storage: Storage, fetcher: Fetcher, text: str) -> None:
    storage.listed = text
    with pytest.raises(DatasetError, match="no small text"):
        fetcher(storage)
