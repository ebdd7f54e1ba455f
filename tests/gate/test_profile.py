"""The data centre's agentic rules for Kimi K2.6 on reports made up for it: what passes, and each rule broken once."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.errors import UnknownName
from harness.gate import Severity, Verdict
from harness.gate.profile import ProfileReport, check_profile, profile_of
from harness.gate.profile_facts import read_report
from harness.logs import LogError
from harness.logs.agentic_events import EVENTS, Answer, TurnTotals, answer_of, read_turns
from tests.gate import made_endpoints as made
from tests.gate.made_profile import MEAN, MEASURED, NAME, PROFILE, TRAJECTORIES, TURNS, make_report

CONFIG, SUMMARY, ACCURACY = "config.yaml", "performance/result_summary.json", "accuracy/accuracy_results.json"
AGENTIC, EXTRAS = "datasets/0/agentic_inference", "datasets/1/accuracy_config/extras"
ALWAYS = {("EP-PROFILE-STALE", "review"), ("EP-PROFILE-SPECULATION", "note")}
Change = Callable[[Path], object]


def words(answer: Answer) -> int:
    """A tokenizer that is easily followed: words, and a hundred for each call."""
    return len(f"{answer.content} {answer.reasoning}".split()) + 100 * len(answer.tool_calls)


@pytest.fixture
def report(tmp_path: Path) -> Path:
    return make_report(tmp_path / "report")


def check(folder: Path, *, regions: tuple[float, ...] = (80.0,) * 3, **more: Any) -> ProfileReport:
    facts = read_report(folder, profile_of(made.ROUND, NAME), regions=regions, **more)
    return check_profile(NAME, facts, folder)


def said(report: ProfileReport) -> set[tuple[str, str]]:
    return {(f.rule, f.severity.value) for f in report.findings}


def counted(folder: Path) -> TurnTotals:
    return read_turns(folder / EVENTS, words)


def test_a_whole_report_is_only_stale(report: Path) -> None:
    found = check(report, turns=dataclasses.replace(counted(report), tokens=MEAN))
    assert said(found) == ALWAYS
    assert found.verdict is Verdict.REVIEW
    (stale,) = (f for f in found.findings if f.rule == "EP-PROFILE-STALE")
    assert "since 2026-08-20 (7065e654) they are for Kimi K3" in stale.found


def test_the_figures(report: Path) -> None:
    figures = dict(check(report).figures)
    assert figures == {
        "inline_percent": 64.0,
        "mean_output_tokens_measured": MEAN,
        "mean_output_tokens_all": None,
        "turns_measured": MEASURED,
        "turns_all": TURNS,
        "swe_bench_percent": 80.0,
        "swe_bench_mean": 80.0,
    }


def test_the_mean_over_all_turns_is_told_without_a_tokenizer_where_all_were_measured(report: Path) -> None:
    made.change_data(report / SUMMARY, "n_samples_issued", TURNS)
    made.change_data(report / SUMMARY, "n_samples_completed", TURNS)
    found = check(report)
    assert found.figures["mean_output_tokens_all"] == MEAN
    assert said(found) == ALWAYS


def test_turns_after_the_measured_part_count_where_somebody_counts_them(report: Path) -> None:
    totals = counted(report)
    second = TURNS - TRAJECTORIES
    assert (totals.issued, totals.measured, totals.answered, totals.trajectories) == (
        TURNS,
        MEASURED,
        TURNS,
        TRAJECTORIES,
    )
    assert totals.unmeasured == TURNS - MEASURED
    assert totals.tokens == pytest.approx((TRAJECTORIES * 1 + second * 102) / TURNS)
    assert totals.measured_tokens == pytest.approx((TRAJECTORIES + (MEASURED - TRAJECTORIES) * 102) / MEASURED)
    found = check(report, turns=totals)
    outside = [f for f in found.findings if f.rule == "EP-PROFILE-OSL"]
    assert [(f.severity, f.found) for f in outside] == [(Severity.REVIEW, f"{totals.tokens:.1f} tokens over all turns")]


def test_a_report_without_lengths_is_counted(report: Path) -> None:
    made.change_data(report / SUMMARY, "output_sequence_lengths", {})
    found = check(report, turns=counted(report))
    assert {f.severity for f in found.findings if f.rule == "EP-PROFILE-OSL"} == {Severity.REJECT, Severity.REVIEW}


@pytest.mark.parametrize(
    ("mean", "severities"),
    [(403.9, {"reject"}), (404, set()), (494, set()), (494.1, {"reject"}), (None, {"review"})],
)
def test_the_window_at_its_bounds(report: Path, mean: float | None, severities: set[str]) -> None:
    made.change_data(report / SUMMARY, "output_sequence_lengths", {} if mean is None else {"avg": mean})
    measured = [f for f in check(report).findings if "measured turns" in f.found]
    assert {f.severity.value for f in measured} == severities


@pytest.mark.parametrize(("score", "enough"), [(0.6308, True), (0.6307, False), (1.0, True)])
def test_the_inline_score_at_its_bound(report: Path, score: float, enough: bool) -> None:
    made.change_data(report / ACCURACY, "accuracy_scores/0/score", score)
    assert (("EP-PROFILE-INLINE", "reject") in said(check(report))) is not enough


@pytest.mark.parametrize(
    ("own", "regions", "found"),
    [
        (76.5, (76.5, 76.5, 76.5), None),
        (70.0, (83.0, 76.5, 76.5), None),
        (76.0, (76.5, 76.5, 76.5), "reject"),
        (90.0, (), "review"),
        (90.0, (90.0,) * 4, "reject"),
    ],
)
def test_swe_bench_is_a_mean_over_regions(
    report: Path, own: float, regions: tuple[float, ...], found: str | None
) -> None:
    made.change_data(report / ACCURACY, "accuracy_scores/1/score", own / 100)
    severities = {f.severity.value for f in check(report, regions=regions).findings if f.rule == "EP-PROFILE-SWE"}
    assert severities == (set() if found is None else {found})


def config(key: str, value: object) -> Change:
    return lambda folder: made.change_data(folder / CONFIG, key, value)


def scores(key: str, value: object) -> Change:
    return lambda folder: made.change_data(folder / ACCURACY, key, value)


def measured(key: str, value: object) -> Change:
    return lambda folder: made.change_data(folder / SUMMARY, key, value)


def without(name: str) -> Change:
    return lambda folder: (folder / name).unlink()


def text(name: str, content: str) -> Change:
    return lambda folder: (folder / name).write_text(content)


# Each breaks the report in one place: what, the change, its file, the rule, the severity.
BREACHES: list[tuple[str, Change, str, str, str]] = [
    ("no summary", without(SUMMARY), SUMMARY, "EP-PROFILE-FILES", "reject"),
    ("no scores", without("scores.json"), "scores.json", "EP-PROFILE-FILES", "reject"),
    ("no YAML", text(CONFIG, "a: ["), CONFIG, "EP-PROFILE-FILES", "reject"),
    ("a list", text(ACCURACY, "[]"), ACCURACY, "EP-PROFILE-FILES", "reject"),
    ("data sets that are none", config("datasets", ["a"]), CONFIG, "EP-PROFILE-FILES", "reject"),
    ("a score of nonsense", scores("accuracy_scores/0/score", "much"), ACCURACY, "EP-PROFILE-FILES", "reject"),
    ("a path", config("model_params/name", "/model"), CONFIG, "EP-PROFILE-MODEL", "review"),
    ("another model", config("model_params/name", "moonshotai/Kimi-K3"), CONFIG, "EP-PROFILE-MODEL", "review"),
    ("greedy", config("model_params/temperature", 0.0), CONFIG, "EP-PROFILE-PARAMS", "reject"),
    ("no top_p", config("model_params/top_p", ...), CONFIG, "EP-PROFILE-PARAMS", "reject"),
    ("top_k", config("model_params/top_k", 20), CONFIG, "EP-PROFILE-PARAMS", "reject"),
    ("a seed", config("model_params/seed", 42), CONFIG, "EP-PROFILE-PARAMS", "reject"),
    ("more tokens", config("model_params/max_new_tokens", 16384), CONFIG, "EP-PROFILE-PARAMS", "reject"),
    ("least tokens", config("model_params/min_new_tokens", 2), CONFIG, "EP-PROFILE-PARAMS", "reject"),
    (
        "no thinking kept",
        config("model_params/chat_template_kwargs", {"thinking": True}),
        CONFIG,
        "EP-PROFILE-PARAMS",
        "reject",
    ),
    ("a flag", config("model_params/temperature", True), CONFIG, "EP-PROFILE-PARAMS", "reject"),
    (
        "an override",
        config("datasets/0/generation_config_override", {"temperature": 0.6}),
        CONFIG,
        "EP-PROFILE-PARAMS",
        "reject",
    ),
    ("no salt", config(f"{AGENTIC}/enable_salt", False), CONFIG, "EP-PROFILE-SETTINGS", "reject"),
    ("salt unsaid", config(f"{AGENTIC}/enable_salt", ...), CONFIG, "EP-PROFILE-SETTINGS", "reject"),
    ("no delays", config(f"{AGENTIC}/inject_tool_delay", False), CONFIG, "EP-PROFILE-SETTINGS", "reject"),
    (
        "a short tail",
        config(f"{AGENTIC}/stop_issuing_on_first_user_complete", True),
        CONFIG,
        "EP-PROFILE-SETTINGS",
        "reject",
    ),
    ("not scored inline", config("datasets/0/accuracy_config", {}), CONFIG, "EP-PROFILE-SETTINGS", "reject"),
    ("nothing measured", config("datasets/0/type", "accuracy"), CONFIG, "EP-PROFILE-SETTINGS", "reject"),
    ("a part", config(f"{AGENTIC}/num_trajectories_to_issue", 600), CONFIG, "EP-PROFILE-TRAJECTORIES", "reject"),
    ("none", config(f"{AGENTIC}/num_trajectories_to_issue", 0), CONFIG, "EP-PROFILE-TRAJECTORIES", "reject"),
    ("unsaid", config(f"{AGENTIC}/num_trajectories_to_issue", ...), CONFIG, "EP-PROFILE-TRAJECTORIES", "reject"),
    ("interrupted", measured("state", "interrupted"), SUMMARY, "EP-PROFILE-COMPLETE", "reject"),
    ("not complete", measured("complete", False), SUMMARY, "EP-PROFILE-COMPLETE", "reject"),
    ("a failure", measured("n_samples_failed", 1), SUMMARY, "EP-PROFILE-COMPLETE", "reject"),
    ("one lost", measured("n_samples_completed", MEASURED - 1), SUMMARY, "EP-PROFILE-COMPLETE", "reject"),
    (
        "a turn missing",
        lambda folder: made.change_data(folder / "scores.json", "turns/missing", 1),
        "scores.json",
        "EP-PROFILE-COMPLETE",
        "reject",
    ),
    ("no inline score", scores("accuracy_scores/0/dataset_type", "accuracy"), ACCURACY, "EP-PROFILE-INLINE", "reject"),
    ("inline", scores("accuracy_scores/0/score", 0.63), ACCURACY, "EP-PROFILE-INLINE", "reject"),
    ("short answers", measured("output_sequence_lengths/avg", 390.0), SUMMARY, "EP-PROFILE-OSL", "reject"),
    ("no SWE-bench", config("datasets/1/accuracy_config/eval_method", "x"), CONFIG, "EP-PROFILE-SWE", "reject"),
    ("50 instances", config(f"{EXTRAS}/num_instances", 50), CONFIG, "EP-PROFILE-SWE", "reject"),
    ("Qwen's template", config(f"{EXTRAS}/swebench_template", "qwen_tools"), CONFIG, "EP-PROFILE-SWE", "reject"),
    ("half a score", scores("accuracy_scores/1/complete", False), ACCURACY, "EP-PROFILE-SWE", "reject"),
]
BREAKS = {"EP-PROFILE-STALE", "EP-PROFILE-SPECULATION"}


@pytest.mark.parametrize(("what", "change", "file", "rule", "severity"), BREACHES, ids=[one[0] for one in BREACHES])
def test_one_change_breaks_a_rule(report: Path, what: str, change: Change, file: str, rule: str, severity: str) -> None:
    before = said(check(report))
    change(report)
    found = check(report)
    assert (rule, severity) in said(found) - before, what
    assert any(f.rule == rule and Path(f.path.partition(":")[0]).name == Path(file).name for f in found.findings)


def test_a_multiple_of_the_data_set_is_whole(report: Path) -> None:
    made.change_data(report / CONFIG, f"{AGENTIC}/num_trajectories_to_issue", 3 * TRAJECTORIES)
    assert "EP-PROFILE-TRAJECTORIES" not in {rule for rule, _ in said(check(report))}


@pytest.mark.parametrize(("conversations", "whole"), [(TRAJECTORIES, True), (TRAJECTORIES - 1, False), (20, False)])
def test_the_data_set_is_counted(report: Path, conversations: int, whole: bool) -> None:
    found = said(check(report, conversations=conversations))
    assert (("EP-PROFILE-TRAJECTORIES", "reject") in found) is not whole


def test_trajectories_that_never_ran_are_seen_in_the_events(report: Path) -> None:
    lines = (report / EVENTS).read_text().splitlines(keepends=True)
    (report / EVENTS).write_text("".join(line for line in lines if '"c7"' not in line))
    assert ("EP-PROFILE-TRAJECTORIES", "reject") in said(check(report, turns=counted(report)))


def test_an_answer_that_says_nothing_is_a_turn_that_failed(report: Path) -> None:
    lines = (report / EVENTS).read_text().replace('["TextModelOutput", "yes"]', '["TextModelOutput", ""]', 1)
    (report / EVENTS).write_text(lines)
    assert ("EP-PROFILE-COMPLETE", "reject") in said(check(report, turns=counted(report)))


def test_the_profile_is_that_of_the_last_commit_with_the_model() -> None:
    assert PROFILE.trajectories.value == 613
    assert PROFILE.inline_percent_at_least.value == 63.08
    assert (PROFILE.mean_output_tokens.value.at_least, PROFILE.mean_output_tokens.value.at_most) == (404, 494)


def test_an_unknown_profile_is_told_with_the_nearest() -> None:
    with pytest.raises(UnknownName, match="agentic-datacenter-kimi-k3"):
        profile_of(made.ROUND, "agentic-datacenter-kimi-k3")


@pytest.mark.parametrize("line", ["[]", "{", '{"event_type": 3}', "null", "[" * 100_000])
def test_events_that_are_none(tmp_path: Path, line: str) -> None:
    (tmp_path / EVENTS).write_text(json.dumps({"event_type": "session.started"}) + "\n" + line + "\n")
    with pytest.raises(LogError, match="no event as the client writes them") as caught:
        read_turns(tmp_path / EVENTS)
    assert caught.value.line == 2


def test_no_events(tmp_path: Path) -> None:
    with pytest.raises(LogError, match="cannot be read"):
        read_turns(tmp_path / EVENTS)
    (tmp_path / EVENTS).write_text("\n")
    assert read_turns(tmp_path / EVENTS, words) == TurnTotals(0, 0, 0, 0, None, None)


@pytest.mark.parametrize("data", [None, [], "x", ["ErrorData", None], ["TextModelOutput", 3, {}, "x"]])
def test_data_that_holds_no_answer(data: object) -> None:
    assert answer_of(data).says_nothing
