"""Findings, and the checks that make them: of one run, of a tree, and by the official checker beside ours."""

from __future__ import annotations

from harness.gate import ledger_rules as ledger_rules  # declares its rules
from harness.gate.findings import Finding, Rule, Severity, Verdict, ordered, rules, verdict
from harness.gate.metric import ResultMetric, mean_answer_tokens, result_metric
from harness.gate.official import OfficialReport, OfficialRow, OfficialVerdict, run_official
from harness.gate.row import RowPlace, RowReport
from harness.gate.run import check_run, unreadable
from harness.gate.run_facts import Coverage, Expectation, RunFacts
from harness.gate.tree import TreeReport, check_tree

__all__ = [
    "Coverage",
    "Expectation",
    "Finding",
    "OfficialReport",
    "OfficialRow",
    "OfficialVerdict",
    "ResultMetric",
    "RowPlace",
    "RowReport",
    "Rule",
    "RunFacts",
    "Severity",
    "TreeReport",
    "Verdict",
    "check_run",
    "check_tree",
    "mean_answer_tokens",
    "ordered",
    "result_metric",
    "rules",
    "run_official",
    "unreadable",
    "verdict",
]
