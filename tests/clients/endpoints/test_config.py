from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from harness.clients.endpoints import agentic
from harness.clients.endpoints.config import Choices, client_config, config_text
from harness.clients.endpoints.sizing import samples_to_issue
from harness.errors import ConfigError
from harness.gate.endpoints_config import CONFIG_CHECKS
from harness.gate.row_endpoints import check_endpoints_run
from harness.rules import TrajectoryRules, load
from tests.gate import made_endpoints as made
from tests.gate.test_endpoints import place_of

PACK = load("v6.1")


def choices(scenario: str, **changes: Any) -> Choices:
    given_: dict[str, Any] = {
        "name": "made",
        "scenario": scenario,
        "model": "Qwen/Qwen3-VL-235B-A22B-Instruct",
        "endpoints": ("http://127.0.0.1:30000", "http://127.0.0.1:30001"),
        "caps": {"performance": 150, "accuracy": 150},
        "samples": 48289,
        "rate": 70.0,
        "min_duration_ms": PACK.min_duration_ms.value,
        "workers": 4,
        "connections": 1024,
    }
    return Choices(**(given_ | changes))


def gate_says(folder: Path, benchmark: str, scenario: str, written: dict[str, Any]) -> list[str]:
    """The rejects of a whole row of this configuration, as the client would have resolved it."""
    made.make_row(folder, benchmark, scenario)
    resolved = {key: value for key, value in written.items() if value is not None}
    resolved["settings"]["drain"] = {}
    (folder / "config.yaml").write_text(yaml.safe_dump(resolved), encoding="utf-8")
    run_config = {"load_pattern": written["settings"]["load_pattern"]}
    made.change_data(folder / "performance" / "result_summary.json", "run_config", run_config)
    row = check_endpoints_run(folder, place_of(benchmark, scenario), PACK)
    return [finding.rule for finding in row.findings if finding.severity.value == "reject"]


@pytest.mark.parametrize("scenario", ["Offline", "Server", "Interactive"])
def test_what_the_client_is_told_passes_the_gate(scenario: str, tmp_path: Path) -> None:
    assert CONFIG_CHECKS
    assert gate_says(tmp_path, made.QWEN, scenario, client_config(PACK, made.QWEN, choices(scenario))) == []


@pytest.mark.parametrize("scenario", ["Offline", "Server"])
def test_token_benchmarks_are_told_by_the_same_code(scenario: str, tmp_path: Path) -> None:
    chosen = choices(scenario, model="openai/gpt-oss-120b", caps={"performance": 10240, "accuracy": 32768})
    written = client_config(PACK, made.GPT, chosen)
    assert gate_says(tmp_path, made.GPT, scenario, written) == []
    assert written["datasets"][0]["path"] == "data/perf/perf_eval_ref.parquet"
    assert [one["generation_config_override"] for one in written["datasets"][1:]] == [{"max_new_tokens": 32768}] * 3


def test_the_rounds_values_are_written_and_no_others() -> None:
    told = yaml.safe_load(config_text(PACK, made.QWEN, choices("Server")))
    assert told["settings"]["runtime"] == {
        "min_duration_ms": 600000,
        "scheduler_random_seed": PACK.seeds.schedule.value,
        "dataloader_random_seed": PACK.seeds.sample_index.value,
        "n_samples_to_issue": 48289,
    }
    assert told["model_params"].keys() == {"name", "max_new_tokens", "streaming"}  # no top_p in place of the model's
    assert told["settings"]["warmup"] == {"enabled": False, "salt": False}
    assert {one["generate_params"]["revision"] for one in told["datasets"]} == {made.REVISIONS["default"]}
    assert told["submission_ref"]["ruleset"] == "mlperf-inference-v6.1"
    assert "*id" not in config_text(PACK, made.QWEN, choices("Server"))


@pytest.mark.parametrize("scenario", ["Offline", "Server", "Interactive"])
def test_servers_that_would_sample_otherwise_are_told(scenario: str, tmp_path: Path) -> None:
    written = client_config(PACK, made.QWEN, choices(scenario, says_sampling=True))
    sampling = PACK.benchmark(made.QWEN).sampling.value
    said = {key: written["model_params"][key] for key in ("temperature", "top_p", "top_k", "repetition_penalty")}
    assert said == {**sampling.model_dump(include={"temperature", "top_p", "top_k"}), "repetition_penalty": 1.0}
    assert gate_says(tmp_path, made.QWEN, scenario, written) == []


def test_streams_where_the_scenario_is_paced() -> None:
    streaming = {
        s: client_config(PACK, made.QWEN, choices(s))["model_params"]["streaming"]
        for s in PACK.benchmark(made.QWEN).scenarios
    }
    assert streaming == {"Offline": "off", "Server": "on", "Interactive": "on"}


