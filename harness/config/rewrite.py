"""Sets one number in a YAML file and leaves every other byte as it is: comments, order, blanks, line ends.

The text is spliced where PyYAML's composer says that nodes stand, and what comes out is read again before it is
written: its data must be that of before with the one value set, and no comment may be lost.
"""

from __future__ import annotations

import errno
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import yaml

from harness.errors import ConfigError, MissingError

_STEP: Final = "  "
_COMMENT: Final = re.compile(r"(?:^|(?<=[\s,\[\]{}:]))#[^\r\n]*")


def write_number(path: Path, keys: Sequence[str], number: float) -> None:
    """Sets the value below ``keys`` of a file to a number, adding what of the keys is not there yet.

    ConfigError where that cannot be done without touching anything else; the file is then as it was. MissingError where
    it cannot be written.
    """
    target = path.resolve()
    _replace(target, with_number(_read(target, path), keys, number, where=path))


def check_writable(path: Path, keys: Sequence[str]) -> None:
    """Raises what :func:`write_number` would, before there is a number; what that takes may take hours to find."""
    target = path.resolve()
    try:
        with_number(_read(target, path), keys, 1.0, where=path)
    except ConfigError as error:
        error.mend = f"give {keys[-1]} a place of its own in this file, or leave it to be written by hand"
        raise
    for needed in (target, target.parent):
        if not os.access(needed, os.W_OK):
            raise MissingError(f"cannot write: {os.strerror(errno.EACCES)}", where=needed, mend="make it writable")


def _read(target: Path, path: Path) -> str:
    try:
        return target.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", where=path, expected="a UTF-8 text file") from None


def with_number(text: str, keys: Sequence[str], number: float, *, where: object = None) -> str:
    """The text of a YAML file with the value below ``keys`` set to a number; see :func:`write_number`."""
    if not keys:
        raise ValueError("the whole file is no number")
    try:
        root, data = yaml.compose(text, Loader=yaml.SafeLoader), yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConfigError(f"not YAML: {str(error).splitlines()[0]}", where=where, mend="correct it") from None
    written = plain(number)
    refusal = _refusal(where, keys, written)
    if root is not None and not isinstance(root, yaml.MappingNode):
        raise refusal("the file is no mapping")
    after = _Splice(text, refusal).set(root, list(keys), written)
    try:
        expected = _set(data, keys, yaml.safe_load(written))
    except RecursionError:
        raise refusal("an alias stands for what it is part of") from None
    _check(text, after, expected, refusal)
    return after


def plain(number: float) -> str:
    """A number as people write it, without an exponent; read back it is the same."""
    digits = format(Decimal(repr(number)), "f")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def _refusal(where: object, keys: Sequence[str], written: str) -> Any:  # noqa: ANN401 - makes an error
    def refused(why: str) -> ConfigError:
        return ConfigError(
            f"{'.'.join(keys)} cannot be set without touching more: {why}",
            where=where,
            mend=f"write it by hand: {': '.join(keys)}: {written}",
        )

    return refused


