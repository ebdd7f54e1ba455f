"""Starting an engine in a process of its own, and ending it so that nothing of it is left."""

from __future__ import annotations

import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Final

from harness import errors
from harness.engines.base import EngineCore, EngineInfo
from harness.engines.connection import last_lines
from harness.engines.ended import how_it_ended
from harness.engines.remote import RemoteEngine
from harness.engines.wire import info_of_json
from harness.errors import ConfigError, EngineDied, HarnessError, MissingError, UnknownName

SOCKET_PATH_BYTES: Final = 100
"""A Unix socket's path may have 108 bytes (unix(7))."""
POLL_S: Final = 0.005
GRACE_S: Final[Mapping[str, float]] = {"trtllm": 30.0}
"""How long an engine may take to end by itself once it is asked, by kind; others have :data:`USUAL_GRACE_S`.

TensorRT-LLM ends its MPI workers, which free their GPU's memory; those that are killed may leave it taken.
"""
USUAL_GRACE_S: Final = 5.0


@dataclass(frozen=True, slots=True)
class EngineSpec:
    """Which engine, with which settings; plain JSON values, so that it can be written beside a run."""

    kind: str
    settings: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.kind not in BUILDERS:
            raise UnknownName("kind of engine", self.kind, BUILDERS)
        try:
            plain = json.loads(json.dumps(dict(self.settings), allow_nan=False))
        except (TypeError, ValueError) as error:
            raise ConfigError(f"the settings of the {self.kind} engine are no JSON values: {error}") from None
        object.__setattr__(self, "settings", MappingProxyType(plain))

    @property
    def threads(self) -> int:
        """How many threads its numerical libraries may use."""
        threads = self.settings.get("threads", 1)
        if not isinstance(threads, int) or isinstance(threads, bool) or threads < 1:
            raise ConfigError(f"the {self.kind} engine's threads are {threads!r}", expected="an integer of at least 1")
        return threads

    @property
    def grace_s(self) -> float:
        """Seconds that it may take to end by itself once it is asked to."""
        return GRACE_S.get(self.kind, USUAL_GRACE_S)

    def to_json(self) -> dict[str, object]:
        """What :meth:`parse` reads."""
        return {"kind": self.kind, "settings": dict(self.settings)}

    @classmethod
    def parse(cls, found: object) -> EngineSpec:
        """From plain JSON values. Raises ConfigError."""
        if not isinstance(found, Mapping) or set(found) != {"kind", "settings"}:
            raise ConfigError(f"not an engine's spec: {found!r}", expected="an object with kind and settings")
        if not isinstance(found["kind"], str) or not isinstance(found["settings"], Mapping):
            raise ConfigError(f"not an engine's spec: {found!r}", expected="a string kind and an object of settings")
        return cls(found["kind"], found["settings"])


def build_core(spec: EngineSpec) -> EngineCore:
    """The engine itself, in this process. Raises ConfigError or MissingError for what its settings do not allow."""
    return BUILDERS[spec.kind](spec.settings)


def _build_scripted(settings: Mapping[str, object]) -> EngineCore:
    from harness.engines.scripted import ScriptedCore
    from harness.engines.scripted_settings import ScriptedSettings

    return ScriptedCore(ScriptedSettings.parse(settings))


def _build_torch(settings: Mapping[str, Any]) -> EngineCore:
    try:
        from harness.engines.torch_cpu import TorchCore, TorchSettings
    except ModuleNotFoundError as error:
        raise MissingError(f"the torch engine needs the package {error.name}", mend="pip install '.[torch]'") from error
    known = {each.name: each.default for each in fields(TorchSettings)}
    for name, value in settings.items():
        if name not in known:
            raise UnknownName("setting of the torch engine", name, known)
        if isinstance(known[name], (int, str)) and type(value) is not type(known[name]):
            raise ConfigError(f"the torch engine's {name} is {value!r}", expected=f"a value such as {known[name]!r}")
    if not isinstance(settings.get("checkpoint"), str):
        raise ConfigError("the torch engine needs a checkpoint", expected="checkpoint: the path of a folder")
    return TorchCore(TorchSettings(**dict(settings) | {"checkpoint": Path(settings["checkpoint"])}))


def _build_trtllm(settings: Mapping[str, object]) -> EngineCore:
    from harness.engines import trtllm

    return trtllm.build(settings)


def _build_http(settings: Mapping[str, object]) -> EngineCore:
    from harness.engines.http.core import HttpCore
    from harness.engines.http.settings import HttpSettings

    return HttpCore(HttpSettings.parse(settings))


BUILDERS: Final[Mapping[str, Callable[[Mapping[str, Any]], EngineCore]]] = {
    "scripted": _build_scripted,
    "torch": _build_torch,
    "trtllm": _build_trtllm,
    "http": _build_http,
}


