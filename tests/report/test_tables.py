from __future__ import annotations

import pytest

from harness.ledger import RunId, State
from harness.ledger.record import AccuracyEcho, SubsetScore, Verdict
from harness.report.tables import result_text, verdict_word
from tests.ledger.made_records import finished, record

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
