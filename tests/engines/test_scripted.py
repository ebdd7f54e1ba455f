from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from harness.engines.base import (
    Answers,
    Event,
    Failure,
    Finish,
    PromptTable,
    Requests,
    Sampling,
    TokenEvents,
    Tokens,
    Workload,
)
from harness.engines.scripted import ScriptedCore
from harness.engines.scripted_running import EXIT_SCRIPTED_DEATH
from harness.engines.scripted_settings import Faults, ScriptedSettings, ServiceTime

MS = 1_000_000
PROMPTS = PromptTable.from_lists([[1, 2, 3], [4], list(range(40))])


@dataclass
class Clock:
    now_ns: int = 1_000 * MS

    def __call__(self) -> int:
        return self.now_ns


def workload(events: TokenEvents = TokenEvents.FIRST, cap: int = 32, dataset: str = "perf") -> Workload:
    return Workload(dataset, Sampling(1.0, 1.0, 0, cap, (), 0), events)


def requests(rows: list[int], work: Workload | None = None, first_number: int = 100) -> Requests:
    numbers = list(range(first_number, first_number + len(rows)))
    return Requests(work or workload(), numbers, rows, PROMPTS, [0] * len(rows))


def answers_of(events: list[Event]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for event in events:
        if isinstance(event, Answers):
            starts = [0, *event.ends]
            for i, number in enumerate(event.numbers):
                found[number] = event.tokens[starts[i] : event.ends[i]].tolist()
    return found


def tokens_of(events: list[Event]) -> list[tuple[int, int, int]]:
    told = []
    for event in events:
        if isinstance(event, Tokens):
            assert len(set(event.numbers)) == len(event.numbers)
            told += list(zip(event.numbers, event.positions, event.tokens.tolist(), strict=True))
    return told


def run_out(core: ScriptedCore, clock: Clock, until_ns: int = 10**15) -> list[tuple[int, Event]]:
    """Steps as the clock moves from due time to due time; what was told, with the time it was told at."""
    told = []
    while (wait_s := core.wait_s()) is not None and clock.now_ns < until_ns:
        clock.now_ns += round(wait_s * 1e9)
        told += [(clock.now_ns, event) for event in core.step()]
    return told


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    path = tmp_path / "answers.npz"
    np.savez(path, tokens=np.array([5, 6, 7, 9, 11, 12], np.int32), ends=np.array([3, 3, 4, 6], np.int64))
    return path


class TestNoOp:
    def test_is_idle_until_something_is_submitted(self) -> None:
        core = ScriptedCore(ScriptedSettings())
        assert core.wait_s() is None
        assert core.step() == []
        core.submit(requests([3]))
        assert core.wait_s() == 0

    def test_one_request_counts_up_from_its_row(self) -> None:
        clock = Clock()
        core = ScriptedCore(ScriptedSettings(length=3, vocab_size=10), clock)
        core.submit(requests([8]))
        events = core.step()
        assert tokens_of(events) == []  # the answer came whole
        assert answers_of(events) == {100: [8, 9, 0]}
        last = events[-1]
        assert isinstance(last, Answers)
        assert (list(last.first_ns), list(last.done_ns)) == ([clock.now_ns], [clock.now_ns])
        assert list(last.finish) == [Finish.STOP]

    def test_a_query_of_many_is_one_answers_with_a_buffer_for_each(self) -> None:
        core = ScriptedCore(ScriptedSettings())
        core.submit(requests([5] * 1_000, workload(TokenEvents.NONE)))
        (event,) = core.step()
        assert isinstance(event, Answers)
        event.tokens[0] = 77
        assert event.tokens[2] == 5

    @pytest.mark.parametrize("together", [True, False])
    def test_many_small_requests_answer_like_one_large(self, together: bool) -> None:
        core = ScriptedCore(ScriptedSettings())
        work = workload(TokenEvents.ALL)
        rows = [4, 0, 9]
        if together:
            core.submit(requests(rows, work))
        else:
            for i, row in enumerate(rows):
                core.submit(requests([row], work, 100 + i))
        events = core.step()
        assert answers_of(events) == {100: [4, 5], 101: [0, 1], 102: [9, 10]}
        assert sorted(tokens_of(events)) == [
            (100, 0, 4), (100, 1, 5), (101, 0, 0), (101, 1, 1), (102, 0, 9), (102, 1, 10),
        ]  # fmt: skip

    def test_two_workloads_are_not_mixed(self) -> None:
        core = ScriptedCore(ScriptedSettings())
        core.submit(requests([1], workload(cap=1), 1))
        core.submit(requests([1], workload(TokenEvents.NONE), 2))
        events = core.step()
        assert answers_of(events) == {1: [1], 2: [1, 2]}
        assert tokens_of(events) == []

    def test_cancel_forgets(self) -> None:
        core = ScriptedCore(ScriptedSettings())
        core.submit(requests([1]))
        core.cancel()
        assert core.wait_s() is None
        assert core.step() == []

    def test_drop_forgets_those_that_were_not_due(self) -> None:
        clock = Clock()
        core = ScriptedCore(ScriptedSettings(first_token=ServiceTime(0.010)), clock)
        core.submit(requests([4, 0, 9]))
        core.drop({101, 77})
        told = [event for _, event in run_out(core, clock)]
        assert answers_of(told) == {100: [4, 5], 102: [9, 10]}
        assert {number for number, _, _ in tokens_of(told)} == {100, 102}
        assert core.wait_s() is None


class TestAnswers:
    @pytest.mark.parametrize("rows", [[0], [2], [3, 0, 2]])
    def test_come_from_the_file(self, recorded: Path, rows: list[int]) -> None:
        script = {0: [5, 6, 7], 2: [9], 3: [11, 12]}
        core = ScriptedCore(ScriptedSettings(answers={"perf": recorded}))
        core.submit(requests(rows))
        assert list(answers_of(core.step()).values()) == [script[row] for row in rows]

    @pytest.mark.parametrize("rows", [[1], [0, 1, 3]])
    def test_an_empty_one_has_no_first_token(self, recorded: Path, rows: list[int]) -> None:
        core = ScriptedCore(ScriptedSettings(answers={"perf": recorded}))
        core.submit(requests(rows, workload(TokenEvents.ALL)))
        events = core.step()
        empty = 100 + rows.index(1)
        assert answers_of(events)[empty] == []
        assert [number for number, at, _ in tokens_of(events) if at == 0] == [
            n for n in range(100, 100 + len(rows)) if n != empty
        ]

    @pytest.mark.parametrize("rows", [[0], [0, 2]])
    def test_the_cap_cuts_and_says_so(self, recorded: Path, rows: list[int]) -> None:
        core = ScriptedCore(ScriptedSettings(answers={"perf": recorded}))
        core.submit(requests(rows, workload(cap=2)))
        events = core.step()
        last = events[-1]
        assert isinstance(last, Answers)
        assert answers_of(events)[100] == [5, 6]
        assert list(last.finish) == [Finish.LENGTH, Finish.STOP][: len(rows)]

    def test_another_data_set_counts(self, recorded: Path) -> None:
        core = ScriptedCore(ScriptedSettings(answers={"acc": recorded}))
        core.submit(requests([1]))
        assert answers_of(core.step()) == {100: [1, 2]}

    def test_a_row_beyond_the_file_fails_alone(self, recorded: Path) -> None:
        core = ScriptedCore(ScriptedSettings(answers={"perf": recorded}))
        core.submit(requests([4, 2]))
        events = core.step()
        assert [(e.number, e.kind) for e in events if isinstance(e, Failure)] == [(100, "no_such_row")]
        assert answers_of(events) == {101: [9]}

    def test_a_prompt_too_long_fails_alone(self) -> None:
        core = ScriptedCore(ScriptedSettings(max_total_tokens=40))
        core.submit(Requests(workload(), [1, 2], [0, 2], PROMPTS, [0, 2]))
        events = core.step()
        assert [(e.number, e.kind) for e in events if isinstance(e, Failure)] == [(2, "prompt_too_long")]
        assert answers_of(events) == {1: [0, 1]}


class TestTimes:
    def test_tokens_and_answer_come_when_they_are_due(self) -> None:
        clock = Clock()
        settings = ScriptedSettings(length=3, first_token=ServiceTime(0.010), per_token=ServiceTime(0.002))
        core = ScriptedCore(settings, clock)
        start = clock.now_ns
        core.submit(requests([7], workload(TokenEvents.ALL)))
        told = run_out(core, clock)
        assert [(at - start) / MS for at, event in told if isinstance(event, Tokens)] == [10, 12, 14]
        ((done, answer),) = [(at, event) for at, event in told if isinstance(event, Answers)]
        assert (done - start) / MS == 14
        assert list(answer.first_ns) == [start + 10 * MS]

    def test_a_late_step_tells_all_in_order(self) -> None:
        clock = Clock()
        settings = ScriptedSettings(length=3, first_token=ServiceTime(0.010), per_token=ServiceTime(0.002))
        core = ScriptedCore(settings, clock)
        core.submit(requests([7, 1], workload(TokenEvents.ALL)))
        clock.now_ns += 1_000 * MS
        events = core.step()
        assert [token[1] for token in tokens_of(events)] == [0, 0, 1, 1, 2, 2]
        assert isinstance(events[-1], Answers)
        assert answers_of(events) == {100: [7, 8, 9], 101: [1, 2, 3]}

    def test_without_token_events_the_first_is_stamped_when_due(self) -> None:
        clock = Clock()
        core = ScriptedCore(ScriptedSettings(first_token=ServiceTime(0.010), per_token=ServiceTime(0.005)), clock)
        start = clock.now_ns
        core.submit(requests([7], workload(TokenEvents.NONE)))
        ((at, event),) = run_out(core, clock)
        assert isinstance(event, Answers)
        assert (list(event.first_ns), list(event.done_ns)) == ([start + 10 * MS], [start + 15 * MS])
        assert at == start + 15 * MS

    def test_slots_queue(self) -> None:
        clock = Clock()
        core = ScriptedCore(ScriptedSettings(slots=2, first_token=ServiceTime(0.010)), clock)
        start = clock.now_ns
        core.submit(requests([0, 1, 2, 3, 4], workload(TokenEvents.NONE)))
        done = {n: (at - start) / MS for at, e in run_out(core, clock) if isinstance(e, Answers) for n in e.numbers}
        assert done == {100: 10, 101: 10, 102: 20, 103: 20, 104: 30}

    @pytest.mark.parametrize("law", ["exponential", "lognormal"])
    def test_draws_have_the_mean_and_depend_on_the_row_alone(self, law: str) -> None:
        rows = np.arange(50_000, dtype=np.int64)
        drawn = ServiceTime(0.2, law).draw_ns(rows, "7/perf")
        assert drawn.min() > 0
        assert drawn.mean() == pytest.approx(0.2e9, rel=0.03)
        spread = 0.2e9 if law == "exponential" else 0.2e9 * np.sqrt(np.exp(0.25) - 1)
        assert drawn.std() == pytest.approx(spread, rel=0.03)
        assert ServiceTime(0.2, law).draw_ns(rows[::-1], "7/perf").tolist() == drawn[::-1].tolist()
        assert not np.array_equal(ServiceTime(0.2, law).draw_ns(rows, "8/perf"), drawn)


class TestFaults:
    def told(self, faults: Faults, rows: list[int], settings: dict[str, ServiceTime] | None = None) -> list[Event]:
        clock = Clock()
        core = ScriptedCore(ScriptedSettings(length=4, faults={"perf": faults}, **(settings or {})), clock)
        core.submit(requests(rows))
        return [event for _, event in run_out(core, clock)]

    def test_fail(self) -> None:
        events = self.told(Faults(fail=frozenset({1})), [0, 1])
        assert [(e.number, e.kind) for e in events if isinstance(e, Failure)] == [(101, "scripted")]
        assert list(answers_of(events)) == [100]

    def test_short_and_empty(self) -> None:
        events = self.told(Faults(short=frozenset({1}), empty=frozenset({2})), [0, 1, 2])
        assert answers_of(events) == {100: [0, 1, 2, 3], 101: [1], 102: []}
        assert [number for number, at, _ in tokens_of(events) if at == 0] == [100, 101]

    def test_hang_is_never_told(self) -> None:
        assert list(answers_of(self.told(Faults(hang=frozenset({0})), [0, 1]))) == [101]

    def test_hang_keeps_its_slot(self) -> None:
        clock = Clock()
        core = ScriptedCore(ScriptedSettings(slots=1, faults={"*": Faults(hang=frozenset({0}))}), clock)
        core.submit(requests([0, 1]))
        assert core.wait_s() is None
        core.cancel()
        core.submit(requests([1]))
        assert list(answers_of(core.step())) == [100]

    def test_slow(self) -> None:
        clock = Clock()
        core = ScriptedCore(ScriptedSettings(faults={"perf": Faults(slow={1: 0.5})}), clock)
        start = clock.now_ns
        core.submit(requests([0, 1]))
        done = {n: (at - start) / MS for at, e in run_out(core, clock) if isinstance(e, Answers) for n in e.numbers}
        assert done == {100: 0, 101: 500}

    def test_other_data_sets_are_spared(self) -> None:
        core = ScriptedCore(ScriptedSettings(faults={"acc": Faults(fail=frozenset({1}))}))
        core.submit(requests([1]))
        assert answers_of(core.step()) == {100: [1, 2]}

    def test_die_ends_the_process_without_a_word(self) -> None:
        program = (
            "from tests.engines.test_scripted import *\n"
            "core = ScriptedCore(ScriptedSettings(faults={'perf': Faults(die=3)}))\n"
            "core.submit(requests([0, 3])); core.step(); print('still here')"
        )
        done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
        assert done.returncode == EXIT_SCRIPTED_DEATH
        assert done.stdout == ""
        assert "row 3" in done.stderr


def test_is_never_submittable() -> None:
    info = ScriptedCore(ScriptedSettings(slots=4)).info()
    assert info.not_submittable == ("scripted engine",)
    assert (info.kind, info.slots, info.checkpoint) == ("scripted", 4, None)
    assert ScriptedSettings.parse(info.settings).slots == 4
