from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest
from rich.console import Console

from harness.ledger import ResultsStore, RunId, RunRecord, State
from harness.ledger.record import AccuracyEcho, SubsetScore, TurnFigures, Verdict
from harness.report.tables import result_text, turns_of_runs, verdict_word
from harness.runs.turn_figures import write_turn_figures
from tests.ledger.made_records import add, finished, record
from tests.runs.made_turns import A, MadeTurn, keep, small_library, turns_of

ID = RunId(system="BOX", benchmark="gpt-oss-120b", scenario="Offline", leg="accuracy", attempt=1)


def subset(correct: int, unscored: int) -> SubsetScore:
    wrong = 10 - correct - unscored
    return SubsetScore(samples=10, correct=correct, wrong=wrong, failed=0, unscored=unscored, mean_output_tokens=4.0)


@pytest.mark.parametrize("state", [State.RUNNING, State.BROKEN, State.INTERRUPTED])
def test_a_run_without_a_verdict_is_called_by_its_state(state: State) -> None:
    assert verdict_word(record(ID, state=state)) == state.value


@pytest.mark.parametrize(("valid", "word"), [(True, "VALID"), (False, "INVALID")])
def test_a_finished_run_is_called_by_its_verdict(valid: bool, word: str) -> None:
    assert verdict_word(finished(ID, verdict=Verdict(valid=valid, loadgen=None, findings=[]))) == word


def test_what_a_run_came_to() -> None:
    assert result_text(finished(ID)) == "12.50 Tokens/s"
    scores = AccuracyEcho(
        key="exact_match", value=None, subsets={"aime": subset(6, 0), "code": subset(0, 10)}, evaluator="ours"
    )
    assert result_text(finished(ID, result=None, accuracy=scores)) == "aime 6/10, code 10 unscored"
    whole = scores.model_copy(
        update={"key": "f1", "value": 0.7593609668176138, "subsets": {"aime": scores.subsets["aime"]}}
    )
    assert result_text(finished(ID, result=None, accuracy=whole)) == "f1 0.759361; aime 6/10"
    assert result_text(record(ID, state=State.BROKEN, note="it broke")) == "it broke"
    assert result_text(record(ID)) == ""


def shown(store: ResultsStore, records: Iterable[RunRecord]) -> str:
    console = Console(width=140, force_terminal=False)
    with console.capture() as capture:
        console.print(turns_of_runs(store, records), end="")
    return capture.get()


def test_turns_are_shown_under_the_run_that_they_are_of(tmp_path: Path) -> None:
    store, library = ResultsStore(tmp_path / "results"), small_library(tmp_path)
    figures = TurnFigures(issued={"a": 1})
    folders = [add(store, scenario, turn_figures=figures) for scenario in ("Offline", "Server")]
    add(store, "Interactive")
    turns = [[MadeTurn(A, 0, 100, 400, 4, 5000, 0, 2), MadeTurn(A, 500, 550, 650, 3, 9000, 4500, 0)]]
    keep(folders[0], library, turns_of(library, [0], turns))
    write_turn_figures(folders[0], library)
    found = shown(store, [run.record for run in store.runs()])
    offline, server = found.split("BOX/gpt-oss-120b/Server/performance#1")
    assert offline.startswith("BOX/gpt-oss-120b/Offline/performance#1")
    assert "turns: 2 answered" in offline
    assert server.strip() == "the figures of turns cannot be read: No such file or directory"


def test_where_no_run_has_turns_nothing_is_shown(tmp_path: Path) -> None:
    store = ResultsStore(tmp_path)
    add(store)
    assert shown(store, [run.record for run in store.runs()]) == ""
