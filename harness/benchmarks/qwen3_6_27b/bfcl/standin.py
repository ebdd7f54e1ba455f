"""Made-up questions of BFCL's kinds, for machines that have not bfcl-eval's: a stand-in for the table of rows."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from harness.benchmarks.qwen3_6_27b.bfcl.subsets import CATEGORIES, CATEGORY_OF, HALLUCINATION, SIMPLE, SUBSETS
from harness.benchmarks.qwen3_6_27b.bfcl.table import NAME, STAND_IN, TABLE, Json, Row, encoded
from harness.benchmarks.standins import Written
from harness.rules.benchmark import TrajectoryRules

_CALLS_AT_ONCE: Final = 2
_OFFERED: Final = 3
"""Functions to choose from, where there is a choice."""


@dataclass(frozen=True, slots=True)
class _Deed:
    """A function, how somebody asks for it, and what its arguments may be: numbers of a range, or one of some words."""

    name: str
    says: str
    asked: str
    arguments: Mapping[str, range | Sequence[str]]

    def draw(self, rng: random.Random) -> dict[str, Json]:
        return {key: rng.choice(values) for key, values in self.arguments.items()}

    def function(self) -> dict[str, Json]:
        properties = {
            key: {"type": "integer" if isinstance(values, range) else "string", "description": f"The {key} in question"}
            for key, values in self.arguments.items()
        }
        parameters = {"type": "dict", "properties": properties, "required": list(properties)}
        return {"name": self.name, "description": self.says, "parameters": parameters}


_DEEDS: Final = (
    _Deed(
        "garden.water", "Waters a bed.", "Water bed {bed} for {minutes} minutes.",
        {"bed": range(1, 40), "minutes": range(2, 60)},
    ),
    _Deed(
        "tram.ticket", "Buys tickets.", "I need {adults} tram tickets for {zones} zones.",
        {"zones": range(1, 9), "adults": range(1, 20)},
    ),
    _Deed(
        "library.lend", "Lends a book.", "Lend me {title} for {weeks} weeks.",
        {"title": ("Emma", "Dracula", "Middlemarch", "Frankenstein"), "weeks": range(1, 12)},
    ),
    _Deed(
        "kettle.boil", "Boils water for a drink.", "Boil {cups} cups for {drink}.",
        {"cups": range(1, 9), "drink": ("tea", "cocoa", "coffee")},
    ),
)  # fmt: skip
_OF_NO_USE: Final = ("What rhymes with harbour?", "Why is the sea salty?", "Who was the first to fly over the Alps?")


def write(folder: Path, rules: TrajectoryRules, *, seed: int, rows: int | None = None) -> Written:
    """Writes the table into a data folder that is being made, the same for the same seed: with as many rows of each
    category as the round asks, or the first ``rows`` of these.
    """
    path = folder / NAME
    counts = {category: subset.samples for category, subset in rules.accuracy_subsets.value.items()}
    some = list(islice(made(seed, counts), rows))
    path.write_bytes(encoded(some))
    return Written((path,), {TABLE: len(some)})


def made(seed: int, counts: Mapping[str, int]) -> Iterator[Row]:
    """So many rows of each category. The first of each subset come first, then the second: a part has all kinds."""
    many = {
        subset: counts[category] // len(subsets) + (place < counts[category] % len(subsets))
        for category, subsets in CATEGORIES.items()
        for place, subset in enumerate(subsets)
    }
    for number in range(max(many.values())):
        for subset in SUBSETS:
            if number < many[subset]:
                rng = random.Random(f"{seed}/bfcl/{subset}/{number}")  # noqa: S311 - questions, not secrets
                yield _row(f"{STAND_IN}{subset}_{number}", subset, rng)


def _row(name: str, subset: str, rng: random.Random) -> Row:
    # Of Java and JavaScript only numbers: how a text is written there is no matter of a stand-in.
    deeds = _DEEDS[:_CALLS_AT_ONCE] if subset in SIMPLE else _DEEDS
    offered = rng.sample(deeds, _OFFERED if "multiple" in subset else 1)
    functions = [deed.function() for deed in offered]
    tools = [{"type": "function", "function": _tool(function)} for function in functions]
    if CATEGORY_OF[subset] == HALLUCINATION:
        messages = [{"role": "user", "content": rng.choice(_OF_NO_USE)}]
        return Row(name, subset, messages, tools, functions, None)
    calls = [(deed, deed.draw(rng)) for deed in _called(subset, offered)]
    messages = [{"role": "user", "content": " ".join(deed.asked.format(**said) for deed, said in calls)}]
    truth = [{deed.name: {key: [value] for key, value in said.items()}} for deed, said in calls]
    return Row(name, subset, messages, tools, functions, truth)


def _called(subset: str, offered: Sequence[_Deed]) -> list[_Deed]:
    """Which functions are right to call, in order."""
    if "parallel" not in subset:
        return [offered[0]]
    return list(offered[:_CALLS_AT_ONCE]) if "multiple" in subset else [offered[0]] * _CALLS_AT_ONCE


def _tool(function: Mapping[str, Json]) -> dict[str, Json]:
    parameters = {**function["parameters"], "type": "object"}
    return {**function, "name": function["name"].replace(".", "_"), "parameters": parameters}
