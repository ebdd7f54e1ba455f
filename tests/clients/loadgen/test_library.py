"""What LoadGen loads: prompts, or chats that lie in a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from pydantic import ValidationError

from harness import benchmarks
from harness.benchmarks.base import DataFile, Dataset
from harness.clients.loadgen.job import ChatsFile, LegJob, Replay
from harness.clients.loadgen.library import TrajectoryLibrary, open_library
from harness.engines.address import EngineAddress, lanes_each
from harness.engines.base import PromptTable, Sampling, TokenEvents
from harness.engines.bodies import BodyStore
from harness.errors import DatasetError

CHATS = [{"messages": [{"role": "user", "content": f"{row}" * 9000}]} for row in range(6)]


def job(chats: ChatsFile | None, rows: int = 6, **changes: Any) -> LegJob:
    fields: dict[str, Any] = {
        "folder": "/run",
        "data_dir": "/data",
        "dataset_sha256": "ab" * 32,
        "round": "v6.1",
        "benchmark": "b",
        "table": "t",
        "dataset": "b/t/accuracy",
        "chats": chats,
        "rows": rows,
        "model": "b",
        "scenario": "Server",
        "mode": "AccuracyOnly",
        "audit": "",
        "engine": EngineAddress(("/s",), ("/l",), lanes_each(1)),
        "sampling": Sampling(0.7, 0.8, 20, 150, (), 1, min_p=0.0),
        "min_answer_tokens": 1,
        "watchdog_s": 9,
    }
    return LegJob(**fields | changes)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    BodyStore.write(tmp_path / "chats", CHATS, tokens=[5, 6, 7, 8, 9, 10])
    return tmp_path / "chats"


def test_chats_are_loaded_and_let_go(path: Path) -> None:
    library = open_library(job(ChatsFile.of(path)))
    assert library.prompt_tokens.tolist() == [5, 6, 7, 8, 9, 10]
    library.load([5, 0, 1])
    library.unload([5, 0, 1])
    assert len(library.prompts) == 6
    assert not library.prompts.flat.size


def test_a_job_with_chats_says_where_they_lie(path: Path) -> None:
    asked = job(ChatsFile.of(path))
    again = LegJob.model_validate_json(asked.model_dump_json())
    assert again == asked
    workload = again.workload()
    assert (workload.dataset, workload.bodies) == ("b/t/accuracy", str(path.absolute()))
    assert workload.token_events is TokenEvents.FIRST
    assert job(None).workload().bodies == ""


def test_chats_that_were_changed_meanwhile(path: Path) -> None:
    found = ChatsFile.of(path)
    os.utime(path, ns=(1, 1))
    with pytest.raises(DatasetError, match="changed since the command began"):
        open_library(job(found))
    path.unlink()
    with pytest.raises(DatasetError, match="changed since the command began"):
        open_library(job(found))


def test_fewer_chats_than_are_asked(path: Path) -> None:
    with pytest.raises(DatasetError, match="6 chats where 7 are to be asked"):
        open_library(job(ChatsFile.of(path), rows=7))


def test_something_else_than_a_store(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.write_bytes(b"something else" * 9)
    with pytest.raises(DatasetError, match="not a store of chats"):
        open_library(job(ChatsFile.of(other)))


def test_trajectories_are_loaded_whole(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = BodyStore.write(path, CHATS, sessions=[0, 0, 0, 1, 2, 2], tokens=[5, 6, 7, 8, 9, 10])
    replay = Replay(max_concurrency=2, tool_delays=False)
    library = open_library(job(ChatsFile.of(path), rows=3, replay=replay))
    assert isinstance(library, TrajectoryLibrary)
    assert library.prompt_tokens.tolist() == [18, 8, 19]
    assert len(library.prompts) == 3
    asked: list[tuple[str, list[int]]] = []
    for name in ("will_need", "release"):
        monkeypatch.setattr(BodyStore, name, lambda _, rows, name=name: asked.append((name, list(rows))))
    library.load([2, 0])
    library.unload([1])
    assert asked == [("will_need", [4, 5, 0, 1, 2]), ("release", [3])]
    with pytest.raises(DatasetError, match="fewer trajectories than the 4 that are to be asked: no chat of session 3"):
        open_library(job(ChatsFile.of(path), rows=4, replay=replay))
    assert store.path == path


@pytest.mark.parametrize("scenario", ["SingleStream", "Offline", "Server"])
def test_a_job_of_trajectories_wants_first_tokens_and_no_counts(path: Path, scenario: str) -> None:
    replay = Replay(max_concurrency=2, tool_delays=True)
    asked = job(ChatsFile.of(path), scenario=scenario, replay=replay, logged="reply")
    assert LegJob.model_validate_json(asked.model_dump_json()) == asked
    assert asked.tells_first_tokens
    workload = asked.workload()
    assert (workload.token_events, workload.usage_optional) == (TokenEvents.FIRST, True)
    plain = job(ChatsFile.of(path), scenario="Offline").workload()
    assert (plain.token_events, plain.usage_optional) == (TokenEvents.NONE, False)
    with pytest.raises(ValidationError, match="no chats"):
        job(None, replay=replay)


def test_prompts_are_read_from_the_data_set(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    prompts = PromptTable.from_lists([[1, 2], [3]])
    files = (DataFile(tmp_path / "table", "cd" * 32),)
    dataset = Dataset("b/t", "t", prompts, ("", ""), (None, None), files, stand_in=True)
    asked: list[tuple[Path, str]] = []

    class Made:
        def dataset(self, data_dir: Path, table: str) -> Dataset:
            asked.append((data_dir, table))
            return dataset

    monkeypatch.setattr(benchmarks, "get", lambda *_: Made())
    library = open_library(job(None, dataset_sha256=dataset.sha256))
    library.load([1, 0])
    library.unload([1, 0])
    assert np.array_equal(library.prompt_tokens, [2, 1])
    assert asked == [(Path("/data"), "t")]
    with pytest.raises(DatasetError, match="the data set was changed"):
        open_library(job(None))
