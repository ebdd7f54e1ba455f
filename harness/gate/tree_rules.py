"""The rules that a submission tree must keep beside those of its runs."""

from __future__ import annotations

from harness.gate.findings import Severity, rule

_REJECT, _REVIEW, _NOTE = Severity.REJECT, Severity.REVIEW, Severity.NOTE
_LAYOUT = "policies/submission structure (the v6.1 checker does not look)"
_LOADER = "checker/loader"
_SYSTEM = "checker/system_check"
_HERE = "harness: the official checker does not look"

UNREADABLE = rule("TREE-UNREADABLE", _REJECT, "folders that can be listed", mend="mend the permissions", source=_LOADER)
LINK = rule("TREE-LINK", _REJECT, "no symbolic links", mend="put the file itself here", source=_LAYOUT)
SPECIAL = rule("TREE-SPECIAL-FILE", _REJECT, "plain files and folders", mend="remove it", source=_LAYOUT)
NAME = rule(
    "TREE-NAME",
    _REVIEW,
    "names of printable characters without blanks, none that begins with a dot, no __pycache__",
    mend="rename or remove it",
    source=_LAYOUT,
)
EMPTY_FOLDER = rule("TREE-EMPTY-FOLDER", _REVIEW, "no empty folder", mend="remove it", source=_LAYOUT)
STRAY = rule("TREE-STRAY", _REVIEW, "nothing beside the round's layout", mend="remove or move it", source=_LAYOUT)
NO_ROWS = rule(
    "TREE-NO-ROWS",
    _REJECT,
    "at least one result",
    mend="lay the tree out with: make submission",
    source="harness: the official checker says that no result at all looks OK",
)
SUBMITTER = rule(
    "TREE-SUBMITTER",
    _REJECT,
    "a results folder in each submitter's folder",
    mend="move the folder away, or lay the tree out with: make submission",
    source=_LOADER,
)
SOURCE = rule("TREE-SRC", _REJECT, "a src folder", mend="put the source that made the results in src/", source=_LOADER)
SOURCE_EMPTY = rule(
    "TREE-SRC-EMPTY",
    _REVIEW,
    "the source that made the results, in src/",
    mend="put it there: others must be able to reproduce the result",
    source="policies/source code",
)
CALIBRATION = rule(
    "TREE-CALIBRATION",
    _REVIEW,
    "documentation/calibration.md, not empty",
    mend="describe how the weights were quantised, or that they were not",
    source="policies/calibration (the v6.1 checker does not look)",
)
BANDWIDTH = rule(
    "TREE-BANDWIDTH",
    _REVIEW,
    "documentation/bandwidth.md or .adoc, not empty",
    mend="describe the network cards, their bandwidth and the path of the data",
    source="policies/datacenter bandwidth (the v6.1 checker does not look)",
)
UNUSED_SYSTEM = rule(
    "TREE-UNUSED-SYSTEM",
    _REVIEW,
    "results for each described system",
    mend="remove the description, or add the results",
    source=_LAYOUT,
)
BENCHMARK = rule(
    "TREE-BENCHMARK",
    _REJECT,
    "a benchmark of the round, by its official name",
    mend="rename the folder; in open, map it in model_mapping.json",
    source="checker/configuration",
)
UNRULED = rule(
    "TREE-UNRULED",
    _NOTE,
    "a benchmark that the gate has rules for",
    mend="nothing; its runs, accuracy and audits are not checked here, only by the official checker",
    source="checker/constants MODELS",
)
MAPPING = rule(
    "TREE-MAPPING",
    _REJECT,
    "a JSON object of own names to official ones, each a text",
    mend="correct model_mapping.json",
    source="checker/configuration",
)
SCENARIO = rule(
    "TREE-SCENARIO",
    _REJECT,
    "a scenario of the benchmark, spelled as the round spells it",
    mend="rename the folder",
    source="checker/performance_check",
)
SCENARIO_SET = rule(
    "TREE-SCENARIO-SET",
    _REJECT,
    "all scenarios that the round requires",
    mend="add the scenario, or enter the result in open",
    source="checker/constants REQUIRED_SCENARIOS",
)
FILE = rule(
    "TREE-FILE", _REJECT, "all files of a result", mend="lay the tree out with: make submission", source=_LOADER
)
FILE_EMPTY = rule(
    "TREE-FILE-EMPTY",
    _REJECT,
    "files that are not empty",
    mend="lay the tree out with: make submission",
    source="checker/measurements_checks",
)
EXTRA_RUN = rule("TREE-EXTRA-RUN", _REVIEW, "one run, run_1", mend="remove the other runs", source=_LAYOUT)
POWER = rule(
    "TREE-POWER",
    _REJECT,
    "nothing named power beside the run",
    mend="remove it: this gate does not check measured power, and the official checker would",
    source="checker/power_check",
)
ROW_LAYOUT = rule(
    "ROW-LAYOUT",
    _REJECT,
    "either LoadGen's logs of both runs, or the endpoints client's reports, and no file of the other",
    mend="lay the tree out with: make submission",
    source=_LOADER,
)

