"""The benchmark of replays does what it says, on few made-up trajectories; how fast is nobody's matter here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.agentic import data, floor, ours, peer, running
from benchmarks.agentic.work import SAMPLING, Took, Work
from harness.benchmarks.qwen3_6_27b.dataset import TrajectorySet
from tests.doubles.recorded_answers import Recorded
from tests.doubles.recorded_server import RecordedServer, serving

PASSES = 2


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TrajectorySet:
    monkeypatch.setattr(data, "REAL", tmp_path / "not there")
    return data.trajectories(None, tmp_path)


@pytest.fixture
def server(source: TrajectorySet) -> Iterator[RecordedServer]:
    with serving(Recorded(source.trajectories), keep_bodies=True) as running_one:
        yield running_one


def work_on(server: RecordedServer, source: TrajectorySet, folder: Path, concurrency: int = 1) -> Work:
    store = data.store_of(source, folder / "chats")
    return Work(str(store.path), str(source.file.path), str(folder), server.port, concurrency, PASSES)


def test_the_floor_and_our_client_send_the_same_bytes(
    server: RecordedServer, source: TrajectorySet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = work_on(server, source, tmp_path)
    floor.main(work)
    asked, server.bodies = server.bodies, []
    ours.main(work, "inside")
    assert [_without_seed(each) for each in server.bodies] == [_without_seed(each) for each in asked]
    assert len(asked) == PASSES * source.turns
    took = [Took.parse(line) for line in capsys.readouterr().out.splitlines()]
    assert [(each.turns, each.failed) for each in took] == [(PASSES * source.turns, 0)] * 2
    assert all(0 < each.first_ms <= each.whole_ms and each.wall_s > 0 and (each.peak_mb or 0) > 0 for each in took)


def _without_seed(body: bytes) -> bytes:
    """Each of our requests has a seed of its own."""
    begin = body.index(b'"seed":') + len(b'"seed":')
    return body[:begin] + body[begin:].lstrip(b"0123456789")


def test_trajectories_are_under_way_at_once(server: RecordedServer, source: TrajectorySet, tmp_path: Path) -> None:
    ours.main(work_on(server, source, tmp_path, concurrency=3), "inside")
    places: dict[str, list[int]] = {}
    for each in server.asked:
        places.setdefault(each.session, []).append(each.turn)
    turns = {each.id: len(each.turns) for each in source.trajectories}
    assert {name: len(asked) for name, asked in places.items()} == {name: PASSES * n for name, n in turns.items()}
    asked = [each.session for each in server.asked]
    ended = [[at for at, session in enumerate(asked) if session == name][n - 1] for name, n in turns.items()]
    assert max(asked.index(name) for name in turns) < min(ended)  # all have begun before one of them ends


def test_the_peer_is_asked_for_the_same(source: TrajectorySet, tmp_path: Path) -> None:
    work = Work("", str(source.file.path), str(tmp_path), 1234, 4, PASSES)
    told = peer.configuration(work, tmp_path / "report")
    assert told["endpoint_config"] == {"endpoints": ["http://127.0.0.1:1234"], "api_type": "openai", "api_key": None}
    (dataset,) = told["datasets"]
    assert dataset["agentic_inference"]["num_trajectories_to_issue"] == PASSES * len(source.trajectories)
    assert told["model_params"]["max_new_tokens"] == SAMPLING.max_new_tokens


def test_a_contestant_runs_in_a_process_of_its_own(
    source: TrajectorySet, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = data.store_of(source, tmp_path / "chats")
    with running.server(source.file.path, 0.0) as port:
        work = Work(str(store.path), str(source.file.path), str(tmp_path), port, 1, 1)
        done = running.run(running.APART, work)
    assert (done.took.turns, done.took.failed) == (source.turns, 0)
    assert done.around_s > 0 and done.turns_per_s > 0
    assert f"{source.turns} turns answered of {source.turns} asked" in capsys.readouterr().out
