"""What the user writes: systems, how a benchmark runs on them, and the entries of a submission."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal, Union

import orjson
from pydantic import Field, field_validator, model_validator

from harness.config.engines import (
    Clients,
    Engine,
    HttpEngine,
    Launch,
    ScriptedEngine,
    ServedCheckpoint,
    ServiceTime,
    TinyCheckpoint,
    TorchEngine,
    TrtllmEngine,
)
from harness.config.merge import merged
from harness.config.strict import Strict

__all__ = [
    "Agentic",
    "BenchmarkFile",
    "Clients",
    "Engine",
    "Entry",
    "HttpEngine",
    "Launch",
    "MeasuredRate",
    "OfflineShare",
    "OutputCaps",
    "Scenario",
    "ScriptedEngine",
    "ServedCheckpoint",
    "ServiceTime",
    "SubmissionFile",
    "SystemFile",
    "TargetQps",
    "Term",
    "TestRun",
    "TinyCheckpoint",
    "TorchEngine",
    "TrtllmEngine",
    "UnmeasuredRate",
    "WarmupSettings",
]


class SystemFile(Strict):
    """``systems/<system>/system.yaml``: what only a person can say of a machine. None means: nobody has said it.

    The names are those of the published system descriptions. What can be read off the machine is not here: it is
    captured when a leg starts; the optional fields here are for what could not be read, or was read wrongly. A value
    given here wins over the captured one, and the manifest says so.
    """

    system_name: str | None
    number_of_nodes: Annotated[int, Field(ge=1)] | None
    cooling: str | None
    host_networking_topology: str | None
    host_processor_model_name: str | None = None
    host_processors_per_node: Annotated[int, Field(ge=1)] | None = None
    host_processor_core_count: Annotated[int, Field(ge=1)] | None = None
    host_processor_frequency: str | None = None
    host_processor_caches: str | None = None
    host_memory_capacity: str | None = None
    host_networking: str | None = None
    host_network_card_count: str | None = None
    host_memory_configuration: str | None = None
    host_storage_type: str | None = None
    host_storage_capacity: str | None = None
    host_processor_interconnect: str | None = None
    accelerators_per_node: Annotated[int, Field(ge=1)] | None = None
    accelerator_model_name: str | None = None
    accelerator_memory_capacity: str | None = None
    accelerator_frequency: str | None = None
    accelerator_host_interconnect: str | None = None
    accelerator_interconnect: str | None = None
    accelerator_interconnect_topology: str | None = None
    accelerator_memory_configuration: str | None = None
    framework: str | None = None
    operating_system: str | None = None
    other_software_stack: str | None = None
    hw_notes: str = ""
    sw_notes: str = ""
    system_type_detail: str = ""
    bandwidth: str | None = None
    """How data reaches the machine and how fast (documentation/bandwidth.md): NICs, links, measured or rated rate."""
    sources: dict[str, Annotated[str, Field(min_length=1)]] = Field(default_factory=dict)
    """Where values given here are from (who published or captured them), by key."""

    @model_validator(mode="after")
    def _a_source_is_of_a_value(self) -> SystemFile:
        for key in self.sources:
            if key == "sources" or key not in type(self).model_fields:
                raise ValueError(f"sources names {key!r}, which is no key of this file")
            if getattr(self, key) in (None, ""):
                raise ValueError(f"sources names {key!r}, which has no value here")
        return self


class MeasuredRate(Strict):
    """A rate taken from the warm-up just before (Offline), times ``share``."""

    warmup_share: Annotated[float, Field(gt=0, le=1.5)]


class OfflineShare(Strict):
    """A rate that is a share of the newest finished Offline performance run of the same fingerprint."""

    offline_share: Annotated[float, Field(gt=0, le=1)]


class Term(Strict):
    """A number that a first guess is made of, and who says it."""

    value: Annotated[float, Field(gt=0)]
    source: Annotated[str, Field(min_length=1)]


class UnmeasuredRate(Strict):
    """A rate that nobody has measured with this engine: a first guess in samples/s, by arithmetic that is shown.

    The guess is the product of ``times`` over that of ``over``, each term under the name of what it is.
    """

    rate: Literal["unmeasured"]
    times: Annotated[dict[str, Term], Field(min_length=1)]
    over: dict[str, Term] = Field(default_factory=dict)

    @property
    def guess(self) -> float:
        """Samples a second."""
        above = math.prod(term.value for term in self.times.values())
        return above / math.prod(term.value for term in self.over.values())

    @property
    def arithmetic(self) -> str:
        """How the guess comes about, for people."""
        shown = " x ".join(f"{term.value:g} ({name})" for name, term in self.times.items())
        shown += "".join(f" / {term.value:g} ({name})" for name, term in self.over.items())
        return f"{shown} = {self.guess:.2f} samples/s"


# LoadGen's clock has nanoseconds: no query comes more often.
TargetQps = Union[  # noqa: UP007 - Annotated | X needs 3.11
    Annotated[float, Field(gt=0, le=1e9)], MeasuredRate, OfflineShare, UnmeasuredRate
]


class Scenario(Strict):
    """One scenario on one system. ``min_duration_ms`` may lengthen the round's minimum, never shorten it."""

    target_qps: TargetQps
    min_duration_ms: Annotated[int, Field(gt=0)] | None = None
    min_query_count: Annotated[int, Field(gt=0)] | None = None
    target_latency_ms: Annotated[int, Field(gt=0)] | None = None
    """What early stopping holds a whole trajectory's latency to: needed in Server, where LoadGen would take a few
    milliseconds, and nowhere else. Other benchmarks have the round's.
    """
    engine: Engine | None = None
    """An engine of the scenario's own in place of the benchmark's: for settings that a round allows there alone."""
    replicas: Annotated[int, Field(ge=1)] | None = None
    """How many servers or engine processes there are in this scenario; None: as many as the engine says."""
    engine_options: dict[str, Any] = Field(default_factory=dict)
    """Options of the engine's that differ in this scenario; mappings merge, other values take the place of those."""
    audit_shares: dict[Literal["TEST07", "TEST09"], Annotated[float, Field(gt=0, le=1)]] = Field(default_factory=dict)
    """The share of ``target_qps`` at which an audit asks (1 where none is said): TEST07's answers are long."""


