"""The sampler against softmax: chi-square, block borders, rounding at the tail, filters, greedy."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pytest

from harness.engines.base import Sampling
from harness.errors import RunBroke

torch = pytest.importorskip("torch", reason="needs the [torch] extra")

if TYPE_CHECKING:
    import torch

from harness.engines import sampler as sampler_module  # noqa: E402
from harness.engines.sampler import Sampler, _invert  # noqa: E402
from harness.engines.torch_head import BLOCK, Head  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("one_thread")]

FULL_VOCABULARY = 201_088
Float64Array = npt.NDArray[np.float64]


def sampling(temperature: float = 1.0, top_p: float = 1.0, top_k: int = 0, seed: int = 0) -> Sampling:
    return Sampling(temperature, top_p, top_k, 1, (), seed)


def head_of(logits: Sequence[float] | torch.Tensor) -> Head:
    """A head that gives exactly these logits for the hidden state [1]."""
    return Head(torch.as_tensor(logits, dtype=torch.float32)[:, None].contiguous())


def draw(head: Head, how: Sampling, count: int, rows: int = 1000) -> npt.NDArray[np.int64]:
    """``count`` tokens for the hidden state [1]."""
    sampler = Sampler(head)
    hidden = torch.ones((rows, 1))
    drawn = [sampler.choose(hidden, [how] * rows) for _ in range(-(-count // rows))]
    return torch.cat(drawn).numpy()[:count]


def softmax(logits: torch.Tensor | Sequence[float], temperature: float = 1.0) -> Float64Array:
    whole = torch.as_tensor(logits, dtype=torch.float64) / temperature
    return torch.softmax(whole, 0).numpy()


def p_value(drawn: npt.NDArray[np.int64], expected: Float64Array, least: float = 10.0) -> float:
    """That of Pearson's chi-square; ids are pooled, in order, into bins that expect at least ``least`` draws."""
    observed = np.bincount(drawn, minlength=len(expected)).astype(float)
    assert len(observed) == len(expected), "a token out of range"
    assert not observed[expected == 0].any(), "a token without probability"
    observed, expected = observed[expected > 0], expected[expected > 0]
    bins = np.minimum((np.cumsum(expected) * len(drawn) / least).astype(int), int(len(drawn) / least) - 1)
    _, bins = np.unique(bins, return_inverse=True)
    seen, due = np.bincount(bins, observed), np.bincount(bins, expected) * len(drawn)
    statistic, freedom = float(((seen - due) ** 2 / due).sum()), len(due) - 1
    # Wilson and Hilferty: the cube root of chi-square over its freedom is all but normal.
    deviate = ((statistic / freedom) ** (1 / 3) - 1 + 2 / (9 * freedom)) / math.sqrt(2 / (9 * freedom))
    return 0.5 * math.erfc(deviate / math.sqrt(2))


# All draws below are of fixed seeds: a test that passes once always does. The bound is what a fresh seed would
# miss once in a thousand times.
PASSES = 0.001


def test_the_measure_itself_tells_a_wrong_distribution() -> None:
    logits = torch.linspace(-1, 1, 300)
    drawn = draw(head_of(logits), sampling(), 30_000)
    assert p_value(drawn, softmax(logits)) > PASSES
    assert p_value(drawn, softmax(logits, temperature=1.5)) < 1e-6
    assert p_value(drawn, softmax(torch.zeros(300))) < 1e-6


@pytest.mark.parametrize("size", [1, 2, 5, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK + 3])
@pytest.mark.parametrize("temperature", [1.0, 0.6, 2.0])
def test_small_vocabularies_are_sampled_as_softmax_says(size: int, temperature: float) -> None:
    logits = torch.randn(size, generator=torch.Generator().manual_seed(size)) * 2
    drawn = draw(head_of(logits), sampling(temperature, seed=size), 10_000)
    if size == 1:
        assert not drawn.any()
    else:
        assert p_value(drawn, softmax(logits, temperature)) > PASSES


@pytest.mark.parametrize("spread", [0.2, 3.0])
def test_the_full_vocabulary_is_sampled_as_softmax_says(spread: float) -> None:
    generator = torch.Generator().manual_seed(5)
    weights = torch.randn((FULL_VOCABULARY, 64), generator=generator) / 8
    hidden = torch.randn((1, 64), generator=generator) * spread
    sampler, how = Sampler(Head(weights)), sampling(seed=9)
    drawn = torch.cat([sampler.choose(hidden.expand(256, -1), [how] * 256) for _ in range(10)]).numpy()
    expected = softmax(weights.double() @ hidden[0].double())
    assert p_value(drawn, expected, least=20.0) > PASSES


