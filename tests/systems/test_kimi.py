"""Kimi K2.6 on eight B200: what its two files say fits the machine, the benchmark and what was published."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.config import Project
from harness.config.engine_checks import check_engine
from harness.config.engine_subject import Subject, keys_of
from harness.config.engines import HttpEngine, ServedCheckpoint
from harness.config.models import UnmeasuredRate
from harness.engines.launch.planning import Surroundings, plan_servers
from harness.rules import load

PROJECT = Project(Path(__file__).parents[2])
PACK = load("v6.1")
SYSTEM, BENCHMARK = "B200-SXM-180GBx8_TRT", "qwen3.6-27b"
VARIANTS = (None, "sglang")
RULES = PACK.benchmark(BENCHMARK)


def engine_of(variant: str | None, scenario: str = "SingleStream") -> HttpEngine:
    engine = PROJECT.benchmark(SYSTEM, BENCHMARK, variant).engine_of(scenario)
    assert isinstance(engine, HttpEngine)
    return engine


@pytest.mark.parametrize("division", ["closed", "open"])
@pytest.mark.parametrize("scenario", ["SingleStream", "Offline", "Server"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_it_fits_and_keeps_the_cache_from_turn_to_turn(variant: str | None, scenario: str, division: str) -> None:
    file = PROJECT.benchmark(SYSTEM, BENCHMARK, variant)
    subject = Subject(SYSTEM, scenario, PROJECT.system(SYSTEM), RULES, file.output_caps, division=division)
    engine = engine_of(variant, scenario)
    told = check_engine(engine, subject)
    assert any(line.startswith("GPUs: 1 replica x tensor 8") and line.endswith("= 8 GPUs") for line in told)
    assert any(line.startswith("memory: weights: 594.2 GB") for line in told)
    assert any(line.startswith("memory: requests of 32768 tokens that fit at once") for line in told)
    assert not any("not checked" in line for line in told)
    assert keys_of(engine).meaning(engine.options, "prefix_reuse") is True


@pytest.mark.parametrize("variant", VARIANTS)
def test_as_many_fit_at_once_as_are_under_way(variant: str | None) -> None:
    file, engine = PROJECT.benchmark(SYSTEM, BENCHMARK, variant), engine_of(variant)
    assert file.agentic is not None
    assert file.agentic.chat_template_kwargs == {"thinking": False}
    assert keys_of(engine).meaning(engine.options, "max_batch") == file.agentic.max_concurrency
    assert engine.clients.connections >= file.agentic.max_concurrency


def test_each_engine_has_the_weights_that_it_can_serve() -> None:
    served = [engine_of(variant).checkpoint for variant in VARIANTS]
    assert [one.name for one in served if isinstance(one, ServedCheckpoint)] == [
        "nvidia/Kimi-K2.6-NVFP4",
        "moonshotai/Kimi-K2.6",
    ]


@pytest.mark.parametrize("variant", VARIANTS)
def test_rates_are_guesses_from_what_was_published(variant: str | None) -> None:
    scenarios = PROJECT.benchmark(SYSTEM, BENCHMARK, variant).scenarios
    alone = scenarios["SingleStream"].target_qps
    assert isinstance(alone, UnmeasuredRate)
    assert alone.guess == pytest.approx(RULES.performance_data.value.trajectories / 776)
    assert scenarios["Server"].target_latency_ms is not None


@pytest.mark.parametrize(("variant", "flag"), [(None, "--tool_parser"), ("sglang", "--tool-call-parser")])
def test_the_server_is_told_how_the_model_writes_calls(variant: str | None, flag: str, tmp_path: Path) -> None:
    around = Surroundings(
        gpus_each=8, checkpoint=Path("/models/k"), folder=tmp_path, caches=tmp_path, vocabulary=tmp_path, environ={}
    )
    (plan,) = plan_servers(engine_of(variant), around)
    words = list(plan.command)
    assert words[words.index(flag) + 1] == "kimi_k2"
    assert not any("tool_parser" in text for text in plan.files.values())
