"""Choosing tokens over a large vocabulary without ever holding all its logits.

One pass over the head keeps of each block of ids what choosing among blocks needs: its largest logit and, where a row
is sampled, its mass (the sum of exponentials). Then one block a row is chosen, its logits are computed again, and the
token is chosen inside it. For temperature 0 that is an argmax; for others it is the inverse of the cumulative
distribution, in two levels.

Where ``top_k`` is set, the best ids lie in as many blocks, those of the largest logits: these are computed again, and
the token is chosen inside them. Rows with ``top_p`` alone, or with a large ``top_k``, take a slower path that sorts.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from harness.engines.base import Sampling
from harness.engines.torch_head import BLOCK, Head
from harness.errors import RunBroke

_BITS_PER_NAT = math.log2(math.e)
_MOST_BLOCKS = 64
"""The largest ``top_k`` for which computing blocks again is cheaper than sorting all logits."""
MOST_STREAMS = 1024
"""Of so many seeds the streams are kept, of 5 kB each: a server may see another seed with every request."""


class Sampler:
    """Chooses tokens for rows of hidden states by a :class:`Head`. One random stream for each seed."""

    def __init__(self, head: Head) -> None:
        self._head = head
        self._streams: dict[int, torch.Generator] = {}

    def restart(self) -> None:
        """Starts all random streams anew."""
        self._streams.clear()

    def choose(self, hidden: Tensor, samplings: Sequence[Sampling]) -> Tensor:
        """One token id, int64 (n,), for each row of ``hidden`` (n, width), by its own sampling.

        Raises RunBroke where logits are not finite: no token could be told from another.
        """
        if not samplings:
            return torch.empty(0, dtype=torch.int64)
        draws = self._draw(samplings)
        rows_of: dict[_Way, list[int]] = {}
        for row, sampling in enumerate(samplings):
            rows_of.setdefault(_way(sampling), []).append(row)
        ways = {
            _Way.WHOLE: self._choose_whole,
            _Way.BEST: self._choose_among_best,
            _Way.SORTED: self._choose_sorted,
        }
        if len(rows_of) == 1:
            return ways[next(iter(rows_of))](hidden, samplings, draws)
        tokens = torch.empty(len(samplings), dtype=torch.int64)
        for way, rows in rows_of.items():
            tokens[rows] = ways[way](hidden[rows], [samplings[row] for row in rows], draws[rows])
        return tokens

    def _draw(self, samplings: Sequence[Sampling]) -> Tensor:
        """Two numbers of [0, 1) for each row, float64 (n, 2), from the stream of the row's seed; zeros where greedy."""
        draws = torch.zeros((len(samplings), 2), dtype=torch.float64)
        rows_of: dict[int, list[int]] = {}
        for row, sampling in enumerate(samplings):
            if sampling.temperature > 0:
                rows_of.setdefault(sampling.seed, []).append(row)
        for seed, rows in rows_of.items():
            if seed not in self._streams:
                self._begin(seed, rows_of)
            draws[rows] = torch.rand((len(rows), 2), dtype=torch.float64, generator=self._streams[seed])
        return draws

    def _begin(self, seed: int, in_use: Collection[int]) -> None:
        """Starts a stream, in the place of the oldest that no row of this step draws from where there are too many."""
        if len(self._streams) >= MOST_STREAMS:
            oldest = next((each for each in self._streams if each not in in_use), None)
            if oldest is not None:
                del self._streams[oldest]
        self._streams[seed] = torch.Generator().manual_seed(seed)

    def _choose_whole(self, hidden: Tensor, samplings: Sequence[Sampling], draws: Tensor) -> Tensor:
        sampled = torch.tensor([sampling.temperature > 0 for sampling in samplings])
        if not sampled.any():
            blocks = self._best_blocks(hidden)
            return blocks * BLOCK + _finite(self._head.inside(hidden, blocks)).argmax(1)
        # The head has no bias, so scaling what goes in scales the logits: by the temperature, and to base 2, whose
        # exponential costs little more than half of e's. Greedy rows stay as they are.
        scales = [_BITS_PER_NAT / sampling.temperature if sampling.temperature else 1.0 for sampling in samplings]
        hidden = hidden * torch.tensor(scales, dtype=hidden.dtype)[:, None]
        best, masses = self._best_blocks_and_masses(hidden)
        blocks = torch.where(sampled, _invert(masses, draws[:, 0]), best)
        inside = self._head.inside(hidden, blocks)
        inside_masses = (inside - inside.amax(1, keepdim=True)).double().exp2_()
        return blocks * BLOCK + torch.where(sampled, _invert(inside_masses, draws[:, 1]), inside.argmax(1))

    def _best_blocks(self, hidden: Tensor) -> Tensor:
        """For each row the block (int64) that holds its largest logit."""
        return _finite(torch.cat([logits.amax(2) for logits in self._head.by_chunk(hidden)], 1)).argmax(1)

    def _best_blocks_and_masses(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Also the masses of all blocks, float64 (n, blocks): sums of 2 ** (logit - the row's largest)."""
        maxima, masses = [], []
        for logits in self._head.by_chunk(hidden):
            maxima.append(logits.amax(2, keepdim=True))
            masses.append(logits.sub_(maxima[-1]).exp2_().sum(2))
        largest = _finite(torch.cat(maxima, 1)[:, :, 0])
        # Each sum is relative to its block's own largest: the row's is known only after the last block.
        relative = (largest - largest.amax(1, keepdim=True)).double().exp2_()
        return largest.argmax(1), relative.mul_(torch.cat(masses, 1))

    def _choose_among_best(self, hidden: Tensor, samplings: Sequence[Sampling], draws: Tensor) -> Tensor:
        """Tokens of rows whose choice is narrowed to few best ids, then to the fewest of them of mass ``top_p``."""
        most = min(max(sampling.top_k for sampling in samplings), self._head.blocks)
        maxima = _finite(torch.cat([logits.amax(2) for logits in self._head.by_chunk(hidden)], 1))
        blocks = maxima.topk(most).indices
        inside = self._head.inside(hidden.repeat_interleave(most, 0), blocks.flatten())
        best, places = inside.view(len(hidden), -1).topk(max(sampling.top_k for sampling in samplings))
        ids = blocks.gather(1, places // BLOCK) * BLOCK + places % BLOCK
        return ids.gather(1, _narrowed(best, samplings, draws)[:, None])[:, 0]

    def _choose_sorted(self, hidden: Tensor, samplings: Sequence[Sampling], draws: Tensor) -> Tensor:
        """As :meth:`_choose_among_best`, for any ``top_k``; row by row."""
        tokens = torch.empty(len(samplings), dtype=torch.int64)
        for row, sampling in enumerate(samplings):
            logits = _finite(self._head.whole(hidden[row]))
            best, ids = logits.topk(min(sampling.top_k or len(logits), len(logits)))
            tokens[row] = ids[_narrowed(best[None], [sampling], draws[row : row + 1])[0]]
        return tokens


class _Way(enum.Enum):
    """How the token of a row is chosen."""

    WHOLE = enum.auto()
    BEST = enum.auto()
    SORTED = enum.auto()


def _way(sampling: Sampling) -> _Way:
    if sampling.temperature == 0 or (sampling.top_p == 1 and sampling.top_k == 0):
        return _Way.WHOLE
    return _Way.BEST if 0 < sampling.top_k <= _MOST_BLOCKS else _Way.SORTED


def _narrowed(best: Tensor, samplings: Sequence[Sampling], draws: Tensor) -> Tensor:
    """The place (n,) that is drawn in each row of logits ``best`` (n, m), largest first, by ``top_k`` and ``top_p``."""
    temperatures = torch.tensor([sampling.temperature for sampling in samplings], dtype=torch.float64)
    counts = torch.tensor([sampling.top_k or best.shape[1] for sampling in samplings])
    shares = torch.tensor([sampling.top_p for sampling in samplings], dtype=torch.float64)
    logits = best.double() / temperatures[:, None]
    logits.masked_fill_(torch.arange(best.shape[1]) >= counts[:, None], float("-inf"))
    masses = torch.softmax(logits, 1)
    # The first place is kept whatever its mass: nothing comes before it.
    masses.masked_fill_(masses.cumsum(1) - masses >= shares[:, None], 0)
    return _invert(masses, draws[:, 0])


def _finite(logits: Tensor) -> Tensor:
    """``logits`` (..., m), of which each row must have a finite largest; one NaN makes the largest a NaN."""
    if not logits.amax(-1).isfinite().all():
        raise RunBroke("the model's logits are not finite", mend="check the checkpoint, or compute in float32")
    return logits


def _invert(masses: Tensor, draws: Tensor) -> Tensor:
    """The place in each row of ``masses`` (n, m), float64, at which the share ``draws`` (n,) of its sum is passed.

    A place without mass is never returned: the first sum above the target is one that its own place has raised, and
    the target is kept below the whole sum, whatever the product rounds to.
    """
    sums = masses.cumsum(1)
    whole = sums[:, -1]
    targets = torch.minimum(draws * whole, torch.nextafter(whole, torch.zeros_like(whole)))
    return torch.searchsorted(sums, targets[:, None], right=True)[:, 0]
