from __future__ import annotations

import hashlib
import json

import pytest

from harness.benchmarks.qwen3_vl_235b_a22b import prompts
from harness.benchmarks.qwen3_vl_235b_a22b.answers import FIELDS, parse
from harness.benchmarks.qwen3_vl_235b_a22b.prompts import Version

# Over the texts that both reference clients make, run with their own libraries.
SYSTEM = {
    "v6.1": (1462, "2ff8c5d5405714082f8082a3322f6faeddf49149498bd41e692ccc29725722b3"),
    "v6.0": (1656, "0d1878a7ddab0ca73999e3b7db2e0b8aaa74069f1bcc4c4f8a49201b82151c48"),
}
USER = {
    "v6.1": (200, "45852011bb6fdce7b9934b882bce9ae52063627aa0c8e5b83fdb13930934c5df"),
    "v6.0": (200, "cbaef9ad2a86ec21db9ffb6c14c0d6c5218ccbbcc04a4cc2ca0d26474a0b9952"),
}


def shape(text: str) -> tuple[int, str]:
    return len(text), hashlib.sha256(text.encode()).hexdigest()


@pytest.mark.parametrize("version", prompts.VERSIONS)
def test_the_texts_are_the_reference_s(version: Version) -> None:
    system, user = prompts.messages("T", "D", ["A > B", "C"], "data:image/PNG;base64,AA==", version)
    assert shape(system["content"]) == SYSTEM[version]
    text, picture = user["content"]
    assert shape(text["text"]) == USER[version]
    assert (system["role"], user["role"], text["type"], picture["type"]) == ("system", "user", "text", "image_url")
    assert picture["image_url"] == {"url": "data:image/PNG;base64,AA=="}


def test_how_the_list_of_categories_is_shown() -> None:
    listed = json.dumps(["Crêpe Pans > 鍋", 'Kids\' "toys"'])
    assert '["Cr\\u00eape Pans > \\u934b", "Kids\' \\"toys\\""]\n' in prompts.user_text("T", "D", listed, "v6.1")
    assert "['Crêpe Pans > 鍋', 'Kids\\' \"toys\"']\n" in prompts.user_text("T", "D", listed, "v6.0")


def test_the_list_in_the_catalogue_is_sent_as_it_is() -> None:
    assert prompts.user_text("T", "D", '["A" ,"B"]') == prompts.user_text("T", "D", '["A","B"]').replace(",", " ,")


def test_nothing_in_a_product_s_text_is_read_as_a_place_to_fill() -> None:
    text = prompts.user_text("{description}", "{title} {0} {", "[]")
    assert "```text\n{description}\n```" in text
    assert "```text\n{title} {0} {\n```" in text
    assert "```text\nNone\n```" in prompts.user_text("T", None, "[]")


@pytest.mark.parametrize("version", prompts.VERSIONS)
def test_the_schema_is_that_of_the_answers_that_are_scored(version: Version) -> None:
    schema = prompts.schema(version)
    assert tuple(schema["required"]) == tuple(schema["properties"]) == FIELDS == prompts.FIELDS
    assert json.dumps(schema, indent=2) in prompts.system_text(version)
    kinds = {"string": "x", "boolean": True}
    answer = {name: kinds[about["type"]] for name, about in schema["properties"].items()}
    assert parse(json.dumps(answer)) is not None


def test_the_fingerprint_tells_the_wordings_apart() -> None:
    assert prompts.fingerprint("v6.0") != prompts.fingerprint("v6.1")
