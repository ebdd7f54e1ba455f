"""The key-value cache in slots, and attention over it, as an attention function of transformers.

transformers' modelling code hands queries, keys and values of all N tokens of a step to the function registered here.
It stores keys and values in the cache and attends: slots that decode all at once, each piece of a prompt by itself.
So there is no padding, and no mask is made by the modelling code. Where what slots hold is long, those that decode
attend one by one as well: copying it side by side, and reading the shorter ones to the longest's end, would cost more.

Attention sinks and sliding windows are arguments of transformers' attention interface; what a model does not have it
does not pass. A value may be of another size than a key.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from harness.engines.slot_plans import Piece, Plan

NAME = "harness_slots"
"""What transformers knows :func:`attend` by."""
_LONG = 1024
"""Positions from which on slots that decode attend one by one."""
_ALIGNED = 64
"""Bytes, as torch aligns its own."""


@dataclass(slots=True)
class SlotCache:
    """By layer, keys and values: (slots, key heads, max_total_tokens, size). A layer's first write makes them.

    Of what is made, only those pages take memory that are written: a slot for long prompts costs nothing before one.
    """

    slots: int
    max_total_tokens: int
    layers: dict[int, tuple[Tensor, Tensor]] = field(default_factory=dict)

    def layer(self, index: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """The cache of a layer whose keys and values look like ``key`` and ``value``: (1, key heads, N, size)."""
        if index not in self.layers:
            # Zeros, not empty: a masked place is multiplied by 0, and 0 times a stray NaN is NaN.
            self.layers[index] = (self._zeros(key), self._zeros(value))
        return self.layers[index]

    def _zeros(self, like: Tensor) -> Tensor:
        shape = (self.slots, like.shape[1], self.max_total_tokens, like.shape[3])
        size = math.prod(shape) * like.element_size()
        raw = np.zeros(size + _ALIGNED, np.uint8)
        begin = -raw.ctypes.data % _ALIGNED
        return torch.from_numpy(raw[begin : begin + size]).view(like.dtype).view(shape)


class Ragged:
    """A step's :class:`Plan` as tensors, and the masks its layers share; the model hands it on to :func:`attend`.

    Masks are 0 where a token may look and -inf where it may not, to be added: on a CPU that is far faster than a
    boolean fill. ``window`` is a sliding layer's, None for a full one.
    """

    def __init__(self, plan: Plan, cache: SlotCache) -> None:
        self.cache = cache
        self.pieces = plan.pieces
        self.slots = torch.from_numpy(plan.slots)
        self.positions = torch.from_numpy(plan.positions)
        self.decoding = len(plan.decoding)
        self._longest = int(plan.positions[: self.decoding].max()) + 1 if self.decoding else 0
        if self._longest > _LONG:
            self.pieces = _one_by_one(plan) + self.pieces
            self.decoding = 0
        # The lowest free slot is taken first, so under load the slots in use lie side by side and need no gathering.
        self._dense = self.decoding == 0 or int(plan.decoding[-1]) == self.decoding - 1
        self._masks: dict[tuple[Piece | None, int | None], Tensor] = {}

    def decoding_rows(self, stored: Tensor) -> Tensor:
        """(slots, key heads, max_total_tokens, size) -> (decoding, key heads, longest, size)."""
        if self._dense:
            return stored[: self.decoding, :, : self._longest]
        return stored[:, :, : self._longest].index_select(0, self.slots[: self.decoding])

    def decoding_mask(self, window: int | None) -> Tensor:
        """(decoding, 1, 1, longest)."""
        key = (None, window)
        if key not in self._masks:
            at = self.positions[: self.decoding, None]
            self._masks[key] = _mask(at, torch.arange(self._longest), window)[:, None, None]
        return self._masks[key]

    def piece_mask(self, piece: Piece, first: int, window: int | None) -> Tensor | None:
        """(piece.count, piece.start + piece.count - first), over positions from ``first`` on; None: all may be seen."""
        if piece.count == 1:
            return None
        key = (piece, window)
        if key not in self._masks:
            at = torch.arange(piece.start, piece.start + piece.count)
            if window is None:
                mask = torch.zeros(piece.count, piece.start + piece.count)
                mask[:, piece.start :] = _mask(at[:, None], at, None)
            else:
                mask = _mask(at[:, None], torch.arange(first, piece.start + piece.count), window)
            self._masks[key] = mask
        return self._masks[key]


def _one_by_one(plan: Plan) -> tuple[Piece, ...]:
    """The tokens of slots that decode, each as a piece of its own."""
    places = zip(plan.decoding.tolist(), plan.positions.tolist(), strict=False)
    return tuple(Piece(slot, position, 1, ends=False) for slot, position in places)


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

    ``query`` is (1, heads, N, size), ``key`` and ``value`` are (1, key heads, N, size), ``s_aux`` is one sink a head.
    Returns (1, N, heads, value size). The interface is transformers' ``AttentionInterface``.
    """
    keys, values = ragged.cache.layer(int(module.layer_idx), key, value)  # type: ignore[arg-type]
    keys.transpose(1, 2).index_put_((ragged.slots, ragged.positions), key[0].transpose(0, 1))
    values.transpose(1, 2).index_put_((ragged.slots, ragged.positions), value[0].transpose(0, 1))
    key_heads, groups = key.shape[1], query.shape[1] // key.shape[1]
    query = (query[0] * scaling).view(key_heads, groups, *query.shape[2:])
    sinks = None if s_aux is None else s_aux.to(query.dtype).view(key_heads, groups, 1)
    results = []
    if ragged.decoding:
        rows = query[:, :, : ragged.decoding].permute(2, 0, 1, 3)
        mask = ragged.decoding_mask(sliding_window)
        attended = _attend(rows, ragged.decoding_rows(keys), ragged.decoding_rows(values), mask, sinks)
        results.append(attended.flatten(1, 2))
    start = ragged.decoding
    for piece in ragged.pieces:
        own = query[:, :, start : start + piece.count]
        first = 0 if sliding_window is None else max(0, piece.start - sliding_window + 1)
        hidden = ragged.piece_mask(piece, first, sliding_window)
        seen = slice(first, piece.start + piece.count)
        results.append(_attend_piece(own, keys[piece.slot, :, seen], values[piece.slot, :, seen], hidden, sinks))
        start += piece.count
    return torch.cat(results)[None], None


