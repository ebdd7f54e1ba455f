"""Runs of trajectories by the endpoints client: what it is told, what its reports are held to, what is told of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from harness.benchmarks.qwen3_6_27b.bfcl import score as scoring
from harness.clients.endpoints.program import find_program
from harness.engines.base import Checkpoint, EngineInfo
from harness.env import BFCL_PYTHON, ENDPOINTS_BIN
from harness.errors import ConfigError, MissingError
from harness.events import ignore
from harness.ledger import ResultsStore, RunRecord, State
from harness.runs import endpoints_import
from harness.runs.endpoints_import import import_run
from harness.runs.endpoints_leg import ClientGroup, run_endpoints_leg
from harness.runs.endpoints_leg import told as told_of
from harness.runs.endpoints_session import ClientSession
from harness.runs.endpoints_settings import check_row, choices
from harness.runs.plan import PlannedLeg
from harness.runs.servers import Serving
from tests.benchmarks.qwen3_6_27b.bfcl.made import made_environment
from tests.clients.endpoints.fake_client import make_fake_client
from tests.clients.endpoints.test_client import LAYOUT
from tests.runs.agentic_made import (
    ASKED,
    BENCHMARK,
    LATENCY_MS,
    MS,
    QUESTIONS,
    ROWS,
    URL,
    AgenticReport,
    leg,
    make_data,
    replay_of,
    tables,
)

STAND_IN = f"stand-in data set of {ROWS} rows (the round's: 995)"
Change = Callable[[AgenticReport], object]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_data(tmp_path_factory.mktemp("agentic"))


@pytest.fixture(scope="module")
def checker(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made_environment(tmp_path_factory.mktemp("bfcl") / "venv").python


@pytest.fixture
def take(data: Path, checker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., RunRecord]:
    """Imports a report as a run of a leg."""
    monkeypatch.setenv(BFCL_PYTHON.name, str(checker))

    def take(report: AgenticReport, division: str = "open") -> RunRecord:
        return import_run(
            report.planned,
            report.write(tmp_path / "theirs"),
            store=ResultsStore(tmp_path / "results"),
            data_dir=data,
            command=["python", "-m", "harness", "run_harness"],
            division=division,
            observer=ignore,
        )

    return take


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checker's self test, a process each time, is left out: one test has it."""
    monkeypatch.setattr(endpoints_import, "check_scoring", lambda *_: None)
    monkeypatch.setattr(scoring, "self_test", lambda *_: None)


def rejects(record: RunRecord) -> dict[str, str]:
    assert record.verdict is not None
    return {finding.rule: finding.found for finding in record.verdict.findings if finding.severity == "reject"}


def test_a_report_of_turns_becomes_a_run(take: Callable[..., RunRecord], data: Path) -> None:
    report = AgenticReport(data, leg())
    record = take(report)
    turns = replay_of(data, leg()).turns
    assert rejects(record) == {}
    assert (record.state, record.verdict and record.verdict.valid) == (State.FINISHED, True)
    assert record.result is not None
    assert (record.result.key, record.result.value, record.result.units) == ("latency.avg", LATENCY_MS, "Latency (ms)")
    assert record.turns is not None
    assert (record.turns.issued, record.turns.answered, record.turns.turns) == (turns, turns, turns)
    assert record.turn_figures is not None
    assert record.turn_figures.inline_score == 1.0
    assert record.turn_figures.mean_latency_ns == LATENCY_MS * MS
    assert list(record.turn_figures.issued.values()) == [1] * ASKED
    assert record.accuracy is not None
    assert record.accuracy.key == "overall_accuracy"
    assert sum(subset.correct for subset in record.accuracy.subsets.values()) == ROWS
    assert record.accuracy.also["normalized_single_turn_score"] == 100.0
    assert record.rate is None
    assert {"short run (--test_run)", STAND_IN} <= set(record.not_submittable)
    assert not any("metric differs" in reason for reason in record.not_submittable)


# -- what speaks against a report --------------------------------------------------------------------------------------


def failed(report: AgenticReport) -> None:
    """A turn fails, and what was left of its trajectory was never sent; the client's mean has both in it."""
    first, second = report.measured[4:6]
    report.fail(first, after_ms=0.5)
    report.fail(second, "TurnAbortedByPriorFailure", "prior turn errored: error", after_ms=0.008)
    report.asked(second)["data"] = ["PromptData", *[None] * 7]
    report.mean_as_the_client_has_it()


