"""turns.json: every figure of it by hand, and that no turn flatters it."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.benchmarks.qwen3_6_27b.dataset import read_file
from harness.benchmarks.qwen3_6_27b.requests import request
from harness.benchmarks.qwen3_6_27b.store import Library
from harness.engines.chats import qwen3_vocab
from harness.engines.chats.tool_prompts import prompt_ids
from harness.errors import MissingError, RunBroke
from harness.ledger.turn_report import TURN_REPORT, Spread, TurnReport, read_turn_report
from harness.ledger.turns import TURN_REPLIES, TURNS, read_turn_replies
from harness.runs.turn_figures import write_turn_figures
from harness.runs.turn_times import TurnTimes
from tests.benchmarks.qwen3_6_27b.made import REAL, needs_real
from tests.runs.made_turns import MS, OUT, SKIPPED, A, F, MadeTurn, keep, small_library, turns_of

S1 = 1_000
ONE = [
    MadeTurn(A, 0, 100, 400, 4, 50, 0, 2),
    MadeTurn(A, 500, 550, 650, 3, 90, 60, 0),
]
"""Row 0, trajectory a: TTFT 100 and 50, TPOT 100 and 50, latency 400 and 150; 650 in all."""
TWO = [
    MadeTurn(A, 100, 140, 240, 1, 60, -1, 2),
    MadeTurn(F, 240),
    SKIPPED,
]
"""Row 1, trajectory b: TTFT 40, no TPOT, latency 140; then it fails."""
THREE = [
    MadeTurn(A, 700, 760, 1000, 13, 70, 35, 1),
    MadeTurn(A, 1000, 1010, 1100, 10, 80, 70, 0),
]
"""Row 5, trajectory c again: TTFT 60 and 10, TPOT 20 and 10, latency 300 and 100; 400 in all."""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Library:
    return small_library(tmp_path_factory.mktemp("data"))


def report(
    folder: Path, library: Library, rows: list[int], turns: list[list[MadeTurn]], replies: dict[Any, Any] | None = None
) -> TurnReport:
    keep(folder, library, turns_of(library, rows, turns), replies or {})
    made = write_turn_figures(folder, library)
    assert read_turn_report(folder) == made
    return made


def spread(*ms: float, unit: float = MS) -> Spread | None:
    return Spread.of(np.array(ms) * unit)


def test_every_figure_by_hand(tmp_path: Path, library: Library) -> None:
    found = report(tmp_path, library, [0, 1, 5], [ONE, TWO, THREE])
    assert found.turns.model_dump() == {
        "issued": 6, "answered": 5, "failed": 1, "skipped": 1, "outstanding": 0,
    }  # fmt: skip
    assert found.trajectories.model_dump() == {"issued": 3, "completed": 2, "failed": 1, "outstanding": 0}
    assert found.ttft_ns == spread(100, 50, 40, 60, 10)
    assert found.tpot_ns == spread(100, 50, 20, 10)
    assert found.latency_ns == spread(400, 150, 140, 300, 100)
    assert found.trajectory_latency_ns == spread(650, 400)
    assert found.trajectory_turns_ns == spread(550, 400)
    assert found.window_s == 1.1
    assert found.turns_per_s == 5 / 1.1
    assert found.trajectories_per_s == 2 / 1.1
    assert found.output_tokens_per_s == (4 + 3 + 1 + 13 + 10) / 1.1
    assert found.e2e_interactivity == pytest.approx(31 / 1.09)
    assert found.finish_reasons == {"stop": 2, "length": 1, "tool_calls": 2}
    assert found.issued_times == {"a": 1, "b": 1, "c": 1}
    first, second, third = found.by_turn
    assert (first.turn, first.answered, first.failed, first.skipped) == (0, 3, 0, 0)
    assert (first.ttft_ns, first.tpot_ns, first.latency_ns) == (
        spread(100, 40, 60),
        spread(100, 20),
        spread(400, 140, 300),
    )
    assert (second.answered, second.failed, second.skipped) == (2, 1, 0)
    assert second.ttft_ns == spread(50, 10)
    assert (third.answered, third.failed, third.skipped) == (0, 0, 1)
    assert (third.ttft_ns, third.tpot_ns, third.latency_ns) == (None, None, None)


def test_lengths_and_who_counted_them(tmp_path: Path, library: Library) -> None:
    found = report(tmp_path, library, [0, 1, 5], [ONE, TWO, THREE])
    assert (found.input_tokens.by_server, found.input_tokens.by_tokenizer, found.input_tokens.tokenizer) == (5, 0, None)
    assert (found.input_tokens.total, found.input_tokens.tokens) == (350, spread(50, 90, 60, 70, 80, unit=1))
    assert (found.output_tokens.total, found.output_tokens.tokens) == (31, spread(4, 3, 1, 13, 10, unit=1))
    assert (found.cached_tokens.by_server, found.cached_tokens.unknown, found.cached_tokens.total) == (4, 1, 165)
    assert found.cached_share == 165 / 290


def test_the_inline_score(tmp_path: Path, library: Library) -> None:
    """Four turns have commands recorded: of a, c and two of b; b's second fails, so that it has no answer."""
    found = report(tmp_path, library, [0, 1, 5], [ONE, TWO, THREE]).inline
    assert (found.score, found.recorded, found.scored, found.missing, found.skipped) == (0.75, 7, 4, 1, 0)
    assert {name: part.model_dump() for name, part in found.domains.items()} == {"coding": {"score": 0.75, "scored": 4}}
    half = {"content": "", "tool_calls": [{"function": {"name": "bash", "arguments": '{"cmd": "ls"}'}}]}
    worse = report(tmp_path, library, [0, 1, 5], [ONE, TWO, THREE], {(0, 0): half, (2, 0): {"content": "ls"}}).inline
    assert (worse.score, worse.missing) == ((0.5 + 1 + 0 + 0) / 4, 1)  # of ls and wc it runs one; a text runs none


