"""What scoring and filing an accuracy log cost: 4,395 answers decoded and graded, a log of 350 MB truncated and hashed.

And 48,289 answers about products, beside a floor that reads the log's and the answers' JSON and no more.

The answers are made up, with reasoning, a final channel and an answer or a program each; their lengths are spread as a
model's are. Programs are decoded and found but not run. Contestants take turns, each in a process of its own; CPU time
is that of the whole process, start included. Exit status 1 where a goal is missed on a quiet machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import products
from machine import QUIET_CORES, busy_s, peak_mb

from harness import rules
from harness.benchmarks.base import Dataset
from harness.benchmarks.gpt_oss_120b import vocab
from harness.benchmarks.gpt_oss_120b.graders import is_code
from harness.benchmarks.gpt_oss_120b.judge import Ending, Judge, Limits, Submission, TestsFolder, Trial
from harness.benchmarks.gpt_oss_120b.score import Answer, score
from harness.engines.base import PromptTable
from harness.logs import AccuracyLog

PACK = rules.load(rules.LATEST)
RULES = PACK.token_benchmark("gpt-oss-120b")
PERFORMANCE_TOKENS = 1_300
"""Tokens an answer of a performance leg has on average."""
ACCURACY_TOKENS = 10_000
"""Tokens an answer of an accuracy leg has on average, effort high; 4,395 of them are a log of 350 MB."""
GOAL_SCORE_S = 20
GOAL_PRODUCTS_S = 2
GOAL_FILE_S = 5
GOAL_FILE_MB = 100


@dataclass(frozen=True)
class Contestant:
    """A command line, the goals of it, and what it is called; ``floor`` names the one it is likened to."""

    name: str
    command: tuple[str, ...]
    goal_s: float | None
    goal_mb: float | None = None
    floor: str | None = None


@dataclass(frozen=True)
class Run:
    """One turn. ``others`` is what the rest of the machine used meanwhile, in cores."""

    cpu_s: float
    wall_s: float
    peak_mb: float
    others: float
    result: object


def main(argv: Sequence[str] | None = None) -> int:
    """Prints each turn, the medians and the verdicts; 1 where a goal is missed on a quiet machine."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=5, help="turns of each")
    parser.add_argument("--score", type=Path, metavar="LOG", help=argparse.SUPPRESS)
    options = parser.parse_args(argv)
    if options.score is not None:
        print(json.dumps([score_log(options.score), peak_mb()]))
        return 0
    with tempfile.TemporaryDirectory(prefix="scoring-") as folder:
        contestants = [
            contestant
            for mean in (PERFORMANCE_TOKENS, ACCURACY_TOKENS)
            for contestant in made(Path(folder) / f"{mean}.json", mean)
        ]
        contestants += products_made(Path(folder) / "products.json")
        turns: list[dict[str, Run]] = []
        for _ in range(options.runs):
            turns.append({contestant.name: measure(contestant) for contestant in contestants})
            for name, run in turns[-1].items():
                print(f"  {name:32} {line(run)}", flush=True)
    return judge(contestants, turns)


def made(log: Path, mean: int) -> Iterator[Contestant]:
    """A log of answers of a mean length, and who works on it."""
    tokens = write_log(log, mean)
    size = log.stat().st_size / 1e6
    print(f"{len(tokens):,} answers of {np.mean(tokens):,.0f} tokens (at most {max(tokens):,}): {size:,.0f} MB")
    yield Contestant(f"score, {mean:,} tokens an answer", (__file__, "--score", str(log)), GOAL_SCORE_S)
    if mean == ACCURACY_TOKENS:
        filing = Path(__file__).with_name("filing.py")
        yield Contestant(f"truncate and hash {size:,.0f} MB", (str(filing), str(log)), GOAL_FILE_S, GOAL_FILE_MB)


