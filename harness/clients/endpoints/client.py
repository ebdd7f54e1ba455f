"""Runs the client: below a supervisor that ends it when the harness ends, followed by its log, ended on ^C."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.clients.endpoints.config import CONFIG
from harness.clients.endpoints.program import ClientProgram, client_environment
from harness.clients.endpoints.progress import Progress, last_progress
from harness.clients.rates import Rates
from harness.clients.watching import AskOccupancy, OccupancyWatch, asked_for, nobody_tells
from harness.engines.ended import how_it_ended
from harness.engines.launch import supervisor
from harness.engines.launch.process import last_lines
from harness.errors import EngineDied, MissingError, RunBroke
from harness.events import LegProgress, Observer, Occupancy

CLIENT_LOG: Final = "client.log"
"""What the client prints, in the run's folder."""

_LOOK_S: Final = 0.25
_TELL_S: Final = 2.0
_STOP_S: Final = 60.0
"""From the interrupt that the client gets to the end of all of it: it saves its events meanwhile."""
_GRACE_S: Final = 10.0
_LOG_LINES: Final = 12


@dataclass(frozen=True, slots=True)
class Watch:
    """What a run of the client is watched by.

    ``ending`` tells which server ended and how, None while all run; ``occupancy`` how full they are. A run in which
    nothing comes back for ``stall_s`` while samples are outstanding is ended as broken.
    """

    leg: str
    ending: Callable[[], str | None]
    stall_s: float
    observer: Observer
    occupancy: AskOccupancy = nobody_tells


def command(program: ClientProgram) -> list[str]:
    """What is started in the run's folder: both phases, performance and accuracy, in one run."""
    return [str(program.path), "benchmark", "from-config", "--config", CONFIG, "--mode", "both"]


def run_client(program: ClientProgram, folder: Path, watch: Watch) -> None:
    """Runs the client to its end in the run's folder; its report lies there afterwards, as it wrote it.

    Raises RunBroke where it ended badly or stalled, EngineDied where a server ended meanwhile. On ^C it is interrupted,
    so that it saves what it has, and KeyboardInterrupt goes on up. Nothing of it is left running, however this ends.
    """
    log = folder / CLIENT_LOG
    process = _start(command(program), folder, log)
    try:
        with OccupancyWatch(asked_for(watch.observer, watch.occupancy)) as servers:
            _follow(process, log, watch, servers)
    except BaseException:
        _stop(process)
        raise
    finally:
        _end(process)
    _check_end(process, log)


def _start(words: Sequence[str], folder: Path, log: Path) -> subprocess.Popen[bytes]:
    supervised = [sys.executable, "-I", "-S", supervisor.__file__, "--grace", f"{_GRACE_S:g}", "--", *words]
    try:
        with log.open("ab") as output:
            return subprocess.Popen(
                supervised,
                stdin=subprocess.PIPE,  # held open, never written: its end tells the supervisor that we are gone
                stdout=output,
                stderr=output,
                cwd=folder,
                env=client_environment(),
                start_new_session=True,  # ^C reaches us alone; we pass it on once
            )
    except OSError as error:
        raise MissingError(f"the endpoints client cannot be started: {error.strerror}", where=folder) from None


def _follow(process: subprocess.Popen[bytes], log: Path, watch: Watch, servers: OccupancyWatch) -> None:
    started = moved = told = time.monotonic()
    seen: Progress | None = None
    rates = Rates(time.monotonic_ns())
    while how_it_ended(process) is None:
        time.sleep(_LOOK_S)
        now, progress = time.monotonic(), last_progress(log)
        if progress != seen:
            seen, moved = progress, now
        if seen is not None and now - told >= _TELL_S:
            told = now
            watch.observer(_progress(watch.leg, now - started, seen, rates, servers.latest))
        if (ended := watch.ending()) is not None and (seen is None or not seen.over):
            raise EngineDied(f"the run broke: {ended}", where=log.parent, mend=f"see {log.name} there, and its log")
        if seen is not None and not seen.over and now - moved > watch.stall_s:
            raise RunBroke(
                f"nothing came back for {watch.stall_s:.0f} s, {seen.done} of {seen.total} samples had",
                where=log,
                mend="look at the servers' logs; raise watchdog_s where single answers take that long",
            )


def _progress(leg: str, elapsed_s: float, seen: Progress, rates: Rates, occupancy: Occupancy | None) -> LegProgress:
    """What the client's bar tells, and how fast it grows; of latencies and tokens it says nothing while it runs."""
    pace = rates.pace(time.monotonic_ns(), seen.done - seen.failed)
    return LegProgress(
        leg,
        elapsed_s,
        seen.total,
        seen.done,
        seen.failed,
        samples_per_s=pace.answers_per_s,
        occupancy=occupancy,
    )


def _stop(process: subprocess.Popen[bytes]) -> None:
    """The client alone is interrupted, as ^C would: it knows how to end its own workers and save its events."""
    if how_it_ended(process) is not None:
        return
    children = [each.pid for each in supervisor.relatives() if each.parent == process.pid and not each.zombie]
    supervisor.send(children, signal.SIGINT)
    deadline = time.monotonic() + _STOP_S
    while how_it_ended(process) is None and time.monotonic() < deadline:
        time.sleep(_LOOK_S)


def _end(process: subprocess.Popen[bytes]) -> None:
    """The supervisor ends what is left, and is waited for."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        process.wait(_GRACE_S + supervisor.LEFT_BEHIND_GRACE_S + supervisor.KILLED_GRACE_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _check_end(process: subprocess.Popen[bytes], log: Path) -> None:
    code = process.returncode
    if code == 0:
        return
    how = f"was ended by {signal.Signals(-code).name}" if code < 0 else f"ended with status {code}"
    # The bar overwrites itself: of such a line the last state is all there is to read.
    lines = [line.rpartition("\r")[2] for line in last_lines(log, 0, _LOG_LINES)]
    raise RunBroke(
        f"the endpoints client {how}" + (f"; its last lines:{''.join(f'{chr(10)}    {line}' for line in lines)}"),
        where=log,
        mend="its log says why; what it had written is kept",
    )
