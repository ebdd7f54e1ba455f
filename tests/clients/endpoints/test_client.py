from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.benchmarks.qwen3_6_27b.bfcl import standin
from harness.clients.endpoints import client, probe
from harness.clients.endpoints.client import CLIENT_LOG, Watch, run_client
from harness.clients.endpoints.config import CONFIG
from harness.clients.endpoints.data import lay_out
from harness.clients.endpoints.program import ClientProgram, find_program
from harness.clients.endpoints.questions import lay_out_questions
from harness.clients.endpoints.room import check_room
from harness.errors import ConfigError, DatasetError, EngineDied, HarnessError, MissingError, RunBroke
from harness.events import Event, LegProgress
from harness.rules import load
from harness.rules.benchmark import ClientExtra
from harness.rules.layouts import EndpointsLayout
from tests.clients.endpoints.fake_client import TOLD, make_fake_client
from tests.harness_process import ROOT, living, wait_until

_LAYOUT = load("v6.1").layouts.endpoints
assert _LAYOUT is not None
LAYOUT: EndpointsLayout = _LAYOUT
_TOLD = load("v6.1").benchmark("qwen3.6-27b").endpoints_client
assert _TOLD is not None
assert _TOLD.value.extra is not None
EXTRA: ClientExtra = _TOLD.value.extra
EXTRA_OLD = "2025.1.1"


@pytest.fixture
def program(tmp_path: Path) -> ClientProgram:
    return find_program(LAYOUT, {"ENDPOINTS_BIN": str(make_fake_client(tmp_path / "bin"))})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    run = tmp_path / "run"
    run.mkdir()
    return run


def watch(events: list[Event] | None = None, ending: str | None = None, stall_s: float = 60) -> Watch:
    seen = [] if events is None else events
    return Watch("B/x/Server", lambda: ending, stall_s, seen.append)


# -- the program -------------------------------------------------------------------------------------------------------


def test_a_program_is_found_and_tells_which_it_is(program: ClientProgram, tmp_path: Path) -> None:
    assert (program.version, program.commit) == ("0.1.0", "ab" * 20)
    assert program.versions["endpoints_commit"] == "ab" * 20
    assert find_program(LAYOUT, {"ENDPOINTS_BIN": str(tmp_path / "bin")}) == program  # its folder will do


def test_without_it_the_error_says_how_to_install_it() -> None:
    with pytest.raises(MissingError, match="ENDPOINTS_BIN is not set") as raised:
        find_program(LAYOUT, {})
    assert raised.value.exit_code == 3
    assert raised.value.mend is not None
    for word in ("git clone https://github.com/mlcommons/endpoints", "598dbfde", "python3.12 -m venv", "pip install"):
        assert word in raised.value.mend


@pytest.mark.parametrize("kind", ["absent", "plain", "nothing", "garbage", "gone"])
def test_what_is_no_such_program_is_told(tmp_path: Path, kind: str) -> None:
    path = make_fake_client(tmp_path, {"version": None} if kind == "nothing" else None)
    if kind == "absent":
        path.unlink()
    if kind == "plain":
        path.chmod(0o644)
    if kind == "garbage":
        (tmp_path / "python-fake").write_text("#!/bin/sh\necho hello\n", encoding="utf-8")
    if kind == "gone":
        (tmp_path / "python-fake").unlink()
    with pytest.raises(MissingError):
        find_program(LAYOUT, {"ENDPOINTS_BIN": str(path)})


REFUSED = "Config validation failed: 1 validation error\noffline.settings.{key}\n  Extra inputs are not permitted [x]\n"


@pytest.mark.parametrize(
    ("key", "error", "what"),
    [("early_stopping", MissingError, "too old"), ("drain.other", ConfigError, "refuses its configuration")],
)
def test_a_configuration_that_it_refuses(
    program: ClientProgram,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    key: str,
    error: type[HarnessError],
    what: str,
) -> None:
    refusal = tmp_path / "refusal"
    refusal.write_text(REFUSED.format(key=key), encoding="utf-8")
    monkeypatch.setenv("FAKE_REFUSAL", str(refusal))
    with pytest.raises(error, match=what) as raised:
        program.check(tmp_path / CONFIG, LAYOUT)
    assert key in str(raised.value)
    monkeypatch.delenv("FAKE_REFUSAL")
    program.check(tmp_path / CONFIG, LAYOUT)


def test_the_probe_tells_the_source_and_the_commit_of_a_clone(tmp_path: Path) -> None:
    package = tmp_path / "clone" / "src" / probe.PACKAGE
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("x = 1\n", encoding="utf-8")
    before = probe.source_sha256(package)
    (package / "__init__.py").write_text("x = 2\n", encoding="utf-8")
    assert probe.source_sha256(package) != before
    assert probe.clone_commit(package) is None
    git = ["git", "-C", str(tmp_path / "clone"), "-c", "user.name=n", "-c", "user.email=e@x"]
    for words in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "m"]):
        subprocess.run([*git, *words], check=True)
    commit = subprocess.run([*git, "rev-parse", "HEAD"], check=True, capture_output=True, text=True).stdout.strip()
    assert probe.clone_commit(package) == commit
    assert probe.told()["sha256"] is None  # this Python has no such client


