"""TensorRT-LLM in process: an engine core over the LLM API (``tensorrt_llm.LLM``), token ids in, token ids out.

The library is imported when a core is made (:mod:`~harness.engines.trtllm_library`), an event loop on a thread of its
own talks to it (:mod:`~harness.engines.trtllm_loop`), and this core turns what that loop learns into events. Chats are
not for this engine: the servers have the chat templates.

Not yet run on a GPU; docs/gpu.md says what of it is proved without one and which command checks the rest.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import numpy as np

from harness.config.engines import ServedCheckpoint
from harness.config.installed_keys import check_against, installed_llm_args
from harness.engines.base import Answers, Checkpoint, EngineInfo, Event, Failure, Int32Array, Requests, Sampling, Tokens
from harness.engines.checkpoint import read_config, weight_data_type
from harness.engines.launch.weights import described
from harness.engines.trtllm_library import load_library, load_model, read_back
from harness.engines.trtllm_loop import Broken, Done, LoopThread, NewTokens, Told
from harness.engines.trtllm_settings import TrtllmSettings
from harness.engines.trtllm_statistics import SWITCH, Statistics
from harness.errors import ConfigError, EngineDied, MissingError
from harness.events import Note, Occupancy

_WINDOW: Final = 2
"""Requests with the library at once, as a multiple of its batch: its scheduler always has the next ones at hand."""


def build(settings: Mapping[str, Any]) -> TrtllmCore:
    """The core of an engine's spec: ``checkpoint``, ``options``, ``name``."""
    return TrtllmCore(TrtllmSettings.parse(settings))


class TrtllmCore:
    """An :class:`~harness.engines.base.EngineCore` over ``tensorrt_llm.LLM``.

    Raises MissingError (the library or a GPU is not there), ConfigError (options, checkpoint), EngineDied (loading).
    """

    def __init__(self, settings: TrtllmSettings) -> None:
        library = load_library()
        _check_options(settings)
        checkpoint = _checkpoint(settings)
        self._vocab_size = _vocab_size(settings)
        self._llm = load_model(library, settings)
        self._max_total_tokens = settings.max_seq_len
        self._info = EngineInfo(
            kind="trtllm",
            vocab_size=self._vocab_size,
            max_total_tokens=settings.max_seq_len,
            slots=settings.max_batch_size,
            checkpoint=checkpoint,
            versions=library.versions,
            settings={"options": dict(settings.options), "read_back": read_back(self._llm.args)},
            not_submittable=("stand-in checkpoint",) if checkpoint.stand_in else (),
        )
        self._statistics = Statistics(self._llm, kept=read_back(self._llm.args).get(SWITCH) is True)
        self._failures = 0
        self._broken: Broken | None = None
        self._loop = LoopThread(self._llm, library, self._unservable, _WINDOW * settings.max_batch_size)

    def info(self) -> EngineInfo:
        """What it is; valid before the first request."""
        return self._info

    def submit(self, requests: Requests) -> None:
        """Takes requests, any number; those beyond twice the library's batch wait here.

        ConfigError for chats, and for a sampling that is not said to the library.
        """
        if requests.workload.bodies or requests.workload.chat_prompts:
            raise ConfigError(
                "TensorRT-LLM in process takes prompts of token ids, no chats", mend="engine kind http has chats"
            )
        if more := requests.workload.sampling.more():
            stated = ", ".join(f"{name} {value:g}" for name, value in more.items())
            raise ConfigError(f"TensorRT-LLM in process does not sample with {stated}", mend="engine kind http does")
        self._loop.submit(requests)

    def step(self) -> list[Event]:
        """Tells one batch of what came. Raises EngineDied where the library is of no more use."""
        batch = self._loop.take()
        self._broken = self._broken or next((told for told in batch if isinstance(told, Broken)), None)
        self._failures += sum(isinstance(told, Failure) for told in batch)
        events = _events(batch)
        if self._broken is not None and not events:  # what was answered before is told first
            error = self._broken.error
            raise EngineDied(f"TensorRT-LLM broke: {type(error).__name__}: {error}") from error
        return events

    def wait_s(self) -> float | None:
        """0 while something is to be told, else None."""
        return 0.0 if self._broken is not None or self._loop.waiting() else None

    def descriptor(self) -> int | None:
        """An eventfd that is readable when something is to be told."""
        return self._loop.descriptor

    def cancel(self) -> None:
        """Aborts all requests; none of them is told of again."""
        self._loop.cancel()

    def drop(self, numbers: Collection[int]) -> None:
        """Aborts these requests; what came of one meanwhile is told."""
        self._loop.drop(numbers)

    def counters(self) -> dict[str, int]:
        """Answers that came with their stop token (it is cut off), and requests that failed."""
        return {"end_tokens_cut": self._loop.end_tokens_cut, "failures": self._failures}

    def gauges(self) -> Occupancy | None:
        """What the library said when it was last asked; None where ``enable_iter_perf_stats`` is off."""
        return self._statistics.latest()

    def close(self) -> None:
        """Ends the loop's thread and the library's processes. Without it they end with this process."""
        self._loop.cancel()
        self._llm.shutdown()  # first: its threads hand results to the loop
        self._loop.close()

    def _unservable(self, number: int, prompt: Int32Array, sampling: Sampling) -> Failure | None:
        if not len(prompt):
            return Failure(number, "empty_prompt", "the prompt has no tokens")
        cap, limit = sampling.max_new_tokens, self._max_total_tokens
        if len(prompt) + cap > limit:
            text = f"a prompt of {len(prompt)} tokens and a cap of {cap} exceed the engine's {limit} in all"
            return Failure(number, "prompt_too_long", text)
        if int(prompt.min()) < 0 or int(prompt.max()) >= self._vocab_size:
            text = f"the prompt has token ids outside 0..{self._vocab_size - 1}"
            return Failure(number, "bad_token", text)
        return None


