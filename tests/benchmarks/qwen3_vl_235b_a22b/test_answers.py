from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.benchmarks.qwen3_vl_235b_a22b.answers import Parsed, levels, levels_in_common, parse, same_brand

GOLDEN = Path(__file__).parents[4] / "shared" / "data" / "qwen3vl_f1_cases.json"
GOOD = '{"category": "Toys > Dolls", "brand": "Acme", "is_secondhand": false}'
SAID = Parsed("Toys > Dolls", "Acme", False)

golden = pytest.mark.skipif(not GOLDEN.exists(), reason="the shared data folder is not beside the repository")


def said(secondhand: str, more: str = "") -> str:
    """An answer with a JSON value as it stands, and what comes before its fields."""
    return f'{{{more}"category": "Toys > Dolls", "brand": "Acme", "is_secondhand": {secondhand}}}'


@pytest.mark.parametrize(
    "text",
    [
        GOOD,
        f" \t\r\n{GOOD}\n",
        GOOD.replace(", ", ",\n  "),
        '{"is_secondhand":false,"brand":"Acme","category":"Toys > Dolls"}',
        GOOD.replace('"category"', r'"c\u0061tegory"'),
        GOOD.replace("Toys", r"T\u006fys"),
        said("false", '"brand": null, "category": [], "is_secondhand": NaN, '),
        said("false", '"brand": -Infinity, '),
        said("false", '"brand": {"brand": 1, "brand": 1e999}, '),
    ],
)
def test_what_is_an_answer(text: str) -> None:
    assert parse(text) == SAID


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "null",
        f"[{GOOD}]",
        f"```json\n{GOOD}\n```",
        f"\ufeff{GOOD}",
        f"\u00a0{GOOD}",
        f"\x0c{GOOD}",
        f"{GOOD}\x00",
        f"Here it is: {GOOD}",
        GOOD + GOOD,
        GOOD + ",",
        GOOD.replace('"', "'"),
        GOOD.replace("}", ",}"),
        GOOD.replace("}", " /* no */}"),
        GOOD.replace("category", "Category"),
        GOOD.replace("category", "category "),
        GOOD.replace("}", ', "price": 1}'),
        GOOD.replace("category", "brand"),
        '{"category": "Toys", "brand": "Acme"}',
        '[["category", "Toys"], ["brand", "Acme"], ["is_secondhand", false]]',
        GOOD.replace('"Acme"', "null"),
        GOOD.replace('"Acme"', "3"),
        GOOD.replace('"Toys > Dolls"', '["Toys", "Dolls"]'),
        GOOD.replace("Acme", "Ac\nme"),
        GOOD.replace("Acme", "Ac\tme"),
        GOOD.replace("Acme", r"Ac\me"),
        GOOD.replace("Acme", r"Ac\u00g0"),
    ],
)
def test_what_is_no_answer(text: str) -> None:
    assert parse(text) is None


def test_an_answer_that_is_cut_is_none() -> None:
    assert [parse(GOOD[:length]) for length in range(len(GOOD))] == [None] * len(GOOD)


TRUE = ["true", "1", "1.0", "1e0", "10e-1", "1.00000000000000000001"]
TRUE += [f'"{word}"' for word in ("true", "TRUE", "True", "t", "yes", "Y", "on", "oN", "1", r"\u0074rue")]
FALSE = ["false", "0", "-0", "0.0", "-0.0", "0e5", "1e-400"]
FALSE += [f'"{word}"' for word in ("false", "FALSE", "f", "no", "N", "off", "OFF", "0")]
NEITHER = ["null", "2", "-1", "0.5", "1e400", "NaN", "Infinity", "-Infinity", "9" * 30, "[]", "{}", "[true]", "True"]
NEITHER += ["01", "+1", ".5", "1.", "-", "\u0661", "1_0"]
NEITHER += [
    f'"{word}"' for word in ("", "2", "1.0", "-0", "00", " true", "true ", "ja", "no\u212a", "\uff11", "ye\u017f")
]


@pytest.mark.parametrize(
    ("value", "wanted"), [*((v, True) for v in TRUE), *((v, False) for v in FALSE), *((v, None) for v in NEITHER)]
)
def test_what_counts_as_true_and_as_false(value: str, wanted: bool | None) -> None:
    found = parse(said(value))
    assert (None if found is None else found.is_secondhand) is wanted


