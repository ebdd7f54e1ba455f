"""The words by which texts of an entry tell of weights and engines."""

from __future__ import annotations

import re

_FULL = r"(?:bf16|fp16|fp32|bfloat16|float16|float32|half|full precision)"
_ONLY_FULL = re.compile(rf"\W*{_FULL}(?:\W+(?:and\W+|or\W+)?{_FULL})*\W*", re.IGNORECASE)

_LOW = re.compile(
    r"(?<![a-z])(?<!non-)(?<!un-)(?<!de-)"
    r"(?:(?:nv|mx)?fp[468](?:_?e\dm\d)?|int[48]|w[48]a(?:4|8|16)|awq|gptq|gguf|q[2-8]_[k0-9]\w*|quanti[sz]\w*|[48]-?bit)"
    r"(?![a-z])",
    re.IGNORECASE,
)
_CLAUSE_END = re.compile(r"[;,\n]|\.(?:\s|$)")
_DENIED = re.compile(r"\b(?:no|not|none|nothing|never|without|neither|nobody|n/a)\b", re.IGNORECASE)
_OF_ELSE = re.compile(r"\bkv|cache|activation|gradient", re.IGNORECASE)
"""What else than weights has few bits."""
_WIDENED = re.compile(r"de-?quanti[sz]|up-?cast|\bcast(?:ing)? (?:up )?to\b|widened", re.IGNORECASE)

_ENGINES = {
    "TensorRT-LLM": r"tensor[-_ ]?rt|trt[-_ ]?llm",
    "vLLM": r"v[-_]?llm",
    "SGLang": r"sg[-_]?lang|sgl",
    "llama.cpp": r"llama[-_.]?cpp|ggml",
    "PyTorch": r"(?:py)?torch",
    "ONNX Runtime": r"onnx[-_ ]?runtime",
    "OpenVINO": r"openvino",
    "LMDeploy": r"lm[-_]?deploy",
    "MLX": r"mlx(?:[-_]lm)?",
}
_LIBRARY = "PyTorch"
"""What other engines stand on too: to name it beside one of them is no contradiction."""
_NAMES = {name: re.compile(rf"(?<![a-z0-9])(?:{form})(?![a-z0-9])", re.IGNORECASE) for name, form in _ENGINES.items()}


def says_full_precision(text: str) -> bool:
    """Whether a text names types of 16 or 32 bits and nothing else."""
    return _ONLY_FULL.fullmatch(text) is not None


def says_widened(text: str) -> bool:
    """Whether a text tells that weights were brought to a wider type than they came in."""
    return _WIDENED.search(text) is not None


def low_precision(text: str) -> list[str]:
    """Words of a text that tell of weights of fewer bits, each once; none of a clause that denies or is of else."""
    clauses = (clause for clause in _CLAUSE_END.split(text) if not (_DENIED.search(clause) or _OF_ELSE.search(clause)))
    return list(dict.fromkeys(word for clause in clauses for word in _LOW.findall(clause)))


def engines_named(text: str) -> set[str]:
    """The engines that a text names; PyTorch only where it names no other."""
    named = {name for name, form in _NAMES.items() if form.search(text)}
    return named - {_LIBRARY} or named


def contradicts(text: str, package: str, version: str) -> str | None:
    """The version that a text gives a package where that is not ``version``; None where it is, or is not given."""
    name = "[-_ ]?".join(re.escape(part) for part in re.split(r"[-_ ]+", package))
    match = re.search(rf"(?<![\w-]){name}(?:\s+|\s*[=:]+\s*|-)v?(\d+(?:\.\d+)+)", text, re.IGNORECASE)
    if match is None:
        return None
    told = match[1]
    return None if re.match(rf"{re.escape(told)}(?!\d)", version) else told
