"""The SUT where chats are asked: what LoadGen is handed of replies, and which of them are failed samples."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.benchmarks.base import Logged
from harness.clients.loadgen import sut as sut_module
from harness.clients.loadgen.job import FAILED_DATA
from harness.clients.loadgen.sut import LoadGenSut
from harness.engines.base import NOT_TOLD, Failure, PromptTable, Replies, Sampling, TokenEvents, Tokens, Workload
from harness.errors import RunBroke
from harness.ledger.samples import NONE, SampleState
from tests.clients.loadgen.fakes import FakeEngine, FakeLoadGen, answers, replies
from tests.harness_process import wait_until

SAMPLING = Sampling(temperature=0.7, top_p=0.8, top_k=20, max_new_tokens=150, stop_token_ids=(), seed=0)
NO_ID = np.array([-1], np.int32).tobytes()
TEXTS = {0: '{"brand": "Kōen"}', 1: "x", 2: "größer 中 " * 40}


@dataclass
class Bench:
    """A SUT with its two neighbours, and what broke it."""

    sut: LoadGenSut
    engine: FakeEngine
    loadgen: FakeLoadGen
    broken: list[BaseException]

    def wait(self, completed: int) -> None:
        wait_until(lambda: self.sut.completed >= completed or self.broken, f"{completed} completions", 5)
        assert self.broken == []

    def wait_broken(self) -> BaseException:
        wait_until(lambda: self.broken, "what broke", 5)
        return self.broken[0]


Make = Callable[..., Bench]


def bench(scenario: str, loadgen: FakeLoadGen, logged: Logged = "content") -> Bench:
    engine, broken, server = FakeEngine(), [], scenario == "Server"
    sut = LoadGenSut(
        engine,
        PromptTable.empty(4000),
        Workload("x", SAMPLING, TokenEvents.FIRST if server else TokenEvents.NONE, "/chats"),
        min_answer_tokens=2,
        token_latencies=server,
        on_broken=broken.append,
        logged=logged,
    )
    sut.start()
    return Bench(sut, engine, loadgen, broken)


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    made = []

    def build(scenario: str, logged: Logged = "content") -> Bench:
        loadgen = FakeLoadGen()
        monkeypatch.setattr(sut_module, "loadgen", loadgen)
        made.append(bench(scenario, loadgen, logged))
        return made[-1]

    yield build
    for each in made:
        each.sut.close()


@pytest.mark.parametrize("scenario", ["Server", "Offline"])
@pytest.mark.parametrize("together", [True, False])
def test_loadgen_is_handed_the_content_and_the_servers_count(make: Make, scenario: str, together: bool) -> None:
    made = make(scenario)
    made.sut.issue([0, 1, 2], [7, 8, 9])
    events = [replies(TEXTS)] if together else [replies({number: text}) for number, text in TEXTS.items()]
    for event in events:
        made.engine.say(event)
    made.wait(3)
    for number, text in TEXTS.items():
        assert made.loadgen.said(number)[-1] == ("done", text.encode(), 5)
        if scenario == "Server":
            assert made.loadgen.said(number)[0] == ("first", NO_ID, 1)
    assert len(made.loadgen.told) == (6 if scenario == "Server" else 3)


def test_a_first_token_that_came_is_told_once_and_before_the_rest(make: Make) -> None:
    made = make("Server")
    made.sut.issue([0, 1], [7, 8])
    made.engine.say(Tokens([1], [0], np.array([-1], np.int32), 5))
    made.engine.say(replies({0: "later", 1: "sooner"}))
    made.wait(2)
    assert made.loadgen.said(1) == [("first", NO_ID, 1), ("done", b"sooner", 5)]
    assert made.loadgen.said(0) == [("first", NO_ID, 1), ("done", b"later", 5)]
    assert made.loadgen.calls == [("first", 1), ("first", 1), ("done", 2)]
    assert {told.thread for told in made.loadgen.told} == {"completion"}


@pytest.mark.parametrize("scenario", ["Server", "Offline"])
def test_replies_that_are_no_answer_are_failed_samples(make: Make, scenario: str) -> None:
    made = make(scenario)
    made.sut.issue([0, 1, 2, 3], [10, 20, 30, 40])
    made.engine.say(replies({0: "", 1: "well"}), Failure(2, "timeout", "late"))
    made.engine.say(replies({3: "one"}, tokens=1))
    made.wait(4)
    last = {number: made.loadgen.said(number)[-1] for number in range(4)}
    marker = ("done", FAILED_DATA, 2)
    assert last == {0: marker, 1: ("done", b"well", 5), 2: marker, 3: marker}
    kinds = {failure.number: failure.kind for failure in made.sut.record.failures}
    assert kinds == {0: "empty_answer", 2: "timeout", 3: "too_short"}
    columns = made.sut.record.frozen().by_sample(np.arange(100))
    answered, failed, _ = SampleState
    assert columns["state"].tolist() == [failed, answered, failed, failed]
    assert columns["prompt_tokens"].tolist() == [10, 20, 30, 40]
    assert columns["answer_tokens"].tolist() == [NONE, 5, NONE, NONE]
    assert columns["engine_done_ns"].tolist() == [NONE, 8, NONE, NONE]


def test_loadgen_is_handed_all_of_a_reply_where_that_is_logged(make: Make) -> None:
    made = make("Offline", "reply")
    made.sut.issue([0, 1, 2, 3], [0, 1, 2, 3])
    said = [
        b'{"content":"x", "finish_reason": "stop"}',
        b'{"content":"","reasoning":"well"}',
        b'{"content":"","tool_calls":[{"function":{"name":"f","arguments":"{}"}}]}',
        b'{"content":"","tool_calls":[],"finish_reason":"stop"}',
    ]
    for number, data in enumerate(said):
        made.engine.say(Replies([number], data, [len(data)], [5], [1], [2], [0]))
    made.wait(4)
    assert [told.data for told in made.loadgen.told] == [*said[:3], FAILED_DATA]
    (failure,) = made.sut.record.failures
    assert (failure.kind, failure.message) == ("empty_answer", "a reply without content, reasoning or tool calls")


def test_a_reply_whose_tokens_nobody_counted_is_not_too_short(make: Make) -> None:
    made = make("Offline")
    made.sut.issue([0, 1], [0, 1])
    made.engine.say(replies({0: "well"}, tokens=NOT_TOLD), replies({1: "one"}, tokens=1))
    made.wait(2)
    assert made.loadgen.said(0) == [("done", b"well", 0)]
    assert {failure.number: failure.kind for failure in made.sut.record.failures} == {1: "too_short"}
    assert made.sut.record.frozen().by_sample(np.zeros(9, np.int64))["answer_tokens"].tolist() == [NONE, NONE]


def test_all_of_a_batch_may_be_empty(make: Make) -> None:
    made = make("Offline")
    made.sut.issue([0, 1], [0, 1])
    made.engine.say(replies({0: "", 1: ""}))
    made.wait(2)
    assert [told.data for told in made.loadgen.told] == [FAILED_DATA] * 2


def test_no_text_is_the_marker_of_a_failed_sample() -> None:
    with pytest.raises(UnicodeDecodeError):
        FAILED_DATA.decode()


def test_many_replies_are_split(make: Make) -> None:
    made = make("Offline")
    made.sut.issue(list(range(3000)), list(range(3000)))
    made.engine.say(replies({number: f"reply {number}" for number in range(3000)}))
    made.wait(3000)
    assert max(size for _, size in made.loadgen.calls) <= 1024
    assert [told.data for told in made.loadgen.told] == [f"reply {number}".encode() for number in range(3000)]


@settings(max_examples=25, deadline=None)
@given(texts=st.lists(st.text(min_size=1), min_size=1, max_size=8))
def test_any_text_comes_as_it_was_said(texts: list[str]) -> None:
    loadgen, before = FakeLoadGen(), sut_module.loadgen
    try:
        sut_module.loadgen = loadgen
        made = bench("Offline", loadgen)
        made.sut.issue(list(range(len(texts))), [0] * len(texts))
        made.engine.say(replies(dict(enumerate(texts))))
        made.wait(len(texts))
        assert [told.data.decode() for told in loadgen.told] == texts
        made.sut.close()
    finally:
        sut_module.loadgen = before


# -- what breaks -------------------------------------------------------------------------------------------------------


def test_token_ids_where_chats_were_asked_end_the_test(make: Make) -> None:
    made = make("Offline")
    made.sut.issue([0], [0])
    made.engine.say(answers({0: [1, 2, 3]}))
    error = made.wait_broken()
    assert isinstance(error, RunBroke)
    assert "this leg asked for chats" in str(error)
    assert made.loadgen.told == []


@pytest.mark.parametrize(
    "data", [b"", b"{}", b"[]", b'{"content": null}', b'{"content": 3}', b'{"content": "a', b"\xff"]
)
def test_a_reply_that_is_none_ends_the_test(make: Make, data: bytes) -> None:
    made = make("Server")
    made.sut.issue([0], [0])
    made.engine.say(Replies([0], data, [len(data)], [5], [1], [2], [0]))
    error = made.wait_broken()
    assert isinstance(error, RunBroke)
    assert "reply to request 0 is none" in str(error)


def test_a_reply_that_comes_twice_ends_the_test(make: Make) -> None:
    made = make("Offline")
    made.sut.issue([0], [0])
    made.engine.say(replies({0: "once"}))
    made.engine.say(replies({0: "twice"}))
    assert "request 0 twice" in str(made.wait_broken())
    assert made.loadgen.said(0) == [("done", b"once", 5)]
