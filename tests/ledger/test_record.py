from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import ValidationError

from harness.ledger import Fingerprint, RunId, RunRecord, State
from harness.ledger.record import Counts, SubsetScore, TurnCounts
from tests.ledger.made_records import finished, record

ID = RunId(system="BOX", benchmark="gpt-oss-120b", scenario="Offline", leg="performance", attempt=1)
JSON = (
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8) | st.lists(st.integers(), max_size=3)
)


def test_a_record_survives_its_file() -> None:
    for one in (record(ID), finished(ID), record(ID, state=State.BROKEN, note="it broke")):
        assert RunRecord.model_validate_json(json.dumps(one.model_dump(mode="json"))) == one


def test_an_id_says_which_run() -> None:
    assert str(ID) == "BOX/gpt-oss-120b/Offline/performance#1"
    assert ID.row == ("BOX", "gpt-oss-120b", "Offline")


@pytest.mark.parametrize(
    "changes",
    [
        {"state": State.FINISHED},
        {"schema_version": 2},
        {"extra": 1},
        {"id": ID.model_copy(update={"attempt": 0}).model_dump()},
        {"state": "done"},
    ],
)
def test_what_a_record_cannot_be(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        RunRecord.model_validate(record(ID).model_dump() | changes)


def test_counts_are_none_below_zero() -> None:
    with pytest.raises(ValidationError):
        Counts(issued=3, answered=4, failed=0, outstanding=-1, output_tokens=0)


def test_a_subsets_counts_make_up_its_samples() -> None:
    SubsetScore(samples=4, correct=1, wrong=1, failed=1, unscored=1, mean_output_tokens=None)
    with pytest.raises(ValidationError, match="make up"):
        SubsetScore(samples=4, correct=1, wrong=1, failed=1, unscored=0, mean_output_tokens=None)


@given(st.dictionaries(st.text(max_size=6), JSON, max_size=8), st.integers())
def test_a_fingerprint_does_not_depend_on_the_order_of_its_keys(keys: dict[str, Any], seed: int) -> None:
    shuffled = list(keys.items())
    random.Random(seed).shuffle(shuffled)
    assert Fingerprint.of(dict(shuffled)) == Fingerprint.of(keys)
    assert Fingerprint.of(keys).differs_from(Fingerprint.of(dict(shuffled))) == []


@example({"a": False}, {"a": 0})
@example({"a": 1}, {"a": 1.0})
@given(*[st.dictionaries(st.sampled_from("abcd"), JSON, max_size=4)] * 2)
def test_fingerprints_differ_exactly_where_their_digests_do(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    one, other = Fingerprint.of(mine), Fingerprint.of(theirs)
    differing = one.differs_from(other)
    assert differing == other.differs_from(one) == sorted(differing)
    assert (differing == []) == (one.digest == other.digest)


def test_a_key_that_is_none_is_not_a_key_that_is_absent() -> None:
    assert Fingerprint.of({"a": None}).differs_from(Fingerprint.of({})) == ["a"]


def test_counts_of_turns_make_up_those_that_were_issued() -> None:
    counts = TurnCounts(issued=4, answered=2, failed=1, skipped=3, outstanding=2)
    assert counts.turns == 8
    for wrong in ({"issued": 2}, {"issued": 6}, {"skipped": -1}):
        with pytest.raises(ValidationError):
            TurnCounts(**counts.model_dump() | wrong)
