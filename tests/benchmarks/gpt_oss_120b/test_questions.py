from __future__ import annotations

import re

import pytest

from harness.benchmarks.gpt_oss_120b.code_questions import code_question
from harness.benchmarks.gpt_oss_120b.questions import (
    LETTERS,
    article_question,
    choice_question,
    number_question,
)

MANY = range(400)


def test_numbers_are_those_of_aime() -> None:
    truths = [int(number_question(3, i).truth) for i in MANY]
    assert min(truths) >= 0
    assert max(truths) <= 999
    assert len(set(truths)) > 100


def numbers(text: str) -> list[int]:
    return [int(n) for n in re.findall(r"\d+", text.split(". ", 1)[1].split("\n")[0])]


@pytest.mark.parametrize(
    ("kind", "solve"),
    [
        ("divided by", lambda n: pow(n[0], n[1], n[2])),
        ("multiples", lambda n: sum(1 for k in range(n[0], n[1] + 1) if not k % n[2] or not k % n[3])),
        ("difference", lambda n: (n[0] + n[1]) // 2 * ((n[0] - n[1]) // 2) % 1000),
        ("progression", lambda n: sum(range(n[0], n[0] + n[1] * n[2], n[1])) % n[3]),
    ],
)
def test_the_answer_to_a_number_question_is_right(kind: str, solve: object) -> None:
    assert callable(solve)
    marks = {"divided by": "^", "multiples": "multiples", "difference": "Two numbers", "progression": "progression"}
    asked = [q for q in (number_question(5, i) for i in MANY) if marks[kind] in q.text]
    assert len(asked) > 40
    for question in asked:
        assert solve(numbers(question.text)) == int(question.truth), question


def test_exactly_one_choice_is_right_and_all_letters_come_up() -> None:
    letters = set()
    for i in MANY:
        question = choice_question(11, i)
        values = re.findall(r"^([A-D])\) (\d+) ", question.text, re.MULTILINE)
        assert [letter for letter, _ in values] == list(LETTERS)
        assert len({value for _, value in values}) == 4, question.text
        letters.add(question.truth)
    assert letters == set(LETTERS)


@pytest.mark.parametrize(
    ("kind", "solve"),
    [
        ("net force", lambda n: n[0] * n[1]),
        ("Resistors", sum),
        ("wavelength", lambda n: n[0] * n[1]),
        ("half-life", lambda n: n[0] >> (n[2] // n[1])),
        ("diluted", lambda n: n[0] * n[2]),
    ],
)
def test_the_letter_is_that_of_the_right_choice(kind: str, solve: object) -> None:
    assert callable(solve)
    asked = [q for q in (choice_question(5, i) for i in MANY) if kind in q.text]
    assert len(asked) > 40
    for question in asked:
        given = numbers(question.text.replace("m/s^2", "m/s"))
        values = dict(re.findall(r"^([A-D])\) (\d+) ", question.text, re.MULTILINE))
        assert int(values[question.truth]) == solve(given), question


def test_code_questions_have_ids_and_articles_their_finding() -> None:
    assert len({code_question(1, i).truth for i in MANY}) == len(MANY)
    for i in MANY:
        article = article_question(1, i)
        assert article.truth in article.text


@pytest.mark.parametrize("maker", [number_question, choice_question, code_question, article_question])
def test_a_question_depends_on_seed_and_number_alone(maker: object) -> None:
    assert callable(maker)
    assert maker(1, 5) == maker(1, 5)
    assert maker(1, 5) != maker(2, 5)
    assert len({maker(1, i).text for i in MANY}) == len(MANY)
