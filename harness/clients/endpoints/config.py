"""What the endpoints client is told: its YAML, from the round's rules and what a leg chose."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import yaml

from harness.clients.endpoints import agentic
from harness.engines.base import Sampling
from harness.errors import ConfigError
from harness.rules import BenchmarkRules, RulePack, TrajectoryRules
from harness.rules.benchmark import (
    BfclSampling,
    ClientData,
    ClientDataset,
    ClientScoredDataset,
    EndpointsClient,
    ImageRules,
)
from harness.rules.layouts import EndpointsLayout

LEG: Final = "endpoints"
"""The leg of a row that the client makes: both phases, performance and accuracy, in one run."""
CONFIG: Final = "endpoints.yaml"
"""What the client is told, in the run's folder. What it makes of that, it writes to its report as ``config.yaml``."""
REPORT: Final = "report"
"""The client's report, below the run's folder, which is its working folder."""
TOKENIZER: Final = "tokenizer"
DATA: Final = "data"
"""Links in the run's folder to what the client is told to read: so that no path of this machine is published."""

_OFFLINE: Final = "Offline"
_PERFORMANCE, _ACCURACY = "performance", "accuracy"
_CAP: Final = "max_new_tokens"
_SAMPLING: Final = frozenset(each.name for each in dataclasses.fields(Sampling))
_IMAGE_BUFFER: Final = 16 << 20
"""Bytes of the client's sockets between its processes: a request with an image does not fit in the usual ones."""
_READY_S: Final = 600.0
"""How long the client's own processes may take until they serve: one of them reads a tokenizer, on a busy machine."""


@dataclass(frozen=True, slots=True)
class Choices:
    """What a run of the client chooses within the rules.

    ``endpoints`` are base URLs of servers that serve ``model`` under that name; ``has_tokenizer`` is whether its
    tokenizer is linked into the run's folder, else the client looks for one. ``samples`` and ``rate`` (samples/s) are
    None where the data decide. ``caps`` are new tokens an answer may have, by leg. ``says_sampling`` is whether the
    servers would sample otherwise than the round does where a request does not say how.

    Of a benchmark of trajectories: ``trajectories`` are issued, and ``sampling`` says which questions are asked, in
    place of the round's; ``chat_template_kwargs`` go with every request.
    """

    name: str
    scenario: str
    model: str
    endpoints: tuple[str, ...]
    caps: Mapping[str, int]
    samples: int | None
    rate: float | None
    min_duration_ms: int
    workers: int
    connections: int
    has_tokenizer: bool = False
    says_sampling: bool = False
    trajectories: int | None = None
    sampling: BfclSampling | None = None
    chat_template_kwargs: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.endpoints or self.workers % len(self.endpoints):
            raise ValueError(f"{self.workers} workers cannot share {len(self.endpoints)} endpoints alike")


def layout_and_client(pack: RulePack, benchmark: str) -> tuple[EndpointsLayout, EndpointsClient]:
    """The round's layout of the client's results and how the client is told a benchmark.

    ConfigError where the round takes no such results, or where nothing says how the client measures the benchmark.
    """
    layout, rules = pack.layouts.endpoints, pack.benchmark(benchmark)
    if layout is None or "endpoints" not in rules.layouts.value or benchmark not in layout.benchmarks.value:
        takers = [] if layout is None else layout.benchmarks.value
        raise ConfigError(
            f"{pack.round} takes no results of the endpoints client for {benchmark}",
            where="--client=endpoints",
            expected="one of " + ", ".join(takers) if takers else None,
            mend="measure it with LoadGen: --client=loadgen",
        )
    if rules.endpoints_client is None:
        raise ConfigError(
            f"nothing says yet how the endpoints client measures {benchmark}",
            where=f"rules of {pack.round}: benchmarks.{benchmark}.endpoints_client",
            mend="measure it with LoadGen: --client=loadgen",
        )
    return layout, rules.endpoints_client.value


def config_text(pack: RulePack, benchmark: str, chosen: Choices) -> str:
    """The client's YAML. ConfigError as of :func:`layout_and_client`."""
    return yaml.safe_dump(client_config(pack, benchmark, chosen), sort_keys=False, allow_unicode=True)


def client_config(pack: RulePack, benchmark: str, chosen: Choices) -> dict[str, Any]:
    """The same as an object: official seeds and duration, the data's revision, no sampling but what the round says.

    What the round leaves to the checkpoint is not written at all where the servers take it from there.
    """
    layout, client = layout_and_client(pack, benchmark)
    rules, data = pack.benchmark(benchmark), client.data(chosen.scenario)
    online = chosen.scenario != _OFFLINE
    kinds = layout.scenario_of_type.value
    return {
        "name": chosen.name,
        "version": "1.0",
        "type": next(kind for kind, scenario in kinds.items() if (scenario != _OFFLINE) == online),
        "submission_ref": {"model": benchmark, "ruleset": layout.ruleset.value.format(round=pack.round)},
        "model_params": _model_params(rules, client, chosen, streaming=online),
        "datasets": _datasets(rules, data, chosen),
        "settings": _settings(pack, layout, rules, client, chosen),
        "endpoint_config": {"endpoints": list(chosen.endpoints), "api_type": client.api_type},
        "report_dir": REPORT,
    }


