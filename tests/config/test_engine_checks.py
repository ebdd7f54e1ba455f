"""What is refused of an engine before anything is started, and the arithmetic that is shown of one that passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from harness import rules
from harness.config import engine_subject
from harness.config.engine_checks import check_engine
from harness.config.engine_subject import Subject, declared_weights, gpus_in_name
from harness.config.merge import merged
from harness.config.models import BenchmarkFile, OutputCaps, SystemFile
from harness.config.yaml_files import read_model_and_places
from harness.errors import ConfigError, UnknownName
from harness.rules import BenchmarkRules, RulePack
from harness.rules.models import ModelFacts, find

PACK = rules.load("v6.1")
RULES = PACK.benchmark("gpt-oss-120b")
SYSTEM = "B200-SXM-180GBx8_TRT"
ENGINE: dict[str, Any] = {
    "kind": "http",
    "server": "trtllm-serve",
    "version": "1.2",
    "checkpoint": {"name": "openai/gpt-oss-120b", "path": "/models/gpt-oss-120b", "weight_data_type": "mxfp4"},
    "replicas": 8,
    "options": {
        "tensor_parallel_size": 1,
        "max_batch_size": 896,
        "max_seq_len": 35840,
        "kv_cache_config": {"dtype": "fp8", "free_gpu_memory_fraction": 0.95, "enable_block_reuse": False},
    },
}
DRAFTS: dict[str, Any] = {
    "decoding_type": "Eagle",
    "max_draft_len": 3,
    "speculative_model_dir": "/models/gpt-oss-120b-Eagle3-long-context",
    "allow_advanced_sampling": True,
}
VLLM: dict[str, Any] = {
    "server": "vllm",
    "version": "0.32",
    "options": {"max-model-len": 35840, "enable-prefix-caching": False},
}
SGLANG: dict[str, Any] = {
    "server": "sglang",
    "version": "0.5.23",
    "options": {"context_length": 35840, "disable_radix_cache": True},
}
MACHINE: dict[str, Any] = {
    "system_name": "a",
    "number_of_nodes": 1,
    "cooling": None,
    "host_networking_topology": None,
    "accelerators_per_node": 8,
    "accelerator_memory_capacity": "180 GB",
}


def checked(
    tmp_path: Path,
    engine: dict[str, Any] | None = None,
    *,
    whole: dict[str, Any] | None = None,
    machine: dict[str, Any] | None = None,
    scenario: str = "Offline",
    own: dict[str, Any] | None = None,
    system: str = SYSTEM,
    division: str | None = "closed",
    caps: OutputCaps | None = None,
    ruled: BenchmarkRules = RULES,
    weights: str | None = None,
) -> list[str]:
    """Checks ENGINE with changes (or ``whole`` in its place), as a file has it; ``own`` are keys of the scenario."""
    written = merged(ENGINE, engine or {}) if whole is None else whole
    path = tmp_path / "gpt-oss-120b.yaml"
    scenarios = {"Offline": {"target_qps": 5}, scenario: {"target_qps": 5, **(own or {})}}
    path.write_text(yaml.safe_dump({"engine": written, "scenarios": scenarios}, sort_keys=False))
    file, places = read_model_and_places(path, BenchmarkFile)
    subject = Subject(
        system=system,
        scenario=scenario,
        machine=SystemFile.model_validate(MACHINE | (machine or {})),
        rules=ruled,
        caps=caps or OutputCaps(),
        division=division,
        declared_weights=weights,
        places=places,
    )
    return check_engine(file.engine_of(scenario), subject)


def refused(tmp_path: Path, engine: dict[str, Any] | None = None, **changes: Any) -> ConfigError:
    with pytest.raises(ConfigError) as caught:
        checked(tmp_path, engine, **changes)
    assert caught.value.exit_code == 2
    return caught.value


def line_of(tmp_path: Path, text: str) -> str:
    """Where a text stands in the file that was checked."""
    path = tmp_path / "gpt-oss-120b.yaml"
    (number,) = [i for i, line in enumerate(path.read_text().splitlines(), 1) if text in line]
    return f"{path}:{number}"


def swapped(server: dict[str, Any], **options: Any) -> dict[str, Any]:
    """ENGINE as another server has it."""
    return {**ENGINE, **server, "options": {**server["options"], **options}}


def test_the_published_configuration_passes_with_its_arithmetic(tmp_path: Path) -> None:
    told = checked(tmp_path)
    assert told == [
        "GPUs: 8 replicas x tensor 1 x pipeline 1 x context 1 = 8 GPUs",
        "lengths, performance: 15330 + 10240 of 35840 tokens",
        "lengths, accuracy: prompts + 32768 of 35840 tokens",
        "precision: weights mxfp4, KV cache fp8",
        "tensor 1 divides 64 heads, 8 KV heads, 201088 tokens",
        "memory: weights: 65.2 GB / (tensor 1 x pipeline 1) = 65.2 GB a GPU",
        "memory: KV cache: 0.95 x (180.0 GB - 65.2 GB) = 109.0 GB a GPU",
        "memory: KV of a request: 18 layers x 1024 elements x 1 bytes x 35840 tokens = 0.661 GB",
        "memory: and 18 layers that see 128 tokens at most, counted with so many = 0.002 GB",
        "memory: requests of 35840 tokens that fit at once: 109.0 GB / 0.663 GB = 164"
        " (max_batch is 896: beyond, requests wait or are shorter)",
    ]


@pytest.mark.parametrize("server", [VLLM, SGLANG], ids=["vllm", "sglang"])
def test_other_servers_pass_too(tmp_path: Path, server: dict[str, Any]) -> None:
    assert checked(tmp_path, whole=swapped(server))


def test_tensorrt_llm_in_process_is_held_against_the_same_list(tmp_path: Path) -> None:
    inside = {key: value for key, value in ENGINE.items() if key != "server"} | {"kind": "trtllm"}
    assert checked(tmp_path, whole=inside) == checked(tmp_path)
    wrong = {**inside, "options": {"max_batch_siz": 1}}
    assert "max_batch_size" in (refused(tmp_path, whole=wrong).mend or "")


@pytest.mark.parametrize("engine", [{"kind": "scripted"}, {"kind": "torch", "checkpoint": "/models/tiny"}])
def test_embedded_engines_have_nothing_to_check(tmp_path: Path, engine: dict[str, Any]) -> None:
    assert checked(tmp_path, whole=engine, system="CPU-torch") == []


# -- options -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "mend", "line"),
    [
        ({"max_batch_siz": 9}, "did you mean 'max_batch_size'?", "max_batch_siz:"),
        ({"kv_cache_config": {"dtyp": "fp8"}}, "did you mean 'kv_cache_config.dtype'?", "dtyp:"),
        (
            {"scheduler_config": {"dynamic_batch_config": {"enable_batch_size_tunin": True}}},
            "did you mean 'scheduler_config.dynamic_batch_config.enable_batch_size_tuning'?",
            "enable_batch_size_tunin:",
        ),
    ],
)
def test_a_typo_at_each_level_of_options(tmp_path: Path, options: dict[str, Any], mend: str, line: str) -> None:
    error = refused(tmp_path, {"options": options})
    assert isinstance(error, UnknownName)
    assert error.what.startswith("unknown option of TensorRT-LLM 1.2 ")
    assert error.mend == mend
    assert error.where == line_of(tmp_path, line)


def test_an_option_that_has_another_name_here(tmp_path: Path) -> None:
    error = refused(tmp_path, {"options": {"kv_cache_dtype": "fp8"}})
    assert error.mend == "write kv_cache_config.dtype"
    assert error.where == line_of(tmp_path, "kv_cache_dtype")


def test_an_option_of_a_scenario_is_told_at_its_own_line(tmp_path: Path) -> None:
    error = refused(tmp_path, scenario="Server", own={"engine_options": {"stream_intervall": 20}})
    assert error.where == line_of(tmp_path, "stream_intervall")
    own = {**ENGINE, "options": {"max_seq_lenn": 1}}
    error = refused(tmp_path, scenario="Server", own={"engine": own})
    assert error.where == line_of(tmp_path, "max_seq_lenn")


def test_a_version_without_a_list(tmp_path: Path) -> None:
    error = refused(tmp_path, {"version": "0.9"})
    assert isinstance(error, UnknownName)
    assert "1.2" in (error.expected or "")


# -- GPUs --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("system", "count"),
    [
        ("B200-SXM-180GBx8_TRT", 8),
        ("GB300-NVL4_GB300-288GB_aarch64x4_TRT", 4),
        ("GB300-NVL72_GB300-288GB_aarch64x64_TRT", 64),
        ("server_x86_64x2", 2),
        ("server_x86_64_TRT", None),
        ("CPU-torch", None),
        ("2x8-way", None),
    ],
)
def test_the_accelerators_that_a_name_tells(system: str, count: int | None) -> None:
    assert gpus_in_name(system) == count


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ({"replicas": 4}, "the engine takes 4 GPUs, the name B200-SXM-180GBx8_TRT says 8"),
        ({"options": {"tensor_parallel_size": 2}}, "the engine takes 16 GPUs"),
        ({"replicas": 2, "options": {"tensor_parallel_size": 2, "pipeline_parallel_size": 4}}, "takes 16 GPUs"),
    ],
)
def test_gpus_that_are_not_the_systems(tmp_path: Path, engine: dict[str, Any], said: str) -> None:
    error = refused(tmp_path, engine)
    assert said in error.what
    assert error.where == line_of(tmp_path, "replicas:")
    assert "replicas x tensor" in (error.expected or "")


def test_one_of_something_is_no_more(tmp_path: Path) -> None:
    error = refused(tmp_path, {"replicas": 1})
    assert error.what.startswith("the engine takes 1 GPU, ")
    assert "1 replica x tensor 1 x pipeline 1 x context 1 = 1 GPU" in (error.expected or "")


def test_gpus_are_counted_over_all_parallel_ways(tmp_path: Path) -> None:
    told = checked(tmp_path, {"replicas": 2, "options": {"tensor_parallel_size": 2, "pipeline_parallel_size": 2}})
    assert told[0] == "GPUs: 2 replicas x tensor 2 x pipeline 2 x context 1 = 8 GPUs"
    told = checked(tmp_path, whole=swapped(VLLM, data_parallel_size=4) | {"replicas": 2})
    assert told[0] == "GPUs: 2 replicas x tensor 1 x pipeline 1 x context 1 x data 4 = 8 GPUs"


def test_gpus_that_the_description_counts_otherwise(tmp_path: Path) -> None:
    error = refused(tmp_path, machine={"accelerators_per_node": 4})
    assert "system.yaml (accelerators_per_node 4 x number_of_nodes 1) says 4" in error.what
    assert checked(tmp_path, machine={"accelerators_per_node": 4, "number_of_nodes": 2})
    assert checked(tmp_path, machine={"accelerators_per_node": None})


@pytest.mark.parametrize("value", [0, -1, 1.5, "2", True, [1]])
def test_a_count_that_is_none(tmp_path: Path, value: object) -> None:
    error = refused(tmp_path, {"options": {"tensor_parallel_size": value}})
    assert "tensor_parallel_size is" in error.what
    assert error.where == line_of(tmp_path, "tensor_parallel_size")


# -- lengths -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("most", "said"),
    [
        (
            25569,
            "max_seq_len is 25569: too few for the performance leg's output cap of 10240 tokens and prompts of 15330",
        ),
        (32767, "too few for the accuracy leg's output cap of 32768 tokens and prompts of 0"),
        (131073, "max_seq_len is 131073, the model has 131072 positions"),
    ],
)
def test_lengths_that_do_not_fit(tmp_path: Path, most: int, said: str) -> None:
    error = refused(tmp_path, {"options": {"max_seq_len": most}})
    assert said in error.what
    assert error.where == line_of(tmp_path, "max_seq_len")


def test_the_least_length_that_fits(tmp_path: Path) -> None:
    assert checked(tmp_path, {"options": {"max_seq_len": 32768}})


def test_a_length_that_nobody_set_is_the_models(tmp_path: Path) -> None:
    assert "lengths, accuracy: prompts + 32768 of 131072 tokens" in checked(
        tmp_path, {"options": {"max_seq_len": None}}
    )
    other = {"checkpoint": {"name": "me/mine", "weight_data_type": "fp8"}, "options": {"max_seq_len": None}}
    assert "lengths: not checked, max_seq_len is not set" in checked(tmp_path, other)


def test_a_lower_cap_needs_less(tmp_path: Path) -> None:
    caps = OutputCaps(performance=32, accuracy=64)
    assert checked(tmp_path, {"options": {"max_seq_len": 512}}, caps=caps)
    assert "output cap of 64" in refused(tmp_path, {"options": {"max_seq_len": 63}}, caps=caps).what


# -- what closed allows ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("division", ["closed", "network"])
def test_prefix_reuse_is_off_where_the_entry_is_closed(tmp_path: Path, division: str) -> None:
    on = {"options": {"kv_cache_config": {"enable_block_reuse": True}}}
    error = refused(tmp_path, on, division=division)
    assert error.what == f"prefix reuse is switched on, and the entry is {division}"
    assert error.where == line_of(tmp_path, "enable_block_reuse")
    assert error.mend == "set kv_cache_config.enable_block_reuse: false"


@pytest.mark.parametrize(
    ("whole", "mend"),
    [
        (ENGINE | {"options": {"max_seq_len": 35840}}, "set kv_cache_config.enable_block_reuse: false"),
        (ENGINE | VLLM | {"options": {"max_model_len": 35840}}, "set enable_prefix_caching: false"),
        (ENGINE | SGLANG | {"options": {"context_length": 35840}}, "set disable_radix_cache: true"),
    ],
    ids=["trtllm-serve", "vllm", "sglang"],
)
def test_an_absent_key_whose_default_is_on_is_told_by_name(tmp_path: Path, whole: dict[str, Any], mend: str) -> None:
    error = refused(tmp_path, whole=whole)
    assert error.what.startswith("prefix reuse is on where ")
    assert error.mend == mend


@pytest.mark.parametrize("division", [None, "open"])
def test_open_may_reuse_prefixes_and_is_told(tmp_path: Path, division: str | None) -> None:
    on = {"options": {"kv_cache_config": {"enable_block_reuse": True}}}
    told = checked(tmp_path, on, division=division)
    assert "prefix reuse is on (kv_cache_config.enable_block_reuse): closed would refuse it" in told


def test_a_benchmark_that_rules_nothing_of_prefixes(tmp_path: Path) -> None:
    free = RULES.model_copy(update={"prefix_caching": None})
    assert checked(tmp_path, {"options": {"kv_cache_config": {"enable_block_reuse": True}}}, ruled=free)


@pytest.mark.parametrize("scenario", ["Offline", "Server"])
def test_speculation_is_for_interactive_alone(tmp_path: Path, scenario: str) -> None:
    error = refused(tmp_path, {"options": {"speculative_config": DRAFTS}}, scenario=scenario)
    assert error.what == f"speculative decoding in {scenario}, and the entry is closed"
    assert "Interactive alone may" in (error.expected or "")
    assert error.where == line_of(tmp_path, "speculative_config")
    assert checked(tmp_path, {"options": {"speculative_config": DRAFTS}}, scenario=scenario, division="open")


def test_the_approved_drafter_passes_in_interactive(tmp_path: Path) -> None:
    told = checked(tmp_path, scenario="Interactive", own={"engine_options": {"speculative_config": DRAFTS}})
    assert "speculative decoding with nvidia/gpt-oss-120b-Eagle3-long-context: approved for Interactive" in told


@pytest.mark.parametrize(
    ("change", "said", "line"),
    [
        ({"speculative_model_dir": "/models/my-drafter/"}, "'my-drafter', the round approves", "speculative_model_dir"),
        ({"speculative_model_dir": None}, "None, the round approves 'gpt-oss-120b-Eagle3", "speculative_model_dir"),
        ({"max_draft_len": 5}, "max_draft_len 5, the round approves 3", "max_draft_len"),
        ({"dynamic_tree_max_topK": 4}, "dynamic_tree_max_topK 4, the round approves 1", "dynamic_tree_max_topK"),
        ({"allow_advanced_sampling": False}, "samples greedily where speculative_config.allow", "speculative_config"),
    ],
)
def test_drafts_that_are_not_the_approved_ones(tmp_path: Path, change: dict[str, Any], said: str, line: str) -> None:
    own = {"engine_options": {"speculative_config": DRAFTS | change}}
    error = refused(tmp_path, scenario="Interactive", own=own)
    assert said in error.what
    assert error.where == line_of(tmp_path, line)


def test_the_round_before_allowed_gpt_oss_no_drafts(tmp_path: Path) -> None:
    old: RulePack = rules.load("v6.0")
    own = {"engine_options": {"speculative_config": DRAFTS}}
    error = refused(tmp_path, scenario="Interactive", own=own, ruled=old.benchmark("gpt-oss-120b"))
    assert "no scenario alone may" in (error.expected or "")


# -- precision ---------------------------------------------------------------------------------------------------------


def test_weights_that_were_published_otherwise(tmp_path: Path) -> None:
    error = refused(tmp_path, {"checkpoint": {"weight_data_type": "fp8"}})
    assert error.what == "weight_data_type is fp8, openai/gpt-oss-120b was published in mxfp4"
    assert error.where == line_of(tmp_path, "weight_data_type")


def test_weights_that_are_declared_otherwise(tmp_path: Path) -> None:
    error = refused(tmp_path, weights="bf16")
    assert error.what == "weight_data_type is mxfp4, measurements.yaml declares bf16"
    assert checked(tmp_path, weights="mxfp4")


@pytest.mark.parametrize(
    ("data", "declared"),
    [
        ({"engines": {"http": {"weight_data_types": "fp8"}}}, "fp8"),
        ({"engines": {"http": {"weight_data_types": "$weight_data_type"}}}, None),
        ({"engines": {"torch": {"weight_data_types": "fp8"}}}, None),
        ({"engines": []}, None),
        ({}, None),
    ],
)
def test_what_measurements_declare(data: dict[str, Any], declared: str | None) -> None:
    assert declared_weights(data, "http") == declared


# -- what divides, and what fits ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("replicas", "options", "system", "said"),
    [
        (
            1,
            {"tensor_parallel_size": 3},
            "BOXx3",
            "tensor_parallel_size 3 does not divide the model's 201088 vocabulary",
        ),
        (1, {"tensor_parallel_size": 128}, "BOXx128", "tensor_parallel_size 128 does not divide the model's 64 heads"),
        (
            1,
            {"tensor_parallel_size": 2, "moe_expert_parallel_size": 4},
            "BOXx2",
            "4 does not divide 128 experts and 2 GPUs",
        ),
        (
            1,
            {"tensor_parallel_size": 1, "pipeline_parallel_size": 40},
            "BOXx40",
            "40 is more than the model's 36 layers",
        ),
    ],
)
def test_parallel_sizes_that_do_not_divide(
    tmp_path: Path, replicas: int, options: dict[str, Any], system: str, said: str
) -> None:
    engine = {"replicas": replicas, "options": options}
    error = refused(tmp_path, engine, system=system, machine={"accelerators_per_node": None})
    assert said in error.what


def test_kv_heads_that_neither_divide_nor_repeat(tmp_path: Path) -> None:
    kimi = {"name": "Qwen/Qwen3-VL-235B-A22B-Instruct", "path": "/models/q", "weight_data_type": "bf16"}
    engine = {"replicas": 1, "checkpoint": kimi, "options": {"tensor_parallel_size": 8}}
    assert checked(tmp_path, engine), "four KV heads are repeated on eight GPUs"


def test_attention_data_parallel_divides_no_heads(tmp_path: Path) -> None:
    options = {"tensor_parallel_size": 128, "enable_attention_dp": True}
    told = checked(
        tmp_path, {"replicas": 1, "options": options}, system="BOXx128", machine={"accelerators_per_node": None}
    )
    assert "memory: KV of a request: 18 layers x 1024 elements x 1 bytes x 35840 tokens = 0.661 GB" in told


def test_tensor_parallel_divides_weights_and_kv(tmp_path: Path) -> None:
    told = checked(tmp_path, {"replicas": 2, "options": {"tensor_parallel_size": 4}})
    assert "memory: weights: 65.2 GB / (tensor 4 x pipeline 1) = 16.3 GB a GPU" in told
    assert "memory: KV of a request: 18 layers x 256 elements x 1 bytes x 35840 tokens = 0.165 GB" in told


@pytest.mark.parametrize(
    ("capacity", "options", "said"),
    [
        ("48 GB", {}, "the weights take 65.2 GB of a GPU's 48.0 GB"),
        ("66 GB", {"kv_cache_config": {"free_gpu_memory_fraction": 0.5}}, "one request of 35840 tokens takes 0.663 GB"),
    ],
)
def test_what_does_not_fit_is_refused_with_the_arithmetic(
    tmp_path: Path, capacity: str, options: dict[str, Any], said: str
) -> None:
    error = refused(tmp_path, {"options": options}, machine={"accelerator_memory_capacity": capacity})
    assert error.what.startswith("this does not fit into the accelerator's memory: ")
    assert said in error.what
    assert "weights: 65.2 GB / (tensor 1 x pipeline 1)" in (error.expected or "")


def test_a_fraction_of_all_memory_includes_the_weights(tmp_path: Path) -> None:
    told = checked(tmp_path, whole=swapped(VLLM, gpu_memory_utilization=0.9))
    assert "memory: KV cache: 0.9 x 180.0 GB - 65.2 GB = 96.8 GB a GPU" in told
    error = refused(tmp_path, whole=swapped(VLLM, gpu_memory_utilization=0.3))
    assert "the weights take 65.2 GB" in error.what


UNWEIGHED = {"name": "nvidia/Kimi-K2.6-NVFP4", "path": "/nowhere", "weight_data_type": "nvfp4"}


@pytest.fixture
def nobody_weighed_kimi(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkpoint whose shape is known and whose size no source told."""

    def found(name: str) -> ModelFacts | None:
        facts = find(name)
        if facts is None or name != UNWEIGHED["name"]:
            return facts
        published = facts.checkpoints[name].model_copy(update={"tensor_bytes": None})
        return facts.model_copy(update={"checkpoints": {**facts.checkpoints, name: published}})

    monkeypatch.setattr(engine_subject, "find", found)