SYSTEM = rule(
    "SYS-JSON",
    _REJECT,
    "systems/<system>.json, a JSON object",
    mend="lay the tree out with: make submission",
    source=_LOADER,
)
SYSTEM_FIELD = rule(
    "SYS-FIELD",
    _REJECT,
    "all fields of a system description",
    mend="see what is still to be said with: make system",
    source=_SYSTEM,
)
SYSTEM_EMPTY = rule(
    "SYS-EMPTY",
    _REJECT,
    "a value (the text 0 or N/A is one, the number 0 is none)",
    mend="say it in systems/<system>/system.yaml",
    source=_SYSTEM,
)
SYSTEM_TYPE = rule(
    "SYS-TYPE",
    _REJECT,
    "a category of the round, or two joined by a comma without a blank",
    mend="correct system_type",
    source=_SYSTEM,
)
SYSTEM_CATEGORY = rule(
    "SYS-CATEGORY",
    _REJECT,
    "a system of a category that the benchmark has",
    mend="correct system_type, or enter the result in open",
    source="checker/configuration",
)
SYSTEM_STATUS = rule("SYS-STATUS", _REJECT, "an availability of the round", mend="correct status", source=_SYSTEM)
SYSTEM_DIVISION = rule(
    "SYS-DIVISION", _REJECT, "the division of the folder", mend="correct division, or move the file", source=_SYSTEM
)
SYSTEM_SUBMITTER = rule(
    "SYS-SUBMITTER", _REJECT, "the submitter of the folder", mend="correct submitter, or move the file", source=_SYSTEM
)
SYSTEM_NUMBER = rule(
    "SYS-NUMBER", _REJECT, "a whole number", mend="write digits alone", source="checker/results (exporter)"
)
POWER_FILE = rule(
    "SYS-POWER",
    _REJECT,
    "a system's power description that can be read, or none",
    mend="correct the YAML, or remove the file: it is for results with power measured",
    source="checker/loader",
)
SYSTEM_VALUE = rule(
    "SYS-VALUE", _REJECT, "a text or a number", mend="write one text", source="checker/results (exporter)"
)
SYSTEM_QUOTE = rule(
    "SYS-QUOTE",
    _REVIEW,
    "no double quote in a value",
    mend="write it otherwise: the published table does not escape it",
    source="checker/results (exporter)",
)
SYSTEM_NETWORK = rule(
    "SYS-IS-NETWORK",
    _REJECT,
    "no is_network outside the network division",
    mend="leave the field out: even false is taken for true",
    source=_SYSTEM,
)

MEASUREMENTS = rule(
    "MEAS-JSON",
    _REJECT,
    "measurements.json, a JSON object",
    mend="lay the tree out with: make submission",
    source="checker/measurements_checks",
)
MEASUREMENTS_FIELD = rule(
    "MEAS-FIELD",
    _REJECT,
    "all fields of measurements.json, none empty",
    mend="write a text, e.g. No for retraining",
    source="checker/measurements_checks",
)

