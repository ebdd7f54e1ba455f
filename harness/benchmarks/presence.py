"""Which data sets lie in the data folder, by the names of their files alone: nothing is hashed or read whole."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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


@dataclass(frozen=True, slots=True)
class Lies:
    """How a data set lies in its folder: what is not there, by path, and in words what is known of what is.

    ``doubtful`` is whether nothing shows that it is the benchmark's own; ``refused`` whether no leg would take it.
    """

    missing: list[str]
    how: str
    doubtful: bool = False
    refused: bool = False


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
    lies = _LOOKS[name](folder, pack)
    stand_in = (folder / STAND_IN_FILE).is_file() and not lies.missing
    read, source = f"{name}: {'a stand-in' if stand_in else lies.how}", f"names of files in {folder}"
    mend = DATA_SET.mend.replace("=…", f"={name}")
    if not needed:
        return DATA_SET.ok(read, source, expected="any: no configuration is named (--systems)")
    if stand_in:
        return DATA_SET.warn(read, source, mend=mend)
    if lies.missing or lies.refused:
        return DATA_SET.missing(read, source, mend=mend)
    return DATA_SET.warn(read, source, mend=mend) if lies.doubtful else DATA_SET.ok(read, source)


def _lacking(folder: Path, wanted: Sequence[Path]) -> Lies | None:
    """What is not there of the files that are wanted; None where they all are."""
    missing = [str(path.relative_to(folder)) for path in wanted if not path.is_file()]
    if not missing:
        return None
    return Lies(missing, "not there" if len(missing) == len(wanted) else f"not there: {', '.join(missing)}")


def _token_tables(folder: Path, pack: RulePack) -> Lies:
    wanted = [tables.table_files(folder, which).parquet for which in tables.TABLES.values()]
    download = pack.token_benchmark(tables.NAME).dataset_download
    if download is not None and list_path(folder, Index(download.index.value)).is_file():
        there = Lies([], "there, with its list of md5")
    else:
        there = Lies([], "there, without its list of md5: nothing shows that it is whole", doubtful=True)
    return _lacking(folder, wanted) or there


def _catalogue(folder: Path, pack: RulePack) -> Lies:
    told: list[str] = []
    refused = False
    places: list[Path] = []
    for source in catalogue.tables(pack.image_benchmark(catalogue.NAME)):
        path = next((path for path in source.candidates(folder) if path.is_file()), source.plain(folder))
        places.append(path)
        words, is_its_own = _told_beside(path, source.source.revision)
        told.append(f"{source.table} {words}")
        refused = refused or not is_its_own
    return _lacking(folder, places) or Lies([], ", ".join(told), refused=refused)


def _told_beside(parquet: Path, revision: str) -> tuple[str, bool]:
    """What the file beside a table says of where it comes from, and whether that is the round's revision."""
    try:
        said = sidecar.read(parquet)
    except DatasetError as error:
        return f"({error.what})", False
    if said is None:
        return "of an unknown revision", False
    return f"{said.how} at {said.revision[:12]}", said.revision == revision


def _trajectories(folder: Path, pack: RulePack) -> Lies:
    rules = pack.benchmark(trajectories.NAME)
    if not isinstance(rules, TrajectoryRules):
        raise TypeError(f"{trajectories.NAME} is no benchmark of trajectories")
    asked = "there" if (folder / questions.NAME).is_file() else "made once they are asked"
    there = Lies([], f"its trajectories are there, hashed whenever they are read; BFCL's questions are {asked}")
    return _lacking(folder, [trajectories.path_of(folder, rules.performance_data.value)]) or there


_LOOKS: Final[dict[str, Callable[[Path, RulePack], Lies]]] = {
    tables.NAME: _token_tables,
    catalogue.NAME: _catalogue,
    trajectories.NAME: _trajectories,
}
