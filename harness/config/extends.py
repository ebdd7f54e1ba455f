"""Files that build on others: ``extends`` names the one below, and every value knows the file and line it stands in."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from harness.config.merge import merged
from harness.config.plain_yaml import Where, read_yaml
from harness.errors import ConfigError

EXTENDS = "extends"


@dataclass(frozen=True, slots=True)
class Place:
    """A line (from 1) of a file."""

    file: Path
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


Places: TypeAlias = dict[Where, Place]


@dataclass(frozen=True, slots=True)
class Layered:
    """What a file says together with all that it extends. ``files`` are those read, the lowest last.

    ``places`` has the place of each key and item of ``data``: that of the file whose value it is.
    """

    data: Any
    places: Places
    files: tuple[Path, ...]

    def place(self, *key: str | int) -> Place:
        """Where a value stands; for a key that no file has, where the deepest part of it does."""
        at = key
        while at and at not in self.places:
            at = at[:-1]
        return self.places.get(at, Place(self.files[0], 1))


def read_layered(path: Path, root: Path | None = None) -> Layered:
    """Reads a file and what it extends. ConfigError for a chain that is none, or that leaves the folder ``root``."""
    return _read(path, root, ())


def _read(path: Path, root: Path | None, above: tuple[Path, ...]) -> Layered:
    data, lines = read_yaml(path)
    places = {at: Place(path, line) for at, line in lines.items()}
    chain = (*above, path)
    if not isinstance(data, dict) or EXTENDS not in data:
        return Layered(data, places, (path,))
    own = {key: value for key, value in data.items() if key != EXTENDS}
    below = _read(_named(data[EXTENDS], places[(EXTENDS,)], root, chain), root, chain)
    if not isinstance(below.data, dict):
        raise ConfigError("a file that is extended is no mapping", where=below.files[0], expected="keys with values")
    own_places = {at: place for at, place in places.items() if at != (EXTENDS,)}
    return Layered(merged(below.data, own), _over(below.data, below.places, own, own_places), (path, *below.files))


def _named(name: object, place: Place, root: Path | None, chain: tuple[Path, ...]) -> Path:
    if not isinstance(name, str) or not name:
        raise ConfigError(
            "extends is no file's name", where=place, expected="one path, relative to the file that says it"
        )
    if Path(name).is_absolute():
        raise ConfigError(
            "extends names an absolute path", where=place, mend="say it relative to the file that says it"
        )
    target = place.file.parent / name
    if root is not None and not target.resolve().is_relative_to(root.resolve()):
        raise ConfigError(f"extends leaves the project: {name}", where=place, expected=f"a file below {root}")
    if not target.is_file():
        raise ConfigError(f"extends names a file that is not there: {name}", where=place, mend="correct the path")
    seen = [path.resolve() for path in chain]
    if target.resolve() in seen:
        circle = [*chain[seen.index(target.resolve()) :], target]
        raise ConfigError(
            "files extend each other in a circle",
            where=place,
            expected=" -> ".join(path.name for path in circle),
            mend="take extends out of one of them",
        )
    return target


def _over(below: Mapping[Any, Any], lower: Places, above: Mapping[Any, Any], upper: Places) -> Places:
    """The places of ``merged(below, above)``: those above, and those below that nothing above replaced."""
    replaced = set(_replaced(below, above, ()))
    kept = {at: place for at, place in lower.items() if not any(at[:n] in replaced for n in range(1, len(at) + 1))}
    return kept | upper


def _replaced(below: Mapping[Any, Any], above: Mapping[Any, Any], at: Where) -> list[Where]:
    found: list[Where] = []
    for key, value in above.items():
        place = (*at, str(key))
        under = below.get(key)
        if isinstance(under, Mapping) and isinstance(value, Mapping):
            found += _replaced(under, value, place)
        else:
            found.append(place)
    return found