class OutputCaps(Strict):
    """New tokens an answer may have. None takes the round's; another value is a stated deviation."""

    performance: Annotated[int, Field(ge=2)] | None = None
    accuracy: Annotated[int, Field(ge=2)] | None = None


class WarmupSettings(Strict):
    """Requests run before StartTest, from prompts outside the data set."""

    requests: Annotated[int, Field(ge=0)] = 64


class Agentic(Strict):
    """How an agent's trajectories are asked; of benchmarks that replay some.

    ``repeats`` of each trajectory are in LoadGen's library. ``salt`` makes their prompts differ: as the mlcommons
    client's (``upstream``), by one of the run's own (``run``), or not at all. ``max_concurrency`` trajectories are
    under way at once, in scenarios that ask more than one. ``chat_template_kwargs`` go with every chat.
    """

    repeats: Annotated[int, Field(ge=1, le=10_000)] = 50
    """Each is really there: some 50 MB of requests on disk."""
    salt: Literal["upstream", "run"] | None = "upstream"
    tool_delays: bool = False
    max_concurrency: Annotated[int, Field(ge=1)] = 32
    chat_template_kwargs: dict[str, Any] = Field(default_factory=dict)

    @field_validator("chat_template_kwargs")
    @classmethod
    def _is_json(cls, kwargs: dict[str, Any]) -> dict[str, Any]:
        for name, value in kwargs.items():
            try:
                same = orjson.loads(orjson.dumps({name: value})) == {name: value}
            except (TypeError, ValueError):
                same = False
            if not same:
                raise ValueError(f"{name!a} is {value!a}, which no JSON can say")
        return kwargs