def test_a_skipped_turn_scores_nothing_and_is_counted_apart(tmp_path: Path, library: Library) -> None:
    failed_at_once = [MadeTurn(F, 0), SKIPPED, SKIPPED]
    found = report(tmp_path, library, [1, 0], [failed_at_once, ONE])
    assert (found.inline.scored, found.inline.missing, found.inline.skipped) == (3, 2, 1)
    assert found.inline.score == 1 / 3
    assert "turns without an answer, which count 0 in the inline score: 2" in found.notes


def whole_pass(library: Library, rows: list[int]) -> list[list[MadeTurn]]:
    clock, made = 0, []
    for row in rows:
        made.append(
            [MadeTurn(A, clock + i, clock + i, clock + i + 1, 7, 9, 2, 0) for i in range(len(library.turns(row)))]
        )
        clock += 100
    return made


def test_replaying_what_was_recorded_scores_exactly_one(tmp_path: Path, library: Library) -> None:
    rows = [*range(library.rows), 2, 2]
    found = report(tmp_path, library, rows, whole_pass(library, rows))
    assert (found.inline.score, found.inline.missing) == (1.0, 0)
    assert found.issued_times == {"a": 2, "b": 2, "c": 4}
    assert found.turns.answered == sum(len(library.turns(row)) for row in rows)
    assert found.notes == ()


@pytest.mark.shared
@needs_real
def test_replaying_the_round_s_own_trajectories_scores_exactly_one(tmp_path: Path) -> None:
    library = Library(read_file(REAL), 1)
    rows = list(range(library.rows))
    found = report(tmp_path, library, rows, whole_pass(library, rows))
    assert (found.inline.score, found.inline.recorded, found.inline.scored) == (1.0, 1007, 1006)
    assert (found.turns.answered, found.trajectories.completed) == (1007, 20)
    assert set(found.issued_times.values()) == {1}


def test_a_turn_of_one_token_has_no_time_per_token(tmp_path: Path, library: Library) -> None:
    turns = [dataclasses.replace(turn, output=1) for turn in ONE]
    found = report(tmp_path, library, [0], [turns])
    assert found.tpot_ns is None and found.ttft_ns == spread(100, 50)


def test_answers_that_came_whole_have_no_first_token(tmp_path: Path, library: Library) -> None:
    turns = [dataclasses.replace(turn, first=turn.done) for turn in ONE]
    found = report(tmp_path, library, [0], [turns])
    assert (found.ttft_ns, found.tpot_ns) == (None, None)
    assert found.latency_ns == spread(400, 150)
    assert found.notes == ("answers came whole, so that there is no time of a first token",)


def test_a_run_in_which_nothing_was_answered(tmp_path: Path, library: Library) -> None:
    found = report(
        tmp_path, library, [0, 1], [[MadeTurn(F, 0), SKIPPED], [MadeTurn(OUT, 5), MadeTurn(OUT), MadeTurn(OUT)]]
    )
    assert found.turns.model_dump() == {
        "issued": 2, "answered": 0, "failed": 1, "skipped": 1, "outstanding": 3,
    }  # fmt: skip
    assert found.trajectories.model_dump() == {"issued": 2, "completed": 0, "failed": 1, "outstanding": 1}
    for name in (
        "window_s",
        "turns_per_s",
        "trajectories_per_s",
        "output_tokens_per_s",
        "e2e_interactivity",
        "ttft_ns",
    ):
        assert getattr(found, name) is None, name
    assert (found.latency_ns, found.trajectory_latency_ns, found.cached_share) == (None, None, None)
    assert (found.mean_output.performance_window, found.mean_output.all_turns) == (None, None)
    assert found.inline.score == 0.0 and found.inline.missing == found.inline.scored == 3


