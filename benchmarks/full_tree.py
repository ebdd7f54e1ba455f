"""Qwen3-VL at the round's full size on any machine: legs through LoadGen, the tree, the gate, the official checker.

Data and engine are stand-ins: a made-up catalogue of as many rows as the round's, and a scripted engine whose service
times make the performance legs last the round's ten minutes. What is proved is all that lies between: loading and
asking 48,289 chats with pictures, LoadGen's counts, scoring, packaging, and that the official checker takes the tree.
Memory is that of the whole harness, engine and LoadGen's processes included, looked at twice a second.

Run as ``MLPERF_INFERENCE_DIR=<clone of mlcommons/inference> python benchmarks/full_tree.py --out build/full``; it takes
about 50 minutes. Exit status 1: a leg is INVALID, the official checker refuses a row, the gate rejects one for more
than its being a demonstration, or memory went over its bound. ``--rows`` and ``--test_run`` make it small; then gate
and checker refuse what is too short, and only legs, packaging and memory are judged.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import yaml

PROJECT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(PROJECT))

from harness.ledger import ResultsStore, RunRecord  # noqa: E402

BENCHMARK, SYSTEM = "qwen3-vl-235b-a22b", "Scripted"
SCENARIOS = ("Offline", "Server", "Interactive")
MAX_BYTES = 8 * 10**9
MARKS = frozenset({"MARK-STAND-IN"})
"""What the gate rejects every demonstration for."""
LOOK_S = 0.5
OFFLINE_QPS, ONLINE_QPS = 200, 120
"""Above what the engine does, so that Offline is asked enough; below it, so that nobody waits long."""
SLOTS, TTFT_MS, TOKEN_MS = 128, 80.0, 14.0


@dataclass
class Memory:
    """The most that a process and all below it have held: ``pss`` shares what is shared, ``anonymous`` is their own."""

    pss: int = 0
    anonymous: int = 0
    parts: dict[str, int] = field(default_factory=dict)
    """What each process held of its own when all together held most, by its number and command."""


def main(argv: Sequence[str] | None = None) -> int:
    """Prints what each verb printed, then legs, memory and verdicts."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--out", type=Path, default=PROJECT / "build" / "full", help="where all of it is put")
    parser.add_argument("--scenarios", default=",".join(SCENARIOS), help="comma list (default: %(default)s)")
    parser.add_argument("--rows", type=int, help="a smaller catalogue")
    parser.add_argument("--test_run", action="store_true", help="short legs")
    options = parser.parse_args(argv)
    out: Path = options.out.absolute()
    scenarios = options.scenarios.split(",")
    write_project(out, scenarios)
    rows = [] if options.rows is None else [f"--rows={options.rows}"]
    short = ["--test_run"] if options.test_run else []
    verb(out, "make_dataset", f"--benchmark={BENCHMARK}", *rows)
    code, memory = watched(out, "run_harness", f"--systems={SYSTEM}", f"--scenarios={','.join(scenarios)}", *short)
    shutil.rmtree(out / "submission", ignore_errors=True)
    packaged = verb(out, "submission", "--demonstration", "--out", "submission")
    verb(out, "check_submission", "--input", "submission", "--json", "findings.json", "--report-dir", "official")
    for run in ResultsStore(out / "results").runs():
        print(leg_line(run.record))
    print_memory(memory)
    problems = [f"run_harness ended with {code}"] if code else []
    problems += [f"submission ended with {packaged}"] if packaged else []
    problems += ["too much memory"] if memory.anonymous > MAX_BYTES else []
    checked = objections(json.loads((out / "findings.json").read_bytes())) if packaged == 0 else []
    for line in checked:
        print(line)
    problems += [] if rows or short else checked
    print("; ".join(["FAILED", *problems]) if problems else "passed")
    return 1 if problems else 0


def objections(found: Mapping[str, Any]) -> list[str]:
    """What speaks against the tree but that it is a demonstration, by official checker and gate."""
    official = found["official"] or {"verdict": "not run: MLPERF_INFERENCE_DIR names no clone"}
    lines = [] if official["verdict"] == "ok" else [f"the official checker: {official['verdict']}"]
    lines += [
        f"{row['folder']}: the official checker {row['official']}"
        for row in found["rows"]
        if row["official"] != "accepts"
    ]
    rejected = Counter(each["rule"] for each in found["findings"] if each["severity"] == "reject")
    return lines + [f"the gate rejects: {rule}, {count} times" for rule, count in rejected.items() if rule not in MARKS]


