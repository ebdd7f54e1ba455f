"""What is drawn of a run, what is said of it in words, and what stands in place of a picture that there cannot be."""

from __future__ import annotations

import dataclasses

import pytest

pytest.importorskip("matplotlib", reason="needs the [report] extra")

from harness.report.book.content import Distribution, Limit, TimeLine
from harness.report.book.distributions import Named, of_percentiles
from harness.report.page.cards import Card, cards
from harness.report.page.plots import Lines, quantile
from tests.report.page import made

pytestmark = pytest.mark.report


def by_key(found: tuple[Card, ...]) -> dict[str, Card]:
    assert len({card.key for card in found}) == len(found)
    return {card.key: card for card in found}


def told(percentiles: dict[float, float], limit: Limit | None = None) -> Distribution:
    found = of_percentiles(Named("ttft", "TTFT", "ms", limit), percentiles, 1000, 50.0)
    assert isinstance(found, Distribution)
    return found


def test_every_figure_of_a_run_has_a_card() -> None:
    run = made.performance_run()
    found = by_key(cards(run))
    keys = {figure.key.removesuffix("_p50").removesuffix("_p99") for figure in run.figures}
    assert set(found) == keys
    assert all(card.drawn is not None and card.said and card.exact for card in found.values())


def test_the_percentiles_over_time_are_lines_of_one_picture_with_the_limit() -> None:
    card = by_key(cards(made.performance_run()))["ttft_over_time"]
    assert isinstance(card.drawn, Lines)
    assert [line.name for line in card.drawn.lines] == ["p50", "p99"]
    assert card.drawn.limit == 300.0
    assert card.title == "Time to first token over the run"


def test_long_times_over_time_are_in_seconds_like_their_limit() -> None:
    card = by_key(cards(made.performance_run()))["latency_over_time"]
    assert isinstance(card.drawn, Lines)
    assert (card.drawn.y_label, card.drawn.limit) == ("s", 60.0)
    assert max(y for line in card.drawn.lines for y in line.ys if y == y) < 1000


def test_exact_values_go_up_to_the_largest_and_to_the_limit() -> None:
    names = [name for name, _ in by_key(cards(made.performance_run()))["ttft"].exact]
    assert names == [
        "values", "mean", "smallest", "p50", "p75", "p90", "p95", "p99", "p99.9", "largest", "limit of p99",
        "source of the limit",
    ]  # fmt: skip


def test_a_limit_that_is_not_kept_is_said_in_words() -> None:
    late, early = (told({0: 1, 50: 10, 90: 20, 99: p99, 100: 400}, Limit(99, 300, False, "")) for p99 in (300, 299))
    for figure, said in ((late, "It is not"), (early, "It is.")):
        (card,) = cards(dataclasses.replace(made.broken_run(), figures=(figure,)))
        assert "p99 must be below 300 ms" in card.said
        assert said in card.said


def test_percentiles_that_nobody_told_are_not_made_up() -> None:
    figure = told({0: 1, 50: 10, 90: 20, 99: 40, 100: 60})
    assert quantile(figure, 0.99) == 40
    assert quantile(figure, 0.95) is None
    (card,) = cards(dataclasses.replace(made.broken_run(), figures=(figure,)))
    assert "p95" not in dict(card.exact)


def test_percentiles_of_few_values_follow_from_them() -> None:
    pairs = ((0.0, 10.0), (0.25, 20.0), (0.5, 30.0), (0.75, 40.0), (1.0, 40.0))
    figure = dataclasses.replace(told({0: 10, 50: 20, 90: 40, 99: 40, 100: 40}), count=4, quantiles=pairs)
    assert [quantile(figure, share) for share in (0.1, 0.3, 0.9, 0.999, 1.0)] == [10, 20, 40, 40, 40]


def test_what_is_missing_is_a_card_with_the_reason() -> None:
    first, second = cards(made.broken_run())
    assert (first.drawn, first.why) == (None, made.NASTY)
    with pytest.raises(ValueError, match="there are no samples"):
        second.picture("words")


def test_spans_that_are_left_out_are_gaps() -> None:
    line = TimeLine("throughput", "T", "samples/s", 1.0, (0.0, 1.0, 4.0), (5.0, 6.0, 7.0))
    (card,) = cards(dataclasses.replace(made.broken_run(), figures=(line,)))
    assert isinstance(card.drawn, Lines)
    assert [y for y in card.drawn.lines[0].ys if y == y] == [5, 6, 7]
    assert len(card.drawn.lines[0].ys) == 4


def test_turns_are_shown_by_their_place_and_failures_are_never_out_of_sight() -> None:
    found = by_key(cards(made.agentic_run()))
    assert set(found) == {"turns_ttft", "turns_tpot", "turns_latency", "turns_answered"}
    answered = found["turns_answered"].drawn
    assert isinstance(answered, Lines)
    assert [line.name for line in answered.lines] == ["answered", "failed or skipped"]
    assert ("turn 6", "25 answered, 1 failed, 2 skipped") in found["turns_answered"].exact


def test_turns_without_a_first_token_say_so() -> None:
    report = made.turn_report()
    places = tuple(place.model_copy(update={"ttft_ns": None}) for place in report.by_turn)
    run = dataclasses.replace(made.agentic_run(), turns=report.model_copy(update={"by_turn": places}))
    assert by_key(cards(run))["turns_ttft"].why == "no turn has such a time"
