"""The gate against the official checker on a tree of a whole round's size: CPU time, and the gate's peak memory.

The tree is a small passing one of real LoadGen logs, two benchmarks with their audits, laid out again and again under
other names; the logs of its runs repeat their own records up to a round's size. The two take turns, each in a process
of its own. Run as ``MLPERF_INFERENCE_DIR=<clone of mlcommons/inference> python benchmarks/gate.py``; exit status 1
where a goal is missed on a quiet machine. Without a clone only the gate is measured, and it says so.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from machine import QUIET_CORES, busy_s

PROJECT = Path(__file__).parent.parent
sys.path.insert(0, str(PROJECT))  # the small tree is the tests' own

from harness.env import MLPERF_INFERENCE_DIR  # noqa: E402
from tests.gate.made_benchmarks import ENTRIES, RUNS  # noqa: E402
from tests.gate.made_tree import GPT_OSS, SUBMITTER, SYSTEM, make_tree  # noqa: E402
from tests.logs.loadgen_runs import LEGS, Leg  # noqa: E402

CHECKER = Path("tools/submission/submission_checker/main.py")
DETAIL = "mlperf_log_detail.txt"
ROUND = "v6.1"
SYSTEMS_A_SUBMITTER = 25
MAX_CPU_RATIO = 1.5
MAX_MEMORY_MIB = 300


@dataclass(frozen=True)
class Run:
    """One pass over the tree. ``others`` is what the rest of the machine used meanwhile, in cores."""

    cpu_s: float
    wall_s: float
    memory_mib: float
    others: float


def main(argv: Sequence[str] | None = None) -> int:
    """Prints each run, the medians and the verdicts; 1 where a goal is missed on a quiet machine."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--runs", type=int, default=5, help="turns of each")
    parser.add_argument("--rows", type=int, default=500, help="result rows of the tree, about")
    parser.add_argument("--megabytes", type=int, default=420, help="size of the tree's logs, about")
    options = parser.parse_args(argv)
    clone = MLPERF_INFERENCE_DIR.path()
    with tempfile.TemporaryDirectory(prefix="gate-") as folder:
        tree = multiplied(Path(folder), options.rows, options.megabytes)
        print(f"{count_rows(tree)} rows, {size_mb(tree):.0f} MB in {tree}")
        contestants = {"gate": gate(tree)} | ({} if clone is None else {"official": official(clone, tree)})
        turns: list[dict[str, Run]] = []
        for _ in range(options.runs):
            turns.append({name: measure(command, Path(folder)) for name, command in contestants.items()})
            for name, run in turns[-1].items():
                print(f"  {name:9} {line(run)}", flush=True)
    return judge(turns)


