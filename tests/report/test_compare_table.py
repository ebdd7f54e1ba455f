from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from harness.report.book.content import Missing
from harness.report.compare import Comparison, compare
from harness.report.compare_export import as_json
from harness.report.compare_table import comparison_lines
from tests.report.book.made_books import accuracy_run, book, bounded, figure, margin, row, run


def text(comparison: Comparison, *, details: bool = False) -> str:
    return "\n".join(line.plain for line in comparison_lines(comparison, details=details))


def test_a_change_and_the_words_that_must_stand_beside_it() -> None:
    shown = text(compare(book(), book(row(value=1100.0))))
    assert "gpt-oss-120b on box (closed)" in shown
    assert "Server  1,000.00  1,100.00  Tokens/s  +10.00 %  better" in shown
    assert shown.endswith("Figures not verified by MLCommons Association.")
    assert "p99" not in shown


def test_open_rows_are_mlperf_open() -> None:
    in_open = bounded(row(division="open"), division="open")
    assert "(MLPerf Open)" in text(compare(book(in_open), book(in_open)))
    mixed = text(compare(book(), book(in_open)))
    assert "(closed → MLPerf Open)" in mixed
    assert "Server: division: closed before, open after" in mixed
    assert "not comparable" in mixed and "%" not in mixed


def test_two_rows_that_somebody_named_are_told_by_both_names() -> None:
    other = bounded(row(scenario="Offline", benchmark="qwen3-vl-235b-a22b"), scenario="Offline")
    shown = text(compare(book(), book(other), as_one_row=True))
    assert "gpt-oss-120b → qwen3-vl-235b-a22b on box (closed)" in shown
    assert "Server → Offline: scenario: Server before, Offline after" in shown


def test_what_stands_against_a_row_is_said() -> None:
    demo = book(row(demonstration=True), runs=(run(not_submittable=("scripted engine",)), accuracy_run()))
    shown = text(compare(book(), demo))
    assert "Server after: demonstration; scripted engine" in shown
    assert "not judged" in shown and "better" not in shown


def test_details_are_limits_accuracy_percentiles_and_configuration() -> None:
    facts = (("fingerprint", (("engine.max_batch", "128"),)),)
    other = run(figures=(figure(scale=0.5), Missing("tpot", "TPOT", "x")), facts=facts)
    one = run(figures=(figure(), figure("tpot")))
    shown = text(
        compare(
            book(row(), runs=(one, accuracy_run())),
            book(row(margins=(margin(4000.0),)), runs=(other, accuracy_run(correct=90))),
        ),
        details=True,
    )
    for part in (
        "p99 TTFT   2,000  4,000  ms  below 3,000",
        "TTFT, p99    300    150  ms  -50.00 %",
        "aime25  80  90  %  +12.50 %",
        "TPOT: none after: x",
        "engine.max_batch  64      128",
    ):
        squeezed = " ".join(part.split())
        assert squeezed in " ".join(shown.split()), part


def test_nothing_in_common_and_no_value_are_said() -> None:
    found = compare(book(), book(bounded(row(scenario="Offline", value=None), scenario="Offline")))
    shown = text(found)
    assert "no row is in both" in shown
    assert "only before: box/gpt-oss-120b/Server: VALID, 1,000.00 Tokens/s (not verified by MLCommons" in shown
    assert "only after: box/gpt-oss-120b/Offline: VALID, no result" in shown
    shown = text(compare(book(), book(bounded(row(scenario="Offline", demonstration=True), scenario="Offline"))))
    assert "VALID, 1,000.00 Tokens/s (demonstration, not verified by MLCommons" in shown
    without = text(compare(book(row(value=None)), book(row(value=None))))
    assert "Server  —  —" in " ".join(without.split("\n")) or "—" in without


def test_control_characters_do_not_reach_the_terminal() -> None:
    hostile = bounded(row(system="a\x1b[31m"), accelerator="b\x1b]0;x\x07")
    shown = text(compare(book(), book(hostile)), details=True)
    assert "\x1b" not in shown and "\x07" not in shown


def test_a_long_configuration_is_cut_and_says_so() -> None:
    facts = (("fingerprint", tuple((f"key{number}", "x" * 300) for number in range(50))),)
    shown = text(compare(book(), book(row(), runs=(run(facts=facts), accuracy_run()))), details=True)
    assert "and 11 more: --json has them all" in shown
    assert max(map(len, shown.splitlines())) < 200


def exported(comparison: Comparison, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(as_json(comparison, options.get("regressions"), 0), allow_nan=False))
    return found


def test_the_shape_of_the_json() -> None:
    found = exported(compare(book(), book(row(value=1100.0))), regressions=())
    assert list(found) == [
        *("schema_version", "harness_version", "caution", "exit_code", "before", "after", "rows"),
        *("only_before", "only_after", "notes", "regressions"),
    ]
    assert found["schema_version"] == 1 and found["regressions"] == []
    assert found["before"] == {
        "title": "results",
        "source": "results",
        "place": "results",
        "round": "v6.1",
        "made_by": "0.1.0",
    }
    (one,) = found["rows"]
    assert list(one) == [
        *("benchmark", "scenario", "judgement", "percent", "better", "before", "after", "boundary", "marks"),
        *("margins", "accuracy", "figures", "missing", "configuration"),
    ]
    assert (one["judgement"], one["percent"], one["better"]) == ("better", 10.0, True)
    assert one["after"]["value"] == 1100.0
    assert one["after"]["caution"] == "not verified by MLCommons Association"
    assert one["margins"][0]["before"]["measured"] == 2000.0
    assert one["figures"][0]["p99"] == {"before": 300.0, "after": 300.0, "percent": 0.0, "better": None}
    assert exported(compare(book(), book()))["regressions"] is None


@given(st.floats(), st.floats(), st.booleans())
def test_any_value_is_shown_and_is_json(before: float, after: float, higher: bool) -> None:
    one = row(value=before, higher_is_better=higher, margins=(margin(before),))
    other = row(value=after, higher_is_better=higher, margins=(margin(after),))
    comparison = compare(book(one), book(other))
    assert "Server" in text(comparison, details=True)
    assert len(exported(comparison)["rows"]) == 1