def test_ids_at_the_borders_of_blocks_are_as_likely_as_others() -> None:
    size = 8 * BLOCK
    drawn = draw(head_of(torch.zeros(size)), sampling(seed=2), 100_000)
    borders = np.zeros(size, bool)
    borders[::BLOCK] = borders[BLOCK - 1 :: BLOCK] = True
    share, due = borders[drawn].mean(), borders.mean()
    assert abs(share - due) < 4 * math.sqrt(due / len(drawn))
    assert p_value(drawn, np.full(size, 1 / size)) > PASSES


def test_ids_without_probability_are_never_drawn() -> None:
    # Minus infinity, and logits so low that their share rounds to nothing, at the start, the end and in between.
    logits = torch.full((6 * BLOCK,), -500.0)
    logits[::3] = float("-inf")
    likely = [1, BLOCK, BLOCK + 1, 4 * BLOCK + 7, 6 * BLOCK - 2]
    logits[likely] = torch.tensor([0.0, 1.0, 2.0, 0.5, 1.5])
    drawn = draw(head_of(logits), sampling(seed=4), 20_000)
    assert sorted(set(drawn.tolist())) == likely
    assert p_value(drawn, softmax(logits)) > PASSES


@pytest.mark.parametrize("share", [0.0, 0.5, 1 - 2**-53])
def test_the_inverse_stays_where_there_is_mass(share: float) -> None:
    # Masses of very different sizes, whose sums round, and nothing at either end.
    masses = torch.tensor([[0.0, 1e-300, 0.1, 0.2, 1e16, 1.0, 1e-12, 0.0, 0.0]], dtype=torch.float64)
    place = int(_invert(masses, torch.tensor([share], dtype=torch.float64))[0])
    assert masses[0, place] > 0
    assert place == {0.0: 1, 0.5: 4}.get(share, place)


def test_large_and_far_apart_logits_neither_overflow_nor_vanish() -> None:
    logits = torch.full((3 * BLOCK,), -3000.0)
    logits[2] = 2999.0
    logits[2 * BLOCK + 5] = 3000.0
    drawn = draw(head_of(logits), sampling(seed=6), 10_000)
    assert p_value(drawn, softmax(logits)) > PASSES


def test_greedy_takes_the_first_of_the_largest() -> None:
    logits = torch.zeros(4 * BLOCK)
    logits[[BLOCK + 3, BLOCK + 9, 3 * BLOCK]] = 1.0
    assert draw(head_of(logits), sampling(0.0), 3).tolist() == [BLOCK + 3] * 3


def test_greedy_is_the_argmax_of_the_full_vocabulary() -> None:
    generator = torch.Generator().manual_seed(1)
    weights, hidden = (
        torch.randn((FULL_VOCABULARY, 64), generator=generator),
        torch.randn((33, 64), generator=generator),
    )
    chosen = Sampler(Head(weights)).choose(hidden, [sampling(0.0)] * 33)
    assert chosen.tolist() == (hidden.double() @ weights.double().T).argmax(1).tolist()


@pytest.mark.parametrize(("top_k", "top_p"), [(3, 1.0), (0, 0.5), (0, 0.999), (4, 0.7), (10_000, 0.9), (0, 1e-9)])
def test_filters_keep_what_they_should(top_k: int, top_p: float) -> None:
    logits = [0.5, 2.0, -1.0, 1.0, 1.5, 0.0, -3.0, 1.9]
    temperature = 0.8
    expected = softmax(logits, temperature)
    order = sorted(range(len(logits)), key=lambda token: -logits[token])[: top_k or None]
    first = expected / expected[order].sum()
    kept = [token for place, token in enumerate(order) if not place or first[order[:place]].sum() < top_p]
    narrowed = np.zeros_like(expected)
    narrowed[kept] = expected[kept] / expected[kept].sum()
    drawn = draw(head_of(logits), sampling(temperature, top_p, top_k, seed=11), 4_000, rows=100)
    assert set(drawn.tolist()) == set(kept)
    if len(kept) > 1:
        assert p_value(drawn, narrowed) > PASSES


