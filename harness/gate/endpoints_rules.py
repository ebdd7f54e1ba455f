"""The rules that a result of the endpoints client must keep."""

from __future__ import annotations

from harness.gate.findings import Severity, rule

_REJECT, _REVIEW, _NOTE = Severity.REJECT, Severity.REVIEW, Severity.NOTE
_HERE = "harness: the official checker does not look"
_PERFORMANCE = "checker/performance_check"
_ACCURACY = "checker/accuracy_check"
_RERUN = "run the benchmark again"
_CLIENT = "take the files as the client wrote them, unedited and whole; or run the benchmark again"
_CONFIG = "correct the client's configuration and run the benchmark again; never edit config.yaml afterwards"

ROUND = rule(
    "EP-ROUND",
    _REJECT,
    "a round and a benchmark that take the endpoints client's reports",
    mend="measure with LoadGen, or give the right --round",
    source="checker/constants RESULT_FIELD_ENDPOINTS, ENDPOINTS_ALLOWED_MODELS",
)
NETWORK = rule(
    "EP-NETWORK",
    _REJECT,
    "a LoadGen run in the network division",
    mend="measure with LoadGen: the client's reports name no system under test, and the official checker asks for it",
    source="checker/performance_check network_check",
)
FILES = rule("EP-FILES", _REJECT, "reports as the endpoints client writes them", mend=_CLIENT, source="checker/loader")
VALUE = rule(
    "EP-VALUE",
    _REJECT,
    "values of the type that the client writes",
    mend=_CLIENT,
    source="checker/endpoints_parser (another type breaks the check that reads it)",
)
CONTRADICTION = rule(
    "EP-CONTRADICTION",
    _REJECT,
    "reports that say what config.yaml says",
    mend="file the reports and the config.yaml of one run, unedited",
    source="checker/endpoints_parser (believes the report before the configuration)",
)
SCENARIO = rule(
    "EP-SCENARIO",
    _REJECT,
    "a run of the folder's scenario: type offline for Offline, online for all others",
    mend="file the run in its own scenario's folder; the client writes the type in lower case",
    source=_PERFORMANCE,
)
SEEDS = rule(
    "EP-SEEDS",
    _REJECT,
    "the round's seeds, as whole numbers",
    mend="set settings.runtime.scheduler_random_seed and dataloader_random_seed, or submission_ref.ruleset",
    source=_PERFORMANCE,
)
DURATION_SETTING = rule(
    "EP-DURATION-SETTING",
    _REJECT,
    "settings.runtime.min_duration_ms of the round or longer, as a number",
    mend=_CONFIG,
    source=_PERFORMANCE,
)
DURATION = rule(
    "EP-DURATION",
    _REJECT,
    "a run that really lasted the round's minimum duration",
    mend="raise target_qps or n_samples_to_issue, in whole passes over the data set, and run again",
    source="policies/Duration (the checker reads the setting alone, and results that lasted less have been published)",
)
COMPLETE = rule(
    "EP-COMPLETE",
    _REJECT,
    "complete true and state complete in result_summary.json",
    mend="let the run come to its end: a longer drain, no interrupt; and run it again",
    source=_HERE,
)
FAILED = rule(
    "EP-FAILED",
    _REJECT,
    "no failed sample, and every issued one completed",
    mend="mend what failed (events.jsonl tells it) and run again: failures shorten latencies and raise rates",
    source="harness: the official checker does not look at the performance run's",
)
ERRORS = rule(
    "EP-ERRORS",
    _REJECT,
    "no failure counted in the accuracy report",
    mend="mend what failed and run the accuracy phase again",
    source="checker/accuracy_check loadgen_errors_check",
)
COUNT = rule(
    "EP-COUNT",
    _REJECT,
    "at least one sample issued for each row of the data set",
    mend="leave n_samples_to_issue out, or set it to whole passes over the data set",
    source="policies/sample counts (the checker does not look)",
)
PASSES = rule(
    "EP-PASSES",
    _REVIEW,
    "whole passes over the data set",
    mend="set n_samples_to_issue to a multiple of the data set, or say in the README why not",
    source=_HERE,
)
TTFT = rule("EP-TTFT", _REJECT, "99th percentile of TTFT below the limit", mend="lower target_qps", source=_PERFORMANCE)
TPOT = rule("EP-TPOT", _REJECT, "99th percentile of TPOT below the limit", mend="lower target_qps", source=_PERFORMANCE)
LATENCY = rule(
    "EP-LATENCY",
    _REJECT,
    "99th percentile of the latency not above the limit",
    mend="lower target_qps",
    source=_PERFORMANCE,
)
ESTIMATES = rule(
    "EP-ESTIMATES",
    _NOTE,
    "early_stopping_percentiles in the report",
    mend="use a client that writes them, leave settings.early_stopping on, and issue enough samples",
    source="endpoints/metrics/early_stopping",
)
METRIC = rule("EP-METRIC", _REJECT, "the scenario's metric, above 0", mend=_RERUN, source=_PERFORMANCE)
FIGURES = rule(
    "EP-FIGURES",
    _REVIEW,
    "figures that follow from the report's own counts and durations",
    mend=_CLIENT,
    source=_HERE,
)
SCORE = rule("EP-SCORE", _REJECT, "a score in accuracy_results.json", mend="score the accuracy phase", source=_ACCURACY)
TARGET = rule(
    "EP-TARGET",
    _REJECT,
    "the accuracy target, in the first score that accuracy_results.json has",
    mend="find what the model lost, or enter the result in open",
    source=_ACCURACY,
)
GATE = rule(
    "EP-GATE",
    _REJECT,
    "the accuracy target of the benchmark, over all of its data sets as it weighs them",
    mend="score every data set of the benchmark; find what the model lost, or enter the result in open",
    source="policies/accuracy (the checker compares qwen3-vl's alone)",
)
ACCURACY_COUNT = rule(
    "EP-ACC-COUNT",
    _REJECT,
    "accuracy samples that add up to the benchmark's",
    mend="run the accuracy phase over the whole data set",
    source="checker/accuracy_check dataset_check",
)
ACCURACY_COMPLETE = rule(
    "EP-ACC-COMPLETE",
    _REJECT,
    "an accuracy phase in which every sample was answered and scored",
    mend="run the accuracy phase again: a sample that never completes is left out of the score",
    source=_HERE,
)
ACCURACY_EMPTY = rule(
    "EP-ACC-EMPTY",
    _REVIEW,
    "an answer for each accuracy sample",
    mend="look why answers are empty: a cut stream counts as answered",
    source=_HERE,
)
ACCURACY_SPLIT = rule(
    "EP-ACC-SPLIT",
    _REVIEW,
    "the benchmark's samples in each of its data sets",
    mend="run the accuracy phase with the benchmark's own sampling",
    source=_HERE,
)
ACCURACY_FIRST = rule(
    "EP-ACC-FIRST",
    _NOTE,
    "to know which score is published",
    mend="nothing: the official table shows the first score of the file alone",
    source="checker/accuracy_check",
)
SHOWN = rule(
    "EP-ACC-SHOWN",
    _NOTE,
    "to know how far the accuracy is from what closed must reach",
    mend="say in the README of an open row what the served model reaches",
    source="policies/accuracy (nothing is asked of open)",
)
INLINE = rule(
    "EP-INLINE",
    _NOTE,
    "to know how near the measured answers are to the recorded ones, beside the reference's",
    mend="look at scores.json where it is far below the reference: answers may be cut, empty or not calls of tools",
    source="endpoints/examples/11_Edge_Agentic_Example (reported, not gated)",
)
OUTPUT_LENGTH = rule(
    "EP-OSL",
    _REJECT,
    "a mean output length within the window of TEST09",
    mend="find out why answers are shorter or longer than the reference's",
    source="checker/compliance_check compliance_endpoints_check (in open too)",
)
AUDIT = rule(
    "EP-AUDIT",
    _REJECT,
    "an audit report of the right test that passed, or none",
    mend="run the audit again, or remove the file",
    source="checker/compliance_check compliance_endpoints_check (in open too)",
)
MODEL = rule(
    "EP-CONFIG-MODEL",
    _REJECT,
    "the benchmark's model in config.yaml",
    mend="file the run of this benchmark; name the model by its official name",
    source="policies/models",
)
SAMPLING = rule("EP-SAMPLING", _REJECT, "the benchmark's sampling and nothing else", mend=_CONFIG, source=_HERE)
LOAD = rule(
    "EP-LOAD", _REJECT, "the load pattern of the scenario and the benchmark's settings", mend=_CONFIG, source=_HERE
)
SCORER = rule("EP-SCORER", _REJECT, "the benchmark's data sets and scorers", mend=_CONFIG, source=_HERE)
STREAMING = rule(
    "EP-STREAMING",
    _REJECT,
    "streaming on where TTFT is limited",
    mend=_CONFIG,
    source="policies/token latencies",
)
REVISION = rule(
    "EP-REVISION",
    _REVIEW,
    "the data set at the reference's revision",
    mend="set datasets[].generate_params.revision; the client takes main and keeps what it once fetched",
    source="reference/README",
)
FINISH = rule(
    "EP-FINISH",
    _REVIEW,
    "a finish reason for each completed sample",
    mend="look for streams that were cut: the client counts them as completed",
    source=_HERE,
)
TRUNCATED = rule(
    "EP-TRUNCATED",
    _NOTE,
    "to know how many answers the output cap cut",
    mend="nothing, where the share is small and the accuracy phase has the same",
    source=_HERE,
)
VERSION = rule(
    "EP-VERSION",
    _NOTE,
    "the client's version and commit",
    mend="say in the README which commit of the client measured; run it from its clone",
    source=_HERE,
)
OURS = rule(
    "EP-OURS",
    _REVIEW,
    "reports that the endpoints client wrote",
    mend="file the client's own files",
    source=_HERE,
)
STALE = rule(
    "EP-STALE",
    _REVIEW,
    "a model whose rules upstream still has",
    mend="say in the README by which rules it was measured; the official checker covers none of them",
    source="endpoints/examples/10_Agentic_Inference",
)
TURNS = rule(
    "EP-TURNS",
    _REJECT,
    "every turn of every trajectory observed",
    mend="raise max_duration_ms and turn_timeout_s, mend what broke trajectories, and run again",
    source="endpoints/compliance/checker",
)
