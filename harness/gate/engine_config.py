"""What closed allows an engine, held against the configuration that a run kept of itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter, ValidationError

from harness.config.engine_rules import images, prefix_reuse, speculation
from harness.config.engine_subject import STRICT_DIVISIONS, Checked, Subject, keys_of
from harness.config.engines import Engine, HttpEngine, TrtllmEngine
from harness.config.merge import merged
from harness.config.models import OutputCaps
from harness.errors import ConfigError, UnknownName
from harness.gate.findings import Finding, Rule, Severity, rule
from harness.rules import BenchmarkRules

DIVISIONS = STRICT_DIVISIONS
"""Those in which these rules hold."""

PREFIX_REUSE = rule(
    "ENG-PREFIX-REUSE",
    Severity.REJECT,
    "no query served from another's KV cache: block reuse and prefix caching off",
    mend="switch it off in the system's file and run the legs again",
    source="policies/LLM benchmarks (the KV cache does not apply across queries)",
)
IMAGES = rule(
    "ENG-IMAGES",
    Severity.REJECT,
    "pictures as the checkpoint's own preprocessing makes them: no pixel budget, nothing kept for the next query",
    mend="remove it from the system's file and run the legs again",
    source="reference/multimodal/qwen3-vl/README.md:169; policies/inference_rules.adoc:594",
)
SPECULATION = rule(
    "ENG-SPECULATION",
    Severity.REJECT,
    "speculative decoding only in the scenarios that may, with the approved drafter",
    mend="remove it from the system's file, or take the approved settings, and run the legs again",
    source="policies/Speculative Decoding",
)
UNREAD = rule(
    "ENG-UNREAD",
    Severity.REJECT,
    "a configuration of the engine that can be held against the rules",
    mend="package with the harness that made the run, or run the legs again with this one",
    source="harness: the official checker does not look",
)

_CHECKS: tuple[tuple[Rule, Callable[[Checked], Iterator[str]]], ...] = (
    (PREFIX_REUSE, prefix_reuse),
    (IMAGES, images),
    (SPECULATION, speculation),
)


def check_engine_config(
    config: Mapping[str, Any], scenario: str, rules: BenchmarkRules, division: str, path: object
) -> Iterator[Finding]:
    """What a run's own configuration (run.json, ``config``) says against filing it in ``division``.

    ``path`` is where a finding points. An embedded engine has neither prefix reuse nor drafts.
    """
    try:
        engine = engine_of(config, scenario)
        keys = keys_of(engine) if isinstance(engine, HttpEngine | TrtllmEngine) else None
    except (ValidationError, UnknownName, KeyError, TypeError, AttributeError):
        yield UNREAD.broken(path, f"the configuration of {scenario}'s engine is none that is known here")
        return
    if keys is None or not isinstance(engine, HttpEngine | TrtllmEngine):
        return
    checked = Checked(engine, keys, Subject("", scenario, None, rules, OutputCaps(), division))
    for broken, check in _CHECKS:
        error = _refusal(check, checked)
        if error is not None:
            yield broken.broken(path, error.what, error.expected)


def _refusal(check: Callable[[Checked], Iterator[str]], checked: Checked) -> ConfigError | None:
    try:
        for _ in check(checked):
            pass
    except ConfigError as error:
        return error
    return None


def engine_of(config: Mapping[str, Any], scenario: str) -> Engine:
    """The engine of a scenario as :meth:`BenchmarkFile.engine_of` has it, of whatever harness wrote the rest.

    Raises what a configuration that no reader knows raises: ValidationError, KeyError, TypeError or AttributeError.
    """
    own = config["scenarios"][scenario]
    written = dict(own.get("engine") or config["engine"])
    if own.get("replicas") is not None:
        written["replicas"] = own["replicas"]
    options = own.get("engine_options") or {}
    if options:
        written["options"] = merged(written["options"], options)
    engine: Engine = TypeAdapter(Engine).validate_python(written)
    return engine
