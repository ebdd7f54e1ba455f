"""Small trees of the endpoints client's results that have nothing against them, for tests to break in one place."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import yaml

from harness.rules import RulePack, load
from tests.gate.made_tree import SUBMITTER, SYSTEM, system, write

GPT, QWEN, AGENT = "gpt-oss-120b", "qwen3-vl-235b-a22b", "qwen3.6-27b"
SCENARIOS = {
    GPT: ("Offline", "Server", "Interactive"),
    QWEN: ("Offline", "Server", "Interactive"),
    AGENT: ("SingleStream",),
}
ROUND: RulePack = load("v6.1")
SECONDS = 700
Data = dict[str, Any]
REVISIONS = {
    "default": "d5c517c509f5aca99053897ef1de797d6d7e5aa5",
    "Interactive": "2bc8c6c4b6ebd27b880b0cba519cb45d09867045",
}


def make_endpoints_tree(root: Path, benchmark: str, division: str) -> Path:
    """Lays out ``<root>/<division>/Acme`` with one system and all scenarios; returns that folder."""
    home = root / division / SUBMITTER
    kind = ROUND.benchmark(benchmark).categories.value[0]
    write(home / "systems" / f"{SYSTEM}.json", json.dumps(system(division) | {"system_type": kind}, indent=1))
    write(home / "src" / benchmark / "main.py", "print()\n")
    write(home / "documentation" / "calibration.md", "No quantisation.\n")
    write(home / "documentation" / "bandwidth.md", "One network card.\n")
    for scenario in SCENARIOS[benchmark]:
        make_row(endpoints_row(home, benchmark, scenario), benchmark, scenario)
    return home


def endpoints_row(home: Path, benchmark: str, scenario: str) -> Path:
    return home / "results" / SYSTEM / benchmark / scenario


def make_row(folder: Path, benchmark: str, scenario: str) -> None:
    write(folder / "measurements.json", json.dumps(dict.fromkeys(ROUND.measurements_fields.value, "No")))
    write(folder / "README.md", "inference-endpoint benchmark from-config -c config.yaml\n")
    write(folder / "config.yaml", yaml.safe_dump(config(benchmark, scenario), sort_keys=False))
    write(folder / "performance" / "result_summary.json", json.dumps(summary(benchmark, scenario), indent=2))
    write(folder / "accuracy" / "accuracy_results.json", json.dumps(accuracy(benchmark, scenario), indent=2))


def config(benchmark: str, scenario: str) -> Data:
    """A resolved configuration as the client writes it: no nulls, its defaults spelled out."""
    online = scenario != "Offline"
    seeds = ROUND.seeds
    return {
        "name": f"{benchmark}-{scenario}",
        "version": "1.0",
        "type": "online" if online else "offline",
        "model_params": _MODEL_PARAMS[benchmark] | _DEFAULTS | {"streaming": "on" if online else "off"},
        "datasets": _DATASETS[benchmark](scenario),
        "settings": {
            "runtime": {
                "min_duration_ms": ROUND.min_duration_ms.value,
                "max_duration_ms": 0,
                "scheduler_random_seed": seeds.schedule.value,
                "dataloader_random_seed": seeds.sample_index.value,
            },
            "load_pattern": _load_pattern(benchmark, online),
            "client": {"num_workers": 1, "max_connections": 1} if benchmark == AGENT else {"num_workers": 8},
            "warmup": {"enabled": False},
            "early_stopping": {"enabled": True},
        },
        "endpoint_config": {"endpoints": ["http://localhost:8000"], "api_type": "openai"},
        "report_dir": "results/run",
    }


_DEFAULTS = {"min_new_tokens": 1, "skip_special_tokens": True}
_MODEL_PARAMS: dict[str, Data] = {
    GPT: {"name": "openai/gpt-oss-120b", "temperature": 1.0, "top_k": 0, "top_p": 1.0, "max_new_tokens": 10240},
    QWEN: {"name": "Qwen/Qwen3-VL-235B-A22B-Instruct", "max_new_tokens": 150},
    AGENT: {
        "name": "Qwen3.6-27B-Q4_K_M",
        "tokenizer_name": "Qwen/Qwen3.6-27B",
        "temperature": 0.0,
        "seed": 42,
        "max_new_tokens": 1024,
    },
}


def _gpt_datasets(scenario: str) -> list[Data]:
    def scored(name: str, repeats: int) -> Data:
        return {
            "name": f"{name}::gptoss",
            "type": "accuracy",
            "generation_config_override": {"max_new_tokens": 32768},
            "accuracy_config": {"eval_method": "pass_at_1", "num_repeats": repeats},
        }

    performance = {"name": "perf-test", "type": "performance", "path": "data/perf_eval_ref.parquet"}
    return [performance, scored("aime25", 8), scored("gpqa", 5), scored("livecodebench", 3)]


def _qwen_datasets(scenario: str) -> list[Data]:
    name = "shopify_product_catalogue" + ("_8k" if scenario == "Interactive" else "") + "::q3vl"
    params = {"revision": REVISIONS.get(scenario, REVISIONS["default"])}
    scorer = {"eval_method": "shopify_category_f1", "ground_truth": "ground_truth_category", "num_repeats": 1}
    return [
        {"name": name, "type": "performance", "generate_params": params},
        {"name": name, "type": "accuracy", "generate_params": params, "accuracy_config": scorer},
    ]


def _agent_datasets(scenario: str) -> list[Data]:
    return [
        {
            "name": "agentic_coding",
            "type": "performance",
            "path": "data/agentic_coding_2.5h.jsonl",
            "accuracy_config": {"eval_method": "agentic_inference_inline", "num_repeats": 1},
            "agentic_inference": {
                "turn_timeout_s": 600.0,
                "enable_salt": False,
                "inject_tool_delay": False,
                "num_trajectories_to_issue": 20,
                "stop_issuing_on_first_user_complete": False,
            },
        },
        {
            "name": "bfcl_v4::function_calling",
            "type": "accuracy",
            "generate_params": {
                "categories": ["non_live", "live", "hallucination"],
                "category_sample_pct": {"non_live": 62, "live": 10, "hallucination": 10},
                "subset_floor": 25,
            },
            "accuracy_config": {"eval_method": "bfcl_v4", "num_repeats": 1},
        },
    ]


_DATASETS: dict[str, Callable[[str], list[Data]]] = {GPT: _gpt_datasets, QWEN: _qwen_datasets, AGENT: _agent_datasets}


def _load_pattern(benchmark: str, online: bool) -> Data:
    if benchmark == AGENT:
        return {"type": "agentic_inference", "target_concurrency": 1}
    if online:
        return {"type": "poisson", "target_qps": 70.0, "use_legacy_loadgen_qps_metrics": True}
    return {"type": "max_throughput", "target_qps": 60.0}


def rows(benchmark: str, scenario: str) -> int:
    """Samples of one pass."""
    return 1007 if benchmark == AGENT else ROUND.benchmark(benchmark).rows("performance", scenario)


_P99_NS = {"Server": 1_000_000_000, "Interactive": 900_000_000, "Offline": 9_000_000_000, "SingleStream": 2_000_000_000}


def summary(benchmark: str, scenario: str) -> Data:
    """A performance report as the client writes it, of :data:`SECONDS`, rates by its own two definitions."""
    count, duration_ns, tokens = rows(benchmark, scenario), SECONDS * 10**9, 1280
    poisson = config(benchmark, scenario)["settings"]["load_pattern"]["type"] == "poisson"
    window_ns = duration_ns - 5 * 10**9
    seconds = (window_ns if poisson else duration_ns) / 1e9
    p99_ns = _P99_NS[scenario]
    run_config = config(benchmark, scenario)["settings"]
    return {
        "version": "0.1.0",
        "git_sha": "ea33275",
        "test_started_at": 0,
        "n_samples_issued": count,
        "n_samples_completed": count,
        "n_samples_failed": 0,
        "duration_ns": duration_ns,
        "state": "complete",
        "complete": True,
        "ttft": series(count, p99_ns // 2) if scenario != "Offline" else {},
        "tpot": series(count, 10_000_000) if scenario != "Offline" else {},
        "latency": series(count, p99_ns),
        "output_sequence_lengths": series(count, tokens) | {"avg": float(tokens), "total": count * tokens},
        "input_sequence_lengths": {},
        "legacy_loadgen_window_duration_ns": window_ns if poisson else None,
        "qps": (count - 1 if poisson else count) / seconds,
        "tps": count * tokens / seconds,
        "finish_reason_counts": {"stop": count, "length": 0, "tool_calls": 0, "content_filter": 0, "other": 0},
        "run_config": {
            "load_pattern": run_config["load_pattern"],
            "warmup": run_config["warmup"],
            **{name: run_config["runtime"][name] for name in ("scheduler_random_seed", "dataloader_random_seed")},
        },
    }


def series(count: int, p99: int) -> Data:
    """A series of the report whose 99th percentile and its early-stopping estimate are ``p99``."""
    share = {"99.9": 1.1, "99.0": 1.0, "95.0": 0.8, "90.0": 0.7, "50.0": 0.5}
    percentiles = {name: p99 * part for name, part in share.items()}
    return {
        "total": count * p99 // 2,
        "min": p99 // 10,
        "max": p99 * 2,
        "median": p99 * 0.5,
        "avg": p99 * 0.5,
        "std_dev": p99 * 0.1,
        "percentiles": percentiles,
        "early_stopping_percentiles": percentiles,
        "histogram": {"buckets": [[0, p99 * 2]], "counts": [count]},
    }


def entry(name: str, score: float, samples: int, repeats: int = 1, **more: object) -> Data:
    """What the client writes of one scored data set."""
    total = samples * repeats
    return {
        "dataset_name": name,
        "extractor": None,
        "ground_truth_column": "ground_truth",
        "score": score,
        "unit_samples": samples,
        "num_repeats": repeats,
        "total_samples": total,
        "duration_s": 400.0,
        "complete": True,
        "dataset_type": "accuracy",
        "response_counts": {"issued": total, "scored": total, "empty": 0, "missing": 0},
        **more,
    }


def accuracy(benchmark: str, scenario: str) -> Data:
    entries = _ACCURACY[benchmark](scenario)
    scored = [one["score"] for one in entries if one["dataset_type"] == "accuracy"]
    return {"average_accuracy": sum(scored) / len(scored), "accuracy_scores": entries}


def _bfcl() -> Data:
    breakdown = {
        "overall_accuracy": 86.83,
        "normalized_single_turn_score": 87.27,
        "category_scores": {"non_live": 82.09, "live": 88.24, "hallucination": 91.48},
        "unscored_subsets": [],
        "total_samples": 995,
        "issued_samples": 995,
    }
    return entry("bfcl_v4", 0.8683, 995, breakdown=breakdown)


def _inline() -> Data:
    whole = entry("performance", 0.6158, 1007, dataset_type="performance")
    return {key: value for key, value in whole.items() if key != "response_counts"}


_ACCURACY: Mapping[str, Callable[[str], list[Data]]] = {
    GPT: lambda scenario: [
        entry("aime25", 0.9, 30, 8),
        entry("gpqa", 0.8, 198, 5),
        entry("livecodebench", 0.85, 1055, 3),
    ],
    QWEN: lambda scenario: [
        entry("shopify_product_catalogue_8k", 0.787, 8000)
        if scenario == "Interactive"
        else entry("shopify_product_catalogue", 0.788, 48289)
    ],
    AGENT: lambda scenario: [_bfcl(), _inline()],
}  # fmt: skip


def change_data(path: Path, dotted: str, value: object) -> None:
    """Sets what a path of keys leads to in a JSON or YAML file; Ellipsis removes it. Parts are split at ``/``."""
    yaml_file = path.suffix in (".yaml", ".yml")
    data = yaml.safe_load(path.read_text()) if yaml_file else json.loads(path.read_text())
    *way, last = (int(part) if part.isdigit() else part for part in dotted.split("/"))
    inner = data
    for part in way:
        inner = inner[part]
    if value is ...:
        del inner[last]
    else:
        inner[last] = value
    path.write_text(yaml.safe_dump(data, sort_keys=False) if yaml_file else json.dumps(data))
