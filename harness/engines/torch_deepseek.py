"""DeepSeek-V3, of which Kimi's text model is one: chats with tools, whose turns go on from what their session has.

transformers' modelling code hands out keys and values of every head, made of the latents that other servers keep. They
are kept as they come: a key of 96 and a value of 32 numbers for each of a stand-in's two heads take less than its
latent of 576.
"""

from __future__ import annotations

from collections.abc import Hashable
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor

from harness.engines.base import Requests
from harness.engines.bodies import chat_of_prompt
from harness.engines.chats import qwen3_vocab, tool_prompts
from harness.engines.chats.problems import BadChat
from harness.engines.chats.replies import as_replies_with_calls
from harness.engines.slot_plans import Plan
from harness.engines.slot_prompts import Prompt, TokenIds, Unservable
from harness.engines.torch_attention import Ragged
from harness.engines.torch_chats import StoredChats, end_tokens
from harness.errors import ConfigError

_SESSIONS_PER_SLOT = 4
"""Of so many sessions the texts are kept, those that wait for a slot among them."""


class DeepseekV3(TokenIds):
    """The body of DeepSeek-V3, for prompts of token ids and for chats in the stand-in's template.

    Raises MissingError where the vocabulary is not installed, ConfigError for a checkpoint with another.
    """

    takes_chats: ClassVar[bool] = True

    def __init__(self, model: Any, folder: Path, slots: int) -> None:  # noqa: ANN401 - transformers has no types
        qwen3_vocab.vocabulary()
        if model.config.vocab_size != qwen3_vocab.VOCAB_SIZE:
            raise ConfigError(
                f"this DeepSeek-V3 has a vocabulary of {model.config.vocab_size}",
                where=folder / "config.json",
                expected=f"the {qwen3_vocab.VOCAB_SIZE} of Qwen3, which the stand-in has: the engine knows no other",
                mend="serve the published checkpoint with a server, and speak to it over HTTP",
            )
        self._model = model.model
        self._ends = end_tokens(folder)
        self._chats = StoredChats()
        self._conversations = tool_prompts.Conversations(_SESSIONS_PER_SLOT * slots)

    def read(self, requests: Requests, place: int) -> Prompt:
        """A chat of a store, a chat that is the prompt itself, or ids.

        Both kinds of chats are answered by replies: of ids alone nobody hears how much of a prompt was there already.
        """
        if not requests.workload.bodies and not requests.workload.chat_prompts:
            return super().read(requests, place)
        try:
            chat, session = self._chat(requests, place)
            ids = self._conversations.ids(chat, session)
        except BadChat as problem:
            raise Unservable(problem.kind, str(problem)) from None
        return Prompt(ids, self._ends, tell=as_replies_with_calls, session=session)

    def _chat(self, requests: Requests, place: int) -> tuple[tool_prompts.Chat, Hashable | None]:
        """The chat that is asked, and its session."""
        if requests.workload.bodies:
            stored = self._chats.read(requests, place)
            return tool_prompts.parsed(stored.body), stored.session
        chat = tool_prompts.parsed(chat_of_prompt(requests.prompt(place)))
        return chat, tool_prompts.session_of(chat)

    def forget(self) -> None:
        """Every session begins anew."""
        self._chats.forget()
        self._conversations.forget()

    def hidden(self, plan: Plan, ragged: Ragged) -> Tensor:
        """The hidden states (N, width) of a plan's tokens."""
        output = self._model(
            input_ids=torch.from_numpy(plan.tokens)[None],
            position_ids=torch.from_numpy(plan.positions)[None],
            use_cache=False,
            ragged=ragged,
        )
        hidden: Tensor = output.last_hidden_state[0]
        return hidden
