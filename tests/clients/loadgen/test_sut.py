"""The SUT between a LoadGen that keeps what it was told and an engine that says what a test makes it say."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest

from harness.clients.loadgen import sut as sut_module
from harness.clients.loadgen.job import FAILED_MARKER
from harness.clients.loadgen.sut import LoadGenSut
from harness.engines.base import Failure, PromptTable, Replies, Sampling, TokenEvents, Workload
from harness.errors import EngineDied, RunBroke
from harness.ledger.samples import NONE, SampleState
from tests.clients.loadgen.fakes import FakeEngine, FakeLoadGen, answers, first_tokens
from tests.harness_process import wait_until

SAMPLING = Sampling(temperature=0.0, top_p=1.0, top_k=0, max_new_tokens=8, stop_token_ids=(1,), seed=0)
PROMPTS = PromptTable(np.ones(4000, np.int32), starts=np.zeros(4000, np.int64), lengths=np.arange(1, 4001))
MARKER = tuple(FAILED_MARKER.tolist())
FIRST_ID = 0


@dataclass
class Bench:
    """A SUT with its two neighbours, and what broke it."""

    sut: LoadGenSut
    engine: FakeEngine
    loadgen: FakeLoadGen
    broken: list[BaseException]

    def issue(self, *rows: int) -> None:
        """One query; response ids count from FIRST_ID in the order of issue."""
        first = FIRST_ID + self.sut.issued
        self.sut.issue(list(range(first, first + len(rows))), list(rows))

    def wait(self, completed: int) -> None:
        wait_until(lambda: self.sut.completed >= completed or self.broken, f"{completed} completions", 5)
        assert self.broken == []

    def wait_broken(self) -> BaseException:
        wait_until(lambda: self.broken, "what broke", 5)
        return self.broken[0]

    def of(self, number: int) -> list[tuple[str, tuple[int, ...], int]]:
        return self.loadgen.of(FIRST_ID + number)


Make = Callable[[str], Bench]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    made = []

    def build(scenario: str) -> Bench:
        loadgen, engine = FakeLoadGen(), FakeEngine()
        monkeypatch.setattr(sut_module, "loadgen", loadgen)
        broken: list[BaseException] = []
        server = scenario == "Server"
        sut = LoadGenSut(
            engine,
            PROMPTS,
            Workload("rows", SAMPLING, TokenEvents.FIRST if server else TokenEvents.NONE),
            min_answer_tokens=2,
            token_latencies=server,
            on_broken=broken.append,
        )
        sut.start()
        made.append(sut)
        return Bench(sut, engine, loadgen, broken)

    yield build
    for sut in made:
        sut.close()


@pytest.fixture
def server(make: Make) -> Bench:
    return make("Server")


@pytest.fixture
def offline(make: Make) -> Bench:
    return make("Offline")


def test_queries_are_handed_over_as_they_come(offline: Bench) -> None:
    offline.issue(5)
    offline.issue(7, 8)
    one, two = offline.engine.submitted
    assert list(one.numbers) == [0]
    assert list(two.numbers) == [1, 2]
    assert list(two.rows) == [7, 8]
    assert two.prompt(1).tolist() == [1] * 9
    assert offline.sut.issued == 3
    offline.sut.flush()
    assert offline.loadgen.calls == []


def test_a_first_token_and_its_completion_in_order_from_one_thread(server: Bench) -> None:
    server.issue(0)
    server.engine.say(first_tokens({0: 41}))
    server.engine.say(first_tokens({0: 42}, position=1))
    server.engine.say(answers({0: [41, 42, 43]}))
    server.wait(1)
    assert server.of(0) == [("first", (41,), 1), ("done", (41, 42, 43), 3)]
    assert {told.thread for told in server.loadgen.told} == {"completion"}


def test_first_tokens_go_before_completions_that_came_before_them(server: Bench) -> None:
    server.issue(0, 1)
    server.engine.say(answers({0: [1, 2]}), first_tokens({1: 9}))
    server.wait(1)
    assert server.loadgen.calls == [("first", 2), ("done", 1)]
    server.engine.say(answers({1: [9, 8]}))
    server.wait(2)
    assert server.of(1) == [("first", (9,), 1), ("done", (9, 8), 2)]


def test_an_answer_without_a_first_token_is_given_one(server: Bench) -> None:
    server.issue(0, 1)
    server.engine.say(answers({1: [5, 6], 0: [7, 8, 9]}))
    server.wait(2)
    assert server.of(0) == [("first", (7,), 1), ("done", (7, 8, 9), 3)]
    assert server.of(1) == [("first", (5,), 1), ("done", (5, 6), 2)]


def test_a_first_token_that_comes_late_or_twice_is_told_once(server: Bench) -> None:
    server.issue(0)
    server.engine.say(answers({0: [7, 8]}), first_tokens({0: 7}))
    server.engine.say(first_tokens({0: 7}))
    server.wait(1)
    server.issue(1)
    server.engine.say(first_tokens({1: 3}), first_tokens({1: 3}), answers({1: [3, 4]}))
    server.wait(2)
    for number in (0, 1):
        assert [kind for kind, *_ in server.of(number)] == ["first", "done"]


def test_offline_tells_no_first_tokens(offline: Bench) -> None:
    offline.issue(0)
    offline.engine.say(first_tokens({0: 7}))
    offline.engine.say(answers({0: [7, 8]}))
    offline.wait(1)
    assert offline.loadgen.calls == [("done", 1)]


@pytest.mark.parametrize("scenario", ["Server", "Offline"])
@pytest.mark.parametrize("length", [0, 1])
def test_an_answer_too_short_is_a_failed_sample(make: Make, scenario: str, length: int) -> None:
    bench = make(scenario)
    bench.issue(0, 1, 2)
    bench.engine.say(answers({0: [4, 5], 1: [6] * length, 2: [7, 8, 9]}))
    bench.wait(3)
    dones = {number: bench.of(number)[-1] for number in range(3)}
    assert dones == {0: ("done", (4, 5), 2), 1: ("done", MARKER, 2), 2: ("done", (7, 8, 9), 3)}
    (failure,) = bench.sut.record.failures
    assert (failure.number, failure.kind) == (1, "too_short")
    assert f"{length} tokens" in failure.message
    if scenario == "Server":
        assert bench.of(1)[0] == ("first", MARKER[:1], 1)


def test_a_failure_is_completed_with_the_marker(server: Bench) -> None:
    server.issue(0, 1)
    server.engine.say(first_tokens({0: 9}))
    server.engine.say(Failure(0, "fault", "it failed"), Failure(1, "fault", "it failed"))
    server.wait(2)
    assert server.of(0) == [("first", (9,), 1), ("done", MARKER, 2)]
    assert server.of(1) == [("first", MARKER[:1], 1), ("done", MARKER, 2)]


def test_a_mixed_batch_is_one_call_of_each_kind(server: Bench) -> None:
    server.issue(*range(6))
    server.engine.say(
        first_tokens({5: 1}), answers({0: [1, 2], 1: [3, 4]}), Failure(2, "fault", ""), answers({3: [5, 6, 7], 4: [8]})
    )
    server.wait(5)
    assert server.loadgen.calls == [("first", 6), ("done", 5)]
    assert server.of(3)[-1] == ("done", (5, 6, 7), 3)
    assert server.of(4)[-1] == ("done", MARKER, 2)


def test_many_completions_are_split(offline: Bench) -> None:
    n = 3000
    offline.issue(*range(n))
    offline.engine.say(answers({i: [i, i + 1, i + 2][: 2 + i % 2] for i in range(n)}))
    offline.wait(n)
    sizes = [size for _, size in offline.loadgen.calls]
    assert sum(sizes) == n
    assert max(sizes) <= 1024
    for told in offline.loadgen.told:
        number = told.id - FIRST_ID
        assert told.tokens == (number, number + 1, number + 2)[: 2 + number % 2]
        assert told.n_tokens == len(told.tokens)


def test_tokens_of_a_view_are_read_where_they_lie(offline: Bench) -> None:
    offline.issue(0, 1)
    event = answers({0: [1, 2, 3], 1: [4, 5]})
    event.tokens = np.concatenate([np.full(7, 99, np.int32), event.tokens])[7:]
    offline.engine.say(event)
    offline.wait(2)
    assert offline.of(0) == [("done", (1, 2, 3), 3)]
    assert offline.of(1) == [("done", (4, 5), 2)]


# -- what breaks -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("second", [answers({0: [1, 2]}), Failure(0, "fault", ""), answers({0: [1]})])
def test_an_engine_that_answers_twice_breaks_the_run(offline: Bench, second: object) -> None:
    offline.issue(0)
    offline.engine.say(answers({0: [1, 2]}))
    offline.engine.say(second)
    error = offline.wait_broken()
    assert isinstance(error, RunBroke)
    assert "request 0 twice" in error.what
    assert len(offline.of(0)) == 1


def test_a_batch_with_an_answer_too_many_leaves_a_record_that_adds_up(offline: Bench) -> None:
    for number in range(3):
        offline.issue(number)
    offline.engine.say(answers({0: [1, 2]}))
    offline.engine.say(answers({1: [1, 2], 2: [1, 2], 0: [1, 2]}))
    assert "request 0 twice" in offline.wait_broken().what
    record = offline.sut.record.frozen()
    assert record.done_ids.tolist() == [0]
    assert offline.loadgen.calls == [("done", 1)]


def test_an_exception_in_submit_breaks_the_run_and_never_reaches_loadgen(offline: Bench) -> None:
    offline.engine.refuses = RuntimeError("no room")
    offline.issue(0)
    assert str(offline.wait_broken()) == "no room"


def test_a_dead_engine_breaks_the_run(offline: Bench) -> None:
    offline.issue(0)
    offline.engine.die(EngineDied("it went away"))
    assert isinstance(offline.wait_broken(), EngineDied)


def test_an_answer_to_what_was_never_asked_breaks_the_run(offline: Bench) -> None:
    offline.engine.say(answers({3: [1, 2]}))
    offline.wait_broken()
    assert offline.loadgen.told == []


def test_once_closed_it_stands_still(offline: Bench) -> None:
    offline.issue(0)
    offline.sut.close()
    offline.issue(1)
    offline.engine.say(answers({0: [1, 2]}))
    time.sleep(0.05)
    assert offline.sut.issued == 1
    assert len(offline.engine.submitted) == 1
    assert offline.loadgen.told == []
    assert offline.broken == []


def test_stalled_only_while_samples_are_outstanding(offline: Bench) -> None:
    time.sleep(0.03)
    assert offline.sut.stalled_s() == 0
    asked = time.monotonic()
    offline.issue(0, 1)
    assert 0 <= offline.sut.stalled_s() <= time.monotonic() - asked  # counted from the query, not from the start
    time.sleep(0.03)
    assert offline.sut.stalled_s() >= 0.03
    told = time.monotonic()
    offline.engine.say(answers({0: [1, 2]}))
    offline.wait(1)
    assert offline.sut.stalled_s() <= time.monotonic() - told
    offline.engine.say(answers({1: [1, 2]}))
    offline.wait(2)
    assert offline.sut.stalled_s() == 0


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_the_rest_is_failed_when_the_engine_has_gone(server: Bench) -> None:
    server.issue(10)
    server.issue(20, 30, 40)
    server.engine.say(answers({3: [1, 2, 3]}, at_ns=500), Failure(0, "fault", ""))
    server.wait(2)
    record = server.sut.record.frozen().with_the_rest_failed("engine_died", "gone")
    answered, failed, _ = SampleState
    assert record.by_sample(PROMPTS.lengths)["state"].tolist() == [failed, failed, failed, answered]
    assert [(failure.number, failure.kind) for failure in record.failures] == [
        (0, "fault"), (1, "engine_died"), (2, "engine_died"),
    ]  # fmt: skip
    assert record.with_the_rest_failed("engine_died", "again").failures == record.failures


def test_columns_by_sample(server: Bench) -> None:
    before = time.monotonic_ns()
    server.issue(10)
    server.issue(20, 30, 40)
    server.engine.say(first_tokens({2: 1}))
    server.engine.say(answers({3: [1, 2, 3]}, at_ns=500), Failure(0, "fault", ""))
    server.wait(2)
    columns = server.sut.record.frozen().by_sample(PROMPTS.lengths)
    after = time.monotonic_ns()
    assert columns["index"].tolist() == [10, 20, 30, 40]
    assert columns["prompt_tokens"].tolist() == [11, 21, 31, 41]
    answered, failed, outstanding = SampleState
    assert columns["state"].tolist() == [failed, outstanding, outstanding, answered]
    assert columns["answer_tokens"].tolist() == [NONE, NONE, NONE, 3]
    assert columns["finish"].tolist() == [NONE, NONE, NONE, 0]
    assert columns["engine_first_token_ns"].tolist() == [NONE, NONE, NONE, 500]
    assert columns["engine_done_ns"].tolist() == [NONE, NONE, NONE, 501]
    issued, first, done = columns["issued_ns"], columns["first_token_ns"], columns["done_ns"]
    assert (before <= issued).all()
    assert issued[1] == issued[2] == issued[3]
    assert first[1] == NONE
    assert done.tolist()[:3] == [NONE] * 3
    assert issued[3] <= first[3] <= done[3] <= after
    assert issued[2] <= first[2]


def test_columns_of_a_run_in_which_nothing_was_asked(server: Bench) -> None:
    columns = server.sut.record.frozen().by_sample(PROMPTS.lengths)
    assert {len(column) for column in columns.values()} == {0}


def test_chats_where_token_ids_were_asked_for_end_the_test(offline: Bench) -> None:
    offline.issue(0)
    offline.engine.say(Replies([0], b"{}", [2], [5], [1], [2], [0]))
    error = offline.wait_broken()
    assert isinstance(error, RunBroke)
    assert "asked for token ids" in str(error)
