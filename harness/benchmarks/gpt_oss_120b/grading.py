"""Whether programs of a data set can be judged here, and the judge that does."""

from __future__ import annotations

import functools
from pathlib import Path

from harness.benchmarks.base import Dataset
from harness.benchmarks.gpt_oss_120b.files import TESTS_FOLDER
from harness.benchmarks.gpt_oss_120b.graders import is_code
from harness.benchmarks.gpt_oss_120b.judge import Judge, Limits, Sandbox, TestsFolder, default_workers, self_test
from harness.benchmarks.gpt_oss_120b.judge.settings import current
from harness.benchmarks.gpt_oss_120b.judge.tests_file import MEND
from harness.errors import DatasetError
from harness.rules import TokenRules

_NAMED = 3


def judge_for(dataset: Dataset, rules: TokenRules) -> Judge | str:
    """The judge of a data set's programs, its self test passed; or why there is none.

    Raises MissingError where the self test fails: nothing is scored then.
    """
    if not any(map(is_code, set(dataset.subsets))):
        return "no row asks for a program"
    if rules.code_tests is None:
        return "the round does not say how programs are tested"
    folder = _tests_folder(dataset)
    if folder is None or not TestsFolder(folder).shards():
        return f"LiveCodeBench's tests are not there ({folder or TESTS_FOLDER})"
    limits = Limits(test_s=rules.code_tests.value.test_timeout_s)
    settings = current()
    _proved(limits, settings.sandbox)
    return Judge(
        TestsFolder(folder), limits, settings.sandbox, settings.workers or default_workers(limits), settings.observer
    )


def ready(dataset: Dataset, rules: TokenRules) -> tuple[str, ...]:
    """What can be said before a leg: one line where programs will be judged, or why they will be unscored.

    Raises MissingError where the judge's self test fails, DatasetError where the tests are of other problems.
    """
    judge = judge_for(dataset, rules)
    if isinstance(judge, str):
        return (f"LiveCodeBench will be unscored: {judge}",) if any(map(is_code, dataset.subsets)) else ()
    pairs = zip(dataset.subsets, dataset.ground_truth, strict=True)
    wanted = {truth for subset, truth in pairs if is_code(subset) and truth is not None}
    missing = sorted(wanted - judge.tests.ids())
    if missing:
        named = ", ".join(missing[:_NAMED]) + (", ..." if len(missing) > _NAMED else "")
        raise DatasetError(
            f"{len(missing)} of {len(wanted)} problems have no tests: {named}", where=judge.tests.path, mend=MEND
        )
    held = "in namespaces of its own" if judge.sandbox == "namespaces" else "WITHOUT a sandbox"
    return (f"the judge's self test passed; {judge.workers} programs run at once, each {held}",)


def _tests_folder(dataset: Dataset) -> Path | None:
    """Beside the tables: ``<data>/gpt-oss-120b/livecodebench``."""
    return dataset.files[0].path.parent.parent / TESTS_FOLDER if dataset.files else None


@functools.cache
def _proved(limits: Limits, sandbox: Sandbox) -> tuple[str, ...]:
    """The self test, once a process; a failure is not remembered."""
    return tuple(self_test(limits, sandbox))
