"""Runs one LoadGen job in a process of its own and hands its outcome back."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, MappingProxyType

from harness.clients.loadgen.job import JOB, OUTCOME, WORKER_LOG, LegJob, Outcome
from harness.clients.watching import AskOccupancy, OccupancyWatch, asked_for, nobody_tells
from harness.errors import RunBroke
from harness.events import LegProgress, Observer, Running
from harness.ledger.store import LOGS, write_atomically

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None)
"""Opened before any fork: no other thread can hold the loader's lock in the child."""
_STOP_S = 15.0
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_LAST_LINES = 12
_NO_ROOM_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Beside:
    """What the worker does not know of its leg: the limits of latencies by name, and how full the engine is."""

    limits_ns: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    occupancy: AskOccupancy = nobody_tells


_NOTHING = Beside()


def run_job(job: LegJob, leg: str, observer: Observer, beside: Beside = _NOTHING) -> Outcome:
    """Runs the worker to its end. Its working folder is an empty one below the run's, so no stray file is picked up.

    ``observer`` is told every second, or every few, how far it is, with what stands ``beside``.
    RunBroke where it ended without an outcome. ^C is passed on: the worker writes what it has, then KeyboardInterrupt
    goes on up.
    """
    folder = Path(job.folder)
    (folder / LOGS).mkdir(exist_ok=True)
    cwd = folder / "cwd"
    cwd.mkdir(exist_ok=True)
    write_atomically(folder / JOB, job.model_dump_json(indent=1) + "\n")
    process: subprocess.Popen[str] | None = None
    try:
        with _signals_held():
            process = _started(folder, cwd)
        _follow(process, leg, observer, beside)
    except BaseException:
        if process is not None:
            _stop(process)
        raise
    finally:
        if process is not None and process.stdout is not None:
            process.stdout.close()
        if not any(cwd.iterdir()):  # what a library dropped there is kept: it may say why the run broke
            cwd.rmdir()
    return _outcome(folder, process.wait())


def _started(folder: Path, cwd: Path) -> subprocess.Popen[str]:
    with (folder / WORKER_LOG).open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", "harness.clients.loadgen.worker", str(folder / JOB)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            cwd=cwd,
            env=_environment(),
            start_new_session=True,  # ^C reaches us alone; we pass it on once
            preexec_fn=_die_with_parent,
            text=True,
        )


@contextlib.contextmanager
def _signals_held() -> Iterator[None]:
    """Notes what would end the verb, and does it at the end: Python drops what a handler raises in a hook of a fork,
    and nobody would know of a process whose start was cut short.
    """
    if threading.current_thread() is not threading.main_thread():  # no handler runs here
        yield
        return
    noted: list[int] = []

    def note(signum: int, frame: FrameType | None) -> None:
        noted.append(signum)

    before = {number: signal.getsignal(number) for number in _ENDING}
    handlers = {number: handler for number, handler in before.items() if callable(handler)}
    for number in handlers:
        signal.signal(number, note)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        for came in noted:
            signal.raise_signal(came)


def _environment() -> dict[str, str]:
    """The worker finds the package that runs now, whatever folder it starts in."""
    root = str(Path(__file__).resolve().parents[3])
    paths = [root, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def _die_with_parent() -> None:
    """Between fork and exec: the kernel ends the worker when the harness is killed without a chance to say so."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _follow(process: subprocess.Popen[str], leg: str, observer: Observer, beside: Beside) -> None:
    started = time.monotonic()
    if process.stdout is None:
        raise ValueError("the worker's standard output must be a pipe")
    with OccupancyWatch(asked_for(observer, beside.occupancy)) as engine:
        for line in process.stdout:
            told = json.loads(line)
            running = tuple(
                Running(**each, limit_ns=beside.limits_ns.get(each["name"])) for each in told.pop("running")
            )
            elapsed_s = time.monotonic() - started
            observer(LegProgress(leg, elapsed_s, running=running, occupancy=engine.latest, **told))


def _stop(process: subprocess.Popen[str]) -> None:
    """Asks the worker to write what it has and end; kills it where it does not."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(_STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _outcome(folder: Path, exit_code: int) -> Outcome:
    path = folder / OUTCOME
    if path.exists():
        return Outcome.model_validate_json(path.read_bytes())
    lines = (folder / WORKER_LOG).read_text(encoding="utf-8", errors="replace").splitlines()[-_LAST_LINES:]
    how, mend = f"ended with {exit_code}", None if lines else "nothing could be logged: look whether the disk is full"
    if exit_code < 0:
        how = f"was ended by {signal.Signals(-exit_code).name}"
        mend = "the kernel's log says whether memory ran out (dmesg); run again"
    if shutil.disk_usage(folder).free < _NO_ROOM_BYTES:
        mend = "free space on this disk: there is none left"
    last = "".join(f"\n    {line}" for line in lines)
    raise RunBroke(
        f"the LoadGen worker {how} and left no outcome" + (f"; its last lines:{last}" if lines else ""),
        where=folder / WORKER_LOG,
        mend=mend,
    )
