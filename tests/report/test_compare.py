from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.report.book.content import Book, Margin, Missing, RowView, Subset
from harness.report.compare import Change, Comparison, RowChange, compare, regressions
from tests.report.book.made_books import BOUNDARY, accuracy_run, book, bounded, figure, margin, row, run


def only(comparison: Comparison) -> RowChange:
    (found,) = comparison.rows
    return found


def of_rows(one: RowView, other: RowView) -> RowChange:
    return only(compare(book(one), book(other)))


def test_more_is_better_where_more_is_better() -> None:
    found = of_rows(row(), row(value=1100.0))
    assert found.result == Change("result_completed_tokens_per_second", "Tokens/s", 1000.0, 1100.0, 10.0, True)
    assert found.judgement == "better"
    assert not found.boundary and not found.marks


@pytest.mark.parametrize(
    ("higher", "value", "judgement"),
    [(True, 900.0, "worse"), (False, 900.0, "better"), (False, 1100.0, "worse"), (True, 1000.0, "the same")],
)
def test_the_direction_is_the_metrics(higher: bool, value: float, judgement: str) -> None:
    one = row(higher_is_better=higher)
    assert of_rows(one, dataclasses.replace(one, value=value)).judgement == judgement


def test_another_boundary_has_what_differs_in_place_of_a_percent() -> None:
    found = of_rows(row(), bounded(row(value=2000.0), accelerator="NVIDIA B200", nodes="2"))
    assert found.judgement == "not comparable"
    assert found.result.percent is None
    assert [(one.name, one.before, one.after) for one in found.boundary] == [
        ("accelerator", "NVIDIA H200", "NVIDIA B200"),
        ("nodes", "1", "2"),
    ]
    changes = [*found.accuracy, *(change for one in found.figures for change in one.changes)]
    assert changes and all(change.percent is None and change.better is None for change in changes)


def test_divisions_are_not_mixed() -> None:
    in_open = bounded(row(division="open"), division="open")
    found = of_rows(row(), in_open)
    assert found.judgement == "not comparable"
    both = compare(book(row(), in_open), book(row(), in_open))
    assert [one.judgement for one in both.rows] == ["the same", "the same"]
    assert "before: rows of several divisions: closed, open" in both.notes


@pytest.mark.parametrize(
    ("changed", "of_run", "why"),
    [
        ({"word": "INVALID"}, {}, "INVALID"),
        ({"demonstration": True}, {}, "demonstration"),
        ({}, {"not_submittable": ("short run (--test_run)",)}, "short run (--test_run)"),
        ({"word": "interrupted"}, {}, "interrupted"),
        ({}, {"probe": True}, "probe of a search"),
    ],
)
@pytest.mark.parametrize("side", ["before", "after"])
def test_what_does_not_count_is_compared_and_never_better(
    side: str, changed: dict[str, Any], of_run: dict[str, Any], why: str
) -> None:
    marked = book(row(**changed, value=2000.0), runs=(run(**of_run), accuracy_run()))
    sides = (marked, book()) if side == "before" else (book(), marked)
    found = only(compare(*sides))
    assert found.judgement == "not judged"
    assert found.result.percent is not None and found.result.better is None
    assert [(mark.side, mark.why) for mark in found.marks] == [(side, why)]
    assert all(change.better is None for one in found.figures for change in one.changes)


def test_a_short_accuracy_leg_marks_its_row() -> None:
    short = book(row(), runs=(run(), accuracy_run(not_submittable=("short run (--test_run)",))))
    assert only(compare(book(), short)).judgement == "not judged"


def test_no_result_is_not_compared() -> None:
    for one, other in ((row(value=None), row()), (row(), row(value=None)), (row(value=0.0), row())):
        assert of_rows(one, other).judgement == "not comparable"


def test_another_unit_has_no_percent() -> None:
    found = of_rows(row(), row(unit="Samples/s"))
    assert found.result.percent is None
    assert found.judgement == "not comparable"


def test_rows_are_one_by_their_systems_name_before_their_boundary() -> None:
    box, other = row(value=1.0), row(system="other", value=2.0)
    found = compare(book(box, other), book(dataclasses.replace(other, value=4.0), dataclasses.replace(box, value=2.0)))
    assert [(one.before.system, one.after.system) for one in found.rows] == [("box", "box"), ("other", "other")]


def test_rows_of_other_names_are_one_by_their_boundary() -> None:
    renamed = (row(system="b1"), bounded(row(system="b2"), accelerator="NVIDIA B200"))
    found = compare(book(bounded(row(system="a1"), accelerator="nvidia b200"), row(system="a2")), book(*renamed))
    assert [(one.before.system, one.after.system) for one in found.rows] == [("a1", "b2"), ("a2", "b1")]
    assert [one.judgement for one in found.rows] == ["the same", "the same"]