@pytest.mark.usefixtures("nobody_weighed_kimi")
@pytest.mark.parametrize(
    ("engine", "machine", "why"),
    [
        ({}, {"accelerator_memory_capacity": None}, "system.yaml does not say accelerator_memory_capacity"),
        ({}, {"accelerator_memory_capacity": "Shared with host"}, "'Shared with host' tells no size"),
        (
            {"checkpoint": {"name": "me/mine", "path": "/nowhere", "weight_data_type": "fp8"}},
            {},
            "nothing is known of this checkpoint's shape",
        ),
        ({"checkpoint": UNWEIGHED}, {}, "the size of this checkpoint is not known"),
        ({"options": {"kv_cache_config": {"dtype": "posit8"}}}, {}, "nothing is known of the KV cache's type posit8"),
    ],
)
def test_what_is_not_known_is_said_and_not_checked(
    tmp_path: Path, engine: dict[str, Any], machine: dict[str, Any], why: str
) -> None:
    told = checked(tmp_path, engine, machine=machine)
    assert [line for line in told if line.startswith("memory: not checked") and why in line]


@pytest.mark.usefixtures("nobody_weighed_kimi")
def test_weights_that_lie_here_are_weighed(tmp_path: Path) -> None:
    (tmp_path / "kimi").mkdir()
    (tmp_path / "kimi" / "model-1.safetensors").write_bytes(b"\0" * 4000)
    (tmp_path / "kimi" / "model-2.safetensors").write_bytes(b"\0" * 4000)
    kimi = {"name": "nvidia/Kimi-K2.6-NVFP4", "path": str(tmp_path / "kimi"), "weight_data_type": "nvfp4"}
    told = checked(tmp_path, {"checkpoint": kimi})
    assert "memory: KV of a request: 61 layers x 576 elements x 1 bytes x 35840 tokens = 1.259 GB" in told


