"""From a configuration to an engine's settings."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from harness.benchmarks.base import Dataset, ScriptedAnswers, Which
from harness.config.models import ScriptedEngine
from harness.engines.base import PromptTable
from harness.runs.engine_spec import engine_spec


def table(which: Which, *subsets: str) -> Dataset:
    prompts = PromptTable.from_lists([[1]] * len(subsets))
    return Dataset(f"b/{which}", which, prompts, subsets, ("A",) * len(subsets), (), stand_in=True)


def test_a_table_is_told_the_shares_of_its_own_subsets(tmp_path: Path) -> None:
    asked: dict[str, Any] = {}

    def answers(dataset: Dataset, shares: dict[str, float], **_: object) -> ScriptedAnswers:
        asked[dataset.which] = shares
        return ScriptedAnswers(np.zeros(0, np.int32), np.zeros(0, np.int64))

    tables: dict[Which, Dataset] = {
        "performance": table("performance", "pubmed"),
        "accuracy": table("accuracy", "aime", "gpqa"),
        "TEST07": table("TEST07", "gpqa"),
    }
    config = ScriptedEngine(
        kind="scripted", right={"aime": 0.8, "gpqa": 0.6, "typo": 0.1}, faults={"TEST07": {"hang": [1]}}
    )
    benchmark: Any = SimpleNamespace(scripted_answers=answers)
    spec = engine_spec(config, benchmark, tables, tmp_path)
    # The accuracy table is told all of them: its benchmark refuses the one that no table has.
    assert asked == {"accuracy": {"aime": 0.8, "gpqa": 0.6, "typo": 0.1}, "TEST07": {"gpqa": 0.6}}
    assert set(spec.settings["answers"]) == {"b/accuracy", "b/TEST07"}
    assert spec.settings["faults"] == {"b/TEST07": {"hang": [1]}}