def multiplied(folder: Path, rows: int, megabytes: int) -> Path:
    """A tree of about so many rows and megabytes. Equal files are one file with many names."""
    small = make_tree(folder / "small", run_all(folder / "gpt-oss", LEGS), "closed", GPT_OSS)
    vlm = make_tree(folder / "vlm", run_all(folder / "qwen", RUNS), "closed", ENTRIES["vlm"])
    shutil.copytree(vlm / "results", small / "results", dirs_exist_ok=True)
    logs = [path for path in small.rglob(DETAIL) if "TEST" not in str(path)]
    systems = max(1, rows // count_rows(folder / "small"))
    audits = sum(path.stat().st_size for path in small.rglob(DETAIL) if path not in logs)
    lengthen(logs, megabytes * 1_000_000 // systems - audits)
    tree = folder / "tree"
    described = json.loads((small / "systems" / f"{SYSTEM}.json").read_text())
    for number in range(systems):
        submitter, system = f"{SUBMITTER}{number // SYSTEMS_A_SUBMITTER}", f"{SYSTEM}{number}"
        home = tree / "closed" / submitter
        for name in ("src", "documentation"):
            if not (home / name).exists():
                shutil.copytree(small / name, home / name)
        (home / "systems").mkdir(exist_ok=True)
        said = described | {"submitter": submitter, "system_name": system}
        (home / "systems" / f"{system}.json").write_text(json.dumps(said))
        shutil.copytree(small / "results" / SYSTEM, home / "results" / system, copy_function=os.link)
    return tree


def run_all(folder: Path, legs: Mapping[tuple[str, str], Leg]) -> dict[tuple[str, str], Path]:
    """Runs LoadGen once for each leg; where the logs are."""
    return {key: leg.run(folder / "_".join(key)) for key, leg in legs.items()}


def lengthen(logs: Sequence[Path], total: int) -> None:
    """Repeats the records of some logs, as they are and in turn, up to ``total`` bytes in all."""
    grown = total / sum(log.stat().st_size for log in logs)
    for log in logs:
        text = log.read_text()
        left = int((grown - 1) * len(text))
        with log.open("a") as out:
            for record in itertools.cycle(text.splitlines(keepends=True)):
                if left <= 0:
                    break
                left -= out.write(record)


def count_rows(tree: Path) -> int:
    """Result rows of the tree."""
    return len(list(tree.glob("closed/*/results/*/*/*/measurements.json")))


def size_mb(tree: Path) -> float:
    """Bytes that a reader of all its detail logs reads, in millions."""
    return sum(path.stat().st_size for path in tree.rglob(DETAIL)) / 1e6


def gate(tree: Path) -> list[str]:
    """Our command; without the clone, which would have it run the official checker too."""
    return [sys.executable, "-m", "harness", "check_submission", "--input", str(tree), "--round", ROUND]


def official(clone: Path, tree: Path) -> list[str]:
    """The official checker's command."""
    return [sys.executable, "-B", str(clone / CHECKER), "--input", str(tree), "--version", ROUND]


def measure(command: list[str], scratch: Path) -> Run:
    """Runs a command to its end, whatever it says of the tree: both read it whole first."""
    clean = {name: value for name, value in os.environ.items() if name != MLPERF_INFERENCE_DIR.name}
    with (scratch / "said.txt").open("wb") as said:
        busy, start = busy_s(), time.monotonic()
        environment = clean | {"PYTHONPATH": str(PROJECT)}
        process = subprocess.Popen(command, stdout=said, stderr=said, cwd=scratch, env=environment)
        _, status, used = os.wait4(process.pid, 0)
        wall, busy = time.monotonic() - start, busy_s() - busy
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 1):
        raise RuntimeError(f"exit status {process.returncode}: {(scratch / 'said.txt').read_text()[-2000:]}")
    cpu = used.ru_utime + used.ru_stime
    return Run(cpu, wall, used.ru_maxrss / 1024, max(0.0, busy - cpu) / wall)


def line(run: Run) -> str:
    """One run for the table."""
    return (
        f"CPU {run.cpu_s:6.2f} s  wall {run.wall_s:6.2f} s  peak {run.memory_mib:5.0f} MiB  "
        f"others {run.others:.2f} cores"
    )


def judge(turns: list[dict[str, Run]]) -> int:
    """Says which goals are met; 1 where one is missed on a quiet machine."""
    print(f"\nmedians of {len(turns)} turns")
    for name in turns[0]:
        print(f"  {name:9} CPU {statistics.median(turn[name].cpu_s for turn in turns):6.2f} s")
    memory = max(turn["gate"].memory_mib for turn in turns)
    missed = memory > MAX_MEMORY_MIB
    print(f"\n  gate's peak memory {memory:.0f} MiB (at most {MAX_MEMORY_MIB}): {'MISSED' if missed else 'met'}")
    if "official" not in turns[0]:
        print(f"  the official checker did not run: {MLPERF_INFERENCE_DIR.name} names no clone")
        return int(missed)
    ratio = statistics.median(turn["gate"].cpu_s / turn["official"].cpu_s for turn in turns)
    quiet = statistics.median(run.others for turn in turns for run in turn.values()) <= QUIET_CORES
    verdict = "met" if ratio <= MAX_CPU_RATIO else "MISSED"
    if not quiet:
        verdict = f"{verdict}, on a busy machine"
    print(f"  CPU time, gate / official {ratio:.2f} (at most {MAX_CPU_RATIO}): {verdict}")
    return int(missed or (ratio > MAX_CPU_RATIO and quiet))


if __name__ == "__main__":
    sys.exit(main())
