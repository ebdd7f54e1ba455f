"""Choosing tokens over a large vocabulary without ever holding all its logits.

The vocabulary is cut into blocks of :data:`BLOCK` ids. One pass over the head's matrix, a few blocks at a time, keeps
of each block what choosing among blocks needs: its largest logit and, where a row is sampled, its mass (the sum of
exponentials). Then one block a row is chosen, its logits are computed again, and the token is chosen inside it. For
temperature 1 that is an inverse cumulative distribution in two levels; for temperature 0 it is an argmax.

Logits lie with the vocabulary down and the rows across: that is how the matrix product, the maxima and the sums are
fastest on a CPU, and a few blocks at a time stay in the cache.

Rows with ``top_p`` below 1 or ``top_k`` above 0 take a slower path that sorts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from harness.engines.base import Sampling
from harness.errors import RunBroke

BLOCK = 128
_BLOCKS_AT_ONCE = 48
_COLUMNS = 16
"""Rows are padded to a multiple of this; one register tile of the matrix product."""


@dataclass(slots=True)
class _Scan:
    """What one pass over the vocabulary keeps, all (blocks, n): maxima, and masses relative to exp(``shift``)."""

    maxima: Tensor
    masses: Tensor
    shifts: Tensor


class Sampler:
    """Chooses tokens by ``head`` (vocabulary, width) for rows of hidden states. One random stream for each seed."""

    def __init__(self, head: Tensor) -> None:
        self._head = head
        self._vocab_size = head.shape[0]
        self._blocks = -(-self._vocab_size // BLOCK)
        self._generators: dict[int, torch.Generator] = {}
        self._buffers: dict[int, Tensor] = {}

    def restart(self) -> None:
        """Starts all random streams anew."""
        self._generators.clear()

    def choose(self, hidden: Tensor, samplings: Sequence[Sampling]) -> Tensor:
        """One token id (int64) for each row of ``hidden`` (n, width), by its own sampling.

        Raises RunBroke where logits are not finite: no token could be told from another.
        """
        filtered = [row for row, sampling in enumerate(samplings) if _filters(sampling)]
        draws = self._draw(samplings)
        if not filtered:
            return self._choose_plain(hidden, samplings, draws)
        tokens = torch.empty(len(samplings), dtype=torch.int64)
        plain = [row for row, sampling in enumerate(samplings) if not _filters(sampling)]
        if plain:
            tokens[plain] = self._choose_plain(hidden[plain], [samplings[row] for row in plain], draws[plain])
        for row in filtered:
            tokens[row] = self._choose_filtered(hidden[row], samplings[row], draws[row, 0])
        return tokens

    def _draw(self, samplings: Sequence[Sampling]) -> Tensor:
        """Two numbers of [0, 1) for each row, float64 (n, 2), from the stream of the row's seed; zeros where greedy."""
        draws = torch.zeros((len(samplings), 2), dtype=torch.float64)
        rows_of: dict[int, list[int]] = {}
        for row, sampling in enumerate(samplings):
            if sampling.temperature > 0:
                rows_of.setdefault(sampling.seed, []).append(row)
        for seed, rows in rows_of.items():
            if seed not in self._generators:
                self._generators[seed] = torch.Generator().manual_seed(seed)
            draws[rows] = torch.rand((len(rows), 2), dtype=torch.float64, generator=self._generators[seed])
        return draws

    def _choose_plain(self, hidden: Tensor, samplings: Sequence[Sampling], draws: Tensor) -> Tensor:
        temperatures = [sampling.temperature for sampling in samplings]
        if any(temperature not in (0, 1) for temperature in temperatures):
            # The head has no bias: dividing what goes in divides the logits.
            hidden = hidden / torch.tensor([t or 1.0 for t in temperatures], dtype=hidden.dtype)[:, None]
        sampled = torch.tensor([temperature > 0 for temperature in temperatures])
        scan = self._scan(hidden, masses=bool(sampled.any()))
        blocks = scan.maxima.argmax(0)
        if sampled.any():
            shift = scan.shifts.amax(0)
            masses = scan.masses.double() * (scan.shifts - shift).double().exp_()
            blocks = torch.where(sampled, _invert(masses.t().contiguous(), draws[:, 0]), blocks)
        return self._choose_inside(hidden, blocks, sampled, draws[:, 1])

    def _scan(self, hidden: Tensor, *, masses: bool) -> _Scan:
        count = len(hidden)
        width = count if count == 1 else -(-count // _COLUMNS) * _COLUMNS
        columns = hidden.new_zeros((hidden.shape[1], width))
        columns[:, :count] = hidden.t()
        scan = _Scan(*(torch.empty((self._blocks, width)) for _ in range(3)))
        buffer = self._buffers.setdefault(width, hidden.new_empty((_BLOCKS_AT_ONCE * BLOCK, width)))
        for first in range(0, self._blocks, _BLOCKS_AT_ONCE):
            last = min(first + _BLOCKS_AT_ONCE, self._blocks)
            logits = self._logits(columns, buffer, first, last)
            maxima = torch.amax(logits, 1, out=scan.maxima[first:last])
            if masses:
                shift = maxima.amax(0)
                scan.shifts[first:last] = shift
                torch.sum(logits.sub_(shift).exp_(), 1, out=scan.masses[first:last])
        if not torch.isfinite(scan.maxima).all():
            raise RunBroke("the model's logits are not finite", expected="numbers", mend="try another dtype")
        return _Scan(*(kept[:, :count] for kept in (scan.maxima, scan.masses, scan.shifts)))

    def _logits(self, columns: Tensor, buffer: Tensor, first: int, last: int) -> Tensor:
        """The logits of blocks ``first`` to ``last``, float32 (blocks, BLOCK, n); -inf beyond the vocabulary."""
        weights = self._head[first * BLOCK : last * BLOCK]
        logits = buffer[: (last - first) * BLOCK]
        torch.mm(weights, columns, out=logits[: len(weights)])
        logits[len(weights) :] = float("-inf")
        return logits.float().view(last - first, BLOCK, -1)

    def _choose_inside(self, hidden: Tensor, blocks: Tensor, sampled: Tensor, draws: Tensor) -> Tensor:
        ids = blocks[:, None] * BLOCK + torch.arange(BLOCK)
        beyond = ids >= self._vocab_size
        weights = self._head[ids.clamp_(max=self._vocab_size - 1)]
        logits = torch.bmm(weights, hidden[:, :, None])[:, :, 0].float().masked_fill_(beyond, float("-inf"))
        places = logits.argmax(1)
        if sampled.any():
            masses = (logits - logits.amax(1, keepdim=True)).double().exp_()
            places = torch.where(sampled, _invert(masses, draws), places)
        return ids.gather(1, places[:, None])[:, 0]

    def _choose_filtered(self, hidden: Tensor, sampling: Sampling, draw: Tensor) -> Tensor:
        """The token of one row whose choice is narrowed to the ``top_k`` best, then to the fewest of mass ``top_p``."""
        logits = (self._head @ hidden).double() / sampling.temperature
        best, ids = logits.topk(min(sampling.top_k or self._vocab_size, self._vocab_size))
        masses = torch.softmax(best, 0)
        kept = max(1, int((masses.cumsum(0) - masses < sampling.top_p).sum()))
        return ids[_invert(masses[None, :kept], draw[None])[0]]


def _filters(sampling: Sampling) -> bool:
    return sampling.temperature > 0 and (sampling.top_p < 1 or sampling.top_k > 0)


def _invert(masses: Tensor, draws: Tensor) -> Tensor:
    """The place in each row of ``masses`` (n, m), float64, at which the share ``draws`` (n,) of its sum is passed.

    A place without mass is never returned: the first sum above the target is one that its own place has raised, and
    the target is kept below the whole sum, whatever the product rounds to.
    """
    sums = masses.cumsum(1)
    whole = sums[:, -1]
    targets = torch.minimum(draws * whole, torch.nextafter(whole, torch.zeros_like(whole)))
    return torch.searchsorted(sums, targets[:, None], right=True)[:, 0]
