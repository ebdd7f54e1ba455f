"""Questions of our own with their answers, drawn from a seed: what a stand-in data set asks.

Question i of a kind depends on the seed, the kind and i alone. They are easy on purpose: they stand in for the shape
of the benchmark (its subsets, answers and graders), never for its difficulty.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass

LETTERS = "ABCD"


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked, and what the data set's column ``ground_truth`` holds for it."""

    text: str
    truth: str


def number_question(seed: int, i: int) -> Question:
    """As AIME asks: the answer is an integer from 0 to 999."""
    rng = _rng(seed, "number", i)
    text, answer = rng.choice(_NUMBERS)(rng)
    return Question(
        f"Problem {i + 1}. {text}\nReason step by step, and put the final answer within \\boxed{{}}.", str(answer)
    )


def choice_question(seed: int, i: int) -> Question:
    """As GPQA asks: one of four choices is right, the answer is its letter."""
    rng = _rng(seed, "choice", i)
    text, right, unit = rng.choice(_CHOICES)(rng)
    wrong = {right + 1, right + 7, right * 2, right * 3 + 2, right * 10} - {right}
    choices = [right, *rng.sample(sorted(wrong), 3)]
    rng.shuffle(choices)
    listed = "\n".join(f"{letter}) {value} {unit}" for letter, value in zip(LETTERS, choices, strict=True))
    return Question(
        f"Question {i + 1}. {text}\n\n{listed}\n\nEnd with a line 'Answer: X', where X is the letter of your choice.",
        LETTERS[choices.index(right)],
    )


def article_question(seed: int, i: int) -> Question:
    """As the performance table asks: a short article to sum up; the truth is its finding."""
    rng = _rng(seed, "article", i)
    finding = _finding(rng)
    details = rng.sample(_DETAILS, rng.randrange(len(_DETAILS) + 1))
    sentences = [_opening(rng), *(detail(rng) for detail in details), finding]
    return Question(f"Summarize article {i + 1} in one sentence.\n\n{' '.join(sentences)}", finding)


def _rng(seed: int, kind: str, i: int) -> random.Random:
    return random.Random(f"{seed}/{kind}/{i}")  # noqa: S311 - questions, not secrets


def _remainder(rng: random.Random) -> tuple[str, int]:
    base, power, modulus = rng.randrange(2, 99), rng.randrange(5, 60), rng.randrange(101, 1000)
    return f"Find the remainder when {base}^{power} is divided by {modulus}.", pow(base, power, modulus)


def _multiples(rng: random.Random) -> tuple[str, int]:
    a, b, top = rng.randrange(2, 20), rng.randrange(2, 20), rng.randrange(100, 999)
    count = top // a + top // b - top // math.lcm(a, b)
    return f"How many integers from 1 to {top} are multiples of {a} or of {b}?", count


def _two_numbers(rng: random.Random) -> tuple[str, int]:
    x, y = rng.randrange(2, 400), rng.randrange(2, 400)
    text = (
        f"Two numbers have the sum {x + y} and the difference {abs(x - y)}. "
        "Find the last three digits of their product."
    )
    return text, x * y % 1000


def _progression(rng: random.Random) -> tuple[str, int]:
    first, step, terms = rng.randrange(1, 90), rng.randrange(2, 40), rng.randrange(5, 80)
    total = terms * (2 * first + (terms - 1) * step) // 2
    text = (
        f"An arithmetic progression starts with {first} and has the common difference {step}. "
        f"Find the remainder when the sum of its first {terms} terms is divided by 1000."
    )
    return text, total % 1000


_NUMBERS: tuple[Callable[[random.Random], tuple[str, int]], ...] = (_remainder, _multiples, _two_numbers, _progression)


def _force(rng: random.Random) -> tuple[str, int, str]:
    mass, acceleration = rng.randrange(2, 60), rng.randrange(2, 30)
    text = f"A body of {mass} kg gains speed at {acceleration} m/s^2. Which net force acts on it?"
    return text, mass * acceleration, "N"


def _series(rng: random.Random) -> tuple[str, int, str]:
    parts = [rng.randrange(5, 300) for _ in range(3)]
    listed = f"{parts[0]}, {parts[1]} and {parts[2]} ohm"
    return f"Resistors of {listed} are connected in series. What is their total resistance?", sum(parts), "ohm"


def _wave(rng: random.Random) -> tuple[str, int, str]:
    frequency, length = rng.randrange(2, 90), rng.randrange(2, 40)
    text = f"A wave has the frequency {frequency} Hz and the wavelength {length} m. How fast does it travel?"
    return text, frequency * length, "m/s"


def _dilution(rng: random.Random) -> tuple[str, int, str]:
    factor, volume = rng.randrange(2, 20), rng.randrange(5, 90)
    text = (
        f"{volume} mL of a solution are to be diluted to 1/{factor} of their concentration. "
        "What volume has the diluted solution?"
    )
    return text, factor * volume, "mL"


def _half_life(rng: random.Random) -> tuple[str, int, str]:
    halvings, rest, life = rng.randrange(2, 6), rng.randrange(3, 40), rng.randrange(2, 30)
    text = (
        f"A sample holds {rest * 2**halvings} mg of an isotope with a half-life of {life} days. "
        f"How much is left after {halvings * life} days?"
    )
    return text, rest, "mg"


_CHOICES: tuple[Callable[[random.Random], tuple[str, int, str]], ...] = (_force, _series, _wave, _dilution, _half_life)

_TOPICS = ("sleep", "walking speed", "blood pressure", "reading time", "grip strength", "reaction time", "heart rate")
_GROUPS = ("gardeners", "night nurses", "choir singers", "postal workers", "school cooks", "ferry crews", "librarians")
_MEANS = ("a daily walk", "a shorter shift", "an earlier dinner", "a weekly swim", "a quiet room", "a new schedule")
_TOWNS = ("a harbour town", "two mountain villages", "a river valley", "three islands", "a northern city")


def _opening(rng: random.Random) -> str:
    return (
        f"We studied the effect of {rng.choice(_MEANS)} on {rng.choice(_TOPICS)} among {rng.randrange(20, 900)} "
        f"{rng.choice(_GROUPS)} from {rng.choice(_TOWNS)}."
    )


def _finding(rng: random.Random) -> str:
    return (
        f"After {rng.randrange(2, 40)} weeks {rng.choice(_MEANS)} had changed {rng.choice(_TOPICS)} "
        f"by {rng.randrange(1, 30)} percent in {rng.choice(_GROUPS)}."
    )


_DETAILS: tuple[Callable[[random.Random], str], ...] = (
    lambda rng: f"The median age was {rng.randrange(19, 80)} years, and {rng.randrange(10, 90)} percent were women.",
    lambda rng: f"Measurements of {rng.choice(_TOPICS)} were taken every {rng.randrange(2, 30)} days by two observers.",
    lambda rng: f"{rng.randrange(2, 60)} of the {rng.choice(_GROUPS)} left early, most of them for other work.",
    lambda rng: f"A second group in {rng.choice(_TOWNS)} kept its habits and served for comparison.",
    lambda rng: f"Nobody was told in which of the {rng.randrange(2, 7)} groups the {rng.choice(_GROUPS)} were.",
    lambda rng: f"Rain and {rng.choice(_MEANS)} went together on {rng.randrange(2, 90)} days, which we corrected for.",
    lambda rng: f"The effect on {rng.choice(_TOPICS)} was largest in the first {rng.randrange(2, 9)} weeks.",
)
