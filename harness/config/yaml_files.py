"""Reads the YAML that users write, and says file, line and nearest name when it is not what was expected."""

from __future__ import annotations

import difflib
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from harness.errors import ConfigError

M = TypeVar("M", bound=BaseModel)
Where = tuple[str | int, ...]


def read_model(path: Path, model: type[M]) -> M:
    """Reads one YAML file into a model. ConfigError tells the file, the line, the key and how to mend it."""
    data, lines = read_yaml(path)
    try:
        return model.model_validate(data)
    except ValidationError as error:
        raise _explain(path, model, error, lines) from None


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


def _explain(path: Path, model: type[BaseModel], error: ValidationError, lines: dict[Where, int]) -> ConfigError:
    """The first problem as one error; a problem of an unknown key offers the nearest known one."""
    problems = error.errors(include_url=False)
    at = _place(problems[0], lines)
    same = [problem for problem in problems if _place(problem, lines)[: len(at)] == at]
    first = max(same, key=lambda problem: _telling(problem, lines))
    loc = tuple(first["loc"])
    key = ".".join(str(part) for part in _place(first, lines)) or "the file"
    where = f"{path}:{_line_of(loc, lines)}"
    more = len(problems) - len(same)
    tail = f" (and {more} more)" if more else ""
    if first["type"] == "extra_forbidden":
        known = _keys_beside(model, loc)
        near = difflib.get_close_matches(str(loc[-1]), known, n=1, cutoff=0.5)
        mend = f"did you mean {near[0]!r}?" if near else "remove it"
        expected = ("one of " + ", ".join(known)) if known else None
        return ConfigError(f"unknown key {key!r}{tail}", where=where, expected=expected, mend=mend)
    if first["type"] == "missing":
        return ConfigError(f"{key!r} is missing{tail}", where=where, mend=f"add {loc[-1]!r}")
    if first["type"] == "union_tag_invalid":
        context = first["ctx"]
        tags = [tag.strip(" '") for tag in context["expected_tags"].split(",")]
        near = difflib.get_close_matches(context["tag"], tags, n=1, cutoff=0.5)
        return ConfigError(
            f"{key}.kind: unknown {context['tag']!r}{tail}",
            where=where,
            expected="one of " + ", ".join(tags),
            mend=f"did you mean {near[0]!r}?" if near else None,
        )
    return ConfigError(f"{key!r}: {first['msg']}{tail}", where=where, mend="correct the value")


def _telling(problem: ErrorDetails, lines: dict[Where, int]) -> tuple[int, int]:
    """How much a problem says. A value that fits no member of a union has one of each: the deepest was meant."""
    kinds = {"missing": 0, "extra_forbidden": 1}
    return len(_place(problem, lines)), kinds.get(problem["type"], 2)


def _place(problem: ErrorDetails, lines: dict[Where, int]) -> Where:
    """The key of a problem as the user knows it; a missing key is not in the file, but it is the one to name."""
    at = _in_file(problem["loc"], lines)
    return (*at, problem["loc"][-1]) if problem["type"] == "missing" else at


def _in_file(loc: Where, lines: dict[Where, int]) -> Where:
    """``loc`` without the parts that the file does not have (a union's tag)."""
    at: Where = ()
    for part in loc:
        if (*at, part) in lines:
            at = (*at, part)
    return at


def _line_of(loc: Where, lines: dict[Where, int]) -> int:
    """The line of the deepest part of ``loc`` that the file has."""
    at = _in_file(loc, lines)
    while at and at not in lines:
        at = at[:-1]
    return lines.get(at, 1)


def _keys_beside(model: type[BaseModel], loc: Where) -> list[str]:
    """The keys that are known where ``loc`` points into ``model``."""
    current: Any = model
    for part in loc[:-1]:
        current = _step(current, part)
    return sorted({name for m in _models_in(current) for name in m.model_fields})


def _step(annotation: Any, part: str | int) -> Any:  # noqa: ANN401 - annotations are what they are
    for candidate in _models_in(annotation):
        if isinstance(part, str) and part in candidate.model_fields:
            return candidate.model_fields[part].annotation
        kind = candidate.model_fields.get("kind")
        if kind is not None and part in getattr(kind.annotation, "__args__", ()):
            return candidate  # a discriminated union's tag
    args = getattr(annotation, "__args__", ())
    if not args or any(isinstance(arg, type) and arg.__name__ == part for arg in args):
        return annotation  # a union's tag, when pydantic had no other: any of its members may have been meant
    return args[-1]


def _models_in(annotation: Any) -> list[type[BaseModel]]:  # noqa: ANN401 - annotations are what they are
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for arg in getattr(annotation, "__args__", ()) for m in _models_in(arg)]
