"""The head of a language model, a few blocks of the vocabulary at a time.

A head of 201,088 ids makes 25 MB of logits for 32 rows: written, read and faulted in anew at each step, they cost more
than the arithmetic. Cut into chunks that stay in the cache, they are never held as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch.nn import functional

BLOCK = 128
"""Ids to a block: what :mod:`~harness.engines.sampler` chooses among first."""
_CHUNK = 64 * BLOCK
_ROWS = 32
"""The batch that packed weights are laid out for; it makes no difference to what they give."""


class Head:
    """Logits of hidden states by ``weight`` (vocabulary, width), without bias. Ids beyond the vocabulary have -inf."""

    def __init__(self, weight: Tensor) -> None:
        self.vocab_size = len(weight)
        self.blocks = -(-self.vocab_size // BLOCK)
        self._weight = weight
        padded = functional.pad(weight, (0, 0, 0, self.blocks * BLOCK - self.vocab_size))
        self._chunks = list(torch.split(padded, _CHUNK))
        # Laid out once for oneDNN's matrix product, a chunk takes half the time at 8 rows. The operators are those of
        # torch's own compiler; the exact pin of torch makes them safe to name.
        self._packed = weight.dtype == torch.float32 and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
        if self._packed:
            pack = torch.ops.mkldnn._reorder_linear_weight
            self._chunks = [pack(chunk.contiguous(), _ROWS) for chunk in self._chunks]

    def by_chunk(self, hidden: Tensor) -> Iterator[Tensor]:
        """All logits of the rows ``hidden`` (n, width) in order of id, chunk by chunk: float32 (n, blocks, BLOCK).

        The caller may write into them.
        """
        for number, chunk in enumerate(self._chunks):
            logits = self._product(hidden, chunk).float()
            if number == len(self._chunks) - 1:
                logits[:, self.vocab_size - number * _CHUNK :] = float("-inf")
            yield logits.view(len(hidden), -1, BLOCK)

    def _product(self, hidden: Tensor, chunk: Tensor) -> Tensor:
        if self._packed:
            product: Tensor = torch.ops.mkldnn._linear_pointwise(hidden, chunk, None, "none", [], "")
            return product
        return functional.linear(hidden, chunk)

    def inside(self, hidden: Tensor, blocks: Tensor) -> Tensor:
        """The logits float32 (n, BLOCK) of one block (int64) for each of the rows ``hidden`` (n, width)."""
        ids = blocks[:, None] * BLOCK + torch.arange(BLOCK)
        weights = self._weight[ids.clamp(max=self.vocab_size - 1)]
        logits = torch.bmm(weights, hidden[:, :, None])[:, :, 0].float()
        return logits.masked_fill_(ids >= self.vocab_size, float("-inf"))

    def whole(self, hidden: Tensor) -> Tensor:
        """All logits float32 (vocabulary,) of one hidden state (width,)."""
        return (self._weight @ hidden).float()
