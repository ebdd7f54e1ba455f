"""The rules of the whole accuracy logs that a submitter keeps, where the gate is shown them."""

from __future__ import annotations

from harness.gate.findings import Severity, rule

_HERE = "harness: the official checker takes any word for the hash and never sees the log"

ABSENT = rule(
    "ORIGINAL-ABSENT",
    Severity.REVIEW,
    "the whole log of each accuracy log that was shortened",
    mend="find it: MLCommons may ask for it as long as the result is published",
    source="inference/tools/submission/truncate_accuracy_log.py (asks to keep a backup)",
)
HASH = rule(
    "ORIGINAL-HASH",
    Severity.REJECT,
    "a whole log with the hash that accuracy.txt tells",
    mend="lay the tree out again from the run that is filed",
    source=_HERE,
)
ENDS = rule(
    "ORIGINAL-ENDS",
    Severity.REJECT,
    "a filed log that is the whole one with its middle left out",
    mend="lay the tree out again from the run that is filed",
    source=_HERE,
)
ROWS = rule(
    "ORIGINAL-ROWS",
    Severity.REJECT,
    "a whole log with every row of the data set once",
    mend="run the leg again over the whole data set",
    source="policies/inference_rules.adoc accuracy mode",
)
