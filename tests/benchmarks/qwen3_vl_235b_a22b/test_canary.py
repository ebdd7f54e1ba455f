from __future__ import annotations

import json
from typing import Any, cast

import pytest

from harness.benchmarks.base import Canary, Chats
from harness.benchmarks.qwen3_vl_235b_a22b.canary import SHOWN, CategoryCanary

COFFEE, CAT, KEY = SHOWN.values()


def canary(*, trained: bool = True) -> Canary:
    return CategoryCanary.make(trained=trained, version="v6.1", max_new_tokens=100)


def said(*categories: str) -> list[bytes]:
    return [json.dumps({"category": c, "brand": "", "is_secondhand": False}).encode() for c in categories]


def test_the_chats_differ_in_their_pictures_alone() -> None:
    chats: Any = list(cast(Chats, canary().prompts))
    urls = []
    for chat in chats:
        system, user = chat["messages"]
        assert system["role"] == "system"
        words, picture = user["content"]
        assert all(category in words["text"] for category in SHOWN.values())
        assert words == chats[0]["messages"][1]["content"][0]
        urls.append(picture["image_url"]["url"])
    assert [url.partition(";base64,")[0] for url in urls] == [f"data:image/{kind}" for kind in ("JPEG", "WEBP", "PNG")]


def test_good_answers_pass() -> None:
    assert canary().check(said(COFFEE, CAT, KEY)) == []


def test_one_picture_may_be_mistaken() -> None:
    assert canary().check(said(COFFEE, CAT, CAT)) == []


@pytest.mark.parametrize("category", [COFFEE, CAT, KEY])
def test_an_engine_that_sees_no_picture_is_found_out(category: str) -> None:
    (finding,) = canary().check(said(category, category, category))
    assert finding.what.startswith("1 of 3 pictures were recognised")
    assert "show each picture" in finding.expected


@pytest.mark.parametrize(
    ("answer", "what"),
    [
        (b"", "no content"),
        (b"\xff" * 8, "no UTF-8"),
        (b"```json\n" + said(COFFEE)[0] + b"\n```", "not in the form"),
        (said(COFFEE)[0][:-1], "not in the form"),
        (b"Eine Tasse", "'Eine Tasse'"),
    ],
)
def test_bad_answers_are_told_apart(answer: bytes, what: str) -> None:
    (finding,) = canary().check([*said(COFFEE, CAT), answer])
    assert finding.what.startswith("answer 3 of 3: ")
    assert what in finding.what


def test_answers_that_do_not_come_are_seen() -> None:
    assert [finding.what for finding in canary().check(said(COFFEE))] == ["1 answers to 3 prompts"]


def test_of_random_weights_only_text_is_expected() -> None:
    random = canary(trained=False)
    assert random.max_new_tokens < canary().max_new_tokens == 100
    assert random.check([b"\xe2\x80\xa6", b"zzz", b"}"]) == []
    assert [finding.what for finding in random.check([b"a", b"", b"c"])] == ["answer 2 of 3: no content"]


def test_a_stand_in_is_asked_no_more_than_the_legs_ask() -> None:
    assert CategoryCanary.make(trained=False, version="v6.0", max_new_tokens=4).max_new_tokens == 4
