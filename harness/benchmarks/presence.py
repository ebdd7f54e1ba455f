"""Which data sets lie in the data folder, by the names of their files alone: nothing is hashed or read whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final, TypeAlias

from harness.benchmarks import registry
from harness.benchmarks.download import Index, list_path
from harness.benchmarks.gpt_oss_120b import files as tables
from harness.benchmarks.qwen3_6_27b import files as trajectories
from harness.benchmarks.qwen3_6_27b.bfcl import table as questions
from harness.benchmarks.qwen3_vl_235b_a22b import files as catalogue
from harness.benchmarks.qwen3_vl_235b_a22b import sidecar
from harness.benchmarks.standins import STAND_IN_FILE
from harness.errors import DatasetError
from harness.machine.doctor.check import Check, question
from harness.rules import RulePack, TrajectoryRules

Lies: TypeAlias = tuple[list[str], str]
"""What is not there, by path; and how what is there came to be."""

DATA_SET: Final = question(
    "data",
    "data-set",
    expected="the benchmark's own data set, whole and verified",
    why="a leg is refused without it; what ran on a stand-in is never submittable",
    authority="the rule pack: datasets, dataset_sources",
    mend="make fetch_dataset ARGS=--benchmark=…, or for a stand-in make make_dataset ARGS=--benchmark=…",
)


def data_sets(data_dir: Path, benchmarks: Sequence[str], pack: RulePack) -> Iterator[Check]:
    """A check for each benchmark, all that the harness knows where none is named: then nothing of them is needed."""
    for name in benchmarks or registry.names():
        if name in pack.benchmarks and name in _LOOKS:
            yield _check(name, data_dir / name, pack, needed=bool(benchmarks))


def _check(name: str, folder: Path, pack: RulePack, *, needed: bool) -> Check:
    missing, how = _LOOKS[name](folder, pack)
    mend = DATA_SET.mend.replace("=…", f"={name}")
    source = f"names of files in {folder}"
    if missing:
        read = f"{name}: not there" if how == _NOTHING else f"{name}: {how}; not there: {', '.join(missing)}"
        return DATA_SET.missing(read, source, mend=mend) if needed else DATA_SET.ok(read, source, expected=_ANY)
    if (folder / STAND_IN_FILE).is_file():
        read = f"{name}: a stand-in"
        return DATA_SET.warn(read, source, mend=mend) if needed else DATA_SET.ok(read, source, expected=_ANY)
    return DATA_SET.ok(f"{name}: {how}", source)


_ANY: Final = "any: no configuration is named (--systems)"
_NOTHING: Final = "nothing is there"


def _lies(folder: Path, wanted: Sequence[Path], how: str) -> Lies:
    missing = [str(path.relative_to(folder)) for path in wanted if not path.is_file()]
    return missing, _NOTHING if len(missing) == len(wanted) else how


def _token_tables(folder: Path, pack: RulePack) -> Lies:
    wanted = [tables.table_files(folder, which).parquet for which in tables.TABLES.values()]
    download = pack.token_benchmark(tables.NAME).dataset_download
    listed = download is not None and list_path(folder, Index(download.index.value)).is_file()
    how = "its list of md5 lies beside it" if listed else "no list of md5 lies beside it, make fetch_dataset has one"
    return _lies(folder, wanted, how)


def _catalogue(folder: Path, pack: RulePack) -> Lies:
    sources = catalogue.tables(pack.image_benchmark(catalogue.NAME))
    found = [
        (source.table, next((path for path in source.candidates(folder) if path.is_file()), source.plain(folder)))
        for source in sources
    ]
    told = [f"{table} {_told_beside(path)}" for table, path in found if path.is_file()]
    return _lies(folder, [path for _, path in found], ", ".join(told))


def _told_beside(parquet: Path) -> str:
    """What the file beside a table says of where it comes from."""
    try:
        said = sidecar.read(parquet)
    except DatasetError as error:
        return f"({error.what})"
    return "of an unknown revision" if said is None else f"{said.how} at {said.revision[:12]}"


def _trajectories(folder: Path, pack: RulePack) -> Lies:
    rules = pack.benchmark(trajectories.NAME)
    if not isinstance(rules, TrajectoryRules):
        raise TypeError(f"{trajectories.NAME} is no benchmark of trajectories")
    file = trajectories.path_of(folder, rules.performance_data.value)
    missing, how = _lies(folder, [file], "its trajectories are there, and are verified whenever they are read")
    asked = "there" if (folder / questions.NAME).is_file() else "made once they are asked"
    return missing, how if missing else f"{how}; BFCL's questions are {asked}"


_LOOKS: Final[dict[str, Callable[[Path, RulePack], Lies]]] = {
    tables.NAME: _token_tables,
    catalogue.NAME: _catalogue,
    trajectories.NAME: _trajectories,
}
