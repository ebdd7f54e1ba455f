"""Qwen3-VL: chats with an image, which a vision tower turns into tokens and positions of three dimensions.

An image is looked at once, when its request gets a slot. What the tower made of it (a state for each of its tokens, and
one more for each of the first layers) is put in where the prompt's pieces have its pads, however they are cut, and let
go when the prompt is read. Of an image's tokens all have the same place in time, and their row and column; text goes
on behind the longer side, so positions lag behind the cache's: by a delta that decoding keeps.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from harness.engines.base import Int64Array, Requests
from harness.engines.bodies import chat_of_prompt
from harness.engines.chats import qwen3_vl
from harness.engines.chats.picture import MAX_PIXELS, MERGE, MIN_PIXELS, PATCH, Grid
from harness.engines.chats.problems import BadChat
from harness.engines.chats.qwen3_vl import require_packages
from harness.engines.chats.replies import as_replies
from harness.engines.checkpoint import read_json
from harness.engines.slot_plans import Piece, Plan
from harness.engines.slot_prompts import Prompt, Tell, TokenIds, Unservable, as_ids
from harness.engines.torch_attention import Ragged
from harness.engines.torch_chats import StoredChats, end_tokens
from harness.engines.torch_pixels import FRAMES, patches
from harness.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Seen:
    """What the tower made of an image: states (grid.tokens, width) for the embedding, and for each of some layers."""

    at: int
    states: tuple[Tensor, ...]

    def inside(self, piece: Piece) -> tuple[slice, slice] | None:
        """Which of its tokens a piece of the prompt has, and at which of the piece's places; None for none."""
        first = max(piece.start, self.at)
        last = min(piece.start + piece.count, self.at + len(self.states[0]))
        if first >= last:
            return None
        return slice(first - self.at, last - self.at), slice(first - piece.start, last - piece.start)


class Qwen3Vl(TokenIds):
    """The body of Qwen3-VL, for prompts of token ids and for chats with one image.

    Raises MissingError where what reads chats is not installed, ConfigError for a checkpoint of another form.
    """

    takes_chats: ClassVar[bool] = True

    def __init__(self, model: Any, folder: Path, slots: int) -> None:  # noqa: ANN401 - transformers has no types
        require_packages()
        _check(model.config.vision_config, folder)
        self._tower = model.model.visual
        self._text = model.model.language_model
        self._bounds = _pixel_bounds(folder)
        self._ends = end_tokens(folder)
        self._chats = StoredChats()
        self._seen: list[Seen | None] = [None] * slots
        self._ropes: list[Int64Array | None] = [None] * slots
        self._deltas = np.zeros(slots, np.int64)

    def read(self, requests: Requests, place: int) -> Prompt:
        """A chat of a store, a chat that is the prompt itself, or ids. An image is not looked at yet."""
        workload = requests.workload
        tell: Tell = as_ids
        if workload.bodies:
            chat, tell = bytes(self._chats.read(requests, place).body), as_replies
        elif workload.chat_prompts:
            chat = chat_of_prompt(requests.prompt(place))
        else:
            return super().read(requests, place)
        try:
            read = qwen3_vl.read(chat, *self._bounds)
        except BadChat as problem:
            raise Unservable(problem.kind, str(problem)) from None
        return Prompt(np.array(read.ids, np.int32), self._ends, read, tell)

    def seat(self, slot: int, prompt: Prompt) -> None:
        """Looks at the prompt's image. Its pixels are not kept."""
        self._seen[slot] = self._ropes[slot] = None
        self._deltas[slot] = 0
        if isinstance(prompt.image, qwen3_vl.Prompt):
            read = prompt.image
            self._seen[slot] = Seen(read.image_at, self._look(read))
            self._ropes[slot], self._deltas[slot] = rope_positions(len(read.ids), read.image_at, read.grid)

    def forget(self) -> None:
        """Holds no store."""
        self._chats.forget()

    def _look(self, read: qwen3_vl.Prompt) -> tuple[Tensor, ...]:
        try:
            values = patches(read.image, read.grid)
        except BadChat as problem:
            raise Unservable(problem.kind, str(problem)) from None
        finally:
            read.image.close()
        with torch.inference_mode():
            seen = self._tower(
                torch.from_numpy(values).to(self._tower.dtype),
                grid_thw=torch.tensor([[1, read.grid.rows, read.grid.columns]]),
            )
            return (seen.pooler_output, *seen.deepstack_features)

    def hidden(self, plan: Plan, ragged: Ragged) -> Tensor:
        """The hidden states (N, width) of a plan's tokens; lets go of images whose prompts are read."""
        states = self._text.embed_tokens(torch.from_numpy(plan.tokens))
        places, layers = self._visible(plan)
        if layers:
            states[places] = layers[0]
        output = self._text(
            inputs_embeds=states[None],
            position_ids=torch.from_numpy(self._rope(plan))[:, None],
            use_cache=False,
            visual_pos_masks=places[None] if layers else None,
            deepstack_visual_embeds=layers[1:] or None,
            ragged=ragged,
        )
        for piece in plan.pieces:
            if piece.ends:
                self._seen[piece.slot] = self._ropes[piece.slot] = None
        hidden: Tensor = output.last_hidden_state[0]
        return hidden

    def _visible(self, plan: Plan) -> tuple[Tensor, list[Tensor]]:
        """At which of a plan's tokens (bool, N) images are seen, and what is seen there: by layer, in order."""
        places = torch.zeros(len(plan.tokens), dtype=torch.bool)
        found: list[tuple[Tensor, ...]] = []
        start = len(plan.decoding)
        for piece in plan.pieces:
            seen = self._seen[piece.slot]
            inside = seen.inside(piece) if seen else None
            if seen and inside:
                own, at = inside
                places[start + at.start : start + at.stop] = True
                found.append(tuple(states[own] for states in seen.states))
            start += piece.count
        return places, [torch.cat(states) for states in zip(*found, strict=True)]

    def _rope(self, plan: Plan) -> Int64Array:
        """Time, row and column (3, N) of a plan's tokens."""
        rope = np.repeat(plan.positions[None], 3, axis=0)
        start = len(plan.decoding)
        rope[:, :start] += self._deltas[plan.decoding]
        for piece in plan.pieces:
            own = self._ropes[piece.slot]
            if own is not None:
                rope[:, start : start + piece.count] = own[:, piece.start : piece.start + piece.count]
            start += piece.count
        return rope


