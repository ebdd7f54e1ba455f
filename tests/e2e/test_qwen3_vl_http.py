"""Legs of Qwen3-VL over HTTP: pictures that are seen, texts that are scored, and servers that fail."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from harness import rules
from harness.benchmarks import registry
from harness.benchmarks.base import Dataset
from harness.engines.bodies import BodyStore
from harness.ledger import ResultsStore, RunRecord, State
from harness.ledger.samples import SampleState, read_samples
from tests.engines.launch.made import free_ports
from tests.harness_process import ROOT, ScriptedProject, children_of, living

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(not importlib.util.find_spec("quicktok"), reason="needs the [qwen3-vl] extra"),
    pytest.mark.skipif(not importlib.util.find_spec("PIL"), reason="needs the [qwen3-vl] extra"),
    pytest.mark.skipif(not importlib.util.find_spec("starlette"), reason="needs the [serve] extra"),
]

NAME = "qwen3-vl-235b-a22b"
ROWS = 64
ROOM = 1_024
"""Tokens of a prompt and its answer; the longest prompts have some 750."""
RUN = ("run_harness", "--systems=SCRIPTED", f"--benchmarks={NAME}", "--test_run")
SPEED = {"LG-DURATION", "LG-EARLY-STOPPING", "LG-LATENCY", "LG-VALID"}
"""What a leg is told that went faster or slower than was guessed: it says nothing about how servers were asked."""
BEGUN_BEFORE = 3 + 4
"""Requests of the canary and of the warm-up; later ones are samples, or soon will be."""
WRONG = json.dumps({"category": "Möbel > 木村", "brand": "", "is_secondhand": True}, ensure_ascii=False)
EVERY_OTHER = 2


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stand-in catalogue of a few rows."""
    folder = tmp_path_factory.mktemp("data")
    registry.get(NAME, rules.load("v6.1")).make_dataset(folder, seed=0, rows=ROWS)
    return folder


@pytest.fixture(scope="module")
def prepared(data: Path) -> Dataset:
    benchmark = registry.get(NAME, rules.load("v6.1"))
    return benchmark.prepare(benchmark.dataset(data, benchmark.table("accuracy", "Offline")), data, lambda _: None)


def write(project: ScriptedProject, engine: dict[str, Any], **changes: Any) -> None:
    content: dict[str, Any] = {
        "engine": {
            "kind": "http",
            "server": "torch",
            "checkpoint": {"make": "tiny-qwen3-vl"},
            "options": {"max_total_tokens": ROOM},
        }
        | engine,
        "output_caps": {"performance": 120, "accuracy": 120},
        "scenarios": {"Offline": {"target_qps": 20}, "Server": {"target_qps": 50}},
        "warmup": {"requests": 4},
        "test_run": {
            "performance_samples": ROWS,
            "accuracy_samples": ROWS,
            "min_duration_ms": 500,
            "server_queries": 3 * ROWS,
        },
    }
    project.benchmark_file.with_name(f"{NAME}.yaml").write_text(yaml.safe_dump(content | changes))


def records(project: ScriptedProject) -> dict[tuple[str, str], tuple[RunRecord, Path]]:
    runs = ResultsStore(project.results).runs()
    return {(run.record.id.scenario, run.record.id.leg): (run.record, run.folder) for run in runs}


@contextmanager
def servers(count: int, script: Path, *more: str) -> Iterator[list[str]]:
    """URLs of scripted servers with answers in Qwen3's vocabulary; the last has ``more`` options."""
    settings = json.dumps({"answers": {"serve": str(script)}, "vocab_size": 151_936, "first_token": {"mean_s": 0.002}})
    command = [sys.executable, "-m", "harness", "serve", "--engine=scripted", f"--script={settings}", "--port=0"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "COLUMNS": "200"}
    with ExitStack() as stack:
        urls = []
        for number in range(count):
            process = subprocess.Popen(
                [*command, *(more if number == count - 1 else ())],
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                env=environment,
            )
            stack.callback(_ended, process)
            assert process.stdout is not None
            urls.append(process.stdout.readline().split()[-1])
        yield urls


def _ended(process: subprocess.Popen[str]) -> None:
    process.terminate()
    process.wait(30)
    if process.stdout is not None:
        process.stdout.close()


def written(path: Path, answers: Sequence[str]) -> Path:
    """Answers of a script."""
    from harness.engines.chats.qwen3_vocab import encode

    ids = [encode(answer) for answer in answers]
    tokens = np.array([token for each in ids for token in each], np.int32)
    np.savez(path, tokens=tokens, ends=np.cumsum([len(each) for each in ids]).astype(np.int64))
    return path


# -- what is said is what is scored ------------------------------------------------------------------------------------