def test_workers_share_the_endpoints_alike() -> None:
    with pytest.raises(ValueError, match="cannot share"):
        choices("Server", workers=3)


def test_a_round_without_such_results_is_refused() -> None:
    with pytest.raises(ConfigError, match="takes no results of the endpoints client"):
        config_text(load("v6.0"), made.QWEN, choices("Server"))


def test_a_benchmark_that_nothing_tells_the_client_of_is_refused() -> None:
    rules = PACK.benchmark(made.AGENT).model_copy(update={"endpoints_client": None})
    untold = PACK.model_copy(update={"benchmarks": {**PACK.benchmarks, made.AGENT: rules}})
    with pytest.raises(ConfigError, match="nothing says yet"):
        config_text(untold, made.AGENT, choices("SingleStream"))


def of_trajectories(**changes: Any) -> Choices:
    given_ = {"model": "Qwen3.6-27B", "endpoints": ("http://127.0.0.1:30000",), "samples": None, "rate": None}
    caps = {"performance": 1024, "accuracy": 1024}
    return choices("SingleStream", **(given_ | {"caps": caps, "workers": 1, "connections": 1} | changes))


def test_trajectories_are_told_as_the_round_has_them(tmp_path: Path) -> None:
    written = client_config(PACK, made.AGENT, of_trajectories(chat_template_kwargs={"thinking": False}))
    assert gate_says(tmp_path, made.AGENT, "SingleStream", written) == []
    assert written["model_params"]["chat_template_kwargs"] == {"thinking": False}
    assert (written["type"], written["model_params"]["streaming"]) == ("online", "on")
    performance, accuracy = written["datasets"]
    assert performance["accuracy_config"] == {"eval_method": "agentic_inference_inline"}
    assert performance["agentic_inference"] == {
        "num_trajectories_to_issue": 20, "turn_timeout_s": 600.0, "enable_salt": False, "inject_tool_delay": False,
    }  # fmt: skip
    assert accuracy["generate_params"] == {
        "categories": ["non_live", "live", "hallucination"],
        "category_sample_pct": {"non_live": 62, "live": 10, "hallucination": 10},
        "subset_floor": 25,
    }
    settings = written["settings"]
    assert settings["runtime"] == {
        "min_duration_ms": 600000,
        "max_duration_ms": 14_400_000,
        "scheduler_random_seed": 16159082839903944936,
        "dataloader_random_seed": 2747215439041700203,
    }
    assert settings["load_pattern"] == {"type": "agentic_inference", "target_concurrency": 1}
    assert {key: settings["client"][key] for key in ("num_workers", "max_connections", "warmup_connections")} == {
        "num_workers": 1, "max_connections": 1, "warmup_connections": 0,
    }  # fmt: skip


def test_without_kwargs_none_are_written() -> None:
    assert "chat_template_kwargs" not in client_config(PACK, made.AGENT, of_trajectories())["model_params"]


def test_fewer_trajectories_and_questions_of_a_table_of_its_own() -> None:
    rules = PACK.benchmark(made.AGENT)
    assert isinstance(rules, TrajectoryRules)
    chosen = of_trajectories(trajectories=3, sampling=agentic.all_of_them(rules))
    performance, accuracy = client_config(PACK, made.AGENT, chosen)["datasets"]
    assert performance["agentic_inference"]["num_trajectories_to_issue"] == 3
    assert set(accuracy["generate_params"]["category_sample_pct"].values()) == {100}


def test_whom_the_round_s_seeds_displease_is_told() -> None:
    told = agentic.disagreement(PACK)
    for words in ("check_compliance.py", "42", "compliance/checker.py", "performance_check.py"):
        assert words in told


@given(rate=st.floats(0.01, 1e5), rows=st.integers(1, 50_000), ms=st.integers(1, 600_000), scheduled=st.booleans())
def test_a_run_lasts_as_long_as_it_must_in_whole_passes(rate: float, rows: int, ms: int, scheduled: bool) -> None:
    count = samples_to_issue(rate, rows, ms, scheduled=scheduled)
    assert count % rows == 0
    assert count / rate >= ms / 1e3 * (1 if scheduled else 1.1) * (1 - 1e-9)
    assert count - rows < rate * ms / 1e3 * 1.1 + 4 * math.sqrt(rate * ms / 1e3) + 1


def test_one_pass_at_the_rates_of_published_runs_would_have_been_too_short() -> None:
    assert samples_to_issue(101.56, 48289, 600_000, scheduled=False) == 2 * 48289
    assert samples_to_issue(69.42, 48289, 600_000, scheduled=True) == 48289


@pytest.mark.parametrize("rate", [0.0, -1.0, math.inf, math.nan])
def test_a_rate_that_is_none_sizes_nothing(rate: float) -> None:
    with pytest.raises(ConfigError, match="cannot size a run"):
        samples_to_issue(rate, 10, 1000, scheduled=True)
