"""The engine's process: ``python -m harness.engines.host --socket PATH --spec FILE``.

One thread steps the core and serves one client at a time. Nothing a client does stops the core: what a slow reader
does not take waits in memory, and a client that goes away leaves a clean engine to the next one. Answers of a core to
a client that is gone are forgotten.

Once the core is built and the socket listens, one JSON line on standard output says so: ``{"ready": EngineInfo}``, or
``{"error": ...}`` for a user's mistake. Everything else that any library prints goes to standard error. The process
ends on SIGTERM, when its starter is gone (its standard input, if that is a pipe, ends, or its parent changes), or with
status 4 when the core breaks. It leaves SIGINT to its starter.
"""

from __future__ import annotations

import argparse
import atexit
import ctypes
import dataclasses
import json
import os
import select
import shutil
import signal
import socket
import stat
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Final, TextIO

from harness.engines import gauges, wire
from harness.engines.base import EngineCore, Event, Failure, Workload
from harness.engines.frames import REQUESTS, Frame, Kind, WireError, json_frame, signal_frame
from harness.engines.start import EngineSpec, build_core, error_to_json
from harness.engines.stream import FrameStream, StreamEnded
from harness.errors import HarnessError, RunBroke

PR_SET_PDEATHSIG: Final = 1
LAST_WORDS_S: Final = 5.0
FEW: Final = 256
WAITING_CLIENTS: Final = 16
STDIN, STDOUT, STDERR = 0, 1, 2


class Host:
    """Steps a core for whoever is connected."""

    def __init__(
        self,
        core: EngineCore,
        listener: socket.socket,
        lifeline: int | None = None,
        asked: socket.socket | None = None,
    ) -> None:
        """``lifeline`` is a descriptor at whose end the host ends; at ``asked`` it says how full the core is."""
        listener.setblocking(False)
        self._core = core
        self._listener = listener
        self._lifeline = lifeline
        self._asked = asked
        lasting = [] if lifeline is None else [lifeline]
        if asked is not None:
            asked.setblocking(False)
            lasting.append(asked.fileno())
        self._lasting = tuple(lasting)
        self._descriptor = core.descriptor()
        self._watch = Watch([*lasting, *(() if self._descriptor is None else (self._descriptor,))])
        self._client: FrameStream | None = None
        self._workloads: dict[int, Workload] = {}

    def serve(self) -> None:
        """Runs until the lifeline ends. Whatever the core raises comes out, after the client was told."""
        try:
            while self._turn():
                pass
        except Exception as error:
            self._tell_last_words(error)
            raise
        finally:
            if self._client is not None:
                self._client.close()

    def _turn(self) -> bool:
        """Waits for the core or a descriptor and does what is due; False at the end."""
        client = self._client
        source = self._listener if client is None else client
        writers = (client,) if client is not None and client.backlog else ()
        if self._descriptor is None:
            readable, _, _ = select.select((source, *self._lasting), writers, (), self._core.wait_s())
            due = False
        else:
            readable = self._watch.wait(source, bool(writers), self._core.wait_s())
            due = self._descriptor in readable
        if self._lifeline is not None and self._lifeline in readable and not os.read(self._lifeline, 4096):
            return False
        if self._asked is not None and self._asked.fileno() in readable:
            gauges.answer(self._asked, self._core.gauges())
        if client is not None:
            self._serve(client, client in readable, due)
            return True
        if self._listener in readable:
            self._accept()
        if due or self._core.wait_s() == 0:
            self._core.step()  # it may have connections of its own to see to; nobody is there to be told
        return True

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, ConnectionError):
            return  # it has thought better of it
        client = self._client = FrameStream(connection)
        self._workloads = {}
        try:
            client.send(wire.info_frame(self._core.info()))
        except StreamEnded:
            self._drop(client)

    def _serve(self, client: FrameStream, readable: bool, due: bool) -> None:
        """One turn for a client; ``due`` where the core's descriptor says that it has something to do."""
        try:
            if readable:
                for frame in client.receive():
                    self._obey(client, frame)
            if client.backlog:
                client.flush()
            events = self._core.step() if due or self._core.wait_s() == 0 else None
            if events:
                self._tell(client, events)
        except (StreamEnded, WireError) as gone:
            if isinstance(gone, WireError):
                sys.stderr.write(f"a client is dropped: {gone}\n")
            self._drop(client)

    def _obey(self, client: FrameStream, frame: Frame) -> None:
        if frame.kind is REQUESTS:
            self._core.submit(wire.read_requests(frame, self._workloads))
        elif frame.kind is Kind.WORKLOAD:
            self._workloads[frame.n] = wire.read_workload(frame)
        elif frame.kind is Kind.DROP:
            self._core.drop(wire.read_drop(frame))
        elif frame.kind is Kind.CANCEL:
            self._core.cancel()
            client.forget()
            client.send(signal_frame(Kind.CANCEL, frame.n))
        elif frame.kind is Kind.PING:
            client.send(signal_frame(Kind.PING, frame.n))
        elif frame.kind is Kind.COUNTERS:
            client.send(json_frame(Kind.COUNTERS, frame.n, self._core.counters()))
        else:
            raise WireError(f"a client does not say {frame.kind.name}")

    def _tell(self, client: FrameStream, events: list[Event]) -> None:
        """Few events go out in one piece and at once; many are encoded as the client takes them."""
        if sum(1 if isinstance(event, Failure) else len(event.numbers) for event in events) <= FEW:
            client.send(b"".join(map(wire.event_frame, events)))
            return
        for event in events:
            client.send_later(wire.event_frames(event))
        client.flush()

    def _drop(self, client: FrameStream) -> None:
        client.close()
        self._client = None
        self._core.cancel()

    def _tell_last_words(self, error: Exception) -> None:
        if self._client is None:
            return
        message = str(error) if isinstance(error, HarnessError) else f"{type(error).__name__}: {error}"
        self._client.forget()
        try:
            self._client.send(json_frame(Kind.FATAL, 0, {"message": message}))
            if self._client.backlog:
                select.select([], [self._client], [], LAST_WORDS_S)
                self._client.flush()
        except StreamEnded:
            return  # nobody is left to be told; the log has it


