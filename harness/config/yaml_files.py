"""Reads the YAML that users write into models, and says file, line and nearest name when it is not as expected."""

from __future__ import annotations

import difflib
import itertools
from collections import Counter
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from harness.config.extends import EXTENDS, Layered, Places, read_layered
from harness.config.plain_yaml import Where
from harness.errors import ConfigError

M = TypeVar("M", bound=BaseModel)


def read_model(path: Path, model: type[M], root: Path | None = None) -> M:
    """Reads a YAML file, and what it extends, into a model.

    ConfigError tells the file and line of the value that is wrong, the key and how to mend it; ``root`` is the folder
    that ``extends`` may not leave.
    """
    return read_model_and_places(path, model, root)[0]


def read_model_and_places(path: Path, model: type[M], root: Path | None = None) -> tuple[M, Layered]:
    """The same, with the file and line of each value."""
    layered = read_layered(path, root)
    try:
        return model.model_validate(layered.data), layered
    except ValidationError as error:
        raise _explain(model, error, layered) from None


def _explain(model: type[BaseModel], error: ValidationError, layered: Layered) -> ConfigError:
    """The first problem as one error; a problem of an unknown key offers the nearest known one."""
    lines = layered.places
    problems = _meant(error.errors(include_url=False), lines)
    at = _place(problems[0], lines)
    same = [problem for problem in problems if _place(problem, lines)[: len(at)] == at]
    first = max(same, key=lambda problem: _telling(problem, lines))
    loc = tuple(first["loc"])
    key = ".".join(str(part) for part in _place(first, lines)) or "the file"
    where = layered.place(*_in_file(loc, lines))
    more = len(problems) - len(same)
    tail = f" (and {more} more)" if more else ""
    if first["type"] == "extra_forbidden":
        known = sorted([*_keys_beside(model, loc), *([EXTENDS] if len(loc) == 1 else [])])
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


def _meant(problems: list[ErrorDetails], lines: Places) -> list[ErrorDetails]:
    """Without those of a union's members where another has fewer: that one was meant."""
    tags = [_tags(problem, lines) for problem in problems]
    counts = Counter(itertools.chain.from_iterable(tags))
    fewest: dict[Where, int] = {}
    for tag, count in counts.items():
        fewest[tag[:-1]] = min(count, fewest.get(tag[:-1], count))
    return [
        problem
        for problem, its in zip(problems, tags, strict=True)
        if all(counts[tag] == fewest[tag[:-1]] for tag in its)
    ]


def _tags(problem: ErrorDetails, lines: Places) -> list[Where]:
    """The places above a problem that a file does not have: each ends with a union's tag.

    One that ends with it itself is of a member that is no mapping at all, which fits no better for having one problem.
    """
    loc: Where = tuple(problem["loc"])
    at: Where = ()
    found = []
    for i, part in enumerate(loc[:-1]):
        if (*at, part) in lines:
            at = (*at, part)
        else:
            found.append(loc[: i + 1])
    return found


def _telling(problem: ErrorDetails, lines: Places) -> tuple[int, int]:
    """How much a problem says. A value that fits no member of a union has one of each: the deepest was meant."""
    kinds = {"missing": 0, "extra_forbidden": 1}
    return len(_place(problem, lines)), kinds.get(problem["type"], 2)


def _place(problem: ErrorDetails, lines: Places) -> Where:
    """The key of a problem as the user knows it; a missing key is not in the file, but it is the one to name."""
    at = _in_file(problem["loc"], lines)
    return (*at, problem["loc"][-1]) if problem["type"] == "missing" else at


def _in_file(loc: Where, lines: Places) -> Where:
    """``loc`` without the parts that the file does not have (a union's tag)."""
    at: Where = ()
    for part in loc:
        if (*at, part) in lines:
            at = (*at, part)
    return at


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