class TestPerformanceWindow:
    def test_it_ends_with_the_first_trajectory_after_the_last_has_begun(self, tmp_path: Path, library: Library) -> None:
        """Two at a time: c begins at 200, when a is complete; b is complete at 300, and nothing is left to start."""
        a = [MadeTurn(A, 0, 10, 100, 10, 9, 0, 0), MadeTurn(A, 100, 110, 200, 20, 9, 0, 0)]
        b = [
            MadeTurn(A, 0, 10, 90, 30, 9, 0, 0),
            MadeTurn(A, 90, 100, 150, 40, 9, 0, 0),
            MadeTurn(A, 150, 160, 300, 50, 9, 0, 0),
        ]
        c = [MadeTurn(A, 200, 210, 400, 60, 9, 0, 0), MadeTurn(A, 400, 410, 500, 1000, 9, 0, 0)]
        found = report(tmp_path, library, [0, 1, 2], [a, b, c]).mean_output
        assert found.performance_window == (10 + 20 + 30 + 40 + 50 + 60) / 6
        assert (found.performance_window_turns, found.performance_window_s) == (6, 0.3)
        assert found.all_turns == 1210 / 7

    def test_one_at_a_time_nothing_is_outside(self, tmp_path: Path, library: Library) -> None:
        rows = [0, 1, 2]
        found = report(tmp_path, library, rows, whole_pass(library, rows)).mean_output
        assert (found.performance_window, found.performance_window_turns, found.all_turns) == (7, 7, 7)


@pytest.mark.qwen3vl
class TestTokenizer:
    def test_what_the_server_did_not_count_is_counted_afterwards(self, tmp_path: Path, library: Library) -> None:
        untold = [dataclasses.replace(turn, output=-1, prompt=-1) for turn in ONE]
        again = [dataclasses.replace(turn, output=-1) for turn in THREE]
        found = report(tmp_path, library, [0, 1, 5, 3], [untold, TWO, again, untold])
        assert (found.input_tokens.by_server, found.input_tokens.by_tokenizer, found.input_tokens.unknown) == (3, 4, 0)
        assert (found.output_tokens.by_server, found.output_tokens.by_tokenizer, found.output_tokens.unknown) == (
            1,
            6,
            0,
        )
        assert found.input_tokens.tokenizer == found.output_tokens.tokenizer == "Qwen3's vocabulary"
        prompts = [prompt_tokens(library, row, turn) for row in (0, 3) for turn in (0, 1)]
        assert found.input_tokens.total == sum(prompts) + 60 + 70 + 80
        looked = len(qwen3_vocab.encode('Look first.bash{"command": "ls tests | wc -l"}'))
        said = len(qwen3_vocab.encode("There is one test."))
        assert found.output_tokens.total == 3 * (looked + said) + 1
        assert found.output_tokens_per_s is not None and found.mean_output.all_turns is not None
        assert sorted(path.name for path in tmp_path.iterdir()) == [TURN_REPLIES, TURNS, TURN_REPORT]

    def test_without_a_tokenizer_nothing_is_guessed(self, tmp_path: Path, library: Library) -> None:
        untold = [dataclasses.replace(turn, output=-1) for turn in ONE]
        keep(tmp_path, library, turns_of(library, [0, 5], [untold, THREE]))
        found = write_turn_figures(tmp_path, library, tokenizer=tmp_path)
        assert (found.output_tokens.by_server, found.output_tokens.unknown) == (2, 2)
        assert (found.output_tokens_per_s, found.mean_output.all_turns) == (None, None)
        assert found.tpot_ns == spread(20, 10)
        (note,) = found.notes
        assert note.startswith("answer_tokens of 2 turns are not known: the server does not tell, and the checkpoint")

    def test_more_cached_than_was_asked_is_in_no_share(self, tmp_path: Path, library: Library) -> None:
        first, second = ONE
        odd = [dataclasses.replace(first, prompt=50, cached=51), dataclasses.replace(second, prompt=80, cached=60)]
        keep(tmp_path, library, turns_of(library, [0], [odd]))
        found = write_turn_figures(tmp_path, library)
        assert found.cached_share == 60 / 80
        assert any(note.endswith("than was asked, left out of the cached share: 1") for note in found.notes)
        all_odd = [dataclasses.replace(turn, prompt=1, cached=2) for turn in ONE]
        keep(tmp_path, library, turns_of(library, [0], [all_odd]))
        assert write_turn_figures(tmp_path, library).cached_share is None

    def test_a_total_that_nobody_knows_is_not_zero(self, tmp_path: Path, library: Library) -> None:
        keep(tmp_path, library, turns_of(library, [0], [[dataclasses.replace(turn, output=-1) for turn in ONE]]))
        lengths = write_turn_figures(tmp_path, library, tokenizer=tmp_path).output_tokens
        assert (lengths.unknown, lengths.total, lengths.tokens) == (2, None, None)


