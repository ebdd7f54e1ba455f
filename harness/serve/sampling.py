"""From a request's words to an engine's :class:`~harness.engines.base.Sampling`, with trtllm-serve's defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from harness.engines.base import EngineInfo, Sampling
from harness.serve.refusal import Refusal
from harness.serve.requests import SampledRequest

LARGEST_SEED: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Limits:
    """What bounds every request: the engine's, the ids that end its model's answers, and the seed of who gives none."""

    info: EngineInfo
    end_ids: tuple[int, ...]
    seed: int

    def sampling(self, request: SampledRequest, prompt: list[int], more_stops: tuple[int, ...] = ()) -> Sampling:
        """How the answer to this prompt is sampled. Raises Refusal for what cannot be.

        Temperature and top_p are 1 where they are not given; an answer may be as long as there is room for, which
        also bounds a cap that asks for more.
        """
        self._check_prompt(prompt)
        ends = () if request.ignore_eos else self.end_ids
        try:
            return Sampling(
                temperature=_given(request.temperature, 1.0),
                top_p=_given(request.top_p, 1.0),
                top_k=request.top_k,
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
            raise Refusal(
                f"`default_max_tokens` ({room}) must be greater than 0, "
                f"`default_max_tokens` ({room}) = max_seq_len ({limit}) - prompt tokens ({prompt_tokens})"
            )
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