# -- its run -----------------------------------------------------------------------------------------------------------


def test_a_run_to_its_end(
    program: ClientProgram, folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    report = tmp_path / "prepared"
    report.mkdir()
    (report / "report.txt").write_text("Summary\n", encoding="utf-8")
    monkeypatch.setenv("FAKE_REPORT", str(report))
    run_client(program, folder, watch())
    assert (folder / "report" / "report.txt").read_text(encoding="utf-8") == "Summary\n"
    assert "120/120" in (folder / CLIENT_LOG).read_text(encoding="utf-8")


def test_one_that_fails_is_told_with_its_last_lines(
    program: ClientProgram, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CLIENT", "fails")
    with pytest.raises(RunBroke, match="ended with status 3") as raised:
        run_client(program, folder, watch())
    assert "SetupError: no such thing" in str(raised.value)


def test_a_server_that_ends_ends_the_run(program: ClientProgram, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CLIENT", "hangs")
    with pytest.raises(EngineDied, match="server 1 was ended by SIGKILL"):
        run_client(program, folder, watch(ending="server 1 was ended by SIGKILL"))
    assert not client_processes(folder)


def test_one_in_which_nothing_comes_back_is_ended(
    program: ClientProgram, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CLIENT", "hangs")
    monkeypatch.setattr(client, "_TELL_S", 0.0)
    events: list[Event] = []
    with pytest.raises(RunBroke, match="1 of 120 samples"):
        run_client(program, folder, watch(events, stall_s=1.0))
    assert (folder / "interrupted").exists()  # it was asked before it was made to
    assert not client_processes(folder)
    told = [event for event in events if isinstance(event, LegProgress)]
    assert told[-1].issued == 120 and told[-1].completed == 1
    assert told[-1].samples_per_s is not None and told[-1].samples_per_s >= 0
    assert (told[-1].tokens_per_s, told[-1].running, told[-1].occupancy) == (None, (), None)


def test_one_that_does_not_hear_is_killed(
    program: ClientProgram, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_CLIENT", "deaf")
    monkeypatch.setattr(client, "_STOP_S", 0.5)
    monkeypatch.setattr(client, "_GRACE_S", 0.5)
    with pytest.raises(RunBroke, match="nothing came back"):
        run_client(program, folder, watch(stall_s=1.0))
    assert not client_processes(folder)


def test_it_ends_with_the_harness(program: ClientProgram, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FAKE_CLIENT", "hangs")
    code = (
        "import sys; from pathlib import Path; from harness.clients.endpoints.client import *; "
        "from harness.clients.endpoints.program import ClientProgram; "
        f"p = ClientProgram(Path({str(program.path)!r}), '', '', None, ''); "
        f"run_client(p, Path({str(folder)!r}), Watch('x', lambda: None, 600, lambda e: None))"
    )
    harness = subprocess.Popen([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(ROOT)})
    try:
        wait_until((folder / "pid").exists, "the client")
        wait_until(lambda: (folder / "pid").read_text(encoding="utf-8"), "its number")
    finally:
        harness.send_signal(signal.SIGKILL)
        harness.wait()
    wait_until(lambda: not client_processes(folder), "the client's end")


def client_processes(folder: Path) -> list[int]:
    """The client of a run, where it still runs."""
    path = folder / "pid"
    return living([int(path.read_text(encoding="utf-8"))]) if path.exists() else []


def test_what_the_record_has_is_what_was_probed() -> None:
    made = ClientProgram(Path("x"), TOLD["python"], TOLD["version"], None, TOLD["sha256"])
    assert made.versions == {
        "endpoints": "0.1.0", "endpoints_python": "3.12.1", "endpoints_source": TOLD["sha256"],
    }  # fmt: skip


# -- its data ----------------------------------------------------------------------------------------------------------

PLACE = "shopify_product_catalogue/train+test/shopify_product_catalogue_train+test.parquet"


def table(path: Path, rows: int) -> Path:
    pq.write_table(pa.table({"product_title": [f"T{i}" for i in range(rows)]}), path, row_group_size=100)
    return path


def test_the_whole_data_set_is_a_link(tmp_path: Path, folder: Path) -> None:
    source = table(tmp_path / "all.parquet", 10)
    laid = lay_out(source, folder, PLACE, None)
    assert laid == folder / "dataset_cache" / PLACE
    assert laid.is_symlink()
    assert laid.resolve() == source


@pytest.mark.parametrize("rows", [1, 99, 100, 101, 300])
def test_a_short_one_is_a_copy_of_the_first_rows(tmp_path: Path, folder: Path, rows: int) -> None:
    laid = lay_out(table(tmp_path / "all.parquet", 1000), folder, PLACE, rows)
    assert pq.read_table(laid)["product_title"].to_pylist() == [f"T{i}" for i in range(rows)]


def test_a_data_set_that_cannot_be_laid_out_is_told(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "bad.parquet").write_bytes(b"no parquet")
    with pytest.raises(DatasetError, match="not a readable parquet file"):
        lay_out(tmp_path / "bad.parquet", folder, PLACE, 5)
    (tmp_path / "dataset_cache").write_text("in the way", encoding="utf-8")
    with pytest.raises(MissingError, match="cannot be made"):
        lay_out(tmp_path / "bad.parquet", tmp_path, PLACE, None)


def test_room_for_the_events_is_looked_for(folder: Path, tmp_path: Path) -> None:
    check_room([(48289, 150), (48289, 150)], folder, tmp_path)
    check_room([(1, 1)], folder, tmp_path / "no such file system")
    for shm, results in ((tmp_path, folder), (tmp_path / "none", folder)):
        with pytest.raises(MissingError, match="no room for the client's events"):
            check_room([(1 << 40, 150)], results, shm)


def test_a_request_s_whole_history_is_in_the_events(folder: Path, tmp_path: Path) -> None:
    check_room([(1007, 1024)], folder, tmp_path, asked_bytes=1 << 20)
    with pytest.raises(MissingError, match="no room for the client's events"):
        check_room([(1007, 1024)], folder, tmp_path, asked_bytes=1 << 60)


def test_questions_are_laid_out_as_the_client_keeps_its_own(folder: Path) -> None:
    rows = list(standin.made(0, {"non_live": 12, "live": 8, "hallucination": 4}))
    place = "bfcl_v4/bfcl_v4_single_turn.parquet"
    laid = pq.read_table(lay_out_questions(rows, folder, place)).to_pylist()
    assert (folder / "dataset_cache" / place).is_file()
    assert [one["sample_id"] for one in laid] == [row.id for row in rows]
    for one, row in zip(laid, rows, strict=True):
        assert (json.loads(one["messages"]), json.loads(one["tools"])) == (row.messages, row.tools)
        assert json.loads(one["ground_truth"]) == (row.truth or [])
        assert json.loads(one["func_description"]) == row.functions
        assert (one["subset"], one["tool_choice"]) == (row.subset, "auto")


def test_questions_that_cannot_be_laid_out_are_told(tmp_path: Path) -> None:
    (tmp_path / "dataset_cache").write_text("in the way", encoding="utf-8")
    with pytest.raises(MissingError, match="copy of the questions cannot be made"):
        lay_out_questions([], tmp_path, "bfcl_v4/x.parquet")


# -- what it scores with -----------------------------------------------------------------------------------------------


def extra_of(version: str | None, problem: str | None) -> dict[str, str | None]:
    return {"version": version, "problem": problem}


def test_a_client_that_can_score_says_with_what(tmp_path: Path) -> None:
    path = make_fake_client(tmp_path / "bin", extra=extra_of(EXTRA.version, None))
    program = find_program(LAYOUT, {"ENDPOINTS_BIN": str(path)})
    assert program.check_extra(EXTRA, LAYOUT) == f"the endpoints client scores with bfcl-eval {EXTRA.version}"


@pytest.mark.parametrize(
    ("told", "what"),
    [
        (extra_of(None, "ModuleNotFoundError: No module named 'bfcl_eval'"), "cannot score with bfcl-eval: ModuleNot"),
        (extra_of(EXTRA_OLD, None), f"would ask and score with bfcl-eval {EXTRA_OLD}"),
        (None, "its Python does not answer"),
    ],
    ids=["absent", "old", "silent"],
)
def test_one_that_cannot_is_told_before_it_runs(tmp_path: Path, told: dict[str, str | None] | None, what: str) -> None:
    path = make_fake_client(tmp_path / "bin", extra=told)
    program = find_program(LAYOUT, {"ENDPOINTS_BIN": str(path)})
    with pytest.raises(MissingError, match=what) as raised:
        program.check_extra(EXTRA, LAYOUT)
    assert raised.value.exit_code == 3
    assert "endpoints[bfcl]" in str(raised.value)


def test_the_probe_tells_what_keeps_a_module_from_being_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "broken_scorer.py").write_text("raise TypeError('1 argument')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    assert probe.usable("numpy", "numpy")["problem"] is None
    assert probe.usable("numpy", "numpy")["version"] == np.__version__
    assert probe.usable("no-such-package", "broken_scorer") == extra_of(None, "TypeError: 1 argument")