@pytest.mark.parametrize("fraction", [0, 1.2, "0.9", True])
def test_a_share_that_is_none(tmp_path: Path, fraction: object) -> None:
    error = refused(tmp_path, {"options": {"kv_cache_config": {"free_gpu_memory_fraction": fraction}}})
    assert "free_gpu_memory_fraction is" in error.what
    assert error.where == line_of(tmp_path, "free_gpu_memory_fraction")


def test_servers_that_compute_on_a_cpu_take_no_gpus(tmp_path: Path) -> None:
    engine = {"kind": "http", "server": "torch", "checkpoint": {"make": "tiny-gpt-oss"}, "replicas": 3}
    told = checked(
        tmp_path,
        whole=engine | {"options": {"max_total_tokens": 512}},
        system="CPU-torch",
        caps=OutputCaps(performance=32, accuracy=32),
    )
    assert told == ["lengths, performance: prompts + 32 of 512 tokens", "lengths, accuracy: prompts + 32 of 512 tokens"]
    error = refused(tmp_path, whole=engine | {"options": {"slot": 3}}, system="CPU-torch")
    assert "slots" in (error.mend or "")


IMAGE_RULES = PACK.benchmark("qwen3-vl-235b-a22b")
SEES: dict[str, Any] = {
    **ENGINE,
    "server": "vllm",
    "version": "0.32",
    "checkpoint": {"name": "Qwen/Qwen3-VL-235B-A22B-Instruct", "path": "/models/m", "weight_data_type": "bf16"},
    "replicas": 2,
    "options": {
        "tensor_parallel_size": 4,
        "max_model_len": 32768,
        "enable_prefix_caching": False,
        "mm_processor_cache_gb": 0,
    },
}
BUDGET = {"mm_processor_kwargs": {"max_pixels": 602112}}


