"""Writes the tables in ``docs/`` that repeat what the code declares: ``python docs/tables.py``.

A table stands between ``<!-- table: NAME ARGUMENT -->`` and ``<!-- end of table -->``. Its columns come from the code;
a last column that the code does not fill is written by hand and kept. A test fails while a table is not current.
"""

from __future__ import annotations

import enum
import functools
import importlib
import json
import pkgutil
import re
import sys
import types
import typing
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import annotated_types as at
import pyarrow as pa
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from harness import env, gate
from harness.gate.findings import rules
from harness.ledger import samples, turns
from harness.rules import Ruling, engine_keys, load

DOCS = Path(__file__).parent

_BLOCK = re.compile(
    r"(<!-- table: (?P<name>\w+)(?: (?P<argument>\S+))? -->\n)(?P<body>.*?)(<!-- end of table -->)", re.DOTALL
)
_SIGNS = {at.Ge: "at least", at.Gt: "above", at.Le: "at most", at.Lt: "below"}
_WORDS: dict[Any, str] = {
    str: "text",
    int: "whole number",
    float: "number",
    bool: "true or false",
    Any: "any",
    Path: "path",
    type(None): "null",
}


@dataclass(frozen=True)
class Table:
    """Heads and rows; None in a last cell is what a person has to write."""

    heads: tuple[str, ...]
    rows: list[tuple[str | None, ...]]


def refreshed(text: str) -> str:
    """A page with all of its tables as the code has them now."""
    return _BLOCK.sub(_refresh, text)


def names(text: str) -> list[str]:
    """The tables of a page, each as ``name argument``."""
    return [f"{block['name']} {block['argument'] or ''}".strip() for block in _BLOCK.finditer(text)]


def unwritten(text: str) -> list[str]:
    """First cells of rows whose last cell is empty."""
    return [row[0] for block in _BLOCK.finditer(text) for row in _cells(block["body"]) if not row[-1]]


def _refresh(block: re.Match[str]) -> str:
    make = _TABLES[block["name"]]
    table = make(block["argument"]) if block["argument"] else make()
    kept = {row[0]: row[-1] for row in _cells(block["body"])}
    return block[1] + "".join(f"{line}\n" for line in _lines(table, kept)) + block[5]


def _cells(body: str) -> list[list[str]]:
    """The rows of a Markdown table below its heads."""
    rows = [line for line in body.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows[2:]]


def _lines(table: Table, kept: dict[str, str]) -> Iterator[str]:
    yield "| " + " | ".join(table.heads) + " |"
    yield "|" + "---|" * len(table.heads)
    for row in table.rows:
        cells = [_cell(cell) if cell is not None else kept.get(_cell(row[0] or ""), "") for cell in row]
        yield "| " + " | ".join(cells) + " |"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


# -- what the code declares --------------------------------------------------------------------------------------------


def _environment() -> Table:
    return Table(("variable", "meaning"), [(f"`{variable.name}`", variable.meaning) for variable in env.ALL])


def _findings() -> Table:
    for module in pkgutil.iter_modules(gate.__path__):
        importlib.import_module(f"harness.gate.{module.name}")
    return Table(
        ("rule", "severity", "demand", "mend", "source"),
        [(f"`{r.id}`", r.severity.value, r.demand, r.mend, r.source) for r in rules().values()],
    )


def _doctor() -> Table:
    """What the doctor asks of a machine."""
    for module in ("harness.machine.doctor", "harness.gate.clone_check", "harness.benchmarks.presence"):
        importlib.import_module(module)
    asked = importlib.import_module("harness.machine.doctor").questions()
    rows: list[tuple[str | None, ...]] = [
        (one.subject, f"`{one.name}`", one.expected, f"{one.why} ({one.authority})", one.mend) for one in asked
    ]
    return Table(("of", "check", "expected", "because", "mend"), rows)


def _rulings(round_: str) -> Table:
    """Where a round's rules and tools disagree."""
    heads = ("ruling", "of", "taken", "as in", "others say", "as in", "only others object", "not kept", "remark")
    return Table(heads, [_ruling(ruling) for ruling in load(round_).rulings])


def _ruling(ruling: Ruling) -> tuple[str, ...]:
    unit = f" {ruling.unit}" if ruling.unit else ""
    accepted = [f"{value} is accepted ({severity})" for value, severity in ruling.accepted.items()]
    in_layouts = [f"{severity} in the {layout} layout" for layout, severity in ruling.in_layout.items()]
    measured = [f"{ruling.measured} where it is measured, not set"] if ruling.measured else []
    told = [text for text in (ruling.when_other_objects, *accepted, *in_layouts, *measured, ruling.why) if text]
    return (
        f"`{ruling.id}`",
        ", ".join(name for names in dict(ruling.concerns).values() for name in names) or "everything",
        f"{ruling.value}{unit}",
        ruling.follows.source,
        ruling.other.says,
        ruling.other.source,
        ruling.severity or "nothing is said",
        ruling.breach or "nothing is said",
        "; ".join(told) or "none",
    )