def products_made(log: Path) -> Iterator[Contestant]:
    """A log of answers about products, who scores it and who only reads it."""
    rows = products.write_log(log)
    print(f"{rows:,} answers about products: {log.stat().st_size / 1e6:,.0f} MB")
    name, floor = f"score {rows:,} products", "read their JSON"
    yield Contestant(name, (products.__file__, str(log)), GOAL_PRODUCTS_S, floor=floor)
    yield Contestant(floor, (products.__file__, str(log), "floor"), None)


def dataset() -> Dataset:
    """The accuracy table's subsets and ground truths, without prompts of any length."""
    subsets = [name for name, subset in RULES.accuracy_subsets.value.items() for _ in range(subset.samples)]
    truths = {"aime25": "204", "gpqa_diamond": "B"}
    return Dataset(
        name="gpt-oss-120b/accuracy",
        table="accuracy",
        prompts=PromptTable.from_lists([[1]] * len(subsets)),
        subsets=tuple(subsets),
        ground_truth=tuple(truths.get(subset, f"problem {row}") for row, subset in enumerate(subsets)),
        files=(),
        stand_in=True,
    )


def write_log(log: Path, mean: int) -> list[int]:
    """Writes an accuracy log as LoadGen does; the lengths of its answers in tokens."""
    rng = np.random.default_rng(mean)
    table, texts = dataset(), Texts()
    cap = RULES.output_caps.accuracy.value
    drawn = rng.lognormal(0, 0.6, table.rows)
    wanted = np.clip(drawn * mean / drawn.mean(), 64, cap).astype(int)
    lengths = []
    with log.open("w") as file:
        file.write("[\n")
        for row, subset in enumerate(table.subsets):
            ids = texts.answer(subset, int(wanted[row]), rng)
            end = "" if row + 1 == table.rows else ","
            entry = f'"seq_id" : {row}, "qsl_idx" : {row}, "data" : "{ids.tobytes().hex().upper()}"'
            file.write(f'{{ {entry}, "token_count" : {len(ids)} }}{end}\n')
            lengths.append(len(ids))
        file.write("]\n")
    return lengths


class Texts:
    """Makes answers up out of sentences that were encoded once."""

    def __init__(self) -> None:
        sentences = (
            "Let us set x = {n} and see whether the sum of the digits still comes to {n} + 1. ",
            "So the reaction gives a secondary alcohol; the proton at {n} ppm couples with its neighbour. ",
            "Hmm, wait: the answer for case {n} would then be (C), which contradicts what was found above.\n\n",
            "We need f({n}) = \\sum_{{k=1}}^{{n}} \\frac{{k^2}}{{{n}}}, bounded by {n}\\sqrt{{2}} ≈ 1.41·{n}. ",
            "for i in range({n}):\n    total += a[i] * (b[i] - {n})\n    if total > limit: break\n",
        )
        self.thoughts = [
            np.array(vocab.encode_plain(text.format(n=n)), np.int32) for n in range(2, 400) for text in sentences
        ]
        self.start = self.ids("<|channel|>analysis<|message|>")
        self.final = self.ids("<|end|><|start|>assistant<|channel|>final<|message|>")
        code = "\n".join(f"def step_{i}(n):\n    return n * {i} + len(str(n))\n" for i in range(12))
        self.ends = {
            "aime25": self.ids("Adding up, the number that was asked for is \\boxed{204}."),
            "gpqa_diamond": self.ids("The second one is the only one that fits.\n\n**Answer: B**"),
            "code": self.ids(f"It runs in linear time.\n\n```python\n{code}\nprint(step_1(int(input())))\n```"),
        }

    def ids(self, text: str) -> npt.NDArray[np.int32]:
        """Token ids of a text with special tokens."""
        return np.array(vocab.encode(text), np.int32)

    def answer(self, subset: str, tokens: int, rng: np.random.Generator) -> npt.NDArray[np.int32]:
        """One answer of about so many tokens."""
        tail = np.concatenate([self.final, self.ends["code" if is_code(subset) else subset]])
        room, pieces = tokens - len(self.start) - len(tail), [self.start]
        while room > 0:
            piece = self.thoughts[int(rng.integers(len(self.thoughts)))][:room]
            pieces.append(piece)
            room -= len(piece)
        return np.concatenate([*pieces, tail])