class Watch:
    """Waits as ``select`` does, for one source and some descriptors that stay: of any number, where ``select`` takes
    none as high as many connections make them.
    """

    def __init__(self, lasting: Sequence[int]) -> None:
        self._poller = select.poll()
        for number in lasting:
            self._poller.register(number, select.POLLIN)
        self._watched = (-1, 0)

    def wait(
        self, source: socket.socket | FrameStream, room: bool, timeout_s: float | None
    ) -> list[int | socket.socket | FrameStream]:
        """Those that can be read; returns, too, when the source has ``room`` to write, where that is asked."""
        number, flags = source.fileno(), select.POLLIN | (select.POLLOUT if room else 0)
        if self._watched != (number, flags):
            if self._watched[0] not in (-1, number):
                self._poller.unregister(self._watched[0])
            self._poller.register(number, flags)
            self._watched = (number, flags)
        told = self._poller.poll(None if timeout_s is None else timeout_s * 1000)
        return [source if ready == number else ready for ready, flags in told if flags != select.POLLOUT]


def main(argv: Sequence[str] | None = None) -> int:
    """Builds the core of a spec and hosts it; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m harness.engines.host", description="Hosts an engine on a socket.")
    parser.add_argument("--socket", type=Path, required=True, help="path of the Unix socket to listen on")
    parser.add_argument("--spec", type=Path, required=True, help="JSON file with the engine's kind and settings")
    parser.add_argument("--scratch", type=Path, help="folder to remove at the end, for a starter that may die first")
    arguments = parser.parse_args(argv)
    if arguments.scratch is not None:
        atexit.register(shutil.rmtree, arguments.scratch, ignore_errors=True)
    follow_the_starter()
    say = own_standard_output()
    try:
        core = build_core(EngineSpec.parse(json.loads(arguments.spec.read_text(encoding="utf-8"))))
    except HarnessError as error:
        sys.stderr.write(f"{error}\n")
        leave_in_peace()  # the starter ends what has told it of an error
        _say(say, {"error": error_to_json(error)})
        return error.exit_code
    with _listening(arguments.socket) as listener, _listening(gauges.gauges_path(arguments.socket)) as asked:
        _say(say, {"ready": dataclasses.asdict(core.info())})
        try:
            Host(core, listener, lifeline(), asked).serve()
        except Exception:  # noqa: BLE001  the process ends here, and its log is where anyone will look
            traceback.print_exc()
            return RunBroke.exit_code
        finally:
            leave_in_peace()
    return 0


def _listening(path: Path) -> socket.socket:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    atexit.register(path.unlink, missing_ok=True)  # unlike `finally`, out of reach of the signals
    listener.bind(str(path))
    listener.listen(WAITING_CLIENTS)
    return listener


def follow_the_starter() -> None:
    """Makes this process end on SIGTERM and with its parent, and not on ^C.

    The kernel's signal comes when the *thread* that started this process ends, which need not mean anything: it is
    SIGHUP, and its handler looks whether the parent has changed.
    """
    parent = os.getppid()

    def end(number: int, _: FrameType | None) -> None:
        if number == signal.SIGTERM or os.getppid() != parent:
            leave_in_peace()
            raise SystemExit(0)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, end)
    signal.signal(signal.SIGHUP, end)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, int(signal.SIGHUP), 0, 0, 0)


def leave_in_peace() -> None:
    """No signal cuts short what is done at the end: it may come after the lifeline has ended everything."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)


def own_standard_output() -> TextIO:
    """Standard output for this module alone; what others write there goes to standard error."""
    own = os.fdopen(os.dup(STDOUT), "w", encoding="utf-8")
    os.dup2(STDERR, STDOUT)
    return own


def lifeline() -> int | None:
    """Standard input where a starter holds its other end."""
    return STDIN if stat.S_ISFIFO(os.fstat(STDIN).st_mode) else None


def _say(out: TextIO, content: object) -> None:
    out.write(json.dumps(content) + "\n")
    out.close()


if __name__ == "__main__":
    sys.exit(main())
