from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness import rules
from harness.benchmarks.base import Answer, Dataset, Score
from harness.benchmarks.qwen3_vl_235b_a22b.dataset import Truths
from harness.benchmarks.qwen3_vl_235b_a22b.score import BRAND, SECONDHAND, PooledLevels, accuracy_text, score
from harness.engines.base import PromptTable
from harness.errors import RunBroke
from harness.gate.accuracy_text import AccuracyText
from harness.logs import AccuracyLog

SHARED = Path(__file__).parents[4] / "shared" / "data"
GOLDEN = SHARED / "qwen3vl_f1_cases.json"
REAL = SHARED / "real_v6.0" / "closed"
RULES = rules.load("v6.1").benchmark("qwen3-vl-235b-a22b")
CHAIRS = "Furniture > Chairs"
DOLLS = "Toys > Dolls > Rag Dolls"


def said(category: str, brand: str = "Acme", secondhand: bool = False) -> bytes:
    return json.dumps({"category": category, "brand": brand, "is_secondhand": secondhand}).encode()


def dataset(truths: Sequence[str | None], *, stand_in: bool = False, whole: bool = True) -> Dataset:
    return Dataset(
        name="qwen3-vl-235b-a22b/catalogue",
        table="catalogue",
        prompts=PromptTable.empty(len(truths)),
        subsets=("shopify_product_catalogue",) * len(truths),
        ground_truth=tuple(truths),
        files=(),
        stand_in=stand_in,
        whole=whole,
    )


def truths(categories: Sequence[str | None], brand: str = "Acme", secondhand: Sequence[bool] = ()) -> Truths:
    n = len(categories)
    return Truths(tuple(c or "" for c in categories), (brand,) * n, tuple(secondhand) or (False,) * n)


def scored(answers: Sequence[bytes], wanted: Sequence[str | None], **more: Any) -> Score:
    return score(enumerate(answers), dataset(wanted), truths(wanted), key="f1", **more)


def test_levels_are_pooled_over_all_answers() -> None:
    found = scored([said(CHAIRS), said("Toys > Dolls"), said("Sofas")], [CHAIRS, DOLLS, CHAIRS])
    right, claimed, true = 2 + 2 + 0, 2 + 2 + 1, 2 + 3 + 2
    assert found.value == pytest.approx(2 * right / (claimed + true), abs=1e-15)
    (subset,) = found.subsets
    assert (subset.correct, subset.wrong, subset.failed, subset.unscored) == (1, 2, 0, 0)
    assert found.notes[0] == f"levels of categories: {right} right of {claimed} said and {true} true, F1 0.666667"


def test_an_answer_without_the_form_is_wrong_in_as_many_levels_as_there_are() -> None:
    fenced = b"```json\n" + said(DOLLS) + b"\n```"
    found = scored([said(CHAIRS), fenced, b"\xef\xbb\xbf" + said(DOLLS)], [CHAIRS, DOLLS, DOLLS])
    assert found.value == 2 * 2 / (8 + 8)
    assert (found.failed, found.subsets[0].wrong) == (0, 2)
    assert found.notes[1].startswith("2 of 3 answers do not keep to the schema; the first, to row 1: '```json\\n{")


@pytest.mark.parametrize("data", [b"", b"\xff" * 8, b"\xed\xa0\xbd", said(CHAIRS)[:-1] + b"\xff}"])
def test_what_is_no_text_is_no_answer_and_there_is_no_score(data: bytes) -> None:
    found = scored([said(CHAIRS), data], [CHAIRS, CHAIRS])
    assert (found.failed, found.value, found.also) == (1, None, {})


def test_a_failed_row_is_failed_whatever_was_logged_for_it() -> None:
    found = scored([said(CHAIRS), said(CHAIRS)], [CHAIRS, CHAIRS], failed={1})
    assert (found.subsets[0].correct, found.failed, found.value) == (1, 1, None)


def test_failed_rows_may_become_known_as_the_answers_are_drawn() -> None:
    failed: set[int] = set()

    def log() -> Iterator[Answer]:
        yield 0, said(CHAIRS)
        failed.add(1)
        yield 1, said(CHAIRS)

    found = score(log(), dataset([CHAIRS] * 2), truths([CHAIRS] * 2), key="f1", failed=failed)
    assert (found.subsets[0].correct, found.failed) == (1, 1)


