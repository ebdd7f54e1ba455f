"""Claims of weights, engines and accelerators."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.gate import Finding, Severity, check_tree
from harness.gate.claim_words import contradicts, engines_named, low_precision, says_full_precision, says_widened
from harness.rules import load
from tests.gate.made_tree import change_json, write
from tests.gate.tree_changes import REAL, box, in_manifest, server

PACK = load("v6.1")
TORCH = {"kind": "torch", "versions": {"torch": "2.13.0+cpu", "transformers": "5.17.0"}}
TRTLLM = {"kind": "trtllm", "versions": {"tensorrt_llm": "1.3.0"}}


def ran(home: Path, **told: object) -> None:
    """What each leg of the manifest tells."""
    in_manifest(home, lambda m: [leg.update(told) for row in m["rows"] for leg in row["legs"]])


def weights(home: Path, **fields: str) -> None:
    change_json(server(home) / "measurements.json", **{"weight_data_types": "bf16", **fields})


def framework(home: Path, engine: dict[str, object], text: str, **fields: str) -> None:
    ran(home, engine=engine)
    change_json(box(home), framework=text, **fields)


# Each breaks a tree in one place: division, the change, the rule, its severity.
BREACHES: list[tuple[str, str, Callable[[Path], object], str, str]] = [
    (
        "name of the weights",
        "closed",
        lambda h: weights(h, starting_weights_filename="Qwen3-VL-235B-A22B-Instruct-NVFP4"),
        "CLAIM-WEIGHTS",
        "review",
    ),
    (
        "what was done to them",
        "closed",
        lambda h: weights(h, weight_transformations="quantization"),
        "CLAIM-WEIGHTS",
        "review",
    ),
    (
        "README",
        "open",
        lambda h: (weights(h, weight_data_types="fp32"), write(server(h) / "README.md", "We serve the FP8 weights.")),
        "CLAIM-WEIGHTS",
        "review",
    ),
    (
        "model of the client's configuration",
        "open",
        lambda h: (weights(h), write(server(h) / "config.yaml", "model_params: {name: org/model-AWQ}\n")),
        "CLAIM-WEIGHTS",
        "review",
    ),
    ("another engine", "closed", lambda h: framework(h, TORCH, "vLLM 0.11"), "CLAIM-ENGINE", "review"),
    (
        "another engine in the notes",
        "closed",
        lambda h: framework(h, TRTLLM, "TensorRT-LLM 1.3.0", sw_notes="served by SGLang"),
        "CLAIM-ENGINE",
        "review",
    ),
    (
        "another engine's interface",
        "open",
        lambda h: (
            change_json(box(h), framework="vLLM 0.11"),
            write(server(h) / "config.yaml", "endpoint_config: {api_type: sglang}\n"),
        ),
        "CLAIM-ENGINE",
        "review",
    ),
    ("no engine named", "closed", lambda h: framework(h, TRTLLM, "CUDA 13.1"), "CLAIM-ENGINE", "review"),
    ("another version", "open", lambda h: framework(h, TORCH, "torch 2.12.1"), "CLAIM-ENGINE", "review"),
    (
        "more accelerators than there were",
        "closed",
        lambda h: (ran(h, accelerators=4), change_json(box(h), accelerators_per_node=8)),
        "CLAIM-ACCELERATORS",
        "review",
    ),
]


def findings(home: Path, rule: str = "CLAIM-") -> list[Finding]:
    """All but the note that the manifest does not tell."""
    every = check_tree(home.parents[1], PACK).findings
    return [f for f in every if f.rule.startswith(rule) and f.severity is not Severity.NOTE]


@pytest.mark.parametrize(
    ("division", "change", "rule", "severity"), [b[1:] for b in BREACHES], ids=[b[0] for b in BREACHES]
)
def test_one_claim_breaks_a_rule(tree, division, change, rule, severity):
    home = tree(division)
    assert not findings(home)
    change(home)
    found = findings(home)
    assert {(f.rule, f.severity.value) for f in found} == {(rule, severity)}
    assert len(found) == 1


@pytest.mark.parametrize(
    "change",
    [
        lambda h: weights(h, weight_data_types="fp4", weight_transformations="quantization to NVFP4"),
        lambda h: weights(h, weight_data_types="bf16, fp8", starting_weights_filename="model-FP8"),
        lambda h: weights(h, weight_transformations="none, nothing is quantized"),
        lambda h: weights(h, starting_weights_filename="mxfp4", weight_transformations="dequantized to bf16"),
        lambda h: (weights(h), write(server(h) / "README.md", "The KV cache is FP8. Weights are not quantized.")),
        lambda h: framework(h, TORCH, "PyTorch", sw_notes="torch 2.13.0"),
        lambda h: framework(h, TORCH, "torch 2.13.0+cpu, transformers 5.17.0"),
        lambda h: framework(h, TRTLLM, "TensorRT 10.14, CUDA 13.1"),
        lambda h: framework(h, TRTLLM, "TensorRT-LLM 1.3.0, PyTorch 2.9", other_software_stack="vLLM 0.11"),
        lambda h: framework(h, {"kind": "http", "versions": {}}, "an engine of our own"),
        lambda h: write(server(h) / "config.yaml", "endpoint_config: {api_type: openai}\n"),
        lambda h: write(server(h) / "config.yaml", "endpoint_config: [sglang]\nmodel_params: 3\n"),
        lambda h: write(server(h) / "config.yaml", "endpoint_config: {"),
        lambda h: (ran(h, accelerators=8), change_json(box(h), accelerators_per_node="8", number_of_nodes=2)),
        lambda h: (ran(h, accelerators=16), change_json(box(h), accelerators_per_node="8", number_of_nodes=2)),
        lambda h: (ran(h, accelerators=4), change_json(box(h), accelerators_per_node="many")),
    ],
)
def test_claims_that_hold(tree, change):
    home = tree("closed")
    change(home)
    assert not findings(home)


def test_a_manifest_that_does_not_tell_is_noted(tree):
    home = tree("closed")
    report = check_tree(home.parents[1], PACK)
    assert [f.severity for f in report.findings if f.rule == "CLAIM-ENGINE"] == [Severity.NOTE]
    ran(home, engine=TORCH)
    change_json(box(home), framework="torch 2.13.0")
    assert not [f for f in check_tree(home.parents[1], PACK).findings if f.rule == "CLAIM-ENGINE"]


@pytest.mark.parametrize(
    "engine",
    [7, [], {}, {"kind": 3}, {"kind": "torch", "versions": []}, {"kind": "torch", "versions": {"torch": None}}],
)
def test_a_manifest_that_tells_nonsense(tree, engine):
    home = tree("open")
    ran(home, engine=engine, accelerators=True)
    assert check_tree(home.parents[1], PACK).rows


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Qwen3-NVFP4-MLPerf", ["NVFP4"]),
        ("INT8, then int8 and w4a16", ["INT8", "int8", "w4a16"]),
        ("model.Q4_K_M.gguf", ["Q4_K_M", "gguf"]),
        ("fp8_e4m3 weights", ["fp8_e4m3"]),
        ("int32 token ids, 16-bit, bf16, fp16", []),
        ("unquantized, non-quantized and de-quantized", []),
        ("No quantization. Weights are MXFP4.", ["MXFP4"]),
        ("FP8 KV cache; FP8 activations", []),
    ],
)
def test_words_of_low_precision(text, words):
    assert low_precision(text) == words


@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("bf16", True),
        ("BF16 / fp32", True),
        ("bfloat16 and float32", True),
        ("fp4", False),
        ("bf16, fp4", False),
        ("", False),
        ("none", False),
    ],
)
def test_types_of_full_precision(text, full):
    assert says_full_precision(text) is full


def test_words_of_widening():
    assert says_widened("none but the cast to float32")
    assert not says_widened("broadcast to all")


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("TensorRT-LLM 1.3, PyTorch 2.9", {"TensorRT-LLM"}),
        ("tensorrt_llm", {"TensorRT-LLM"}),
        ("vLLM v0.11", {"vLLM"}),
        ("torch 2.13", {"PyTorch"}),
        ("llama.cpp b6000", {"llama.cpp"}),
        ("mlx5_core, Mellanox OFED", set()),
        ("some framework", set()),
    ],
)
def test_names_of_engines(text, names):
    assert engines_named(text) == names


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("torch 2.12.1", "2.12.1"),
        ("torch==2.12", "2.12"),
        ("torch 2.13", None),
        ("torch 2.1", "2.1"),
        ("PyTorch 2.12", None),
        ("torch", None),
    ],
)
def test_versions_of_packages(text, told):
    assert contradicts(text, "torch", "2.13.0+cpu") == told


@pytest.mark.shared
@pytest.mark.skipif(not REAL.exists(), reason="the shared data folder is not beside the repository")
def test_published_weights_that_contradict_themselves():
    found = [f for f in check_tree(REAL, load("v6.0")).findings if f.rule == "CLAIM-WEIGHTS"]
    assert {f.path.split("/")[1] for f in found} == {"Google"}
    assert len(found) == 2
    assert all(
        "starting_weights_filename says NVFP4; weight_transformations says quantization" in f.found for f in found
    )