@pytest.mark.parametrize("half", [r"\ud83d", r"\ude00", r"\ud83dx", r"\ude00\ud83d", r"\ud83d\ud83d\ude00", r"\uD83D"])
def test_half_a_surrogate_pair_is_no_text_wherever_it_stands(half: str) -> None:
    assert parse(GOOD.replace("Acme", half)) is None
    assert parse(GOOD.replace("Toys", half)) is None
    assert parse(said("false", f'"brand": [{{"{half}": 1}}], ')) is None


def test_a_surrogate_pair_is_a_character() -> None:
    found = parse(GOOD.replace("Acme", r"\ud83d\ude00"))
    assert found is not None
    assert found.brand == "\U0001f600"


def test_text_that_cannot_be_utf8_is_no_answer() -> None:
    assert parse(GOOD.replace("Acme", "\ud83d")) is None


@pytest.mark.parametrize(
    ("value", "fits"),
    [
        ("[" * 199 + "1" + "]" * 199, True),
        ("[" * 200 + "]" * 200, True),
        ("[" * 200 + "1" + "]" * 200, False),
        ("[" * 201 + "]" * 201, False),
        ('{"a":' * 199 + "1" + "}" * 199, True),
        ('{"a":' * 200 + "1" + "}" * 200, False),
        ("[" * 100_000 + "]" * 100_000, False),
        ("[" * 100_000, False),
        ("[[]," * 150 + "1" + "]" * 150, True),
        ("1" * 4300, True),
        ("1" * 4301, False),
        ("1" * 4300 + ".5e3", True),
        ("1" * 4301 + ".5e3", False),
        ("0." + "1" * 9000, True),
    ],
)
def test_a_value_that_another_replaces_must_be_one_that_could_be_read(value: str, fits: bool) -> None:
    assert (parse(said("false", f'"brand": {value}, ')) == SAID) is fits


words = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
blanks = st.text(" \t\r\n", max_size=3)


@given(words, words, st.booleans(), st.permutations(["category", "brand", "is_secondhand"]), blanks, st.booleans())
def test_any_answer_comes_back_as_it_was_written(
    category: str, brand: str, secondhand: bool, order: list[str], blank: str, plain: bool
) -> None:
    fields: dict[str, Any] = {"category": category, "brand": brand, "is_secondhand": secondhand}
    text = json.dumps({name: fields[name] for name in order}, ensure_ascii=plain, separators=(f",{blank}", f":{blank}"))
    assert parse(f"{blank}{text}{blank}") == Parsed(category, brand, secondhand)
    assert parse(f"{text}{text}") is None


pieces = st.sampled_from(['"category"', '"brand"', '"is_secondhand"', "{", "}", "[", "]", ":", ",", '"x"', "true", "0"])


@settings(max_examples=300)
@given(st.one_of(st.text(max_size=60), st.lists(pieces, max_size=14).map("".join)))
@example("[" * 5000)
@example('{"a":' * 5000)
def test_any_text_is_an_answer_or_none(text: str) -> None:
    found = parse(text)
    if found is not None:
        assert json.loads(text).keys() == {"category", "brand", "is_secondhand"}


@given(st.integers(0, len(GOOD)), st.integers(0, 4), words)
def test_a_changed_answer_is_json_with_the_same_fields_or_none(at: int, cut: int, put: str) -> None:
    text = GOOD[:at] + put + GOOD[at + cut :]
    found = parse(text)
    if found is not None:
        fields = json.loads(text)
        assert (fields["category"], fields["brand"]) == (found.category, found.brand)


@pytest.mark.parametrize(
    ("category", "wanted"),
    [
        ("Toys", ["Toys"]),
        ("Toys > Dolls", ["Toys", "Dolls"]),
        ("  Toys \u00a0 >  Dolls\n", ["Toys", "Dolls"]),
        ("Toys>Dolls", ["Toys>Dolls"]),
        ("Toys\t>\tDolls", ["Toys\t>\tDolls"]),
        ("Toys > > Dolls", ["Toys", "> Dolls"]),
        ("Toys >  > Dolls", ["Toys", "", "Dolls"]),
        ("Toys\u200b > Dolls", ["Toys\u200b", "Dolls"]),
        ("", [""]),
        ("  ", [""]),
        (" > ", [">"]),
        ("Toys > ", ["Toys >"]),
    ],
)
def test_levels(category: str, wanted: list[str]) -> None:
    assert list(levels(category, "v6.1")) == wanted


