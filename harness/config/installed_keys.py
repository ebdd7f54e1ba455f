"""The options that the installed TensorRT-LLM knows: on a machine that has it, its own word is the last."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import AliasChoices, BaseModel

from harness.errors import MissingError, UnknownName

_MODULE = "tensorrt_llm.llmapi.llm_args"
_CLASS = "TorchLlmArgs"


def check_installed(options: Mapping[str, Any], *, where: object = "engine.options") -> None:
    """Holds options against the LlmArgs of the TensorRT-LLM that is installed here, which is imported for it.

    Raises UnknownName for the first that it does not know, MissingError where it cannot be imported.
    """
    check_against(installed_llm_args(), options, where=where)


def installed_llm_args() -> type[BaseModel]:
    """The class that TensorRT-LLM's PyTorch backend reads its options with. MissingError where there is none."""
    try:
        found = getattr(importlib.import_module(_MODULE), _CLASS)
    except (ImportError, OSError, RuntimeError, AttributeError) as error:  # its libraries want CUDA
        raise MissingError(
            f"TensorRT-LLM's options cannot be read here: {error}",
            where=_MODULE,
            mend="ask on a machine where it is installed; elsewhere the key list holds",
        ) from None
    if not (isinstance(found, type) and issubclass(found, BaseModel)):
        raise MissingError("TensorRT-LLM's options are of a kind that is not known here", where=f"{_MODULE}.{_CLASS}")
    return found


def check_against(model: type[BaseModel], options: Mapping[str, Any], *, where: object) -> None:
    """Raises UnknownName for the first option, however deep, that a pydantic model has no field for."""
    for key, near in _unknown([model], options, ()):
        raise UnknownName("option of the installed TensorRT-LLM", key, near, where=where)


def _unknown(
    models: list[type[BaseModel]], options: Mapping[str, Any], path: tuple[str, ...]
) -> Iterator[tuple[str, list[str]]]:
    fields = {name: annotation for model in models for name, annotation in _fields(model)}
    for raw, value in options.items():
        here = (*path, str(raw))
        if str(raw) not in fields:
            yield ".".join(here), [".".join((*path, name)) for name in fields]
            continue
        below = _models_in(fields[str(raw)])
        if below and isinstance(value, Mapping):
            yield from _unknown(below, value, here)


def _fields(model: type[BaseModel]) -> Iterator[tuple[str, Any]]:
    """The names that a model takes from YAML, aliases among them, with what each holds."""
    for name, field in model.model_fields.items():
        yield name, field.annotation
        alias = field.validation_alias
        for other in alias.choices if isinstance(alias, AliasChoices) else [alias]:
            if isinstance(other, str):
                yield other, field.annotation


def _models_in(annotation: Any) -> list[type[BaseModel]]:  # noqa: ANN401 - annotations are what they are
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in getattr(annotation, "__args__", ()) for model in _models_in(part)]
