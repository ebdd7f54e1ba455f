"""What stops a leg before it starts. How legs run and break is tested end to end."""

from __future__ import annotations

import dataclasses
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.benchmarks.base import Dataset
from harness.clients.loadgen.job import OUTCOME, Outcome
from harness.engines.base import PromptTable
from harness.engines.bodies import BodyStore
from harness.errors import ConfigError, EngineDied, MissingError, RunBroke
from harness.events import Event, LegFinished, LegStarted, Note, ignore
from harness.ledger import ResultsStore, State, read_record, write_record
from harness.ledger.record import Counts
from harness.runs import endings
from harness.runs import leg as leg_module
from harness.runs.leg import Group, run_leg
from harness.runs.leg_settings import LegSettings
from tests.ledger.made_records import record
from tests.runs.made_legs import agentic, engine_info, leg


@dataclass
class Disk:
    """What ``shutil.disk_usage`` says."""

    free: int


def benchmark() -> Any:
    """One of which every run asks the same."""
    return SimpleNamespace(
        table=lambda which, _: which, sampling=lambda *_, **__: None, prepare_run=lambda dataset, *_: dataset
    )


def group(store: ResultsStore) -> Group:
    """An engine that may not be connected to, and a data set of ten prompts."""
    prompts = PromptTable.from_lists([[1] * 100] * 10)
    tables: Any = {
        which: Dataset(which, which, prompts, ("a",) * 10, (None,) * 10, (), stand_in=True)
        for which in ("performance", "accuracy")
    }
    info = engine_info(max_total_tokens=200_000)
    engine: Any = SimpleNamespace(info=info, ending=lambda: None, occupancy=lambda: None)
    return Group(benchmark(), tables, store.root, engine, store, ["run_harness"], ignore)


@pytest.mark.parametrize(("name", "free"), [("performance", 200 << 20), ("accuracy", 258 << 20)])
def test_a_disk_without_room_for_the_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, free: int
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(free))
    with pytest.raises(MissingError) as caught:
        run_leg(leg(name=name), group(ResultsStore(tmp_path)))
    assert f"{free >> 20} MiB free" in caught.value.what
    assert caught.value.where == str(tmp_path)
    assert "--results_dir" in (caught.value.mend or "")
    assert list(tmp_path.iterdir()) == []


