"""Real LoadGen over the scripted engine where its samples are trajectories."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from harness.clients.loadgen.job import OUTCOME, WORKER_LOG, Outcome, Replay
from harness.engines.bodies import BodyStore
from harness.engines.group import EngineGroup
from harness.events import Event, LegProgress
from harness.ledger.samples import NONE, Int64, SampleState
from harness.ledger.turns import TURN_REPLIES, TurnState
from tests.clients.loadgen.trajectory_legs import Ran, job, run, scripted, store_of

pytestmark = pytest.mark.e2e

ANSWERED, FAILED, SKIPPED, OUTSTANDING = TurnState
TURNS = (3, 1, 4, 2)
LENGTH = 5
SERVICE = {"length": LENGTH, "first_token": {"mean_s": 0.004}, "per_token": {"mean_s": 0.001}}
FAULTY = "a data set with faults"
FAULTS = {"fail": [0, 5], "empty": [9]}
"""At the first turn of trajectory 0, the second of trajectory 2, the last of trajectory 3."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("legs")


@pytest.fixture(scope="module")
def engine(folder: Path) -> Iterator[EngineGroup]:
    with scripted(folder, **SERVICE, faults={FAULTY: FAULTS}) as group:
        yield group


@pytest.fixture(scope="module")
def store(folder: Path) -> BodyStore:
    return store_of(folder / "chats", TURNS)


def check_whole(ran: Ran) -> None:
    """LoadGen was content, every turn of every sample was answered, and the three files agree."""
    outcome, turns, samples = ran.outcome, ran.turns, ran.samples
    assert (outcome.error, outcome.failure_kinds) == (None, {})
    assert ran.detail.error_count == 0, ran.detail.errors
    assert (samples["state"] == SampleState.ANSWERED).all()
    rows, numbers = samples["index"], np.arange(len(samples["index"]))
    counts = np.array(TURNS)[rows]
    assert turns["sample"].tolist() == np.repeat(numbers, counts).tolist()
    assert turns["row"].tolist() == np.repeat(rows, counts).tolist()
    assert turns["turn"].tolist() == [turn for count in counts.tolist() for turn in range(count)]
    assert (turns["chat"] == np.array([0, 3, 4, 8])[turns["row"]] + turns["turn"]).all()
    assert (turns["state"] == ANSWERED).all()
    assert (turns["answer_tokens"] == LENGTH).all()
    assert outcome.turns is not None
    assert outcome.turns.answered == outcome.turns.issued == outcome.turns.turns == len(turns["turn"])
    assert (samples["answer_tokens"] == LENGTH * counts).all()
    assert outcome.counts.output_tokens == LENGTH * int(counts.sum())
    assert (samples["prompt_tokens"] == sums(turns["prompt_tokens"], turns["sample"])).all()
    check_times(turns, samples)
    replies = {(each.sample, each.turn): each for each in ran.replies}
    for sample, turn, row, chat in zip(
        *(turns[name].tolist() for name in ("sample", "turn", "row", "chat")), strict=True
    ):
        reply = replies.pop((sample, turn))
        assert (reply.row, reply.reply, reply.failure) == (row, {"content": f"This is reply {chat}."}, None)
    assert not replies


def sums(values: Int64, of: Int64) -> Int64:
    """By sample."""
    return np.bincount(of, weights=values).astype(np.int64)


def check_times(turns: Any, samples: Any) -> None:
    """A turn is asked when the one before ended; LoadGen is told of the first turn's first token and the last's end."""
    assert (turns["issued_ns"] <= turns["first_token_ns"]).all()
    assert (turns["first_token_ns"] <= turns["done_ns"]).all()  # a machine that stalls tells both at once
    same = np.diff(turns["sample"]) == 0
    assert (turns["issued_ns"][1:][same] >= turns["done_ns"][:-1][same]).all()
    first, last = turns["turn"] == 0, np.append(~same, True)
    assert (samples["engine_first_token_ns"] == turns["first_token_ns"][first]).all()
    assert (samples["engine_done_ns"] == turns["done_ns"][last]).all()
    assert (samples["first_token_ns"] >= turns["first_token_ns"][first]).all()
    assert (samples["done_ns"] >= turns["done_ns"][last]).all()
    many = np.array(TURNS)[samples["index"]] > 1
    told_early = samples["first_token_ns"][many] < turns["issued_ns"][last][many]
    assert told_early.mean() > 0.5
    assert (samples["first_token_ns"] <= samples["done_ns"]).all()


def most_at_once(ran: Ran) -> int:
    """How many trajectories were under way together: from a first turn's issue to a last turn's end."""
    turns = ran.turns
    first, last = turns["turn"] == 0, np.append(np.diff(turns["sample"]) != 0, True)
    begun, ended = np.sort(turns["issued_ns"][first]), np.sort(turns["done_ns"][last])
    return max(int((begun <= at).sum() - (ended < at).sum()) for at in begun.tolist())


