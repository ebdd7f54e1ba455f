from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.engines.address import EngineAddress, Lane, lanes_before, lanes_each, together
from harness.engines.base import NOT_TOLD, EngineInfo
from harness.engines.routing import LeastOutstanding, Sessions, balanced_split
from harness.errors import RunBroke

CAP = 100


def place(least: LeastOutstanding, number: int, prompt_tokens: int) -> int:
    return least.give(number, prompt_tokens, least.choose(CAP))


class TestLeastOutstanding:
    def test_equal_replicas_take_turns(self) -> None:
        least = LeastOutstanding([0, 1, 2])
        assert [place(least, number, 10) for number in range(6)] == [0, 1, 2, 0, 1, 2]

    def test_of_equal_ones_the_one_asked_longest_ago(self) -> None:
        least = LeastOutstanding([0, 1, 2])
        for number in range(3):
            place(least, number, 10)
        for number in (2, 0, 1):
            least.ended(number, 5)
        assert [place(least, number, 10) for number in range(3, 6)] == [0, 1, 2]

    def test_a_long_prompt_is_load(self) -> None:
        least = LeastOutstanding([0, 1])
        place(least, 0, 1_000)
        assert [place(least, number, 10) for number in range(1, 5)] == [1] * 4

    def test_answers_are_guessed_as_long_as_those_that_came(self) -> None:
        """One prompt of 40 tokens weighs more than two of 10 once answers are known to be short."""
        least = LeastOutstanding([0, 1])
        place(least, 0, 1)
        least.ended(0, 4)
        assert place(least, 1, 40) == 1
        assert [place(least, number, 10) for number in (2, 3, 4)] == [0, 0, 0]

    def test_a_guess_is_at_most_the_cap(self) -> None:
        least = LeastOutstanding([0, 1])
        place(least, 0, 1)
        least.ended(0, 10_000)
        assert least.give(1, 150, 1) == 1
        assert least.give(2, 0, 0) == 0
        assert least.choose(CAP) == 0  # 100 against 250; of ten thousand each, no prompt would matter
        assert least.give(3, 0, 0) == 0
        assert least.give(4, 0, 0) == 0
        assert least.choose(CAP) == 1

    def test_failures_take_load_away_and_teach_nothing(self) -> None:
        least = LeastOutstanding([0, 1])
        place(least, 0, 10)
        least.ended(0, 0)
        assert least.outstanding() == [0, 0]
        assert place(least, 1, 10) == 1
        assert place(least, 2, 10) == 0

    def test_requests_that_were_never_given(self) -> None:
        least = LeastOutstanding([0])
        least.ended(7, 3)
        assert least.outstanding() == [0]

    def test_lanes_of_one_replica_share_it(self) -> None:
        least = LeastOutstanding([0, 1, 0, 1])
        lanes = [place(least, number, 10) for number in range(8)]
        assert sorted(lanes) == [0, 0, 1, 1, 2, 2, 3, 3]

    @given(st.lists(st.tuples(st.integers(1, 500), st.integers(1, CAP)), min_size=1, max_size=80), st.integers(1, 5))
    def test_what_is_given_and_ended_adds_up(self, asked: list[tuple[int, int]], replicas: int) -> None:
        least = LeastOutstanding(list(range(replicas)))
        given_to = [place(least, number, prompt) for number, (prompt, _) in enumerate(asked)]
        assert least.outstanding() == [given_to.count(replica) for replica in range(replicas)]
        for number, (_, answer) in enumerate(asked):
            least.ended(number, answer)
        assert least.outstanding() == [0] * replicas


