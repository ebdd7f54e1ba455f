"""Margins are LoadGen's figures against the rules of the round; its percentiles are told beside them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from harness.gate.run_facts import ACCURACY, PERFORMANCE, Expectation, RunFacts
from harness.ledger.record import AuditEcho
from harness.ledger.sample_times import AnswerTimes
from harness.ledger.samples import NONE
from harness.logs import DetailLog, Document, EndpointsLog
from harness.report.book.content import Distribution, Margin, Missing
from harness.report.book.limits import Limits, limits_of
from harness.report.book.logged import logged_figures
from harness.report.book.margins import (
    accuracy_margins,
    audit_margins,
    client_margins,
    early_stopping_margins,
    loadgen_margins,
    margin,
)
from harness.rules import load
from harness.rules.early_stopping import min_queries, passes
from tests.logs.endpoints_files import ScenarioFolder
from tests.logs.loadgen_runs import edit
from tests.report.book.made import made_columns

PACK = load("v6.1")
GPT, VL, AGENTIC = "gpt-oss-120b", "qwen3-vl-235b-a22b", "qwen3.6-27b"
DETAIL = "mlperf_log_detail.txt"


def facts(detail: Path, benchmark: str = GPT, scenario: str = "Server", leg: str = PERFORMANCE) -> RunFacts:
    expectation = Expectation.of_round(PACK, benchmark, scenario, leg)
    return RunFacts(leg, scenario, benchmark, PACK, expectation, DetailLog.read(detail))


def by_name(margins: tuple[Margin, ...]) -> dict[str, Margin]:
    return {f"{each.name} {each.direction}": each for each in margins}


def test_of_a_run_of_loadgens(server_logs: Path) -> None:
    detail = DetailLog.read(server_logs / DETAIL)
    found = by_name(loadgen_margins(facts(server_logs / DETAIL)))
    assert list(found) == [
        "TTFT p99 below",
        "TPOT p99 below",
        "duration at least",
        "mean output tokens at least",
        "mean output tokens at most",
    ]
    rules = PACK.benchmark(GPT).scenario("Server")
    ttft = found["TTFT p99 below"]
    assert rules.ttft_p99_below_ms is not None
    assert ttft.limit == rules.ttft_p99_below_ms.value and ttft.source == rules.ttft_p99_below_ms.source
    assert ttft.measured == detail.values["result_first_token_99.00_percentile_latency_ns"] / 1e6
    assert ttft.met and ttft.share == pytest.approx(ttft.measured / ttft.limit)
    duration = found["duration at least"]
    assert duration.limit == PACK.measured_duration_ms.value / 1000 and not duration.met
    assert duration.measured == pytest.approx(detail.scheduled_span_ns / 1e9 if detail.scheduled_span_ns else None)
    assert found["mean output tokens at most"].met and not found["mean output tokens at least"].met


def test_of_a_log_that_tells_other_things(server_logs: Path, tmp_path: Path) -> None:
    detail = tmp_path / DETAIL
    detail.write_bytes((server_logs / DETAIL).read_bytes())
    edit(detail, result_first_token_p99_latency_ns="soon", result_scheduled_samples_per_sec=0.0)
    found = by_name(loadgen_margins(facts(detail)))
    for name in ("TTFT p99 below", "duration at least"):
        assert found[name].measured is None and not found[name].met and found[name].share is None
    assert found["TPOT p99 below"].met


def test_offlines_samples_and_duration(server_logs: Path) -> None:
    """By a Server log, in which Offline's keys are: a margin asks for its key, not for who wrote it."""
    found = by_name(loadgen_margins(facts(server_logs / DETAIL, scenario="Offline")))
    assert found["samples issued at least"].limit == 6396


@pytest.mark.parametrize(("over", "met"), [(0, True), (9, False)])
def test_early_stopping_by_how_many_were_over(server_logs: Path, over: int, met: bool) -> None:
    """TTFT of some of 1000 samples lies a nanosecond over the limit, that of the others on it."""
    ruled = PACK.benchmark(GPT).scenario("Server").ttft_p99_below_ms
    assert ruled is not None
    limit_ns = int(ruled.value * 1e6)
    columns = made_columns(1000)
    columns["first_token_ns"] = columns["issued_ns"] + limit_ns
    columns["first_token_ns"][:over] += 1
    columns["done_ns"] = columns["first_token_ns"] + columns["answer_tokens"]
    ttft, tpot = early_stopping_margins(facts(server_logs / DETAIL), AnswerTimes.of(columns), 1000)
    assert (ttft.name, ttft.measured, ttft.limit) == ("TTFT, early stopping", 1000, min_queries(over, 0.99))
    assert ttft.met is met is passes(1000, over, 0.99)
    assert f"{over} of 1,000 samples are over the limit" in ttft.source
    assert tpot.limit == min_queries(0, 0.99) and tpot.met


def test_early_stopping_is_servers_alone(server_logs: Path) -> None:
    answers = AnswerTimes.of(made_columns(10))
    assert early_stopping_margins(facts(server_logs / DETAIL, scenario="Offline"), answers, 10) == ()
    assert early_stopping_margins(facts(server_logs / DETAIL, leg=ACCURACY), answers, 10) == ()
    whole = AnswerTimes.of({**made_columns(10), "first_token_ns": np.full(10, NONE)})
    assert early_stopping_margins(facts(server_logs / DETAIL), whole, 10) == ()


