"""From a request's words to an engine's :class:`~harness.engines.base.Sampling`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from harness.engines.base import EngineInfo, Sampling
from harness.serve import shapes
from harness.serve.refusal import Refusal
from harness.serve.requests import SampledRequest

LARGEST_SEED: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Defaults:
    """What a request is answered with where it says nothing: a checkpoint's word, or trtllm-serve's."""

    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = 0


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds every request: the engine's, the ids that end its model's answers, and the seed of who gives none.

    ``too_long`` says why a prompt has no room, from the engine's limit, the prompt's tokens and what was asked for.
    """

    info: EngineInfo
    end_ids: tuple[int, ...]
    seed: int
    defaults: Defaults = Defaults()
    too_long: Callable[[int, int, int | None], str] = shapes.too_long

    def sampling(self, request: SampledRequest, prompt: list[int], more_stops: tuple[int, ...] = ()) -> Sampling:
        """How the answer to this prompt is sampled. Raises Refusal for what cannot be.

        An answer may be as long as there is room for, which also bounds a cap that asks for more.
        """
        self._check_prompt(prompt)
        ends = () if request.ignore_eos else self.end_ids
        try:
            return Sampling(
                temperature=_given(request.temperature, self.defaults.temperature),
                top_p=_given(request.top_p, self.defaults.top_p),
                top_k=request.top_k if "top_k" in request.model_fields_set else self.defaults.top_k,
                max_new_tokens=self._cap(request.output_cap, len(prompt)),
                stop_token_ids=tuple(dict.fromkeys((*ends, *self._known(request.stop_token_ids or ()), *more_stops))),
                seed=self._seed(request.seed),
            )
        except ValueError:
            raise Refusal(
                "require temperature >= 0, 0 < top_p <= 1 and top_k >= 0, "
                f"got temperature={request.temperature}, top_p={request.top_p}, top_k={request.top_k}"
            ) from None

    def _check_prompt(self, prompt: list[int]) -> None:
        if not prompt:
            raise Refusal("the prompt has no tokens")
        self._known(prompt)

    def _known(self, ids: list[int] | tuple[int, ...]) -> list[int] | tuple[int, ...]:
        if ids and not 0 <= min(ids) <= max(ids) < self.info.vocab_size:
            raise Refusal(f"token ids must be in 0..{self.info.vocab_size - 1}")
        return ids

    def _cap(self, asked: int | None, prompt_tokens: int) -> int:
        limit = self.info.max_total_tokens
        room = limit - prompt_tokens
        if room <= 0:
            raise Refusal(self.too_long(limit, prompt_tokens, asked))
        if asked is None:
            return room
        if asked <= 0:
            raise Refusal(f"`max_tokens` ({asked}) must be greater than 0")
        return min(asked, room)

    def _seed(self, asked: int | None) -> int:
        if asked is None:
            return self.seed
        if not 0 <= asked <= LARGEST_SEED:
            raise Refusal(f"`seed` ({asked}) must be in 0..{LARGEST_SEED}")
        return asked


def _given(value: float | None, default: float) -> float:
    return default if value is None else value
