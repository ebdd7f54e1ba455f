"""What a round demands of one benchmark."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from harness.errors import UnknownName
from harness.rules.audits import AuditRules, EndpointsAudit
from harness.rules.values import (
    EndpointsMetric,
    LayoutName,
    Metric,
    ModelParams,
    OutputCaps,
    Ruled,
    SamplingRule,
    ScenarioSet,
    Speculation,
    Strict,
    Subset,
    Target,
    UpperLimit,
)


class ScenarioRules(Strict):
    """One scenario: LoadGen's names for it, its metrics and limits. ``*_below_*`` is strict, ``*_at_most_*`` is not.

    ``datasets`` and ``accuracy_target`` stand in place of the benchmark's. ``target_latency_at_most_ms`` is what early
    stopping may be told to hold the whole answer's latency to, ``latency_p99_at_most_ms`` what that latency may be.
    ``logged_performance_rows`` is LoadGen's performance sample count where it is not the data set's size.
    """

    loadgen_model: Ruled[str]
    loadgen_scenario: Ruled[str]
    metric: Ruled[Metric]
    endpoints_metric: Ruled[EndpointsMetric] | None = None
    min_query_count: Ruled[int] | None = None
    min_samples_issued: Ruled[int] | None = None
    ttft_p99_below_ms: Ruled[float] | None = None
    tpot_p99_below_ms: Ruled[float] | None = None
    latency_p99_at_most_ms: Ruled[float] | None = None
    target_latency_at_most_ms: Ruled[float] | None = None
    datasets: dict[str, Ruled[int]] = Field(default_factory=dict)
    accuracy_target: Ruled[Target] | None = None
    logged_performance_rows: Ruled[int] | None = None


class Bandwidth(Strict):
    """Elements that go in and out with each sample, of which the network must carry the bytes."""

    ingress_elements: int
    egress_elements: int


class DatasetDownload(Strict):
    """Where a data set of MLCommons' storage is had, and what of it must be there.

    ``index`` is a small text that holds the address of the files; a list of their md5 lies beside it. ``required`` are
    the files without which legs cannot run, ``md5`` those hashes that a text of MLCommons' says too.
    """

    index: Ruled[Annotated[str, Field(pattern=r"^https?://[^/]+/.+\.uri$")]]
    required: Ruled[list[str]]
    md5: Ruled[dict[str, str]]


class ClientDataset(Strict):
    """The data set that the endpoints client measures with, by its name there; ``file`` is one of ours (below the
    benchmark's data folder) where the client has none of its own, ``parser`` the columns that it takes of it.
    """

    name: str
    file: str | None = None
    parser: dict[str, str] | None = None


class ClientScoredDataset(Strict):
    """A data set that the endpoints client scores, and what it scores it with."""

    name: str
    eval_method: str
    ground_truth: str | None = None
    extractor: str | None = None
    num_repeats: Annotated[int, Field(ge=1)]


class ClientData(Strict):
    """What the endpoints client asks in a scenario; ``cache`` is where it keeps its copy, below ``dataset_cache``."""

    performance: ClientDataset
    accuracy: Annotated[list[ClientScoredDataset], Field(min_length=1)]
    cache: str | None = None


class ClientExtra(Strict):
    """What the endpoints client needs in its own Python to score a benchmark: an extra of its package, the package that
    comes with it, and the module of which it is used, without which a score ends a run that is over.
    """

    name: str
    package: str
    version: str
    module: str


class EndpointsClient(Strict):
    """How the endpoints client is told a benchmark. ``Interactive`` is None where it has the data of the others.

    ``settings`` are written besides those that the round demands, by dotted key.
    """

    api_type: str
    skip_special_tokens: bool | None = None
    extra: ClientExtra | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    default: ClientData
    Interactive: ClientData | None = None

    def data(self, scenario: str) -> ClientData:
        """What is asked in a scenario."""
        return self.Interactive if scenario == "Interactive" and self.Interactive is not None else self.default


class BenchmarkRules(Strict):
    """What every benchmark has, whatever goes in and out."""

    model: Ruled[str]
    revision: Ruled[str] | None = None
    layouts: Ruled[list[LayoutName]]
    categories: Ruled[list[str]]
    required_scenarios: Ruled[list[str]]
    one_of_scenarios: Ruled[list[str]]
    scenario_sets: dict[str, Ruled[ScenarioSet]]
    """By ``system_type``; the two lists above are those of the main category."""
    scenario_spelling_exact: Ruled[bool] | None = None
    audits: Ruled[list[str]]
    audit_rules: dict[str, AuditRules] = Field(default_factory=dict)
    endpoints_audits: dict[str, Ruled[EndpointsAudit]] = Field(default_factory=dict)
    datasets: dict[str, Ruled[int]]
    dataset_download: DatasetDownload | None = None
    accuracy_subsets: Ruled[dict[str, Subset]]
    accuracy_weighting: Ruled[Literal["per_repeat", "per_sample", "single"]]
    accuracy_target: Ruled[Target]
    accuracy_more_targets: list[Ruled[Target]] = Field(default_factory=list)
    accuracy_pattern: Ruled[str]
    """How the official checker finds the accuracy in a line of accuracy.txt, from the line's beginning."""
    accuracy_upper_limit: Ruled[UpperLimit] | None = None
    accuracy_upper_pattern: Ruled[str] | None = None
    accuracy_review_below: Ruled[Target] | None = None
    loadgen_accuracy_target: Ruled[Target] | None = None
    """What the checker asks of the LoadGen layout where it differs from ``accuracy_target``."""
    accuracy_scale: Ruled[Literal["fraction"]] | None = None
    accuracy_reference: Ruled[dict[str, float]] | None = None
    endpoints_score_keys: Ruled[list[str]] | None = None
    output_caps: OutputCaps | None = None
    reasoning_effort: Ruled[dict[str, str]] | None = None
    sampling: Ruled[SamplingRule]
    sampling_more: Ruled[dict[str, float]] | None = None
    endpoints_model_params: Ruled[ModelParams] | None = None
    endpoints_settings: Ruled[dict[str, Any]] | None = None
    endpoints_agentic: Ruled[dict[str, Any]] | None = None
    endpoints_client: Ruled[EndpointsClient] | None = None
    use_token_latencies: Ruled[bool]
    min_answer_tokens: Ruled[int]
    sample_concatenate_permutation: Ruled[bool] | None = None
    longest_prompts: Ruled[dict[str, int]] | None = None
    """Tokens of the longest prompt, by leg, as far as the round tells."""
    prefix_caching: Ruled[bool] | None = None
    """Whether the KV cache of one query may serve another; None where the round says nothing."""
    speculative_decoding: Ruled[dict[str, Speculation]] | None = None
    """The scenarios that may decode speculatively; closed and network may in no other."""
    bandwidth: Ruled[Bandwidth] | None = None
    scenarios: dict[str, ScenarioRules]
    """Those of which the round has results."""
    analysis_scenarios: dict[str, ScenarioRules] = Field(default_factory=dict)
    """Further ones that LoadGen can run the benchmark in: what comes of it is looked at, and is no row of the round."""

    @model_validator(mode="after")
    def _no_scenario_is_both(self) -> BenchmarkRules:
        both = sorted(self.scenarios.keys() & self.analysis_scenarios.keys())
        if both:
            raise ValueError(f"scenarios with results and for analysis alone: {both}")
        return self

    def scenario(self, name: str) -> ScenarioRules:
        """The rules of one scenario, of a row or for analysis; UnknownName with the nearest where there is none such.

        What asks for the round's rows alone looks into ``scenarios``.
        """
        known = {**self.analysis_scenarios, **self.scenarios}
        if name not in known:
            raise UnknownName("scenario", name, known)
        return known[name]

    def rows(self, leg: str, scenario: str) -> int:
        """Rows of the data set that a leg of a scenario runs over."""
        own = self.scenario(scenario).datasets
        return (own[leg] if leg in own else self.datasets[leg]).value

    def target(self, scenario: str, layout: LayoutName = "loadgen") -> Ruled[Target]:
        """The accuracy that a scenario's result must reach in a layout."""
        own = self.scenario(scenario).accuracy_target
        if own is not None:
            return own
        if layout == "loadgen" and self.loadgen_accuracy_target is not None:
            return self.loadgen_accuracy_target
        return self.accuracy_target


class CodeTests(Strict):
    """How the reference tests programs: LiveCodeBench's release, and the wall time of one test in seconds."""

    release: str
    test_timeout_s: float


class TokenRules(BenchmarkRules):
    """A benchmark of token ids in and out."""

    kind: Literal["tokens"]
    code_tests: Ruled[CodeTests] | None = None
    revision: Ruled[str]
    vocab_size: Ruled[int]
    stop_token_ids: Ruled[list[int]]
    output_caps: OutputCaps


class DatasetSource(Strict):
    """A data set of a hub, at a revision."""

    repo: str
    revision: str
    splits: list[str]
    rows: int


class EndpointsDatasets(Strict):
    """The endpoints client's names of a benchmark's data sets and of what scores them."""

    default: str
    Interactive: str
    eval_method: str


class ImageRules(BenchmarkRules):
    """A benchmark of pictures and text in."""

    kind: Literal["images"]
    dataset_sources: dict[str, Ruled[DatasetSource]]
    guided_decoding: Ruled[bool] | None = None
    image_changes: Ruled[bool] | None = None
    calibration_rows: Ruled[list[int]] | None = None
    endpoints_datasets: Ruled[EndpointsDatasets] | None = None


class PerformanceData(Strict):
    """Recorded trajectories that are replayed: the file, its hash, and what is in it."""

    file: str
    sha256: str
    trajectories: int
    turns: int
    scorable_turns: int


class BfclSampling(Strict):
    """How many of each category of BFCL are asked, in percent, and at least how many of a subset."""

    category_sample_pct: dict[str, int]
    subset_floor: int


class BfclData(Strict):
    """The package that BFCL's questions and their checker come in, and the hash of those that are asked of it."""

    package: str
    version: str
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class TrajectoryRules(BenchmarkRules):
    """A benchmark that replays an agent's trajectories turn by turn."""

    kind: Literal["trajectories"]
    performance_data: Ruled[PerformanceData]
    accuracy_sampling: Ruled[BfclSampling]
    accuracy_data: Ruled[BfclData]
    missing_turns_at_most: Ruled[int] | None = None
    inline_score_reference: Ruled[float] | None = None


AnyBenchmark: TypeAlias = Annotated[TokenRules | ImageRules | TrajectoryRules, Field(discriminator="kind")]
