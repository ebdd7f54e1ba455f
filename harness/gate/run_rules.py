"""The rules that one run of LoadGen must keep."""

from __future__ import annotations

from harness.gate.findings import Severity, rule

_HERE = "harness: the official checker does not look"
_CHECKER = "checker/performance_check"
_RERUN = "run the leg again"
_SETTINGS = "leave the round's settings as they are: remove the key from the system's file and run the leg again"

LOG = rule(
    "LG-LOG",
    Severity.REJECT,
    "logs as LoadGen wrote them",
    mend="take the file as LoadGen wrote it, unedited and whole; or run the leg again",
    source="checker/loader",
)
STRAY_LINES = rule(
    "LG-STRAY-LINES",
    Severity.REVIEW,
    "no line in the detail log but LoadGen's records",
    mend="find out what else writes to the log; never edit it",
    source=_HERE,
)
CONTRADICTION = rule(
    "LG-CONTRADICTION",
    Severity.REJECT,
    "one value for each key of the detail log",
    mend="take the file as LoadGen wrote it; a log of two runs in one file is none",
    source="checker/loadgen_parser (believes the first)",
)
VERSION = rule(
    "LG-VERSION",
    Severity.NOTE,
    "a LoadGen version with its commit",
    mend="say in the README which commit LoadGen was built from (aarch64 has no wheel and is built from source)",
    source="policies/LoadGen",
)
MODE = rule(
    "LG-MODE", Severity.REJECT, "the test mode of the leg", mend="file the log of the right leg here", source=_HERE
)
SCENARIO = rule(
    "LG-SCENARIO",
    Severity.REJECT,
    "the scenario of the folder",
    mend="file the log of the right scenario here",
    source="checker/performance_check (of the accuracy log it does not look)",
)
VALID = rule(
    "LG-VALID",
    Severity.REJECT,
    "result_validity VALID",
    mend="see LoadGen's reasons in the summary; change the rate and run the leg again",
    source=_HERE,
)
ERRORS = rule(
    "LG-ERRORS",
    Severity.REJECT,
    "no error record in the detail log",
    mend="mend what the record says and run the leg again",
    source="checker/accuracy_check (in the performance log it does not look)",
)
WARNINGS = rule(
    "LG-WARNINGS",
    Severity.NOTE,
    "no warning record in the detail log",
    mend="read the record; harmless ones need no rerun",
    source=_HERE,
)
DURATION = rule(
    "LG-DURATION",
    Severity.REJECT,
    "a run that really lasted the round's minimum duration",
    mend="Offline: set target_qps to what the system reaches; Server: leave max_duration and max_query_count unset",
    source="policies/minimum duration (the checker reads the setting alone)",
)
DURATION_SETTING = rule(
    "LG-DURATION-SETTING",
    Severity.REJECT,
    "min_duration of the round or longer",
    mend="remove min_duration_ms from systems/<system>/<benchmark>.yaml and run the leg again without --test_run",
    source=_CHECKER,
)
CLOCK = rule(
    "LG-CLOCK",
    Severity.REVIEW,
    "power_begin and power_end as far apart as the run was long",
    mend="explain the jump of the wall clock, or run the leg again",
    source=_HERE,
)
SEEDS = rule(
    "LG-SEEDS",
    Severity.REJECT,
    "the round's seeds",
    mend="read the settings through one FromConfig call a process, with the round's LoadGen",
    source=_CHECKER,
)
LIBRARY = rule(
    "LG-LIBRARY",
    Severity.REJECT,
    "a sample library of the whole data set, all of it loaded",
    mend="give LoadGen the whole data set and run the leg again",
    source="policies/data sets (the checker reads the override alone)",
)
GENERATED = rule(
    "LG-GENERATED",
    Severity.REVIEW,
    "every generated query issued",
    mend="find out what ended the run before its last query, and run the leg again",
    source=_HERE,
)
SAMPLE_COUNT = rule(
    "LG-SAMPLE-COUNT", Severity.REJECT, "the round's sample count", mend=_SETTINGS, source="checker/performance_check"
)
COVERAGE = rule(
    "LG-COVERAGE",
    Severity.REJECT,
    "at least one query for each row of the data set",
    mend="run the leg again with the round's settings",
    source=_HERE,
)
MIN_QUERIES = rule(
    "LG-MIN-QUERIES",
    Severity.REJECT,
    "samples a query of Offline not below min_query_count",
    mend="run the leg again without --test_run: user.conf then asks for the data set's length",
    source="checker/performance_check (closed)",
)
TOKEN_LATENCIES = rule("LG-TOKEN-LATENCIES", Severity.REJECT, "use_token_latencies on", mend=_SETTINGS, source=_CHECKER)
TTFT = rule(
    "LG-TTFT", Severity.REJECT, "99th percentile of TTFT below the limit", mend="lower target_qps", source=_CHECKER
)
TPOT = rule(
    "LG-TPOT", Severity.REJECT, "99th percentile of TPOT below the limit", mend="lower target_qps", source=_CHECKER
)
LATENCY = rule(
    "LG-LATENCY",
    Severity.REJECT,
    "99th percentile of the whole answer's latency within the limit",
    mend="lower target_qps",
    source="policies/latency constraints (the checker reads it in the endpoints layout alone)",
)
LIMIT_SETTING = rule(
    "LG-LIMIT-SETTING",
    Severity.REJECT,
    "early stopping judged by the round's latency limits",
    mend="take the settings of the scenario's own LoadGen model name, and no latency key of your own",
    source="loadgen/mlperf.conf",
)
EQUAL_ISSUE = rule(
    "LG-EQUAL-ISSUE",
    Severity.REVIEW,
    "sample_concatenate_permutation on",
    mend=_SETTINGS,
    source="loadgen/mlperf.conf",
)
EARLY_STOPPING = rule(
    "LG-EARLY-STOPPING",
    Severity.REJECT,
    "early_stopping_met true",
    mend="lower target_qps or run longer, and run the leg again",
    source=_CHECKER,
)
METRIC = rule(
    "LG-METRIC",
    Severity.REJECT,
    "the scenario's metric, above 0",
    mend=_RERUN,
    source="checker/constants RESULT_FIELD",
)
TOKENS = rule(
    "LG-TOKENS",
    Severity.REJECT,
    "a mean answer length between the least that LoadGen takes and the output cap, and near the reference's",
    mend="report the whole token count of each answer and leave prompts and sampling as they are; run the leg again",
    source=_HERE,
)
AUDIT = rule(
    "LG-AUDIT-SETTINGS",
    Severity.REJECT,
    "no setting of an audit in a leg that is none",
    mend="remove the stray audit.config (LoadGen reads it from its working folder) and run the leg again",
    source="policies/LoadGen settings",
)
LIMITS_ON_RUN = rule(
    "LG-CUT-SHORT",
    Severity.REVIEW,
    "no max_duration, max_query_count or max_async_queries",
    mend=_SETTINGS,
    source=_HERE,
)
COALESCED = rule(
    "LG-COALESCED",
    Severity.REVIEW,
    "server_coalesce_queries off",
    mend=_SETTINGS,
    source="policies/LoadGen settings",
)
SUMMARY = rule(
    "LG-SUMMARY",
    Severity.REJECT,
    "a summary of the same run as the detail log",
    mend="file both logs of one run",
    source="policies/submission files",
)
FAILED = rule(
    "RUN-FAILED",
    Severity.REJECT,
    "no failed sample",
    mend="mend what failed (run.json names the first hundred) and run the leg again",
    source="design: a failed sample is completed with a marker, counted, and makes the run INVALID",
)
OUTSTANDING = rule(
    "RUN-OUTSTANDING", Severity.REJECT, "every issued sample answered", mend=_RERUN, source="design: states of a sample"
)
ISSUED = rule(
    "RUN-ISSUED",
    Severity.REJECT,
    "as many samples as LoadGen issued",
    mend="a fault of the harness or of LoadGen: keep the folder and report it",
    source=_HERE,
)
SUM = rule(
    "RUN-SUM",
    Severity.REJECT,
    "every issued sample answered, failed or outstanding, and none twice",
    mend="a fault of the harness: keep the folder and report it",
    source="design: states of a sample",
)
ACCURACY_COVERAGE = rule(
    "ACC-COVERAGE",
    Severity.REJECT,
    "every row of the accuracy data set logged once",
    mend="run the accuracy leg again over the whole data set",
    source="policies/accuracy mode",
)
ACCURACY_EMPTY = rule(
    "ACC-EMPTY",
    Severity.REVIEW,
    "an answer of at least one token for each row",
    mend="look why the engine ended at once; the benchmark wants at least one new token",
    source="policies/LLM output",
)
ACCURACY_TOKENS = rule(
    "ACC-TOKENS",
    Severity.REVIEW,
    "answers within the output cap, each told with the count of its ids",
    mend="tell LoadGen each answer's ids and their count, and stop at the output cap; run the accuracy leg again",
    source="policies/LLM output",
)
