"""The server's life: the port, the engine's process, uvicorn, and an end that leaves nothing behind."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Final, NoReturn

import uvicorn

from harness.engines import gauges
from harness.engines.base import EngineInfo
from harness.engines.connection import Connection
from harness.engines.scripted_files import read_answers
from harness.engines.start import EngineProcess, EngineSpec, start_engine
from harness.errors import ConfigError, MissingError
from harness.serve.app import Service
from harness.serve.bridge import DATASET, Bridge
from harness.serve.faults import FaultPlan
from harness.serve.line import OpenLineProtocol
from harness.serve.manners import MANNERS
from harness.serve.plain_chat import PlainChat
from harness.serve.recorded import RecordedChats
from harness.serve.sampling import Limits
from harness.serve.script_rows import ScriptRows
from harness.serve.settings import ServeSettings
from harness.serve.tongues import defaults, end_ids, tongue

KEEP_ALIVE_S: Final = 5
"""trtllm-serve's."""
GRACE_S: Final = 1.0
"""How long streams may still go on once the server is told to end."""
LAST_WORDS_S: Final = 0.5
"""How long those that are cut short then have to say so, before connections that say nothing are closed."""
LAST_RESORT_S: Final = 10
DEATH_NOTICE_S: Final = 3.0
"""How long a server whose engine is dead says so on ``/health`` before it ends too."""
TOGETHER_S: Final = 1.0
"""Whoever ends a whole session of processes tells the engine too, which may be gone before this one has heard of it."""
EXIT_ASKED_DEATH: Final = 87
_GAUGES_S: Final = 1.0
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def serve(settings: ServeSettings, listening: Callable[[str, EngineInfo], None]) -> None:
    """Serves until SIGINT, SIGTERM or SIGHUP; ``listening`` hears the URL once requests are taken.

    Raises MissingError (the port is in use, a package or a checkpoint is not there), ConfigError, and EngineDied once
    the engine is dead and whoever waited for an answer was told.
    """
    with (
        bound(settings.host, settings.port) as listener,
        tempfile.TemporaryDirectory(prefix="serve-") as folder,
        _engine(settings, Path(folder)) as (engine, recorded),
    ):

        def die() -> NoReturn:
            shutil.rmtree(folder, ignore_errors=True)  # all else ends by itself when this process does
            os._exit(EXIT_ASKED_DEATH)

        asyncio.run(_serve(settings, listener, engine, recorded, listening, die))


@contextlib.contextmanager
def _engine(settings: ServeSettings, folder: Path) -> Iterator[tuple[EngineProcess, RecordedChats | None]]:
    """The engine's process, and which recorded chats it answers."""
    recorded = RecordedChats(settings.recorded) if settings.recorded else None
    spec = settings.engine if recorded is None else recorded.script(settings.engine, folder)
    with start_engine(spec, log=folder / "engine.log", timeout_s=settings.ready_s) as engine:
        yield engine, recorded


@contextlib.contextmanager
def bound(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that holds the port; nobody can connect until it listens. Raises MissingError, ConfigError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    except (socket.gaierror, UnicodeError, OverflowError) as error:
        raise ConfigError(f"nothing can listen at host {host!r}, port {port}: {error}") from None
    with socket.socket(family, kind, protocol) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(address)
        except OSError as error:
            raise _no_port(host, port, error) from None
        yield listener


def _no_port(host: str, port: int, error: OSError) -> MissingError:
    if error.errno == errno.EADDRINUSE:
        return MissingError(
            f"port {port} of {host} is in use", mend="end what listens there, or give another --port (0: any)"
        )
    return MissingError(
        f"port {port} of {host} is not to be had: {error.strerror}", mend="give another --host or --port"
    )


async def _serve(
    settings: ServeSettings,
    listener: socket.socket,
    engine: EngineProcess,
    recorded: RecordedChats | None,
    listening: Callable[[str, EngineInfo], None],
    die: Callable[[], NoReturn],
) -> None:
    info = engine.info
    manner = MANNERS[settings.like]
    codec, chat = tongue(settings, info) if recorded is None else (recorded.codec, PlainChat(recorded.codec))
    limits = Limits(info, end_ids(settings.engine), settings.seed, defaults(settings.engine), manner.shapes.too_long)
    connection = Connection(engine.socket, log=engine.log)
    bridge = Bridge(connection, stream_interval=settings.stream_interval, on_death=lambda: server.mourn())
    service = Service(
        bridge=bridge,
        manner=manner,
        limits=limits,
        model=settings.model,
        codec=codec,
        chat=chat,
        reads_chats=info.kind == "torch",
        faults=FaultPlan(settings.faults),
        rows=ScriptRows(_rows(settings.engine, info) if recorded is None else len(recorded), recorded),
        gauges=partial(gauges.ask, engine.socket, _GAUGES_S),
        die=die,
    )
    server = _Server(_config(service), bridge, settings, lambda: listening(_url(listener), info))
    try:
        await server.serve(sockets=[listener])
    finally:
        bridge.close()
    if bridge.death is not None and not server.told_to_end:
        raise bridge.death


def _config(service: Service) -> uvicorn.Config:
    return uvicorn.Config(
        service.app(),
        http=OpenLineProtocol,
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        timeout_keep_alive=KEEP_ALIVE_S,
        timeout_graceful_shutdown=LAST_RESORT_S,
    )


class _Server(uvicorn.Server):
    """Ends cleanly: streams may go on for a moment, then they are told that there is no more."""

    def __init__(
        self, config: uvicorn.Config, bridge: Bridge, settings: ServeSettings, listening: Callable[[], None]
    ) -> None:
        super().__init__(config)
        self._bridge = bridge
        self._settings = settings
        self._listening = listening
        self._dead_since: float | None = None
        self.told_to_end = False
        """Whether a signal said so, with the engine alive or told at the same time."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Takes the place of what raises the signal again once all is over: to be told to end is no failure."""
        loop = asyncio.get_running_loop()
        taken = [each for each in SIGNALS if signal.getsignal(each) is not signal.SIG_IGN]
        for each in taken:
            loop.add_signal_handler(each, self._told_to_end)
        try:
            yield
        finally:
            for each in taken:
                loop.remove_signal_handler(each)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Says so once it is up. Raises MissingError where another was first to listen at the port."""
        try:
            await super().startup(sockets)
        except OSError as error:
            raise _no_port(self._settings.host, self._settings.port, error) from None
        self._listening()

    def mourn(self) -> None:
        """Ends it in a while, since its engine is dead."""
        loop = asyncio.get_running_loop()
        self._dead_since = loop.time()
        loop.call_later(DEATH_NOTICE_S, self._end)

    def _told_to_end(self) -> None:
        now = asyncio.get_running_loop().time()
        if self._dead_since is None or now - self._dead_since < TOGETHER_S:
            self.told_to_end = True
        self._end()

    def _end(self) -> None:
        if self.should_exit:
            return
        self.should_exit = True
        loop = asyncio.get_running_loop()
        loop.call_later(GRACE_S, self._bridge.abandon, "the server is ending")
        loop.call_later(GRACE_S + LAST_WORDS_S, self._hang_up)

    def _hang_up(self) -> None:
        for connection in list(self.server_state.connections):
            if isinstance(connection, OpenLineProtocol):
                connection.transport.abort()


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _rows(spec: EngineSpec, info: EngineInfo) -> int | None:
    recorded = spec.settings.get("answers")
    if not isinstance(recorded, dict) or DATASET not in recorded:
        return None
    return max(1, len(read_answers(Path(recorded[DATASET]), info.vocab_size)[1]))
