from __future__ import annotations

from pathlib import Path

from tests.gate.made_tree import DETAIL, SUMMARY, change_json, remove, write
from tests.gate.tree_changes import Breach, append, breaches, breaks, server
from tests.logs.loadgen_runs import edit


def cut_within_a_line(log: Path) -> None:
    """Keeps the first 9,000 bytes and half a line more: how long lines are depends on ids and paths of the run."""
    raw = log.read_bytes()
    log.write_bytes(raw[: raw.index(b"\n", 9000) + 40])


def cut_behind_a_line(log: Path) -> None:
    """Keeps whole lines alone, about the first half of the log."""
    raw = log.read_bytes()
    log.write_bytes(raw[: raw.index(b"\n", len(raw) // 2) + 1])


# Each breaks a tree in one place: name, division, the change, the rule, its severity.
BREACHES: list[Breach] = [
    (
        "two values of a key",
        "open",
        lambda h: append(
            server(h) / "performance" / "run_1" / DETAIL,
            b':::MLLOG {"key": "effective_schedule_rng_seed", "value": 1,'
            b' "metadata": {"is_error": false, "is_warning": false}}',
        ),
        "LG-CONTRADICTION",
        "reject",
    ),
    ("no UTF-8 in a log", "open", lambda h: append(server(h) / "accuracy" / DETAIL, b"\xff"), "LG-LOG", "reject"),
    (
        "power that is not measured",
        "open",
        lambda h: write(server(h) / "performance" / "power" / "x", "x"),
        "TREE-POWER",
        "reject",
    ),
    (
        "verdict of an audit by another name",
        "closed",
        lambda h: (server(h) / "TEST09" / "verify_output_len.txt").rename(server(h) / "TEST09" / "verify_accuracy.txt"),
        "AUDIT-MISSING",
        "reject",
    ),
    ("no README", "open", lambda h: remove(server(h) / "README.md"), "TREE-FILE", "reject"),
    ("no detail log", "open", lambda h: remove(server(h) / "performance" / "run_1" / DETAIL), "TREE-FILE", "reject"),
    (
        "README a folder",
        "open",
        lambda h: (remove(server(h) / "README.md"), (server(h) / "README.md").mkdir()),
        "TREE-FILE",
        "reject",
    ),
    ("empty user.conf", "open", lambda h: write(server(h) / "user.conf", ""), "TREE-FILE-EMPTY", "reject"),
    (
        "empty accuracy log",
        "open",
        lambda h: write(server(h) / "accuracy" / "mlperf_log_accuracy.json", ""),
        "TREE-FILE-EMPTY",
        "reject",
    ),
    (
        "second run",
        "open",
        lambda h: write(server(h) / "performance" / "run_2" / DETAIL, "x"),
        "TREE-EXTRA-RUN",
        "review",
    ),
    (
        "one detail log of two",
        "open",
        lambda h: remove(server(h) / "accuracy" / DETAIL),
        "ROW-LAYOUT",
        "reject",
    ),
    (
        "no file of a run",
        "open",
        lambda h: [remove(server(h) / name) for name in ("performance", "accuracy")],
        "ROW-LAYOUT",
        "reject",
    ),
    (
        "reports of both clients",
        "open",
        lambda h: write(server(h) / "config.yaml", "type: online\n"),
        "ROW-LAYOUT",
        "review",
    ),
    ("power in a file", "open", lambda h: write(server(h) / "performance" / "power", "x"), "TREE-POWER", "reject"),
    ("no audit", "closed", lambda h: remove(server(h) / "TEST07"), "AUDIT-MISSING", "reject"),
    (
        "audit failed",
        "closed",
        lambda h: write(server(h) / "TEST09" / "verify_output_len.txt", "no TEST PASS today"),
        "AUDIT-VERDICT",
        "reject",
    ),
    ("measurements no JSON", "open", lambda h: write(server(h) / "measurements.json", "no"), "MEAS-JSON", "reject"),
    (
        "measurements empty",
        "open",
        lambda h: change_json(server(h) / "measurements.json", retraining=False),
        "MEAS-FIELD",
        "reject",
    ),
    (
        "measurements absent",
        "open",
        lambda h: change_json(server(h) / "measurements.json", retraining=...),
        "MEAS-FIELD",
        "reject",
    ),
    (
        "accuracy log cut",
        "open",
        lambda h: write(server(h) / "accuracy" / "mlperf_log_accuracy.json", "[\n{ ]"),
        "LG-LOG",
        "reject",
    ),
    (
        "LoadGen versions",
        "open",
        lambda h: edit(server(h) / "accuracy" / DETAIL, loadgen_version="6.0.16 @ d6147c7eb7"),
        "ROW-VERSIONS",
        "review",
    ),
    (
        "INVALID",
        "open",
        lambda h: edit(server(h) / "performance" / "run_1" / DETAIL, result_validity="INVALID"),
        "LG-VALID",
        "reject",
    ),
    (
        "accuracy log of Offline",
        "open",
        lambda h: edit(server(h) / "accuracy" / DETAIL, effective_scenario="Offline"),
        "LG-SCENARIO",
        "reject",
    ),
    (
        "detail log cut",
        "open",
        lambda h: cut_within_a_line(server(h) / "accuracy" / DETAIL),
        "LG-LOG",
        "reject",
    ),
    (
        "detail log cut behind a line",
        "open",
        lambda h: cut_behind_a_line(server(h) / "accuracy" / DETAIL),
        "LG-COVERAGE",
        "reject",
    ),
    ("summary no text", "open", lambda h: write(server(h) / "accuracy" / SUMMARY, "hello\n"), "LG-SUMMARY", "reject"),
]


@breaches(BREACHES)
def test_one_change_breaks_a_rule(tree, division, change, rule, severity):
    breaks(tree(division), change, rule, severity)