def test_a_separator_at_an_end_is_one_in_v60_alone() -> None:
    assert levels("Toys > ", "v6.0") == ("Toys", "")
    assert levels(" > Toys", "v6.0") == ("", "Toys")
    assert levels(" > Toys", "v6.1") == ("> Toys",)


@given(st.lists(st.sampled_from("AB"), max_size=6), st.lists(st.sampled_from("AB"), max_size=6))
def test_levels_are_common_up_to_the_first_difference(one: list[str], other: list[str]) -> None:
    common = levels_in_common(one, other)
    assert one[:common] == other[:common]
    assert common in (len(one), len(other)) or one[common] != other[common]


def common_subsequence(one: str, other: str) -> int:
    """Its length, by the table of the textbook."""
    row = [0] * (len(other) + 1)
    for a in one:
        above, row = row, [0]
        for j, b in enumerate(other, start=1):
            row.append(above[j - 1] + 1 if a == b else max(row[-1], above[j]))
    return row[-1]


@st.composite
def brands(draw: st.DrawFn) -> tuple[str, str]:
    """A brand, and the same with a few letters other."""
    one = draw(st.text("ab\u9cb8 ", min_size=8, max_size=90))
    other = list(one)
    for _ in range(draw(st.integers(0, 5))):
        at = draw(st.integers(0, len(other)))
        other[at : at + draw(st.integers(0, 1))] = draw(st.text("ab", max_size=1))
    return one, "".join(other)


@given(st.one_of(brands(), st.tuples(st.text("aB ", max_size=8), st.text("aB ", max_size=8))))
def test_brands_are_alike_by_their_longest_common_subsequence(pair: tuple[str, str]) -> None:
    one, other = (brand.strip().lower() for brand in pair)
    both = len(one) + len(other)
    alike = 2 * common_subsequence(one, other) * 10 > 9 * both if both else True
    assert same_brand(*pair) is alike


@pytest.mark.parametrize(
    ("one", "other", "alike"),
    [
        ("", "", True),
        ("", " \t", True),
        ("Acme", " ACME ", True),
        ("", "acme", False),
        ("adodas", "adidas", False),
        ("abcdefghij", "abcdefghiX", False),
        ("abcdefghijklmnopqrst", "abcdefghijklmnopqrsX", True),
        ("abcdefghi", "abcdefghij", True),
        ("abcdefghij" * 30, "abcdefghij" * 29 + "X", True),
    ],
)
def test_brands(one: str, other: str, alike: bool) -> None:
    assert same_brand(one, other) is same_brand(other, one) is alike


@pytest.mark.shared
@golden
def test_answers_are_read_as_the_references_scorers_read_them() -> None:
    cases = json.loads(GOLDEN.read_text(encoding="utf-8"))["answer_cases"]
    assert len(cases) == 53
    for case in cases:
        found = parse(case["answer"])
        assert (found is None) is case["unparsable"], case["id"]
        if found is not None:
            assert (found.brand, found.is_secondhand) == (case["brand"], case["is_secondhand"]), case["id"]
            assert found.category.strip() == case["category_used_v61"], case["id"]


@pytest.mark.shared
@golden
def test_levels_are_counted_as_the_reference_counts_them() -> None:
    cases = json.loads(GOLDEN.read_text(encoding="utf-8"))["path_cases"]
    assert len(cases) == 53
    for case in cases:
        found, true = levels(case["prediction"], "v6.0"), levels(case["truth"], "v6.0")
        counts = levels_in_common(found, true), len(found), len(true)
        assert counts == (case["matched"], case["pred_levels"], case["truth_levels"]), case["id"]


@pytest.mark.shared
@golden
def test_brands_are_alike_where_the_reference_says_so() -> None:
    cases = json.loads(GOLDEN.read_text(encoding="utf-8"))["brand_cases_v60"]
    assert len(cases) == 15
    for case in cases:
        assert same_brand(case["prediction"], case["truth"]) is case["hit"], case