def test_an_answer_that_nobody_can_grade_is_not_wrong() -> None:
    found = scored([said(CHAIRS), said(CHAIRS)], [CHAIRS, None])
    assert (found.unscored, found.subsets[0].wrong, found.value, found.also) == (1, 0, None, {})


def test_a_sample_that_never_completes_makes_no_better_score() -> None:
    """Of four rows two are answered, both right. (Who leaves the others away has a perfect score.)"""
    with pytest.raises(RunBroke, match="2 of 4 rows have no answer: 2, 3"):
        scored([said(CHAIRS), said(CHAIRS)], [CHAIRS] * 4)


@pytest.mark.parametrize(
    ("rows", "message"), [([0, 0], "row 0 is answered twice"), ([0, 2], "an answer to row 2"), ([-1], "row -1")]
)
def test_rows_that_cannot_be(rows: list[int], message: str) -> None:
    wanted = [CHAIRS, CHAIRS]
    with pytest.raises(RunBroke, match=message):
        score([(row, said(CHAIRS)) for row in rows], dataset(wanted), truths(wanted), key="f1")


def test_nothing_asked_is_no_score() -> None:
    found = scored([], [])
    assert (found.value, found.samples) == (None, 0)
    assert '{"f1"' not in accuracy_text(found)


def test_a_part_of_the_data_set_has_an_f1_in_its_notes_alone() -> None:
    found = score([(0, said(CHAIRS))], dataset([CHAIRS], stand_in=True, whole=False), truths([CHAIRS]), key="f1")
    assert found.value is None
    assert "F1 1.000000" in found.notes[0]
    assert found.also[BRAND] == 1
    text = accuracy_text(found)
    assert "stand-in" in text
    assert "Only 1 rows" in text


def test_v60_sees_a_level_behind_a_separator_at_the_end() -> None:
    answers, wanted = [said(f"{CHAIRS} > ")], [CHAIRS]
    assert scored(answers, wanted, version="v6.0").value == pytest.approx(0.8, abs=1e-12)
    assert scored(answers, wanted, version="v6.1").value == pytest.approx(0.5, abs=1e-12)


def test_brands_and_second_hand_are_told_beside_the_metric() -> None:
    wanted = [CHAIRS] * 5
    answers = [
        said(CHAIRS, "acme ", True),
        said(CHAIRS, "Acne", True),
        said(CHAIRS, "", False),
        said(CHAIRS, "ACME", False),
        b"no answer",
    ]
    known = truths(wanted, secondhand=(True, False, True, False, True))
    found = score(enumerate(answers), dataset(wanted), known, key="f1")
    assert found.also == {BRAND: 2 / 5, SECONDHAND: 2 * 1 / (2 * 1 + 1 + 2)}
    assert f"{BRAND}: 0.400000; nothing is judged by it\n" in accuracy_text(found)


def test_second_hand_is_nought_where_nothing_is() -> None:
    assert scored([said(CHAIRS)], [CHAIRS]).also[SECONDHAND] == 0


@given(st.lists(st.tuples(st.sampled_from(["A", "A > B", "A > B > C", "B", ""]), st.booleans()), min_size=1), st.data())
def test_the_order_of_the_log_does_not_matter(rows: list[tuple[str, bool]], data: st.DataObject) -> None:
    wanted = ["A > B"] * len(rows)
    log = [(row, said(category) if well else b"{") for row, (category, well) in enumerate(rows)]
    straight = score(log, dataset(wanted), truths(wanted), key="f1")
    mixed = score(data.draw(st.permutations(log)), dataset(wanted), truths(wanted), key="f1")
    assert (mixed.value, mixed.subsets, mixed.also) == (straight.value, straight.subsets, straight.also)
    assert straight.value is not None
    assert 0 <= straight.value <= 1


def read_by_checker(text: str) -> AccuracyText:
    return AccuracyText.parse(text, RULES, RULES.accuracy_target.value.at_least)


@pytest.mark.parametrize("right", [0, 1, 2, 3])
def test_the_checker_reads_the_metric_and_no_other_line(right: int) -> None:
    bad = b'{"f1": 0.99}\n{"f1": 0.98}'
    answers = [said(CHAIRS)] * right + [bad] * (3 - right)
    found = scored(answers, [CHAIRS] * 3)
    text = accuracy_text(found)
    seen = read_by_checker(text)
    assert seen.values == (found.value,)
    assert (seen.later, seen.bad_values, seen.hashes, seen.ours) == ((), (), (), True)
    assert text.endswith("}\n")


