"""Options held against the TensorRT-LLM that is installed: a double of its classes, in its place."""

from __future__ import annotations

import sys
from types import ModuleType
from typing import Annotated, Any, Literal, Optional, Union

import pytest
from pydantic import AliasChoices, BaseModel, Field

from harness.config.installed_keys import check_against, check_installed, installed_llm_args
from harness.errors import MissingError, UnknownName

MODULE = "tensorrt_llm.llmapi.llm_args"


class Eagle(BaseModel):
    decoding_type: Literal["Eagle"] = "Eagle"
    speculative_model: str = Field("d", validation_alias=AliasChoices("speculative_model", "speculative_model_dir"))


class NGram(BaseModel):
    decoding_type: Literal["NGram"] = "NGram"
    max_matching_ngram_size: int = 2


class KvCache(BaseModel):
    dtype: str = "auto"
    enable_block_reuse: bool = True


class TorchLlmArgs(BaseModel):
    tensor_parallel_size: int = 1
    kv_cache_config: KvCache = KvCache()
    speculative_config: Optional[Annotated[Union[Eagle, NGram], Field(discriminator="decoding_type")]] = None  # noqa: UP007, UP045 - as it is there
    env_overrides: dict[str, str] = {}
    mpi_session: object = Field(None, alias="_mpi_session")


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    for name in ("tensorrt_llm", "tensorrt_llm.llmapi", MODULE):
        monkeypatch.setitem(sys.modules, name, ModuleType(name))
    module = sys.modules[MODULE]
    module.TorchLlmArgs = TorchLlmArgs  # type: ignore[attr-defined]
    return module


def test_options_that_it_knows(installed: ModuleType) -> None:
    check_installed(
        {
            "tensor_parallel_size": 2,
            "kv_cache_config": {"dtype": "fp8"},
            "speculative_config": {
                "decoding_type": "Eagle",
                "speculative_model_dir": "d",
                "max_matching_ngram_size": 1,
            },
            "env_overrides": {"ANY": "thing"},
        }
    )


@pytest.mark.parametrize(
    ("options", "key", "mend"),
    [
        ({"tensor_parallel_siz": 2}, "tensor_parallel_siz", "did you mean 'tensor_parallel_size'?"),
        ({"kv_cache_config": {"dtyp": "fp8"}}, "kv_cache_config.dtyp", "did you mean 'kv_cache_config.dtype'?"),
        (
            {"speculative_config": {"speculative_mode": "d"}},
            "speculative_config.speculative_mode",
            "did you mean 'speculative_config.speculative_model'?",
        ),
    ],
)
def test_options_that_it_does_not_know(installed: ModuleType, options: dict[str, Any], key: str, mend: str) -> None:
    with pytest.raises(UnknownName) as caught:
        check_installed(options, where="here")
    assert caught.value.name == key
    assert caught.value.mend == mend
    assert caught.value.where == "here"


def test_a_value_that_is_no_mapping_is_the_servers_to_judge() -> None:
    check_against(TorchLlmArgs, {"kv_cache_config": None, "speculative_config": "x"}, where="here")


def test_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tensorrt_llm", None)
    with pytest.raises(MissingError, match="cannot be read here") as caught:
        installed_llm_args()
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("there", [None, 7, object])
def test_where_it_has_no_such_class(installed: ModuleType, there: object) -> None:
    installed.TorchLlmArgs = there  # type: ignore[attr-defined]
    with pytest.raises(MissingError, match="of a kind that is not known"):
        installed_llm_args()
    del installed.TorchLlmArgs
    with pytest.raises(MissingError, match="cannot be read"):
        installed_llm_args()
