"""What is installed: Python, LoadGen as pinned, the extras and engines that configurations need."""

from __future__ import annotations

import platform
import shutil
import sys
from typing import Final

from harness.env import BFCL_PYTHON, ENDPOINTS_BIN, bfcl_python
from harness.machine.doctor import packages
from harness.machine.doctor.check import Check, Question, check
from harness.machine.doctor.host import Host
from harness.machine.doctor.needs import Needs, Server
from harness.machine.facts import Unreadable

_PROGRAMS: Final = {"trtllm-serve": "trtllm-serve"}
_PACKAGES: Final = {"trtllm-serve": "tensorrt_llm", "trtllm": "tensorrt_llm", "vllm": "vllm", "sglang": "sglang"}
_ENGINES: Final = ("torch", "transformers", "tensorrt_llm", "vllm", "sglang")
_ASK_VERSION: Final = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"


@check(
    "software",
    "python",
    expected="a Python that the harness is made for",
    why="others are not tested, and LoadGen has no wheel for them",
    authority="setup.py: python_requires",
    mend="make venv PYTHON=python3.11, after removing .venv",
)
def python(ask: Question, host: Host, needs: Needs) -> Check:
    """The version that runs this."""
    wanted = packages.python_bounds()
    told = f"{platform.python_version()} ({platform.machine()})", "platform"
    fits = packages.satisfied(platform.python_version(), wanted)
    return (ask.ok if fits else ask.fail)(*told, expected=wanted or None)


@check(
    "software",
    "loadgen",
    expected="the LoadGen that setup.py pins",
    why="another one has other seeds, defaults and log keys; the round says which are allowed",
    authority="setup.py; the rule pack: first_loadgen",
    mend="pip install -e . in the environment that runs this (make venv)",
)
def loadgen(ask: Question, host: Host, needs: Needs) -> Check:
    """LoadGen's version against the pinned one."""
    required = {name: bounds for name, bounds, extra in packages.requirements() if extra is None}
    pinned = required[packages.LOADGEN]
    found = packages.version(packages.LOADGEN)
    if found is None:
        return ask.missing("not installed", "installed packages", expected=pinned)
    fits = f"=={found}" == pinned.replace(" ", "")
    return (ask.ok if fits else ask.fail)(found, "installed packages", expected=pinned)


@check(
    "software",
    "extras",
    expected="the packages that the benchmark and its engine need here",
    why="a leg is refused without them, once the server has been waited for",
    authority="setup.py: extras",
    mend="pip install -e '.[<extra>]' in the environment that runs this",
)
def extras(ask: Question, host: Host, needs: Needs) -> Check:
    """Extras of the harness: those that are needed, else which there are."""
    lacking: dict[str, list[str]] = {}
    for name, bounds, extra in packages.requirements():
        if extra is not None and not packages.satisfied(packages.version(name), bounds):
            lacking.setdefault(extra, []).append(f"{name}{bounds} ({packages.version(name) or 'not installed'})")
    known = sorted({extra for _, _, extra in packages.requirements() if extra is not None})
    whole = ", ".join(extra for extra in known if extra not in lacking) or "none"
    wanted = {extra: lacking[extra] for extra in needs.extras if extra in lacking}
    if wanted:
        read = "; ".join(f"{extra}: {', '.join(lines)}" for extra, lines in wanted.items())
        mend = f"pip install -e '.[{','.join(wanted)}]' in the environment that runs this"
        return ask.missing(f"lacking {read}", "installed packages", mend=mend)
    expected = None if needs.extras else f"any: {needs.named} needs none"
    return ask.ok(f"whole: {whole}", "installed packages", expected=expected)


@check(
    "software",
    "engines",
    expected="the engine that the configuration names, in its version",
    why="options are held against a list of that version; another one knows other names",
    authority="systems/<system>/<benchmark>.yaml: engine.server, engine.version",
    mend="install it, start the harness in its container, or give engine.launch.prefix the words of one",
)
def engines(ask: Question, host: Host, needs: Needs) -> Check:
    """The servers' programs, else which engine packages are installed beside the harness."""
    if not needs.servers:
        found = [f"{name} {version}" for name in _ENGINES if (version := packages.version(name)) is not None]
        read = ", ".join(found) or "none beside the harness"
        return ask.ok(read, "installed packages", expected=f"any: {needs.named} starts no program here")
    absent: list[str] = []
    other: list[str] = []
    there: list[str] = []
    for server in needs.servers:
        try:
            version = _installed(host, server)
        except Unreadable as error:
            absent.append(f"{server.kind}: {error}")
            continue
        fits = version is None or server.version is None or packages.is_one_of(version, server.version)
        (there if fits else other).append(f"{server.kind} {version or 'in a container'}")
    wanted = ", ".join(f"{server.kind} {server.version or ''}".strip() for server in needs.servers)
    source = "PATH, installed packages"
    if absent:
        return ask.missing("; ".join(absent), source, expected=wanted)
    if other:
        return ask.fail(", ".join(other), source, expected=wanted)
    return ask.ok(", ".join(there), source, expected=wanted)


@check(
    "software",
    "clients",
    expected="where a benchmark needs them: mlcommons' endpoints client, and BFCL's own environment",
    why="the agentic benchmark's row is measured by the one and scored by the other",
    authority="docs/endpoints.md, docs/bfcl.md",
    mend=f"make bfcl; export {ENDPOINTS_BIN.name}=<environment>/bin/inference-endpoint",
)
def clients(ask: Question, host: Host, needs: Needs) -> Check | None:
    """Programs in environments of their own."""
    client, judge = ENDPOINTS_BIN.path(host.environ), bfcl_python()
    trajectories = [need for need in needs.every if need.trajectories]
    if client is not None and not client.is_file():
        return ask.fail(f"no such program: {client}", f"${ENDPOINTS_BIN.name}")
    lacking = [ENDPOINTS_BIN.name] * (client is None) + [BFCL_PYTHON.name] * (not judge.is_file())
    read = ", ".join(f"{name} is not there" for name in lacking) or "both are there"
    source = f"${ENDPOINTS_BIN.name}, ${BFCL_PYTHON.name}"
    if not trajectories:
        return ask.ok(read, source, expected=f"any: {needs.named} replays no trajectories")
    return ask.warn(read, source) if lacking else ask.ok(read, source)


def _installed(host: Host, server: Server) -> str | None:
    """The version of a server's package; None where a prefix starts it elsewhere. Raises Unreadable."""
    words = [word for word in server.prefix if "=" not in word or word.startswith("-")]
    program = (
        words[0] if words else _PROGRAMS.get(server.kind, sys.executable if server.kind == "trtllm" else "python3")
    )
    path = shutil.which(program, path=host.environ.get("PATH"))
    if path is None:
        raise Unreadable(f"{program} is not on PATH")
    if words:
        return None
    interpreter = path if server.kind != "trtllm-serve" else _interpreter(path)
    return host.output(interpreter, "-c", _ASK_VERSION, _PACKAGES[server.kind]).strip()


def _interpreter(script: str) -> str:
    """The Python that a console script is run by, of its first line."""
    with open(script, "rb") as file:  # noqa: PTH123 - a path of PATH's, as it is
        line = file.readline(4096).decode("utf-8", "replace").strip()
    return line[2:].split()[0] if line.startswith("#!") and "python" in line else "python3"


CHECKS = (python, loadgen, extras, engines, clients)
