from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.benchmarks.base import Chats
from harness.benchmarks.gpt_oss_120b.logged import token_ids
from harness.engines.base import REPLICA_DIED, Failure, PromptTable, Replies, Requests, Sampling
from harness.engines.bodies import BodyStore
from harness.errors import EngineDied, RunBroke
from harness.runs.warmup import ask, steady_rate, warm_up
from tests.clients.loadgen.fakes import FakeEngine, answers, replies

SAMPLING = Sampling(temperature=0.0, top_p=1.0, top_k=0, max_new_tokens=8, stop_token_ids=(1,), seed=0)
SECOND = 1_000_000_000


def prompts(n: int) -> PromptTable:
    return PromptTable.from_lists([[7]] * n)


def test_the_rate_is_that_of_a_full_engine() -> None:
    ramp = [10 * SECOND + i * SECOND // 10 for i in range(9)]  # nothing for ten seconds, then ten a second
    assert steady_rate(ramp, seconds=10.8) == pytest.approx(10)


def test_answers_that_come_all_at_once() -> None:
    assert steady_rate([5 * SECOND] * 8, seconds=2.0) == 4.0


@pytest.mark.parametrize(("done", "seconds"), [([], 0.0), ([], 3.0), ([SECOND], 0.0)])
def test_nothing_measured(done: list[int], seconds: float) -> None:
    assert steady_rate(done, seconds) == 0


@given(st.lists(st.integers(1, 10**12), min_size=1, max_size=40))
def test_never_below_the_whole_and_in_any_order(done: list[int]) -> None:
    seconds = max(done) / 1e9
    rate = steady_rate(done, seconds)
    assert rate >= len(done) / seconds
    assert steady_rate(sorted(done, reverse=True), seconds) == rate


def test_a_warm_up_is_counted(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.say(answers({1: [1, 2, 3]}))
    engine.say(answers({2: [4], 0: []}))
    warmup = warm_up(engine, prompts(3), SAMPLING, patience_s=5, work=tmp_path)
    assert (warmup.requests, warmup.answers, warmup.output_tokens) == (3, 3, 4)
    (requests,) = engine.submitted
    assert requests.workload.dataset == "warm-up"
    assert requests.prompt(2).tolist() == [7]


def test_replies_are_told_apart(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.say(answers({1: [1, 2, 3], 0: [9]}))
    replies = ask(engine, prompts(2), SAMPLING, dataset="canary", patience_s=5, work=tmp_path)
    assert [token_ids(replies.data[i]).tolist() for i in range(2)] == [[9], [1, 2, 3]]


def chats(n: int) -> Chats:
    return Chats(tuple({"messages": [{"role": "user", "content": f"{i}"}]} for i in range(n)))


def test_chats_lie_in_a_file_as_long_as_they_are_asked(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.say(replies({1: "größer", 0: ""}, tokens=3))
    seen: list[Any] = []
    submit = engine.submit

    def look(requests: Requests) -> None:
        path = Path(requests.workload.bodies)
        store = BodyStore.open(path)
        seen.append((path, [bytes(store[row]) for row in requests.rows]))
        submit(requests)

    engine.submit = look  # type: ignore[method-assign]  # a double that looks on
    answered = ask(engine, chats(2), SAMPLING, dataset="canary", patience_s=5, work=tmp_path)
    assert answered.data == {1: "größer".encode(), 0: b""}
    ((path, bodies),) = seen
    assert path.is_absolute()
    assert [json.loads(body)["messages"][0]["content"] for body in bodies] == ["0", "1"]
    assert list(tmp_path.iterdir()) == []
    warmup = warm_up(FakeEngine(), chats(0), SAMPLING, patience_s=5, work=tmp_path)
    assert (warmup.requests, warmup.answers) == (0, 0)


def test_other_chats_have_another_file(tmp_path: Path) -> None:
    """An engine keeps a store open by its name."""
    paths = []
    for n in (1, 2, 1):
        engine = FakeEngine()
        engine.say(replies(dict.fromkeys(range(n), "x")))
        ask(engine, chats(n), SAMPLING, dataset="canary", patience_s=5, work=tmp_path)
        paths.append(engine.submitted[0].workload.bodies)
    assert paths[0] == paths[2] != paths[1]


def test_chats_are_counted_as_the_server_counts(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.say(replies({0: "a", 1: "b", 2: "c"}, tokens=7))
    warmup = warm_up(engine, chats(3), SAMPLING, patience_s=5, work=tmp_path)
    assert (warmup.requests, warmup.answers, warmup.output_tokens) == (3, 3, 21)


def test_whole_replies_are_had_where_they_are_logged_and_a_server_that_does_not_count_says_so(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.say(replies({0: "a"}, tokens=-1))
    answered = ask(engine, chats(1), SAMPLING, dataset="canary", patience_s=5, work=tmp_path, logged="reply")
    assert json.loads(answered.data[0]) == {"content": "a"}
    assert engine.submitted[0].workload.usage_optional
    engine.say(replies({0: "a"}, tokens=-1))
    warmup = warm_up(engine, chats(1), SAMPLING, patience_s=5, work=tmp_path, logged="reply")
    assert (warmup.answers, warmup.output_tokens) == (1, 0)


def test_a_chat_that_fails_leaves_no_file(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.say(Failure(0, "http_400", "too long"))
    with pytest.raises(RunBroke, match="http_400"):
        warm_up(engine, chats(1), SAMPLING, patience_s=5, work=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_an_engine_that_answers_chats_with_token_ids(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.say(answers({0: [1, 2]}))
    with pytest.raises(RunBroke, match="with token ids, and it asked for a chat"):
        warm_up(engine, chats(1), SAMPLING, patience_s=5, work=tmp_path)


def test_no_warm_up_at_all(tmp_path: Path) -> None:
    warmup = warm_up(FakeEngine(), prompts(0), SAMPLING, patience_s=5, work=tmp_path)
    assert (warmup.answers, warmup.samples_per_s) == (0, 0)


def test_a_request_that_fails(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.say(Failure(0, "too_long", "a prompt too long"))
    with pytest.raises(RunBroke, match=r"failed a warm-up request \(too_long\): a prompt too long") as caught:
        warm_up(engine, prompts(1), SAMPLING, patience_s=5, work=tmp_path)
    assert not isinstance(caught.value, EngineDied)


def test_a_replica_that_dies(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.say(Failure(0, REPLICA_DIED, "endpoint 0 refuses connections"))
    with pytest.raises(EngineDied, match="endpoint 0 refuses connections"):
        warm_up(engine, prompts(1), SAMPLING, patience_s=5, work=tmp_path)


def test_an_engine_that_falls_silent(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.say(answers({0: [1]}))
    with pytest.raises(EngineDied, match="answered 1 of 2 warm-up requests"):
        warm_up(engine, prompts(2), SAMPLING, patience_s=0.1, work=tmp_path)


def test_an_engine_that_chats(tmp_path: Path) -> None:
    engine = FakeEngine()
    engine.say(Replies([0], b"{}", [2], [5], [1], [2], [0]))
    with pytest.raises(RunBroke, match="asked for token ids"):
        warm_up(engine, prompts(1), SAMPLING, patience_s=5, work=tmp_path)
