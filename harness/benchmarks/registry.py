"""The benchmarks there are, by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING

from harness.errors import ConfigError, UnknownName

if TYPE_CHECKING:  # their models take a third of a second to make, which a LoadGen worker need not spend
    from harness.benchmarks.base import Benchmark
    from harness.config.models import Agentic
    from harness.rules import RulePack

# Named, not imported: a verb that asks for names should not pay for every benchmark's libraries.
_MODULES = {
    "gpt-oss-120b": "harness.benchmarks.gpt_oss_120b.benchmark",
    "qwen3-vl-235b-a22b": "harness.benchmarks.qwen3_vl_235b_a22b.benchmark",
    "qwen3.6-27b": "harness.benchmarks.qwen3_6_27b.benchmark",
}


def names() -> list[str]:
    """The benchmarks this harness knows."""
    return sorted(_MODULES)


def get(name: str, rules: RulePack, agentic: Agentic | None = None) -> Benchmark:
    """A benchmark under the rules of a round; ``agentic`` is how it is asked where it replays trajectories.

    UnknownName where the harness or the round has none such, ConfigError for ``agentic`` of a benchmark that replays
    none.
    """
    if name not in _MODULES:
        raise UnknownName("benchmark", name, _MODULES)
    rules.benchmark(name)
    module = importlib.import_module(_MODULES[name])
    if agentic is None:
        bind: Callable[[RulePack], Benchmark] = module.bind
        return bind(rules)
    if not hasattr(module, "bind_agentic"):
        raise ConfigError(
            f"{name} replays no trajectories", where="agentic", mend="take it out of the benchmark's file"
        )
    bind_agentic: Callable[[RulePack, Agentic], Benchmark] = module.bind_agentic
    return bind_agentic(rules, agentic)
