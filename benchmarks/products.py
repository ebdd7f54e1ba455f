"""Scores an accuracy log of answers about products, or (``floor``) only reads it; ``scoring.py`` starts it.

The floor is what nobody can leave out: a line of the log and an answer are both JSON.
"""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path

from machine import peak_mb

from harness import rules
from harness.benchmarks.base import Dataset
from harness.benchmarks.qwen3_vl_235b_a22b.dataset import Truths
from harness.benchmarks.qwen3_vl_235b_a22b.score import score
from harness.engines.base import PromptTable
from harness.logs import AccuracyLog

RULES = rules.load(rules.LATEST).benchmark("qwen3-vl-235b-a22b")
SUBSET, ROWS = next((name, subset.samples) for name, subset in RULES.accuracy_subsets.value.items())
LEVELS = (
    ("Apparel & Accessories", "Home & Garden", "Sporting Goods", "Vehicles & Parts", "Food, Beverages & Tobacco"),
    ("Clothing", "Kitchen & Dining", "Outdoor Recreation", "Vehicle Parts & Accessories", "Crêpe Pans"),
    ("Shirts & Tops", "Tableware", "Cycling", "Motor Vehicle Parts", "Food Items"),
    ("T-Shirts", "Coffee & Tea Sets", "Bicycle Parts", "Engine Parts", "Snack Foods"),
)
BRANDS = ("", "", "Acme", "giorgio armani", "Pokémon", "鲸", "NoEnName_Null", "Unknown", "Dolce & Gabbana")


def write_log(log: Path) -> int:
    """Writes an accuracy log as LoadGen does, and what is true of each row beside it; how many answers it has.

    About as many are right as a model's: four of five in all levels; brands are often near, one answer in ten
    thousand is cut.
    """
    rng = random.Random(ROWS)
    truths: list[tuple[str, str, bool]] = []
    with log.open("w") as file:
        file.write("[\n")
        for row in range(ROWS):
            path = [rng.choice(level) for level in LEVELS[: rng.randint(2, 4)]]
            brand, secondhand = rng.choice(BRANDS), rng.random() < 0.03
            truths.append((" > ".join(path), brand, secondhand))
            if rng.random() < 0.2:
                path[-1] = rng.choice(LEVELS[-1])
            said = {"category": " > ".join(path), "brand": near(brand, rng), "is_secondhand": secondhand}
            text = json.dumps(said, indent=2, ensure_ascii=False)
            data = text[: -1 if rng.random() < 1e-4 else None].encode().hex().upper()
            end = "" if row + 1 == ROWS else ","
            file.write(f'{{ "seq_id" : {row}, "qsl_idx" : {row}, "data" : "{data}" }}{end}\n')
        file.write("]\n")
    beside(log).write_text(json.dumps(truths))
    return ROWS


def near(brand: str, rng: random.Random) -> str:
    """A brand as a model would give it: in another case, or with a letter less."""
    return rng.choice([brand, brand, brand.upper(), brand[:-1], rng.choice(BRANDS)])


def beside(log: Path) -> Path:
    """The file of truths of a log."""
    return log.with_suffix(".truths.json")


def score_log(log: Path) -> float:
    """Reads and grades a log; the score."""
    truths = Truths(*zip(*json.loads(beside(log).read_text()), strict=True))
    table = Dataset(
        name="qwen3-vl-235b-a22b/catalogue",
        table="catalogue",
        prompts=PromptTable.empty(ROWS),
        subsets=(SUBSET,) * ROWS,
        ground_truth=truths.category,
        files=(),
        stand_in=True,
    )
    answers = ((entry.sample, entry.data) for entry in AccuracyLog(log))
    found = score(answers, table, truths, key=RULES.accuracy_target.value.key)
    assert found.value is not None
    return found.value


def read_log(log: Path) -> int:
    """Reads a log and the JSON of its answers, and does nothing with them; how many there are."""
    read = 0
    with log.open() as file:
        for line in file:
            if line.startswith("{"):
                data = bytes.fromhex(json.loads(line.rstrip(",\n"))["data"])
                read += 1
                try:
                    json.loads(data)
                except ValueError:
                    continue
    return read


if __name__ == "__main__":
    work = read_log if "floor" in sys.argv[2:] else score_log
    print(json.dumps([work(Path(sys.argv[1])), peak_mb()]))
