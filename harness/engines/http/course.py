"""What the requests of one workload to one endpoint have in common while they are asked."""

from __future__ import annotations

from typing import Final

import numpy as np

from harness.engines.base import Failure, Requests, TokenEvents, Workload
from harness.engines.bodies import BodyStore
from harness.engines.http.chat import ChatReader
from harness.engines.http.dialects import DIALECTS
from harness.engines.http.ids import Expected, IdsReader
from harness.engines.http.problems import EMPTY_PROMPT, NO_SUCH_ROW
from harness.engines.http.settings import HttpSettings
from harness.engines.http.template import ChatTemplate, Head, IdsTemplate, Template, seed_of
from harness.engines.http.watermark import Form

RELEASED_AFTER: Final = 256
"""Chats that were sent: then all are unmapped, with the neighbours that the system maps along with a page. To do so
after each would take as long as to send it."""


class Course:
    """How a workload's requests are made and its answers read; counts how often each row was asked."""

    __slots__ = (
        "_expected",
        "_form",
        "_rows",
        "_seed",
        "_sent",
        "_store",
        "_stream",
        "_times",
        "_usage_optional",
        "may_hold",
        "streams",
        "tells_all",
        "tells_first",
        "template",
    )

    def __init__(self, settings: HttpSettings, head: Head, workload: Workload, store: BodyStore | None) -> None:
        dialect = DIALECTS[settings.server]
        sampling = workload.sampling
        self.template: Template
        if store is None:
            self.template = IdsTemplate(head, dialect, settings.model, workload)
        else:
            self.template = ChatTemplate(head, dialect, settings.model, workload, store)
        self.streams = workload.token_events is not TokenEvents.NONE
        self.tells_first = workload.token_events is TokenEvents.FIRST or (self.streams and store is not None)
        self.tells_all = self.streams and not self.tells_first
        self._expected = Expected(dialect, settings.model, sampling.max_new_tokens, frozenset(sampling.stop_token_ids))
        self._usage_optional = workload.usage_optional
        self._store = store
        self._seed = sampling.seed
        self._stream = (settings.stream << 16) + workload.replica
        self._times: dict[int, int] = {}
        self._sent = 0
        self._rows = np.arange(0 if store is None else len(store))
        self.may_hold = dialect.asks_usage or store is not None
        """Whether the end of a stream is known to be long: it need not be looked for in fewer bytes."""
        self._form: Form | None = None

    def seed(self, row: int) -> int:
        """The seed of the next request for a row: no two of a run are alike."""
        time = self._times.get(row, 0)
        self._times[row] = time + 1
        return seed_of(self._seed, self._stream, row, time)

    def reader(self) -> IdsReader | ChatReader:
        """For one answer."""
        expected = self._expected
        if self._store is None:
            return IdsReader(expected)
        return ChatReader(expected.model, expected.cap, self._usage_optional)

    def unservable(self, requests: Requests, place: int) -> Failure | None:
        """Why a request cannot be sent, where it cannot."""
        if self._store is None:
            if int(requests.prompts.lengths[requests.prompt_rows[place]]) > 0:
                return None
            return Failure(int(requests.numbers[place]), EMPTY_PROMPT, "the prompt has no tokens")
        row = int(requests.rows[place])
        if 0 <= row < len(self._store):
            return None
        message = f"row {row} of {len(self._store)} chats in {self._store.path}"
        return Failure(int(requests.numbers[place]), NO_SUCH_ROW, message)

    def told(self, tokens: list[int]) -> list[int]:
        """Those of some new tokens that are told as they come: not the stop token."""
        stop = self._expected.stop
        return [token for token in tokens if token not in stop]

    def form(self, raw: bytearray) -> Form:
        """Of its streams, by what came of the first that goes on."""
        if self._form is None:
            self._form = Form.of(raw, self._expected.dialect.ids_key)
            self.may_hold = self.may_hold and self._form.least_left > 0
        return self._form

    def sent(self) -> None:
        """A request is sent whole: its chat's pages need not be mapped, and stay in the system's cache."""
        if self._store is not None:
            self._sent += 1
            if self._sent % RELEASED_AFTER == 0:
                self._store.release(self._rows)

    def differs(self, row: int, prompt_tokens: int) -> bool:
        """Whether a server counts other tokens in the prompt of a row's chat than were counted before, if both did."""
        counted = 0 if self._store is None else int(self._store.tokens[row])
        return counted > 0 and prompt_tokens > 0 and counted != prompt_tokens

    def too_long(self, said: bytes) -> bool:
        """Whether a refusal says that the prompt was too long."""
        return any(words in said.lower() for words in self._expected.dialect.too_long)
