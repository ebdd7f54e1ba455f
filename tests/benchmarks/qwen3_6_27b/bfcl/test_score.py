from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks.base import Score, SubsetScore
from harness.benchmarks.qwen3_6_27b.bfcl.environment import Environment
from harness.benchmarks.qwen3_6_27b.bfcl.score import Graded, Reached, accuracy_text, score, targets
from harness.benchmarks.qwen3_6_27b.bfcl.subsets import CATEGORY_OF
from harness.benchmarks.qwen3_6_27b.bfcl.table import Table
from harness.engines.http.chat import ChatReader
from harness.errors import MissingError, RunBroke
from harness.gate.accuracy_text import AccuracyText
from tests.benchmarks.qwen3_6_27b.bfcl.made import RULES, reply, right_calls


def right_answers(asked: Table) -> dict[int, bytes]:
    """A right answer to each row."""
    numbers = [int(row.id.rpartition("_")[2]) for row in asked.rows]
    return {i: reply("So.", right_calls(row.subset, numbers[i])) for i, row in enumerate(asked.rows)}


def first(asked: Table, subset: str) -> int:
    return next(i for i, row in enumerate(asked.rows) if row.subset == subset)


def graded(asked: Table, environment: Environment, changed: dict[int, bytes] | None = None, **more) -> Graded:
    answers = right_answers(asked) | (changed or {})
    return score(answers.items(), asked, RULES, environment, **more)


def call(arguments: object, name: str = "garden_water") -> bytes:
    return reply("", [{"function": {"name": name, "arguments": arguments}}])


def test_right_answers_are_right_to_the_row(asked: Table, environment: Environment) -> None:
    found = graded(asked, environment)
    assert found.score.value == 100.0
    assert found.score.key == "overall_accuracy"
    assert found.score.stand_in
    assert found.score.evaluator == "mlperf-inference-harness with bfcl-eval 2026.3.23"
    assert {subset.name: subset.correct for subset in found.score.subsets} == {
        category: sum(row.category == category for row in asked.rows) for category in RULES.accuracy_subsets.value
    }
    assert found.figures is not None
    assert found.figures.normalised == 100
    assert found.score.notes == ()


def test_a_stated_share_comes_out(asked: Table, environment: Environment) -> None:
    wrong = {i: call({"bed": "wrong"}) for i in range(0, len(asked), 3)}
    found = graded(asked, environment, wrong)
    right = [i not in wrong for i in range(len(asked))]
    assert [verdict.right for _, verdict in sorted(found.verdicts.items())] == right
    assert found.score.value == round(100 * sum(right) / len(right), 2)


@pytest.mark.parametrize(
    ("subset", "answer", "why"),
    [
        ("multiple", call("null"), "arguments that are no object: those of garden_water are null"),
        ("multiple", call("[3]"), "arguments that are no object: those of garden_water are a list"),
        ("multiple", call("{broken"), "no_match"),
        ("multiple", call({"bed": 0}, "garden.water"), "no_match"),
        ("multiple", reply("No."), "wrong_count: Wrong number of functions."),
        ("multiple", reply("I cannot do that"), "wrong_count"),
        ("multiple", call({"bed": 0}, None), "a call without a name: it is null"),
        ("simple_java", call({"bed": 0}), "no_match"),
        ("simple_javascript", call({"bed": 0}), "no_match"),
        ("live_simple", call({}, "break"), "the checker broke on it: KeyError: 'break'"),
        ("irrelevance", call({"bed": 0}), "it calls where no function is of use"),
        ("live_irrelevance", call("null"), "it calls where no function is of use"),
    ],
)
def test_wrong_answers_say_why(subset: str, answer: bytes, why: str, asked: Table, environment: Environment) -> None:
    number = first(asked, subset)
    found = graded(asked, environment, {number: answer})
    assert not found.verdicts[number].right
    assert found.verdicts[number].why.startswith(why)
    assert sum(not verdict.right for verdict in found.verdicts.values()) == 1
    (note,) = found.score.notes
    assert note.startswith("wrong 1 times: ")
    assert asked.rows[number].id in note
    assert next(each for each in found.score.subsets if each.name == CATEGORY_OF[subset]).wrong == 1


@pytest.mark.parametrize(
    "answer", [reply("garden_water(bed=0)"), reply('[{"name":"garden_water","arguments":{"bed":0}}]')]
)
def test_a_call_in_the_text_counts_as_one_but_not_as_a_structured_one(
    answer: bytes, asked: Table, environment: Environment
) -> None:
    found = graded(asked, environment, {first(asked, name): answer for name in ("multiple", "irrelevance")})
    assert found.score.value == 100.0


