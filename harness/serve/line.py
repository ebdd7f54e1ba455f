"""The connection under a response: what a stream goes out on, and how it can break."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncGenerator, Callable, Coroutine
from typing import Any, Final, TypeVar

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from harness.serve.faults import Fault, Kind
from harness.serve.shapes import broken_stream

T = TypeVar("T")

EXTENSION: Final = "harness.transport"
"""Under which the connection's transport stands among the ASGI extensions of a request."""
EVENT_STREAM: Final = "text/event-stream"
SPLIT_S: Final = 0.002
_RESET_ON_CLOSE: Final = struct.pack("ii", 1, 0)


class OpenLineProtocol(HttpToolsProtocol):
    """uvicorn's protocol, whose requests carry their transport: breaking a connection is what ASGI has no word for."""

    def on_message_begin(self) -> None:
        """Called where a request's scope is made."""
        super().on_message_begin()
        self.scope["extensions"] = {EXTENSION: {"transport": self.transport}}


class Line:
    """The connection of one request."""

    def __init__(self, request: Request) -> None:
        extension = request.scope.get("extensions", {}).get(EXTENSION, {})
        transport = extension.get("transport")
        if not isinstance(transport, asyncio.Transport):
            raise TypeError("served by another protocol than OpenLineProtocol")
        self._transport = transport

    def reset(self) -> None:
        """Ends it by RST: what was not sent is lost."""
        connection = self._transport.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE)
        self._transport.abort()

    def cut(self) -> None:
        """Ends it by FIN, behind what was sent."""
        self._transport.close()


class OneResponse(Response):
    """A response in one piece, and what is to go wrong with it."""

    def __init__(self, content: bytes, fault: Fault | None, line: Line, die: Callable[[], None]) -> None:
        super().__init__(content, media_type="application/json")
        self._breaks = None if fault is None else _BREAKS.get(fault.kind)
        self._close_after = fault is not None and fault.kind is Kind.CLOSE_IDLE
        self._line = line
        self._die = die

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends it, or half of it."""
        if self._breaks is None:
            await super().__call__(scope, receive, send)
            if self._close_after:
                self._line.cut()
            return
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        half = self.body[: len(self.body) // 2]
        await send({"type": "http.response.body", "body": half, "more_body": True})
        self._breaks(self._line, self._die)
        await until_gone(receive)


class EventStream(Response):
    """A stream of server-sent events. It ends with them, or when the client goes away."""

    media_type = EVENT_STREAM

    def __init__(
        self, events: AsyncGenerator[bytes, None], fault: Fault | None, line: Line, die: Callable[[], None]
    ) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._events = events if fault is None else broken(events, fault, line, die)
        self._close_after = fault is not None and fault.kind is Kind.CLOSE_IDLE
        self._line = line

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends the events as they come."""
        await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
        await unless_gone(receive, self._send(send))

    async def _send(self, send: Send) -> None:
        async with contextlib.aclosing(self._events) as events:
            async for each in events:
                await send({"type": "http.response.body", "body": each, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
        if self._close_after:
            self._line.cut()  # at once: a turn of the loop later the next request may be here, its answer begun


async def broken(
    events: AsyncGenerator[bytes, None], fault: Fault, line: Line, die: Callable[[], None]
) -> AsyncGenerator[bytes, None]:
    """The events of a stream with which something goes wrong."""
    kind = fault.kind
    breaks = _BREAKS.get(kind)
    first = True
    async with contextlib.aclosing(events):
        async for each in events:
            if first and kind is Kind.SLOW_FIRST_TOKEN:
                await asyncio.sleep(fault.seconds)
            if kind is Kind.SSE_ERROR and not first:
                yield broken_stream("a fault that was asked for")
                return
            if breaks is not None and not first:
                if kind is Kind.HALF_FRAME:
                    yield each[: len(each) // 2]
                breaks(line, die)
                await asyncio.Event().wait()  # until the client is found gone
            for piece in _altered(each, kind):
                yield piece
                if kind is Kind.SPLIT:
                    await asyncio.sleep(SPLIT_S)
            first = False


def _altered(event: bytes, kind: Kind) -> tuple[bytes, ...]:
    if kind is Kind.CRLF:
        return (event.replace(b"\n", b"\r\n"),)
    if kind is Kind.NO_DONE:
        return () if event.startswith(b"data: [DONE]") else (event,)
    if kind is Kind.SPLIT:
        return event[: len(event) // 2], event[len(event) // 2 :]
    return (event,)


def _reset(line: Line, _: Callable[[], None]) -> None:
    line.reset()


def _cut(line: Line, _: Callable[[], None]) -> None:
    line.cut()


def _die(_: Line, die: Callable[[], None]) -> None:
    die()


def _stall(_: Line, __: Callable[[], None]) -> None:
    return


_BREAKS: Final[dict[Kind, Callable[[Line, Callable[[], None]], None]]] = {
    Kind.RESET: _reset,
    Kind.CUT: _cut,
    Kind.HALF_FRAME: _cut,
    Kind.DIE: _die,
    Kind.STALL: _stall,
}


async def until_gone(receive: Receive) -> None:
    """Waits until the client has gone away."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def unless_gone(receive: Receive, work: Coroutine[Any, Any, T]) -> T | None:
    """What the work comes to; None where the client goes away before, and then the work is cancelled."""
    doing = asyncio.ensure_future(work)
    watching = asyncio.ensure_future(until_gone(receive))
    try:
        await asyncio.wait((doing, watching), return_when=asyncio.FIRST_COMPLETED)
    finally:
        watching.cancel()
        ended = doing.done()
        doing.cancel()
        await asyncio.gather(doing, watching, return_exceptions=True)
    return doing.result() if ended else None
