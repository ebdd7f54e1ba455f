"""The rules that only the harness that made a run can check: its own samples and settings beside LoadGen's logs."""

from __future__ import annotations

from harness.gate.findings import Severity, rule

COMPARISON = rule(
    "HN-COMPARISON",
    Severity.REVIEW,
    "the harness's own samples and LoadGen's summary tell the same story",
    mend="look at samples.arrow beside the summary: a machine that stalls between the two clocks shows here",
    source="harness: LoadGen's figure is the one reported",
)
COUNT = rule(
    "HN-COUNT",
    Severity.REJECT,
    "as many samples in samples.arrow as LoadGen counted",
    mend="run the leg again",
    source="harness: every sample is told of once",
)
MISREAD = rule(
    "HN-USER-CONF",
    Severity.REJECT,
    "LoadGen was asked for what user.conf says",
    mend="mend user.conf, or take the LoadGen version that setup.py pins",
    source="harness: LoadGen ignores what it cannot read, without a word",
)
PROMPTS = rule(
    "HN-PROMPTS",
    Severity.REVIEW,
    "prompts of chats that have as many tokens by the server's count as by the harness's",
    mend="see whether the server resizes pictures, cuts texts or has another template; one that counts a picture as "
    "one token differs in every chat: say so in the README",
    source="policies/preprocessing (a picture is never resized); harness: the server's usage beside its own count",
)
TURNS_FAILED = rule(
    "RUN-TURNS-FAILED",
    Severity.REJECT,
    "no failed turn",
    mend="mend what failed (turn_replies.jsonl says of each turn what it came to) and run the leg again",
    source="harness: a turn that failed enters no rate and no latency, and what comes after it was never asked",
)
TURNS_SKIPPED = rule(
    "RUN-TURNS-SKIPPED",
    Severity.REJECT,
    "every turn of every trajectory asked",
    mend="mend what failed before them and run the leg again",
    source="harness: the turns after one that failed are skipped, and are no completed ones",
)
TURNS_COUNTED = rule(
    "RUN-TURNS-COUNT",
    Severity.REJECT,
    "as many turns of each state in turns.arrow as the worker counted",
    mend="a fault of the harness, or a file that was changed: keep the folder and report it",
    source="harness: every turn is told of once",
)
AUDIT = rule(
    "HN-AUDIT",
    Severity.REJECT,
    "the reference and the harness tell the same of one audit's log",
    mend="do not file this row; tell the harness's maintainers which of the two counts wrongly, and send them the log",
    source="harness: both read one untruncated log",
)
