"""The rules that the audits of a row (TEST07, TEST09) must keep."""

from __future__ import annotations

from harness.gate.findings import Severity, rule

_HERE = "harness: the official checker does not look"
_RERUN = "run the audit again with the round's audit.config in LoadGen's working folder"

MISSING = rule(
    "AUDIT-MISSING",
    Severity.REJECT,
    "the benchmark's audits, for each scenario",
    mend="run them (make run_audit_test07, make run_audit_test09), or enter the result in open",
    source="checker/compliance_check",
)
VERDICT = rule(
    "AUDIT-VERDICT",
    Severity.REJECT,
    "a verdict with a line TEST PASS of its own, and no TEST FAIL",
    mend="look what failed, mend it and run the audit again",
    source="checker/compliance_check (anywhere in the text)",
)
SCORE = rule(
    "AUDIT-SCORE",
    Severity.REJECT,
    "an accuracy at or above the audit's threshold",
    mend="answer in performance mode as in accuracy mode; run the audit again",
    source="inference/compliance/TEST07 (the checker does not read the number)",
)
LENGTH = rule(
    "AUDIT-LENGTH",
    Severity.REJECT,
    "a mean answer length within the audit's window",
    mend="leave the output cap, the prompts and the sampling as they are; run the audit again",
    source="inference/compliance/TEST09 (the checker does not read the number)",
)
COUNT = rule(
    "AUDIT-COUNT",
    Severity.REJECT,
    "as many samples as the audit asks",
    mend="run the audit over the whole of its data set",
    source="inference/compliance audit.config",
)
COVERAGE = rule(
    "AUDIT-COVERAGE",
    Severity.REJECT,
    "every row of the audit's data set issued once",
    mend=_RERUN,
    source="inference/compliance audit.config",
)
FILES = rule(
    "AUDIT-FILES",
    Severity.REVIEW,
    "the audit's two logs in performance/run_1, its accuracy log and accuracy.txt in accuracy, and no more",
    mend="file the audit's folder as the verification left it, with the accuracy log shortened",
    source="policies/submission files (the checker does not look)",
)
RUN = rule(
    "AUDIT-RUN",
    Severity.REVIEW,
    "a verdict on the run whose logs are filed",
    mend="verify the filed run again, or file the logs of the verified one",
    source=_HERE,
)
CONFIG = rule(
    "AUDIT-CONFIG",
    Severity.REJECT,
    "the settings of the approved audit.config",
    mend=_RERUN,
    source="inference/compliance audit.config",
)
HASH = rule(
    "AUDIT-HASH",
    Severity.REJECT,
    "a last line hash=<sha256 of the whole accuracy log> in accuracy.txt",
    mend="take the hash of the log as LoadGen wrote it, before it was shortened",
    source="policies/submission files (the checker does not look)",
)
OURS = rule(
    "AUDIT-OURS",
    Severity.REVIEW,
    "a verdict that upstream's run_verification.py wrote",
    mend="run the audit again with MLPERF_INFERENCE_DIR set: upstream's run_verification.py then writes the verdict",
    source=_HERE,
)
EFFORT = rule(
    "AUDIT-EFFORT",
    Severity.REVIEW,
    "prompts of the reasoning effort that the audit's data set has",
    mend="make the audit's prompts with the ruled effort and run the audit again",
    source="reference (two official texts differ)",
)
