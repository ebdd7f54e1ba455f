from __future__ import annotations

import base64
import io
import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from harness.benchmarks.qwen3_vl_235b_a22b import fetch, files, images, sidecar
from harness.benchmarks.qwen3_vl_235b_a22b.catalogue import Catalogue as Table
from harness.benchmarks.qwen3_vl_235b_a22b.files import TableSource
from harness.errors import ConfigError, DatasetError, MissingError
from tests.benchmarks.qwen3_vl_235b_a22b.made import REVISION, Catalogue, picture, row, source

KINDS = ("JPEG", "PNG", "WEBP")


class Hub:
    """A table of the hub as ``datasets`` gives it: rows are dicts, pictures are decoded."""

    def __init__(self, rows: int, **changes: Any) -> None:
        self.rows = rows
        self.changes = changes
        self.asked: list[TableSource] = []
        self.column_names = sorted(self[0])

    def __call__(self, wanted: TableSource) -> Hub:
        self.asked.append(wanted)
        return self

    def __len__(self) -> int:
        return self.rows

    def __getitem__(self, number: int) -> dict[str, Any]:
        made = row(number)
        columns = {name: made[name] for name in (files.TITLE, files.DESCRIPTION, files.TRUE_CATEGORY, files.TRUE_BRAND)}
        image = Image.open(io.BytesIO(picture(KINDS[number % 3], (30 + number % 5, 20))))
        image.load()
        changed = self.changes if number == self.rows - 1 else {}
        sample = {
            **columns,
            files.CATEGORIES: json.loads(made[files.CATEGORIES] or ""),
            files.TRUE_SECONDHAND: number % 2 == 1,
            fetch.PICTURE: image,
            **changed,
        }
        return {name: value for name, value in sample.items() if value != "left away"}


@pytest.fixture
def told() -> list[str]:
    return []


def test_it_fetches_once_into_the_client_s_columns(catalogue: Catalogue, told: list[str]) -> None:
    hub, wanted = Hub(300), source(300)
    path = fetch.fetch(catalogue.folder, wanted, told.append, hub)
    assert path == wanted.fetched(catalogue.folder)
    assert told[-1] == f"catalogue was fetched: {path}"
    dataset = catalogue.read(300)
    assert dataset.files[0].path == path
    assert not dataset.stand_in
    table = Table.open(path)
    assert table.group_rows == (256, 44)
    for name, values in ((files.TRUE_SECONDHAND, ["false", "true"]), (files.FORMAT, list(KINDS))):
        assert table.column(name)[:2] == values[:2]
    kind, content = images.round_trip(hub[299][fetch.PICTURE])
    assert images.from_base64(table.column(files.IMAGE)[299] or "") == content
    assert table.column(files.FORMAT)[299] == kind
    about = sidecar.read(path)
    assert about == sidecar.Sidecar(
        "some/catalogue", REVISION, "train+test", 300, dataset.files[0].sha256, images.pillow_version(), "fetched"
    )
    told.clear()
    assert fetch.fetch(catalogue.folder, wanted, told.append, hub) == path
    assert told == [f"catalogue was there: {path}"]
    assert len(hub.asked) == 1
    assert {each.suffix for each in path.parent.iterdir()} == {".parquet", ".json"}


def test_what_lies_there_without_a_word_is_fetched_again(catalogue: Catalogue, told: list[str]) -> None:
    wanted = source(2)
    path = catalogue.write([row(0)], path=wanted.fetched(catalogue.folder), described=False)
    fetch.fetch(catalogue.folder, wanted, told.append, Hub(2))
    assert Table.open(path).rows == 2


def test_what_was_changed_since_is_told(catalogue: Catalogue, told: list[str]) -> None:
    wanted = source(2)
    path = fetch.fetch(catalogue.folder, wanted, told.append, Hub(2))
    path.write_bytes(path.read_bytes() + b"x")
    with pytest.raises(DatasetError, match="not the one that was described"):
        fetch.fetch(catalogue.folder, wanted, told.append, Hub(2))


@pytest.mark.parametrize(
    ("hub", "said"),
    [
        (Hub(3), "the table has 3 rows"),
        (Hub(2, **{fetch.PICTURE: None}), "some/catalogue at .*, row 1"),
        (Hub(2, **{fetch.PICTURE: Image.new("RGBA", (4, 4))}), "picture cannot be read: cannot write mode RGBA"),
    ],
)
def test_rows_that_are_not_the_round_s(catalogue: Catalogue, told: list[str], hub: Hub, said: str) -> None:
    with pytest.raises(DatasetError, match=f"(?s){said}"):
        fetch.fetch(catalogue.folder, source(2), told.append, hub)
    assert [each for each in catalogue.folder.rglob("*") if each.is_file()] == []


class Broken(Hub):
    """One whose last row has a picture that cannot be decoded."""

    def __getitem__(self, number: int) -> dict[str, Any]:
        if number == self.rows - 1 and hasattr(self, "column_names"):
            raise OSError("image file is truncated")
        return super().__getitem__(number)


