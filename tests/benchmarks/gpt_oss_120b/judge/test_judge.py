from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from harness.benchmarks.gpt_oss_120b.code_questions import problem_row, solution, wrong_solution
from harness.benchmarks.gpt_oss_120b.judge import (
    Ending,
    Judge,
    Limits,
    Submission,
    TestsFolder,
    Trial,
    default_workers,
    judge,
    self_test,
    selftest,
)
from harness.benchmarks.gpt_oss_120b.judge.problems import Problem
from harness.benchmarks.gpt_oss_120b.judge.sandbox import Cell
from harness.errors import MissingError
from tests.benchmarks.gpt_oss_120b.judge.conftest import LIMITS

ROWS = [problem_row(3, i) for i in range(12)]


def folder(path: Path, *more: str) -> TestsFolder:
    lines = [json.dumps(row) for row in ROWS]
    (path / "test.jsonl").write_text("\n".join([*lines, *more]) + "\n", encoding="utf-8")
    return TestsFolder(path)


def test_our_own_problems_are_solved_by_their_solutions_alone(tmp_path: Path) -> None:
    """Both kinds of problems are among them, and every task."""
    names = [row["question_id"] for row in ROWS]
    right = [Submission(name, solution(name) or "") for name in names]
    wrong = [Submission(name, wrong_solution(name)) for name in names[:4]]
    trials = Judge(folder(tmp_path), LIMITS, "none", workers=2).judge([*right, *wrong])
    assert {trials[s].ending for s in right} == {Ending.PASSED}
    assert {trials[s].ending for s in wrong} == {Ending.WRONG_ANSWER}
    assert len({name.split("_")[2] for name in names}) > 3
    assert {"func_name" in row["metadata"] for row in ROWS} == {True, False}


def counted(monkeypatch: pytest.MonkeyPatch, ending: Ending) -> list[str]:
    tried: list[str] = []

    def try_it(code: str, *_: object) -> Trial:
        tried.append(code)
        return Trial(ending, 1, "because")

    monkeypatch.setattr(judge, "try_solution", try_it)
    return tried


def test_the_same_solution_is_tried_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = counted(monkeypatch, Ending.PASSED)
    one = Submission(ROWS[0]["question_id"], "a")
    trials = Judge(folder(tmp_path), LIMITS, "none", workers=3).judge([one, one, one._replace(code="b")])
    assert sorted(tried) == ["a", "b"]
    assert len(trials) == 2


def test_what_could_not_be_judged_is_tried_twice_and_stays_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tried = counted(monkeypatch, Ending.NOT_JUDGED)
    one = Submission(ROWS[0]["question_id"], "a")
    trials = Judge(folder(tmp_path), LIMITS, "none").judge([one])
    assert (tried, trials[one].ending) == (["a", "a"], Ending.NOT_JUDGED)


def test_problems_without_tests_are_not_judged(tmp_path: Path) -> None:
    one = Submission("abc301_a", "print()")
    trials = Judge(folder(tmp_path), LIMITS, "none").judge([one])
    assert trials[one].ending is Ending.NOT_JUDGED
    assert "no problem of this id" in trials[one].detail


def test_tests_that_cannot_be_read_leave_the_rest_unjudged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    counted(monkeypatch, Ending.PASSED)
    tests = folder(tmp_path, '{"question_id": "bad"}')
    good, bad = Submission(ROWS[0]["question_id"], "a"), Submission("bad", "a")
    trials = Judge(tests, LIMITS, "none").judge([good, bad])
    assert trials[good].ending is Ending.PASSED
    assert trials[bad].ending is Ending.NOT_JUDGED
    assert "the tests cannot be read" in trials[bad].detail


def test_nobody_waits_for_those_that_run_when_it_is_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started = threading.Event()

    def try_it(code: str, problem: Problem, limits: Limits, cell: Cell, stop: threading.Event) -> Trial:
        if code == "break":
            started.wait(20)
            raise KeyboardInterrupt
        started.set()
        assert stop.wait(20), "nobody said to stop"
        return Trial(Ending.NOT_JUDGED, 1, "interrupted")

    monkeypatch.setattr(judge, "try_solution", try_it)
    names = [row["question_id"] for row in ROWS[:2]]
    with pytest.raises(KeyboardInterrupt):
        Judge(folder(tmp_path), LIMITS, "none", workers=2).judge(
            [Submission(names[0], "break"), Submission(names[1], "loop")]
        )


def test_workers_are_bounded_by_cores_and_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge.os, "sched_getaffinity", lambda _: set(range(16)), raising=False)
    monkeypatch.setattr(judge, "_available_bytes", lambda: 10 * LIMITS.memory_bytes)
    assert default_workers(LIMITS) == 10
    monkeypatch.setattr(judge, "_available_bytes", lambda: 99 * LIMITS.memory_bytes)
    assert default_workers(LIMITS) == 16
    monkeypatch.setattr(judge, "_available_bytes", lambda: 0)
    assert default_workers(LIMITS) == 1
    with pytest.raises(ValueError, match="0 workers"):
        Judge(TestsFolder(Path()), LIMITS, "none", workers=0)


def test_limits_are_those_of_the_reference_for_time() -> None:
    limits = Limits(test_s=60)
    assert limits.total_s(10) == 61 * 10 + 5
    assert limits.resources(10)["RLIMIT_CPU"] == 615
    with pytest.raises(ValueError, match="not limits"):
        Limits(test_s=0)


# -- self test ---------------------------------------------------------------------------------------------------------


def test_the_self_test_passes_in_namespaces(namespaces: None) -> None:
    lines = self_test(LIMITS, "namespaces")
    assert "a right program: passed" in lines
    assert "a looping one: time limit" in lines
    assert "a network-using one: wrong answer" in lines


def test_without_a_sandbox_what_needs_one_is_not_asked() -> None:
    lines = self_test(LIMITS, "none")
    assert "a memory-eating one: crashed" in lines
    assert not [line for line in lines if "network" in line]


@pytest.mark.parametrize("blind", [Ending.PASSED, Ending.WRONG_ANSWER, Ending.CRASHED, Ending.TOO_LONG])
def test_a_judge_that_says_the_same_to_all_is_found_out(monkeypatch: pytest.MonkeyPatch, blind: Ending) -> None:
    monkeypatch.setattr(selftest, "try_solution", lambda *_: Trial(blind, 1, "blind"))
    with pytest.raises(MissingError, match="the judge's self test failed") as raised:
        self_test(LIMITS, "namespaces")
    assert raised.value.exit_code == 3


def test_a_hole_in_one_wall_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without namespaces the network is open: the canary that needs them says so."""
    all_of_them = selftest.knowns

    def harmless(port: int, folder: Path) -> list[selftest.Known]:
        return [known for known in all_of_them(port, folder) if known.confined and "multiplies" not in known.name]

    monkeypatch.setattr(selftest, "knowns", harmless)
    monkeypatch.setattr(selftest, "Cell", lambda _: Cell("none"))
    with pytest.raises(MissingError, match=r"(a network-using one|one that .*) came out as passed"):
        self_test(LIMITS, "namespaces")


def test_a_kernel_that_refuses_is_told_with_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    refusal = Trial(Ending.NOT_JUDGED, 0, "the kernel refused the sandbox: unshare: EPERM, Operation not permitted")
    monkeypatch.setattr(selftest, "try_solution", lambda *_: refusal)
    with pytest.raises(MissingError, match=r"(?s)does not let the judge.*EPERM.*--judge-sandbox=none") as raised:
        self_test(LIMITS, "namespaces")
    assert raised.value.exit_code == 3
