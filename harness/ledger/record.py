"""The schema of ``run.json``: all that is known of one run, written by the run itself and read by everything after."""

from __future__ import annotations

import enum
import hashlib
import json
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

SCHEMA: Literal[1] = 1

Count = Annotated[int, Field(ge=0)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class State(str, enum.Enum):
    """Where a run is in its life. ``finished`` says nothing of its verdict.

    ``measured``: LoadGen's part is done and kept, the judgement is still to come; ``--resume`` makes up for it.
    """

    RUNNING = "running"
    MEASURED = "measured"
    FINISHED = "finished"
    BROKEN = "broken"
    INTERRUPTED = "interrupted"


class RunId(_Strict):
    """Which run: it owns the folder ``<system>/<benchmark>/<scenario>/<leg>/attempt_<nn>`` and one process."""

    system: str
    benchmark: str
    scenario: str
    leg: str
    attempt: int = Field(ge=1)

    @property
    def row(self) -> tuple[str, str, str]:
        """The result row it is a leg of."""
        return (self.system, self.benchmark, self.scenario)

    def __str__(self) -> str:
        return f"{self.system}/{self.benchmark}/{self.scenario}/{self.leg}#{self.attempt}"


class Fingerprint(_Strict):
    """What must be equal for legs to make one row, flat: dotted key to value, and the sha256 of it all."""

    digest: str
    keys: dict[str, Any]

    @classmethod
    def of(cls, keys: dict[str, Any]) -> Fingerprint:
        """The fingerprint of these keys; values must be JSON."""
        text = json.dumps(keys, sort_keys=True, separators=(",", ":"))
        return cls(digest=hashlib.sha256(text.encode()).hexdigest(), keys=json.loads(text))

    def differs_from(self, other: Fingerprint) -> list[str]:
        """The keys whose values differ, or that only one of the two has, sorted."""
        mine, theirs = self._texts(), other._texts()
        return sorted(key for key in mine.keys() | theirs.keys() if mine.get(key) != theirs.get(key))

    def _texts(self) -> dict[str, str]:
        """Each value as the digest has it: to Python, False equals 0 and 1 equals 1.0."""
        return {key: json.dumps(value, sort_keys=True) for key, value in self.keys.items()}


class Machine(_Strict):
    """What was read off the machine that serves, when the leg started.

    ``facts`` are the system description's keys with the values read (None: could not be read); ``sources`` say where
    each came from; ``identity`` is a salted hash that two legs on one machine share and that tells nothing of it.
    """

    identity: str
    facts: dict[str, Any]
    sources: dict[str, str]
    accelerators: int
    captured_at: str


class Ecc(_Strict):
    """Whether memory had error correction on when the leg started; None: could not be read, or there is no accelerator.

    ``sources`` say where either was read, or why it was not.
    """

    host: bool | None = None
    accelerators: bool | None = None
    sources: dict[str, str] = Field(default_factory=dict)


class EngineEcho(_Strict):
    """What the engine said of itself once it was up."""

    kind: str
    versions: dict[str, str]
    settings: dict[str, Any]
    checkpoint: dict[str, Any] | None
    slots: int
    max_total_tokens: int
    replicas: list[str] = Field(default_factory=list)


class DatasetEcho(_Strict):
    """The data set a leg used: name, rows, sha256 of its files, whether it is a stand-in, and the number by which the
    run's own prompts were salted, where it had some.
    """

    name: str
    rows: int
    sha256: str
    stand_in: bool
    salt: int | None = None


class Rate(_Strict):
    """LoadGen's target_qps and where it came from: ``configured``, ``warm-up`` or ``Offline run <id>``."""

    target_qps: float
    origin: str


class ProbeEcho(_Strict):
    """Of a short run that a search for a rate made: which search (a number of its row's), the how manieth probe of it,
    the rate that was asked for and why, and what it came to. ``outcome`` is None where nobody judged it.

    A run of full length that a search made to confirm its rate is no probe.
    """

    search: str
    number: int = Field(ge=1)
    rate: float = Field(gt=0)
    purpose: str
    outcome: Literal["pass", "fail", "undecided"] | None = None
    reason: str = ""


class Warmup(_Strict):
    """What was run before StartTest, from prompts outside the data set."""

    requests: int
    answers: int
    output_tokens: int
    seconds: float
    samples_per_s: float


class Counts(_Strict):
    """Samples of the run as the harness counted them. The gate says whether they make up what was issued."""

    issued: Count
    answered: Count
    failed: Count
    outstanding: Count
    output_tokens: Count


class TurnCounts(_Strict):
    """Turns of the trajectories that LoadGen issued. ``issued``: handed to the engine; those skipped never were.

    Outstanding ones are unanswered, or their turn had not come when the run ended.
    """

    issued: Count
    answered: Count
    failed: Count
    skipped: Count
    outstanding: Count

    @model_validator(mode="after")
    def _each_turn_that_ended_was_issued(self) -> TurnCounts:
        ended = self.answered + self.failed
        if not ended <= self.issued <= ended + self.outstanding:
            raise ValueError("answered, failed and outstanding turns do not make up those that were issued")
        return self

    @property
    def turns(self) -> int:
        """All of them."""
        return self.answered + self.failed + self.skipped + self.outstanding


class TurnFigures(_Strict):
    """The main figures of turns; all of them are in turns.json. Latency and rate are over answered turns alone.

    ``mean_latency_ns`` is from a turn's being handed to the engine to its last token. ``inline_score`` is how far the
    answers' commands are the recorded ones, None where nothing can be compared. ``issued`` is how often each trajectory
    was issued, by its id.
    """

    mean_latency_ns: float | None = None
    turns_per_s: float | None = None
    inline_score: float | None = None
    issued: dict[str, Count] = Field(default_factory=dict)


class FailedSample(_Strict):
    """One failed sample (the first hundred are kept)."""

    index: int
    kind: str
    message: str


class VerdictFinding(_Strict):
    """Why a run is not VALID, or what a reader should know: the gate's finding, flattened."""

    rule: str
    severity: str
    path: str
    found: str
    expected: str
    mend: str
    source: str


class Verdict(_Strict):
    """``valid`` only if LoadGen says VALID (performance legs) and our own checks found nothing to reject."""

    valid: bool
    loadgen: str | None
    findings: list[VerdictFinding]


class Result(_Strict):
    """The number that is reported: LoadGen's, by the key that the round names."""

    key: str
    value: float
    units: str


class Comparison(_Strict):
    """One figure as LoadGen's summary has it and as our own samples give it."""

    figure: str
    loadgen: float
    harness: float
    ratio: float


class SubsetScore(_Strict):
    """Counts of one subset of the accuracy data. correct + wrong + failed + unscored = samples."""

    samples: Count
    correct: Count
    wrong: Count
    failed: Count
    unscored: Count
    mean_output_tokens: float | None

    @model_validator(mode="after")
    def _each_sample_is_one_of_them(self) -> SubsetScore:
        if self.correct + self.wrong + self.failed + self.unscored != self.samples:
            raise ValueError("correct, wrong, failed and unscored do not make up the samples")
        return self


class AccuracyEcho(_Strict):
    """The score of an accuracy leg. ``value`` is None while samples are unscored or failed.

    ``also`` are further figures of the same answers, that nothing is judged by.
    """

    key: str
    value: float | None
    subsets: dict[str, SubsetScore]
    evaluator: str
    also: dict[str, float] = Field(default_factory=dict)

    def __str__(self) -> str:
        """The metric where there is one, and the scores by subset, for people."""
        parts = []
        for name, subset in self.subsets.items():
            scored = subset.samples - subset.unscored
            parts.append(f"{name} {subset.correct}/{scored}" if scored else f"{name} {subset.unscored} unscored")
        metric = "" if self.value is None else f"{self.key} {self.value:.6g}; "
        return metric + ", ".join(parts)


class AuditConfigEcho(_Strict):
    """The audit.config that LoadGen obeyed: where it lies in the project, its hash, and that of the approved text.

    The two hashes differ where the file has the approved settings in words of its own.
    """

    name: str
    sha256: str
    approved_sha256: str


class AuditEcho(_Strict):
    """What an audit came to. ``value`` (of ``key``) is None where there is no number; ``verdict_file`` is its text.

    ``verifier`` wrote that text. ``harness_value`` is our own number, from the same log.
    """

    key: str
    value: float | None
    at_least: float
    at_most: float | None
    passed: bool
    verdict_file: str
    verifier: str
    harness_value: float | None

    @model_validator(mode="after")
    def _nothing_passes_without_a_number(self) -> AuditEcho:
        if self.passed and (self.value is None or not self.at_least <= self.value):
            raise ValueError("an audit that passed has a value, and it is not below the threshold")
        return self

    def __str__(self) -> str:
        value = "none" if self.value is None else f"{self.value:.3f}"
        bounds = f"at least {self.at_least}" if self.at_most is None else f"{self.at_least} to {self.at_most}"
        return f"{'PASS' if self.passed else 'FAIL'}, {self.key} {value} ({bounds})"


class RunRecord(_Strict):
    """One run. Written whole at every change of state; a finished record is never written again."""

    schema_version: Literal[1] = SCHEMA
    id: RunId
    round: str
    state: State
    test_run: bool
    started_at: str
    ended_at: str | None = None
    command: list[str]
    config: dict[str, Any]
    fingerprint: Fingerprint
    machine: Machine
    ecc: Ecc | None = None
    engine: EngineEcho
    dataset: DatasetEcho
    versions: dict[str, str]
    loadgen_settings: dict[str, str]
    rate: Rate | None
    warmup: Warmup | None = None
    probe: ProbeEcho | None = None
    not_submittable: list[str]
    deviations: list[str]
    hashes: dict[str, str] = Field(default_factory=dict)
    counts: Counts | None = None
    turns: TurnCounts | None = None
    turn_figures: TurnFigures | None = None
    failures: list[FailedSample] = Field(default_factory=list)
    failure_kinds: dict[str, int] = Field(default_factory=dict)
    client_counters: dict[str, int] | None = None
    verdict: Verdict | None = None
    result: Result | None = None
    accuracy: AccuracyEcho | None = None
    audit_config: AuditConfigEcho | None = None
    audit: AuditEcho | None = None
    comparisons: list[Comparison] = Field(default_factory=list)
    note: str | None = None

    @model_validator(mode="after")
    def _a_finished_run_has_a_verdict(self) -> RunRecord:
        if self.state is State.FINISHED and self.verdict is None:
            raise ValueError("a run that is finished lacks its verdict")
        return self