def test_replies_of_turns_want_room_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A performance leg logs no answers; one of trajectories keeps what each turn came to."""
    rows, turns = 40, 10
    chats = ({"messages": [{"role": "user", "content": "x"}]} for _ in range(rows * turns))
    store = BodyStore.write(tmp_path / "chats", chats, [row for row in range(rows) for _ in range(turns)])
    results = ResultsStore(tmp_path / "results")
    results.root.mkdir()
    made = group(results)
    library = dataclasses.replace(
        made.datasets["performance"],
        prompts=PromptTable.empty(rows),
        subsets=("coding",) * rows,
        ground_truth=(None,) * rows,
        chats=store.path,
        trajectories=True,
    )
    made = dataclasses.replace(made, datasets={**made.datasets, "performance": library})
    needed = (256 << 20) + rows * turns * (1024 * 16 + 1024)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(needed - 1))
    with pytest.raises(MissingError, match=f"up to {needed >> 20} MiB needed"):
        run_leg(agentic(), made)
    warmed: list[None] = []
    monkeypatch.setattr(leg_module, "_warm_up", lambda *_: warmed.append(None))
    monkeypatch.setattr(leg_module, "_begin", _stop)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(needed))
    with pytest.raises(KeyboardInterrupt):
        run_leg(agentic(), made)
    assert len(warmed) == 1


def _stop(*_: object) -> None:
    raise KeyboardInterrupt


def test_a_prompt_too_long_is_told_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="more than the engine takes"):
        run_leg(leg(output_caps={"performance": 199_901}), group(ResultsStore(tmp_path)))
    assert list(tmp_path.iterdir()) == []


def test_a_full_disk_does_not_hide_why_a_leg_broke(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = ResultsStore(tmp_path)
    run_id, folder = store.new_attempt("BOX", "gpt-oss-120b", "Offline", "performance")
    told: list[Event] = []

    def broken(*_: object) -> Outcome:
        raise RunBroke("it went up in smoke")

    def full(*_: object) -> None:
        raise MissingError("cannot write: No space left on device", where=folder / "run.json")

    monkeypatch.setattr(leg_module, "_warm_up", lambda *_: None)
    monkeypatch.setattr(leg_module, "_begin", lambda *_: (folder, record(run_id), LegSettings("", 10)))
    monkeypatch.setattr(leg_module, "_job", lambda *_: None)
    monkeypatch.setattr(leg_module, "run_job", broken)
    monkeypatch.setattr(endings, "write_record", full)
    members = dataclasses.replace(
        group(store),
        observer=told.append,
        benchmark=benchmark(),
    )
    with pytest.raises(RunBroke, match="up in smoke"):
        run_leg(leg(), members)
    notes = [event.text for event in told if isinstance(event, Note)]
    assert any("No space left on device" in note for note in notes)
    [started] = [event for event in told if isinstance(event, LegStarted)]
    assert started.expected_s is not None
    assert started.expected_s >= 600  # 1.1 times the minimum at the rate that is configured, in whole passes
    assert any(isinstance(event, LegFinished) and event.verdict == "broken" for event in told)


def test_a_disk_that_is_full_when_loadgen_has_ended_costs_no_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ResultsStore(tmp_path)
    run_id, folder = store.new_attempt("BOX", "gpt-oss-120b", "Offline", "performance")
    write_record(folder, record(run_id))
    counts = Counts(issued=1, answered=1, failed=0, outstanding=0, output_tokens=2)
    outcome = Outcome(counts=counts, failures=[], error=None, exit_code=0, library_rows=1, loaded_rows=1)

    def ended_well(*_: object) -> Outcome:
        (folder / OUTCOME).write_text(outcome.model_dump_json())
        return outcome

    def full(*_: object) -> None:
        raise MissingError("cannot write: No space left on device", where=folder / "run.json")

    monkeypatch.setattr(leg_module, "_warm_up", lambda *_: None)
    monkeypatch.setattr(leg_module, "_begin", lambda *_: (folder, record(run_id), LegSettings("", 10)))
    monkeypatch.setattr(leg_module, "_job", lambda *_: None)
    monkeypatch.setattr(leg_module, "run_job", ended_well)
    members = dataclasses.replace(group(store), benchmark=benchmark())
    with monkeypatch.context() as patch:
        patch.setattr(endings, "write_record", full)
        with pytest.raises(MissingError, match="No space left"):
            run_leg(leg(), members)
    assert read_record(folder / "run.json").state is State.RUNNING
    endings.end_dead_runs(store, ignore)
    kept = read_record(folder / "run.json")
    assert (kept.state, kept.counts) == (State.MEASURED, counts)


def test_how_an_engine_ended_may_be_known_a_moment_later(tmp_path: Path) -> None:
    counts = Counts(issued=1, answered=0, failed=1, outstanding=0, output_tokens=0)
    outcome = Outcome(
        counts=counts,
        failures=[],
        error="it went away",
        exit_code=4,
        engine_died=True,
        library_rows=1,
        loaded_rows=1,
    )
    told = iter([None, None, "process 1 of the engine was ended by SIGKILL"])
    engine: Any = SimpleNamespace(ending=lambda: next(told), logs=(tmp_path / "engine.log",))
    with pytest.raises(EngineDied) as caught:
        leg_module._raise_if_broken(outcome, tmp_path, engine)
    assert caught.value.what == (
        "the run broke: process 1 of the engine was ended by SIGKILL\n  the worker saw: it went away"
    )
    assert str(tmp_path / "engine.log") in (caught.value.mend or "")


def test_a_run_that_broke_of_itself_does_not_wait_for_its_engine(tmp_path: Path) -> None:
    counts = Counts(issued=1, answered=0, failed=0, outstanding=1, output_tokens=0)
    outcome = Outcome(counts=counts, failures=[], error="no sense", exit_code=4, library_rows=1, loaded_rows=1)
    asked: list[None] = []
    engine: Any = SimpleNamespace(ending=lambda: asked.append(None), logs=())
    with pytest.raises(RunBroke, match="the run broke: no sense"):
        leg_module._raise_if_broken(outcome, tmp_path, engine)
    assert len(asked) == 1


def test_what_was_answered_after_the_server_ended_is_no_run(tmp_path: Path) -> None:
    """Another server at its port answers as well, and nobody knows how fast that is."""
    counts = Counts(issued=1, answered=1, failed=0, outstanding=0, output_tokens=9)
    outcome = Outcome(counts=counts, failures=[], error=None, exit_code=0, library_rows=1, loaded_rows=1)
    alive: Any = SimpleNamespace(ending=lambda: None, logs=())
    leg_module._raise_if_broken(outcome, tmp_path, alive)
    gone: Any = SimpleNamespace(ending=lambda: "server 0 ended with status 3", logs=(tmp_path / "engine.log",))
    with pytest.raises(EngineDied, match=r"server 0 ended with status 3\n.*who answered is not known") as caught:
        leg_module._raise_if_broken(outcome, tmp_path, gone)
    assert str(tmp_path / "engine.log") in (caught.value.mend or "")
