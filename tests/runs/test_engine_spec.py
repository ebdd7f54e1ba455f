"""From a configuration to an engine's settings."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from harness.benchmarks.base import Dataset, Which
from harness.benchmarks.scripts import ScriptedAnswers, ScriptedReplies
from harness.config.models import ScriptedEngine, TrtllmEngine
from harness.engines.base import PromptTable
from harness.errors import ConfigError
from harness.runs.engine_spec import engine_spec, trtllm_members
from harness.runs.tables import Asked


def table(which: Which, *subsets: str) -> Dataset:
    prompts = PromptTable.from_lists([[1]] * len(subsets))
    return Dataset(f"b/{which}", which, prompts, subsets, ("A",) * len(subsets), (), stand_in=True)


def test_a_table_is_told_the_shares_of_its_own_subsets(tmp_path: Path) -> None:
    asked: dict[str, Any] = {}

    def answers(dataset: Dataset, shares: dict[str, float], **_: object) -> ScriptedAnswers:
        asked[dataset.table] = shares
        return ScriptedAnswers(np.zeros(0, np.int32), np.zeros(0, np.int64))

    tables = [
        Asked("performance", table("performance", "pubmed")),
        Asked("accuracy", table("accuracy", "aime", "gpqa")),
        Asked("TEST07", table("TEST07", "gpqa")),
    ]
    config = ScriptedEngine(
        kind="scripted", right={"aime": 0.8, "gpqa": 0.6, "typo": 0.1}, faults={"TEST07": {"hang": [1]}}
    )
    benchmark: Any = SimpleNamespace(scripted_answers=answers)
    spec = engine_spec(config, benchmark, tables, tmp_path)
    # The accuracy table is told all of them: its benchmark refuses the one that no table has.
    assert asked == {"accuracy": {"aime": 0.8, "gpqa": 0.6, "typo": 0.1}, "TEST07": {"gpqa": 0.6}}
    assert set(spec.settings["answers"]) == {"b/accuracy", "b/TEST07"}
    assert spec.settings["faults"] == {"b/TEST07": {"hang": [1]}}


def test_chats_are_answered_from_a_file_whoever_asks(tmp_path: Path) -> None:
    """A table that legs of several kinds ask is told apart by the kind: a fault is of one of them."""
    asked: list[Any] = []

    def replies(dataset: Dataset, shares: dict[str, float], **_: object) -> ScriptedReplies:
        asked.append((dataset.table, shares))
        return ScriptedReplies.of(["x"], [1])

    catalogue = dataclasses.replace(table("performance", "products"), name="b/catalogue", table="catalogue")
    catalogue = dataclasses.replace(catalogue, chats=tmp_path / "chats")
    tables = [Asked("performance", catalogue), Asked("accuracy", catalogue)]
    benchmark: Any = SimpleNamespace(scripted_answers=replies)
    config = ScriptedEngine(kind="scripted", faults={"accuracy": {"fail": [1]}})
    spec = engine_spec(config, benchmark, tables, tmp_path)
    assert set(spec.settings["answers"]) == {"b/catalogue/performance", "b/catalogue/accuracy"}
    assert len(set(spec.settings["answers"].values())) == 1
    assert spec.settings["faults"] == {"b/catalogue/accuracy": {"fail": [1]}}
    assert asked == [("catalogue", {})]


def trtllm(**changes: Any) -> TrtllmEngine:
    checkpoint = {"name": "openai/gpt-oss-120b", "path": "/models/gpt-oss", "weight_data_type": "mxfp4"}
    options = {"tensor_parallel_size": 2, "max_seq_len": 4096}
    content = {"kind": "trtllm", "version": "1.2", "checkpoint": checkpoint, "replicas": 2, "options": options}
    return TrtllmEngine.model_validate(content | changes)


@pytest.mark.parametrize(
    ("named", "pinned"), [(None, ["0,1", "2,3"]), ("4,5,6,7", ["4,5", "6,7"]), ("GPU-a, GPU-b,GPU-c,GPU-d", None)]
)
def test_each_process_of_tensorrt_llm_has_its_own_gpus(
    monkeypatch: pytest.MonkeyPatch, named: str | None, pinned: list[str] | None
) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    if named is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", named)
    members = trtllm_members(trtllm())
    expected = pinned or ["GPU-a,GPU-b", "GPU-c,GPU-d"]
    assert [member.environment["CUDA_VISIBLE_DEVICES"] for member in members] == expected
    assert members[0].spec == members[1].spec
    settings = members[0].spec.settings
    assert settings["checkpoint"] == "/models/gpt-oss"
    assert settings["name"] == "openai/gpt-oss-120b"
    assert settings["weight_data_type"] == "mxfp4"
    assert settings["options"] == {"tensor_parallel_size": 2, "max_seq_len": 4096}


def test_too_few_gpus_for_all_processes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1,2")
    with pytest.raises(ConfigError, match="take 4 GPUs, CUDA_VISIBLE_DEVICES names 3"):
        trtllm_members(trtllm())