ACCURACY_TEXT = rule(
    "ACC-TEXT",
    _REJECT,
    "accuracy.txt, a UTF-8 text",
    mend="take the evaluator's output",
    source="checker/accuracy_check",
)
ACCURACY_METRIC = rule(
    "ACC-METRIC",
    _REJECT,
    "one line with the metric in the reference evaluator's form",
    mend="take the evaluator's output; all samples must be scored",
    source="checker/accuracy_check",
)
ACCURACY_TARGET = rule(
    "ACC-TARGET",
    _REJECT,
    "the accuracy target",
    mend="find what the model lost, or enter the result in open",
    source="checker/accuracy_check",
)
ACCURACY_LENGTH = rule(
    "ACC-LENGTH",
    _REJECT,
    "answers not longer in the mean than the round's upper limit",
    mend="find why the model does not end its answers, or enter the result in open",
    source="checker/accuracy_check",
)
ACCURACY_OURS = rule(
    "ACC-OURS",
    _REVIEW,
    "the reference evaluator's own output",
    mend="set MLPERF_INFERENCE_DIR and MLPERF_EVALUATOR_PYTHON, a Python with its packages, and lay the tree out again",
    source="policies/accuracy scripts",
)
ACCURACY_HASH = rule(
    "ACC-HASH",
    _REJECT,
    "a last line hash=<64 hexadecimal digits>, the sha256 of the whole accuracy log",
    mend="lay the tree out with: make submission",
    source="checker/accuracy_check (takes any word for a hash)",
)
ACCURACY_LOG_SIZE = rule(
    "ACC-LOG-SIZE",
    _REJECT,
    "an accuracy log that was shortened",
    mend="lay the tree out with: make submission",
    source="checker/accuracy_check",
)
ACCURACY_LOG = rule(
    "ACC-LOG",
    _REJECT,
    "an accuracy log, whole or with both of its ends",
    mend="lay the tree out with: make submission",
    source=_HERE,
)
VERSIONS = rule(
    "ROW-VERSIONS",
    _REVIEW,
    "one LoadGen version in all legs of a row",
    mend="run the legs of one row with one installation",
    source=_HERE,
)

MARK = rule(
    "MARK-STAND-IN",
    _REJECT,
    "no result of a stand-in, a scripted engine or a shortened run",
    mend="file real runs; what is only shown must be laid out with --demonstration",
    source="policies/submission: measured on the benchmark's model and data",
)
MANIFEST = rule(
    "MAN-JSON", _REJECT, "a readable MANIFEST.json", mend="lay the tree out with: make submission", source=_HERE
)
MANIFEST_ABSENT = rule(
    "MAN-ABSENT",
    _NOTE,
    "a MANIFEST.json that tells where each file comes from",
    mend="lay the tree out with: make submission; without it the origin of the files is not checked",
    source=_HERE,
)
MANIFEST_HASH = rule(
    "MAN-HASH",
    _REJECT,
    "the content that the manifest lists",
    mend="never edit a file of the tree: lay it out again",
    source=_HERE,
)
MANIFEST_FILE = rule(
    "MAN-FILE", _REJECT, "every file that the manifest lists", mend="lay the tree out again", source=_HERE
)
MANIFEST_EXTRA = rule(
    "MAN-EXTRA",
    _REVIEW,
    "no file that the manifest does not list",
    mend="remove it, or lay the tree out again",
    source=_HERE,
)
MANIFEST_ROUND = rule(
    "MAN-ROUND", _REJECT, "a manifest of the round that is checked", mend="give the right --round", source=_HERE
)
MANIFEST_ROW = rule(
    "MAN-ROW", _REVIEW, "one row in the manifest for each result", mend="lay the tree out again", source=_HERE
)
FINGERPRINT = rule(
    "ROW-FINGERPRINT",
    _REJECT,
    "legs of one row with one fingerprint",
    mend="run the legs again with one configuration, checkpoint, machine and set of versions",
    source="policies/one accuracy run for each performance result",
)
LABEL = rule(
    "MARK-LABEL",
    _REJECT,
    "DEMONSTRATION file and manifest that agree",
    mend="lay the tree out with: make submission",
    source=_HERE,
)
