"""``audit.config``: what turns a LoadGen run into an audit. Checked by us, because LoadGen obeys any such file.

The file is ours, with the approved settings in words of our own, or the approved text itself: what counts is what
LoadGen is told. Thresholds are no business of LoadGen's and none of this file's: they are the round's.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path

from harness.errors import ConfigError, MissingError
from harness.rules.audits import AuditConfig

NAME = "audit.config"

_LINE = re.compile(r"\*\.\*\.(?P<key>\w+) = (?P<value>0|[1-9][0-9]*)", re.ASCII)


@dataclass(frozen=True, slots=True)
class AuditFile:
    """An audit.config whose settings are the round's: where it was read, its bytes, and both hashes.

    ``name`` is its path below the project, ``approved_sha256`` the hash of the text that MLCommons hands out.
    """

    name: str
    content: bytes
    approved_sha256: str

    @property
    def sha256(self) -> str:
        """The hash of the file that LoadGen reads."""
        return hashlib.sha256(self.content).hexdigest()

    @property
    def approved_text(self) -> bool:
        """Whether it is the approved text to the letter."""
        return self.sha256 == self.approved_sha256


def read(project: Path, test: str, benchmark: str, rules: AuditConfig) -> AuditFile:
    """The audit.config of one audit and benchmark below a project's ``compliance/``, checked against the round.

    MissingError where there is none, ConfigError where it would tell LoadGen anything but the approved settings.
    """
    name = f"compliance/{test}/{benchmark}/{NAME}"
    path = project / name
    try:
        content = path.read_bytes()
    except OSError as error:
        raise MissingError(
            f"the settings of {test} cannot be read: {error.strerror}",
            where=path,
            mend="take compliance/ from the harness's repository into the project's folder",
        ) from None
    file = AuditFile(name, content, rules.sha256.value)
    if not file.approved_text:
        _check(parse(content.decode("utf-8", "replace"), where=path), rules, path)
    return file


def parse(text: str, *, where: object = None) -> dict[str, int]:
    """The settings of an audit.config by key. ConfigError for a line that is none, or a key that comes twice."""
    settings: dict[str, int] = {}
    for number, line in enumerate(text.split("\n"), 1):
        if line.split()[:1] in ([], ["#"]):
            continue
        match = _LINE.fullmatch(line.rstrip())
        if match is None or match["key"] in settings:
            again = "" if match is None else ", and the key stands above already"
            raise ConfigError(
                f"audit.config line {number} is not one that LoadGen reads as it is meant: {line!r}{again}",
                where=where,
                expected="*.*.key = whole number, each key once; or a comment, with a blank after its #",
            )
        settings[match["key"]] = int(match["value"])
    return settings


def _check(settings: dict[str, int], rules: AuditConfig, path: Path) -> None:
    wanted = rules.settings.value
    wrong = [key for key in sorted(settings.keys() | wanted.keys()) if settings.get(key) != wanted.get(key)]
    if not wrong:
        return
    raise ConfigError(
        "these are not the approved settings: " + ", ".join(f"{key} {settings.get(key, 'unset')}" for key in wrong),
        where=path,
        expected=", ".join(f"{key} {wanted.get(key, 'unset')}" for key in wrong),
        mend="restore the file from the repository; an audit's settings are never changed",
    )
