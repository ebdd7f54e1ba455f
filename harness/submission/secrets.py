"""Looks for what should not leave the house: keys, host and user names, addresses, home folders.

A hit is a finding with the secret masked. Nothing is ever edited: a log that was changed is no log.
"""

from __future__ import annotations

import enum
import getpass
import ipaddress
import re
import socket
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

MAX_FINDINGS_PER_FILE = 20
"""Of what a person judges; keys are all told, or twenty host names would hide one."""

_EVERYWHERE = {"root", "localhost", "user", "admin", "runner", "ubuntu", "debian", "nobody"}
"""Names that tell nothing, of no one."""


class Kind(str, enum.Enum):
    """What a secret is. Keys stop a package; the others are for a person to judge."""

    KEY = "key"
    HOST = "host name"
    USER = "user name"
    ADDRESS = "address"
    HOME = "home folder"
    PATH = "absolute path"


@dataclass(frozen=True, slots=True)
class Secret:
    """One hit: where, of what kind, and enough of it to find it by."""

    path: str
    line: int
    kind: Kind
    masked: str


@dataclass(frozen=True, slots=True)
class Names:
    """The names that would give the house away; None where there is none worth looking for."""

    host: str | None
    user: str | None

    @classmethod
    def of_this_machine(cls) -> Names:
        """This host and the user logged in, unless everyone's are called so."""
        try:
            user = getpass.getuser()
        except (KeyError, OSError):
            user = ""
        return cls(host=_telling(socket.gethostname()), user=_telling(user))


_KEYS = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{20,}|AKIA[0-9A-Z]{16}|gh[pousr]_[A-Za-z0-9]{30,}"
    r"|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{20,}|nvapi-[A-Za-z0-9_-]{20,}|xox[abprs]-[A-Za-z0-9-]{10,}"
    r"|eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,})"
    r"|(?<=://)[^\s/:@\"']+:[^\s/@\"']+@"
    r"|-----BEGIN [A-Z ]*PRIVATE KEY"
)
_HOMES = re.compile(r"(?<![\w.])/(?:home|Users)/[\w.-]+|(?<![\w.])/root/[\w.-]+")
# /bindings/ is of LoadGen: its log lists the sources it was built from.
_PATHS = re.compile(r"(?<![\w./:~*$}\])<-])/(?!bindings/)[\w.+-]+(?:/[\w.+-]+)+")
_ADDRESSES = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?![\w.]*\d)")
_LONG_ADDRESSES = re.compile(r"(?<![\w:.])[0-9A-Fa-f]{1,4}(?:::?[0-9A-Fa-f]{1,4}){3,7}(?![\w:])")
_HARDWARE = re.compile(r"(?:[0-9A-Fa-f]{2}:){5}[0-9A-Fa-f]{2}")


def search(path: Path, name: str, names: Names, *, paths: bool = False) -> list[Secret]:
    """The secrets in a text file, which findings call ``name``, by line: all keys, and of the rest the first few.

    ``paths`` looks for absolute paths of any kind: in what a run wrote they tell of the house, in source code not.
    """
    text = path.read_text(encoding="utf-8", errors="replace")
    hits = sorted(_hits(text, names, paths))
    others = [hit for hit in hits if hit[1] is not Kind.KEY][:MAX_FINDINGS_PER_FILE]
    found: list[Secret] = []
    line, counted_to = 1, 0
    for start, kind, hit in sorted([*others, *(hit for hit in hits if hit[1] is Kind.KEY)]):
        line += text.count("\n", counted_to, start)
        counted_to = start
        found.append(Secret(name, line, kind, mask(kind, hit)))
    return found


def mask(kind: Kind, hit: str) -> str:
    """Enough to find it by: the start of a path or key, the length of the rest."""
    folder, number = hit.find("/", 1) + 1, max(hit.find("."), hit.find(":")) + 1
    shown = {Kind.KEY: 4, Kind.HOME: folder, Kind.PATH: folder, Kind.ADDRESS: number}.get(kind, 1)
    return f"{hit[:shown]}*** ({len(hit)} characters)"


def _hits(text: str, names: Names, paths: bool) -> Iterator[tuple[int, Kind, str]]:
    """Where each hit begins in the text, its kind, and the hit itself."""
    patterns = [(Kind.KEY, _KEYS), (Kind.HOME, _HOMES), (Kind.ADDRESS, _ADDRESSES), (Kind.ADDRESS, _LONG_ADDRESSES)]
    if paths:
        patterns.append((Kind.PATH, _PATHS))
    for kind, own in ((Kind.HOST, names.host), (Kind.USER, names.user)):
        if own is not None:
            patterns.append((kind, re.compile(rf"(?<![\w]){re.escape(own)}(?![\w])", re.IGNORECASE)))
    for kind, pattern in patterns:
        for match in pattern.finditer(text):
            hit = match.group()
            if (kind is Kind.ADDRESS and not _tells(hit)) or (kind is Kind.PATH and _HOMES.match(hit)):
                continue  # a home folder is told as one
            yield match.start(), kind, hit


def _tells(text: str) -> bool:
    if _HARDWARE.fullmatch(text):
        return True
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    return not (address.is_loopback or address.is_unspecified)


def _telling(name: str) -> str | None:
    return name if len(name) > 2 and name.lower() not in _EVERYWHERE else None