def _model_params(
    rules: BenchmarkRules, client: EndpointsClient, chosen: Choices, *, streaming: bool
) -> dict[str, Any]:
    ruled = rules.endpoints_model_params
    required = {} if ruled is None else dict(ruled.value.required)
    if ruled is not None and isinstance(rules, ImageRules) and chosen.says_sampling:
        required = {name: value for name, value in ruled.value.allowed.items() if name in _SAMPLING} | required
    params = {"name": chosen.model, **required, _CAP: chosen.caps[_PERFORMANCE]}
    if client.skip_special_tokens is not None:
        params["skip_special_tokens"] = client.skip_special_tokens
    if chosen.has_tokenizer:
        params["tokenizer_name"] = TOKENIZER
    if chosen.chat_template_kwargs:
        params["chat_template_kwargs"] = dict(chosen.chat_template_kwargs)
    return params | {"streaming": "on" if streaming else "off"}


def _datasets(rules: BenchmarkRules, data: ClientData, chosen: Choices) -> list[dict[str, Any]]:
    measured, scored = _measured(data.performance), [_scored(one, chosen) for one in data.accuracy]
    if isinstance(rules, TrajectoryRules):
        asked = {"generate_params": agentic.questions(rules, chosen.sampling)}
        return [measured | agentic.replay(rules, chosen.trajectories), *(one | asked for one in scored)]
    return [one | _pin(rules, chosen.scenario) for one in (measured, *scored)]


def _pin(rules: BenchmarkRules, scenario: str) -> dict[str, Any]:
    """The revision, which the client would take from the head of the data set's repository."""
    if not isinstance(rules, ImageRules):
        return {}
    source = rules.dataset_sources.get(scenario, rules.dataset_sources["default"])
    return {"generate_params": {"revision": source.value.revision}}


def _measured(data: ClientDataset) -> dict[str, Any]:
    written: dict[str, Any] = {"name": data.name, "type": _PERFORMANCE}
    if data.file is not None:
        written["path"] = f"{DATA}/{data.file}"
    if data.parser is not None:
        written["parser"] = dict(data.parser)
    return written


def _scored(data: ClientScoredDataset, chosen: Choices) -> dict[str, Any]:
    written: dict[str, Any] = {"name": data.name, "type": _ACCURACY}
    if chosen.caps[_ACCURACY] != chosen.caps[_PERFORMANCE]:
        written["generation_config_override"] = {_CAP: chosen.caps[_ACCURACY]}
    return written | {"accuracy_config": data.model_dump(exclude={"name"}, exclude_none=True)}


def _settings(
    pack: RulePack, layout: EndpointsLayout, rules: BenchmarkRules, client: EndpointsClient, chosen: Choices
) -> dict[str, Any]:
    runtime: dict[str, Any] = {
        "min_duration_ms": chosen.min_duration_ms,
        "scheduler_random_seed": pack.seeds.schedule.value,
        "dataloader_random_seed": pack.seeds.sample_index.value,
    }
    if chosen.samples is not None:
        runtime["n_samples_to_issue"] = chosen.samples
    load: dict[str, Any] = {"type": layout.load_patterns.value.get(chosen.scenario)}
    if chosen.rate is not None:
        load["target_qps"] = chosen.rate
    settings: dict[str, Any] = {
        "runtime": runtime,
        "load_pattern": load,
        "client": _client(rules, chosen),
        # Waiting for what is outstanding is part of the run: a limit would cut an Offline run's end.
        "drain": {"performance_timeout_s": None, "accuracy_timeout_s": None},
        # Warm-up prompts of the client's are rows of the data set. The harness has warmed up before, with others.
        "warmup": {"enabled": False, "salt": False},
        "early_stopping": {"enabled": True},
        "service_ready_timeout_s": _READY_S,
    }
    ruled = {} if rules.endpoints_settings is None else rules.endpoints_settings.value
    for key, value in {**client.settings, **ruled}.items():
        _set(settings, key.split("."), value)
    return settings


def _client(rules: BenchmarkRules, chosen: Choices) -> dict[str, Any]:
    client: dict[str, Any] = {
        "num_workers": chosen.workers,
        "max_connections": chosen.connections,
        "worker_initialization_timeout": _READY_S,
    }
    if isinstance(rules, ImageRules):
        size = {"recv_buffer_size": _IMAGE_BUFFER, "send_buffer_size": _IMAGE_BUFFER}
        client["transport"] = {"type": "zmq", **size}
    return client


def _set(settings: dict[str, Any], way: list[str], value: object) -> None:
    *sections, last = way
    for section in sections:
        settings = settings.setdefault(section, {})
    settings[last] = value
