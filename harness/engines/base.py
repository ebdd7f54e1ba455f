"""What an engine is: token ids in, token ids out, told in columns.

A *core* (:class:`EngineCore`) is the engine itself: single-threaded, stepped by whoever owns it. An *engine*
(:class:`Engine`) is what a client holds: ``submit`` from one thread, ``poll`` from another. ``inprocess.py`` puts
a core behind the engine interface in the same process, ``host.py`` and ``remote.py`` put a Unix socket between.

Requests and events are columns, not objects: an Offline query of a million samples is one :class:`Requests`, and a
batch that finishes together is one :class:`Answers`. A chat (messages, images, tools) lies in a memory-mapped store and
only its row crosses: see :mod:`~harness.engines.bodies`. Times are CLOCK_MONOTONIC nanoseconds
(``time.monotonic_ns()``), which all processes of one Linux machine share.
"""

from __future__ import annotations

import enum
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from harness.events import Occupancy

Int16Array: TypeAlias = npt.NDArray[np.int16]
Int32Array: TypeAlias = npt.NDArray[np.int32]
Int64Array: TypeAlias = npt.NDArray[np.int64]


class TokenEvents(enum.Enum):
    """Which tokens are told as they come: none (Offline), each answer's first (Server), or all.

    The first token of an answer that comes whole at once need not be told apart from it.
    """

    NONE = "none"
    FIRST = "first"
    ALL = "all"


