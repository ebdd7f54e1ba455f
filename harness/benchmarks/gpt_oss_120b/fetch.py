"""The data set of gpt-oss-120b as MLCommons distributes it: fetched, or verified where a person put it.

LiveCodeBench's tests are no part of it: where they come from is told, and what is there is looked at.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from harness.benchmarks.base import Benchmark, Dataset
from harness.benchmarks.download import Fetched, Index, State, Told, Web, fetch, list_path, local_states
from harness.benchmarks.gpt_oss_120b.files import TABLES, TESTS_FOLDER
from harness.benchmarks.gpt_oss_120b.graders import is_code
from harness.benchmarks.gpt_oss_120b.judge import TestsFolder
from harness.benchmarks.gpt_oss_120b.judge.tests_file import MEND as TESTS_MEND
from harness.benchmarks.standins import refuse_stand_in
from harness.errors import ConfigError, DatasetError
from harness.rules import DatasetDownload, TokenRules

TESTS_SOURCE = "https://huggingface.co/datasets/livecodebench/code_generation_lite"
DOWNLOADER = "https://github.com/mlcommons/r2-downloader"


@dataclass(frozen=True, slots=True)
class Source:
    """Where a round's data set comes from and where it goes: ``folder`` is ``<data>/gpt-oss-120b``."""

    folder: Path
    download: DatasetDownload

    @classmethod
    def of(cls, folder: Path, rules: TokenRules) -> Source:
        """By a round's rules. ConfigError where the round does not say, or the folder holds a stand-in."""
        if rules.dataset_download is None:
            raise ConfigError(
                "the round does not say where its data set is to be had", mend="take the data set of a later round"
            )
        refuse_stand_in(folder)
        return cls(folder, rules.dataset_download)

    def by_hand(self) -> str:
        """What a person does where the harness cannot fetch: how, which files, their md5, where to put them."""
        index, known = Index(self.download.index.value), self.download.md5.value
        files = "".join(
            f"\n    {path}" + (f"  md5 {known[path]}" if path in known else "") for path in self.download.required.value
        )
        return (
            f"on a machine that reaches it, run MLCommons' downloader ({DOWNLOADER}):\n"
            f"    mlc-r2-downloader.sh -d gpt-oss-120b {index.url}\n"
            f"  then put these, what else it fetched, and its list {index.name}.md5 (from {index.list_url})\n"
            f"  into {self.folder}:{files}\n"
            "  and run: python -m harness fetch_dataset --verify"
        )

    def fetch(self, told: Told) -> Fetched:
        """Fetches what is not there; see :func:`harness.benchmarks.download.fetch`."""
        return fetch(self.folder, self.download, web=Web(self.by_hand()), told=told)

    def verify(self) -> Fetched:
        """Looks at what is there and asks no network. DatasetError for a file that is another, or lacks and is needed.

        Arrays are not needed: the tables say the same.
        """
        states = local_states(self.folder, self.download)
        if states is None:
            raise DatasetError(
                "the list of the data set's md5 is not there",
                where=list_path(self.folder, Index(self.download.index.value)),
                mend=self.by_hand(),
            )
        needed = set(self.download.required.value)
        bad = [
            state
            for state in states
            if state.state is State.WRONG or (state.state is State.MISSING and state.file.path in needed)
        ]
        if bad:
            raise DatasetError(
                f"{len(bad)} of {len(states)} files are not as the list says: "
                + ", ".join(f"{state.file.path} ({state.state.value})" for state in bad),
                where=self.folder,
                expected="".join(f"\n    {state.file.path}  md5 {state.file.md5}" for state in bad),
                mend="run without --verify to fetch them, or " + self.by_hand(),
            )
        return Fetched(tuple(states), ())


def described(benchmark: Benchmark, data_dir: Path, rules: TokenRules) -> Iterator[str]:
    """Reads every table as runs do and says what it holds, then how it stands with LiveCodeBench's tests.

    Raises DatasetError where a table is not what the round wants, or the tests are of other problems.
    """
    for name in TABLES:
        table = benchmark.dataset(data_dir, name)
        yield f"{name}: {table.rows:,} rows, prompts of up to {table.max_prompt_tokens:,} tokens"
        if name == "accuracy":
            yield code_tests(table, data_dir / benchmark.name / TESTS_FOLDER, rules)


def code_tests(table: Dataset, folder: Path, rules: TokenRules) -> str:
    """How it stands with the tests of the programs that a table asks for. DatasetError where some problem has none."""
    wanted = {
        truth for subset, truth in zip(table.subsets, table.ground_truth, strict=True) if is_code(subset) and truth
    }
    tests = TestsFolder(folder)
    if not tests.shards():
        release = rules.code_tests.value.release if rules.code_tests else "the round's release"
        return (
            f"LiveCodeBench's tests are not there, so that programs would be unscored: put the shards (test*.jsonl) of "
            f"{release} from {TESTS_SOURCE} into {folder}"
        )
    missing = wanted - tests.ids()
    if missing:
        raise DatasetError(
            f"{len(missing)} of {len(wanted)} problems have no tests: {', '.join(sorted(missing)[:3])}",
            where=folder,
            mend=TESTS_MEND,
        )
    return f"LiveCodeBench: tests for all {len(wanted):,} problems, in {len(tests.shards())} shards"
