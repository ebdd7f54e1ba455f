"""The rules that only a kept run of the endpoints client can be held to: its report beside its events and settings."""

from __future__ import annotations

from harness.gate.findings import Severity, rule

RECOUNT = rule(
    "HN-EP-COUNT",
    Severity.REJECT,
    "as many samples in events.jsonl as the client's summary counts",
    mend="take the report as the client wrote it, or run it again",
    source="harness: every sample is told of once",
)
ANSWERS = rule(
    "HN-EP-ANSWERS",
    Severity.REJECT,
    "a whole answer to every sample of both phases, by the client's own account of each",
    mend="failures and failure_kinds in run.json tell what happened; mend that and run again",
    source="harness: the client counts a failed request as wrong, a cut or empty answer as whole",
)
ROWS = rule(
    "HN-EP-ROWS",
    Severity.REJECT,
    "every row of the data set asked alike in the measured phase",
    mend="run it again over the whole data set of the round, in the configuration that the round has",
    source="policies/sample counts (the checker does not look)",
)
FIGURES = rule(
    "HN-EP-FIGURES",
    Severity.REVIEW,
    "latencies and a duration in events.jsonl that are those of the client's summary",
    mend="look at events.jsonl beside the summary, whose percentiles are of a histogram",
    source="harness: the client's figure is the one reported",
)
RESCORED = rule(
    "HN-EP-SCORE",
    Severity.REJECT,
    "one score of the answers, by the client and by the harness",
    mend="do not file this row; tell the harness's maintainers which answers are graded differently",
    source="harness: both grade the answers in events.jsonl",
)
UNREAD = rule(
    "HN-EP-EVENTS",
    Severity.REVIEW,
    "the client's own account of every sample, events.jsonl and sample_idx_map.json",
    mend="keep the whole report: without these nobody can count, time or score a second time",
    source="harness: what is filed is read a second time where it can be",
)
ASKED = rule(
    "HN-EP-CONFIG",
    Severity.REJECT,
    "a report of the configuration that the client was given",
    mend="run it again; config.yaml is what the client made of endpoints.yaml, and nobody edits either",
    source="harness: the client resolves its configuration before it runs",
)
REQUESTS = rule(
    "HN-EP-REQUESTS",
    Severity.REJECT,
    "the requests that were recorded, message for message and tool for tool",
    mend="fetch the round's data, give the client that file and the package of the round, and run it again",
    source="harness: the client asks whatever lies under the name; what it asked is in events.jsonl",
)
STREAM = rule(
    "HN-EP-STREAM",
    Severity.REJECT,
    "no more turns under way at once than the round has",
    mend="run it again with the round's target_concurrency, which this harness writes",
    source="harness: by the times in events.jsonl, whatever config.yaml says",
)
MEAN = rule(
    "HN-EP-MEAN",
    Severity.REJECT,
    "a mean latency of turns that were answered, and of no others",
    mend="mend what failed and run it again: turns that failed or were never sent shorten the client's mean",
    source="harness: the client counts them as completed",
)
OLD_FORM = rule(
    "HN-EP-FORM",
    Severity.REJECT,
    "a report in the form that the round's checker reads",
    mend="measure with a client of July 2026 or later; a results.json alone has no latencies",
    source="checker/endpoints_parser",
)
