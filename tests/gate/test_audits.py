from __future__ import annotations

import dataclasses
import json
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.gate import Coverage, Expectation, Finding, Severity, check_run
from harness.gate.audits import check_audits, read_audit_logs
from harness.gate.index import TreeIndex
from harness.gate.row_layout import RowPlace
from harness.rules import load
from tests.gate.full_length import facts
from tests.gate.made_audits import AUDITS, lengthen, make_audit, shortened
from tests.gate.made_tree import BENCHMARK, DETAIL, SUMMARY, remove, row, sha256, write
from tests.logs.loadgen_runs import Leg, edit

PACK = load("v6.1")
ROW = PurePosixPath("closed", "Acme", "results", "Box", BENCHMARK)
REAL = Path(__file__).parents[3] / "shared" / "data" / "real_v6.0"


@pytest.fixture(scope="session")
def whole_audits(loadgen_runs, tmp_path_factory) -> Path:
    """A tree of the audits of both scenarios that have nothing against them. Read-only by agreement."""
    root = tmp_path_factory.mktemp("audits")
    for scenario, leg in loadgen_runs:
        if leg in AUDITS:
            make_audit(root / ROW / scenario / leg, loadgen_runs[scenario, leg], scenario)
    return root


@pytest.fixture
def tree(whole_audits, tmp_path) -> Path:
    """A copy to break."""
    return shutil.copytree(whole_audits, tmp_path / "tree")


def place(scenario: str, division: str = "closed") -> RowPlace:
    return RowPlace(ROW / scenario, division, "Acme", "Box", BENCHMARK, scenario)


def check(root: Path, where: RowPlace, pack=PACK) -> list[Finding]:
    index = TreeIndex(root)
    findings = check_audits(index, where, pack, read_audit_logs(index, where, pack))
    return [f for f in findings if f.severity is not Severity.NOTE]


@pytest.mark.parametrize("scenario", ["Offline", "Server"])
def test_whole_audits_have_nothing_against_them(tree, scenario):
    assert check(tree, place(scenario)) == []


def detail(audit: Path) -> Path:
    return audit / "performance" / "run_1" / DETAIL


def accuracy(audit: Path) -> Path:
    return audit / "accuracy" / "mlperf_log_accuracy.json"


def text(audit: Path) -> Path:
    return audit / AUDITS[audit.name].verdict_file.value


def say(old: str, new: str) -> Callable[[Path], object]:
    """Changes the words of a verdict; they must be there."""

    def change(audit: Path) -> None:
        before = text(audit).read_text()
        assert old in before
        text(audit).write_text(before.replace(old, new))

    return change


def log(**values: object) -> Callable[[Path], object]:
    """Changes values of the detail log."""
    return lambda audit: edit(detail(audit), **values)


def summary_of_another_run(audit: Path) -> None:
    path = detail(audit).with_name(SUMMARY)
    path.write_text(path.read_text().replace("VALID", "INVALID"))


def hash_of_the_shortened(audit: Path) -> None:
    write(accuracy(audit).with_name("accuracy.txt"), f"hash={sha256(accuracy(audit))}\n")


