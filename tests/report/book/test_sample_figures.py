"""The figures of a run's samples, and what stands in their place where there are none."""

from __future__ import annotations

import numpy as np
import pytest

from harness.ledger.samples import NONE, Int64, SampleState
from harness.report.book.content import Distribution, Figure, Limit, Missing, TimeLine
from harness.report.book.limits import Limits
from harness.report.book.sample_figures import SAMPLES, TRAJECTORIES, TURNS, all_missing, sample_figures
from tests.report.book.made import MS, made_columns

TTFT = Limit(99.0, 3000.0, inclusive=False, source="a rule")
LIMITS = Limits(ttft=TTFT)
TIMES = {"latency", "ttft", "tpot"}
TOKENS = {"input_tokens", "output_tokens"}
OVER_TIME = {"throughput", "token_throughput", "concurrency"}


def by_key(figures: tuple[Figure, ...]) -> dict[str, Figure]:
    found = {figure.key: figure for figure in figures}
    assert len(found) == len(figures), "keys are unique in a run"
    return found


def missing(figures: dict[str, Figure]) -> dict[str, str]:
    return {key: figure.why for key, figure in figures.items() if isinstance(figure, Missing)}


def distribution_of(figures: dict[str, Figure], key: str) -> Distribution:
    figure = figures[key]
    assert isinstance(figure, Distribution)
    return figure


def test_all_figures_of_a_run() -> None:
    columns = made_columns(5000, failed=7)
    figures = by_key(sample_figures(columns, LIMITS))
    percentiles = {f"{key}_over_time_p{at}" for key in TIMES for at in (50, 99)}
    assert set(figures) == TIMES | TOKENS | OVER_TIME | percentiles
    answered = columns["state"] == SampleState.ANSWERED
    latency = distribution_of(figures, "latency")
    assert latency.count == 4993 and latency.limit is None
    assert latency.max == pytest.approx((columns["done_ns"] - columns["issued_ns"])[answered].max() / 1e6)
    assert distribution_of(figures, "ttft").limit == TTFT
    assert distribution_of(figures, "input_tokens").count == 5000
    output = distribution_of(figures, "output_tokens")
    assert output.mean == pytest.approx(columns["answer_tokens"][answered].mean())
    assert all(edge == int(edge) for edge in output.edges)
    for percent, limit in ((50, None), (99, TTFT)):
        over_time = figures[f"ttft_over_time_p{percent}"]
        assert isinstance(over_time, TimeLine) and over_time.limit == limit
    line = figures["token_throughput"]
    assert isinstance(line, TimeLine)
    assert sum(line.values) * line.span_s == pytest.approx(columns["answer_tokens"][answered].sum())


def changed(columns: dict[str, Int64], **values: int) -> dict[str, Int64]:
    return {**columns, **{name: np.full(len(columns["state"]), value, np.int64) for name, value in values.items()}}


def test_answers_that_came_whole_have_no_first_tokens() -> None:
    columns = made_columns(50)
    for first in (np.full(50, NONE), columns["done_ns"]):
        figures = by_key(sample_figures({**columns, "first_token_ns": first}, LIMITS))
        assert set(missing(figures)) == {"ttft", "tpot", "ttft_over_time", "tpot_over_time"}
        assert all("came whole" in why for why in missing(figures).values())


def test_tokens_that_nobody_counted() -> None:
    figures = by_key(sample_figures(changed(made_columns(50), answer_tokens=NONE, prompt_tokens=0), LIMITS))
    assert set(missing(figures)) == {"tpot", "tpot_over_time", *TOKENS, "token_throughput"}
    assert missing(figures)["token_throughput"] == "nobody counted the tokens of 50 answers"


def test_tokens_that_were_counted_of_some() -> None:
    columns = made_columns(50)
    columns["answer_tokens"][:20] = NONE
    figures = by_key(sample_figures(columns, LIMITS))
    output = distribution_of(figures, "output_tokens")
    assert output.count == 30 and output.about.endswith("20 of 50 were not counted")
    assert set(missing(figures)) == {"token_throughput"}


@pytest.mark.parametrize(
    ("columns", "why"),
    [
        (made_columns(0), "there are no samples"),
        (made_columns(9, failed=9), "none of 9 samples was answered, 9 failed"),
        (
            changed(made_columns(9), state=SampleState.OUTSTANDING, done_ns=NONE),
            "none of 9 samples was answered, 0 failed",
        ),
        (changed(made_columns(9), done_ns=5), "samples.arrow: the times of 9 answers do not rise"),
        (changed(made_columns(9), done_ns=NONE), "samples.arrow: the times of 9 answers do not rise"),
    ],
)
def test_nothing_to_draw_is_said_of_each_figure(columns: dict[str, Int64], why: str) -> None:
    figures = sample_figures(columns, LIMITS)
    assert figures == all_missing(why, SAMPLES)
    assert {figure.key for figure in figures} >= TIMES | TOKENS | OVER_TIME


def test_one_sample_is_a_run() -> None:
    assert not missing(by_key(sample_figures(made_columns(1), LIMITS)))


def test_outstanding_samples_are_under_way_to_the_end() -> None:
    columns = made_columns(2)
    columns["issued_ns"][:] = 10 * MS
    columns["first_token_ns"][:] = 11 * MS
    columns["done_ns"][:] = [110 * MS, NONE]
    columns["state"][1] = SampleState.OUTSTANDING
    line = by_key(sample_figures(columns, LIMITS))["concurrency"]
    assert isinstance(line, TimeLine)
    assert line.values == pytest.approx([2.0] * len(line.values))


def test_turns_and_trajectories_have_names_of_their_own() -> None:
    columns = made_columns(30)
    turns, whole = (by_key(sample_figures(columns, Limits(), words)) for words in (TURNS, TRAJECTORIES))
    assert all(key.startswith("turn_") for key in turns)
    assert turns["turn_ttft"].title == "Time to first token (turns)"
    assert whole["latency"].title == "Latency (trajectories)"
    assert not set(turns) & set(whole)
