"""What is started for a server: its words, environment and files, before anything runs."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from harness.engines.launch.secrets import MASK, is_secret, masked, masked_words


@dataclass(frozen=True, slots=True)
class Container:
    """A container that a client program runs for us; the client writes its id to ``id_file``."""

    program: str
    id_file: Path


@dataclass(frozen=True, slots=True)
class ServerPlan:
    """One server: replica ``name``, to be asked at ``url`` for the model ``model``.

    ``files`` are to be written before it starts; it works in ``folder`` and keeps what it compiles in ``caches``.
    ``prefixed``: other words stand before the server's own, and may take it out of our sight, into a container or onto
    another machine.
    """

    name: str
    server: str
    command: tuple[str, ...]
    environment: Mapping[str, str]
    files: Mapping[Path, str]
    folder: Path
    caches: Path
    log: Path
    host: str
    port: int
    url: str
    model: str
    container: Container | None = None
    prefixed: bool = False

    def __post_init__(self) -> None:
        if not self.command:
            raise ValueError(f"nothing to run for replica {self.name}")

    @property
    def title(self) -> str:
        """For people: which server of which replica."""
        return f"{self.server} {self.name} ({self.url})"

    def unmentioned(self, text: str) -> str:
        """A text of the server's without the values of its secret variables."""
        for name, value in self.environment.items():
            if is_secret(name) and value:
                text = text.replace(value, MASK)
        return text

    def text(self) -> str:
        """The plan as a person would type it: environment, files, command; tokens and keys as ``***``."""
        lines = [f"# replica {self.name}: {self.url}, model {self.model}, log {self.log}"]
        for path, content in self.files.items():
            lines += [f"cat > {shlex.quote(str(path))} <<'YAML'", content.rstrip("\n"), "YAML"]
        environment = masked(self.environment)
        lines += [f"env -C {shlex.quote(str(self.folder))} -i \\"]
        lines += [f"  {name}={shlex.quote(environment[name])} \\" for name in sorted(environment)]
        lines += [f"  {shlex.join(masked_words(self.command))}"]
        return "\n".join(lines) + "\n"