def write_project(out: Path, scenarios: Sequence[str]) -> None:
    """A project's folder: one system that is a scripted engine, entered in closed; texts are the repository's."""
    system = out / "systems" / SYSTEM
    system.mkdir(parents=True, exist_ok=True)
    shutil.copytree(PROJECT / "measurements", out / "measurements", dirs_exist_ok=True)
    rates = {name: {"target_qps": OFFLINE_QPS if name == "Offline" else ONLINE_QPS} for name in scenarios}
    service = {"ttft_ms": TTFT_MS, "per_token_ms": TOKEN_MS, "spread": 0.1}
    right = {"shopify_product_catalogue": 0.9}
    engine = {"kind": "scripted", "right": right, "answer_tokens": 42, "slots": SLOTS, "service": service}
    entry = {"division": "closed", "category": "datacenter", "availability": "rdi"}
    entered = {**entry, "system": SYSTEM, "benchmark": BENCHMARK, "scenarios": list(scenarios)}
    description = {"number_of_nodes": 1, "cooling": None, "host_networking_topology": "N/A, one machine"}
    write(system / "system.yaml", {"system_name": "Scripted engine on a CPU", **description})
    short = {"performance_samples": 48, "accuracy_samples": 48, "min_duration_ms": 500, "server_queries": 480}
    content = {"engine": engine, "scenarios": rates, "warmup": {"requests": 64}, "test_run": short}
    write(system / f"{BENCHMARK}.yaml", content)
    write(out / "submission.yaml", {"round": "v6.1", "submitter": None, "entries": [entered]})


def write(path: Path, content: Any) -> None:  # noqa: ANN401 - YAML holds anything
    """A YAML file."""
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def started(out: Path, *argv: str) -> subprocess.Popen[bytes]:
    """A verb of the harness in the project's folder; what it prints is printed."""
    print(f"$ python -m harness {' '.join(argv)}", flush=True)
    environ = {**os.environ, "PYTHONPATH": str(PROJECT), "HARNESS_DATA_DIR": str(out / "data")}
    return subprocess.Popen([sys.executable, "-m", "harness", *argv], cwd=out, env=environ)


def verb(out: Path, *argv: str) -> int:
    """Runs a verb to its end and gives its exit code."""
    return started(out, *argv).wait()


def watched(out: Path, *argv: str) -> tuple[int, Memory]:
    """The same, and the most memory that it and its processes held."""
    most = Memory()
    process = started(out, *argv)
    ended = threading.Event()
    watcher = threading.Thread(target=_watch, args=(process.pid, most, ended))
    watcher.start()
    try:
        return process.wait(), most
    finally:
        ended.set()
        watcher.join()


def _watch(pid: int, most: Memory, ended: threading.Event) -> None:
    while not ended.wait(LOOK_S):
        held = {name: of for name, of in map(_held, family(pid)) if of is not None}
        most.pss = max(most.pss, sum(pss for pss, _ in held.values()))
        anonymous = sum(own for _, own in held.values())
        if anonymous > most.anonymous:
            most.anonymous = anonymous
            most.parts = {name: own for name, (_, own) in held.items()}


def family(pid: int) -> list[psutil.Process]:
    """A process and all that it has started, and they."""
    try:
        first = psutil.Process(pid)
        return [first, *first.children(recursive=True)]
    except psutil.NoSuchProcess:
        return []


def _held(process: psutil.Process) -> tuple[str, tuple[int, int] | None]:
    try:
        name = f"{process.pid} {' '.join(process.cmdline()[1:5])}"
        lines = Path(f"/proc/{process.pid}/smaps_rollup").read_text(encoding="ascii").splitlines()[1:]
    except (psutil.Error, OSError):
        return str(process.pid), None
    sizes = {key: int(value.split()[0]) * 1024 for key, value in (line.split(":", 1) for line in lines)}
    return name, (sizes["Pss"], sizes["Anonymous"])


def leg_line(record: RunRecord) -> str:
    """A leg: its verdict, result, counts and length."""
    verdict = "VALID" if record.verdict is not None and record.verdict.valid else "INVALID"
    result = "" if record.result is None else f", {record.result.value:.2f} {record.result.units}"
    score = "" if record.accuracy is None else f", {record.accuracy.key} {record.accuracy.value}"
    counts = record.counts
    told = "" if counts is None else f", {counts.answered} of {counts.issued} answered"
    return f"{record.id}: {verdict}{result}{score}{told}"


def print_memory(memory: Memory) -> None:
    """The most that was held, and by whom."""
    print(
        f"memory of all processes: anonymous {memory.anonymous / 1e6:.0f} MB, PSS {memory.pss / 1e6:.0f} MB at the most"
    )
    for name, own in sorted(memory.parts.items(), key=lambda part: -part[1]):
        print(f"  {own / 1e6:8.1f} MB  {name}")


if __name__ == "__main__":
    started_at = time.monotonic()
    code = main()
    print(f"took {(time.monotonic() - started_at) / 60:.1f} minutes")
    sys.exit(code)