class FindsOnly(Judge):
    """Takes every program that was found, and runs none."""

    def judge(self, submissions: Collection[Submission]) -> dict[Submission, Trial]:
        """All passed."""
        return {submission: Trial(Ending.PASSED, 0, "") for submission in submissions}


def score_log(log: Path) -> float:
    """Reads, decodes and grades a log; the score. Every answer is right, and that is checked."""
    table = dataset()
    repeats = {name: subset.repeats for name, subset in RULES.accuracy_subsets.value.items()}
    judge = FindsOnly(TestsFolder(Path()), Limits(test_s=1))
    found = score(answers(log), table, key=RULES.accuracy_target.value.key, repeats=repeats, judge=judge)
    assert found.value == 100, found
    return found.value


def answers(log: Path) -> Iterator[Answer]:
    """The log's answers."""
    for entry in AccuracyLog(log):
        yield entry.sample, entry.tokens


def measure(contestant: Contestant) -> Run:
    """One turn of one of them, in a process of its own."""
    busy, start = busy_s(), time.monotonic()
    with tempfile.TemporaryFile("w+") as said:
        process = subprocess.Popen([sys.executable, *contestant.command], stdout=said)
        _, status, used = os.wait4(process.pid, 0)
        wall, busy = time.monotonic() - start, busy_s() - busy
        process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode:
            raise RuntimeError(f"{contestant.name}: exit status {process.returncode}")
        said.seek(0)
        result, peak = json.load(said)
    cpu = used.ru_utime + used.ru_stime
    return Run(cpu, wall, peak, max(0.0, busy - cpu) / wall, result)


def line(run: Run) -> str:
    """One turn for the table."""
    return (
        f"CPU {run.cpu_s:6.2f} s  wall {run.wall_s:6.2f} s  peak {run.peak_mb:5.0f} MB  others {run.others:.2f} cores"
    )


def judge(contestants: Sequence[Contestant], turns: Sequence[Mapping[str, Run]]) -> int:
    """Says which goals are met; 1 where one is missed on a quiet machine. Memory is judged on any machine."""
    print(f"\nmedians of {len(turns)} turns, of all memory the largest")
    missed = False
    for contestant in contestants:
        runs = [turn[contestant.name] for turn in turns]
        assert len({run.result for run in runs}) == 1, "turns that came to different results"
        missed |= judge_one(contestant, runs)
        if contestant.floor is not None:
            ratio = median_cpu(runs) / median_cpu([turn[contestant.floor] for turn in turns])
            print(f"  {'':32} CPU {ratio:5.2f} times that of: {contestant.floor}")
    return int(missed)


def judge_one(contestant: Contestant, runs: Sequence[Run]) -> bool:
    """Prints what one of them took; whether it missed a goal, if the machine was quiet enough to say so."""
    wall = statistics.median(run.wall_s for run in runs)
    quiet = statistics.median(run.others for run in runs) <= QUIET_CORES
    slow = contestant.goal_s is not None and wall > contestant.goal_s
    verdict = ""
    if contestant.goal_s is not None:
        verdict = f" (at most {contestant.goal_s:.0f}): {'MISSED' if slow else 'met'}"
        verdict += "" if quiet else ", on a busy machine"
    print(f"  {contestant.name:32} wall {wall:5.2f} s{verdict}; CPU {median_cpu(runs):5.2f} s")
    if contestant.goal_mb is None:
        return slow and quiet
    peak = max(run.peak_mb for run in runs)
    large = peak > contestant.goal_mb
    print(f"  {'':32} peak {peak:5.0f} MB (at most {contestant.goal_mb:.0f}): {'MISSED' if large else 'met'}")
    return large or (slow and quiet)


def median_cpu(runs: Sequence[Run]) -> float:
    """CPU seconds of the run in the middle."""
    return statistics.median(run.cpu_s for run in runs)


if __name__ == "__main__":
    sys.exit(main())
