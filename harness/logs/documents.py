"""JSON and YAML files of one object, bounded in all they can do, and typed access to what is in them by dotted path."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from harness.logs.errors import LogError
from harness.logs.files import FilePass, passing
from harness.logs.values import MAX_DEPTH, TypedValues, check_text, nests_deeper, parse_json, shown

MAX_JSON_BYTES = 16 << 20
MAX_YAML_BYTES = 1 << 18
"""A client's configuration has some thousands of bytes, and a megabyte of YAML takes many seconds to read."""

MAX_DIGITS = 100
"""Python reads and writes no decimal number of some thousands of digits; YAML's other bases come by them unnoticed."""

MAX_YAML_NODES = 100_000
"""Values in a YAML file, counted as often as aliases repeat them."""

_WHOLE_NUMBER = "tag:yaml.org,2002:int"
_MEND = "take the file as the client wrote it, unedited and whole; or run it again"

# What PyYAML raises besides its own: ill-tagged scalars give IndexError, KeyError, AttributeError and TypeError.
_YAML_ERRORS = (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError, ArithmeticError)


class NotParsable(LogError):
    """A file that no reader of its format can read."""


class _OutOfBounds(ValueError):
    """A text that its format allows, and that is not read."""


@dataclass(frozen=True, slots=True)
class Document(TypedValues):
    """An object of a file. Keys are dotted paths (:func:`look_up`); ``prefix`` is where in the file the object is."""

    path: Path
    data: Mapping[str, Any] = field(repr=False)
    prefix: str = ""

    @classmethod
    def read_json(cls, source: Path | FilePass) -> Document:
        """Reads a JSON file of one object. LogError where it is another, or larger than :data:`MAX_JSON_BYTES`."""
        return cls._read(source, MAX_JSON_BYTES, parse_json, "JSON")

    @classmethod
    def read_yaml(cls, source: Path | FilePass) -> Document:
        """Reads a YAML file of one object; an empty one has no keys.

        NotParsable where it is no YAML; LogError where it is another value, or larger than :data:`MAX_YAML_BYTES`.
        """
        return cls._read(source, MAX_YAML_BYTES, lambda text: parse_yaml(text) or {}, "YAML")

    @classmethod
    def _read(cls, source: Path | FilePass, most: int, parse: Callable[[str], Any], kind: str) -> Document:
        with passing(source) as file:
            path, content = file.path, file.whole(most)
        try:
            data = parse(content.decode("utf-8"))
        except UnicodeDecodeError as error:
            raise NotParsable(f"not UTF-8 text: {error.reason}", path, mend=_MEND) from None
        except _OutOfBounds as error:
            raise LogError(f"{kind} that is not read: {error}", path, mend=_MEND) from None
        except ValueError as error:
            raise NotParsable(f"not {kind}: {error}", path, mend=_MEND) from None
        if not isinstance(data, dict):
            raise LogError(f"a {kind} {type(data).__name__}", path, expected="an object", mend=_MEND)
        return cls(path, data)

    def value(self, key: str) -> Any:  # noqa: ANN401 - whatever was written
        """The value at a dotted path, or None: absent, null, and an empty list or object are one."""
        return look_up(self.data, key)

    def wrong(self, key: str, expected: str) -> LogError:
        """The error of a value that is not what was expected, with its path in the file."""
        return LogError(f"{self.prefix}{key} is {shown(self.value(key))}", self.path, expected=expected, mend=_MEND)

    def child(self, key: str) -> Document | None:
        """The object at a dotted path; None where absent, LogError where it is something else."""
        value = self.value(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.wrong(key, "an object")
        return Document(self.path, value, f"{self.prefix}{key}.")

    def children(self, key: str) -> tuple[Document, ...]:
        """The objects of the list at a dotted path; none where absent, LogError where it is something else."""
        value = self.value(key)
        if value is None:
            return ()
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.wrong(key, "a list of objects")
        return tuple(Document(self.path, item, f"{self.prefix}{key}.{at}.") for at, item in enumerate(value))


def look_up(data: Mapping[str, Any], dotted: str) -> Any:  # noqa: ANN401 - whatever was written
    """The value at a dotted path as the official checker looks it up; None where there is none.

    At each level the longest name that is there is taken, so ``a.99.9`` finds ``{"a": {"99.9": …}}``; a last ``.0``
    may be wanting in the file (``99.0`` finds ``99``); an empty list or object counts as absent.
    """
    value: Any = data
    rest = dotted.split(".")
    while rest:
        if not isinstance(value, dict):
            return value if rest == ["0"] and not isinstance(value, list) else None
        for length in range(len(rest), 0, -1):
            name = ".".join(rest[:length])
            if name in value:
                value, rest = value[name], rest[length:]
                break
        else:
            return None
    return None if isinstance(value, dict | list) and not value else value


def parse_yaml(text: str) -> Any:  # noqa: ANN401 - whatever it holds
    """The value of a YAML text, of plain types alone. ValueError where it is none, or where aliases swell it."""
    try:
        loader = _Loader(text)
        try:
            value = _constructed(loader)
        finally:
            loader.dispose()
    except RecursionError:
        raise _OutOfBounds("nested without end") from None
    except _OutOfBounds:
        raise
    except _YAML_ERRORS as error:
        raise ValueError(" ".join(str(error).split()) or type(error).__name__) from None
    if nests_deeper(value, MAX_DEPTH):
        raise _OutOfBounds(f"nested deeper than {MAX_DEPTH} levels")
    return value


def _constructed(loader: _Loader) -> Any:  # noqa: ANN401 - whatever it holds
    node = loader.get_single_node()
    if node is None:
        return None
    _Sizes().of(node)
    return loader.construct_document(node)


class _Loader(yaml.SafeLoader):
    """Ends at brackets that nest too deep before it looks for what closes them, which takes their number squared."""

    def fetch_flow_collection_start(self, token: type[yaml.Token]) -> None:
        if self.flow_level > MAX_DEPTH:
            raise _OutOfBounds(f"nested deeper than {MAX_DEPTH} levels")
        super().fetch_flow_collection_start(token)


class _Sizes:
    """How many nodes a YAML node comes to with its aliases written out."""

    def __init__(self) -> None:
        self._known: dict[int, int] = {}

    def of(self, node: yaml.Node) -> int:
        known = self._known.get(id(node))
        if known is not None:
            if not known:
                raise _OutOfBounds("an alias within what it stands for")
            return known
        self._known[id(node)] = 0  # under way
        size = 1 + sum(self.of(inner) for inner in _inner(node))
        if size > MAX_YAML_NODES:
            raise _OutOfBounds(f"more than {MAX_YAML_NODES} values, aliases written out")
        self._known[id(node)] = size
        return size


def _inner(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        return [part for pair in node.value for part in pair]
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    try:
        check_text(node.value)
    except ValueError as error:
        raise _OutOfBounds(str(error)) from None
    decimal = node.value.isdecimal() and not node.value.startswith("0")
    if node.tag == _WHOLE_NUMBER and not decimal and len(node.value) > MAX_DIGITS:
        raise _OutOfBounds(f"a number of {len(node.value)} digits")
    return []