@dataclass(frozen=True, slots=True)
class _Splice:
    """Puts a number into a text at the places of its nodes."""

    text: str
    refusal: Any

    def set(self, node: yaml.Node | None, keys: list[str], number: str) -> str:
        """The text with the number below ``keys`` of a mapping, which has them or not."""
        if node is None:
            gap = "" if not self.text or self.text.endswith("\n") else self._newline
            return self.text + gap + _nested(keys, number, "", self._newline) + self._newline
        if not isinstance(node, yaml.MappingNode):
            return self._replaced(node, number if not keys else _flow(keys, number))
        if not keys:
            return self._replaced(node, number)
        for key, value in node.value:
            if key.value == keys[0]:
                self._check_own(key, value)
                if isinstance(value, yaml.MappingNode) or len(keys) == 1:
                    return self._within(key, value, keys[1:], number)
                if isinstance(value, yaml.ScalarNode) and value.tag.endswith(":null"):
                    return self._spliced_value(key, value, _flow(keys[1:], number))
                raise self.refusal(f"{keys[0]} is no mapping")
        return self._added(node, keys, number)

    def _within(self, key: yaml.Node, value: yaml.Node, keys: list[str], number: str) -> str:
        return self.set(value, keys, number) if keys else self._spliced_value(key, value, number)

    def _check_own(self, key: yaml.Node, value: yaml.Node) -> None:
        """An alias is composed to the node that it stands for, which is somewhere above."""
        if value.start_mark.index < key.end_mark.index:
            raise self.refusal(f"{key.value} is an alias of a value that stands elsewhere")

    def _replaced(self, node: yaml.Node, number: str) -> str:
        return self.text[: node.start_mark.index] + number + self.text[self._end(node) :]

    def _spliced_value(self, key: yaml.Node, value: yaml.Node, number: str) -> str:
        """A number in place of a value; comments that stood within it follow on lines of their own."""
        begin, end = value.start_mark.index, self._end(value)
        if any(begin <= at < max(end, begin + 1) for at in self._anchors()):
            raise self.refusal(f"{key.value} has an anchor, which other values may go by")
        colon = self.text.index(":", key.end_mark.index) + 1
        lead = self.text[colon:begin]
        block = "\n" in lead or begin == end
        comments = [*(_COMMENT.findall(lead) if block else ()), *self._comments(value)]
        indent = " " * key.start_mark.column
        kept = "".join(f"{self._newline}{indent}{_STEP}{comment.strip()}" for comment in comments)
        after = self.text[end:]
        return self.text[:colon] + (" " if block else lead) + number + kept + after

    def _anchors(self) -> Iterator[int]:
        for event in yaml.parse(self.text, Loader=yaml.SafeLoader):
            named = isinstance(event, yaml.NodeEvent) and not isinstance(event, yaml.AliasEvent) and event.anchor
            if named and event.start_mark is not None:
                yield event.start_mark.index

    def _comments(self, node: yaml.Node) -> Iterator[str]:
        """Comments in a collection: what is between its scalars has no other ``#``."""
        at = node.start_mark.index
        for scalar in _scalars(node):
            yield from _COMMENT.findall(self.text[at : scalar.start_mark.index])
            at = scalar.end_mark.index
        if not isinstance(node, yaml.ScalarNode):
            yield from _COMMENT.findall(self.text[at : self._end(node)])

    def _added(self, node: yaml.MappingNode, keys: list[str], number: str) -> str:
        """One more entry behind the last of a mapping."""
        if node.flow_style:
            end = self._end(node) - 1
            if not node.value:
                return self.text[:end] + _flow_entry(keys, number) + self.text[end:]
            last = self._end(node.value[-1][1]) or end
            return self.text[:last] + ", " + _flow_entry(keys, number) + self.text[last:]
        first, last_value = node.value[0][0], node.value[-1][1]
        indent = self.text[self._line_start(first.start_mark.index) : first.start_mark.index]
        if indent.strip("\ufeff \t"):
            raise self.refusal("its mapping does not begin on a line of its own")
        if last_value.start_mark.index < node.value[-1][0].end_mark.index:
            at = node.value[-1][0].end_mark.index  # an alias is on its key's line
        else:
            at = max(self._end(last_value), node.value[-1][0].end_mark.index)
        entry = _nested(keys, number, indent.lstrip("\ufeff"), self._newline)
        if _is_block_scalar(last_value):
            gap = "" if self.text[:at].endswith("\n") else self._newline
            return self.text[:at] + gap + entry + self._newline + self.text[at:]
        line_end = self.text.find("\n", at)
        if line_end < 0:
            return self.text + self._newline + entry
        line_end -= self.text[:line_end].endswith("\r")
        return self.text[:line_end] + self._newline + entry + self.text[line_end:]

    def _end(self, node: yaml.Node) -> int:
        """Where a node's own text ends: a block's mark is that of whatever comes next."""
        if isinstance(node, yaml.CollectionNode) and not node.flow_style:
            return max((self._end(child) for child in _children(node)), default=node.start_mark.index)
        return int(node.end_mark.index)

    def _line_start(self, at: int) -> int:
        return self.text.rfind("\n", 0, at) + 1

    @property
    def _newline(self) -> str:
        return "\r\n" if "\r\n" in self.text else "\n"