def test_a_row_of_another_machine_is_shown_beside_the_only_one_there_is() -> None:
    found = compare(book(), book(bounded(row(system="new"), accelerator="NVIDIA B200")))
    assert only(found).boundary
    two = compare(book(), book(*(bounded(row(system=f"new{n}"), accelerator=f"B{n}") for n in range(2))))
    assert not two.rows
    assert [one.system for one in two.only_after] == ["new0", "new1"]


def test_rows_of_one_side_alone_are_named() -> None:
    found = compare(book(row()), book(bounded(row(scenario="Offline"), scenario="Offline")))
    assert not found.rows
    assert [one.scenario for one in found.only_before] == ["Server"]
    assert [one.scenario for one in found.only_after] == ["Offline"]


def test_percentiles_stand_side_by_side() -> None:
    found = only(compare(book(), book(row(), runs=(run(figures=(figure(scale=0.5),)), accuracy_run()))))
    (ttft,) = found.figures
    assert [(one.name, one.before, one.after, one.percent, one.better) for one in ttft.changes] == [
        ("p50", 100.0, 50.0, -50.0, True),
        ("p90", 200.0, 100.0, -50.0, True),
        ("p99", 300.0, 150.0, -50.0, True),
    ]


def test_a_length_is_neither_better_nor_worse() -> None:
    runs = [(run(figures=(figure("output_tokens", unit="tokens", scale=s),)),) for s in (1, 2)]
    found = only(compare(*(book(row(), runs=some) for some in runs)))
    assert [(one.percent, one.better) for one in found.figures[0].changes] == [(100.0, None)] * 3


def test_a_figure_of_one_side_is_missed_with_the_reason() -> None:
    without = run(figures=(Missing("ttft", "TTFT", "answers do not stream"),))
    found = only(compare(book(), book(row(), runs=(without, accuracy_run()))))
    assert not found.figures
    assert found.missing == ("TTFT: none after: answers do not stream",)
    bare = only(compare(book(row(), runs=()), book()))
    assert bare.missing == ("TTFT: none before: there is no such figure",)


def test_margins_and_accuracy_of_both_sides_are_there() -> None:
    after = book(
        row(margins=(margin(1500.0), margin(name="p99 TPOT"))), runs=(run(), accuracy_run(correct=90, score=84.66))
    )
    found = only(compare(book(), after))
    ttft, tpot = found.margins
    assert ttft.before is not None and ttft.after is not None
    assert (ttft.before.measured, ttft.after.measured) == (2000.0, 1500.0)
    assert tpot.before is None and tpot.after is not None
    assert [(one.name, one.unit, one.before, one.after, one.better) for one in found.accuracy] == [
        ("exact_match", "", 83.0, 84.66, True),
        ("aime25", "%", 80.0, 90.0, True),
    ]


def test_a_score_of_an_audit_is_told_after_its_name_and_a_window_is_no_direction() -> None:
    def audited(score: float) -> Book:
        ends = [Margin("TEST09 mean_output_tokens", "", score, 1.0, end, True, "") for end in ("at least", "at most")]
        audit = accuracy_run("run-3", leg="TEST09", scores=(("mean_output_tokens", score),), margins=tuple(ends))
        return book(row(runs=("run-1", "run-3")), runs=(run(), audit))

    found = only(compare(audited(1300.0), audited(1310.0)))
    assert [(one.name, one.better) for one in found.accuracy] == [
        ("TEST09 mean_output_tokens", None),
        ("TEST09 aime25", None),
    ]
    assert found.accuracy[0].percent is not None


def test_a_subset_that_is_not_all_scored_has_no_share() -> None:
    unscored = accuracy_run(subsets=(Subset("aime25", 100, 10, 0, 0, 90, None),), scores=())
    found = only(compare(book(), book(row(), runs=(run(), unscored))))
    assert [(one.name, one.after, one.percent) for one in found.accuracy] == [
        ("exact_match", None, None),
        ("aime25", None, None),
    ]


def test_keys_of_the_fingerprint_that_differ_are_named() -> None:
    facts = (("versions", (("harness", "0.2.0"),)), ("fingerprint", (("digest", "1"), ("engine.max_batch", "128"))))
    found = only(compare(book(), book(row(), runs=(run(facts=facts), accuracy_run()))))
    assert [(one.name, one.before, one.after) for one in found.configuration] == [("engine.max_batch", "64", "128")]