def timed_out(report: AgenticReport) -> None:
    report.fail(report.measured[-1], "TurnTimeout", "no answer", after_ms=LATENCY_MS)


def cut(report: AgenticReport) -> None:
    del report.ended(report.measured[1])["finish_reason"]
    report.summary["finish_reason_counts"]["tool_calls"] -= 1


def emptied(report: AgenticReport) -> None:
    """Nothing was said and nothing called; the client takes that for an answer."""
    report.ended(report.measured[1])["data"] = ["TextModelOutput", [], None, []]


def lost(report: AgenticReport) -> None:
    """A turn that was under way when the phase ended: no event tells of its end."""
    report.events.remove(report.ended(report.measured[-1]))
    report.summary["n_samples_completed"] -= 1
    report.scores["turns"].update(missing=1, observed=report.scores["turns"]["observed"] - 1)


def a_turn_less(report: AgenticReport) -> None:
    last = report.measured[-1]
    del report.index["performance"][last]
    for key in ("n_samples_issued", "n_samples_completed"):
        report.summary[key] -= 1


def asked_twice(report: AgenticReport) -> None:
    report.index["performance"][report.measured[-1]] = 0


def beyond(report: AgenticReport) -> None:
    report.index["performance"][report.measured[-1]] = 1 << 61


def other_messages(report: AgenticReport) -> None:
    report.asked(report.measured[3])["data"][3].pop(1)


def other_tools(report: AgenticReport) -> None:
    report.asked(next(iter(report.index[QUESTIONS])))["data"][4].append({"type": "function"})


def unsaid_messages(report: AgenticReport) -> None:
    report.asked(report.measured[0])["data"] = None


def two_at_once(report: AgenticReport) -> None:
    before, after = report.measured[:2]
    report.asked(after)["timestamp_ns"] = report.ended(before)["timestamp_ns"] - 1


def scored(report: AgenticReport, at: int, **changes: object) -> None:
    report.accuracy["accuracy_scores"][at].update(changes)


def part(report: AgenticReport, key: str, value: float) -> None:
    report.accuracy["accuracy_scores"][0]["breakdown"][key] = value


def runtime(report: AgenticReport, **changes: object) -> None:
    report.config["settings"]["runtime"].update(changes)


BREAKDOWNS: list[tuple[str, Change, set[str]]] = [
    ("failed", failed, {"HN-EP-ANSWERS", "HN-EP-MEAN", "EP-FAILED"}),
    ("timed out", timed_out, {"HN-EP-ANSWERS", "EP-FAILED"}),
    ("cut", cut, {"HN-EP-ANSWERS", "EP-FINISH"}),
    ("empty", emptied, {"HN-EP-ANSWERS"}),
    ("lost", lost, {"HN-EP-ANSWERS", "EP-FAILED", "EP-TURNS"}),
    ("a turn less", a_turn_less, {"HN-EP-ROWS", "EP-COUNT"}),
    ("asked twice", asked_twice, {"HN-EP-ROWS"}),
    ("beyond", beyond, {"HN-EP-ROWS"}),
    ("other messages", other_messages, {"HN-EP-REQUESTS"}),
    ("other tools", other_tools, {"HN-EP-REQUESTS"}),
    ("messages untold", unsaid_messages, {"HN-EP-REQUESTS"}),
    ("two at once", two_at_once, {"HN-EP-STREAM"}),
    ("turns missing", lambda report: report.scores["turns"].update(missing=1), {"EP-TURNS"}),
    ("turns unscored", lambda report: scored(report, 1, total_samples=3), {"EP-TURNS"}),
    ("inline score", lambda report: scored(report, 1, score=0.99), {"HN-EP-SCORE"}),
    ("overall", lambda report: part(report, "overall_accuracy", 99.99), {"HN-EP-SCORE"}),
    ("normalised", lambda report: part(report, "normalized_single_turn_score", 99.99), {"HN-EP-SCORE"}),
    ("a question less", lambda report: scored(report, 0, total_samples=ROWS - 1), {"EP-ACC-COUNT"}),
    ("interrupted", lambda report: report.summary.update(state="interrupted", complete=False), {"EP-COMPLETE"}),
    ("seeds", lambda report: runtime(report, dataloader_random_seed=42), {"EP-SEEDS"}),
    ("duration", lambda report: runtime(report, min_duration_ms=0), {"EP-DURATION-SETTING"}),
]
BREAKS = sorted(set().union(*(rules for _, _, rules in BREAKDOWNS)))


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    ("change", "rules"), [(c, r) for _, c, r in BREAKDOWNS], ids=[name for name, _, _ in BREAKDOWNS]
)
def test_what_speaks_against_a_report_of_turns(
    take: Callable[..., RunRecord], data: Path, change: Change, rules: set[str]
) -> None:
    report = AgenticReport(data, leg())
    change(report)
    record = take(report)
    assert rules <= rejects(record).keys()
    assert record.verdict is not None
    assert not record.verdict.valid


