from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from harness.benchmarks import registry
from harness.benchmarks.download import Index, list_path
from harness.benchmarks.gpt_oss_120b.files import TABLES, table_files
from harness.benchmarks.presence import data_sets
from harness.benchmarks.qwen3_6_27b.bfcl import table as questions
from harness.benchmarks.qwen3_6_27b.sampling import rules_of
from harness.benchmarks.qwen3_vl_235b_a22b import files as catalogue
from harness.benchmarks.qwen3_vl_235b_a22b.sidecar import Sidecar, beside
from harness.benchmarks.standins import STAND_IN_FILE
from harness.machine.doctor.check import Check, State
from harness.rules import load

PACK = load("v6.1")


def look(data_dir: Path, benchmark: str) -> Check:
    (found,) = data_sets(data_dir, [benchmark], PACK)
    return found


def touch(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"no parquet")


def put_gpt_oss(data_dir: Path) -> Path:
    folder = data_dir / "gpt-oss-120b"
    for which in TABLES.values():
        touch(table_files(folder, which).parquet)
    return folder


@pytest.mark.parametrize("benchmark", registry.names())
def test_a_data_set_that_is_not_there_is_missing_where_it_is_needed(tmp_path: Path, benchmark: str) -> None:
    found = look(tmp_path, benchmark)
    assert (found.state, found.missing, found.read) == (State.FAIL, True, f"{benchmark}: not there")
    assert found.mend is not None and f"--benchmark={benchmark}" in found.mend


def test_where_nothing_is_named_each_is_told_and_none_is_needed(tmp_path: Path) -> None:
    found = list(data_sets(tmp_path, [], PACK))
    assert [one.read for one in found] == [f"{name}: not there" for name in registry.names()]
    assert {one.state for one in found} == {State.OK}


def test_files_that_are_there_are_not_read(tmp_path: Path) -> None:
    folder = put_gpt_oss(tmp_path)
    doubtful = look(tmp_path, "gpt-oss-120b")
    assert (doubtful.state, doubtful.missing) == (State.WARN, False)
    assert "nothing shows that it is whole" in doubtful.read
    download = PACK.token_benchmark("gpt-oss-120b").dataset_download
    assert download is not None
    touch(list_path(folder, Index(download.index.value)))
    found = look(tmp_path, "gpt-oss-120b")
    assert (found.state, found.read) == (State.OK, "gpt-oss-120b: there, with its list of md5")


def test_one_table_that_lacks(tmp_path: Path) -> None:
    folder = put_gpt_oss(tmp_path)
    (folder / "acc" / "acc_eval_ref.parquet").unlink()
    found = look(tmp_path, "gpt-oss-120b")
    assert found.missing
    assert found.read.endswith("not there: acc/acc_eval_ref.parquet")


def test_a_stand_in_is_told(tmp_path: Path) -> None:
    touch(put_gpt_oss(tmp_path) / STAND_IN_FILE)
    found = look(tmp_path, "gpt-oss-120b")
    assert (found.state, found.missing, found.read) == (State.WARN, False, "gpt-oss-120b: a stand-in")
    assert {one.state for one in data_sets(tmp_path, [], PACK)} == {State.OK}


def test_the_catalogue_and_what_lies_beside_it(tmp_path: Path) -> None:
    folder = tmp_path / catalogue.NAME
    sources = catalogue.tables(PACK.image_benchmark(catalogue.NAME))
    for source in sources:
        touch(source.fetched(folder))
    assert "of an unknown revision" in look(tmp_path, catalogue.NAME).read
    for revision, state in ((None, State.OK), ("ab" * 20, State.FAIL)):
        for source in sources:
            at = revision or source.source.revision
            said = Sidecar(source.source.repo, at, source.splits, 3, "cd" * 32, "12", "fetched")
            beside(source.fetched(folder)).write_text(json.dumps(asdict(said)))
        found = look(tmp_path, catalogue.NAME)
        assert (found.state, found.missing) == (state, state is State.FAIL)  # a leg refuses another revision
        assert f"fetched at {at[:12]}" in found.read
    beside(sources[0].fetched(folder)).write_text("{")
    found = look(tmp_path, catalogue.NAME)
    assert found.missing and "(not a description of a table" in found.read


def test_trajectories_and_bfcls_questions(tmp_path: Path) -> None:
    folder = tmp_path / "qwen3.6-27b"
    touch(folder / rules_of(PACK).performance_data.value.file)
    assert "made once they are asked" in look(tmp_path, "qwen3.6-27b").read
    touch(folder / questions.NAME)
    found = look(tmp_path, "qwen3.6-27b")
    assert (found.state, found.read.endswith("BFCL's questions are there")) == (State.OK, True)


def test_a_round_without_a_benchmark_is_not_asked_about_it(tmp_path: Path) -> None:
    there = [one.read.partition(":")[0] for one in data_sets(tmp_path, [], load("v6.0"))]
    assert there == [name for name in registry.names() if name in load("v6.0").benchmarks]
