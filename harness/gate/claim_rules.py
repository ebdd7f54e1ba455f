"""The rules of what an entry claims, held against what ran."""

from __future__ import annotations

from harness.gate.findings import Severity, rule

_REVIEW = Severity.REVIEW
_HERE = "harness: the official checker compares no claim with a run"

WEIGHTS = rule(
    "CLAIM-WEIGHTS",
    _REVIEW,
    "weight_data_types of the weights that ran, as the entry's other texts tell of them",
    mend="write the type that the engine computes with, e.g. fp4; starting weights of another type go with their name",
    source=_HERE,
)
ENGINE = rule(
    "CLAIM-ENGINE",
    _REVIEW,
    "a description that names the engine of the runs, and no other",
    mend="correct framework in the system's description, or file the runs of that engine",
    source=_HERE,
)
ACCELERATORS = rule(
    "CLAIM-ACCELERATORS",
    _REVIEW,
    "as many accelerators as the machine had when the runs were made",
    mend="correct accelerators_per_node or number_of_nodes",
    source=_HERE,
)