def _attend_piece(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, sinks: Tensor | None) -> Tensor:
    """(count, heads, value size) of ``query`` (key heads, groups, count, size) over keys (key heads, seen, size)."""
    if mask is None or sinks is not None:
        return _attend_piece_plainly(query, keys, values, mask, sinks)
    size = values.shape[-1]
    if size != keys.shape[-1]:  # there is a fused attention for equal sizes only
        values = functional.pad(values, (0, keys.shape[-1] - size))
    attended = functional.scaled_dot_product_attention(
        query.flatten(0, 1)[None], keys[None], values[None], attn_mask=mask.to(query.dtype), scale=1.0, enable_gqa=True
    )
    return attended[0, :, :, :size].transpose(0, 1)


def _attend_piece_plainly(
    query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, sinks: Tensor | None
) -> Tensor:
    """As :func:`_attend_piece`, with a sink a head, (key heads, groups, 1), for which torch has no fused attention."""
    key_heads, groups, count, size = query.shape
    attended = _attend(
        query.reshape(key_heads, groups * count, size),
        keys,
        values,
        None if mask is None else mask.expand(groups, *mask.shape).flatten(0, 1),
        None if sinks is None else sinks.expand(key_heads, groups, count).reshape(key_heads, groups * count, 1),
    )
    return attended.view(key_heads, groups, count, -1).permute(2, 0, 1, 3).flatten(1, 2)


def _attend(query: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None, sinks: Tensor | None) -> Tensor:
    """Softmax attention (..., queries, size) over (..., keys, size). A sink is one more logit, which has no value."""
    scores = torch.matmul(query, keys.transpose(-1, -2))
    if mask is not None:
        scores.add_(mask)
    if sinks is None:
        return torch.matmul(torch.softmax(scores, -1), values)
    with_sinks = torch.cat((scores, sinks.expand(*scores.shape[:-1], 1)), -1)
    return torch.matmul(torch.softmax(with_sinks, -1)[..., :-1], values)


def _mask(at: Tensor, over: Tensor, window: int | None) -> Tensor:
    """-inf where position ``at`` may not look at position ``over`` (it is later, or before the window), else 0."""
    hidden = over > at
    if window is not None:
        hidden |= over <= at - window
    return torch.zeros(hidden.shape).masked_fill_(hidden, float("-inf"))