@pytest.mark.usefixtures("quick")
def test_turns_that_failed_or_were_never_sent_are_told_apart(take: Callable[..., RunRecord], data: Path) -> None:
    report = AgenticReport(data, leg())
    failed(report)
    record = take(report)
    assert record.failure_kinds == {"request_failed": 1, "never_sent": 1}
    assert record.turns is not None
    assert (record.turns.failed, record.turns.skipped) == (1, 1)
    assert record.turns.issued == record.turns.answered + 1 == record.turns.turns - 1
    assert record.turn_figures is not None
    assert record.turn_figures.mean_latency_ns == LATENCY_MS * MS  # those that were answered took that
    assert record.result is not None
    assert record.result.value < LATENCY_MS  # what the client says is filed, and it is refused
    assert "2 turns in it that were not answered" in rejects(record)["HN-EP-MEAN"]
    assert record.failures[0].message == "error: HTTP 500"
    assert "HN-EP-REQUESTS" not in rejects(record)  # what was never sent was not asked otherwise
    assert "failed samples" in record.not_submittable


@pytest.mark.usefixtures("quick")
def test_a_run_of_short_work_is_asked_about_and_not_refused(take: Callable[..., RunRecord], data: Path) -> None:
    """The round's work is fixed, and a machine may do it in less than the round's ten minutes."""
    record = take(AgenticReport(data, leg(short=False)))
    assert "EP-DURATION" not in rejects(record)
    assert record.verdict is not None
    (asked,) = [f for f in record.verdict.findings if f.rule == "EP-DURATION"]
    assert (asked.severity, "no more work" in str(asked.mend)) == ("review", True)
    assert record.not_submittable == [STAND_IN]


@pytest.mark.usefixtures("quick")
def test_a_whole_run_ends_with_all_that_targets_are_about(take: Callable[..., RunRecord], data: Path) -> None:
    record = take(AgenticReport(data, leg()))
    assert record.accuracy is not None
    assert record.accuracy.value is None  # of a part of the questions there is no accuracy
    whole = record.model_copy(update={"accuracy": record.accuracy.model_copy(update={"value": 100.0})})
    assert told_of(whole, leg().rules) == (
        "5.00 Latency (ms), overall_accuracy 100.0000, normalized_single_turn_score 100.0000, inline score 1.0000"
    )


@pytest.mark.usefixtures("quick")
def test_seeds_are_kept_and_who_objects_is_told(take: Callable[..., RunRecord], data: Path) -> None:
    record = take(AgenticReport(data, leg()))
    assert record.verdict is not None
    (told,) = [f for f in record.verdict.findings if f.rule == "RULING-ENDPOINTS-SEEDS"]
    assert (told.severity, "compliance/checker.py" in str(told.expected)) == ("note", True)


# -- runs of ours ------------------------------------------------------------------------------------------------------


INFO = EngineInfo(
    kind="http",
    vocab_size=163_840,
    max_total_tokens=32_768,
    slots=1,
    checkpoint=Checkpoint("tiny", "ab" * 32, stand_in=True, weight_data_type="bf16"),
    versions={"sglang": "0.5"},
    settings={},
    not_submittable=("stand-in checkpoint",),
)


def group_of(data: Path, tmp_path: Path) -> ClientGroup:
    store = ResultsStore(tmp_path / "results")
    store.root.mkdir(parents=True)
    return ClientGroup(
        benchmark=BENCHMARK,
        datasets=tables(data, leg()).datasets,
        data_dir=data,
        division="open",
        program=find_program(LAYOUT, {ENDPOINTS_BIN.name: str(make_fake_client(tmp_path / "bin"))}),
        serving=Serving("sglang", "moonshotai/Kimi-K2.6", (("0", URL),), INFO),
        store=store,
        command=["make"],
        observer=ignore,
    )