@pytest.mark.parametrize("arguments", ['{"bed": 0, "litres": 1.5}', '{"bed": "0"}'])
def test_a_reply_that_a_server_streams_is_scored_as_it_is(
    arguments: str, asked: Table, environment: Environment
) -> None:
    """Reasoning, words, and a call in pieces, as the HTTP engine puts them together."""
    pieces = [{"name": "garden_water", "arguments": ""}, *({"arguments": each} for each in arguments)]
    deltas: list[dict[str, Any]] = [{"role": "assistant", "reasoning_content": "Water helps."}, {"content": "So."}]
    deltas += [{"tool_calls": [{"index": 0, "id": "c0", "function": piece}]} for piece in pieces]
    reader = ChatReader("m", cap=100)
    for delta in [*deltas, {}]:
        choice = {"index": 0, "delta": delta, "finish_reason": None if delta else "tool_calls"}
        event = {"model": "m", "choices": [choice], "usage": {"completion_tokens": 9}}
        reader.feed(f"data: {json.dumps(event)}\n\n".encode())
    reader.feed(b"data: [DONE]\n\n")
    number = first(asked, "multiple")
    found = graded(asked, environment, {number: reader.finish().data})
    assert found.verdicts[number].right == ("1.5" in arguments)


@pytest.mark.parametrize(
    "data", [b"", b"\x00", b"[]", b'{"content": 1}', b'{"content": ""}', b'{"content": null, "tool_calls": []}']
)
def test_what_is_no_reply_has_failed_and_there_is_no_score(data: bytes, asked: Table, environment: Environment) -> None:
    found = graded(asked, environment, {0: data})
    assert found.score.value is None
    assert found.figures is None
    assert found.score.failed == 1
    assert 0 not in found.verdicts
    text = accuracy_text(found.score, RULES)
    assert "failed: 1" in text
    assert "reached" not in text


def test_failed_rows_have_failed_whatever_was_logged(asked: Table, environment: Environment) -> None:
    found = graded(asked, environment, failed={1, 2})
    assert found.score.failed == 2
    assert found.score.value is None


def test_rows_come_exactly_once(asked: Table, environment: Environment) -> None:
    answers = list(right_answers(asked).items())
    for wrong in (answers[:-1], [*answers, answers[0]], [*answers, (len(asked), b"")]):
        with pytest.raises(RunBroke):
            score(wrong, asked, RULES, environment, where="the log")


def test_a_part_of_the_rounds_rows_is_no_score_of_the_whole(asked: Table, environment: Environment) -> None:
    part = Table(asked.rows, asked.sha256, stand_in=False, whole=False)
    found = graded(part, environment)
    assert found.score.value is None
    assert not found.score.whole
    text = accuracy_text(found.score, RULES)
    assert "no score of the whole" in text
    assert "reached" not in text
    assert "'Total'" not in text


def test_without_the_environment_there_is_no_score(asked: Table, environment: Environment, tmp_path: Path) -> None:
    with pytest.raises(MissingError) as caught:
        graded(asked, Environment(tmp_path / "python", environment.data))
    assert caught.value.exit_code == 3


def test_a_checker_that_fails_its_self_test_scores_nothing(asked: Table, environment: Environment) -> None:
    class Kind(Environment):
        def check(self, answers):
            return [{"valid": True, "why": ""} for _ in answers]

    with pytest.raises(MissingError, match="self test failed"):
        graded(asked, Kind(environment.python, environment.data))


def test_what_accuracy_txt_says(asked: Table, environment: Environment) -> None:
    found = graded(asked, environment, {first(asked, "multiple"): reply("No.")}).score
    text = accuracy_text(found, RULES)
    assert "The data set is a stand-in" in text
    assert "category non_live: " in text
    assert "multiple: 75.00 %" in text
    least = RULES.accuracy_target.value.at_least
    assert f"of closed {least:.2f} % are asked: reached" in text
    assert "failed: 0\nunscored: 0\n" in text
    read = AccuracyText.parse(text, RULES, least)
    assert (read.values, read.later, read.bad_values, read.ours) == ((found.value,), (), (), True)


def test_the_targets_are_the_rounds() -> None:
    overall, normalised = RULES.accuracy_target.value, RULES.accuracy_more_targets[0].value
    right = SubsetScore("live", 1, 1, 0, 0, 0, None)
    also = {normalised.key: normalised.at_least - 0.01}
    found = Score(overall.key, overall.at_least, (right,), "x", stand_in=True, also=also)
    assert targets(found, RULES) == (
        Reached(overall.key, overall.at_least, overall.at_least),
        Reached(normalised.key, normalised.at_least, normalised.at_least - 0.01),
    )
    assert [each.enough for each in targets(found, RULES)] == [True, False]
    assert targets(replace(found, value=None), RULES) == ()


def test_figures_are_json(asked: Table, environment: Environment) -> None:
    figures = graded(asked, environment).figures
    assert figures is not None
    assert json.loads(json.dumps(figures.as_json()))["overall_accuracy"] == 100.0
