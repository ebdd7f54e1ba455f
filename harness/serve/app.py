"""The endpoints."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any, Final, TypeVar

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

import harness
from harness.errors import ConfigError
from harness.events import Occupancy
from harness.serve import answers
from harness.serve.answers import Asked
from harness.serve.bridge import Bridge, Generation, GenerationFailed
from harness.serve.chat_words import ChatFormat, Reader
from harness.serve.faults import HEADER, RETRY_AFTER_S, STATUS, Fault, FaultPlan, Kind
from harness.serve.line import EventStream, Line, OneResponse, unless_gone, until_gone
from harness.serve.manners import Manner
from harness.serve.metrics import Load
from harness.serve.refusal import BAD_REQUEST, Refusal
from harness.serve.requests import ChatRequest, CompletionRequest, SampledRequest, read
from harness.serve.sampling import Limits
from harness.serve.script_rows import ScriptRows, session_of
from harness.serve.shapes import Content, to_json
from harness.serve.texts import Codec

R = TypeVar("R", bound=SampledRequest)

OTHER_MODEL: Final = "-of-another-name"


@dataclass(frozen=True, slots=True)
class Service:
    """What the endpoints need. ``rows`` says which row of a script answers a request.

    ``reads_chats`` is whether the engine takes a chat itself, with its images, where the format has it so. ``gauges``
    asks the engine how full it is, and waits for it.
    """

    bridge: Bridge
    manner: Manner
    limits: Limits
    model: str
    codec: Codec
    chat: ChatFormat
    reads_chats: bool
    faults: FaultPlan
    rows: ScriptRows
    gauges: Callable[[], Occupancy | None]
    die: Callable[[], None]

    def app(self) -> Starlette:
        """The application."""
        routes = [
            Route("/health", self.health, methods=["GET"]),
            Route("/health_generate", self.health_generate, methods=["GET"]),
            Route("/version", self.version, methods=["GET"]),
            Route("/v1/models", self.models, methods=["GET"]),
            Route("/metrics", self.metrics, methods=["GET"]),
            Route("/engine", self.engine, methods=["GET"]),
            Route("/v1/completions", self.completions, methods=["POST"]),
            Route("/v1/chat/completions", self.chats, methods=["POST"]),
        ]
        handlers = {
            Refusal: self._refused,
            GenerationFailed: self._failed,
            ClientDisconnect: _nobody_there,
            HTTPException: _no_such_place,
        }
        return Starlette(routes=routes, exception_handlers=handlers)

    async def health(self, _: Request) -> Response:
        """200, or 503 once the engine is dead."""
        return Response(status_code=200 if self.bridge.death is None else 503)

    async def health_generate(self, request: Request) -> Response:
        """200 where the engine still answers a chat with a token."""
        hello = self.manner.chat.model_validate(
            {"messages": [{"role": "user", "content": "hi"}], "model": self.model, "max_tokens": 1, "temperature": 0.0}
        )
        try:
            generation, reader = self._start_chat(hello, request)
            await unless_gone(request.receive, answers.whole_chat(generation, self._asked(hello, None), reader))
        except (GenerationFailed, Refusal) as error:
            return Response(f"Generation health check failed: {error}", status_code=500)
        return Response("Generation health check OK")

    async def version(self, _: Request) -> Response:
        """The harness's version: this is not TensorRT-LLM."""
        return _json({"version": harness.__version__})

    async def models(self, _: Request) -> Response:
        """The one model."""
        return _json(self.manner.shapes.models(self.model, self.limits.info.max_total_tokens))

    async def metrics(self, _: Request) -> Response:
        """How full this server is, as far as it and its engine know."""
        gauges = await asyncio.to_thread(self.gauges)  # an engine answers between two steps, of which one may be long
        info = self.limits.info
        load = Load(
            slots=info.slots,
            outstanding=self.bridge.outstanding,
            completed=self.bridge.completed,
            positions=info.slots * info.max_total_tokens,
            kv_cache=None if gauges is None else gauges.kv_cache,
        )
        told = self.manner.metrics(self.model, load)
        return Response(told.body, media_type=told.media_type)

    async def engine(self, _: Request) -> Response:
        """What the engine says of itself; this server's own, for whoever keeps a record of a run."""
        return _json(dataclasses.asdict(self.limits.info))

    async def completions(self, request: Request) -> Response:
        """``POST /v1/completions``."""
        fault = self._fault(request)
        if fault is not None and (instead := await self._instead_of_an_answer(fault, request)) is not None:
            return instead
        asked_for = await _read(self.manner.completion, request)
        generation = _faulty(self._start(asked_for, self._prompt(asked_for), request), fault)
        asked = self._asked(asked_for, fault, ids=asked_for.wants_ids)
        decoder = self.codec.decoder(skip_special=asked_for.skip_special_tokens) if asked_for.detokenize else None
        if asked_for.stream:
            return self._stream(answers.completion_events(generation, asked, decoder), generation, fault, request)
        return await self._whole(answers.whole_completion(generation, asked, decoder), generation, fault, request)

    async def chats(self, request: Request) -> Response:
        """``POST /v1/chat/completions``."""
        fault = self._fault(request)
        if fault is not None and (instead := await self._instead_of_an_answer(fault, request)) is not None:
            return instead
        asked_for = await _read(self.manner.chat, request)
        with self._told_as_a_chat():
            generation, reader = self._start_chat(asked_for, request)
            generation, asked = _faulty(generation, fault), self._asked(asked_for, fault)
            if asked_for.stream:
                events = answers.chat_events(generation, asked, reader, Line(request))
                return self._stream(events, generation, fault, request)
            return await self._whole(answers.whole_chat(generation, asked, reader), generation, fault, request)

    @contextlib.contextmanager
    def _told_as_a_chat(self) -> Generator[None, None, None]:
        """What goes wrong behind the reading of a chat of gpt-oss has a type of its own."""
        try:
            yield
        except (GenerationFailed, Refusal) as error:
            if (
                not self._words_gpt_oss
                or self.bridge.death is not None
                or getattr(error, "status", BAD_REQUEST) != BAD_REQUEST
            ):
                raise
            raise Refusal(str(error), kind="internal_error") from None

    def _fault(self, request: Request) -> Fault | None:
        try:
            return self.faults.next(request.headers.get(HEADER))
        except ConfigError as error:
            raise Refusal(str(error)) from None

    def _prompt(self, asked_for: CompletionRequest) -> list[int]:
        prompt = asked_for.prompt
        if isinstance(prompt, list) and prompt and not isinstance(prompt[0], int):
            if len(prompt) > 1:
                raise Refusal("several prompts in one request are not served: send one request for each")
            prompt = prompt[0]
        if isinstance(prompt, str):
            return self.codec.encode(prompt)
        return [each for each in prompt if isinstance(each, int)]

    def _start_chat(self, asked_for: ChatRequest, request: Request) -> tuple[Generation, Reader]:
        prompt, chat = asked_for.prompt_token_ids, None
        if prompt is None:
            prompt = self.chat.prompt(asked_for)
            chat = self.chat.chat(asked_for, session_of(request.headers)) if self.reads_chats else None
        generation = self._start(asked_for, prompt, request, self.chat.stop_ids, chat)
        return generation, self.chat.reader(asked_for)

    def _start(
        self,
        asked_for: SampledRequest,
        prompt: list[int],
        request: Request,
        more_stops: tuple[int, ...] = (),
        chat: bytes | None = None,
    ) -> Generation:
        sampling = self.limits.sampling(asked_for, prompt, more_stops)
        row = self.rows.of(asked_for, prompt, request.headers)
        return self.bridge.generate(prompt, sampling, row=row, streamed=bool(asked_for.stream), chat=chat)

    @property
    def _words_gpt_oss(self) -> bool:
        """Whether chats are gpt-oss's, and those are worded in a way of their own."""
        return self.chat.gpt_oss and self.manner.of_gpt_oss is not None

    def _asked(self, asked_for: SampledRequest, fault: Fault | None, *, ids: bool = False) -> Asked:
        kind = None if fault is None else fault.kind
        of_gpt_oss = self._words_gpt_oss and isinstance(asked_for, ChatRequest)
        return Asked(
            manner=self.manner,
            model=asked_for.model + (OTHER_MODEL if kind is Kind.WRONG_MODEL else ""),
            ids=ids and kind is not Kind.NO_IDS,
            usage=asked_for.wants_usage or of_gpt_oss,
            usage_always=asked_for.wants_usage_always and not of_gpt_oss,
            gpt_oss=of_gpt_oss,
        )

    def _stream(
        self, events: AsyncGenerator[bytes, None], generation: Generation, fault: Fault | None, request: Request
    ) -> Response:
        return EventStream(self._until_dropped(events, generation), fault, Line(request), self.die)

    async def _until_dropped(
        self, events: AsyncGenerator[bytes, None], generation: Generation
    ) -> AsyncGenerator[bytes, None]:
        try:
            async with contextlib.aclosing(events):
                async for each in events:
                    yield each
        finally:
            self.bridge.drop(generation)

    async def _whole(
        self,
        work: Coroutine[Any, Any, Content],
        generation: Generation,
        fault: Fault | None,
        request: Request,
    ) -> Response:
        try:
            content = await unless_gone(request.receive, work)
        finally:
            self.bridge.drop(generation)
        if content is None:
            return Response()  # nobody is there to read it
        if fault is not None and fault.kind is Kind.SLOW_FIRST_TOKEN:
            await asyncio.sleep(fault.seconds)
        if fault is not None and fault.kind is Kind.SSE_ERROR:
            raise Refusal("a fault that was asked for", status=500, kind="InternalServerError")
        return OneResponse(to_json(content), fault, Line(request), self.die)

    async def _refused(self, _: Request, error: Exception) -> Response:
        return self._error(error) if isinstance(error, Refusal) else Response(status_code=500)

    async def _failed(self, _: Request, error: Exception) -> Response:
        if self.bridge.death is None:
            return self._error(Refusal(str(error)))
        return self._error(Refusal(str(error), status=500, kind="InternalServerError"))

    async def _instead_of_an_answer(self, fault: Fault, request: Request) -> Response | None:
        if fault.kind is Kind.HANG:
            await request.body()
            await until_gone(request.receive)
            return Response()
        if fault.kind not in STATUS:
            return None
        status, kind = STATUS[fault.kind]
        limit = self.limits.info.max_total_tokens
        too_long = self.manner.shapes.too_long(limit, limit, None)
        message = too_long if fault.kind is Kind.TOO_LONG else "a fault that was asked for"
        response = self._error(Refusal(message, status=status, kind=kind))
        if fault.kind is Kind.TOO_MANY:
            response.headers["retry-after"] = str(RETRY_AFTER_S)
        return response

    def _error(self, refusal: Refusal) -> Response:
        content = self.manner.shapes.error(refusal.message, refusal.kind, refusal.status)
        return _json(content, refusal.status)


def _faulty(generation: Generation, fault: Fault | None) -> Generation:
    """The same, told as a fault has it."""
    if fault is not None and fault.kind is Kind.EMPTY:
        generation.say_nothing()
    if fault is not None and fault.kind is Kind.CONTENT_FILTER:
        generation.end_by(fault.kind.value)
    return generation


async def _read(model: type[R], request: Request) -> R:
    return read(model, await request.body(), request.headers.get("content-type"))


def _json(content: object, status: int = 200) -> Response:
    return Response(to_json(content), status, media_type="application/json")


async def _no_such_place(_: Request, error: Exception) -> Response:
    """404 and 405, as FastAPI words them."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    return _json({"detail": HTTPStatus(status).phrase}, status)


async def _nobody_there(_: Request, __: Exception) -> Response:
    return Response()