def seeing(**options: Any) -> dict[str, Any]:
    """An engine that is sent pictures, with other options."""
    return merged(SEES, {"options": options})


def test_pictures_as_they_are_sent_pass(tmp_path: Path) -> None:
    told = checked(tmp_path, whole=SEES, ruled=IMAGE_RULES)
    assert "memory: weights: 471.3 GB / (tensor 4 x pipeline 1) = 117.8 GB a GPU" in told


def test_a_budget_of_pixels_is_refused_where_it_stands(tmp_path: Path) -> None:
    error = refused(tmp_path, whole=seeing(**BUDGET), ruled=IMAGE_RULES)
    assert "the pictures would be changed before the model sees them, and the entry is closed" in error.what
    assert "max_pixels" in error.what
    assert str(error.where) == line_of(tmp_path, "mm_processor_kwargs:")
    assert error.mend == "remove mm_processor_kwargs"
    assert "README.md:169" in (error.expected or "")


@pytest.mark.parametrize("cache", [4, 0.5])
def test_a_cache_of_pictures_is_refused(tmp_path: Path, cache: float) -> None:
    error = refused(tmp_path, whole=seeing(mm_processor_cache_gb=cache), ruled=IMAGE_RULES)
    assert "kept for the next query" in error.what
    assert error.mend == "set mm_processor_cache_gb: 0"


