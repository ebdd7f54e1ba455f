"""The key lists of servers: what is known, what it means, and what is said of the rest."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from harness.config.engines import TorchEngine
from harness.errors import UnknownName
from harness.rules.engine_keys import EngineKeys, KeyProblem, load, load_or_older, versions

SERVERS = ("trtllm-serve", "trtllm", "vllm", "sglang", "torch")
LISTS = [(server, version) for server in SERVERS for version in versions(server)]
TRT = load("trtllm-serve", "1.2")
PUBLISHED: dict[str, Any] = {
    "backend": "pytorch",
    "tensor_parallel_size": 1,
    "pipeline_parallel_size": 1,
    "moe_expert_parallel_size": 1,
    "max_batch_size": 896,
    "max_num_tokens": 13914,
    "max_seq_len": 35840,
    "enable_chunked_prefill": True,
    "scheduler_config": {
        "capacity_scheduler_policy": "MAX_UTILIZATION",
        "context_chunking_policy": "FIRST_COME_FIRST_SERVED",
    },
    "kv_cache_config": {"dtype": "fp8", "free_gpu_memory_fraction": 0.95, "enable_block_reuse": False},
    "enable_attention_dp": False,
    "num_postprocess_workers": 4,
    "torch_compile_config": {"enable_piecewise_cuda_graph": True},
    "moe_config": {"backend": "TRTLLM"},
    "cuda_graph_config": {"batch_sizes": [1, 2, 4], "enable_padding": True},
    "sampler_type": "TRTLLMSampler",
    "stream_interval": 20,
}
"""What published entries of gpt-oss-120b set, option by option."""


def problems(keys: EngineKeys, options: dict[str, Any]) -> list[KeyProblem]:
    return list(keys.problems(options))


@pytest.mark.parametrize(("server", "version"), LISTS)
def test_every_list_says_what_the_checks_read(server: str, version: str | None) -> None:
    keys = load(server, version)
    assert keys.source
    assert keys.meaning({}, "max_batch_tokens") != 0
    assert keys.key_of("max_total_tokens")
    if server != "torch":
        assert keys.meaning({}, "tensor") == keys.meaning({}, "pipeline") == 1
        assert keys.meaning({}, "prefix_reuse") is True, "on where nobody says otherwise: the checks rely on it"
        assert keys.meaning({}, "speculation") is None


@pytest.mark.parametrize(("server", "version"), LISTS)
def test_a_list_has_no_name_twice(server: str, version: str | None) -> None:
    keys = load(server, version)
    names = [*keys.flat, *keys.nested, *keys.maybe]
    assert len(set(names)) == len(names)
    assert not [name for name in keys.renamed if keys.known(name)]


@pytest.mark.parametrize("version", ["1.2", "1.2.1", "1.2.0rc6"])
def test_the_published_options_are_known(version: str) -> None:
    assert problems(load("trtllm-serve", version), PUBLISHED) == []


@pytest.mark.parametrize(
    ("options", "key", "mend"),
    [
        ({"max_batch_siz": 1}, "max_batch_siz", "did you mean 'max_batch_size'?"),
        ({"kv_cache_config": {"dtyp": "fp8"}}, "kv_cache_config.dtyp", "did you mean 'dtype'?"),
        (
            {"scheduler_config": {"dynamic_batch_config": {"enable_batch_size_tunin": True}}},
            "scheduler_config.dynamic_batch_config.enable_batch_size_tunin",
            "did you mean 'enable_batch_size_tuning'?",
        ),
        ({"kv_cache_dtype": "fp8"}, "kv_cache_dtype", "write kv_cache_config.dtype"),
        ({"max_model_len": 9}, "max_model_len", "write max_seq_len"),
        (
            {"speculative_config": {"speculative_model": "d"}},
            "speculative_config.speculative_model",
            "write speculative_config.speculative_model_dir",
        ),
        ({"speculative_config": {"decoding_type": "Eagle3"}}, "speculative_config.decoding_type", "write Eagle"),
        ({"moe_config": {"backend": "TRTLM"}}, "moe_config.backend", "did you mean 'TRTLLM'?"),
        ({"kv_cache_config": "fp8"}, "kv_cache_config", None),
        ({"model": "m"}, "model", "remove it: checkpoint and launch say it"),
        ({"zzzz": 1}, "zzzz", None),
        ({"kv_cache_config.dtype": "fp8"}, "kv_cache_config.dtype", "did you mean 'dtype'?"),
        ({7: 1}, "7", None),
    ],
)
def test_a_wrong_option_at_each_level(options: dict[str, Any], key: str, mend: str | None) -> None:
    (problem,) = problems(TRT, options)
    assert problem.key == key
    assert problem.mend == mend
    assert TRT.name == "TensorRT-LLM 1.2"


def test_newer_names_are_told_the_other_way_round() -> None:
    newer = load("trtllm", "1.3")
    assert problems(newer, {"speculative_config": {"decoding_type": "Eagle3", "speculative_model": "d"}}) == []
    old = problems(newer, {"speculative_config": {"decoding_type": "Eagle", "speculative_model_dir": "d"}})
    assert [problem.mend for problem in old] == ["write Eagle3", "write speculative_config.speculative_model"]


def test_a_flat_option_holds_anything() -> None:
    assert problems(TRT, {"lora_config": {"anything": {"at": "all"}}, "cuda_graph_config": None}) == []


def test_flags_may_have_dashes_where_options_are_flags() -> None:
    vllm = load("vllm", "0.32")
    options = {
        "enable-prefix-caching": False,
        "tensor-parallel-size": 4,
        "speculative-config": {"num_speculative_tokens": 3},
    }
    assert problems(vllm, options) == []
    assert vllm.meaning(options, "prefix_reuse") is False
    assert vllm.meaning(options, "tensor") == 4
    assert vllm.meaning(options, "draft_tokens") == 3
    assert problems(TRT, {"max-batch-size": 4})[0].mend == "did you mean 'max_batch_size'?"


def test_an_option_that_switches_off_is_read_as_what_it_means() -> None:
    sglang = load("sglang", "0.5.23")
    assert sglang.meaning({"disable_radix_cache": True}, "prefix_reuse") is False
    assert sglang.meaning({"disable_radix_cache": False}, "prefix_reuse") is True
    assert sglang.says({"disable_radix_cache": False}, "prefix_reuse")
    assert not sglang.says({}, "prefix_reuse")


def test_null_is_the_default() -> None:
    assert TRT.meaning({"max_batch_size": None}, "max_batch") == 2048
    assert not TRT.says({"max_batch_size": None}, "max_batch")
    assert TRT.meaning({"kv_cache_config": None}, "prefix_reuse") is True


def test_a_meaning_that_the_server_has_no_option_for() -> None:
    torch = load("torch", None)
    assert torch.meaning({}, "tensor") is None
    assert torch.key_of("prefix_reuse") is None
    assert not torch.says({"slots": 3}, "tensor")


def test_torch_takes_what_the_engine_takes() -> None:
    keys = load("torch", None)
    own = set(TorchEngine.model_fields) - {"kind", "checkpoint"}
    assert set(keys.flat) == own
    for name, option in (("max_total_tokens", "max_total_tokens"), ("max_batch", "slots")):
        assert keys.meaning({}, name) == TorchEngine.model_fields[option].default  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("server", "version", "near"),
    [
        ("trtllm-serv", "1.2", "trtllm-serve"),
        ("trtllm-serve", "1.4", "1.3"),
        ("vllm", "0.3", "0.32"),
        ("torch", "1", "None"),
    ],
)
def test_a_list_that_is_not_there(server: str, version: str, near: str) -> None:
    with pytest.raises(UnknownName) as caught:
        load(server, version)
    assert near in str(caught.value)


@pytest.mark.parametrize(
    ("server", "version", "taken"),
    [
        ("trtllm", "1.2.1", "1.2"),
        ("trtllm", "1.4.0rc1", "1.3"),
        ("trtllm-serve", "1.20", "1.3"),
        ("trtllm", "2.0", "1.3"),
        ("vllm", "0.20.1", "0.11"),
        ("torch", None, None),
    ],
)
def test_the_list_of_a_version_or_of_the_nearest_older_one(server: str, version: str | None, taken: str | None) -> None:
    assert load_or_older(server, version).version == taken


@pytest.mark.parametrize(
    ("server", "version"),
    [("trtllm", "1.1"), ("trtllm", "nightly"), ("trtllm", None), ("tensorrt", "1.2"), ("torch", "1")],
)
def test_no_list_and_none_of_an_older_version(server: str, version: str | None) -> None:
    with pytest.raises(UnknownName):
        load_or_older(server, version)


def test_a_version_is_no_prefix_of_letters() -> None:
    with pytest.raises(UnknownName):
        load("trtllm-serve", "1.20")


def test_a_list_whose_own_names_are_unknown_is_refused() -> None:
    data = TRT.model_dump()
    for part, value in (("own", ["nowhere"]), ("renamed", {"a": "nowhere"}), ("choices", {"nowhere": []})):
        with pytest.raises(ValidationError, match="in no list"):
            EngineKeys.model_validate(data | {part: value})


OPTIONS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text("ab.-_", max_size=4),
    lambda below: st.dictionaries(
        st.sampled_from(["kv_cache_config", "dtype", "max_batch_size", "speculative_config", "zz", "a.b", ""]), below
    ),
    max_leaves=9,
)


@given(st.dictionaries(st.text("ab_", max_size=4) | st.sampled_from(sorted(TRT.nested)), OPTIONS))
def test_any_options_are_judged_without_a_traceback(options: dict[str, Any]) -> None:
    before = copy.deepcopy(options)
    for problem in TRT.problems(options):
        assert problem.what
        assert problem.key.startswith(problem.path[0])
    for name in TRT.meanings:
        TRT.meaning(options, name)
    assert options == before