def answers_by_prompt(dataset: Dataset) -> tuple[list[str], list[str]]:
    """A script whose rows the prompts' hashes lead to, every other answer right; and what each sample is told."""
    from harness.engines.chats.qwen3_vl import prompt_ids
    from harness.serve.script_rows import row_of

    assert dataset.chats is not None
    store = BodyStore.open(dataset.chats)
    prompts = [prompt_ids(bytes(store[row])) for row in range(len(store))]
    distinct = len(set(map(tuple, prompts)))
    count = next(n for n in range(4 * ROWS, 1_000 * ROWS) if len({row_of(each, n) for each in prompts}) == distinct)
    script = [WRONG] * count
    for row, truth in enumerate(dataset.ground_truth):
        if row % EVERY_OTHER == 0:
            right = {"category": truth, "brand": "木村 ÆØÅ", "is_secondhand": False}
            script[row_of(prompts[row], count)] = json.dumps(right, ensure_ascii=False)
    return script, [script[row_of(prompt, count)] for prompt in prompts]


def pooled_f1(said: Sequence[str], truths: Sequence[str | None]) -> float:
    """Levels that are right from the root, over all samples."""
    matched = predicted = true = 0
    for answer, truth in zip(said, truths, strict=True):
        ours, theirs = json.loads(answer)["category"].split(" > "), str(truth).split(" > ")
        wrong = (i for i, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1])
        matched += next(wrong, min(len(ours), len(theirs)))
        predicted, true = predicted + len(ours), true + len(theirs)
    return 2 * matched / (predicted + true)


def test_the_score_is_that_of_what_the_servers_said(
    scripted_project: ScriptedProject, data: Path, prepared: Dataset, tmp_path: Path
) -> None:
    script, said = answers_by_prompt(prepared)
    with servers(2, written(tmp_path / "answers.npz", script)) as urls:
        write(scripted_project, {"endpoints": urls, "replicas": 2, "clients": {"processes": 2, "connections": 16}})
        ended = scripted_project.run(*RUN, "--scenarios=Offline,Server", data=data)
    assert ended.code in (0, 1), ended.err
    assert "canary product pictures: well" in ended.err
    kept = records(scripted_project)
    assert len(kept) == 4
    for (scenario, leg), (record, folder) in kept.items():
        assert record.state is State.FINISHED and record.verdict is not None
        assert record.counts.failed == record.counts.outstanding == 0
        assert {finding.rule for finding in record.verdict.findings if finding.severity == "reject"} <= SPEED
        assert record.client_counters["requests"] == record.counts.issued
        assert record.client_counters["retries"] == record.client_counters["prompt_lengths_differ"] == 0
        samples = read_samples(folder / "samples.arrow")
        assert set(samples["state"]) == {SampleState.ANSWERED}
        assert set(samples["replica"]) == {0, 1}
        if leg == "accuracy":
            logged = json.loads((folder / "logs" / "mlperf_log_accuracy.json").read_text())
            assert {each["qsl_idx"]: bytes.fromhex(each["data"]).decode() for each in logged} == dict(enumerate(said))
            assert record.accuracy is not None
            subsets = record.accuracy.subsets.values()
            assert [(each.samples, each.failed, each.unscored) for each in subsets] == [(ROWS, 0, 0)]
            assert f"F1 {pooled_f1(said, prepared.ground_truth):.6f}" in (folder / "accuracy.txt").read_text(), scenario


# -- what fails --------------------------------------------------------------------------------------------------------

FAILING = {
    "400": "http_400",
    "429": "http_429",
    "500": "http_500",
    "503": "http_503",
    "reset": "reset",
    "half_frame": "truncated",
    "wrong_model": "wrong_model",
    "sse_error": "sse_error",
    "stall": "timeout",
    "hang": "timeout",
    "empty": "empty_answer",
    "content_filter": "content_filter",
    "too_long": "prompt_too_long",
}


@pytest.mark.parametrize("leg", ["performance", "accuracy"])
def test_no_failure_is_an_answer(scripted_project: ScriptedProject, data: Path, tmp_path: Path, leg: str) -> None:
    # What is late takes its time: one of the legs waits for it.
    failing = {fault: kind for fault, kind in FAILING.items() if leg == "performance" or kind != "timeout"}
    places = {fault: BEGUN_BEFORE + 3 + 3 * i for i, fault in enumerate(failing)}
    harmless = {"crlf@101/5": "", "split@102/5": "", "close_idle@104/25": ""}
    faults = [*(f"--fault={fault}@{n}" for fault, n in places.items()), *(f"--fault={fault}" for fault in harmless)]
    with servers(1, written(tmp_path / "answers.npz", [WRONG]), *faults) as urls:
        write(scripted_project, {"endpoints": urls, "clients": {"connections": 32, "request_timeout_s": 15}})
        mode = "PerformanceOnly" if leg == "performance" else "AccuracyOnly"
        ended = scripted_project.run(*RUN, "--scenarios=Server", f"--test_mode={mode}", data=data)
    assert ended.code == 1, ended.err
    assert "Traceback" not in ended.err
    ((record, folder),) = records(scripted_project).values()
    assert Counter(record.failure_kinds) == Counter(failing.values())
    assert (record.counts.failed, record.counts.outstanding) == (len(failing), 0)
    assert record.counts.answered == record.counts.issued - len(failing)
    assert record.verdict is not None and not record.verdict.valid
    rejected = {finding.rule for finding in record.verdict.findings if finding.severity == "reject"}
    assert "RUN-FAILED" in rejected
    states = Counter(read_samples(folder / "samples.arrow")["state"].tolist())
    assert states[SampleState.FAILED] == len(failing)
    if record.accuracy is not None:
        assert record.accuracy.value is None
        assert sum(each.failed for each in record.accuracy.subsets.values()) == len(failing)