def _is_block_scalar(node: yaml.Node) -> bool:
    return isinstance(node, yaml.ScalarNode) and node.style in ("|", ">")


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            yield key
            yield value
    elif isinstance(node, yaml.SequenceNode):
        yield from node.value


def _scalars(node: yaml.Node) -> Iterator[yaml.Node]:
    """Scalars in the order of the text."""
    if isinstance(node, yaml.ScalarNode):
        yield node
    for child in _children(node):
        yield from _scalars(child)


def _nested(keys: list[str], number: str, indent: str, newline: str) -> str:
    lines = [f"{indent}{_STEP * depth}{key}:" for depth, key in enumerate(keys)]
    return f"{newline.join(lines)} {number}"


def _flow(keys: list[str], number: str) -> str:
    return "{" + _flow_entry(keys, number) + "}"


def _flow_entry(keys: list[str], number: str) -> str:
    head, *rest = keys
    return f"{head}: {_flow(rest, number) if rest else number}"


def _set(data: Any, keys: Sequence[str], value: Any) -> Any:  # noqa: ANN401 - whatever YAML holds
    changed = _apart(data) if isinstance(data, dict) else {}
    at = changed
    for key in keys[:-1]:
        if not isinstance(at.get(key), dict):
            at[key] = {}
        at = at[key]
    at[keys[-1]] = value
    return changed


def _apart(data: Any) -> Any:  # noqa: ANN401
    """A copy in which nothing is one object twice: an alias is written once and read as often as it stands there."""
    if isinstance(data, dict):
        return {key: _apart(value) for key, value in data.items()}
    return [_apart(value) for value in data] if isinstance(data, list) else data


def _check(before: str, after: str, expected: Any, refusal: Any) -> None:  # noqa: ANN401
    """What was spliced is read again: nothing but the one value may differ."""
    try:
        data = yaml.safe_load(after)
    except (yaml.YAMLError, ValueError) as error:
        raise refusal(f"the text would not be YAML any more ({str(error).splitlines()[0]})") from None
    if repr(data) != repr(expected) and data != expected:
        raise refusal("other values would change with it")
    if sorted(_comments_of(before)) != sorted(_comments_of(after)):
        raise refusal("a comment would be lost")


def _comments_of(text: str) -> list[str]:
    """All comments of a text that is YAML: what stands between tokens and begins with ``#``."""
    found, at = [], 0
    for token in yaml.scan(text, Loader=yaml.SafeLoader):
        if token.start_mark.index > at:
            found += [comment.strip() for comment in _COMMENT.findall(text[at : token.start_mark.index])]
        at = max(at, token.end_mark.index)
    return found + [comment.strip() for comment in _COMMENT.findall(text[at:])]


def _replace(path: Path, text: str) -> None:
    """Readers see the old file or the new one, with the old one's permissions."""
    try:
        with tempfile.NamedTemporaryFile("wb", dir=path.parent, prefix=f".{path.name}.", delete=False) as handle:
            temporary = Path(handle.name)
            try:
                handle.write(text.encode("utf-8"))
                handle.flush()
                os.fsync(handle.fileno())
                temporary.chmod(path.stat().st_mode & 0o7777)
                temporary.replace(path)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
    except OSError as error:
        raise MissingError(f"cannot write: {error.strerror}", where=path, mend="make it writable") from error
