from __future__ import annotations

import base64
import hashlib
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from PIL import Image

from harness.benchmarks.base import file_sha256
from harness.benchmarks.qwen3_vl_235b_a22b import files, images, pictures, standin
from harness.benchmarks.qwen3_vl_235b_a22b.products import CANDIDATES, THINGS
from harness.benchmarks.qwen3_vl_235b_a22b.standin import make_dataset
from harness.errors import ConfigError, MissingError
from harness.rules import load

RULES = load("v6.1").image_benchmark(files.NAME)
FILES = ("catalogue", "catalogue-8k")


def rows_of(folder: Path, table: int = 0) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pq.read_table(files.tables(RULES)[table].plain(folder)).to_pylist()
    return found


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data") / files.NAME
    assert make_dataset(folder, seed=0, rules=RULES, rows=600).made
    return folder


def test_it_has_the_client_s_columns_and_is_marked(made: Path) -> None:
    for table in files.tables(RULES):
        schema = pq.read_schema(table.plain(made))
        assert tuple(schema.names) == files.COLUMNS
        assert json.loads((schema.metadata or {})[files.STAND_IN_KEY])["seed"] == 0
    about = json.loads((made / "STAND_IN.json").read_text())
    assert about["rows"] == dict.fromkeys(FILES, 600)
    assert about["pillow"] == images.pillow_version()
    assert all(file_sha256(made / name) == digest for name, digest in about["sha256"].items())


def test_what_is_in_it(made: Path) -> None:
    rows = rows_of(made)
    assert len({row[files.TITLE] for row in rows}) == len(rows)
    for row in rows:
        categories = json.loads(row[files.CATEGORIES])
        assert len(categories) in CANDIDATES
        assert len(set(categories)) == len(categories)
        assert row[files.TRUE_CATEGORY] in categories
        assert row[files.TRUE_SECONDHAND] in ("true", "false")
        assert row[files.CATEGORIES] == json.dumps(categories)
    places = Counter(json.loads(row[files.CATEGORIES]).index(row[files.TRUE_CATEGORY]) for row in rows)
    assert set(places) == set(range(max(CANDIDATES)))
    assert {row[files.FORMAT] for row in rows} == {"JPEG", "PNG", "WEBP"}
    assert {row[files.TRUE_CATEGORY] for row in rows} == {thing.category for thing in THINGS}
    assert 0 < sum(row[files.TRUE_SECONDHAND] == "true" for row in rows) < 100
    assert 0 < sum(row[files.TRUE_BRAND] == "" for row in rows) < 300
    assert any("<script>" in row[files.DESCRIPTION] for row in rows)
    assert any("の" in row[files.DESCRIPTION] for row in rows)
    assert any(not row[files.TITLE].isascii() for row in rows)


def test_its_pictures_went_through_the_round_trip(made: Path) -> None:
    sent = {row[files.IMAGE]: row[files.FORMAT] for row in rows_of(made)}
    expected = {
        base64.b64encode(images.round_trip(images.opened(pictures.load(n)))[1]).decode() for n in pictures.NAMES
    }
    assert set(sent) == expected
    seen = set()
    for content, kind in sent.items():
        picture = Image.open(io.BytesIO(base64.b64decode(content)))
        assert picture.format == kind
        seen.add((kind, picture.mode))
    assert {("PNG", "P"), ("PNG", "RGBA"), ("JPEG", "RGB"), ("JPEG", "L"), ("WEBP", "RGB")} <= seen


def test_every_thing_has_its_picture_and_categories_of_its_own() -> None:
    assert {thing.picture for thing in THINGS} == set(pictures.NAMES)
    assert len({thing.category for thing in THINGS}) == len(THINGS)
    assert not {thing.category for thing in THINGS} & {near for thing in THINGS for near in thing.near}


def test_the_same_seed_makes_the_same_and_fewer_rows_are_the_first_ones(made: Path, tmp_path: Path) -> None:
    again = make_dataset(tmp_path / "again", seed=0, rules=RULES, rows=600)
    assert again.sha256 == json.loads((made / "STAND_IN.json").read_text())["sha256"]
    make_dataset(tmp_path / "few", seed=0, rules=RULES, rows=50)
    assert rows_of(tmp_path / "few") == rows_of(made)[:50]
    make_dataset(tmp_path / "other", seed=1, rules=RULES, rows=50)
    assert rows_of(tmp_path / "other") != rows_of(made)[:50]
    assert rows_of(made, 1)[:50] != rows_of(made)[:50]


def test_it_is_made_once_and_again_when_it_is_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / files.NAME
    assert make_dataset(folder, seed=0, rules=RULES, rows=5).made
    assert not make_dataset(folder, seed=0, rules=RULES, rows=5).made
    assert make_dataset(folder, seed=1, rules=RULES, rows=5).made
    assert make_dataset(folder, seed=1, rules=RULES, rows=6).made
    files.tables(RULES)[0].plain(folder).write_bytes(b"damaged")
    assert make_dataset(folder, seed=1, rules=RULES, rows=6).made
    monkeypatch.setattr(images, "pillow_version", lambda: "1.1.7")
    assert make_dataset(folder, seed=1, rules=RULES, rows=6).made
    (folder / "STAND_IN.json").write_text("no JSON")
    assert make_dataset(folder, seed=1, rules=RULES, rows=6).made
    assert not [each for each in tmp_path.iterdir() if each != folder]


def test_real_data_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "real.parquet").write_text("")
    with pytest.raises(ConfigError, match="holds something that is no stand-in"):
        make_dataset(tmp_path, seed=0, rules=RULES, rows=5)
    assert [each.name for each in tmp_path.iterdir()] == ["real.parquet"]


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(MissingError, match="cannot write the stand-in data set"):
        make_dataset(tmp_path / "file" / "below", seed=0, rules=RULES, rows=5)


@pytest.mark.parametrize("rows", [0, -1])
def test_rows_that_are_none(tmp_path: Path, rows: int) -> None:
    with pytest.raises(ConfigError, match=f"a data set of {rows} rows"):
        make_dataset(tmp_path / "x", seed=0, rules=RULES, rows=rows)


def test_more_rows_than_the_round_s_are_the_round_s(tmp_path: Path) -> None:
    sources = {
        key: ruled.model_copy(update={"value": ruled.value.model_copy(update={"rows": 3})})
        for key, ruled in RULES.dataset_sources.items()
    }
    small = RULES.model_copy(update={"dataset_sources": sources})
    for rows in (None, 10):
        assert make_dataset(tmp_path / "x", seed=0, rules=small, rows=rows).rows == dict.fromkeys(FILES, 3)


def test_the_version_grows_when_the_data_change(made: Path) -> None:
    """Of the rows without their pictures, whose bytes are Pillow's; change ``standin.VERSION`` with this."""
    plain = [{name: value for name, value in row.items() if name != files.IMAGE} for row in rows_of(made)]
    digest = hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()
    assert (standin.VERSION, digest) == (1, "2954b021cf84ad95af4ffcd8bc3b8cc3225a63157dcc320e7b70faa9986e0cf3")
