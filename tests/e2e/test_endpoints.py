"""The real endpoints client before a real server of ours: images in, text out, both phases, a run of the ledger."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from harness import benchmarks
from harness.clients.endpoints.config import LEG, REPORT
from harness.ledger.record import RunRecord, State
from harness.ledger.store import read_record
from harness.rules import load
from tests.engines.launch.made import free_ports
from tests.harness_process import ScriptedProject, children_of, end_of, living, wait_until

VARIABLE = "ENDPOINTS_BIN"
NAME = "qwen3-vl-235b-a22b"
ROWS = 16
LONG_S = 900

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.torch,
    pytest.mark.qwen3vl,
    pytest.mark.timeout(1800),
    pytest.mark.skipif(
        not os.environ.get(VARIABLE), reason=f"{VARIABLE} names no inference-endpoint client (docs/endpoints.md)"
    ),
]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("PIL", reason="needs the [qwen3-vl] extra")
    folder = tmp_path_factory.mktemp("data")
    benchmarks.get(NAME, load("v6.1")).make_dataset(folder, seed=0, rows=ROWS)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Iterator[ScriptedProject]:
    """A system with one torch server, which is started for each command."""
    pytest.importorskip("starlette", reason="needs the [serve] extra")
    system = tmp_path / "systems" / "BOX"
    system.mkdir(parents=True)
    said = {"system_name": "BOX", "number_of_nodes": 1, "cooling": "air", "host_networking_topology": "N/A"}
    (system / "system.yaml").write_text(yaml.safe_dump(said))
    content = {
        "engine": {
            "kind": "http",
            "server": "torch",
            "checkpoint": {"make": "tiny-qwen3-vl", "seed": 0, "hidden_size": 64, "layers": 2},
            "options": {"slots": 16, "threads": 1, "max_total_tokens": 1024, "prefill_chunk": 512},
            "clients": {"connections": 16},
            "launch": {"port": free_ports(), "ready_s": 600},
        },
        "output_caps": {"performance": 4, "accuracy": 4},
        "scenarios": {"Offline": {"target_qps": 4}},
        "warmup": {"requests": 4},
        "watchdog_s": 600,
        "test_run": {
            "performance_samples": ROWS,
            "accuracy_samples": ROWS,
            "min_duration_ms": 100,
            "server_queries": 1,
        },
    }
    (system / f"{NAME}.yaml").write_text(yaml.safe_dump(content))
    yield ScriptedProject(tmp_path)


ARGUMENTS = ("run_harness", "--client=endpoints", f"--benchmarks={NAME}", "--scenarios=Offline", "--test_run")


def the_record(project: ScriptedProject) -> tuple[Path, RunRecord]:
    (path,) = project.results.glob(f"BOX/{NAME}/Offline/{LEG}/attempt_01/run.json")
    return path.parent, read_record(path)


def test_the_real_client_before_a_real_server(project: ScriptedProject, data: Path) -> None:
    ended = project.run(*ARGUMENTS, data=data, timeout_s=LONG_S)
    folder, record = the_record(project)
    log = folder / "client.log"
    assert record.state is State.FINISHED, log.read_text(encoding="utf-8")[-3000:]
    assert record.verdict is not None
    assert [f.rule for f in record.verdict.findings if f.severity == "reject"] == []
    assert ended.code == 0, ended.err
    assert record.counts is not None
    assert record.counts.issued == record.counts.answered == ROWS
    assert record.accuracy is not None
    assert record.accuracy.subsets["shopify_product_catalogue"].wrong == ROWS  # random weights
    assert record.result is not None
    assert record.result.value > 0
    assert {pair.ratio for pair in record.comparisons if pair.figure.startswith("n_samples")} == {1.0}
    assert set(record.not_submittable) >= {"stand-in checkpoint", "short run (--test_run)"}
    summary = json.loads((folder / REPORT / "performance/result_summary.json").read_text(encoding="utf-8"))
    assert record.versions["endpoints"] == summary["version"]
    assert summary["n_samples_issued"] == ROWS
    importing = ("run_harness", f"--import={folder}", f"--benchmarks={NAME}", "--scenarios=Offline", "--test_run")
    again = project.run(*importing, data=data)
    assert again.code == 2
    assert "is that of" in again.err  # one measurement is one result
    taken = project.run(*importing, f"--results_dir={project.folder / 'elsewhere'}", data=data)
    assert "attempt_01" in taken.err


def test_an_interrupt_ends_all_of_it(project: ScriptedProject, data: Path) -> None:
    process = project.start(*ARGUMENTS, data=data)
    log = project.results / f"BOX/{NAME}/Offline/{LEG}/attempt_01/client.log"
    try:
        wait_until(lambda: log.exists() and log.stat().st_size, "the client", timeout_s=LONG_S)
        below = children_of(process.pid)
        assert len(below) >= 4  # the server's supervisor, it, its engine; the client's supervisor, it
        process.send_signal(signal.SIGTERM)
        ended = end_of(process, LONG_S)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
    assert ended.code == 130
    assert the_record(project)[1].state is State.INTERRUPTED
    wait_until(lambda: not living(below), "the end of what was started")
