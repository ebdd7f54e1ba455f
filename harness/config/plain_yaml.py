"""Reads one YAML file as plain data, and notes the line of each key and item."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from harness.errors import ConfigError

Where = tuple[str | int, ...]


def read_yaml(path: Path) -> tuple[Any, dict[Where, int]]:
    """The plain data of a YAML file, and the line (from 1) of each key and item in it."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise ConfigError("no such file", where=path) from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", where=path, expected="a UTF-8 text file") from None
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _not_yaml(path, error) from None
    except (ValueError, RecursionError) as error:  # PyYAML lets through what an impossible date or depth raises
        raise ConfigError(f"not YAML: {error}", where=path, mend="correct the value") from None
    lines: dict[Where, int] = {}
    if node is not None:
        _Lines(path, lines).collect(node, ())
    return data, lines


def _not_yaml(path: Path, error: yaml.YAMLError) -> ConfigError:
    mark = getattr(error, "problem_mark", None)
    where = f"{path}:{mark.line + 1}" if mark is not None else str(path)
    problem = getattr(error, "problem", None) or str(error).splitlines()[0]
    return ConfigError(f"not YAML: {problem}", where=where, mend="mend the line, or the one above it")


class _Lines:
    """Walks a file's nodes once each (aliases repeat them, perhaps without end) and notes where they stand."""

    def __init__(self, path: Path, lines: dict[Where, int]) -> None:
        self._path = path
        self._lines = lines
        self._open: set[int] = set()
        self._done: set[int] = set()

    def collect(self, node: yaml.Node, at: Where) -> None:
        """Notes the lines below ``node``. ConfigError for a key that stands twice and for an alias of itself."""
        self._lines.setdefault(at, node.start_mark.line + 1)
        if id(node) in self._open:
            raise ConfigError("an alias stands for what it is part of", where=self._line(node), mend="write it out")
        if id(node) in self._done or not isinstance(node, yaml.CollectionNode):
            return
        self._open.add(id(node))
        if isinstance(node, yaml.MappingNode):
            self._collect_keys(node, at)
        else:
            for i, item in enumerate(node.value):
                self.collect(item, (*at, i))
        self._open.remove(id(node))
        self._done.add(id(node))

    def _collect_keys(self, node: yaml.MappingNode, at: Where) -> None:
        for key, value in node.value:
            place = (*at, str(key.value))
            if place in self._lines:
                raise ConfigError(f"the key {key.value!r} stands twice", where=self._line(key), mend="keep one")
            self._lines[place] = key.start_mark.line + 1
            self.collect(value, place)

    def _line(self, node: yaml.Node) -> str:
        return f"{self._path}:{node.start_mark.line + 1}"
