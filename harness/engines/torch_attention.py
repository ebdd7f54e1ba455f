"""The key-value cache in slots, and attention over it, as an attention function of transformers.

transformers' modelling code hands queries, keys and values of all N tokens of a step to the function registered here.
It stores keys and values in the cache and attends: slots that decode all at once, each piece of a prompt by itself.
So there is no padding, and no mask is made by the modelling code.

Attention sinks and sliding windows are arguments of transformers' attention interface; what a model does not have it
does not pass.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

from harness.engines.slots import Piece, Plan

NAME = "harness_slots"
"""What transformers knows :func:`attend` by."""


@dataclass(slots=True)
class SlotCache:
    """By layer, keys and values: (slots, key-value heads, max_total_tokens, size). A layer's first write makes them."""

    slots: int
    max_total_tokens: int
    layers: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def layer(self, index: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """The cache of a layer whose keys and values look like ``key`` and ``value``: (1, heads, N, size)."""
        if index not in self.layers:
            # Zeros, not empty: a masked place is multiplied by 0, and 0 times a stray NaN is NaN.
            self.layers[index] = (self._zeros(key), self._zeros(value))
        return self.layers[index]

    def _zeros(self, like: Tensor) -> Tensor:
        return like.new_zeros((self.slots, like.shape[1], self.max_total_tokens, like.shape[3]))


class Ragged:
    """A step's :class:`Plan` as tensors, and the masks its layers share; the model hands it on to :func:`attend`."""

    def __init__(self, plan: Plan, cache: SlotCache) -> None:
        self.cache = cache
        self.pieces = plan.pieces
        self.slots = torch.from_numpy(plan.slots)
        self.positions = torch.from_numpy(plan.positions)
        self.decoding = len(plan.decoding)
        self.longest = int(plan.positions[: self.decoding].max()) + 1 if self.decoding else 0
        # The lowest free slot is taken first, so under load the slots in use lie side by side and need no gathering.
        self._dense = self.decoding == 0 or int(plan.decoding[-1]) == self.decoding - 1
        self._masks: dict[int | None, Tensor] = {}

    def decoding_rows(self, stored: Tensor) -> Tensor:
        """(slots, heads, max_total_tokens, size) -> (decoding, heads, longest, size)."""
        if self._dense:
            return stored[: self.decoding, :, : self.longest]
        return stored[:, :, : self.longest].index_select(0, self.slots[: self.decoding])

    def decoding_mask(self, window: int | None) -> Tensor:
        """(decoding, 1, 1, longest): 0 where a slot may look, -inf where it may not."""
        if window not in self._masks:
            last = self.positions[: self.decoding, None]
            self._masks[window] = _mask(last, torch.arange(self.longest), window)[:, None, None]
        return self._masks[window]


def attend(
    module: torch.nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    *,
    scaling: float,
    ragged: Ragged,
    sliding_window: int | None = None,
    s_aux: Tensor | None = None,
    **_: object,
) -> tuple[Tensor, None]:
    """Attention of N tokens, each over what its own slot holds up to its position.

    ``query`` is (1, heads, N, size), ``key`` and ``value`` are (1, key-value heads, N, size), ``s_aux`` is one sink a
    head. Returns (1, N, heads, value size). The interface is transformers' ``AttentionInterface``.
    """
    index = int(module.layer_idx)  # type: ignore[arg-type]
    keys, values = ragged.cache.layer(index, key, value)
    keys.transpose(1, 2).index_put_((ragged.slots, ragged.positions), key[0].transpose(0, 1))
    values.transpose(1, 2).index_put_((ragged.slots, ragged.positions), value[0].transpose(0, 1))
    groups = query.shape[1] // key.shape[1]
    query = (query[0] * scaling).view(key.shape[1], groups, *query.shape[2:])
    sinks = None if s_aux is None else s_aux.to(query.dtype).view(key.shape[1], groups, 1)
    results = []
    if ragged.decoding:
        row_query = query[:, :, : ragged.decoding].permute(2, 0, 1, 3)
        results.append(
            _attend(
                row_query,
                ragged.decoding_rows(keys),
                ragged.decoding_rows(values),
                ragged.decoding_mask(sliding_window),
                sinks,
            ).flatten(1, 2)
        )
    start = ragged.decoding
    for piece in ragged.pieces:
        own = query[:, :, start : start + piece.count]
        results.append(_attend_piece(own, keys[piece.slot], values[piece.slot], piece, sliding_window, sinks))
        start += piece.count
    return torch.cat(results)[None], None


def _attend_piece(
    query: Tensor, keys: Tensor, values: Tensor, piece: Piece, window: int | None, sinks: Tensor | None
) -> Tensor:
    """``query`` (key heads, groups, count, size) over a slot's ``keys`` (key heads, ..., size): (count, heads, size)."""
    end = piece.start + piece.count
    begin = 0 if window is None else max(0, piece.start - window + 1)
    mask = _mask(torch.arange(piece.start, end)[:, None], torch.arange(begin, end), window)
    heads, groups, count, size = query.shape
    result = _attend(
        query.reshape(heads, groups * count, size),
        keys[:, begin:end],
        values[:, begin:end],
        mask.repeat(groups, 1),
        None if sinks is None else sinks.expand(heads, groups, count).reshape(heads, groups * count, 1),
    )
    return result.view(heads, groups, count, -1).permute(2, 0, 1, 3).flatten(1, 2)


def _attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor, sinks: Tensor | None) -> Tensor:
    """Softmax attention (..., queries, size) over (..., keys, size), with one more logit a query that has no value."""
    scores = torch.matmul(query, keys.transpose(-1, -2)).add_(mask)
    if sinks is None:
        return torch.matmul(torch.softmax(scores, -1), values)
    sunk = torch.cat((scores, sinks.expand(*scores.shape[:-1], 1)), -1)
    return torch.matmul(torch.softmax(sunk, -1)[..., :-1], values)


def _mask(at: Tensor, over: Tensor, window: int | None) -> Tensor:
    """0 where position ``at`` may look at position ``over``, else -inf (float32)."""
    hidden = over > at
    if window is not None:
        hidden |= over <= at - window
    return torch.zeros(hidden.shape).masked_fill_(hidden, float("-inf"))