def rope_positions(length: int, image_at: int, grid: Grid) -> tuple[Int64Array, int]:
    """Time, row and column (3, length) of a prompt's tokens, and how far what follows lies behind its place."""
    rows, columns = grid.rows // MERGE, grid.columns // MERGE
    before = np.repeat(np.arange(image_at)[None], 3, axis=0)
    inside = image_at + np.stack([np.zeros((rows, columns), np.int64), *np.indices((rows, columns))]).reshape(3, -1)
    after = np.arange(length - image_at - grid.tokens) + image_at + max(rows, columns)
    found = np.concatenate([before, inside, np.repeat(after[None], 3, axis=0)], axis=1)
    return found, max(rows, columns) - grid.tokens


def _check(vision: Any, folder: Path) -> None:  # noqa: ANN401 - transformers has no types
    """ConfigError for a tower whose patches are not those that :mod:`~harness.engines.torch_pixels` makes."""
    found = (vision.patch_size, vision.spatial_merge_size, vision.temporal_patch_size)
    if found != (PATCH, MERGE, FRAMES):
        raise ConfigError(
            f"the vision tower's patches are {found}",
            where=folder / "config.json",
            expected=f"patch_size {PATCH}, spatial_merge_size {MERGE}, temporal_patch_size {FRAMES}",
        )


def _pixel_bounds(folder: Path) -> tuple[int, int]:
    """The least and the most pixels of an image, by the checkpoint's ``preprocessor_config.json``."""
    size = (read_json(folder / "preprocessor_config.json") or {}).get("size", {})
    least, most = size.get("shortest_edge", MIN_PIXELS), size.get("longest_edge", MAX_PIXELS)
    if not (isinstance(least, int) and isinstance(most, int) and 0 < least <= most):
        raise ConfigError(
            f"images of {least} to {most} pixels",
            where=folder / "preprocessor_config.json",
            expected="size: shortest_edge and longest_edge, numbers of pixels",
        )
    return least, most
