"""The rules of what a tree has too much of: bytes, files, tables of other runs, fields that nobody knows."""

from __future__ import annotations

from harness.gate.findings import Severity, rule

_REVIEW, _NOTE = Severity.REVIEW, Severity.NOTE

SIZE = rule(
    "TREE-SIZE",
    _REVIEW,
    "no file above the round's limit",
    mend="shorten or leave out what the layout does not ask for: the repository of the results does not take it",
    source="inference/tools/submission/submission_checker_old.py (the checker defines the limit and does not look)",
)
FILE_LIST = rule(
    "TREE-FILE-LIST",
    _REVIEW,
    "in a folder of a run the files that the layout names, and no other",
    mend="move it out of the tree: nobody knows what it is of",
    source="inference/tools/submission/submission_checker_old.py (the checker does not look)",
)
OLD_TABLE = rule(
    "TREE-SUMMARY",
    _NOTE,
    "no table of an earlier run of the official checker",
    mend="remove it: it says nothing of the files as they are now",
    source="harness: the official checker leaves the old table where it breaks off",
)
SYSTEM_UNKNOWN = rule(
    "SYS-UNKNOWN",
    _NOTE,
    "no field that the round does not know",
    mend="see that none is misspelt: an unknown field is not published",
    source="inference/tools/submission/submission_checker_old.py (a warning; the checker does not look)",
)
