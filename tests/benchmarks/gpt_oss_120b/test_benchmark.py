from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from harness import benchmarks
from harness.benchmarks.base import Benchmark, Made
from harness.benchmarks.gpt_oss_120b import files, grading
from harness.benchmarks.gpt_oss_120b.benchmark import GptOss120b
from harness.benchmarks.gpt_oss_120b.judge.settings import JudgeSettings, judged
from harness.errors import DatasetError, MissingError
from harness.rules import Subset, TokenRules, load
from tests.benchmarks.gpt_oss_120b.conftest import SMALL, SMALL_ACCURACY


def small_rules() -> TokenRules:
    """The round's rules with the counts of the small stand-in."""
    rules = load("v6.1").token_benchmark("gpt-oss-120b")
    rows = {
        "performance": SMALL.performance,
        "accuracy": sum(SMALL_ACCURACY.values()),
        "TEST07": SMALL.audit,
        "TEST09": SMALL.performance,
    }
    subsets = {
        name: Subset(samples=part.questions * part.repeats, repeats=part.repeats)
        for name, part in SMALL.accuracy.items()
    }
    return rules.model_copy(
        update={
            "datasets": {
                which: ruled.model_copy(update={"value": rows[which]}) for which, ruled in rules.datasets.items()
            },
            "accuracy_subsets": rules.accuracy_subsets.model_copy(update={"value": subsets}),
        }
    )


@pytest.fixture
def benchmark() -> Benchmark:
    return GptOss120b(small_rules())


@pytest.mark.harmony
def test_from_stand_in_to_accuracy_txt(benchmark: Benchmark, small: Made, tmp_path: Path) -> None:
    made = benchmark.make_dataset(tmp_path, seed=7)
    assert made.sha256 == small.sha256
    data = benchmark.dataset(tmp_path, "accuracy")
    shares = {"aime25": 0.6, "gpqa_diamond": 0.4, "livecodebench_v6": 0.75}
    script = benchmark.scripted_answers(data, shares, seed=5, answer_tokens=8)
    with judged(JudgeSettings(sandbox="none")):  # With namespaces it is tested where the judge is.
        score = benchmark.score(((row, script[row].tobytes()) for row in range(len(script))), data)
    assert [(s.name, s.correct, s.wrong, s.samples, s.repeats) for s in score.subsets] == [
        ("aime25", 12, 8, 20, 4),
        ("gpqa_diamond", 12, 18, 30, 5),
        ("livecodebench_v6", 9, 3, 12, 3),
    ]
    assert (score.key, score.unscored, score.stand_in) == ("exact_match", 0, True)
    assert score.value == pytest.approx((12 / 4 + 12 / 5 + 9 / 3) / (20 / 4 + 30 / 5 + 12 / 3) * 100)
    text = benchmark.accuracy_text(score)
    assert "'exact_match': 56.000\n" in text


@pytest.mark.harmony
def test_without_the_tests_of_its_problems_livecodebench_is_unscored(benchmark: Benchmark, tmp_path: Path) -> None:
    made = benchmark.make_dataset(tmp_path, seed=7)
    shutil.rmtree(made.folder / files.TESTS_FOLDER)
    data = benchmark.dataset(tmp_path, "accuracy")
    (line,) = benchmark.ready_to_score(data)
    assert line.startswith("LiveCodeBench will be unscored: LiveCodeBench's tests are not there")
    script = benchmark.scripted_answers(data, {"aime25": 0.6, "livecodebench_v6": 0.5}, seed=5, answer_tokens=8)
    score = benchmark.score(((row, script[row].tobytes()) for row in range(len(script))), data)
    assert (score.value, score.unscored, score.subsets[2].wrong) == (None, 12, 0)
    text = benchmark.accuracy_text(score)
    assert "unscored: 12" in text
    assert "LiveCodeBench's tests are not there" in text
    assert "exact_match" not in text


@pytest.mark.harmony
def test_a_failing_self_test_stops_the_leg_and_the_score(
    benchmark: Benchmark, small: Made, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: object) -> list[str]:
        raise MissingError("the judge's self test failed: a right program came out as crashed")

    monkeypatch.setattr(grading, "self_test", fails)
    grading._proved.cache_clear()
    data = benchmark.dataset(small.folder.parent, "accuracy")
    with pytest.raises(MissingError, match="self test failed"):
        benchmark.ready_to_score(data)
    with pytest.raises(MissingError, match="self test failed"):
        benchmark.score([], data)
    audit = benchmark.dataset(small.folder.parent, "TEST07")
    assert benchmark.ready_to_score(audit) == ()  # No program there, nothing to prove.