@pytest.mark.usefixtures("quick")
def test_a_run_of_ours(data: Path, checker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BFCL_PYTHON.name, str(checker))
    monkeypatch.setenv("FAKE_REPORT", str(AgenticReport(data, leg()).write(tmp_path / "prepared")))
    group = group_of(data, tmp_path)
    record = run_endpoints_leg(leg(), group, None)
    assert rejects(record) == {}
    (run,) = group.store.runs()
    assert (run.folder / "data").resolve() == (data / leg().benchmark).resolve()
    laid = pq.read_table(run.folder / "dataset_cache/bfcl_v4/bfcl_v4_single_turn.parquet")
    assert laid.num_rows == ROWS
    assert record.rate is None
    assert record.dataset.rows == ROWS


@pytest.mark.usefixtures("quick")
def test_a_run_of_ours_whose_configuration_is_another(
    data: Path, checker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BFCL_PYTHON.name, str(checker))
    report = AgenticReport(data, leg())
    report.config["model_params"]["chat_template_kwargs"] = {"thinking": True}
    monkeypatch.setenv("FAKE_REPORT", str(report.write(tmp_path / "prepared")))
    found = rejects(run_endpoints_leg(leg(), group_of(data, tmp_path), None))
    assert found == {"HN-EP-CONFIG": "model_params.chat_template_kwargs.thinking true"}


def test_a_client_that_cannot_score_is_refused_before_servers_start(
    data: Path, checker: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BFCL_PYTHON.name, str(checker))
    absent: dict[str, str | None] = {"version": None, "problem": "ModuleNotFoundError: No module named 'bfcl_eval'"}
    monkeypatch.setenv(ENDPOINTS_BIN.name, str(make_fake_client(tmp_path / "bin", extra=absent)))
    lines: list[str] = []
    session = ClientSession(ResultsStore(tmp_path / "results"), data, ["make"], lambda e: lines.append(str(e)), {})
    with pytest.raises(MissingError, match="cannot score with bfcl-eval"):
        session.run([leg()])
    assert session.store.runs() == []
    assert any("check_compliance.py" in line for line in lines)  # who will object to the seeds is told at the start
    assert not any("server" in line for line in lines if "endpoints client" not in line)


# -- what is told ------------------------------------------------------------------------------------------------------


def told(data: Path, planned: PlannedLeg) -> dict[str, object]:
    found = AgenticReport(data, planned).config
    return {
        "asked": found["datasets"][0]["agentic_inference"]["num_trajectories_to_issue"],
        "shares": found["datasets"][1]["generate_params"]["category_sample_pct"],
        "runtime": found["settings"]["runtime"],
        "kwargs": found["model_params"].get("chat_template_kwargs"),
    }


def test_a_short_run_asks_fewer_and_a_stand_in_what_there_is(data: Path) -> None:
    short, whole = told(data, leg()), told(data, leg(short=False))
    assert (short["asked"], whole["asked"]) == (ASKED, 3)
    assert short["shares"] == whole["shares"] == {"non_live": 100, "live": 100, "hallucination": 100}
    assert short["kwargs"] == {"thinking": False}
    runtime = whole["runtime"]
    assert isinstance(runtime, dict)
    assert (runtime["min_duration_ms"], runtime["max_duration_ms"]) == (600000, 14400000)
    assert "n_samples_to_issue" not in runtime  # the client refuses it beside trajectories


def test_questions_are_counted_in_the_client_s_order(data: Path) -> None:
    """It sorts its copy by subset, and our table of made-up ones is not sorted so."""
    replay = replay_of(data, leg())
    subsets = [row.subset for row in replay.questions]
    assert subsets == sorted(subsets)
    assert sorted(replay.places) == list(range(len(subsets)))
    assert list(replay.places) != list(range(len(subsets)))


def test_more_servers_than_connections_are_refused(data: Path) -> None:
    asked = tables(data, leg()).asked
    with pytest.raises(ConfigError, match="one connection, and there are 2 servers"):
        choices(leg(), [URL, URL], "m", None, asked)


def test_a_scenario_without_a_row_is_refused() -> None:
    offline = PlannedLeg("BOX", leg().benchmark, "Offline", "performance", leg().config, leg().pack, test_run=False)
    with pytest.raises(ConfigError, match="has no row of") as raised:
        check_row(offline)
    assert raised.value.expected == "one of SingleStream"