# Each breaks the audits of Server in one place: the change, the audit, the rule, its severity.
OF_AN_AUDIT: list[tuple[str, Callable[[Path], object], str, str, str]] = [
    ("no folder", lambda a: remove(a), "TEST07", "AUDIT-MISSING", "reject"),
    ("no verdict", lambda a: remove(text(a)), "TEST09", "AUDIT-MISSING", "reject"),
    ("no pass", say("TEST PASS", "TEST FAIL"), "TEST07", "AUDIT-VERDICT", "reject"),
    ("pass in a sentence", say("TEST PASS", "no TEST PASS today"), "TEST09", "AUDIT-VERDICT", "reject"),
    ("pass and fail", say("TEST PASS", "TEST PASS\nTEST FAIL"), "TEST09", "AUDIT-VERDICT", "reject"),
    ("no UTF-8", lambda a: text(a).write_bytes(b"TEST PASS\xff"), "TEST09", "AUDIT-VERDICT", "reject"),
    ("low score", say("61.616", "60.697"), "TEST07", "AUDIT-SCORE", "reject"),
    ("no score", say("Accuracy score: 61.616", "Accuracy score: high"), "TEST07", "AUDIT-SCORE", "review"),
    ("no finite score", say("score: 61.616", f"score: {'9' * 400}"), "TEST07", "AUDIT-SCORE", "review"),
    ("low threshold", say("threshold: 60.698", "threshold: 50"), "TEST07", "AUDIT-SCORE", "reject"),
    ("check not passed", say("check pass: True", "check pass: False"), "TEST07", "AUDIT-SCORE", "reject"),
    ("other evaluator", say("'exact_match': 61.616", "'exact_match': 60.1"), "TEST07", "AUDIT-SCORE", "reject"),
    ("no mean", say("Mean output tokens", "Mean"), "TEST09", "AUDIT-LENGTH", "review"),
    ("wide window", say("Max threshold: 1406.02", "Max threshold: 2000"), "TEST09", "AUDIT-LENGTH", "reject"),
    ("not within", say("Min check pass: True", "Min check pass: False"), "TEST09", "AUDIT-LENGTH", "reject"),
    ("few loaded", say("Loaded 990", "Loaded 64"), "TEST07", "AUDIT-COUNT", "reject"),
    ("few samples", say("samples: 6396", "samples: 64"), "TEST09", "AUDIT-COUNT", "reject"),
    (
        "few issued",
        log(result_query_count=989, generated_query_count=989),
        "TEST07",
        "AUDIT-COUNT",
        "reject",
    ),
    ("no detail log", lambda a: remove(detail(a)), "TEST07", "AUDIT-FILES", "review"),
    ("no hash", lambda a: remove(a / "accuracy" / "accuracy.txt"), "TEST09", "AUDIT-FILES", "review"),
    ("stray file", lambda a: write(a / "accuracy" / "more.txt", "x"), "TEST09", "AUDIT-FILES", "review"),
    ("empty accuracy log", lambda a: write(accuracy(a), ""), "TEST09", "AUDIT-FILES", "review"),
    ("verdict on another run", say("tokens: 1300.00", "tokens: 1320.00"), "TEST09", "AUDIT-RUN", "review"),
    ("no tokens in the log", log(result_completed_tokens_per_second=...), "TEST09", "AUDIT-RUN", "review"),
    ("other target", log(effective_accuracy_log_sampling_target=64), "TEST09", "AUDIT-CONFIG", "reject"),
    ("other seed", log(effective_accuracy_log_rng_seed=0), "TEST07", "AUDIT-CONFIG", "reject"),
    ("min_duration", log(effective_min_duration_ms=1000), "TEST07", "AUDIT-CONFIG", "reject"),
    ("permutation", log(effective_sample_concatenate_permutation=True), "TEST09", "AUDIT-CONFIG", "reject"),
    ("few asked", log(effective_min_sample_count=100), "TEST09", "AUDIT-CONFIG", "reject"),
    ("one for true", log(effective_sample_concatenate_permutation=0), "TEST09", "AUDIT-CONFIG", "reject"),
    ("drawn with replacement", log(effective_performance_issue_unique=False), "TEST07", "AUDIT-COVERAGE", "reject"),
    ("shortened twice", hash_of_the_shortened, "TEST07", "AUDIT-HASH", "reject"),
    (
        "words behind the hash",
        lambda a: write(a / "accuracy" / "accuracy.txt", f"hash={'a' * 64}\nx\n"),
        "TEST07",
        "AUDIT-HASH",
        "review",
    ),
    ("no title", say("Verification Summary", "Summary"), "TEST07", "AUDIT-OURS", "review"),
    ("our own", say("TEST PASS", "TEST PASS\nnot by the reference's evaluator"), "TEST09", "AUDIT-OURS", "review"),
    ("other data set", log(qsl_reported_total_count=6396), "TEST07", "LG-LIBRARY", "reject"),
    ("not valid", log(result_validity="INVALID"), "TEST09", "LG-VALID", "reject"),
    ("other scenario", log(effective_scenario="Offline"), "TEST09", "LG-SCENARIO", "reject"),
    ("other mode", log(effective_test_mode="AccuracyOnly"), "TEST09", "LG-MODE", "reject"),
    ("other seeds", log(effective_qsl_rng_seed=0), "TEST09", "LG-SEEDS", "review"),
    ("early stopping", log(early_stopping_met=False), "TEST09", "LG-EARLY-STOPPING", "review"),
    ("low count", log(effective_performance_sample_count=64), "TEST09", "LG-SAMPLE-COUNT", "review"),
    ("summary of another run", summary_of_another_run, "TEST09", "LG-SUMMARY", "review"),
    ("summary that is none", lambda a: write(detail(a).with_name(SUMMARY), "x"), "TEST09", "LG-SUMMARY", "review"),
    ("bad log", lambda a: write(detail(a), "x"), "TEST09", "LG-LOG", "reject"),
]


def in_tree(change: Callable[[Path], object], audit: str) -> Callable[[Path], object]:
    """A change of an audit as a change of a submitter's folder."""
    return lambda home: change(row(home, "Server") / audit)


BREACHES = [
    (name, "closed", in_tree(change, audit), rule, severity) for name, change, audit, rule, severity in OF_AN_AUDIT
]
BREAKS = {"AUDIT-EFFORT"}

