"""The words before a server's command (a container's, a scheduler's): filled in, and told what a container needs."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from harness.engines.launch.environment import crosses_into_a_container
from harness.engines.launch.plan import Container
from harness.errors import ConfigError, UnknownName

_PLACEHOLDER = re.compile(r"\{(\w*)\}")
_DETACHING = re.compile(r"--detach(?:=true)?|-[it]*d[it]*")


@dataclass(frozen=True, slots=True)
class Runtime:
    """How a container's client is told things: after ``verb``, each variable by ``env``, each folder by ``mount``."""

    verb: str
    env: str
    mount: str
    id_file: str | None


RUNTIMES: Final[Mapping[str, Runtime]] = {
    "docker": Runtime("run", "--env", "--volume", "--cidfile"),
    "podman": Runtime("run", "--env", "--volume", "--cidfile"),
    "enroot": Runtime("start", "--env", "--mount", None),
}


@dataclass(frozen=True, slots=True)
class Prefix:
    """The words, and the container they make where its client does not end it on being killed."""

    words: tuple[str, ...]
    container: Container | None = None


def filled(prefix: Sequence[str], values: Mapping[str, str]) -> tuple[str, ...]:
    """The words with ``{gpus}`` and the like replaced. UnknownName for what there is no value for."""

    def value(found: re.Match[str]) -> str:
        if found[1] not in values:
            raise UnknownName("placeholder", found[1], values, where="engine.launch.prefix")
        return values[found[1]]

    return tuple(_PLACEHOLDER.sub(value, word) for word in prefix)


def with_container(
    prefix: Sequence[str],
    words: Sequence[str],
    environment: Mapping[str, str],
    *,
    mounts: Sequence[Path],
    id_file: Path,
) -> Prefix:
    """Tells a container's client, if there is one in ``words`` (``prefix`` filled in), of variables and folders.

    A container has none of our variables and sees none of our folders: each variable is handed on by name (its value
    stays off the command line), each folder mounted at its own path. What the user wrote behind stays as it is.
    """
    place = next((i for i, word in enumerate(words) if Path(word).name in RUNTIMES), None)
    if place is None:
        return Prefix(tuple(words))
    program = words[place]
    runtime = RUNTIMES[Path(program).name]
    if runtime.verb not in words[place:]:
        raise ConfigError(
            f"launch.prefix calls {program} without {runtime.verb}",
            where="engine.launch.prefix",
            expected=f"{program} {runtime.verb} … IMAGE: the server's command stands behind it",
        )
    at = words.index(runtime.verb, place) + 1
    _refuse_detached(words[at:], runtime)
    told = [word for folder in mounts for word in (runtime.mount, f"{folder}:{folder}")]
    names = crosses_into_a_container(environment, gpus_renumbered=any("{gpus}" in word for word in prefix))
    told += [word for name in names for word in (runtime.env, name)]
    container = None
    if runtime.id_file is not None:
        told += [runtime.id_file, str(id_file)]
        container = Container(program, id_file)
    return Prefix((*words[:at], *told, *words[at:]), container)


def _refuse_detached(words: Sequence[str], runtime: Runtime) -> None:
    """A container in the background cannot be watched: its client ends at once."""
    for word in words:
        if runtime.id_file is not None and _DETACHING.fullmatch(word):
            raise ConfigError(
                f"launch.prefix detaches its container: {word}",
                where="engine.launch.prefix",
                expected="a container in the foreground: its log and its end are watched",
                mend=f"remove {word}",
            )