class EngineProcess:
    """A running engine. Use as a context manager, or call :meth:`stop`; it also ends when this process does."""

    def __init__(self, spec: EngineSpec, process: subprocess.Popen[bytes], folder: Path, log: Path) -> None:
        self.spec = spec
        self.log = log
        self.socket = folder / "socket"
        self._process = process
        self._folder = folder
        self._info: EngineInfo | None = None

    @property
    def pid(self) -> int:
        """Its process, which leads a session and a process group of its own."""
        return self._process.pid

    @property
    def info(self) -> EngineInfo:
        """What the engine said of itself when it was ready."""
        if self._info is None:
            raise EngineDied(f"the {self.spec.kind} engine is not up", where=self.log)
        return self._info

    def connect(self, timeout_s: float = 30.0) -> RemoteEngine:
        """A client of it. It serves one at a time; another process connects to :attr:`socket`."""
        return RemoteEngine(self.socket, log=self.log, timeout_s=timeout_s)

    def alive(self) -> bool:
        """Whether the process runs."""
        if self._process.returncode is not None:
            return False
        # Not Popen.poll, which would reap it: until then its process group is surely still its own.
        return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None

    def terminate(self) -> None:
        """Asks it to end, and does not wait."""
        if self.alive():
            self._process.terminate()

    def stop(self, grace_s: float | None = None) -> None:
        """Ends it: SIGTERM, after ``grace_s`` (None: what its kind needs) SIGKILL, to all of its group.

        May be called again.
        """
        if self._process.returncode is None:
            self.terminate()
            try:
                self._wait(self.spec.grace_s if grace_s is None else grace_s)
            finally:  # ^C ends the wait, not the duty
                os.killpg(self.pid, signal.SIGKILL)
                self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                pipe.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def __enter__(self) -> EngineProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.stop()

    def await_ready(self, timeout_s: float) -> None:
        """Waits for the line that says how it went. Raises what the engine raised, or EngineDied."""
        line = self._first_line(timeout_s)
        try:
            said = json.loads(line)
        except ValueError:
            raise self._died_early() from None
        if "error" in said:
            raise error_of_json(said["error"])
        self._info = info_of_json(said["ready"])

    def fileno(self) -> int:
        """The descriptor on which it says how it went."""
        if self._process.stdout is None:
            raise ValueError("started without a pipe at its standard output")
        return self._process.stdout.fileno()

    def _first_line(self, timeout_s: float) -> bytes:
        descriptor = self.fileno()
        deadline = time.monotonic() + timeout_s
        line = b""
        while not line.endswith(b"\n"):
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([descriptor], [], [], left)[0]:
                raise EngineDied(
                    f"the {self.spec.kind} engine is not ready after {timeout_s:g} s{last_lines(self.log)}",
                    where=self.log,
                    mend="give it more time, or find in its log what it waits for",
                )
            piece = os.read(descriptor, 65536)
            if not piece:
                break
            line += piece
        return line

    def ending(self) -> str | None:
        """How its process ended, as a sentence goes on; None while it runs, and once :meth:`stop` was called."""
        return how_it_ended(self._process)

    def _died_early(self) -> EngineDied:
        self._wait(5.0)
        how = self.ending() or "closed its standard output"
        return EngineDied(
            f"the {self.spec.kind} engine {how} before it was ready{last_lines(self.log)}", where=self.log
        )

    def _wait(self, timeout_s: float) -> None:
        deadline = time.monotonic() + timeout_s
        while self.alive() and time.monotonic() < deadline:
            time.sleep(POLL_S)


def start_engine(
    spec: EngineSpec, *, log: Path, timeout_s: float, environment: Mapping[str, str] = MappingProxyType({})
) -> EngineProcess:
    """Starts an engine's process and waits until it serves.

    Its standard error is appended to ``log``; ``environment`` is added to this process's own. Raises the HarnessError
    of an engine that could not be built (with its exit code), EngineDied for one that ended or is not ready after
    ``timeout_s``; nothing is left running then.
    """
    engine = begin_engine(spec, log=log, environment=environment)
    try:
        engine.await_ready(timeout_s)
    except BaseException:
        engine.stop()
        raise
    return engine


def begin_engine(
    spec: EngineSpec, *, log: Path, environment: Mapping[str, str] = MappingProxyType({})
) -> EngineProcess:
    """Starts an engine's process and waits for nothing: the caller awaits it, and stops it whatever comes."""
    folder = _private_folder()
    path = folder / "spec.json"
    path.write_text(json.dumps(spec.to_json()), encoding="utf-8")
    command = [sys.executable, "-m", "harness.engines.host", "--socket", str(folder / "socket"), "--spec", str(path)]
    command += ["--scratch", str(folder)]
    try:
        with log.open("ab") as log_file:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,  # held open, never written: its end tells the engine that its starter is gone
                stdout=subprocess.PIPE,
                stderr=log_file,
                env=os.environ | {"OMP_NUM_THREADS": str(spec.threads)} | dict(environment),
                start_new_session=True,
            )
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return EngineProcess(spec, process, folder, log)


def _private_folder() -> Path:
    """A folder only this user enters, with a path short enough for a socket in it."""
    folder = Path(tempfile.mkdtemp(prefix="engine-"))
    if len(os.fsencode(folder / "socket")) > SOCKET_PATH_BYTES:
        folder.rmdir()
        folder = Path(tempfile.mkdtemp(prefix="engine-", dir="/tmp"))
    return folder


def error_to_json(error: HarnessError) -> dict[str, object]:
    """An error for another process. Its class is the nearest that :func:`error_of_json` can make from these values."""
    plain = next(cls for cls in type(error).__mro__ if _is_plain(cls))
    return {
        "class": plain.__name__,
        "what": error.what,
        "where": error.where,
        "expected": error.expected,
        "mend": error.mend,
    }


def _is_plain(cls: type) -> bool:
    """Whether a class is of the error tree and made as its root is."""
    return getattr(errors, cls.__name__, None) is cls and (cls is HarnessError or "__init__" not in vars(cls))


def error_of_json(content: Mapping[str, Any]) -> HarnessError:
    """The error that :func:`error_to_json` wrote."""
    cls: type[HarnessError] = getattr(errors, content["class"])
    return cls(content["what"], where=content["where"], expected=content["expected"], mend=content["mend"])