class Finish(enum.IntEnum):
    """Why an answer ended."""

    STOP = 0
    """A stop token was sampled; it is not part of the answer."""
    LENGTH = 1
    """The output cap was reached."""
    TOOL_CALLS = 2
    """A chat ended by calling tools."""


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are chosen; every value explicit, so that no engine's default can slip in.

    ``temperature`` 0 is greedy. ``top_k`` 0, ``top_p`` 1 and ``min_p`` 0 switch those filters off; penalties of 1
    (repetition) and 0 (presence, frequency) are none. ``seed`` starts the engine's random stream for this workload.
    ``stop_token_ids`` is () for chats: the checkpoint's own generation_config ends their answers.
    """

    temperature: float
    top_p: float
    top_k: int
    max_new_tokens: int
    stop_token_ids: tuple[int, ...]
    seed: int
    min_p: float = 0.0
    repetition_penalty: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0

    def __post_init__(self) -> None:
        if self.temperature < 0 or not 0 < self.top_p <= 1 or self.top_k < 0 or self.max_new_tokens < 1:
            raise ValueError(f"not a sampling: {self}")
        if not 0 <= self.min_p <= 1 or self.repetition_penalty <= 0:
            raise ValueError(f"not a sampling: {self}")

    def more(self) -> dict[str, float]:
        """The values that few samplers have (min_p and the penalties), those alone that are not neutral."""
        values = {
            "min_p": (self.min_p, 0.0),
            "repetition_penalty": (self.repetition_penalty, 1.0),
            "presence_penalty": (self.presence_penalty, 0.0),
            "frequency_penalty": (self.frequency_penalty, 0.0),
        }
        return {name: value for name, (value, neutral) in values.items() if value != neutral}


@dataclass(frozen=True, slots=True)
class Workload:
    """What all requests of a leg have in common. ``dataset`` names the table that ``Requests.rows`` refer to.

    ``bodies`` is the path of a :class:`~harness.engines.bodies.BodyStore`, or "" for prompts of token ids: where it is
    given, a request is the chat ``bodies[row]`` and has no prompt, and its answer is one of :class:`Replies`.
    With ``chat_prompts`` the prompts are chats themselves, each packed by
    :func:`~harness.engines.bodies.chat_as_prompt`, and are answered by token ids.
    ``replica`` is the place in :attr:`EngineInfo.replicas` of the one that is to answer. With ``usage_optional`` a
    chat's reply is one even where its server does not count its tokens.
    """

    dataset: str
    sampling: Sampling
    token_events: TokenEvents
    bodies: str = ""
    replica: int = 0
    chat_prompts: bool = False
    usage_optional: bool = False

    def __post_init__(self) -> None:
        if self.bodies and self.chat_prompts:
            raise ValueError("chats lie in a store or are the prompts themselves, not both")


class PromptTable:
    """The token ids of n prompts in one flat int32 array; prompt i is ``flat[starts[i] : starts[i] + lengths[i]]``.

    The flat array may be a memory map; nothing is copied.
    """

    __slots__ = ("flat", "lengths", "starts")

    def __init__(self, flat: Int32Array, starts: Int64Array, lengths: Int64Array) -> None:
        if flat.dtype != np.int32 or flat.ndim != 1:
            raise ValueError(f"flat must be a 1-D int32 array, not {flat.ndim}-D {flat.dtype}")
        if len(starts) != len(lengths):
            raise ValueError(f"{len(starts)} starts but {len(lengths)} lengths")
        if len(starts) and (int(starts.min()) < 0 or int((starts + lengths).max()) > len(flat)):
            raise ValueError("a prompt reaches beyond the flat array")
        self.flat = flat
        self.starts = starts
        self.lengths = lengths

    @classmethod
    def from_lists(cls, prompts: Sequence[Sequence[int]]) -> PromptTable:
        """A table of prompts given as lists of ids."""
        lengths = np.fromiter((len(p) for p in prompts), np.int64, len(prompts))
        flat = np.fromiter((t for p in prompts for t in p), np.int32, int(lengths.sum()))
        return cls(flat, np.cumsum(lengths) - lengths, lengths)

    @classmethod
    def empty(cls, n: int) -> PromptTable:
        """A table of n prompts without tokens: of chats, which are no token ids."""
        nothing = np.zeros(n, np.int64)
        return cls(np.zeros(0, np.int32), nothing, nothing)

    @classmethod
    def from_padded(cls, padded: Int32Array, lengths: Int64Array) -> PromptTable:
        """A table over a padded (n, width) int32 array, which may be memory-mapped."""
        n, width = padded.shape
        return cls(padded.reshape(-1), np.arange(n, dtype=np.int64) * width, lengths)

    def __len__(self) -> int:
        return len(self.starts)

    def __getitem__(self, row: int) -> Int32Array:
        start = self.starts[row]
        return self.flat[start : start + self.lengths[row]]


@dataclass(slots=True)
class Requests:
    """n requests of one workload.

    ``numbers`` are the caller's, unique among those outstanding; ``rows`` say which sample of the data set each one is
    (an engine may log it, a scripted one answers by it); request i's prompt is ``prompts[prompt_rows[i]]``.
    """

    workload: Workload
    numbers: Sequence[int]
    rows: Sequence[int]
    prompts: PromptTable
    prompt_rows: Sequence[int]

    def __len__(self) -> int:
        return len(self.numbers)

    def prompt(self, i: int) -> Int32Array:
        """Token ids of request i, int32, 1-D; a view."""
        return self.prompts[self.prompt_rows[i]]


NOT_TOLD: Final = -1
"""Stands for a count that a server does not tell."""


@dataclass(slots=True)
class Tokens:
    """One token each of some answers, as they came; ``positions`` 0 is an answer's first. ``at_ns`` holds for all.

    A chat's first token has no id that a server tells: it stands as -1.
    """

    numbers: Sequence[int]
    positions: Sequence[int]
    tokens: Int32Array
    at_ns: int


@dataclass(slots=True)
class Answers:
    """n whole answers. Answer i is ``tokens[ends[i - 1] : ends[i]]`` (from 0 for the first), int32.

    ``address`` is where the tokens lie in memory, for engines that know it: asking an array costs as much as the rest.
    """

    numbers: Sequence[int]
    tokens: Int32Array
    ends: Sequence[int]
    first_ns: Sequence[int]
    done_ns: Sequence[int]
    finish: Sequence[int]
    address: int = 0

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(slots=True)
class Replies:
    """n whole answers to chats. Reply i is ``data[ends[i - 1] : ends[i]]`` (from 0 for the first).

    Each is UTF-8 JSON: an object with ``content`` (a string), and where there are any ``reasoning`` (a string) and
    ``tool_calls`` (as OpenAI's chat completions have them). ``tokens`` are how many each has, as the server counts;
    ``prompt_tokens`` how many its prompt has, ``cached_tokens`` how many of these were not computed anew. Each of the
    three is :data:`NOT_TOLD` where the server says nothing; the last two are () where no server was asked.
    """

    numbers: Sequence[int]
    data: bytes | bytearray
    ends: Sequence[int]
    tokens: Sequence[int]
    first_ns: Sequence[int]
    done_ns: Sequence[int]
    finish: Sequence[int]
    prompt_tokens: Sequence[int] = ()
    cached_tokens: Sequence[int] = ()

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(slots=True)
class Failure:
    """One request that will have no answer; ``kind`` is a short machine-readable word, ``message`` for people."""

    number: int
    kind: str
    message: str


REPLICA_DIED = "replica_died"
"""The kind of failure of a request whose replica is gone: no later one to the same replica can be answered."""

PROMPTS_DIFFER = "prompt_lengths_differ"
"""Counts chats whose prompt has other tokens by the server's count than by that of who made them: a server that resizes
images or cuts texts says so nowhere else."""

Event: TypeAlias = Tokens | Answers | Replies | Failure


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The weights an engine serves. ``sha256`` is over the files' contents, as ``checkpoint.digest`` makes it."""

    name: str
    sha256: str
    stand_in: bool
    weight_data_type: str


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an engine says of itself once it is up.

    ``max_total_tokens`` bounds prompt plus answer; ``slots`` is how many requests it works on at once;
    ``versions`` name the software that computes; ``not_submittable`` says why its runs may never be filed.
    """

    kind: str
    vocab_size: int
    max_total_tokens: int
    slots: int
    checkpoint: Checkpoint | None
    versions: dict[str, str]
    settings: dict[str, object]
    not_submittable: tuple[str, ...] = ()
    replicas: tuple[str, ...] = field(default=("0",))


class EngineCore(Protocol):
    """An engine that is stepped. Single-threaded: all calls come from the thread that owns it."""

    def info(self) -> EngineInfo:
        """What it is; valid before the first request."""

    def submit(self, requests: Requests) -> None:
        """Takes requests, any number; those beyond its slots wait inside. Never fails one for being too many.

        A request that it cannot serve (a prompt too long) becomes a :class:`Failure` of a later step.
        """

    def step(self) -> list[Event]:
        """Does one piece of work (at most a few milliseconds of it where it can) and tells what came of it."""

    def wait_s(self) -> float | None:
        """How long there is nothing to do: 0 now, None until the next submit or until :meth:`descriptor` says so."""

    def descriptor(self) -> int | None:
        """A descriptor that is readable when there is something to do, whatever ``wait_s`` said; None for none."""

    def cancel(self) -> None:
        """Forgets all requests; none of them is told of again."""

    def drop(self, numbers: Collection[int]) -> None:
        """Works no longer on these requests; those that it does not have are passed over.

        What came of one before may still be told. No later request may have one of these numbers before ``cancel``.
        """

    def counters(self) -> dict[str, int]:
        """What it counted since it was made (retries, connections); for the record of a run."""

    def gauges(self) -> Occupancy | None:
        """How full it is now, at once and from what it knows; None where it does not know."""


class Engine(Protocol):
    """What a client holds. ``submit`` and ``poll`` may be called from two threads, each always from its own."""

    def info(self) -> EngineInfo:
        """What the engine said of itself."""

    def submit(self, requests: Requests) -> None:
        """Hands requests over without waiting for the engine; raises nothing for load."""

    def poll(self, timeout_s: float) -> list[Event]:
        """What came since the last call, waiting up to ``timeout_s`` for something. Raises EngineDied."""

    def wake(self) -> None:
        """Makes a waiting ``poll`` return now; may be called from any thread."""

    def replicas_of(self, numbers: Int64Array) -> Int16Array:
        """Which replica each of these requests was given to, as a place in ``info().replicas``; int16, as long."""

    def counters(self, timeout_s: float) -> dict[str, int]:
        """What the engine counted since it was started. To be called from the thread that polls, or when none does.

        Raises EngineDied where it does not say in time.
        """

    def close(self) -> None:
        """Lets go of the engine; outstanding requests are forgotten."""
