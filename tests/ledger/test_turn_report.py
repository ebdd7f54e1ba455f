"""The schema of turns.json: what cannot be is refused, what was written is read."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from harness.errors import MissingError
from harness.ledger.record import TurnCounts
from harness.ledger.turn_report import (
    TURN_REPORT,
    Inline,
    Lengths,
    Spread,
    TrajectoryStates,
    TurnReport,
    read_turn_report,
    write_turn_report,
)

NOBODY = {"by_server": 0, "by_tokenizer": 0, "unknown": 0, "tokenizer": None, "total": 0, "tokens": None}


def nothing(**changes: Any) -> TurnReport:
    """The report of a run in which nothing was issued."""
    content: dict[str, Any] = dict.fromkeys(TurnReport.model_fields) | {
        "format": 1,
        "turns": dict.fromkeys(TurnCounts.model_fields, 0),
        "trajectories": dict.fromkeys(TrajectoryStates.model_fields, 0),
        "by_turn": (),
        **dict.fromkeys(("input_tokens", "output_tokens", "cached_tokens"), NOBODY),
        "mean_output": {
            "performance_window": None,
            "performance_window_turns": 0,
            "performance_window_s": None,
            "all_turns": None,
        },
        "finish_reasons": {},
        "issued_times": {"a": 0},
        "inline": {"score": None, "recorded": 0, "scored": 0, "missing": 0, "skipped": 0, "domains": {}},
        "notes": (),
    }
    return TurnReport.model_validate(content | changes)


def test_percentiles_are_values_that_were_measured() -> None:
    assert Spread.of(np.zeros(0)) is None
    assert Spread.of(np.array([7])) == Spread(count=1, mean=7, p50=7, p90=7, p99=7, max=7)
    hundred = Spread.of(np.arange(100, 0, -1))
    assert hundred == Spread(count=100, mean=50.5, p50=50, p90=90, p99=99, max=100)
    assert Spread.of(np.array([4, 1, 3, 2])) == Spread(count=4, mean=2.5, p50=2, p90=4, p99=4, max=4)
    assert Spread.of(np.array([1.5, 2.5, 0.5])) == Spread(count=3, mean=1.5, p50=1.5, p90=2.5, p99=2.5, max=2.5)


@given(st.lists(st.integers(0, 10**12), min_size=1, max_size=300))
def test_so_many_percent_do_not_exceed_a_percentile(values: list[int]) -> None:
    spread = Spread.of(np.array(values))
    assert spread is not None
    assert spread.p50 <= spread.p90 <= spread.p99 <= spread.max == max(values)
    for percent, found in ((50, spread.p50), (90, spread.p90), (99, spread.p99)):
        assert found in values
        assert sum(value <= found for value in values) >= math.ceil(percent * len(values) / 100)
        assert sum(value < found for value in values) < percent * len(values) / 100


def test_what_was_written_is_read(tmp_path: Path) -> None:
    report = nothing()
    write_turn_report(tmp_path, report)
    assert read_turn_report(tmp_path) == report
    assert [path.name for path in tmp_path.iterdir()] == [TURN_REPORT]
    found = json.loads((tmp_path / TURN_REPORT).read_text())
    assert found["turns_per_s"] is None and found["inline"]["score"] is None


@pytest.mark.parametrize(
    ("text", "words"),
    [("", "Invalid JSON"), ("[]", "object"), ('{"format": 1}', "required"), ("{", "Invalid JSON")],
)
def test_files_that_are_none(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / TURN_REPORT).write_text(text)
    with pytest.raises(MissingError, match=f"not the figures of turns: .*{words}"):
        read_turn_report(tmp_path)


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(MissingError, match="cannot be read: No such file"):
        read_turn_report(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"turns": {"issued": 2, "answered": 1, "failed": 0, "skipped": 1, "outstanding": 0}},
        {"turns": {"issued": 1, "answered": 1, "failed": 1, "skipped": 0, "outstanding": 0}},
        {"trajectories": {"issued": 2, "completed": 1, "failed": 0, "outstanding": 0}},
        {"issued_times": {"a": 1}},
        {"finish_reasons": {"stop": 1}},
        {"output_tokens": NOBODY | {"by_server": 1}},
        {"output_tokens": NOBODY | {"tokenizer": "x"}},
        {"output_tokens": NOBODY | {"unknown": 1}},
        {"output_tokens": NOBODY | {"total": None}},
        {"turns_per_s": -1.0},
        {"surprise": 1},
    ],
)
def test_figures_that_do_not_add_up(changes: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        nothing(**changes)


def test_scores_and_spreads_that_cannot_be() -> None:
    with pytest.raises(ValidationError, match="not there"):
        Inline(score=None, recorded=2, scored=1, missing=0, skipped=0, domains={})
    with pytest.raises(ValidationError, match="not there"):
        Inline(score=0.5, recorded=2, scored=1, missing=1, skipped=2, domains={})
    with pytest.raises(ValidationError, match="do not rise"):
        Spread(count=1, mean=1, p50=2, p90=1, p99=3, max=3)
    with pytest.raises(ValidationError, match="other turns"):
        Lengths(**NOBODY | {"tokens": Spread(count=1, mean=1, p50=1, p90=1, p99=1, max=1)})