def test_a_cache_of_pictures_that_nobody_switched_off_is_on(tmp_path: Path) -> None:
    whole = merged(SEES, {})
    whole["options"] = {key: value for key, value in SEES["options"].items() if key != "mm_processor_cache_gb"}
    error = refused(tmp_path, whole=whole, ruled=IMAGE_RULES)
    assert error.what.endswith("mm_processor_cache_gb is 4")


def test_open_is_told_of_what_is_done_to_pictures(tmp_path: Path) -> None:
    told = checked(tmp_path, whole=seeing(**BUDGET), ruled=IMAGE_RULES, division="open")
    assert (
        "the pictures would be changed before the model sees them (mm_processor_kwargs): closed would refuse it" in told
    )


def test_where_no_pictures_are_sent_nothing_is_asked_of_them(tmp_path: Path) -> None:
    checked(tmp_path, whole=swapped(VLLM, **BUDGET))


def test_a_scenario_may_have_another_number_of_replicas(tmp_path: Path) -> None:
    told = checked(tmp_path, scenario="Server", own={"replicas": 1, "engine_options": {"tensor_parallel_size": 8}})
    assert "GPUs: 1 replica x tensor 8 x pipeline 1 x context 1 = 8 GPUs" in told
    error = refused(tmp_path, scenario="Server", own={"replicas": 4})
    assert "the engine takes 4 GPUs" in error.what


@pytest.mark.parametrize("option", ["tool_parser", "chat_template"])
def test_what_only_the_server_takes_is_refused_in_process(tmp_path: Path, option: str) -> None:
    assert checked(tmp_path, {"options": {option: "kimi_k2"}})
    inside = {key: value for key, value in ENGINE.items() if key != "server"} | {"kind": "trtllm"}
    error = refused(tmp_path, whole=merged(inside, {"options": {option: "kimi_k2"}}))
    assert f"the engine in process has no option {option}" in error.what
