"""How this command runs code that a model wrote: chosen once where its options are read, asked wherever it judges."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from dataclasses import dataclass, field

from harness.benchmarks.gpt_oss_120b.judge.sandbox import Sandbox
from harness.events import Observer, ignore


@dataclass(frozen=True, slots=True)
class JudgeSettings:
    """``workers`` is how many solutions run at once; None: as many as there are cores and memory for. ``observer`` is
    told how many were tried.
    """

    sandbox: Sandbox = "namespaces"
    workers: int | None = None
    observer: Observer = field(default=ignore, compare=False)

    @property
    def deviations(self) -> tuple[str, ...]:
        """In what this departs from how code should be judged."""
        return () if self.sandbox == "namespaces" else ("model-written code ran without a sandbox",)


_CURRENT: ContextVar[JudgeSettings | None] = ContextVar("judge_settings", default=None)


def current() -> JudgeSettings:
    """The settings in force."""
    return _CURRENT.get() or JudgeSettings()


@contextlib.contextmanager
def judged(settings: JudgeSettings) -> Iterator[None]:
    """Puts settings in force."""
    token = _CURRENT.set(settings)
    try:
        yield
    finally:
        _CURRENT.reset(token)
