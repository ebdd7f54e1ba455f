"""A small submission tree that has nothing against it, of real logs, for tests to break in one place."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.rules import BenchmarkRules, load
from tests.gate.full_length import ACCURACY_LOG, BENCHMARK, DETAIL, SUMMARY, copy
from tests.gate.made_audits import make_audit
from tests.logs.loadgen_runs import edit

SUBMITTER = "Acme"
SYSTEM = "Box"
SCENARIOS = ("Offline", "Server")
ROUND = load("v6.1")
ECC_ON = {"host": True, "accelerators": True, "sources": {"host": "/sys/devices/system/edac/mc: SECDED"}}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


@dataclass(frozen=True)
class Entry:
    """What a tree is of. ``changes`` make a short run one of full length, by scenario and leg; None is gpt-oss-120b's.

    ``accuracy`` are the evaluator's lines; ``seeds`` are changed to those of ``round``.
    """

    benchmark: str = BENCHMARK
    round: str = "v6.1"
    scenarios: tuple[str, ...] = ("Offline", "Server")
    accuracy: str = "Printing for submission_checker:\n'exact_match': 83.130\n\n"
    changes: Mapping[tuple[str, str], Mapping[str, object]] | None = None

    @property
    def rules(self) -> BenchmarkRules:
        return load(self.round).benchmark(self.benchmark)

    def of_full_length(self, scenario: str, leg: str) -> dict[str, object] | None:
        return None if self.changes is None else dict(self.changes.get((scenario, leg), {}))

    def seeds(self) -> dict[str, object]:
        seeds = load(self.round).seeds
        return {
            "effective_qsl_rng_seed": seeds.qsl.value,
            "effective_sample_index_rng_seed": seeds.sample_index.value,
            "effective_schedule_rng_seed": seeds.schedule.value,
        }


GPT_OSS = Entry()


def make_tree(root: Path, runs: Mapping[tuple[str, str], Path], division: str, entry: Entry = GPT_OSS) -> Path:
    """Lays out ``<root>/<division>/Acme`` with one system and the entry's scenarios; returns that folder."""
    home = root / division / SUBMITTER
    kind = entry.rules.categories.value[0]
    write(home / "systems" / f"{SYSTEM}.json", json.dumps(system(division) | {"system_type": kind}, indent=1))
    write(home / "src" / entry.benchmark / "main.py", "print()\n")
    write(home / "documentation" / "calibration.md", "No quantisation.\n")
    write(home / "documentation" / "bandwidth.md", "One network card.\n")
    truncated = [make_row(home, runs, division, scenario, entry) for scenario in entry.scenarios]
    make_manifest(home, division, truncated, entry)
    return home


def row(home: Path, scenario: str, benchmark: str = BENCHMARK) -> Path:
    return home / "results" / SYSTEM / benchmark / scenario


def system(division: str) -> dict[str, object]:
    fields: dict[str, object] = {name: f"some {name}" for name in ROUND.system_fields.required.value}
    fields |= {"division": division, "submitter": SUBMITTER, "status": "available", "system_type": "datacenter"}
    return fields | {"number_of_nodes": 1, "accelerators_per_node": "0", "host_processors_per_node": 2}


def make_row(
    home: Path, runs: Mapping[tuple[str, str], Path], division: str, scenario: str, entry: Entry
) -> dict[str, object]:
    folder = row(home, scenario, entry.benchmark)
    write(folder / "measurements.json", json.dumps(dict.fromkeys(ROUND.measurements_fields.value, "No")))
    write(folder / "README.md", "make run_harness\n")
    write(folder / "user.conf", "*.Offline.target_qps = 10\n")
    for leg, place in (("performance", folder / "performance" / "run_1"), ("accuracy", folder / "accuracy")):
        copy(runs[scenario, leg], place, scenario, leg, entry.of_full_length(scenario, leg))
        if entry.round != ROUND.round:
            edit(place / DETAIL, **entry.seeds())
    accuracy = folder / "accuracy"
    whole = sha256(accuracy / ACCURACY_LOG)
    size = shorten(accuracy / ACCURACY_LOG)
    write(accuracy / "accuracy.txt", f"{entry.accuracy}hash={whole}\n")
    if division == "closed":
        for audit in entry.rules.audits.value:
            make_audit(folder / audit, runs[scenario, audit], scenario)
    path = (accuracy / ACCURACY_LOG).relative_to(home).as_posix()
    return {"path": path, "sha256_full": whole, "bytes_full": size}


def shorten(log: Path) -> int:
    kept, content = ROUND.accuracy_log_kept_bytes.value, log.read_bytes()
    log.write_bytes(content[:kept] + ROUND.accuracy_log_separator.value.encode() + content[-kept:])
    return len(content)


def make_manifest(home: Path, division: str, truncated: list[dict[str, object]], entry: Entry = GPT_OSS) -> None:
    files = [
        {"path": p.relative_to(home).as_posix(), "sha256": sha256(p), "origin": "generated"}
        for p in sorted(home.rglob("*"))
        if p.is_file() and p.name != "MANIFEST.json"
    ]
    rows = [
        {
            "division": division,
            "system": SYSTEM,
            "benchmark": entry.benchmark,
            "scenario": scenario,
            "fingerprint": "f" * 64,
            "legs": [
                {"leg": leg, "attempt": 1, "attempts_total": 1, "run": "x", "ecc": ECC_ON}
                for leg in ("performance", "accuracy")
            ],
            "not_submittable": [],
            "deviations": [],
        }
        for scenario in entry.scenarios
    ]
    manifest = {"round": entry.round, "demonstration": False, "files": files, "rows": rows, "truncated": truncated}
    write(home / "MANIFEST.json", json.dumps(manifest, indent=1))


def remake_manifest(home: Path) -> None:
    """The manifest again, over the files as they are now."""
    old = json.loads((home / "MANIFEST.json").read_text())
    make_manifest(home, home.parent.name, old["truncated"])


def change_json(path: Path, **values: object) -> None:
    """Sets values in a JSON object; Ellipsis removes the key."""
    data = json.loads(path.read_text()) | values
    path.write_text(json.dumps({k: v for k, v in data.items() if v is not ...}))


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


__all__ = ["BENCHMARK", "DETAIL", "SUMMARY", "SUBMITTER", "SYSTEM"]
