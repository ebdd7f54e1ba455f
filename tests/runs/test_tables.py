"""Which tables legs ask, by kind and scenario, and what engines call them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

from harness.benchmarks.base import Dataset, Which
from harness.engines.base import PromptTable
from harness.runs.identity import fingerprint
from harness.runs.plan import PlannedLeg
from harness.runs.tables import Asked, asked_tables, read_tables, table_of, tables_of
from tests.runs.made_legs import PACK, engine_info, leg
from tests.runs.test_identity import machine


def dataset(table: str) -> Dataset:
    return Dataset(f"b/{table}", table, PromptTable.empty(2), ("", ""), (None, None), (), stand_in=True)


def by_kind(which: Which, scenario: str) -> str:
    return which


def by_scenario(which: Which, scenario: str) -> str:
    return "catalogue-8k" if scenario == "Interactive" else "catalogue"


KINDS: Any = SimpleNamespace(table=by_kind, dataset=lambda _, table: dataset(table))
SCENARIOS: Any = SimpleNamespace(table=by_scenario, dataset=lambda _, table: dataset(table))


def chats(scenario: str, name: str = "performance") -> PlannedLeg:
    planned = leg(scenario, name)
    return PlannedLeg("BOX", "qwen3-vl-235b-a22b", scenario, name, planned.config, PACK, test_run=False)


def test_a_table_for_each_kind_of_leg() -> None:
    assert table_of(leg("Server", "TEST09"), KINDS) == "performance"
    assert tables_of(leg("Server"), KINDS) == ["performance", "accuracy", "TEST07"]
    datasets = read_tables([leg(), leg("Server")], KINDS, Path())
    asked = asked_tables([leg(), leg("Server")], KINDS, datasets)
    assert [(each.which, each.name) for each in asked] == [
        ("performance", "b/performance"), ("accuracy", "b/accuracy"), ("TEST07", "b/TEST07"),
    ]  # fmt: skip


def test_a_table_for_each_scenario() -> None:
    legs = [chats("Offline"), chats("Offline", "accuracy"), chats("Server"), chats("Interactive")]
    assert tables_of(legs[0], SCENARIOS) == ["catalogue"]
    assert table_of(legs[3], SCENARIOS) == "catalogue-8k"
    datasets = read_tables(legs, SCENARIOS, Path())
    assert list(datasets) == ["catalogue", "catalogue-8k"]
    assert [each.name for each in asked_tables(legs, SCENARIOS, datasets)] == [
        "b/catalogue/performance", "b/catalogue/accuracy", "b/catalogue-8k/performance", "b/catalogue-8k/accuracy",
    ]  # fmt: skip
    assert Asked("accuracy", dataset("accuracy")).name == "b/accuracy"


def test_scenarios_with_tables_of_their_own_differ_in_nothing_else() -> None:
    def print_of(scenario: str, **hashes: str) -> Any:
        return fingerprint(chats(scenario), engine_info(), hashes, machine())

    offline = print_of("Offline", catalogue="aa")
    other = offline.differs_from(print_of("Interactive", **{"catalogue-8k": "bb"}))
    assert all(key.startswith("scenario") for key in other)
    assert offline.differs_from(print_of("Offline", catalogue="bb")) == ["scenario_dataset.catalogue"]