def test_single_stream(folder: Path, engine: EngineGroup, store: BodyStore) -> None:
    ran = run(job(folder / "single", engine, store, "SingleStream", 1, conf={"min_query_count": 20}))
    check_whole(ran)
    assert len(ran.samples["index"]) == ran.detail.integer("result_query_count") == 20
    assert most_at_once(ran) == 1
    latencies = ran.samples["done_ns"] - ran.samples["issued_ns"]
    whole_p90_ns = ran.detail.integer("result_90.00_percentile_latency_ns")
    assert latencies.min() <= whole_p90_ns <= latencies.max() + 50_000_000
    summary = (ran.folder / "logs/mlperf_log_summary.txt").read_text()
    assert "token" not in summary.lower().split("test parameters used")[0]  # it takes them, and says nothing of them


def test_offline_keeps_to_its_concurrency(folder: Path, engine: EngineGroup, store: BodyStore) -> None:
    ran = run(job(folder / "offline", engine, store, "Offline", 3, conf={"min_query_count": 24}))
    check_whole(ran)
    assert len(ran.samples["index"]) == 24
    assert most_at_once(ran) == 3
    assert np.bincount(ran.samples["index"]).tolist() == [6] * 4
    assert ran.outcome.loaded_rows == 4


def test_server_gets_poisson_arrivals_and_a_limit_of_its_own(
    folder: Path, engine: EngineGroup, store: BodyStore
) -> None:
    conf = {"target_qps": 40, "min_query_count": 30, "target_latency": 7_000}
    ran = run(job(folder / "server", engine, store, "Server", 64, conf=conf))
    check_whole(ran)
    assert ran.detail.integer("effective_target_latency_ns") == 7_000_000_000
    gaps = np.diff(ran.samples["issued_ns"])
    assert len(gaps) >= 29
    assert gaps.std() > 0.4 * gaps.mean()


def test_tools_run_beside_the_watchdog_and_outside_of_latencies(folder: Path, engine: EngineGroup) -> None:
    delays_ns = [0, 1_600_000_000, 0, 5_000_000]
    slow = store_of(folder / "slow", (2, 2), delays_ns)
    replay = Replay(max_concurrency=1, tool_delays=True)
    asked = job(
        folder / "tools", engine, slow, "Offline", 1, replay=replay, watchdog_s=1.0, conf={"min_query_count": 2}
    )
    ran = run(asked)
    assert ran.outcome.error is None
    turns = ran.turns
    waited = turns["issued_ns"][1::2] - turns["done_ns"][::2]
    assert (waited >= np.array([0, 1_600_000_000, 0, 5_000_000])[turns["chat"][1::2]]).all()
    assert ((turns["done_ns"] - turns["issued_ns"]) < 1_600_000_000).all()
    assert most_at_once(ran) == 1


@pytest.mark.parametrize("max_concurrency", [1, 8])
def test_what_follows_a_failed_turn_is_skipped(
    folder: Path, engine: EngineGroup, store: BodyStore, max_concurrency: int
) -> None:
    name = f"faults{max_concurrency}"
    ran = run(
        job(folder / name, engine, store, "Offline", max_concurrency, dataset=FAULTY, conf={"min_query_count": 8})
    )
    wanted = {
        0: [FAILED, SKIPPED, SKIPPED],
        1: [ANSWERED],
        2: [ANSWERED, FAILED, SKIPPED, SKIPPED],
        3: [ANSWERED, FAILED],
    }
    samples, turns, outcome = ran.samples, ran.turns, ran.outcome
    assert sorted(samples["index"].tolist()) == [0, 0, 1, 1, 2, 2, 3, 3]
    assert ran.states() == [wanted[row] for row in samples["index"].tolist()]
    assert (samples["state"] == np.where(samples["index"] == 1, SampleState.ANSWERED, SampleState.FAILED)).all()
    assert ((turns["issued_ns"] == NONE) == (turns["state"] == SKIPPED)).all()
    assert (turns["done_ns"][turns["state"] != ANSWERED] == NONE).all()
    assert outcome.turns is not None
    assert outcome.turns.model_dump() == {"issued": 12, "answered": 6, "failed": 6, "skipped": 8, "outstanding": 0}
    assert outcome.error is None
    assert outcome.failure_kinds == {"scripted": 4, "empty_answer": 2}
    said = {failure.index: failure.message for failure in outcome.failures}
    assert said[0].startswith("turn 1 of 3 (chat 0): ")
    assert said[2].startswith("turn 2 of 4 (chat 5): ")
    assert said[3] == "turn 2 of 2 (chat 9): a reply without content, reasoning or tool calls"
    assert sorted((each.row, each.turn, each.failure is None) for each in ran.replies) == sorted(
        [(0, 0, False), (1, 0, True), (2, 0, True), (2, 1, False), (3, 0, True), (3, 1, False)] * 2
    )
    answers = samples["answer_tokens"].tolist()
    assert answers == [LENGTH if row == 1 else NONE for row in samples["index"].tolist()]


