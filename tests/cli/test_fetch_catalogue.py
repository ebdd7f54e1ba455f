"""``fetch_dataset`` for the product catalogue: what the verb adds to what is tested of its parts."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import rules
from harness.benchmarks.qwen3_vl_235b_a22b import fetch, files
from harness.cli import fetch_dataset
from harness.errors import ConfigError, DatasetError
from harness.rules import RulePack
from tests.benchmarks.qwen3_vl_235b_a22b.made import Catalogue, row
from tests.benchmarks.qwen3_vl_235b_a22b.test_fetch import Hub

PACK = rules.load("v6.1")
ROWS = {"default": 4, "Interactive": 3}


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> RulePack:
    """The round, with data sets of a few rows."""
    own = PACK.image_benchmark(files.NAME)
    sources = {
        key: ruled.model_copy(update={"value": ruled.value.model_copy(update={"rows": ROWS[key]})})
        for key, ruled in own.dataset_sources.items()
    }
    changed = own.model_copy(update={"dataset_sources": sources})
    pack = PACK.model_copy(update={"benchmarks": {**PACK.benchmarks, files.NAME: changed}})

    def load(name: str) -> RulePack:
        return pack

    monkeypatch.setattr(rules, "load", load)
    return pack


def run(data_dir: Path, *more: str) -> int:
    return fetch_dataset.run([f"--benchmark={files.NAME}", f"--data_dir={data_dir}", *more])


def test_it_fetches_both_tables_then_verifies_them(
    small: RulePack, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fetch, "from_hub", lambda source: Hub(source.source.rows))
    assert run(tmp_path) == 0
    said = capsys.readouterr()
    assert "catalogue: 4 rows" in said.out
    assert "catalogue-8k: 3 rows" in said.out
    assert f"the data set is complete: {tmp_path / files.NAME}" in said.out
    assert "converting 4 rows of Shopify/product-catalogue" in said.err
    monkeypatch.setattr(fetch, "from_hub", None)
    assert run(tmp_path, "--verify") == 0
    assert "catalogue-8k: 3 rows" in capsys.readouterr().out


def test_verify_names_what_lacks(small: RulePack, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="the data set is missing"):
        run(tmp_path, "--verify")


def test_a_stand_in_is_left_alone(small: RulePack, tmp_path: Path) -> None:
    folder = tmp_path / files.NAME
    folder.mkdir()
    (folder / "STAND_IN.json").write_text("{}")
    with pytest.raises(ConfigError, match="holds a stand-in data set"):
        run(tmp_path)


def test_a_table_is_adopted(small: RulePack, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wanted = files.tables(small.image_benchmark(files.NAME))[1]
    catalogue = Catalogue(tmp_path / files.NAME)
    path = catalogue.write((row(i) for i in range(3)), path=wanted.plain(catalogue.folder), described=False)
    assert run(tmp_path, f"--adopt={path}", f"--revision={wanted.source.revision}") == 0
    assert f"3 rows, taken for {wanted.source.repo} at {wanted.source.revision}" in capsys.readouterr().out.replace(
        "\n", " "
    )


@pytest.mark.parametrize("option", ["--adopt=x", "--revision=main"])
def test_options_that_go_together(small: RulePack, tmp_path: Path, option: str) -> None:
    with pytest.raises(ConfigError, match="--adopt and --revision go together"):
        run(tmp_path, option)
    with pytest.raises(ConfigError, match="--adopt and --revision are for qwen3-vl-235b-a22b"):
        fetch_dataset.run([f"--data_dir={tmp_path}", option])
