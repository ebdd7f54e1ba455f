"""What stops a leg before it starts. How legs run and break is tested end to end."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.benchmarks.base import Dataset
from harness.engines.base import PromptTable
from harness.errors import ConfigError, MissingError
from harness.events import ignore
from harness.ledger import ResultsStore
from harness.runs.leg import Group, run_leg
from tests.runs.made_legs import engine_info, leg


@dataclass
class Disk:
    """What ``shutil.disk_usage`` says."""

    free: int


def group(store: ResultsStore) -> Group:
    """An engine that may not be connected to, and a data set of ten prompts."""
    prompts = PromptTable.from_lists([[1] * 100] * 10)
    tables: Any = {
        which: Dataset(which, which, prompts, ("a",) * 10, (None,) * 10, (), stand_in=True)
        for which in ("performance", "accuracy")
    }
    engine: Any = SimpleNamespace(info=engine_info(max_total_tokens=200_000))
    benchmark: Any = SimpleNamespace()
    return Group(benchmark, tables, store.root, engine, store, ["run_harness"], ignore)


@pytest.mark.parametrize(("name", "free"), [("performance", 200 << 20), ("accuracy", 258 << 20)])
def test_a_disk_without_room_for_the_logs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, free: int
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(free))
    with pytest.raises(MissingError) as caught:
        run_leg(leg(name=name), group(ResultsStore(tmp_path)))
    assert f"{free >> 20} MiB free" in caught.value.what
    assert caught.value.where == str(tmp_path)
    assert "--results_dir" in (caught.value.mend or "")
    assert list(tmp_path.iterdir()) == []


def test_a_prompt_too_long_is_told_before_anything_is_made(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="more than the engine takes"):
        run_leg(leg(output_caps={"performance": 199_901}), group(ResultsStore(tmp_path)))
    assert list(tmp_path.iterdir()) == []
