from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness.benchmarks.gpt_oss_120b import vocab
from harness.benchmarks.gpt_oss_120b.canary import FinalAnswer, HarmonyRoundTrip, round_trip

pytestmark = pytest.mark.harmony


def ids(text: str) -> bytes:
    return np.array(vocab.encode(text), np.int32).tobytes()


GOOD = "<|channel|>analysis<|message|>7 * 8<|end|><|start|>assistant<|channel|>final<|message|>56"


@settings(max_examples=100, deadline=None)
@given(st.text(), st.sampled_from(["<|channel|>", "<|end|>", "<|reserved_200013|>"]))
def test_texts_with_special_tokens_round_trip(text: str, special: str) -> None:
    assert round_trip(vocab.encode(text + special + text)) is None


@settings(max_examples=100, deadline=None)
@given(st.lists(st.integers(0, vocab.VOCAB_SIZE - 1), min_size=1, max_size=32))
def test_whatever_a_model_may_sample_round_trips(sampled: list[int]) -> None:
    assert round_trip(sampled) is None


def test_another_spelling_of_the_same_text_is_no_loss() -> None:
    pieces = [token for char in "seven times eight" for token in vocab.encode(char)]
    assert pieces != vocab.encode("seven times eight")
    assert round_trip(pieces) is None


def test_a_special_token_spelled_in_ordinary_ones_is_seen() -> None:
    assert round_trip(vocab.encode_plain("<|end|>")) == "0 special tokens became 1"


def test_ids_that_are_no_text_are_seen() -> None:
    assert round_trip([5, -1]) == "token id -1 at position 1 is not in 0..201087"


def test_good_answers_pass() -> None:
    canary = HarmonyRoundTrip.make(trained=True)
    assert len(canary.prompts) == 3
    assert canary.check([ids(GOOD)] * 3) == []


@pytest.mark.parametrize(
    ("answer", "said", "expected"),
    [
        ("56", "begins with token 5007", "200005, <|channel|>"),
        ("", "0 tokens", "1 to 32 tokens"),
        (GOOD + " and so on" * 20, "tokens", "1 to 32 tokens"),
    ],
)
def test_bad_answers_are_told_apart(answer: str, said: str, expected: str) -> None:
    findings = HarmonyRoundTrip.make(trained=True).check([ids(GOOD), ids(answer), ids(GOOD)])
    assert len(findings) == 1
    assert findings[0].what.startswith("answer 2 of 3: ")
    assert said in findings[0].what
    assert expected in findings[0].expected


def test_a_checkpoint_of_random_weights_need_not_begin_with_the_channel() -> None:
    assert HarmonyRoundTrip.make(trained=False).check([ids("56")] * 3) == []
    assert len(HarmonyRoundTrip.make(trained=False).check([np.array([-1], np.int32).tobytes()] * 3)) == 3


def test_answers_that_do_not_come_are_seen() -> None:
    findings = HarmonyRoundTrip.make(trained=True).check([ids(GOOD)])
    assert [finding.what for finding in findings] == ["1 answers to 3 prompts"]


def final_answer() -> FinalAnswer:
    return FinalAnswer.make(min_tokens=2, stop_token_ids=[200002])


def test_an_answer_that_ends_in_the_final_channel_passes() -> None:
    assert final_answer().check([ids(GOOD)]) == []


@pytest.mark.parametrize(
    ("answer", "said", "expected"),
    [
        (GOOD + " and so on" * 600, "tokens to a question of a sentence", "stop token 200002"),
        ("5", "1 tokens", "at least 2 tokens"),
        (GOOD + "<|return|>", "the stop token 200002 inside the answer", "before its stop token"),
        ("<|channel|>analysis<|message|>7 * 8 is 56", "no final channel", "out of which answers are graded"),
    ],
)
def test_an_answer_that_does_not_end_as_the_model_ends(answer: str, said: str, expected: str) -> None:
    (finding,) = final_answer().check([ids(answer)])
    assert said in finding.what
    assert expected in finding.expected


def test_a_final_answer_that_is_no_text_or_does_not_come() -> None:
    assert [finding.what for finding in final_answer().check([np.array([-1, -1], np.int32).tobytes()])] == [
        "no final channel in the answer"
    ]
    assert len(final_answer().check([])) == 1
