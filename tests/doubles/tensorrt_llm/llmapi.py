"""``tensorrt_llm.llmapi`` of the double."""

from __future__ import annotations

import asyncio
import enum
import hashlib
import threading
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict


class RequestError(RuntimeError):
    """What the real one raises for a request that the engine refuses."""


@dataclass
class Answer:
    """What becomes of a request: ``tokens`` before its end token, or an error of the request or of the engine."""

    tokens: int = 5
    finish_reason: str = ""
    error: str = ""
    crash: str = ""
    given_up: bool = False


@dataclass
class Script:
    """What the double does, by the first token of a prompt; ``made`` keeps the parameters of all requests."""

    answers: dict[int, Answer] = field(default_factory=dict)
    default: Answer = field(default_factory=Answer)
    end_id_in_token_ids: bool = False
    end_id_alone: bool = False
    deaf: bool = False
    one_seed: bool = False
    whole: bool = False
    held: bool = False
    refused: str = ""
    load_error: str = ""
    stats_error: str = ""
    stats_asked: int = 0
    made: list[SamplingParams] = field(default_factory=list)
    most_outstanding: int = 0
    aborted: int = 0


script = Script()


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid")


class Policy(enum.Enum):
    """``CapacitySchedulerPolicy``."""

    MAX_UTILIZATION = "MAX_UTILIZATION"
    GUARANTEED_NO_EVICT = "GUARANTEED_NO_EVICT"


class KvCacheConfig(_Model):
    """The real names and defaults of those fields that tests give."""

    enable_block_reuse: bool = True
    free_gpu_memory_fraction: float = 0.9
    dtype: str = "auto"


class SchedulerConfig(_Model):
    """As above."""

    capacity_scheduler_policy: Policy = Policy.GUARANTEED_NO_EVICT


class LlmArgs(_Model):
    """As above."""

    model: str
    skip_tokenizer_init: bool = False
    tensor_parallel_size: int = 1
    pipeline_parallel_size: int = 1
    max_batch_size: int = 2048
    max_num_tokens: int = 8192
    max_seq_len: int | None = None
    stream_interval: int = 1
    num_postprocess_workers: int = 0
    env_overrides: dict[str, str] | None = None
    enable_iter_perf_stats: bool = False
    kv_cache_config: KvCacheConfig = KvCacheConfig()
    scheduler_config: SchedulerConfig = SchedulerConfig()

    def model_post_init(self, context: object) -> None:
        """A bound that changes what was asked for, as validators of the real one do."""
        self.max_num_tokens = min(self.max_num_tokens, 65536)


@dataclass(slots=True, kw_only=True)
class SamplingParams:
    """The real names and defaults of those fields that bear on answers."""

    end_id: int | None = None
    pad_id: int | None = None
    max_tokens: int = 32
    stop_token_ids: list[int] | None = None
    include_stop_str_in_output: bool = False
    n: int = 1
    top_k: int | None = None
    top_p: float | None = None
    seed: int | None = None
    temperature: float | None = None
    ignore_eos: bool = False
    detokenize: bool = True
    skip_special_tokens: bool = True

    @property
    def greedy(self) -> bool:
        """As the real one decides."""
        return self.top_k == 1 or (self.top_k is None and self.top_p in {None, 0.0})


@dataclass(slots=True)
class CompletionOutput:
    """One answer so far."""

    index: int = 0
    text: str = ""
    token_ids: list[int] = field(default_factory=list)
    finish_reason: str | None = None


class RequestOutput:
    """A request; made in a running event loop, or it cannot be awaited."""

    def __init__(self, request_id: int, prompt: list[int], params: SamplingParams, streaming: bool) -> None:
        self.request_id = request_id
        self.prompt_token_ids = prompt
        self.outputs = [CompletionOutput()]
        self.params = params
        self.streaming = streaming
        self.cancelled = False
        self._finished = False
        self._queue: asyncio.Queue[tuple[list[int], str | None] | BaseException] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()

    @property
    def finished(self) -> bool:
        return self._finished

    def abort(self) -> None:
        script.aborted += 1
        self.cancelled = True

    def answer(self, content: tuple[list[int], str | None] | BaseException) -> None:
        self._loop.call_soon_threadsafe(self._queue.put_nowait, content)

    async def _step(self) -> None:
        content = await self._queue.get()
        if isinstance(content, BaseException):
            raise content
        tokens, finish_reason = content
        output = self.outputs[0]
        output.token_ids.extend(tokens)
        output.finish_reason = finish_reason
        self._finished = finish_reason is not None

    async def aresult(self) -> RequestOutput:
        while not self._finished:
            await self._step()
        return self

    def __aiter__(self) -> AsyncIterator[RequestOutput]:
        return self

    async def __anext__(self) -> RequestOutput:
        if self._finished:
            raise StopAsyncIteration
        await self._step()
        return self