@pytest.mark.harmony
def test_tests_of_another_release_are_told_before_the_leg(
    benchmark: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = benchmark.make_dataset(tmp_path, seed=7)
    monkeypatch.setattr(grading, "_proved", lambda *_: ())
    data = benchmark.dataset(tmp_path, "accuracy")
    (line,) = benchmark.ready_to_score(data)
    assert "self test passed" in line
    shard = made.folder / files.TESTS_FOLDER / "test.jsonl"
    shard.write_text(shard.read_text(encoding="utf-8").split("\n", 1)[0], encoding="utf-8")
    with pytest.raises(DatasetError, match=r"(?s)3 of 4 problems have no tests: standin_2.*where: .*livecodebench"):
        benchmark.ready_to_score(data)


def test_running_code_without_a_sandbox_is_a_deviation_of_the_accuracy_leg() -> None:
    benchmark = GptOss120b(load("v6.1").token_benchmark("gpt-oss-120b"))
    assert benchmark.deviations("accuracy") == ()
    with judged(JudgeSettings(sandbox="none")):
        assert benchmark.deviations("accuracy") == ("model-written code ran without a sandbox",)
        assert benchmark.deviations("performance") == ()
    assert benchmark.deviations("accuracy") == ()


@pytest.mark.harmony
def test_the_audit_is_scored_on_its_own_and_has_a_value(benchmark: Benchmark, small: Made) -> None:
    data = benchmark.dataset(small.folder.parent, "TEST07")
    script = benchmark.scripted_answers(data, {"gpqa_diamond": 0.7}, seed=5, answer_tokens=8)
    score = benchmark.score(((row, script[row].tobytes()) for row in range(len(script))), data)
    assert score.value == pytest.approx(70)
    assert "'exact_match': 70.000" in benchmark.accuracy_text(score)


@pytest.mark.harmony
def test_the_table_of_one_leg_is_not_that_of_another(benchmark: Benchmark, small: Made) -> None:
    for which, rows in (("performance", 12), ("accuracy", 62), ("TEST07", 30)):
        data = benchmark.dataset(small.folder.parent, which)
        assert (data.table, data.rows) == (which, rows)


@pytest.mark.harmony
def test_the_rest_of_what_runs_ask_for(benchmark: Benchmark, small: Made) -> None:
    data = benchmark.dataset(small.folder.parent, "performance")
    assert len(benchmark.warmup_prompts(3, like=data, seed=1)) == 3
    (canary,) = benchmark.canaries(stand_in_checkpoint=True)
    assert canary.check([np.array(benchmark.encode("56"), np.int32)] * len(canary.prompts)) == []
    strict, final = benchmark.canaries(stand_in_checkpoint=False)
    assert final.max_new_tokens > strict.max_new_tokens
    assert len(strict.check([np.array(benchmark.encode("56"), np.int32)] * len(strict.prompts))) == 3


def test_sampling_is_the_rules_with_the_cap_of_the_leg() -> None:
    rules = load("v6.1").token_benchmark("gpt-oss-120b")
    benchmark = GptOss120b(rules)
    performance = benchmark.sampling("performance", seed=9)
    assert (performance.temperature, performance.top_p, performance.top_k, performance.seed) == (1.0, 1.0, 0, 9)
    assert performance.stop_token_ids == (200002,)
    assert performance.max_new_tokens == rules.output_caps.performance.value
    assert benchmark.sampling("TEST07", seed=9) == performance
    assert benchmark.sampling("accuracy", seed=9).max_new_tokens == rules.output_caps.accuracy.value
    assert benchmark.sampling("accuracy", seed=9, max_new_tokens=32).max_new_tokens == 32


def test_a_stand_in_of_other_counts_is_not_taken_for_the_round(tmp_path: Path) -> None:
    with pytest.raises(DatasetError):
        benchmarks.get("gpt-oss-120b", load("v6.1")).dataset(tmp_path, "accuracy")


def test_importing_a_benchmark_imports_nothing_heavy() -> None:
    program = (
        "import sys; from harness import benchmarks, rules; "
        "benchmarks.get('gpt-oss-120b', rules.load('v6.1')); "
        "print(sorted({'pyarrow', 'openai_harmony', 'torch', 'transformers'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
