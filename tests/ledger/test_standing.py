"""Where a leg stands, for any history of attempts."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.ledger import Fingerprint, RunId, RunRecord, State, StoredRun
from harness.ledger.record import Verdict
from harness.ledger.standing import Standing, Word, standing
from tests.ledger.made_records import finished, record

NOW, THEN = (Fingerprint.of({"seed": seed}) for seed in (1, 0))


def changed(of: RunRecord) -> list[str]:
    return of.fingerprint.differs_from(NOW)


def run(attempt: int, state: State, *, current: bool = True, valid: bool = True) -> StoredRun:
    run_id = RunId(system="BOX", benchmark="b", scenario="Offline", leg="performance", attempt=attempt)
    changes = {"fingerprint": NOW if current else THEN}
    if state is State.FINISHED:
        verdict = Verdict(valid=valid, loadgen="VALID", findings=[])
        return StoredRun(Path(str(attempt)), finished(run_id, verdict=verdict, **changes))
    return StoredRun(Path(str(attempt)), record(run_id, state=state, note="it was so", **changes))


histories = st.lists(st.tuples(st.sampled_from(State), st.booleans(), st.booleans()), max_size=6).map(
    lambda drawn: [run(i, state, current=current, valid=valid) for i, (state, current, valid) in enumerate(drawn, 1)]
)


def newest_finished(attempts: list[StoredRun]) -> StoredRun | None:
    done = [attempt for attempt in attempts if attempt.record.state is State.FINISHED]
    return done[-1] if done else None


@given(histories)
def test_a_leg_is_done_by_its_newest_finished_run_of_this_configuration_alone(attempts: list[StoredRun]) -> None:
    found = standing(attempts, changed)
    newest = newest_finished(attempts)
    assert found.done is (newest is not None and newest.record.fingerprint == NOW)
    if found.done:
        assert found.run is newest
        assert (found.word is Word.VALID) is newest.record.verdict.valid
    assert found.attempts == len(attempts)


@given(histories, st.randoms(use_true_random=False))
def test_the_order_of_the_records_does_not_matter(attempts: list[StoredRun], random: object) -> None:
    shuffled = list(attempts)
    random.shuffle(shuffled)
    assert standing(shuffled, changed) == standing(attempts, changed)


@given(histories, st.sampled_from([state for state in State if state is not State.FINISHED]))
def test_an_attempt_that_came_to_nothing_undoes_nothing(attempts: list[StoredRun], state: State) -> None:
    before = standing(attempts, changed)
    after = standing([*attempts, run(len(attempts) + 1, state)], changed)
    assert after.done is before.done
    if before.done:
        assert after.run is before.run
        assert after.word is before.word


@given(histories)
def test_what_is_not_done_says_why(attempts: list[StoredRun]) -> None:
    found = standing(attempts, changed)
    assert (found.word is Word.MISSING) is (not attempts)
    if attempts and not found.done:
        assert found.reason


@given(histories)
def test_nothing_runs_where_nobody_works(attempts: list[StoredRun]) -> None:
    assert standing(attempts, changed, alive=False).word is not Word.RUNNING


@pytest.mark.parametrize(
    ("state", "alive", "word", "why"),
    [
        (State.RUNNING, True, Word.RUNNING, "it was so"),
        (State.RUNNING, False, Word.INTERRUPTED, "the harness was killed"),
        (State.MEASURED, False, Word.INTERRUPTED, "--resume judges it"),
        (State.INTERRUPTED, False, Word.INTERRUPTED, "it was so"),
        (State.BROKEN, False, Word.BROKEN, "it was so"),
    ],
)
def test_what_an_unfinished_run_says(state: State, alive: bool, word: Word, why: str) -> None:
    found = standing([run(1, state)], changed, alive=alive)
    assert found.word is word
    assert why in found.reason


def test_a_stale_run_names_what_changed() -> None:
    found = standing([run(1, State.FINISHED, current=False)], changed)
    assert (found.word, found.reason) == (Word.STALE, "changed since: seed")


def test_a_standing_without_a_run_is_missing_and_nothing_else() -> None:
    for word in Word:
        one = None if word is not Word.MISSING else run(1, State.FINISHED)
        with pytest.raises(ValueError, match="a leg that is"):
            Standing(word, one, 1)
