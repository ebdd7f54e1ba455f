"""Every environment variable the harness reads, declared once."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable: its name and what it is for."""

    name: str
    meaning: str

    def get(self, environ: Mapping[str, str] | None = None) -> str | None:
        """The value, or None where it is unset or empty."""
        value = (os.environ if environ is None else environ).get(self.name, "")
        return value or None

    def path(self, environ: Mapping[str, str] | None = None) -> Path | None:
        """The value as an absolute path, or None where it is unset."""
        value = self.get(environ)
        return None if value is None else Path(value).expanduser().absolute()


MLPERF_INFERENCE_DIR = Variable(
    "MLPERF_INFERENCE_DIR", "a clone of mlcommons/inference; its programs are run, never copied"
)
MLPERF_EVALUATOR_PYTHON = Variable(
    "MLPERF_EVALUATOR_PYTHON", "the Python of the environment in which the clone's accuracy evaluators run"
)
MLPERF_EVALUATOR_TOKENIZER = Variable(
    "MLPERF_EVALUATOR_TOKENIZER", "the folder of the tokenizer for those evaluators (default: they ask a hub for it)"
)
ENDPOINTS_BIN = Variable(
    "ENDPOINTS_BIN", "the inference-endpoint program of mlcommons/endpoints, in a Python environment of its own"
)
BFCL_PYTHON = Variable(
    "BFCL_PYTHON",
    "the Python of the environment that has bfcl-eval (default: build/bfcl-venv/bin/python, of `make bfcl`)",
)
HARNESS_DATA_DIR = Variable("HARNESS_DATA_DIR", "where data sets lie (default: build/data)")
HARNESS_CACHE_DIR = Variable("HARNESS_CACHE_DIR", "where made checkpoints and vocabularies lie (default: build/cache)")
TIKTOKEN_ENCODINGS_BASE = Variable(
    "TIKTOKEN_ENCODINGS_BASE", "a folder that holds o200k_base.tiktoken (read by openai-harmony too)"
)
CI = Variable("CI", "set on machines that nobody watches: progress is told in lines there, on a terminal too")

ALL = (
    MLPERF_INFERENCE_DIR,
    MLPERF_EVALUATOR_PYTHON,
    MLPERF_EVALUATOR_TOKENIZER,
    ENDPOINTS_BIN,
    BFCL_PYTHON,
    HARNESS_DATA_DIR,
    HARNESS_CACHE_DIR,
    TIKTOKEN_ENCODINGS_BASE,
    CI,
)


def data_dir() -> Path:
    """The folder of data sets, one sub-folder a benchmark."""
    return HARNESS_DATA_DIR.path() or Path("build/data").absolute()


def cache_dir() -> Path:
    """The folder of what is made once and used again (stand-in checkpoints, vocabularies)."""
    return HARNESS_CACHE_DIR.path() or Path("build/cache").absolute()


def bfcl_python() -> Path:
    """The Python of the environment in which BFCL's checker runs; whether it is there is not looked at."""
    return BFCL_PYTHON.path() or Path("build/bfcl-venv/bin/python").absolute()