def test_the_engine_dies_in_the_midst_of_trajectories(folder: Path, store: BodyStore) -> None:
    with scripted(folder, **SERVICE, faults={"*": {"die": 6}}) as group:
        ran = run(job(folder / "death", group, store, "Offline", 2, conf={"min_query_count": 8}))
    outcome, samples = ran.outcome, ran.samples
    assert outcome.engine_died
    assert outcome.exit_code == 4
    assert outcome.counts.outstanding == 0
    assert set(samples["state"].tolist()) <= {SampleState.ANSWERED, SampleState.FAILED}
    assert outcome.turns is not None
    assert outcome.turns.outstanding == 0
    assert 1 <= outcome.turns.failed <= 2
    assert outcome.turns.skipped >= 1
    victims = {
        states
        for row, states in zip(samples["index"], map(tuple, ran.states()), strict=True)
        if FAILED in states and row == 2
    }
    assert (ANSWERED, ANSWERED, FAILED, SKIPPED) in victims
    died = [each for each in ran.replies if each.failure is not None]
    assert {each.failure[0] for each in died if each.failure} == {"engine_died"}
    assert len(died) == outcome.turns.failed
    assert len(ran.replies) == outcome.turns.issued


def test_an_engine_that_says_nothing_more_is_given_up(folder: Path, store: BodyStore) -> None:
    with scripted(folder, **SERVICE, faults={"*": {"hang": [2, 6]}}) as group:
        ran = run(job(folder / "hang", group, store, "Offline", 2, watchdog_s=1.5, conf={"min_query_count": 8}))
    assert ran.outcome.engine_died
    assert ran.outcome.error is not None
    assert "while samples were outstanding: replica 0 owes 2" in ran.outcome.error
    assert "were not begun" in ran.outcome.error
    assert ran.outcome.turns is not None
    assert ran.outcome.turns.failed == 2


def test_what_was_measured_is_kept_when_it_is_interrupted(folder: Path, store: BodyStore) -> None:
    seen: list[LegProgress] = []

    def interrupt(event: Event) -> None:
        if isinstance(event, LegProgress):
            seen.append(event)
            if event.turns and [before.turns for before in seen].count(event.turns) == 2:  # no more of them comes
                raise KeyboardInterrupt

    with scripted(folder, **SERVICE, faults={"*": {"hang": [6]}}) as group:
        asked = job(folder / "interrupted", group, store, "Offline", 1, conf={"min_query_count": 8})
        with pytest.raises(KeyboardInterrupt):
            run(asked, interrupt)
    path = folder / "interrupted"
    ran = Ran(path, Outcome.model_validate_json((path / OUTCOME).read_bytes()))
    outcome = ran.outcome
    assert outcome.exit_code == 130
    assert outcome.counts.failed == 0
    assert outcome.turns is not None
    assert seen[-1].turns == outcome.turns.answered == len(ran.replies) >= 2
    assert outcome.turns.issued == outcome.turns.answered + 1
    assert (outcome.turns.failed, outcome.turns.skipped) == (0, 0)
    states, samples = ran.states(), ran.samples
    assert [ANSWERED, ANSWERED, OUTSTANDING, OUTSTANDING] in states
    whole = [set(each) == {ANSWERED} for each in states]
    assert ((samples["state"] == SampleState.ANSWERED) == whole).all()
    assert set(samples["state"][~np.array(whole)].tolist()) == {SampleState.OUTSTANDING}


def test_replies_that_find_no_room_break_the_run_and_cost_no_column(
    folder: Path, engine: EngineGroup, store: BodyStore
) -> None:
    asked = job(folder / "full", engine, store, "Offline", 3, conf={"min_query_count": 8})
    (folder / "full" / TURN_REPLIES).symlink_to("/dev/full")
    ran = run(asked)
    assert ran.outcome.error is not None
    assert ran.outcome.error.startswith("cannot write: No space left")
    assert ran.outcome.exit_code == 3
    assert not ran.outcome.engine_died
    assert (ran.turns["state"] == ANSWERED).all()
    assert ran.outcome.counts.answered == 8


def test_a_log_that_finds_no_room_costs_nothing_of_what_was_measured(folder: Path, store: BodyStore) -> None:
    with scripted(folder, **SERVICE, faults={"*": {"die": 6}}) as group:
        asked = job(folder / "no log", group, store, "Offline", 2, conf={"min_query_count": 8})
        (folder / "no log" / WORKER_LOG).symlink_to("/dev/full")
        ran = run(asked)
    assert ran.outcome.engine_died
    assert ran.outcome.turns is not None
    assert len(ran.turns["state"]) == ran.outcome.turns.turns
    assert len(ran.replies) == ran.outcome.turns.issued
