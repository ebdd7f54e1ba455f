"""The hub's own library on a data set that lies on the disk: what is fetched is what the mlcommons client makes."""

from __future__ import annotations

import base64
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from harness.benchmarks.qwen3_vl_235b_a22b import fetch, files
from harness.benchmarks.qwen3_vl_235b_a22b.catalogue import Catalogue as Table
from harness.benchmarks.qwen3_vl_235b_a22b.files import CATALOGUE, TableSource
from harness.errors import MissingError
from harness.rules.benchmark import DatasetSource
from tests.benchmarks.qwen3_vl_235b_a22b.made import REVISION, Catalogue, picture

pytestmark = pytest.mark.hub
ROWS = {"train": 12, "test": 5}
TURNED = 3
"""The row of each split whose picture says that the camera was held upright."""


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """The library, with a cache of its own and no network."""
    import datasets

    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    datasets.disable_progress_bars()
    return datasets


def turned() -> bytes:
    buffer, exif = io.BytesIO(), Image.Exif()
    exif[0x0112] = 6  # the tag Orientation: a quarter turn
    Image.open(io.BytesIO(picture("JPEG", (60, 40)))).save(buffer, format="JPEG", exif=exif)
    return buffer.getvalue()


def rows(count: int) -> Iterator[dict[str, Any]]:
    for number in range(count):
        content = turned() if number == TURNED else picture(("JPEG", "PNG", "WEBP")[number % 3], (50 + number, 30))
        yield {
            "product_title": f"Crêpe pan {number}",
            "product_description": None if number == 1 else "<b>鍋</b>",
            "product_image": {"bytes": content, "path": None},
            "potential_product_categories": ["Home > Crêpe Pans", "Home > 鍋"],
            "ground_truth_category": "Home > 鍋",
            "ground_truth_brand": "Ørsted",
            "ground_truth_is_secondhand": number % 4 == 0,
        }


@pytest.fixture
def source(offline: Any, tmp_path: Path) -> TableSource:
    text, repo = offline.Value("string"), tmp_path / "repo"
    features = offline.Features(
        {
            "product_title": text,
            "product_description": text,
            "product_image": offline.Image(),
            "potential_product_categories": offline.List(text),
            "ground_truth_category": text,
            "ground_truth_brand": text,
            "ground_truth_is_secondhand": offline.Value("bool"),
        }
    )
    for split, count in ROWS.items():
        table = offline.Dataset.from_list(list(rows(count)), features=features)
        table.to_parquet(repo / "data" / f"{split}-00000-of-00001.parquet")
    about = DatasetSource(repo=str(repo), revision=REVISION, splits=list(ROWS), rows=sum(ROWS.values()))
    return TableSource(CATALOGUE, about)


def as_the_client(sample: dict[str, Any]) -> dict[str, str | None]:
    """A row as the mlcommons client converts it, by what is published of its format."""
    image = sample["product_image"]
    kind, buffer = image.format or "JPEG", io.BytesIO()
    image.save(buffer, format=kind)
    return {
        files.TITLE: sample["product_title"],
        files.DESCRIPTION: sample["product_description"],
        files.IMAGE: base64.b64encode(buffer.getvalue()).decode(),
        files.FORMAT: kind,
        files.CATEGORIES: json.dumps(sample["potential_product_categories"]),
        files.TRUE_CATEGORY: sample["ground_truth_category"],
        files.TRUE_BRAND: sample["ground_truth_brand"],
        files.TRUE_SECONDHAND: json.dumps(sample["ground_truth_is_secondhand"]),
    }


def test_what_is_fetched_is_what_the_client_makes(offline: Any, source: TableSource, catalogue: Catalogue) -> None:
    path = fetch.fetch(catalogue.folder, source, lambda line: None)
    table = Table.open(path)
    found = {name: table.column(name) for name in files.COLUMNS}
    hub = offline.load_dataset(source.source.repo, split="train+test")
    assert len(hub) == table.rows == sum(ROWS.values())
    for row in range(table.rows):
        assert {name: values[row] for name, values in found.items()} == as_the_client(hub[row])
    assert {*found[files.FORMAT]} == {"JPEG", "PNG", "WEBP"}
    assert hub[TURNED]["product_image"].size == (40, 60)
    fetch.verify_pictures(catalogue.folder, source, lambda line: None)


def test_what_pandas_writes_is_read_as_the_client_s(offline: Any, source: TableSource, catalogue: Catalogue) -> None:
    import pandas

    path = fetch.fetch(catalogue.folder, source, lambda line: None)
    frame = pandas.read_parquet(path)
    assert tuple(frame.columns) == files.COLUMNS
    again = catalogue.folder / "again.parquet"
    frame.to_parquet(again)
    for name in files.COLUMNS:
        assert Table.open(again).column(name) == Table.open(path).column(name)


def test_a_hub_that_cannot_be_reached(offline: Any) -> None:
    nowhere = TableSource(CATALOGUE, DatasetSource(repo="some/catalogue", revision=REVISION, splits=["train"], rows=1))
    with pytest.raises(MissingError, match=r"(?s)the hub did not give the data set.*copy its data folder"):
        fetch.from_hub(nowhere)