def test_a_picture_that_the_hub_cannot_decode_is_told_by_its_row(catalogue: Catalogue, told: list[str]) -> None:
    with pytest.raises(DatasetError, match=f"(?s)picture cannot be read: image file is truncated.*{REVISION}, row 2"):
        fetch.fetch(catalogue.folder, source(3), told.append, Broken(3))
    assert [each for each in catalogue.folder.rglob("*") if each.is_file()] == []


def test_columns_that_the_hub_has_not(catalogue: Catalogue, told: list[str]) -> None:
    hub = Hub(1, **{fetch.PICTURE: "left away", files.TRUE_BRAND: "left away"})
    with pytest.raises(DatasetError, match="lacks the columns ground_truth_brand, product_image"):
        fetch.fetch(catalogue.folder, source(1), told.append, hub)


def test_a_disk_that_is_full(catalogue: Catalogue, told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(fetch, "write_table", full)
    with pytest.raises(MissingError, match=r"cannot write the data set: .*No space left"):
        fetch.fetch(catalogue.folder, source(1), told.append, Hub(1))


def as_datasets(monkeypatch: pytest.MonkeyPatch, load: Any) -> None:
    """Puts a double in the place of the package ``datasets``."""
    module: Any = types.ModuleType("datasets")
    module.exceptions = types.SimpleNamespace(DatasetsError=RuntimeError)
    module.load_dataset = load
    monkeypatch.setitem(sys.modules, "datasets", module)


def test_how_the_hub_is_asked(monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue, told: list[str]) -> None:
    asked: list[tuple[object, ...]] = []

    def load(repo: str, *, split: str, revision: str) -> Hub:
        asked.append((repo, split, revision))
        return Hub(2)

    as_datasets(monkeypatch, load)
    fetch.fetch(catalogue.folder, source(2), told.append)
    assert asked == [("some/catalogue", "train+test", REVISION)]


@pytest.mark.parametrize("error", [ConnectionError("no route"), ValueError("no such split"), RuntimeError("no set")])
def test_a_hub_that_gives_nothing(
    monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue, told: list[str], error: Exception
) -> None:
    def load(repo: str, **options: object) -> Hub:
        raise error

    as_datasets(monkeypatch, load)
    with pytest.raises(MissingError, match=f"(?s)the hub did not give the data set: {error}.*{REVISION}.*copy"):
        fetch.fetch(catalogue.folder, source(2), told.append)


def test_without_the_package(monkeypatch: pytest.MonkeyPatch, catalogue: Catalogue, told: list[str]) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(MissingError, match=r"(?s)datasets is not installed.*qwen3-vl,fetch") as caught:
        fetch.fetch(catalogue.folder, source(2), told.append)
    assert caught.value.exit_code == 3


def test_a_table_that_a_person_knows(catalogue: Catalogue) -> None:
    path = catalogue.write([row(0), row(1)], described=False)
    about = fetch.adopt(path, REVISION, catalogue.folder, [source(2)])
    assert (about.how, about.pillow, about.rows) == ("stated", "", 2)
    assert catalogue.read(2).rows == 2


def test_tables_that_cannot_be_taken(catalogue: Catalogue, stand_in: Catalogue, tmp_path: Path) -> None:
    path = catalogue.write([row(0), row(1)], described=False)
    with pytest.raises(ConfigError, match=f"(?s)of revision main.*expected: {REVISION}, which the round pins"):
        fetch.adopt(path, "main", catalogue.folder, [source(2)])
    with pytest.raises(DatasetError, match="the table has 2 rows"):
        fetch.adopt(path, REVISION, catalogue.folder, [source(3)])
    with pytest.raises(ConfigError, match="does not lie where it is read"):
        fetch.adopt(path, REVISION, tmp_path, [source(2)])
    with pytest.raises(DatasetError, match="a file of the data set is missing"):
        fetch.adopt(tmp_path / "none", REVISION, tmp_path, [source(2)])
    path = stand_in.write([row(0), row(1)], described=False)
    with pytest.raises(ConfigError, match="a stand-in is of no revision"):
        fetch.adopt(path, REVISION, stand_in.folder, [source(2)])
    assert not sidecar.beside(path).exists()


def test_every_picture_is_decoded(catalogue: Catalogue, told: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "_TELL_EVERY_ROWS", 64)
    catalogue.write(row(i) for i in range(100))
    fetch.verify_pictures(catalogue.folder, source(100), told.append)
    assert told == ["pictures: 64 of 100"]
    cut = base64.b64encode(picture("PNG", (300, 200))[:-200]).decode()
    catalogue.write(row(i, **({files.IMAGE: cut} if i == 70 else {})) for i in range(100))
    with pytest.raises(DatasetError, match=r"(?s)picture cannot be read.*row 70"):
        fetch.verify_pictures(catalogue.folder, source(100), told.append)
    catalogue.write(row(i, **({files.IMAGE: None} if i == 71 else {})) for i in range(100))
    with pytest.raises(DatasetError, match=r"(?s)no picture.*row 71"):
        fetch.verify_pictures(catalogue.folder, source(100), told.append)