def test_a_server_that_is_gone(scripted_project: ScriptedProject, data: Path, tmp_path: Path) -> None:
    with servers(2, written(tmp_path / "answers.npz", [WRONG]), "--fault=die@40") as urls:
        write(scripted_project, {"endpoints": urls, "replicas": 2, "clients": {"connections": 8}})
        process = scripted_project.start(*RUN, "--scenarios=Server", "--test_mode=PerformanceOnly", data=data)
        below: list[int] = []
        assert process.stderr is not None
        told = ""
        for line in process.stderr:
            told += line
            below = below or ("started, in" in line and children_of(process.pid)) or []
        code = process.wait(60)
        assert process.stdout is not None
        process.stdout.close()
        process.stderr.close()
    assert code == 4, told
    assert "replica 1 died" in told and "Traceback" not in told
    assert not living(below)
    ((record, _),) = records(scripted_project).values()
    assert record.state is State.BROKEN
    assert record.counts.answered + record.counts.failed == record.counts.issued
    assert {"replica_died"} <= record.failure_kinds.keys() <= {"replica_died", "reset", "truncated", "engine_died"}


def test_prompts_that_are_too_long_are_found_before_a_leg(
    scripted_project: ScriptedProject, data: Path, tmp_path: Path
) -> None:
    with servers(1, written(tmp_path / "answers.npz", [WRONG]), "--max_total_tokens=700") as urls:
        write(scripted_project, {"endpoints": urls, "options": {"max_total_tokens": 700}})
        ended = scripted_project.run(*RUN, "--scenarios=Offline", data=data)
    assert ended.code == 2, ended.err
    assert "the longest prompt (row " in ended.err and "Traceback" not in ended.err
    assert not records(scripted_project)


# -- what is seen ------------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.slow
@pytest.mark.timeout(900)
def test_two_servers_that_look_at_the_pictures(scripted_project: ScriptedProject, data: Path) -> None:
    """Offline whole and Server in streams, performance and accuracy, over servers that the run starts and ends."""
    cap, rows = 4, 16
    engine = {
        "replicas": 2,
        "options": {"slots": 8, "threads": 1, "max_total_tokens": 1_024, "prefill_chunk": 512},
        "launch": {"port": free_ports(2), "ready_s": 240},
        "clients": {"processes": 2, "connections": 32},
    }
    write(
        scripted_project,
        engine,
        output_caps={"performance": cap, "accuracy": cap},
        scenarios={"Offline": {"target_qps": {"warmup_share": 1.25}}, "Server": {"target_qps": 4.0}},
        warmup={"requests": 4},
        test_run={
            "performance_samples": rows,
            "accuracy_samples": rows,
            "min_duration_ms": 2_000,
            "server_queries": rows,
        },
    )
    ended = scripted_project.run(*RUN, "--scenarios=Offline,Server", data=data, timeout_s=800)
    assert ended.code in (0, 1), ended.err
    assert "2 replicas answer; client processes: 2" in ended.err
    assert "canary product pictures: well" in ended.err
    kept = records(scripted_project)
    assert len(kept) == 4
    for (_, leg), (record, folder) in kept.items():
        assert record.state is State.FINISHED and record.verdict is not None
        assert {finding.rule for finding in record.verdict.findings if finding.severity == "reject"} <= SPEED
        assert {"stand-in checkpoint", "short run (--test_run)"} <= set(record.not_submittable)
        assert record.counts.failed == record.counts.outstanding == 0
        assert record.counts.output_tokens == cap * record.counts.answered  # its end token is never sampled
        assert record.client_counters["prompt_lengths_differ"] == 0  # the servers see pictures of the size we sent
        samples = read_samples(folder / "samples.arrow")
        assert set(samples["state"]) == {SampleState.ANSWERED}
        assert set(samples["replica"]) == {0, 1}
        if leg == "accuracy":
            logged = json.loads((folder / "logs" / "mlperf_log_accuracy.json").read_text())
            texts = {each["qsl_idx"]: bytes.fromhex(each["data"]).decode() for each in logged}
            assert len(texts) == rows and all(texts.values()) and len(set(texts.values())) > rows // 2
            assert record.accuracy is not None
            assert sum(each.samples for each in record.accuracy.subsets.values()) == rows
