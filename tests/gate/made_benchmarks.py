"""Trees of the benchmarks that are none of token ids, and of another round; their runs are real and short."""

from __future__ import annotations

import dataclasses
import hashlib
from pathlib import Path

from harness.logs import DetailLog
from tests.gate.full_length import DETAIL, LONG
from tests.gate.made_tree import GPT_OSS, Entry
from tests.gate.test_run_benchmarks import AGENTIC, CHANGES, LEGS, VLM
from tests.logs.loadgen_runs import Leg

F1 = '{"f1": 0.7879394631035838}'
F1_TEXT = f"Results\n\n{F1}\n\nhash={hashlib.sha256(F1.encode()).hexdigest()}\n"
BFCL = "normalized_single_turn_score: 86.20 %\nmAP=85.900\n"
_WHOLE = {"*.Server.target_qps": "20000", "*.Server.min_duration": "1000", "*.Server.target_latency": "12000"}

_TURNS = LEGS["SingleStream", "performance"]

RUNS = {
    **LEGS,  # a slow machine issues too few queries in the time, so that their least number is set
    ("SingleStream", "performance"): dataclasses.replace(
        _TURNS, conf={**_TURNS.conf, "*.SingleStream.min_query_count": str(_TURNS.rows)}
    ),
    ("Offline", "accuracy"): Leg("Offline", "AccuracyOnly", 48289, model=VLM),
    ("Server", "performance"): Leg("Server", "PerformanceOnly", 48289, _WHOLE, model=VLM),
    ("Server", "accuracy"): Leg("Server", "AccuracyOnly", 48289, _WHOLE, model=VLM),
}
_CHANGES = {
    **CHANGES,
    ("Server", "performance"): CHANGES["Interactive", "performance"]
    | {"result_scheduled_samples_per_sec": 48288 / 601},
}
_VLM = Entry(VLM, scenarios=("Offline", "Server", "Interactive"), accuracy=F1_TEXT, changes=_CHANGES)
ENTRIES = {
    "gpt-oss in v6.0": dataclasses.replace(GPT_OSS, round="v6.0"),
    "vlm": _VLM,
    "vlm in v6.0": dataclasses.replace(_VLM, round="v6.0", scenarios=("Offline", "Server")),
    "agentic": Entry(AGENTIC, scenarios=("SingleStream",), accuracy=BFCL, changes=_CHANGES),
}
"""What there is a tree of, beside gpt-oss-120b in v6.1."""


def with_queries(changes: Entry, run: Path) -> Entry:
    """An entry whose SingleStream run was of full length: LoadGen tells that by its queries a second."""
    rate = (DetailLog.read(run / DETAIL).value("result_query_count") - 1) / (LONG / 1e9)
    long = {**_CHANGES["SingleStream", "performance"], "result_qps_with_loadgen_overhead": rate}
    return dataclasses.replace(changes, changes={**_CHANGES, ("SingleStream", "performance"): long})