# What cannot break alone.
KIN = {
    "drawn with replacement": {"AUDIT-CONFIG"},
    "other mode": {"LG-SUMMARY"},
    "other scenario": {"LG-SUMMARY"},
    "not valid": {"LG-SUMMARY"},
}


@pytest.mark.parametrize(("name", "division", "change", "rule", "severity"), BREACHES, ids=[b[0] for b in BREACHES])
def test_one_change_breaks_one_rule(tree, name, division, change, rule, severity):
    change(tree / division / "Acme")
    findings = check(tree, place("Server"))
    assert {f.severity.value for f in findings if f.rule == rule} == {severity}
    assert {f.rule for f in findings} - {rule} == KIN.get(name, set())
    assert all(f.path.startswith(str(ROW / "Server")) for f in findings)


@pytest.mark.parametrize("mean", ["1150.38", "1406.02"])
def test_both_ends_of_the_window_pass(tree, mean):
    audit = tree / ROW / "Server" / "TEST09"
    say("tokens: 1300.00", f"tokens: {mean}")(audit)
    assert {f.rule for f in check(tree, place("Server"))} == {"AUDIT-RUN"}


@pytest.mark.parametrize("mean", ["1150.37", "1406.03"])
def test_a_mean_outside_the_window(tree, mean):
    say("tokens: 1300.00", f"tokens: {mean}")(tree / ROW / "Server" / "TEST09")
    assert {f.rule for f in check(tree, place("Server"))} == {"AUDIT-RUN", "AUDIT-LENGTH"}


def test_the_threshold_itself_passes(tree):
    say("61.616", "60.698")(tree / ROW / "Server" / "TEST07")
    assert check(tree, place("Server")) == []


def test_offline_covers_every_row_without_being_told(tree):
    edit(detail(tree / ROW / "Offline" / "TEST07"), effective_performance_issue_unique=False)
    assert {f.rule for f in check(tree, place("Offline"))} == {"AUDIT-CONFIG"}


def test_a_whole_log_is_counted_and_hashed(tree, loadgen_runs):
    audit = tree / ROW / "Server" / "TEST07"
    whole = loadgen_runs["Server", "TEST07"] / "mlperf_log_accuracy.json"
    shutil.copy(whole, accuracy(audit))
    assert check(tree, place("Server")) == []
    lines = whole.read_text().splitlines(keepends=True)
    accuracy(audit).write_text("".join([*lines[:2], *lines[3:]]))
    assert {f.rule for f in check(tree, place("Server"))} == {"AUDIT-HASH", "AUDIT-COVERAGE"}
    accuracy(audit).write_text("".join(lines[:9]))
    assert {f.rule for f in check(tree, place("Server"))} == {"AUDIT-HASH", "LG-LOG"}


@pytest.mark.parametrize(("division", "asked"), [("closed", True), ("network", True), ("open", False)])
def test_which_divisions_ask_for_audits(tree, division, asked):
    remove(tree / ROW / "Server" / "TEST07")
    index, where = TreeIndex(tree), place("Server", division)
    logs = read_audit_logs(index, where, PACK)
    assert set(logs.details) == ({"TEST09"} if asked else set())
    assert {f.rule for f in check(tree, where)} == ({"AUDIT-MISSING"} if asked else set())


@pytest.mark.parametrize(
    ("effort", "audit", "severity"),
    [("low", "TEST07", "review"), ("high", "TEST07", None), (7, "TEST07", None), ("high", "TEST09", "review")],
)
def test_the_effort_that_the_manifest_tells(tree, effort, audit, severity):
    legs = [{"leg": audit, "reasoning_effort": effort}]
    rows = [{"system": "Box", "benchmark": BENCHMARK, "scenario": "Server", "legs": legs}, {"legs": 3}, 5]
    write(tree / "closed" / "Acme" / "MANIFEST.json", json.dumps({"rows": rows}))
    assert [(f.rule, f.severity.value) for f in check(tree, place("Server"))] == (
        [("AUDIT-EFFORT", severity)] if severity else []
    )


@pytest.mark.parametrize("scenario", ["Offline", "Server"])
@pytest.mark.parametrize("name", AUDITS)
def test_a_run_is_checked_right_after_it_ended(loadgen_runs, scenario, name):
    findings = check_run(facts(loadgen_runs[scenario, name], scenario, name))
    assert {f.rule for f in findings} == {"LG-WARNINGS"}
    effort = {"TEST07": "low", "TEST09": "high"}[name]
    findings = check_run(facts(loadgen_runs[scenario, name], scenario, name, reasoning_effort=effort))
    assert {f.rule for f in findings} == {"LG-WARNINGS", "AUDIT-EFFORT"}


