from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.benchmarks.base import file_sha256
from harness.benchmarks.qwen3_6_27b import fetch
from harness.benchmarks.qwen3_6_27b.standin import make_dataset
from harness.errors import ConfigError, DatasetError, MissingError
from harness.rules.benchmark import PerformanceData
from tests.benchmarks.download.storage import BASE, Storage, serving
from tests.benchmarks.qwen3_6_27b.made import PACK, RULES, demo, write

FILE = RULES.performance_data.value.file


@pytest.fixture
def published(tmp_path: Path) -> Path:
    return write(tmp_path / "published" / FILE, demo())


@pytest.fixture
def data(published: Path) -> PerformanceData:
    return RULES.performance_data.value.model_copy(update={"sha256": file_sha256(published)})


@pytest.fixture
def storage(published: Path) -> Iterator[Storage]:
    with serving(Storage({FILE: published.read_bytes()})) as served:
        yield served


@pytest.fixture
def url(storage: Storage) -> str:
    return f"{storage.host}{BASE}/{FILE}"


@pytest.fixture
def nobody() -> Iterator[str]:
    """An address at which nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/{FILE}"


def test_where_it_is_published() -> None:
    commit = PACK.sources["endpoints"].commit
    assert fetch.address(PACK, RULES.performance_data.value) == (
        f"https://raw.githubusercontent.com/mlcommons/endpoints/{commit}/examples/11_Edge_Agentic_Example/{FILE}"
    )


def test_it_is_fetched_once(tmp_path: Path, url: str, nobody: str, data: PerformanceData, published: Path) -> None:
    found = fetch.fetch(tmp_path / "x", url, data)
    assert found.path == tmp_path / "x" / FILE
    assert found.path.read_bytes() == published.read_bytes()
    assert fetch.fetch(tmp_path / "x", nobody, data) == found
    assert [each.name for each in (tmp_path / "x").iterdir()] == [FILE]


def test_another_content_is_not_kept(tmp_path: Path, url: str) -> None:
    with pytest.raises(DatasetError, match="others than the round's: sha256"):
        fetch.fetch(tmp_path / "x", url, RULES.performance_data.value)
    assert list((tmp_path / "x").iterdir()) == []


def test_a_download_that_is_cut_is_no_other_content(
    tmp_path: Path, url: str, storage: Storage, data: PerformanceData
) -> None:
    storage.cuts = [100]
    with pytest.raises(MissingError, match="cannot be fetched: "):
        fetch.fetch(tmp_path / "x", url, data)
    assert list((tmp_path / "x").iterdir()) == []
    assert fetch.fetch(tmp_path / "x", url, data).sha256 == data.sha256


@pytest.mark.parametrize(("status", "kind"), [(503, MissingError), (404, DatasetError), (403, MissingError)])
def test_a_server_that_does_not_give_it(
    tmp_path: Path, url: str, storage: Storage, data: PerformanceData, status: int, kind: type[MissingError]
) -> None:
    storage.answers = {f"{BASE}/{FILE}": [status]}
    with pytest.raises(kind, match=f"HTTP {status}") as caught:
        fetch.fetch(tmp_path / "x", url, data)
    assert type(caught.value) is kind
    assert caught.value.mend and "--adopt=FILE" in caught.value.mend


def test_what_lies_there_is_checked_and_left(
    tmp_path: Path, nobody: str, data: PerformanceData, published: Path
) -> None:
    there = write(tmp_path / "x" / FILE, demo("other"))
    before = there.read_bytes()
    for again in (
        lambda: fetch.fetch(tmp_path / "x", nobody, data),
        lambda: fetch.adopt(published, tmp_path / "x", data),
    ):
        with pytest.raises(DatasetError, match="others than the round's"):
            again()
    assert there.read_bytes() == before


def test_no_network(tmp_path: Path, nobody: str, data: PerformanceData) -> None:
    with pytest.raises(MissingError, match=r"the trajectories cannot be fetched: 127\.0\.0\.1:\d+ cannot be reached"):
        fetch.fetch(tmp_path / "x", nobody, data)


def test_a_copy_that_a_person_has(tmp_path: Path, data: PerformanceData, published: Path) -> None:
    found = fetch.adopt(published, tmp_path / "x", data)
    assert found.path.read_bytes() == published.read_bytes()
    with pytest.raises(DatasetError, match="others than the round's") as caught:
        fetch.adopt(published, tmp_path / "y", RULES.performance_data.value)
    assert caught.value.where == str(published)
    with pytest.raises(DatasetError, match="there is no such file"):
        fetch.adopt(tmp_path / "nothing", tmp_path / "y", data)


def test_a_stand_in_is_left_as_it_is(tmp_path: Path, nobody: str, data: PerformanceData, published: Path) -> None:
    make_dataset(tmp_path / "x", seed=0, rules=RULES)
    for again in (
        lambda: fetch.fetch(tmp_path / "x", nobody, data),
        lambda: fetch.adopt(published, tmp_path / "x", data),
    ):
        with pytest.raises(ConfigError, match="holds a stand-in data set"):
            again()


def test_a_place_that_cannot_be_written(tmp_path: Path, data: PerformanceData, published: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MissingError, match="cannot write the data set"):
        fetch.adopt(published, tmp_path / "file" / "below", data)