def test_an_accuracy_leg_has_none_of_loadgens(server_logs: Path) -> None:
    assert loadgen_margins(facts(server_logs / DETAIL, leg=ACCURACY)) == ()


def test_percentiles_of_the_log(server_logs: Path) -> None:
    limits = limits_of(PACK, GPT, "Server")
    figures = {figure.key: figure for figure in logged_figures(DetailLog.read(server_logs / DETAIL), limits)}
    assert set(figures) == {"latency", "ttft", "tpot"}
    values = DetailLog.read(server_logs / DETAIL).values
    for key, percentile, most in (
        ("latency", "result_99.00_percentile_latency_ns", "result_max_latency_ns"),
        ("ttft", "result_first_token_99.00_percentile_latency_ns", "result_first_token_max_latency_ns"),
        ("tpot", "result_time_per_output_token_99.00_percentile_ns", "result_time_to_output_token_max"),
    ):
        figure = figures[key]
        assert isinstance(figure, Distribution)
        assert figure.p99 == values[percentile] / 1e6 and figure.max == values[most] / 1e6
        assert figure.counts == () and "LoadGen's own" in figure.about
        assert figure.count == values["result_query_count"]
        assert (figure.limit is None) == (key == "latency")


def test_a_log_without_them_says_so(server_logs: Path, tmp_path: Path) -> None:
    detail = tmp_path / DETAIL
    detail.write_bytes((server_logs / DETAIL).read_bytes())
    edit(detail, result_max_latency_ns=..., result_first_token_p99_latency_ns=[1])
    latency, ttft, tpot = logged_figures(DetailLog.read(detail), Limits())
    assert isinstance(latency, Missing) and "LoadGen logs none of latency" in latency.why
    assert isinstance(ttft, Missing) and "result_first_token" in ttft.why
    assert isinstance(tpot, Distribution)


@pytest.mark.parametrize(
    ("scenario", "names"),
    [("Server", {"latency"}), ("Offline", set()), ("Nowhere", set())],
)
def test_limits_of_a_scenario(scenario: str, names: set[str]) -> None:
    limits = limits_of(PACK, VL, scenario)
    assert {name for name in ("ttft", "tpot", "latency") if getattr(limits, name) is not None} == names
    if limits.latency is not None:
        assert limits.latency.inclusive and limits.latency.percentile == 99


def test_no_rules_no_limits() -> None:
    assert limits_of(None, GPT, "Server") == limits_of(PACK, "bert", "Server") == Limits()


def test_of_a_report_of_the_client(tmp_path: Path) -> None:
    folder = ScenarioFolder().write(tmp_path)
    log = EndpointsLog.read(folder)
    found = by_name(client_margins(log, PACK, GPT, "Server"))
    assert found["TTFT p99 below"].measured == pytest.approx((3e8 + 99) / 1e6), "the estimate, not the percentile"
    assert found["TTFT p99 below"].met
    assert found["duration at least"].measured == pytest.approx(639.6)
    assert by_name(client_margins(log, PACK, AGENTIC, "SingleStream"))["samples issued at least"].measured == 6396
    empty = EndpointsLog(Document(tmp_path / "x", {"duration_ns": "long"}), Document(tmp_path / "y", {}))
    assert not any(each.met or each.measured for each in client_margins(empty, PACK, GPT, "Server"))


def test_of_accuracy() -> None:
    met, more = accuracy_margins({"overall_accuracy": 90.0}, PACK, AGENTIC, "SingleStream", "endpoints")
    assert met.met and met.measured == 90.0 and not more.met and more.measured is None
    labelled, *_ = accuracy_margins({"overall_accuracy": 90.0}, PACK, AGENTIC, "SingleStream", "loadgen")
    assert labelled.name == "overall_accuracy" and labelled.measured == 90.0, "the checker's label is another"
    unscored, *others = accuracy_margins({"exact_match": None}, PACK, GPT, "Server", "loadgen")
    assert unscored.measured is None and not unscored.met and not others
    upper = accuracy_margins({"exact_match": 83.0, "tokens_per_sample": 20000.0}, PACK, GPT, "Server", "loadgen")[-1]
    assert (upper.direction, upper.met) == ("at most", False)
    assert accuracy_margins({"acc": 1.0}, PACK, "bert", "Server", "loadgen") == ()


def test_of_an_audit() -> None:
    window = AuditEcho(
        key="tokens", value=1500.0, at_least=1000.0, at_most=1400.0, passed=False, verdict_file="v", verifier="us",
        harness_value=None,
    )  # fmt: skip
    least, most = audit_margins("TEST09", window, "a rule")
    assert least.met and not most.met and {least.name, most.name} == {"TEST09 tokens"}
    assert len(audit_margins("TEST07", window.model_copy(update={"at_most": None}), "")) == 1


@pytest.mark.parametrize(
    ("direction", "measured", "met"),
    [
        ("below", 4.9, True), ("below", 5.0, False), ("at most", 5.0, True), ("at most", 5.1, False),
        ("at least", 5.0, True), ("at least", 4.9, False), ("at least", None, False),
    ],
)  # fmt: skip
def test_directions(direction: str, measured: float | None, met: bool) -> None:
    assert margin("x", "ms", measured, 5.0, direction, "").met is met  # type: ignore[arg-type]  # a parameter