def test_the_best_of_a_large_vocabulary_are_found_without_sorting_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks with the best ids give the tokens that sorting all logits gives, draw by draw."""
    generator = torch.Generator().manual_seed(4)
    head = Head(torch.randn((40 * BLOCK + 17, 16), generator=generator))
    hidden = torch.randn((60, 16), generator=generator)
    ways = [sampling(0.7, 0.8, 20, seed=1), sampling(1.3, 1.0, 64, seed=2), sampling(0.5, 0.3, 1, seed=3)]
    ways += [sampling(0.0, 0.8, 20), sampling(0.7, 0.9, 0, seed=4), sampling(1.0, seed=5)]
    quick = torch.cat([Sampler(head).choose(hidden, ways * 10), Sampler(head).choose(hidden, ways[:3] * 20)])
    monkeypatch.setattr(sampler_module, "_MOST_BLOCKS", 0)
    sorted_ = torch.cat([Sampler(head).choose(hidden, ways * 10), Sampler(head).choose(hidden, ways[:3] * 20)])
    assert quick.equal(sorted_)


def test_the_best_may_be_more_than_there_are() -> None:
    drawn = draw(head_of([1.0, 1.0, -math.inf]), sampling(1.0, 1.0, 64), 200, rows=50)
    assert set(drawn.tolist()) == {0, 1}
    with pytest.raises(RunBroke, match="not finite"):
        draw(head_of([1.0, math.nan]), sampling(1.0, 1.0, 20), 1, rows=1)


def test_rows_are_chosen_each_by_its_own_sampling() -> None:
    logits = torch.randn(3 * BLOCK, generator=torch.Generator().manual_seed(3)) * 2
    ways = [sampling(0.0), sampling(0.5, seed=1), sampling(1.0, seed=1), sampling(1.5, top_k=5, seed=2)]
    sampler, hidden = Sampler(head_of(logits)), torch.ones((400, 1))
    drawn = torch.stack([sampler.choose(hidden, ways * 100).view(100, 4) for _ in range(50)]).view(-1, 4).numpy()
    best = logits.argsort(descending=True)
    assert set(drawn[:, 0].tolist()) == {int(best[0])}
    assert p_value(drawn[:, 1], softmax(logits, 0.5)) > PASSES
    assert p_value(drawn[:, 2], softmax(logits)) > PASSES
    assert set(drawn[:, 3].tolist()) == set(best[:5].tolist())


def test_a_seed_starts_a_stream_that_restart_repeats() -> None:
    sampler, hidden = Sampler(head_of(torch.zeros(1000))), torch.ones((50, 1))
    before = torch.get_rng_state()
    first, second = (sampler.choose(hidden, [sampling(seed=1)] * 50) for _ in range(2))
    sampler.restart()
    again, other = sampler.choose(hidden, [sampling(seed=1)] * 50), sampler.choose(hidden, [sampling(seed=2)] * 50)
    assert first.equal(again)
    assert not first.equal(second)
    assert not first.equal(other)
    assert torch.get_rng_state().equal(before), "the stream of the process is not ours to take from"


def test_streams_of_seeds_that_are_not_asked_again_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that draw at every step go on undisturbed, however many others come and go."""
    hidden = torch.ones((2, 1))

    def drawn(sampler: Sampler, passers: int) -> list[torch.Tensor]:
        steps = [[sampling(seed=1), sampling(seed=100 + i if passers else 2)] for i in range(20)]
        return [sampler.choose(hidden, step)[0] for step in steps]

    alone = drawn(Sampler(head_of(torch.zeros(1000))), 0)
    monkeypatch.setattr("harness.engines.sampler.MOST_STREAMS", 3)
    crowded = Sampler(head_of(torch.zeros(1000)))
    assert drawn(crowded, 1) == alone
    assert len(crowded._streams) == 3
    crowded.choose(torch.ones((6, 1)), [sampling(seed=i) for i in range(6)])
    assert len(crowded._streams) >= 6, "each row has the stream of its seed, were they more than are kept"


@pytest.mark.parametrize("how", [sampling(0.0), sampling(), sampling(top_p=0.5)])
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_logits_that_are_no_numbers_break_the_run(how: Sampling, value: float) -> None:
    logits = torch.zeros(2 * BLOCK)
    logits[BLOCK + 4] = value
    with pytest.raises(RunBroke, match="not finite"):
        draw(head_of(logits), how, 1)


def test_no_rows_are_no_tokens() -> None:
    assert Sampler(head_of(torch.zeros(8))).choose(torch.ones((0, 1)), []).shape == (0,)


@pytest.mark.parametrize("size", [5, BLOCK, 64 * BLOCK, 64 * BLOCK + 1, 130 * BLOCK - 1])
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_head_gives_the_logits_of_its_weights(size: int, dtype: str) -> None:
    generator = torch.Generator().manual_seed(size)
    weights = torch.randn((size, 32), generator=generator).to(getattr(torch, dtype))
    hidden = torch.randn((3, 32), generator=generator).to(getattr(torch, dtype))
    head, exact = Head(weights), hidden.double() @ weights.double().T
    whole = torch.cat([logits.flatten(1) for logits in head.by_chunk(hidden)], 1)
    near = {"rtol": 0.02, "atol": 0.1} if dtype == "bfloat16" else {"rtol": 1e-4, "atol": 1e-4}
    torch.testing.assert_close(whole[:, :size].double(), exact, **near)
    assert (whole[:, size:] == float("-inf")).all()
    last = torch.full((3,), head.blocks - 1)
    torch.testing.assert_close(head.inside(hidden, last), whole[:, -BLOCK:], **near)
    torch.testing.assert_close(head.whole(hidden[1]).double(), exact[1], **near)
