"""Many solutions at once against the tests of their problems."""

from __future__ import annotations

import concurrent.futures
import os
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from harness.benchmarks.gpt_oss_120b.judge.limits import Limits
from harness.benchmarks.gpt_oss_120b.judge.problems import Problem
from harness.benchmarks.gpt_oss_120b.judge.sandbox import Cell, Sandbox
from harness.benchmarks.gpt_oss_120b.judge.tests_file import TestsFolder
from harness.benchmarks.gpt_oss_120b.judge.trial import Ending, Trial, try_solution
from harness.errors import DatasetError
from harness.events import Observer, Steps, ignore


class Submission(NamedTuple):
    """A solution of a problem."""

    problem: str
    code: str


@dataclass(frozen=True, slots=True)
class Judge:
    """Tries solutions on the tests in a folder, ``workers`` of them at a time; ``observer`` is told how many were."""

    tests: TestsFolder
    limits: Limits
    sandbox: Sandbox = "namespaces"
    workers: int = 1
    observer: Observer = field(default=ignore, compare=False)

    def __post_init__(self) -> None:
        if self.workers < 1:
            raise ValueError(f"{self.workers} workers")

    def judge(self, submissions: Collection[Submission]) -> dict[Submission, Trial]:
        """A trial of each. Those of a problem that is not there, or cannot be read, are NOT_JUDGED and say why.

        The same solution of the same problem is tried once.
        """
        codes: dict[str, set[str]] = {}
        for problem, code in submissions:
            codes.setdefault(problem, set()).add(code)
        trials: dict[Submission, Trial] = {}
        why = f"no problem of this id in {self.tests.path}"
        try:
            self._try_all(codes, trials)
        except DatasetError as error:
            why = f"the tests cannot be read: {error.what} ({error.where})"
        for submission in submissions:
            trials.setdefault(Submission(*submission), Trial(Ending.NOT_JUDGED, 0, why))
        return trials

    def _try_all(self, codes: Mapping[str, Collection[str]], trials: dict[Submission, Trial]) -> None:
        stop = threading.Event()
        steps = Steps(self.observer, "judging programs", sum(map(len, codes.values())), "programs")
        room = threading.BoundedSemaphore(2 * self.workers)  # Problems in memory: some have tests of 100 MB.
        with concurrent.futures.ThreadPoolExecutor(self.workers, "judge") as pool:

            def work(problem: Problem, code: str) -> None:
                try:
                    trials[Submission(problem.id, code)] = self.try_one(problem, code, stop)
                finally:
                    room.release()

            running: list[concurrent.futures.Future[None]] = []
            try:
                for problem in self.tests.problems(codes):
                    for code in codes[problem.id]:
                        room.acquire()
                        steps.at(len(trials))
                        running.append(pool.submit(work, problem, code))
                for future in running:
                    future.result()
                    steps.at(len(trials))
                steps.end(len(trials))
            except BaseException:
                stop.set()  # ^C: nobody waits a minute for a solution that loops.
                raise

    def try_one(self, problem: Problem, code: str, stop: threading.Event) -> Trial:
        """A trial; a second one where the judge could not do the first."""
        cell = Cell(self.sandbox, hidden=(self.tests.path,))
        trial = try_solution(code, problem, self.limits, cell, stop)
        if trial.ending is Ending.NOT_JUDGED and not stop.is_set():
            trial = try_solution(code, problem, self.limits, cell, stop)
        return trial


def default_workers(limits: Limits) -> int:
    """As many as there are cores for this process, and as there is memory for."""
    cores = len(os.sched_getaffinity(0))
    return max(1, min(cores, _available_bytes() // limits.memory_bytes))


def _available_bytes() -> int:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        key, _, value = line.partition(":")
        if key == "MemAvailable":
            return int(value.split()[0]) << 10
    return 0
