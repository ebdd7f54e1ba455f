"""The benchmarks there are, by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from harness.benchmarks.base import Benchmark
from harness.errors import UnknownName
from harness.rules import RulePack

# Named, not imported: a verb that asks for names should not pay for every benchmark's libraries.
_MODULES = {
    "gpt-oss-120b": "harness.benchmarks.gpt_oss_120b.benchmark",
    "qwen3-vl-235b-a22b": "harness.benchmarks.qwen3_vl_235b_a22b.benchmark",
}


def names() -> list[str]:
    """The benchmarks this harness knows."""
    return sorted(_MODULES)


def get(name: str, rules: RulePack) -> Benchmark:
    """A benchmark under the rules of a round. UnknownName where the harness or the round has none such."""
    if name not in _MODULES:
        raise UnknownName("benchmark", name, _MODULES)
    rules.benchmark(name)
    bind: Callable[[RulePack], Benchmark] = importlib.import_module(_MODULES[name]).bind
    return bind(rules)