def test_there_is_no_metric_line_while_a_row_is_failed() -> None:
    text = accuracy_text(scored([said(CHAIRS), b""], [CHAIRS] * 2))
    assert read_by_checker(text).values == ()
    assert "\nfailed: 1\n" in text


@given(st.integers(1, 10**9), st.integers(1, 10**9))
def test_the_number_is_written_so_that_the_checker_reads_all_of_it(right: int, more: int) -> None:
    """A small one in Python's own form has an exponent, and the checker would read what stands before it."""
    value = PooledLevels(right, right + more, right).f1
    small = Score("f1", value, scored([said(CHAIRS)], [CHAIRS]).subsets, "nobody", stand_in=False)
    assert read_by_checker(accuracy_text(small)).values == (value,)


def golden() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(GOLDEN.read_text(encoding="utf-8"))
    return found


here = pytest.mark.skipif(not GOLDEN.exists(), reason="the shared data folder is not beside the repository")


@pytest.mark.shared
@here
@pytest.mark.parametrize(("version", "suffix"), [("v6.1", ""), ("v6.0", "_v60")])
def test_the_score_is_the_references(version: Any, suffix: str) -> None:
    cases = golden()["answer_cases"]
    kept = [case for case in cases if case["answer"]]  # an empty answer is a failed sample here
    assert len(kept) == len(cases) - 1
    for case in kept:
        wanted = [case["truth"]]
        found = scored([case["answer"].encode()], wanted, version=version)
        assert found.value == pytest.approx(case["expected_f1" + suffix], abs=1e-12), case["id"]


@pytest.mark.shared
@here
@pytest.mark.parametrize(("version", "suffix"), [("v6.1", ""), ("v6.0", "_v60")])
def test_the_pooled_score_is_the_references(version: Any, suffix: str) -> None:
    """An empty answer is wrong there, and failed here: a blank stands for it, which is wrong in both."""
    cases = golden()["answer_cases"]
    answers = [(case["answer"] or " ").encode() for case in cases]
    found = scored(answers, [case["truth"] for case in cases], version=version)
    assert found.value == pytest.approx(golden()["answer_cases_pooled_f1" + suffix], abs=1e-12)
    assert found.notes[1].startswith(f"{golden()['answer_cases_unparsable']} of {len(cases)} answers")


@pytest.mark.shared
@here
def test_paths_score_as_the_reference_scores_them() -> None:
    cases = golden()["path_cases"]
    for case in cases:
        found = scored([said(case["prediction"])], [case["truth"]], version="v6.0")
        assert found.value == pytest.approx(case["expected_f1"], abs=1e-12), case["id"]
    pooled = scored([said(case["prediction"]) for case in cases], [case["truth"] for case in cases], version="v6.0")
    assert pooled.value == pytest.approx(golden()["path_cases_pooled_f1"], abs=1e-12)


@pytest.mark.shared
@here
def test_second_hand_is_the_references() -> None:
    cases = golden()["secondhand_f1_v60"]
    for name, pairs in cases["pairs_pred_truth"].items():
        wanted = [CHAIRS] * len(pairs)
        known = truths(wanted, secondhand=[true for _, true in pairs])
        found = score(
            enumerate(said(CHAIRS, secondhand=claimed) for claimed, _ in pairs), dataset(wanted), known, key="f1"
        )
        assert found.also[SECONDHAND] == pytest.approx(cases["expected"][name], abs=1e-12), name


@pytest.mark.shared
@pytest.mark.skipif(not REAL.exists(), reason="the shared data folder is not beside the repository")
def test_published_answers_keep_to_the_schema_but_for_a_fence(tmp_path: Path) -> None:
    """The heads of published logs, as far as they were kept: whole lines of them are a log again."""
    fences = 0
    logs = sorted(REAL.glob("*/results/*/qwen3-vl-235b-a22b/*/accuracy/mlperf_log_accuracy.json"))
    assert logs
    for published in logs:
        lines = published.read_text(encoding="utf-8").splitlines()
        head = [line.rstrip(",") for line in lines if re.fullmatch(r"\{ .* \},?", line)]
        assert len(head) > 8
        log = tmp_path / "log.json"
        log.write_text("[\n" + ",\n".join(head) + "\n]\n")
        answers = [entry.data for entry in AccuracyLog(log)]
        found = scored(answers, [CHAIRS] * len(answers))
        fenced = sum(b"```" in data for data in answers)
        assert found.notes[1].startswith(f"{fenced} of {len(answers)} answers do not keep to the schema")
        fences += fenced
    assert fences == 1