class TestRun(Strict):
    """What ``--test_run`` shortens to: rows of each data set, and seconds. It makes a run not submittable."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    performance_samples: Annotated[int, Field(ge=1)] = 128
    accuracy_samples: Annotated[int, Field(ge=1)] = 64
    min_duration_ms: Annotated[int, Field(ge=1)] = 8000
    server_queries: Annotated[int, Field(ge=1)] = 512
    """LoadGen's early stopping wants some hundreds of queries before it believes a 99th percentile."""
    stream_queries: Annotated[int, Field(ge=1)] = 64
    """SingleStream's: the fewest of which LoadGen's early stopping tells a 90th percentile."""


class BenchmarkFile(Strict):
    """``systems/<system>/<benchmark>.yaml``: the engine and the scenarios of one benchmark on one system."""

    engine: Engine
    output_caps: OutputCaps = OutputCaps()
    scenarios: Annotated[dict[str, Scenario], Field(min_length=1)]
    warmup: WarmupSettings = WarmupSettings()
    test_run: TestRun = TestRun()
    agentic: Agentic | None = None
    """Of a benchmark of trajectories; None takes the defaults there."""
    seed: int = 0
    """Starts the engine's random stream."""
    watchdog_s: Annotated[float, Field(gt=0)] = 300
    """A run in which nothing comes for so long while samples are outstanding is ended as broken."""

    @model_validator(mode="after")
    def _offline_does_not_follow_itself(self) -> BenchmarkFile:
        offline = self.scenarios.get("Offline")
        if offline is not None and isinstance(offline.target_qps, OfflineShare):
            raise ValueError("Offline's target_qps cannot be a share of Offline's own rate")
        if offline is not None and offline.audit_shares:
            raise ValueError("Offline's audits ask all at once: audit_shares says nothing there")
        return self

    @model_validator(mode="after")
    def _engine_options_are_of_an_engine_with_options(self) -> BenchmarkFile:
        for name, scenario in self.scenarios.items():
            engine = scenario.engine or self.engine
            if isinstance(engine, HttpEngine | TrtllmEngine):
                continue
            if scenario.engine_options:
                raise ValueError(f"{name}: an engine of kind {engine.kind} has no options that engine_options could be")
            if scenario.replicas is not None:
                raise ValueError(f"{name}: an engine of kind {engine.kind} has no replicas")
        return self

    @model_validator(mode="after")
    def _the_replicas_of_each_scenario_add_up(self) -> BenchmarkFile:
        for name, scenario in self.scenarios.items():
            if scenario.replicas is not None:
                engine = self.engine_of(name)
                type(engine).model_validate(engine.model_dump(), strict=False)
        return self

    def engine_of(self, scenario: str) -> Engine:
        """The engine of a scenario: its own or the one that all share, with what differs there."""
        own = self.scenarios[scenario]
        engine = own.engine or self.engine
        if not isinstance(engine, HttpEngine | TrtllmEngine) or (not own.engine_options and own.replicas is None):
            return engine
        replicas = engine.replicas if own.replicas is None else own.replicas
        return engine.model_copy(update={"options": merged(engine.options, own.engine_options), "replicas": replicas})


class Entry(Strict):
    """What is submitted: one benchmark on one system, in one division and category."""

    division: Literal["closed", "open", "network"]
    category: Literal["datacenter", "edge"]
    availability: Literal["available", "preview", "rdi"]
    system: str
    benchmark: str
    model_folder: Annotated[str, Field(pattern=r"^[A-Za-z0-9](?:[A-Za-z0-9._-]{0,62}[A-Za-z0-9])?$")] | None = None
    """The folder of its results, and of its source, where that is called as the model that was served: in open alone,
    where a file ``model_mapping.json`` says whose results they are. None is the benchmark's name.
    """
    scenarios: Annotated[list[str], Field(min_length=1)]

    @model_validator(mode="after")
    def _a_model_of_its_own_is_open(self) -> Entry:
        if self.model_folder is not None and self.division != "open":
            raise ValueError(f"model_folder {self.model_folder}: the official checker reads model_mapping.json in open")
        return self

    @property
    def folder(self) -> str:
        """What the folder of its results is called."""
        return self.model_folder or self.benchmark


class SubmissionFile(Strict):
    """``submission.yaml``: who submits what. ``submitter`` is the organisation's directory name; None is not said."""

    round: str
    submitter: str | None
    entries: Annotated[list[Entry], Field(min_length=1)]