def test_facts_that_differ_are_named_where_no_side_has_a_fingerprint() -> None:
    one = (("versions", (("harness", "0.1.0"),)), ("settings", (("slots", "8"),)))
    other = (("versions", (("harness", "0.2.0"),)), ("run", (("started", "now"), ("round", "v6.1"))))
    sides = (book(row(), runs=(run(facts=facts), accuracy_run())) for facts in (one, other))
    assert [(one.name, one.before, one.after) for one in only(compare(*sides)).configuration] == [
        ("run: round", None, "v6.1"),
        ("settings: slots", "8", None),
        ("versions: harness", "0.1.0", "0.2.0"),
    ]


def test_of_a_run_and_a_tree_what_both_tell_is_named() -> None:
    facts = (("versions", (("harness", "0.2.0"),)), ("weights", (("retraining", "No"),)))
    found = only(compare(book(), book(row(), runs=(run(facts=facts), accuracy_run()))))
    assert [(one.name, one.before, one.after) for one in found.configuration] == [
        ("versions: harness", "0.1.0", "0.2.0"),
    ]


def test_a_window_has_two_limits() -> None:
    window = (margin(), dataclasses.replace(margin(), direction="at least", limit=1.0))
    found = of_rows(row(margins=window), row(margins=window))
    assert [one.before and one.before.direction for one in found.margins] == ["below", "at least"]


def test_rounds_empty_books_and_notes_are_told() -> None:
    earlier = book(round="v6.0", notes=("a record that cannot be read",))
    found = compare(earlier, dataclasses.replace(book(), rows=()))
    assert found.notes == (
        "no rows after",
        "two rounds: v6.0 before, v6.1 after; each by the rules of its own",
        "before: a record that cannot be read",
    )


@pytest.mark.parametrize(
    ("after", "percent", "whys"),
    [
        ({"value": 980.0}, 1.0, ("box/gpt-oss-120b/Server: -2.00 %",)),
        ({"value": 980.0}, 3.0, ()),
        ({"value": 1200.0}, 1.0, ()),
        (
            {"value": 1200.0, "word": "INVALID"},
            1.0,
            ("box/gpt-oss-120b/Server: it counted before, and does not: INVALID",),
        ),
    ],
)
def test_a_regression_is_a_row_that_is_worse_or_counts_no_more(
    after: dict[str, Any], percent: float, whys: tuple[str, ...]
) -> None:
    assert regressions(compare(book(), book(row(**after))), percent) == whys


def test_what_is_gone_and_what_nobody_can_judge_do_not_pass() -> None:
    two = book(row(), bounded(row(scenario="Offline"), scenario="Offline"))
    assert regressions(compare(two, book()), 1.0) == ("box/gpt-oss-120b/Offline: gone",)
    invalid = book(row(word="INVALID"))
    assert regressions(compare(invalid, invalid), 1.0) == ("no row could be judged",)


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_a_result_that_is_no_number_is_not_compared_and_does_not_pass(value: float | None) -> None:
    rows = [row(), bounded(row(scenario="Offline"), scenario="Offline")]
    found = compare(book(*rows), book(row(value=value), rows[1]))
    lost = next(each for each in found.rows if each.after.scenario == "Server")
    assert (lost.judgement, lost.result.percent) == ("not comparable", None)
    assert regressions(found, 1.0) == ("box/gpt-oss-120b/Server: it had a result before, and has none",)


def test_a_change_is_judged_by_a_percent() -> None:
    with pytest.raises(ValueError, match="without a percent"):
        Change("ttft", "ms", 1.0, 2.0, None, True)


_ROWS = st.lists(
    st.builds(
        row,
        system=st.sampled_from(["a", "b"]),
        scenario=st.sampled_from(["Offline", "Server"]),
        division=st.sampled_from(["closed", "open", None]),
        word=st.sampled_from(["VALID", "INVALID"]),
        value=st.none() | st.floats(-10, 10),
        higher_is_better=st.booleans(),
        boundary=st.sampled_from([BOUNDARY, BOUNDARY[:-1], ()]),
    ),
    max_size=5,
)


@given(_ROWS, _ROWS)
def test_every_row_is_shown_once_and_only_what_counts_is_judged(before: list[RowView], after: list[RowView]) -> None:
    found = compare(*(dataclasses.replace(book(), rows=tuple(rows)) for rows in (before, after)))
    mine = [*(one.before for one in found.rows), *found.only_before]
    theirs = [*(one.after for one in found.rows), *found.only_after]
    assert sorted(map(id, mine)) == sorted(map(id, before))
    assert sorted(map(id, theirs)) == sorted(map(id, after))
    for one in found.rows:
        assert (one.before.benchmark, one.before.scenario) == (one.after.benchmark, one.after.scenario)
        if one.judgement in ("better", "worse"):
            assert one.before.word == one.after.word == "VALID"
            assert one.before.boundary == one.after.boundary
        assert (one.result.percent is None) == (one.judgement == "not comparable")