class TestSessions:
    def test_a_session_stays_where_it_is(self) -> None:
        least = LeastOutstanding([0, 1])
        sessions = Sessions(np.array([3, 3, 5, -1, 3], np.int64), least)
        first = sessions.give(10, 0, 10_000, CAP)  # the busiest by far, and still the session's
        assert [sessions.give(11 + row, row, 0, CAP) for row in (1, 4)] == [first, first]
        assert sessions.give(12, 2, 0, CAP) == 1 - first
        assert sessions.give(13, 3, 0, CAP) == 1 - first

    def test_a_session_keeps_to_one_of_the_lanes_to_its_replica(self) -> None:
        sessions = Sessions(np.zeros(9, np.int64), LeastOutstanding([0, 0, 0]))
        assert {sessions.give(row, row, 1, CAP) for row in range(9)} == {0}

    def test_a_new_session_goes_where_the_fewest_are_though_nothing_of_them_is_outstanding(self) -> None:
        """Tools run between two turns, and their session comes back."""
        sessions = Sessions(np.repeat(np.arange(4), 2), LeastOutstanding([0, 1]))
        places = []
        for session in range(4):
            places.append(sessions.give(session, 2 * session, 0, CAP))
            sessions.ended(session, failed=False)
        assert places == [0, 1, 0, 1]
        assert sessions.under_way() == [2, 2]

    def test_a_session_is_over_with_its_last_answer_or_its_first_failure(self) -> None:
        sessions = Sessions(np.array([0, 0, 1, 1]), LeastOutstanding([0]))
        for number, row in enumerate((0, 2, 1)):
            sessions.give(number, row, 0, CAP)
        assert sessions.under_way() == [2]
        sessions.ended(0, failed=False)
        assert sessions.under_way() == [2]
        sessions.ended(2, failed=False)
        assert sessions.under_way() == [1]
        sessions.ended(1, failed=True)
        sessions.ended(1, failed=True)
        sessions.ended(77, failed=False)
        assert sessions.under_way() == [0]

    @given(
        replicas=st.integers(1, 4),
        lengths=st.lists(st.integers(1, 4), min_size=1, max_size=9),
        data=st.data(),
    )
    def test_any_course_of_any_sessions(self, replicas: int, lengths: list[int], data: st.DataObject) -> None:
        """Turns one by one, some fail, whole sessions again: each stays where it is, and nothing is left of it."""
        least = LeastOutstanding(range(replicas))
        starts = np.cumsum([0, *lengths])
        sessions = Sessions(np.repeat(np.arange(len(lengths)), lengths), least)
        lanes: dict[int, set[int]] = {}
        waiting = [session for session in range(len(lengths)) for _ in range(2)]
        open_turn: dict[int, int] = {}
        number = 0
        while waiting or open_turn:
            able = sorted({*open_turn, *waiting} if len(open_turn) < 3 else open_turn)
            session = data.draw(st.sampled_from(able))
            if session not in open_turn:
                waiting.remove(session)
            turn = open_turn.setdefault(session, 0)
            lanes.setdefault(session, set()).add(sessions.give(number, int(starts[session]) + turn, 0, CAP))
            failed = data.draw(st.booleans()) and data.draw(st.booleans())
            least.ended(number, 0 if failed else 3)
            sessions.ended(number, failed)
            open_turn[session] += 1
            if failed or open_turn[session] == lengths[session]:
                del open_turn[session]
            assert sum(sessions.under_way()) == len(open_turn)
            number += 1
        assert all(len(each) == 1 for each in lanes.values())
        assert least.outstanding() == [0] * replicas
        assert len(sessions._lane_of) == len(lengths) and not sessions._running

    def test_an_answer_whose_tokens_nobody_counted_says_nothing_of_how_long_answers_are(self) -> None:
        least = LeastOutstanding([0, 1])
        for number, tokens in ((1, NOT_TOLD), (2, 0)):
            least.give(number, 0, 0)
            least.ended(number, tokens)
        least.give(3, 0, 0)  # taken to be as long as it may be
        least.give(4, CAP - 1, 1)
        least.ended(4, 0)
        assert least.choose(CAP) == 1


class TestBalancedSplit:
    @given(st.lists(st.integers(0, 10_000), max_size=200), st.integers(1, 9))
    def test_counts_differ_by_one_at_most_and_tokens_by_one_prompt(self, lengths: list[int], lanes: int) -> None:
        tokens = np.array(lengths, np.int64)
        lane_of = balanced_split(tokens, lanes)
        counts = np.bincount(lane_of, minlength=lanes)
        assert counts.sum() == len(lengths)
        assert counts.max() - counts.min() <= 1
        sums = np.bincount(lane_of, weights=tokens, minlength=lanes)
        assert sums.max() - sums.min() <= max(lengths, default=0)

    def test_nothing(self) -> None:
        assert balanced_split(np.zeros(0, np.int64), 3).tolist() == []


class TestLanes:
    def test_one_client_process_before_four_replicas(self) -> None:
        assert lanes_before(4, 1) == tuple(Lane(0, replica, replica) for replica in range(4))

    def test_four_client_processes_before_two_replicas(self) -> None:
        assert lanes_before(2, 4) == (Lane(0, 0, 0), Lane(1, 1, 1), Lane(2, 0, 0), Lane(3, 1, 1))

    def test_two_client_processes_before_four_replicas(self) -> None:
        assert [(lane.process, lane.asked_as) for lane in lanes_before(4, 2)] == [(0, 0), (1, 1), (0, 2), (1, 3)]

    def test_what_cannot_be_shared_evenly(self) -> None:
        with pytest.raises(ValueError, match="3 processes before 2 replicas"):
            lanes_before(2, 3)

    @pytest.mark.parametrize(
        ("sockets", "lanes"),
        [((), ()), (("a",), lanes_each(2)), (("a", "b"), lanes_each(1)), (("a", "b"), (Lane(0, 0, 0), Lane(1, 0, 2)))],
    )
    def test_an_address_must_be_whole(self, sockets: tuple[str, ...], lanes: tuple[Lane, ...]) -> None:
        with pytest.raises(ValueError, match=r"each|sockets"):
            EngineAddress(sockets, sockets, lanes)


def info(*replicas: str, slots: int = 3, version: str = "1") -> EngineInfo:
    return EngineInfo("http", 10, 20, slots, None, {"server": version}, {}, ("demo",), replicas)


class TestTogether:
    def test_one_process_alone(self) -> None:
        assert together([info("0")], 1) == info("0")

    def test_clients_of_the_same_replicas_say_the_same(self) -> None:
        assert together([info("a", "b")] * 2, 2) == info("a", "b")

    def test_replicas_of_one_process_each_are_numbered_and_their_slots_added(self) -> None:
        assert together([info("0")] * 3, 3) == info("0", "1", "2", slots=9)

    @pytest.mark.parametrize("other", [info("0", version="2"), info("0", slots=4)])
    def test_those_that_do_not_agree(self, other: EngineInfo) -> None:
        with pytest.raises(RunBroke, match="do not agree on their"):
            together([info("0"), other], 2)

    def test_those_that_do_not_add_up(self) -> None:
        with pytest.raises(RunBroke, match="do not make 3"):
            together([info("0", "1")] * 2, 3)
