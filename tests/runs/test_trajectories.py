"""What a leg of trajectories has beside others."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness import benchmarks, rules
from harness.benchmarks.base import Benchmark, Dataset
from harness.clients.loadgen.job import Replay
from harness.config.models import Agentic
from harness.engines.bodies import BodyStore
from harness.ledger import read_record, write_record
from harness.ledger.record import RunId
from harness.runs.trajectories import own_chats, replay_of, trajectories_of, turns_of
from tests.ledger.made_records import record
from tests.runs.made_legs import AGENTIC, agentic, leg

REPEATS = 4


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    bound().make_dataset(folder, seed=0)
    return folder


def bound(**asking: object) -> Benchmark:
    return benchmarks.get(AGENTIC, rules.load("v6.1"), Agentic.model_validate({"repeats": REPEATS, **asking}))


def of(benchmark: Benchmark, data: Path) -> Dataset:
    return benchmark.prepare(benchmark.dataset(data, "trajectories"), data, silent)


def silent(_: str) -> None:
    pass


def test_how_they_are_asked(data: Path) -> None:
    dataset = of(bound(), data)
    asked = agentic(agentic={"max_concurrency": 5, "tool_delays": True})
    assert replay_of(asked, dataset) == Replay(max_concurrency=5, tool_delays=True)
    assert replay_of(agentic(), dataset) == Replay(max_concurrency=32, tool_delays=False)
    assert replay_of(leg(), bound().dataset(data, "bfcl")) is None


def test_their_turns_are_counted(data: Path) -> None:
    dataset = of(bound(), data)
    asked = agentic()
    whole, one = turns_of(asked, dataset, dataset.rows), turns_of(asked, dataset, 3)
    assert whole is not None
    assert one is not None
    assert whole == REPEATS * one > 9
    assert turns_of(asked, bound().dataset(data, "bfcl"), 3) is None
    salted = agentic(agentic={"salt": "run"})
    assert turns_of(salted, of(bound(salt="run"), data), 3) == one, "known before the run's own chats are made"
    assert trajectories_of(agentic(agentic={"repeats": REPEATS}), dataset.rows) == 3
    with pytest.raises(ValueError, match="no 50 repeats"):
        trajectories_of(agentic(), dataset.rows)


def test_a_run_asks_chats_of_its_own_and_says_by_which_salt(tmp_path: Path, data: Path) -> None:
    benchmark = bound(salt="run")
    dataset = of(benchmark, data).head(3)
    before = record(RunId(system="BOX", benchmark=AGENTIC, scenario="Offline", leg="performance", attempt=1))
    write_record(tmp_path, before)
    texts = []
    salts = []
    for _ in range(2):
        with own_chats(benchmark, dataset, tmp_path, before, silent) as (asked, told):
            assert asked.chats is not None
            assert asked.chats.parent == tmp_path
            texts.append(bytes(BodyStore.open(asked.chats)[0]))
            assert read_record(tmp_path / "run.json").dataset.salt == told.dataset.salt == asked.salt is not None
            salts.append(asked.salt)
        assert [path.name for path in tmp_path.iterdir()] == ["run.json"]
    assert texts[0] != texts[1]
    assert salts[0] != salts[1]


@pytest.mark.parametrize("failing", [KeyboardInterrupt, RuntimeError])
def test_its_chats_are_gone_however_it_ends(tmp_path: Path, data: Path, failing: Callable[[], BaseException]) -> None:
    benchmark = bound(salt="run")
    run = record(RunId(system="BOX", benchmark=AGENTIC, scenario="Offline", leg="performance", attempt=1))
    with (
        pytest.raises((KeyboardInterrupt, RuntimeError)),
        own_chats(benchmark, of(benchmark, data).head(1), tmp_path, run, silent),
    ):
        raise failing()
    assert [path.name for path in tmp_path.iterdir()] == ["run.json"]


def test_what_all_runs_ask_stays_and_has_no_salt_of_a_run(tmp_path: Path, data: Path) -> None:
    benchmark = bound()
    dataset = of(benchmark, data)
    run = record(RunId(system="BOX", benchmark=AGENTIC, scenario="Offline", leg="performance", attempt=1))
    with own_chats(benchmark, dataset, tmp_path, run, silent) as (asked, told):
        assert (asked, told) == (dataset, run)
    assert dataset.chats is not None
    assert dataset.chats.is_file()
    assert list(tmp_path.iterdir()) == []
