from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import ConfigError, UnknownName
from harness.report.book.content import Book, Distribution, Missing, RowView, RunView, TimeLine
from harness.report.book.tree import gather_tree
from harness.report.book.tree_round import RoundOfTree, round_of_tree
from harness.report.compare import compare
from harness.rules import load
from tests.gate.made_endpoints import AGENT, GPT, change_data, make_endpoints_tree
from tests.gate.made_tree import SUBMITTER, Entry, change_json, make_tree, row, write
from tests.logs.loadgen_runs import edit, loadgen_runs

__all__ = ["loadgen_runs"]
PACK = load("v6.1")
DETAIL = "mlperf_log_detail.txt"
LOGGED = [
    *("result_validity", "result_query_count", "effective_min_duration_ms", "effective_scenario", "power_begin"),
    *("result_99.00_percentile_latency_ns", "result_first_token_99.00_percentile_latency_ns", "loadgen_version"),
    *("result_completed_tokens_per_second", "result_completed_samples_per_sec", "result_mean_latency_ns", "power_end"),
]
REAL = Path(__file__).parents[4] / "shared/data/real_v6.0"


@pytest.fixture(scope="module")
def whole(loadgen_runs: dict[tuple[str, str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed tree with nothing against it. Read-only by agreement."""
    root = tmp_path_factory.mktemp("closed")
    make_tree(root, loadgen_runs, "closed")
    return root


@pytest.fixture
def home(whole: Path, tmp_path: Path) -> Path:
    """The submitter's folder of a copy of it, to break."""
    shutil.copytree(whole, tmp_path / "tree")
    return tmp_path / "tree" / "closed" / SUBMITTER


def gathered(home: Path, **options: object) -> Book:
    return gather_tree(home.parents[1], PACK, **options)  # type: ignore[arg-type] - each test's own options


def server(book: Book) -> RowView:
    (found,) = (one for one in book.rows if one.scenario == "Server")
    return found


def leg(book: Book, name: str) -> RunView:
    return next(run for key in server(book).runs if (run := book.run(key)).leg == name)


def test_a_whole_tree(whole: Path) -> None:
    book = gather_tree(whole, PACK)
    assert (book.source, book.round, book.notes) == ("tree", "v6.1", ())
    assert {one.severity for one in book.findings} == {"note"}
    assert [(one.scenario, one.word, one.accuracy) for one in book.rows] == [
        ("Offline", "VALID", "exact_match 83.13"),
        ("Server", "VALID", "exact_match 83.13"),
    ]
    found = server(book)
    assert found.metric == "result_completed_tokens_per_second"
    assert found.value is not None and found.value > 0
    assert (found.unit, found.higher_is_better, found.verified, found.demonstration) == ("Tokens/s", True, None, False)
    assert found.audits == (("TEST07", "PASS"), ("TEST09", "PASS"))
    assert found.reasons == ()
    assert [(one.name, one.unit) for one in found.margins[:3]] == [
        ("TTFT p99", "ms"),
        ("TPOT p99", "ms"),
        ("duration", "s"),
    ]
    assert all(one.met for one in found.margins)
    assert dict(found.boundary)["division"] == "closed"
    assert [book.run(key).leg for key in found.runs] == ["performance", "accuracy", "TEST07", "TEST09"]
    keys = [run.key for run in book.runs]
    assert len(set(keys)) == len(keys) == 8


def test_a_leg_has_loadgens_percentiles_and_the_reason_for_the_rest(whole: Path) -> None:
    run = leg(gather_tree(whole, PACK), "performance")
    figures = {figure.key: figure for figure in run.figures}
    ttft = figures["ttft"]
    assert isinstance(ttft, Distribution)
    assert ttft.counts == () and ttft.limit is not None and ttft.limit.value == 3000
    tokens = figures["output_tokens"]
    assert isinstance(tokens, Missing) and "LoadGen's percentiles alone" in tokens.why
    assert run.word == "VALID" and run.headline.endswith(" Tokens/s")
    assert run.started_at is not None and run.started_at[4] == "-" and run.seconds is not None
    facts = {group: dict(pairs) for group, pairs in run.facts}
    assert facts["settings"]["scenario"] == "Server"
    assert "@" in facts["versions"]["LoadGen"]


def test_an_audit_has_its_number(whole: Path) -> None:
    run = leg(gather_tree(whole, PACK), "TEST09")
    assert run.headline.startswith("PASS, mean_output_tokens")
    assert [one.name for one in run.margins] == ["TEST09 mean_output_tokens"] * 2


def test_what_the_gate_says_stands_with_the_leg_it_is_of(home: Path) -> None:
    edit(row(home, "Server") / "performance/run_1" / DETAIL, result_validity="INVALID")
    book = gathered(home)
    assert server(book).word == "INVALID"
    assert leg(book, "performance").word == "INVALID"
    assert leg(book, "accuracy").word == "VALID"
    assert "LG-VALID" in [one.rule for one in leg(book, "performance").findings]
    assert any(reason.startswith("reject LG-VALID: ") for reason in server(book).reasons)
    assert [one.word for one in book.rows] == ["VALID", "INVALID"]


def test_papers_that_lack_do_not_make_a_run_invalid(home: Path) -> None:
    (row(home, "Server") / "README.md").unlink()
    found = server(gathered(home))
    assert found.word == "VALID"
    assert any(reason.startswith("reject TREE-FILE: ") for reason in found.reasons)


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: shutil.rmtree(folder / "performance"),
        lambda folder: (folder / "performance/run_1" / DETAIL).write_text(":::MLLOG {"),
        lambda folder: (folder / "performance/run_1" / DETAIL).write_bytes(b"\xff\x00" * 50),
        lambda folder: (folder / "performance/run_1" / DETAIL).write_text(""),
    ],
    ids=["no folder", "cut", "bytes", "empty"],
)
def test_a_half_written_row_is_shown_as_what_it_is(home: Path, change: Callable[[Path], object]) -> None:
    change(row(home, "Server"))
    book = gathered(home)
    found = server(book)
    assert (found.word, found.value) in [("unread", None), ("INVALID", None)]
    run = leg(book, "performance")
    assert run.word in ("unread", "INVALID")
    assert run.figures and all(isinstance(figure, Missing) and figure.why for figure in run.figures)
    assert [one.word for one in book.rows if one.scenario == "Offline"] == ["VALID"]


@pytest.mark.parametrize("name", ["accuracy/accuracy.txt", "TEST07/verify_accuracy.txt"])
def test_a_text_that_cannot_be_read_tells_no_number(home: Path, name: str) -> None:
    (row(home, "Server") / name).write_bytes(b"\xff\xff")
    book = gathered(home)
    wanted = "accuracy" if name.startswith("accuracy") else "TEST07"
    assert "no" in leg(book, wanted).headline
    assert server(book).accuracy == ("not told" if wanted == "accuracy" else "exact_match 83.13")
    assert dict(server(book).audits)["TEST07"] == ("PASS" if wanted == "accuracy" else "no verdict")


def test_a_failed_audit_is_one(home: Path) -> None:
    path = row(home, "Server") / "TEST07/verify_accuracy.txt"
    path.write_text(path.read_text().replace("TEST PASS", "TEST FAIL"))
    assert dict(server(gathered(home)).audits)["TEST07"] == "FAIL"
    shutil.rmtree(path.parent)
    assert dict(server(gathered(home)).audits)["TEST07"] == "no verdict"


def test_a_demonstration_says_so_in_every_row(home: Path) -> None:
    write(home / "DEMONSTRATION", "DEMONSTRATION, not a submission.\n")
    manifest = json.loads((home / "MANIFEST.json").read_text())
    for entry in manifest["rows"]:
        entry["not_submittable"] = ["scripted engine"]
    write(home / "MANIFEST.json", json.dumps(manifest | {"demonstration": True}))
    book = gathered(home)
    assert all(one.demonstration for one in book.rows)
    assert all(run.not_submittable == ("scripted engine",) for run in book.runs)
    assert dict(server(book).boundary)["answered by"] == "a script"
    assert server(book).reasons[0] == "scripted engine"


def test_a_tree_of_a_stranger_without_a_manifest(home: Path) -> None:
    (home / "MANIFEST.json").unlink()
    book = gathered(home)
    assert server(book).word == "VALID"
    assert not leg(book, "performance").not_submittable
    assert gathered(home, submitter=SUBMITTER).rows == book.rows
    with pytest.raises(UnknownName, match="unknown submitter 'Nobody'"):
        gathered(home, submitter="Nobody")


def test_manifests_of_any_shape_are_read(home: Path) -> None:
    manifest = json.loads((home / "MANIFEST.json").read_text())
    rows = [
        entry | {"legs": [1, {"leg": "performance", "run": 7}], "not_submittable": "x"} for entry in manifest["rows"]
    ]
    write(home / "MANIFEST.json", json.dumps(manifest | {"rows": rows, "made_by": 5}))
    run = leg(gathered(home), "performance")
    assert dict(dict(run.facts)["filed run"]) == {"run": "7"}


def test_folders_that_differ_in_signs_alone_have_keys_of_their_own(home: Path) -> None:
    for name in ("B_x", "B-x", "B.x"):
        shutil.copytree(home / "results/Box", home / "results" / name)
    book = gathered(home)
    assert len(book.rows) == 8
    for keys in ([one.key for one in book.rows], [run.key for run in book.runs]):
        assert len(set(keys)) == len(keys)
    titles = {book.run(key).title.split("/")[3] for one in book.rows if one.system == "B.x" for key in one.runs}
    assert titles == {"B.x"}


def test_what_there_are_no_rules_for_is_noted(home: Path) -> None:
    (name,) = [*PACK.other_benchmarks.value][:1]
    shutil.copytree(row(home, "Server"), home / "results" / "Box" / name / "Offline")
    book = gathered(home)
    assert any(name in note and "not shown" in note for note in book.notes)


@pytest.mark.parametrize("scenario", ["MultiStream", "SingleStream", "Interactive"])
def test_a_scenario_that_open_alone_runs(
    loadgen_runs: dict[tuple[str, str], Path], tmp_path: Path, scenario: str
) -> None:
    home = make_tree(tmp_path / "tree", loadgen_runs, "open")
    row(home, "Server").rename(row(home, scenario))
    found = {one.scenario: one for one in gathered(home).rows}
    assert found.keys() == {"Offline", scenario}
    assert found[scenario].word in ("VALID", "INVALID")
    assert found[scenario].runs


def test_nothing_to_show(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such folder"):
        gather_tree(tmp_path / "none", PACK)
    write(tmp_path / "file", "x")
    with pytest.raises(ConfigError, match="no such folder"):
        gather_tree(tmp_path / "file", PACK)
    (tmp_path / "empty").mkdir()
    book = gather_tree(tmp_path / "empty", PACK)
    assert book.rows == () and book.notes == ("there is no row in it that the gate has rules for",)
    with pytest.raises(ConfigError, match="no such results folder"):
        gather_tree(tmp_path / "empty", PACK, tmp_path / "none")


# -- the endpoints client's --------------------------------------------------------------------------------------------


@pytest.fixture
def client_home(tmp_path: Path) -> Path:
    return make_endpoints_tree(tmp_path / "client", GPT, "closed")


def test_a_row_of_the_endpoints_client(client_home: Path) -> None:
    book = gathered(client_home)
    found = server(book)
    assert (found.word, found.metric, found.accuracy) == ("VALID", "tps", "exact_match 84.3453")
    run = leg(book, "endpoints")
    assert dict(run.counts) == {"issued": 6396, "answered": 6396, "failed": 0}
    assert [name for name, _ in run.scores] == ["exact_match", "aime25", "gpqa", "livecodebench"]
    ttft = next(figure for figure in run.figures if figure.key == "ttft")
    assert isinstance(ttft, Distribution) and ttft.p99 == 500
    assert dict(found.boundary)["client"] == "endpoints client"
    assert dict(dict(run.facts)["versions"])["endpoints client"] == "0.1.0"


@pytest.mark.parametrize("scenario", ["MultiStream", "SingleStream"])
def test_a_scenario_of_the_client_that_open_alone_runs(tmp_path: Path, scenario: str) -> None:
    home = make_endpoints_tree(tmp_path / "tree", GPT, "open")
    row(home, "Server").rename(row(home, scenario))
    found = {one.scenario: one for one in gathered(home).rows}
    assert found[scenario].word in ("VALID", "INVALID")
    assert dict(found[scenario].boundary)["limits"] == "not told"


def test_less_latency_is_better(tmp_path: Path) -> None:
    book = gathered(make_endpoints_tree(tmp_path / "tree", AGENT, "closed"))
    (found,) = book.rows
    assert not found.higher_is_better
    assert "normalized_single_turn_score 87.27" in found.accuracy
    assert all(one.met for one in found.margins)


@pytest.mark.parametrize("broken", ["{", "[]", "", "null"])
@pytest.mark.parametrize("name", ["performance/result_summary.json", "accuracy/accuracy_results.json", "config.yaml"])
def test_reports_that_cannot_be_read_are_said(client_home: Path, name: str, broken: str) -> None:
    write(row(client_home, "Server") / name, broken)
    book = gathered(client_home)
    run = leg(book, "endpoints")
    assert run.word == ("unread" if name.startswith("performance") else "INVALID")
    if run.word == "unread":
        assert all(isinstance(figure, Missing) for figure in run.figures)
        assert server(book).value is None


def test_values_that_are_none_of_the_clients_do_not_break_the_book(client_home: Path) -> None:
    folder = row(client_home, "Server")
    for key in ("n_samples_issued", "duration_ns", "ttft", "latency/percentiles", "test_started_at", "git_sha"):
        change_data(folder / "performance/result_summary.json", key, [{"x": 1}])
    change_data(folder / "accuracy/accuracy_results.json", "accuracy_scores/0/score", "none")
    run = leg(gathered(client_home), "endpoints")
    assert run.word == "INVALID"


def test_audits_of_the_client(client_home: Path) -> None:
    (name, ruled), *_ = PACK.benchmark(GPT).endpoints_audits.items()
    path = row(client_home, "Server") / ruled.value.file
    for content, word in (({"test": ruled.value.test, "passed": True}, "PASS"), ({"passed": False}, "FAIL")):
        write(path, json.dumps(content))
        assert dict(server(gathered(client_home)).audits)[name] == word
    write(path, "{")
    assert dict(server(gathered(client_home)).audits)[name] not in ("PASS", "FAIL")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
_KEYS = st.sampled_from(
    [
        "n_samples_issued",
        "n_samples_failed",
        "duration_ns",
        "qps",
        "tps",
        "ttft",
        "tpot",
        "latency",
        "state",
        "git_sha",
        "output_sequence_lengths",
        "complete",
        "version",
        "test_started_at",
        "accuracy_scores",
        "settings",
        "type",
    ]
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    name=st.sampled_from(["performance/result_summary.json", "accuracy/accuracy_results.json", "config.yaml"]),
    changes=st.dictionaries(_KEYS, _JSON, min_size=1, max_size=3),
)
def test_any_report_makes_a_book(client_home: Path, name: str, changes: dict[str, Any]) -> None:
    path = row(client_home, "Server") / name
    before = path.read_text()
    try:
        data = yaml.safe_load(before) if name.endswith("yaml") else json.loads(before)
        path.write_text(json.dumps(data | changes))
        found = server(gathered(client_home))
    finally:
        path.write_text(before)
    assert found.word in ("VALID", "INVALID", "unread")


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(cut=st.floats(0, 1), key=st.sampled_from(LOGGED), value=_JSON)
def test_any_detail_log_makes_a_book(home: Path, cut: float, key: str, value: object) -> None:
    path = row(home, "Server") / "performance/run_1" / DETAIL
    before = path.read_text()
    lines = before.splitlines(keepends=True)
    marker = ":::MLLOG "
    changed = [
        marker + json.dumps(json.loads(line.removeprefix(marker)) | {"value": value}) + "\n"
        if f'"{key}"' in line
        else line
        for line in lines
    ]
    text = "".join(changed)
    try:
        path.write_text(text[: int(len(text) * cut)] if cut > 0.5 else text)
        book = gathered(home)
    finally:
        path.write_text(before)
    assert server(book).word in ("VALID", "INVALID", "unread")
    assert all(figure.why for figure in leg(book, "performance").figures if isinstance(figure, Missing))


# -- which round -------------------------------------------------------------------------------------------------------


def test_the_round_is_the_manifests(home: Path) -> None:
    assert round_of_tree(home.parents[1]).pack.round == "v6.1"
    change_json(home / "MANIFEST.json", round="v6.0")
    assert round_of_tree(home.parents[1]).pack.round == "v6.0"
    change_json(home / "MANIFEST.json", round="v1.0")
    unknown = round_of_tree(home.parents[1])
    assert unknown.pack.round == "v6.1" and unknown.note is not None and "v1.0" in unknown.note


def test_the_round_of_a_stranger_is_told_by_its_seeds(home: Path, client_home: Path) -> None:
    (home / "MANIFEST.json").unlink()
    earlier = load("v6.0").seeds.sample_index.value
    for path in home.rglob(f"run_1/{DETAIL}"):
        edit(path, effective_sample_index_rng_seed=earlier)
    assert round_of_tree(home.parents[1]).pack.round == "v6.0"
    shutil.rmtree(home)
    assert round_of_tree(client_home.parents[1]) == RoundOfTree(PACK, note=None)


def test_two_rounds_are_compared_in_percent_where_they_ask_the_same(
    whole: Path, loadgen_runs: dict[tuple[str, str], Path], tmp_path: Path
) -> None:
    earlier = make_tree(tmp_path / "earlier", loadgen_runs, "closed", Entry(round="v6.0"))
    path = row(earlier, "Server") / "performance/run_1" / DETAIL
    edit(path, result_completed_tokens_per_second=2.0)
    before = gather_tree(tmp_path / "earlier", round_of_tree(tmp_path / "earlier").pack)
    found = compare(before, gather_tree(whole, PACK))
    assert found.notes == ("two rounds: v6.0 before, v6.1 after; each by the rules of its own",)
    assert [(one.boundary, one.result.percent is not None) for one in found.rows] == [((), True), ((), True)]
    changed = {one.after.scenario: one for one in found.rows}
    assert changed["Server"].result.before == 2.0
    assert changed["Offline"].result.percent == 0.0


def test_nothing_may_tell_the_round(tmp_path: Path) -> None:
    found = round_of_tree(tmp_path)
    assert found.pack.round == "v6.1" and found.note is not None and "no log tells a seed" in found.note
    write(tmp_path / "closed/Acme/MANIFEST.json", "[" * 100_000)
    assert round_of_tree(tmp_path).note is not None


# -- published results -------------------------------------------------------------------------------------------------


@pytest.mark.shared
@pytest.mark.skipif(not REAL.is_dir(), reason="no published results at hand")
def test_published_results_of_another_round() -> None:
    found = round_of_tree(REAL)
    assert (found.pack.round, found.note) == ("v6.0", None)
    book = gather_tree(REAL, found.pack)
    assert [(one.submitter, one.scenario, one.word, one.value) for one in book.rows] == [
        ("CoreWeave", "Offline", "VALID", 910468.0),
        ("CoreWeave", "Server", "VALID", 956523.0),
        ("Google", "Offline", "VALID", 42.4736),
        ("Google", "Server", "VALID", 35.5625),
    ]
    run = book.run(book.rows[1].runs[0])
    assert {figure.key: figure.p99 for figure in run.figures if isinstance(figure, Distribution)} == {
        "latency": pytest.approx(112238.76471),
        "ttft": pytest.approx(1299.434129),
        "tpot": pytest.approx(61.644329),
    }
    assert not any(isinstance(figure, TimeLine) for one in book.runs for figure in one.figures)
    subsets = [(one.name, one.correct) for one in book.run(book.rows[1].runs[1]).subsets]
    assert subsets == [("aime25", 195), ("gpqa_diamond", 742), ("livecodebench_v6", 2678)]
