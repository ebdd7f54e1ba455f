"""Each question to a server: passed by one with the manners that the harness relies on, failed by one without."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from harness.engines.trtllm_settings import request_seed
from harness.runs.gpu_check import served
from harness.runs.gpu_check.asker import Asker
from harness.runs.gpu_check.report import Outcome, Status
from harness.runs.gpu_check.served import QUESTIONS, Served, ask_all, prompt, stop_place
from tests.runs.gpu_check.completions_server import LONGEST, VOCABULARY, Manners, serving

OPTIONS = {"stream_interval": 20, "num_postprocess_workers": 4}


def asked(
    name: str, manners: Manners, *, kind: str = "trtllm-serve", options: Mapping[str, object] | None = OPTIONS
) -> Outcome:
    """How one question comes out."""
    with serving(manners) as url:
        server = Served(Asker(url, "some-model", timeout_s=20), kind, options, VOCABULARY, LONGEST)
        (finding,) = ask_all(server, [question for question in QUESTIONS if question.name == name])
        return finding.outcome


@pytest.mark.parametrize("name", [question.name for question in QUESTIONS if question.name != "keep-alive"])
@pytest.mark.parametrize("last_chunk_empty", [False, True])
def test_a_server_with_the_manners_passes(name: str, last_chunk_empty: bool) -> None:
    outcome = asked(name, Manners(last_chunk_empty=last_chunk_empty))
    assert outcome.status is Status.PASSED, outcome.seen


WITHOUT = [
    ("ids out", Manners(ids=False), "token_ids None"),
    ("ids out", Manners(text="Hello"), "24 ids"),
    ("ids out", Manners(outside=True), "outside the vocabulary"),
    ("workers", Manners(ids=False), "token_ids None"),
    ("workers", Manners(text="x"), "4 workers"),
    ("end token", Manners(stop_obeyed=False), "finish length"),
    ("end token", Manners(finish="length"), "finish length"),
    ("chunks", Manners(first=20), "[20, 20"),
    ("chunks", Manners(interval=25), "[1, 25"),
    ("seeds", Manners(seeds_obeyed=False), "give 1 different"),
    ("usage", Manners(counted_more=1), "24 and 25, there were 24 and 24"),
    ("unknown field", Manners(unknown_refused=False), "HTTP 200"),
    ("too long", Manners(long_refused=False), f"a prompt of {LONGEST + 1} tokens"),
    *((question.name, Manners(status=503), "HTTP 503") for question in QUESTIONS if question.name != "keep-alive"),
    ("ids out", Manners(raw=b"<html>"), "no JSON"),
    ("ids out", Manners(raw=b"[]"), "no JSON object"),
    ("ids out", Manners(raw=b'{"choices": []}'), "choices are []"),
    ("chunks", Manners(stream_end=b""), "without [DONE]"),
    ("chunks", Manners(stream_end=b'data: {"error": {"message": "out of memory"}}\n\n'), "out of memory"),
    ("chunks", Manners(stream_end=b"data: {oops\n\n"), "no JSON: {oops"),
]


@pytest.mark.parametrize(("name", "manners", "says"), WITHOUT, ids=lambda value: str(value)[:40])
def test_a_server_without_one_fails_and_it_is_said_why(name: str, manners: Manners, says: str) -> None:
    outcome = asked(name, replace(manners, requests=[]))
    assert outcome.status is Status.FAILED
    assert says in outcome.seen


@pytest.mark.parametrize(("in_ids", "told"), [(False, "is not in token_ids"), (True, "is in token_ids")])
def test_both_ways_of_the_stop_token_are_well_and_told(in_ids: bool, told: str) -> None:
    outcome = asked("end token", Manners(stop_in_ids=in_ids))
    assert outcome.status is Status.PASSED
    assert outcome.seen.count(told) == 2


@pytest.mark.parametrize(
    ("name", "manners", "kind", "options", "says"),
    [
        ("workers", Manners(), "torch", OPTIONS, "server torch has no"),
        ("workers", Manners(), "trtllm-serve", None, "not known"),
        ("workers", Manners(), "trtllm-serve", {"num_postprocess_workers": 0}, "is 0"),
        ("end token", Manners(repeats=True), "trtllm-serve", OPTIONS, "repeats one token"),
    ],
)
def test_what_cannot_be_asked_has_not_passed(
    name: str, manners: Manners, kind: str, options: Mapping[str, object] | None, says: str
) -> None:
    outcome = asked(name, manners, kind=kind, options=options)
    assert outcome.status is Status.NOT_ASKED
    assert says in outcome.seen


def test_chunks_of_a_server_whose_interval_nobody_knows() -> None:
    assert asked("chunks", Manners(interval=25), options=None).status is Status.PASSED
    assert asked("chunks", Manners(first=2), options=None).status is Status.FAILED


@pytest.mark.parametrize(("idle_s", "status"), [(0.3, Status.FAILED), (1.2, Status.PASSED), (9.0, Status.PASSED)])
def test_keep_alive(idle_s: float, status: Status, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(served, "KEEP_ALIVE_S", 0.8)
    monkeypatch.setattr(served, "_PATIENCE_S", 2.0)
    outcome = asked("keep-alive", Manners(idle_s=idle_s))
    assert outcome.status is status, outcome.seen
    assert ("more than 2 s" in outcome.seen) == (idle_s > 2)


def test_a_server_that_is_gone_fails_everything() -> None:
    with serving(Manners()) as url:
        pass
    findings = ask_all(Served(Asker(url, "some-model"), "trtllm-serve", OPTIONS, VOCABULARY, LONGEST))
    assert len(findings) == len(QUESTIONS)
    assert all(finding.outcome.status is Status.FAILED for finding in findings)
    assert all("refused" in finding.outcome.seen for finding in findings)


def test_every_value_is_sent() -> None:
    manners = Manners()
    asked("ids out", manners)
    whole, streamed = manners.requests
    assert (
        whole.items() >= {"temperature": 1.0, "top_p": 1.0, "top_k": 0, "max_tokens": 24, "detokenize": False}.items()
    )
    assert streamed["stream_options"] == {"include_usage": True}
    assert "stream_options" not in whole


def test_seeds_are_those_of_a_run() -> None:
    manners = Manners()
    asked("seeds", manners)
    seeds = {body.get("seed") for body in manners.requests}
    assert {request_seed(1, number) for number in range(8)} | {None, 5, 6} == seeds


def test_prompts_are_ids_that_any_vocabulary_has() -> None:
    for size in (1000, 32_000, 201_088):
        ids = prompt(size, tokens=500)
        assert ids == prompt(size, tokens=500)
        assert min(ids) > 0
        assert max(ids) < size


@pytest.mark.parametrize(
    ("ids", "place"), [([5, 6, 5, 7, 7, 7, 8, 9], 3), ([5, 5, 5, 6], None), ([], None), ([5], None), ([5, 6, 7, 8], 1)]
)
def test_the_place_to_stop_at(ids: list[int], place: int | None) -> None:
    assert stop_place(ids) == place
