from __future__ import annotations

import io
import re
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from harness.gate.accuracy_text import AccuracyText
from tests.gate.made_tree import BENCHMARK, remake_manifest, remove, write
from tests.gate.tree_changes import PACK, Breach, accuracy_text, breaches, breaks, check, replace, rules_of, server


def tokens(home: Path, mean: str) -> None:
    replace(accuracy_text(home), "'exact", f"'tokens_per_sample': {mean}\n'exact")


# Each breaks a tree in one place: name, division, the change, the rule, its severity.
BREACHES: list[Breach] = [
    ("answers too long", "closed", lambda h: tokens(h, "10998.91"), "ACC-LENGTH", "reject"),
    ("answers too long in open", "open", lambda h: tokens(h, "10998.91"), "ACC-LENGTH", "note"),
    ("length no number", "open", lambda h: tokens(h, "1.2.3"), "ACC-METRIC", "reject"),
    (
        "two hashes",
        "closed",
        lambda h: replace(accuracy_text(h), "hash=", f"hash={'0' * 64}\nhash="),
        "ACC-HASH",
        "review",
    ),
    (
        "metric behind the hash",
        "closed",
        lambda h: write(accuracy_text(h), accuracy_text(h).read_text() + "'exact_match': 1.2.3\n"),
        "ACC-METRIC",
        "review",
    ),
    (
        "bad number before the target is seen",
        "open",
        lambda h: replace(accuracy_text(h), "'exact", "'exact_match': .\n'exact"),
        "ACC-METRIC",
        "reject",
    ),
    ("above 100 percent", "open", lambda h: replace(accuracy_text(h), "83.130", "831.30"), "ACC-METRIC", "reject"),
    (
        "blank behind the hash",
        "closed",
        lambda h: write(accuracy_text(h), accuracy_text(h).read_text().rstrip("\n") + " \n"),
        "ACC-HASH",
        "reject",
    ),
    (
        "metric over two lines",
        "closed",
        lambda h: replace(accuracy_text(h), "'exact_match': ", "'exact_match':\n"),
        "ACC-METRIC",
        "reject",
    ),
    ("accuracy.txt no text", "open", lambda h: accuracy_text(h).write_bytes(b"\xff"), "ACC-TEXT", "reject"),
    (
        "no metric",
        "closed",
        lambda h: replace(accuracy_text(h), "'exact_match': ", "exact_match "),
        "ACC-METRIC",
        "reject",
    ),
    (
        "no metric in open",
        "open",
        lambda h: replace(accuracy_text(h), "'exact_match': ", "exact_match "),
        "ACC-METRIC",
        "review",
    ),
    ("metric of two dots", "closed", lambda h: replace(accuracy_text(h), "83.130", "83.1.30"), "ACC-METRIC", "reject"),
    (
        "two metrics",
        "closed",
        lambda h: replace(accuracy_text(h), "\n\n", "\n'exact_match': 84.0\n\n"),
        "ACC-METRIC",
        "review",
    ),
    ("below target", "closed", lambda h: replace(accuracy_text(h), "83.130", "82.298"), "ACC-TARGET", "reject"),
    (
        "ours in closed",
        "closed",
        lambda h: replace(accuracy_text(h), "Printing", "Scored, not by the reference's evaluator"),
        "ACC-OURS",
        "review",
    ),
    ("no hash", "closed", lambda h: replace(accuracy_text(h), "hash=", "hash "), "ACC-HASH", "reject"),
    (
        "any word for a hash",
        "closed",
        lambda h: write(accuracy_text(h), "'exact_match': 83.1\nhash=x\n"),
        "ACC-HASH",
        "reject",
    ),
    (
        "hash of another log",
        "open",
        lambda h: write(accuracy_text(h), f"'exact_match': 83.1\nhash={'0' * 64}\n"),
        "ACC-HASH",
        "reject",
    ),
    (
        "accuracy log whole",
        "open",
        lambda h: write(server(h) / "accuracy" / "mlperf_log_accuracy.json", "x" * 10_241),
        "ACC-LOG-SIZE",
        "reject",
    ),
    (
        "accuracy log without ends",
        "open",
        lambda h: write(server(h) / "accuracy" / "mlperf_log_accuracy.json", "x" * 4096 + "\n\n...\n\n" + "x"),
        "ACC-LOG",
        "reject",
    ),
    (
        "accuracy log of no rows",
        "open",
        lambda h: write(server(h) / "accuracy" / "mlperf_log_accuracy.json", "[\n]\n"),
        "ACC-COVERAGE",
        "reject",
    ),
]


@breaches(BREACHES)
def test_one_change_breaks_a_rule(tree, division, change, rule, severity):
    breaks(tree(division), change, rule, severity)


def test_what_open_forgives_is_a_note_there(tree):
    home = tree("open")
    write(
        accuracy_text(home),
        "Scored by x, not by the reference's evaluator.\n"
        f"'exact_match': 3.0\n{accuracy_text(home).read_text().splitlines()[-1]}\n",
    )
    remove(home / "documentation")
    remake_manifest(home)
    report = check(home)
    assert rules_of(report) == set()
    notes = {f.rule for f in report.findings}
    assert {"ACC-OURS", "ACC-TARGET", "TREE-CALIBRATION", "TREE-BANDWIDTH"} <= notes


def test_the_longest_mean_answer_that_the_round_takes(tree):
    home = tree("closed")
    tokens(home, "10998.9")
    assert "ACC-LENGTH" not in rules_of(check(home))


RULES = PACK.benchmark(BENCHMARK)
WORDS = st.sampled_from(
    ["'exact_match': ", "83.1", "83.1.2", "1", ".", "٣", "hash=", "a" * 64, " ", "{", "}", '"f1": ']
)


ENDS = st.sampled_from(["\n", "\r", "\r\n", "\x0b", "\u2028"])


@given(st.lists(st.one_of(WORDS, ENDS, st.text(max_size=3)), max_size=30))
def test_it_reads_what_the_official_checker_reads(pieces):
    """Its loop over the lines, told again: the values up to where it has one that reaches the target, and a hash."""
    text = "".join(pieces)
    values, hash_seen, broke = [], False, False
    for line in io.StringIO(text, newline=None):
        match = re.match(RULES.accuracy_pattern.value, line)
        hash_seen |= re.match(r"^hash=(\w+)$", line) is not None
        if match:
            try:
                values.append(float(match[1]))
            except ValueError:
                broke = True
                break
        if hash_seen and any(value >= 83 for value in values):
            break
    read = AccuracyText.parse(text, RULES, 83)
    if broke or any(not word.isascii() for word in read.bad_values):
        assert read.bad_values
    else:
        assert read.values == tuple(values)