def prompt_tokens(library: Library, row: int, turn: int) -> int:
    trajectory = library.trajectory(row)
    asked = request(trajectory, turn, {"max_completion_tokens": None}, library.system(trajectory, library.repeat(row)))
    return len(prompt_ids({name: asked[name] for name in ("messages", "tools")}))


def test_replies_and_turns_must_tell_of_the_same_answers(tmp_path: Path, library: Library) -> None:
    keep(tmp_path, library, turns_of(library, [0], [ONE]))
    replies = tmp_path / TURN_REPLIES
    lines = replies.read_bytes().splitlines(keepends=True)
    for kept, words in (
        (lines[:1], "turn 1 of sample 0 was answered, and its reply was not kept"),
        ([*lines, lines[0]], "a reply to turn 0 of sample 0, which the turns do not tell of once"),
        ([*lines, lines[0].replace(b'"sample":0', b'"sample":3')], "a reply to turn 0 of sample 3"),
    ):
        replies.write_bytes(b"".join(kept))
        with pytest.raises(RunBroke, match=words):
            write_turn_figures(tmp_path, library)
    assert not (tmp_path / TURN_REPORT).exists()
    (tmp_path / TURNS).unlink()
    with pytest.raises(MissingError, match="turns file"):
        write_turn_figures(tmp_path, library)


def test_times_that_cannot_be(library: Library) -> None:
    for turn in (MadeTurn(A, 5, 4, 6, 2), MadeTurn(A, 5, 6, 5, 2), MadeTurn(A, -1, 6, 7, 2)):
        turns = turns_of(library, [0], [[turn, SKIPPED]])
        with pytest.raises(ValueError, match="do not rise"):
            TurnTimes(turns, turns["answer_tokens"])


any_row = st.integers(0, 5)


@st.composite
def some_runs(draw: st.DrawFn) -> tuple[list[int], list[list[MadeTurn]]]:
    """Trajectories that end in any way, some of whose servers count."""
    rows = draw(st.lists(any_row, max_size=5))
    return rows, [draw(some_turns(3 if row % 3 == 1 else 2)) for row in rows]


@st.composite
def some_turns(draw: st.DrawFn, n: int) -> list[MadeTurn]:
    good = draw(st.integers(0, n))
    clock, turns = draw(st.integers(0, 1000)), []
    for _ in range(good):
        waits = [draw(st.integers(0, 50)) for _ in range(3)]
        issued = clock + waits[0]
        first, done = issued + waits[1], issued + waits[1] + waits[2]
        tokens, prompt = draw(st.integers(0, 40)), draw(st.integers(1, 90))
        cached = draw(st.sampled_from([-1, 0, prompt]))
        turns.append(MadeTurn(A, issued, first, done, tokens, prompt, cached, draw(st.integers(0, 2))))
        clock = done
    if good < n:
        ended = draw(st.sampled_from([F, OUT]))
        turns.append(MadeTurn(ended, clock))
        turns += [SKIPPED if ended is F else MadeTurn(OUT)] * (n - good - 1)
    return turns


@settings(deadline=None, max_examples=60)
@given(some_runs())
def test_any_run(tmp_path_factory: pytest.TempPathFactory, library: Library, run: tuple[list[int], Any]) -> None:
    rows, turns = run
    folder = tmp_path_factory.mktemp("run")
    found = report(folder, library, rows, turns)
    flat = [turn for own in turns for turn in own]
    answered = [turn for turn in flat if turn.state is A]
    assert found.turns.turns == len(flat) and found.turns.answered == len(answered)
    assert found.trajectories.issued == len(rows) == sum(found.issued_times.values())
    assert found.trajectories.completed == sum(all(turn.state is A for turn in own) for own in turns)
    assert sum(found.finish_reasons.values()) == len(answered)
    assert (found.latency_ns.count if found.latency_ns else 0) == len(answered)
    assert found.output_tokens.total == sum(turn.output for turn in answered)
    assert found.mean_output.performance_window_turns <= len(answered)
    assert found.inline.missing + sum(1 for each in read_turn_replies(folder / TURN_REPLIES) if each.reply) <= len(flat)
    assert (found.inline.score is None) == (not rows)
    if found.trajectory_latency_ns and found.trajectory_turns_ns:
        assert found.trajectory_turns_ns.mean <= found.trajectory_latency_ns.mean
    if found.ttft_ns and found.latency_ns:
        assert found.ttft_ns.count == found.latency_ns.count and found.ttft_ns.max <= found.latency_ns.max
