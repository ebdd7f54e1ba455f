"""Whether a model fits the GPUs that an engine divides it over: its heads, its experts, and its bytes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from harness.config import memory
from harness.config.engine_subject import Checked
from harness.config.engines import ServedCheckpoint
from harness.errors import ConfigError
from harness.rules.models import ModelFacts


def tensor_divides(checked: Checked) -> Iterator[str]:
    """Heads, KV heads, vocabulary and experts divide over the GPUs as they are; KV heads may be repeated whole."""
    facts, tensor = checked.facts, checked.whole("tensor")
    if facts is None or tensor is None:
        return
    key = checked.keys.key_of("tensor")
    divides = [("vocabulary entries", facts.vocabulary, facts.vocabulary % tensor == 0)]
    if not checked.attention_dp:
        shared = facts.kv_heads % tensor == 0 or tensor % facts.kv_heads == 0
        divides += [("heads", facts.heads, facts.heads % tensor == 0), ("KV heads", facts.kv_heads, shared)]
    for what, count, fine in divides:
        if not fine:
            raise ConfigError(
                f"{key} {tensor} does not divide the model's {count} {what}",
                where=checked.where("tensor"),
                mend="take a power of two",
            )
    _experts_and_layers(checked, facts, tensor)
    yield f"tensor {tensor} divides {facts.heads} heads, {facts.kv_heads} KV heads, {facts.vocabulary} tokens"


def _experts_and_layers(checked: Checked, facts: ModelFacts, tensor: int) -> None:
    expert, pipeline = checked.whole("expert") or 1, checked.whole("pipeline") or 1
    if facts.experts % expert or tensor % expert:
        raise ConfigError(
            f"{checked.keys.key_of('expert')} {expert} does not divide {facts.experts} experts and {tensor} GPUs",
            where=checked.where("expert"),
        )
    if pipeline > facts.layers:
        raise ConfigError(
            f"{checked.keys.key_of('pipeline')} {pipeline} is more than the model's {facts.layers} layers",
            where=checked.where("pipeline"),
        )


def memory_fits(checked: Checked) -> Iterator[str]:
    """The weights, and the KV cache of one request of the greatest length at least, fit into a GPU's memory."""
    if checked.keys.key_of("tensor") is None:
        return  # no GPUs
    fraction = _fraction(checked)
    known = _known(checked)
    if isinstance(known, str):
        yield f"memory: not checked, {known}"
        return
    cache = memory.Cache(
        dtype=str(checked.value("kv_dtype")),
        fraction=fraction,
        of_free=checked.keys.kv_fraction_of == "free_memory",
        tensor=checked.whole("tensor") or 1,
        pipeline=checked.whole("pipeline") or 1,
        split_heads=not checked.attention_dp,
    )
    tokens = checked.whole("max_total_tokens") or known.facts.max_positions
    found = memory.estimate(known.facts, known.weights, known.capacity, cache, tokens, checked.whole("max_batch"))
    if found.problem is not None:
        raise ConfigError(
            f"this does not fit into the accelerator's memory: {found.problem}",
            where=checked.subject.where("options"),
            expected="; ".join(found.lines),
            mend="divide it over more GPUs, or lower what it may take",
        )
    yield from (f"memory: {line}" for line in found.lines)


@dataclass(frozen=True, slots=True)
class _Known:
    """What an estimate is made of; sizes in bytes."""

    facts: ModelFacts
    weights: int
    capacity: int


def _known(checked: Checked) -> _Known | str:
    """What is known, or in words what is not."""
    facts, weights, machine = checked.facts, _weights(checked), checked.subject.machine
    said = machine.accelerator_memory_capacity if machine is not None else None
    dtype = str(checked.value("kv_dtype"))
    if facts is None:
        return "nothing is known of this checkpoint's shape"
    if weights is None:
        return "the size of this checkpoint is not known"
    if said is None:
        return "system.yaml does not say accelerator_memory_capacity"
    if memory.kv_element_bytes(dtype) is None:
        return f"nothing is known of the KV cache's type {dtype}"
    capacity = memory.capacity_bytes(said)
    return (
        f"accelerator_memory_capacity {said!r} tells no size" if capacity is None else _Known(facts, weights, capacity)
    )


def _fraction(checked: Checked) -> float:
    fraction = checked.value("kv_fraction")
    if fraction is None:
        return 1.0  # the server's own choice: at most all
    if isinstance(fraction, bool) or not isinstance(fraction, int | float) or not 0 < fraction <= 1:
        raise ConfigError(
            f"{checked.keys.key_of('kv_fraction')} is {fraction!r}",
            where=checked.where("kv_fraction"),
            expected="a share above 0 and at most 1",
        )
    return float(fraction)


def _weights(checked: Checked) -> int | None:
    """The size of the weights in bytes: as published, or that of the files where they lie on this machine."""
    checkpoint, facts = checked.engine.checkpoint, checked.facts
    if not isinstance(checkpoint, ServedCheckpoint):
        return None
    published = facts.checkpoints[checkpoint.name].tensor_bytes if facts is not None else None
    if published is not None or not checkpoint.path.is_dir():
        return published
    return sum(file.stat().st_size for file in checkpoint.path.glob("*.safetensors")) or None