def _check_options(settings: TrtllmSettings) -> None:
    """Names an option that the installed library does not know, and the nearest, before anything is loaded."""
    try:
        llm_args = installed_llm_args()
    except MissingError as error:
        sys.stderr.write(f"{error}; it sees for itself which options it takes\n")
        return
    check_against(llm_args, settings.options, where="engine.options")


def _checkpoint(settings: TrtllmSettings) -> Checkpoint:
    """What the weights are; hashed once however often they are loaded."""
    folder = settings.checkpoint.expanduser().absolute()
    stated = settings.weight_data_type or weight_data_type(folder)
    served = ServedCheckpoint(name=settings.name or folder.name, path=folder, weight_data_type=stated)
    found = described(served, _log)
    if found is None:
        raise AssertionError(f"{folder} was there a moment ago")
    return found


def _log(event: object) -> None:
    if isinstance(event, Note):
        sys.stderr.write(f"{event.text}\n")


def _vocab_size(settings: TrtllmSettings) -> int:
    """Of ``config.json``; multimodal models have it one level down."""
    config = read_config(settings.checkpoint)
    inner = config.get("text_config")
    size = config.get("vocab_size", inner.get("vocab_size") if isinstance(inner, dict) else None)
    if not isinstance(size, int) or size < 1:
        raise ConfigError(f"the checkpoint's vocab_size is {size!r}", where=settings.checkpoint / "config.json")
    return size


def _events(batch: list[Told]) -> list[Event]:
    """A batch in columns: tokens before the answers that they are part of."""
    events: list[Event] = [told for told in batch if isinstance(told, Failure)]
    fresh = [told for told in batch if isinstance(told, NewTokens)]
    done = [told for told in batch if isinstance(told, Done)]
    events += map(_tokens, _apart(fresh))
    if done:
        events.append(_answers(done))
    return events


def _apart(fresh: list[NewTokens]) -> Iterator[list[NewTokens]]:
    """In runs that have each answer once: what came in two chunks is told as two."""
    begin, numbers = 0, set[int]()
    for i, told in enumerate(fresh):
        if told.number in numbers:
            yield fresh[begin:i]
            begin, numbers = i, set()
        numbers.add(told.number)
    if fresh:
        yield fresh[begin:]


def _tokens(fresh: list[NewTokens]) -> Tokens:
    """All with the time of the last: told to have come no earlier than they did."""
    return Tokens(
        [told.number for told in fresh for _ in told.tokens],
        [told.position + i for told in fresh for i in range(len(told.tokens))],
        np.fromiter(itertools.chain.from_iterable(told.tokens for told in fresh), np.int32),
        max(told.at_ns for told in fresh),
    )


def _answers(done: list[Done]) -> Answers:
    return Answers(
        [told.number for told in done],
        np.fromiter(itertools.chain.from_iterable(told.tokens for told in done), np.int32),
        list(itertools.accumulate(len(told.tokens) for told in done)),
        [told.first_ns for told in done],
        [told.done_ns for told in done],
        [int(told.finish) for told in done],
    )
