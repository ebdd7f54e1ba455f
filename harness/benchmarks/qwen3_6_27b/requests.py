"""The request of each turn, byte for byte as the mlcommons client sends it; and the chat in it as a store holds it.

What a row asks for goes before what the run asks for, with that client's oddities: the first row's ``tools`` and
``max_new_tokens`` hold for later rows that say nothing, so does its ``stream`` where the run does not stream, its
``max_completion_tokens`` and ``model`` do not; and ``max_new_tokens``, wherever from, goes before
``max_completion_tokens`` (mlcommons/endpoints ea332753, ``dataset_manager/agentic_inference_dataset.py``,
``openai/openai_msgspec_adapter.py``).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import orjson

from harness.benchmarks.qwen3_6_27b import fields, messages
from harness.benchmarks.qwen3_6_27b.trajectories import Trajectory, Turn


def request(trajectory: Trajectory, place: int, run: Mapping[str, Any], system: str | None = None) -> dict[str, Any]:
    """The whole request of ``turns[place]``, its fields in that client's order.

    ``run`` holds what the run asks of every request, ``model`` and ``max_completion_tokens`` among it; ``system``
    stands in place of the trajectory's own prompt, where that is salted.
    """
    asked = _asked(trajectory, trajectory.turns[place], run)
    prompt = trajectory.system if system is None else system
    before = [messages.of_system(prompt)] if prompt else []
    said = {**asked, "messages": before + trajectory.history(place)}
    order = ("model", "messages", *(name for name in fields.REQUEST if name != "model"))
    return {name: said[name] for name in order if said.get(name) is not None}


def _asked(trajectory: Trajectory, turn: Turn, run: Mapping[str, Any]) -> dict[str, Any]:
    first, own = trajectory.turns[0].asked, turn.asked
    asked = {**run, **own}
    asked[fields.CAP] = own.get(fields.CAP_ALIAS) or first.get(fields.CAP_ALIAS) or asked[fields.CAP]
    asked["tools"] = own.get("tools", first.get("tools"))
    asked["stream"] = own.get("stream", run.get("stream") or first.get("stream", False))
    return asked


@dataclass(frozen=True, slots=True)
class EncodedTrajectory:
    """A trajectory's chats in pieces of JSON, each made once.

    ``grown[i]`` are the messages that turn i adds to those of turn i-1, a comma before each, ``tails[i]`` what stands
    behind its messages.
    """

    grown: tuple[bytes, ...]
    tails: tuple[bytes, ...]

    @classmethod
    def of(cls, trajectory: Trajectory, more: Mapping[str, Any]) -> EncodedTrajectory:
        """``more`` are the fields that every chat has beside its own, such as ``chat_template_kwargs``."""
        grown: list[bytes] = []
        for place, turn in enumerate(trajectory.turns):
            recorded = trajectory.turns[place - 1].recorded if place else None
            new = [*([] if recorded is None else [recorded]), *turn.said]
            grown.append(b"".join(b"," + orjson.dumps(message) for message in new))
        tails = (_tail(trajectory, turn, more) for turn in trajectory.turns)
        return cls(tuple(grown), tuple(tails))

    @property
    def lengths(self) -> list[int]:
        """Bytes of each chat, without a system prompt."""
        return [so_far + len(tail) for so_far, tail in zip(accumulate(map(len, self.grown)), self.tails, strict=True)]

    def chats(self, system: str | None) -> Iterator[bytes]:
        """The JSON of each turn's chat, as :func:`harness.engines.bodies.encoded` would make it."""
        text = bytearray(b'{"messages":[')
        if system:
            text += orjson.dumps(messages.of_system(system))
        for place, (grown, tail) in enumerate(zip(self.grown, self.tails, strict=True)):
            text += grown if place or system else grown[1:]
            yield b"".join((text, tail))


def _tail(trajectory: Trajectory, turn: Turn, more: Mapping[str, Any]) -> bytes:
    asked = _asked(trajectory, turn, {fields.CAP: None, **more})
    chosen = {name: asked[name] for name in fields.OF_A_CHAT if asked.get(name) is not None}
    return b"]" + (b"," + orjson.dumps(chosen)[1:] if chosen else b"}")
