from __future__ import annotations

import dataclasses
import shutil
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from harness import rules
from harness.benchmarks.gpt_oss_120b.files import NAME, TESTS_FOLDER
from harness.benchmarks.standins import STAND_IN_FILE
from harness.cli import fetch_dataset
from harness.errors import ConfigError, DatasetError, MissingError, UnknownName
from harness.rules import DatasetDownload, RulePack
from tests.benchmarks.download.storage import Storage, md5, md5_list, serving

PACK = rules.load("v6.1")


def with_download(monkeypatch: pytest.MonkeyPatch, download: DatasetDownload | None) -> None:
    """The round's rules, but for where the data set comes from."""
    own = PACK.token_benchmark(NAME).model_copy(update={"dataset_download": download})
    pack = PACK.model_copy(update={"benchmarks": {**PACK.benchmarks, NAME: own}})

    def load(name: str) -> RulePack:
        return pack

    monkeypatch.setattr(rules, "load", load)


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*args: object, **options: object) -> NoReturn:
        raise AssertionError("asked a network")

    monkeypatch.setattr(socket, "create_connection", connect)


@pytest.fixture
def storage(standin_data: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Storage]:
    """The stand-in's tables as a storage would give them."""
    folder = standin_data / NAME
    tables = [path for path in folder.rglob("*") if path.parent.name in ("perf", "acc")]
    files = {path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(tables)}
    with serving(Storage(files)) as served:
        required = PACK.token_benchmark(NAME).dataset_download
        assert required is not None
        with_download(monkeypatch, served.download(required=required.required.value))
        yield served


def run(data_dir: Path, *more: str) -> int:
    return fetch_dataset.run([f"--data_dir={data_dir}", *more])


@pytest.mark.harmony
def test_it_fetches_then_verifies_and_says_what_is_there(
    storage: Storage, tmp_path: Path, standin_data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path) == 0
    said = capsys.readouterr()
    assert f"acc/acc_eval_ref.parquet: {len(storage.files['acc/acc_eval_ref.parquet']) / 1e6:,.1f} MB" in said.out
    assert said.out.count("as listed, fetched") == len(storage.files)
    for line in ("performance: 6,396 rows", "accuracy: 4,395 rows", "TEST07: 990 rows", "the data set is complete: "):
        assert line in said.out
    assert "LiveCodeBench's tests are not there" in said.out
    assert "release_v6 from https://huggingface.co/datasets/livecodebench/code_generation_lite" in said.out
    assert "acc/acc_eval_ref.parquet" in said.err

    shutil.copytree(standin_data / NAME / TESTS_FOLDER, tmp_path / NAME / TESTS_FOLDER)
    storage.asked.clear()
    assert run(tmp_path, "--verify") == 0
    said = capsys.readouterr()
    assert said.out.count("as listed, was there") == len(storage.files)
    assert "LiveCodeBench: tests for all 1,055 problems, in 1 shards" in said.out
    assert storage.asked == []

    (tmp_path / NAME / "acc" / "input_lens_acc_eval.npy").unlink()
    (tmp_path / NAME / "acc" / "input_ids_padded_acc_eval.npy").unlink()
    assert run(tmp_path, "--verify") == 0
    assert capsys.readouterr().out.count("not there, not needed") == 2

    shard = next((tmp_path / NAME / TESTS_FOLDER).iterdir())
    shard.write_text("".join(shard.read_text().splitlines(keepends=True)[1:]))
    with pytest.raises(DatasetError, match="1 of 1055 problems have no tests"):
        run(tmp_path, "--verify")


@pytest.mark.harmony
def test_a_table_that_is_not_the_rounds_is_told(storage: Storage, tmp_path: Path) -> None:
    storage.files["acc/acc_eval_ref.parquet"] = storage.files["acc/acc_eval_compliance_gpqa.parquet"]
    with pytest.raises(DatasetError, match="the table has 990 rows"):
        run(tmp_path)


def some_files(folder: Path) -> dict[str, bytes]:
    download = PACK.token_benchmark(NAME).dataset_download
    assert download is not None
    files = {path: path.encode() for path in download.required.value}
    for path, content in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return files


def test_verify_tells_every_file_that_is_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_network: None
) -> None:
    files = some_files(tmp_path / NAME)
    with_download(monkeypatch, Storage(files, port=1).download())
    (tmp_path / NAME / "gpt-oss-data.md5").write_text(md5_list(files))
    wrong, gone = tmp_path / NAME / "perf/perf_eval_ref.parquet", tmp_path / NAME / "acc/acc_eval_ref.parquet"
    wrong.write_bytes(b"other")
    gone.unlink()
    with pytest.raises(DatasetError) as caught:
        run(tmp_path, "--verify")
    told = str(caught.value)
    assert "2 of 3 files are not as the list says" in told
    assert "perf/perf_eval_ref.parquet (another md5)" in told
    assert "acc/acc_eval_ref.parquet (missing)" in told
    assert md5(files["acc/acc_eval_ref.parquet"]) in told
    assert wrong.read_bytes() == b"other", "verify changes nothing"


def test_verify_without_the_list(tmp_path: Path, no_network: None) -> None:
    some_files(tmp_path / NAME)
    with pytest.raises(DatasetError, match="the list of the data set's md5 is not there") as caught:
        run(tmp_path, "--verify")
    assert str(caught.value.where) == str(tmp_path / NAME / "gpt-oss-data.md5")


def test_without_a_network_it_says_what_to_do_by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def connect(*args: object, **options: object) -> NoReturn:
        raise socket.gaierror(-2, "Name or service not known")

    monkeypatch.setattr(socket, "create_connection", connect)
    monkeypatch.setattr("time.sleep", lambda seconds: None)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(MissingError) as caught:
        run(tmp_path)
    told = str(caught.value)
    assert caught.value.exit_code == 3
    for said in (
        "https://inference.mlcommons-storage.org/metadata/gpt-oss-data.uri",
        "https://inference.mlcommons-storage.org/metadata/gpt-oss-data.md5",
        "perf/perf_eval_ref.parquet  md5 e4cd6cef6dd975f3e50c85b3279b358b",
        "acc/acc_eval_compliance_gpqa.parquet",
        str(tmp_path / NAME),
        "fetch_dataset --verify",
    ):
        assert said in told


def test_a_stand_in_is_left_as_it_is(tmp_path: Path, no_network: None) -> None:
    (tmp_path / NAME).mkdir()
    (tmp_path / NAME / STAND_IN_FILE).write_text("{}")
    with pytest.raises(ConfigError, match="holds a stand-in data set"):
        run(tmp_path)


def test_a_round_that_does_not_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_network: None) -> None:
    with_download(monkeypatch, None)
    with pytest.raises(ConfigError, match="does not say where its data set"):
        run(tmp_path)


@pytest.mark.parametrize(("option", "near"), [("--benchmark=gpt-oss-20b", NAME), ("--round=v6.11", "v6.1")])
def test_a_name_that_is_not_known(tmp_path: Path, option: str, near: str) -> None:
    with pytest.raises(UnknownName) as caught:
        run(tmp_path, option)
    assert caught.value.mend == f"did you mean {near!r}?"


def test_the_rounds_own_download_is_there() -> None:
    download = PACK.token_benchmark(NAME).dataset_download
    assert download is not None
    assert set(download.md5.value) <= set(download.required.value)
    assert dataclasses.is_dataclass(fetch_dataset.Source.of(Path("nowhere"), PACK.token_benchmark(NAME)))