@dataclass
class _Working:
    request: RequestOutput
    tokens: list[int]
    finish_reason: str
    turns: int
    made: int = 0
    told: int = 0


class LLM:
    """An engine that makes a token of each request a turn, on a thread of its own."""

    def __init__(self, model: str, *, skip_tokenizer_init: bool = False, **kwargs: Any) -> None:
        if script.load_error:
            raise RuntimeError(script.load_error)
        self.args = LlmArgs(model=model, skip_tokenizer_init=skip_tokenizer_init, **kwargs)
        self._queue: deque[RequestOutput] = deque()
        self._working: list[_Working] = []
        self._made = 0
        self._ended = 0
        self._wake = threading.Event()
        self._over = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def generate_async(
        self, inputs: dict[str, list[int]], sampling_params: SamplingParams | None = None, streaming: bool = False
    ) -> RequestOutput:
        if script.refused:
            raise ValueError(script.refused)
        params = sampling_params or SamplingParams()
        if params.end_id is None and self.args.skip_tokenizer_init:
            raise ValueError("tokenizer is required to reset end_id if it is None")
        script.made.append(params)
        self._made += 1
        request = RequestOutput(self._made, list(inputs["prompt_token_ids"]), params, streaming)
        self._queue.append(request)
        script.most_outstanding = max(script.most_outstanding, self._made - self._ended)
        self._wake.set()
        return request

    def get_stats(self, timeout: float | None = 2) -> list[dict[str, Any]]:
        """As the real one: of what it does now, a list of dicts; none where they are off, and after the wait."""
        script.stats_asked += 1
        if script.stats_error:
            raise RuntimeError(script.stats_error)
        if not self.args.enable_iter_perf_stats:
            return []
        blocks = {"usedNumBlocks": len(self._working), "maxNumBlocks": self.args.max_batch_size, "tokensPerBlock": 32}
        queued = len(self._queue)
        return [
            {"iter": 1, "numActiveRequests": len(self._working), "numQueuedRequests": queued, "kvCacheStats": blocks}
        ]

    def shutdown(self) -> None:
        self._over = True
        self._wake.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over:
            if script.held or not (self._queue or self._working):
                self._wake.wait(0.005)
                self._wake.clear()
            if not script.held:
                self._turn()

    def _turn(self) -> None:
        while self._queue and len(self._working) < self.args.max_batch_size:
            self._begin(self._queue.popleft())
        for working in self._working:
            self._make_one(working)
        self._working = [working for working in self._working if working.made < working.turns]

    def _begin(self, request: RequestOutput) -> None:
        answer = script.answers.get(request.prompt_token_ids[0], script.default)
        if answer.error or answer.crash or answer.given_up:
            self._ended += 1
        if answer.error:
            request.answer(RequestError(answer.error))
        elif answer.crash:
            request.answer(RuntimeError(answer.crash))
        elif answer.given_up:
            request.answer(asyncio.CancelledError())
        else:
            tokens, reason = _whole_answer(request, answer)
            ends_with_token = reason == "length" or (script.end_id_in_token_ids and not script.end_id_alone)
            turns = len(tokens) + (reason != "timeout" and not ends_with_token)
            self._working.append(_Working(request, tokens, reason, max(turns, 1)))

    def _make_one(self, working: _Working) -> None:
        request, working.made = working.request, working.made + 1
        if request.cancelled:
            working.made = working.turns
        self._ended += working.made == working.turns
        if request.cancelled:
            request.answer(([], "cancelled"))
            return
        last = working.made == working.turns
        due = (working.made == 1 or working.made % self.args.stream_interval == 0) and not script.whole
        if last or (request.streaming and due):
            fresh = working.tokens[working.told : working.made]
            working.told += len(fresh)
            request.answer((fresh, working.finish_reason if last else None))


def _whole_answer(request: RequestOutput, answer: Answer) -> tuple[list[int], str]:
    """The tokens and why they end: what the script says, a stop token that comes up, or the cap."""
    params = request.params
    seed = 0 if params.greedy or script.one_seed else params.seed
    count = params.max_tokens if params.ignore_eos else min(answer.tokens, params.max_tokens)
    tokens = [token_of(request.prompt_token_ids, seed, i) for i in range(count)]
    if answer.finish_reason:
        return tokens, answer.finish_reason
    stops = {params.end_id, *(params.stop_token_ids or ())} if not (params.ignore_eos or script.deaf) else set()
    place = next((i for i, token in enumerate(tokens) if token in stops), None)
    if place is None and count == params.max_tokens:
        return tokens, "length"
    end = params.end_id if place is None else tokens[place]
    return tokens[:place] + ([end or 0] if script.end_id_in_token_ids else []), "stop"


def token_of(prompt: list[int], seed: int | None, position: int) -> int:
    """The token at a position of the answer to a prompt, 100 to 999."""
    content = repr((prompt, seed, position)).encode()
    return 100 + int.from_bytes(hashlib.sha256(content).digest()[:4], "big") % 900