def _key_lists() -> Table:
    """The lists that options are held against."""
    heads = ("`server` or `kind`", "version", "options", "read in", "commit", "as of")
    return Table(heads, [_key_list(keys) for keys in engine_keys.lists()])


def _key_list(keys: engine_keys.EngineKeys) -> tuple[str, ...]:
    options = len(keys.flat) + len(keys.nested) + sum(map(len, keys.nested.values()))
    commit = f"`{keys.commit[:8]}`" if keys.commit else "none told"
    names = ", ".join(f"`{name}`" for name in keys.servers)
    return (names, keys.version or "none", str(options), keys.source, commit, str(keys.as_of))


def _key_meanings() -> Table:
    """Which option means what, a column a list."""
    lists = engine_keys.lists()
    names = dict.fromkeys(name for keys in lists for name in keys.meanings)
    rows: list[tuple[str | None, ...]] = [(f"`{name}`", *(_means(keys, name) for keys in lists)) for name in names]
    return Table(("meaning", *(keys.name for keys in lists)), rows)


def _means(keys: engine_keys.EngineKeys, name: engine_keys.MeaningName) -> str:
    meaning = keys.meanings.get(name)
    if meaning is None:
        return "no option"
    turned = "off by " if meaning.inverted else ""
    return f"{turned}`{meaning.key}` ({json.dumps(meaning.default)})"


def _columns(schema: pa.Schema) -> Table:
    rows: list[tuple[str | None, ...]] = []
    for field in schema:
        said = (field.metadata or {}).get(b"is")
        rows.append((f"`{field.name}`", str(field.type).partition("<")[0], said.decode() if said else None))
    return Table(("column", "type", "meaning"), rows)


def _fields(place: str) -> Table:
    """The fields of a pydantic model, ``module:Class``."""
    module, _, name = place.partition(":")
    model: type[BaseModel] = getattr(importlib.import_module(module), name)
    rows: list[tuple[str | None, ...]] = [
        (f"`{key}`", _takes(field.annotation, field.metadata), _default(field), None)
        for key, field in model.model_fields.items()
    ]
    return Table(("key", "takes", "default", "meaning"), rows)


def _takes(annotation: Any, metadata: Sequence[Any] = ()) -> str:  # noqa: ANN401 - annotations are what they are
    """What a field takes, in words."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        own = [part for item in arguments[1:] for part in (item.metadata if isinstance(item, FieldInfo) else [item])]
        return _takes(arguments[0], [*metadata, *own])
    text = _of_kind(annotation, origin, arguments)
    bounds = [f"{sign} {bound:g}" for kind, sign in _SIGNS.items() if (bound := _bound(metadata, kind)) is not None]
    if any(isinstance(part, at.MinLen) for part in metadata):
        bounds.append("not empty")
    return text + (f" {' and '.join(bounds)}" if bounds else "")


def _of_kind(annotation: Any, origin: Any, arguments: tuple[Any, ...]) -> str:  # noqa: ANN401
    if origin in (typing.Union, types.UnionType):
        return " or ".join(map(_takes, arguments))
    if origin is typing.Literal:
        return " or ".join(f"`{value}`" for value in arguments)
    if origin is list:
        return f"list of {_takes(arguments[0])}"
    if origin is dict:
        return f"mapping of {_takes(arguments[0])} to {_takes(arguments[1])}"
    if isinstance(annotation, enum.EnumMeta):
        return " or ".join(f"`{member.value}`" for member in annotation)
    return _WORDS.get(annotation) or str(annotation.__name__)


def _bound(metadata: Sequence[Any], kind: type) -> float | None:
    return next((getattr(part, kind.__name__.lower()) for part in metadata if isinstance(part, kind)), None)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True)
    if isinstance(value, BaseModel):
        return "its own defaults"
    return f"`{json.dumps(value)}`"


_TABLES: dict[str, Callable[..., Table]] = {
    "environment": _environment,
    "findings": _findings,
    "rulings": _rulings,
    "key_lists": _key_lists,
    "key_meanings": _key_meanings,
    "samples": functools.partial(_columns, samples.SCHEMA),
    "turns": functools.partial(_columns, turns.SCHEMA),
    "fields": _fields,
    "doctor": _doctor,
}


def main() -> int:
    """Rewrites the pages whose tables are not current and names them."""
    for path in sorted(DOCS.glob("*.md")):
        before = path.read_text(encoding="utf-8")
        after = refreshed(before)
        if after != before:
            path.write_text(after, encoding="utf-8")
            sys.stdout.write(f"{path.name}: tables written again\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