def test_a_short_audit_is_judged_by_its_own_rows(loadgen_runs, tmp_path):
    short = Leg(
        "Offline",
        "PerformanceOnly",
        64,
        {"*.Offline.target_qps": "1000", "gpt-oss-120b.Offline.performance_sample_count_override": "64"},
        audit=AUDITS["TEST07"].config.settings.value | {"min_query_count": 64, "accuracy_log_sampling_target": 64},
    ).run(tmp_path / "short")
    whole = Expectation.of_round(PACK, BENCHMARK, "Offline", "TEST07")
    own = dataclasses.replace(whole, dataset_rows=64, logged_rows=64)
    assert {f.rule for f in check_run(facts(short, "Offline", "TEST07", expectation=own))} == {"LG-WARNINGS"}
    found = {f.rule for f in check_run(facts(short, "Offline", "TEST07"))}
    assert found == {"LG-WARNINGS", "LG-LIBRARY", "LG-SAMPLE-COUNT", "AUDIT-CONFIG", "AUDIT-COUNT"}


@pytest.mark.parametrize(
    ("coverage", "rule"),
    [
        (Coverage(990, 990, 0, 0, longest=10240), None),
        (Coverage(990, 990, 0, 0, longest=10241), "ACC-TOKENS"),
        (Coverage(990, 990, 0, 1), "ACC-EMPTY"),
        (Coverage(990, 989, 0, 0), "AUDIT-COVERAGE"),
        (Coverage(990, 989, 1, 0), "AUDIT-COVERAGE"),
    ],
)
def test_what_a_whole_log_tells(loadgen_runs, coverage, rule):
    findings = check_run(facts(loadgen_runs["Server", "TEST07"], "Server", "TEST07", coverage=coverage))
    assert {f.rule for f in findings} - {"LG-WARNINGS"} == ({rule} if rule else set())


def test_a_performance_run_is_no_audit(loadgen_runs):
    """A TEST09 that was run without its audit.config."""
    findings = check_run(facts(loadgen_runs["Server", "performance"], "Server", "TEST09"))
    assert {f.rule for f in findings} == {"AUDIT-CONFIG", "AUDIT-COVERAGE"}


def test_an_audit_run_is_no_performance_run(loadgen_runs):
    found = {f.rule for f in check_run(facts(loadgen_runs["Server", "TEST09"], "Server", "performance"))}
    assert {"LG-AUDIT-SETTINGS", "LG-EQUAL-ISSUE", "LG-DURATION-SETTING"} <= found


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_whatever_is_in_a_folder_can_be_checked(whole_audits, tmp_path_factory, data):
    root = shutil.copytree(whole_audits, tmp_path_factory.mktemp("hostile") / "tree")
    audit = root / ROW / "Server" / data.draw(st.sampled_from(list(AUDITS)))
    path = data.draw(st.sampled_from(sorted(p for p in audit.rglob("*") if p.is_file())))
    content = bytearray(path.read_bytes())
    if data.draw(st.booleans()):
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    for _ in range(data.draw(st.integers(0, 20))):
        if content:
            content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.sampled_from(b'0123456789"-.eE:\n\xff'))
    path.write_bytes(bytes(content))
    check(root, place("Server"))


def test_shortening_keeps_both_ends(loadgen_runs):
    whole = (loadgen_runs["Server", "TEST09"] / "mlperf_log_accuracy.json").read_bytes()
    assert len(shortened(whole)) == 2 * PACK.accuracy_log_kept_bytes.value + len(PACK.accuracy_log_separator.value)


def test_the_filed_mean_is_the_logs_own(loadgen_runs, tmp_path):
    copy = Path(shutil.copy(loadgen_runs["Offline", "TEST09"] / DETAIL, tmp_path))
    lengthen(copy, "Offline")
    assert copy.read_text() != (loadgen_runs["Offline", "TEST09"] / DETAIL).read_text()


def test_an_older_round_does_not_ask_for_every_row(tree):
    """Its audit.config lacked the setting; an audit with it is no worse."""
    assert {f.rule for f in check(tree, place("Server"), load("v6.0"))} == {"LG-SEEDS"}


@pytest.mark.shared
@pytest.mark.skipif(not REAL.exists(), reason="the shared data folder is not beside the repository")
@pytest.mark.parametrize("scenario", ["Offline", "Server"])
def test_published_audits_have_nothing_against_them(scenario):
    """By the pack of their round. Today's asks for more: samples without replacement, and other seeds."""
    (folder,) = REAL.glob(f"closed/CoreWeave/results/*/{BENCHMARK}/{scenario}")
    where = RowPlace(
        PurePosixPath(folder.relative_to(REAL)), "closed", "CoreWeave", folder.parts[-3], BENCHMARK, scenario
    )
    assert check(REAL, where, load("v6.0")) == []
    asked = {"AUDIT-CONFIG", "LG-SEEDS", *(["AUDIT-COVERAGE"] if scenario == "Server" else [])}
    assert {f.rule for f in check(REAL, where)} == asked
