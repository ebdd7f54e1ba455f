"""Reader of the key lists: which options a server knows, which of them means what, and what it takes for one unsaid."""

from __future__ import annotations

import datetime
import difflib
import functools
import importlib.resources
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from harness.errors import UnknownName
from harness.rules import packaged
from harness.rules.values import Strict

MeaningName: TypeAlias = Literal[
    "tensor",
    "pipeline",
    "context",
    "data",
    "expert",
    "max_total_tokens",
    "max_batch",
    "max_batch_tokens",
    "prefix_reuse",
    "speculation",
    "speculation_method",
    "drafter",
    "draft_tokens",
    "draft_topk",
    "kv_dtype",
    "kv_fraction",
    "stream_interval",
    "attention_dp",
    "sampled_drafts",
    "image_budget",
    "image_cache",
]
_NEAREST = 5
_FEW = 40
_ABSENT = object()


class Meaning(Strict):
    """The option (dotted) that says something, and what the server takes where it is not set.

    ``inverted``: the option switches off what is meant; ``default`` is that of what is meant, not of the option.
    """

    key: str
    default: Any
    inverted: bool = False


@dataclass(frozen=True, slots=True)
class KeyProblem:
    """An option that the server would not take as it is written: its path, and the same in words."""

    path: tuple[str, ...]
    what: str
    near: tuple[str, ...]
    mend: str | None
    unknown: bool = False
    """Whether the server has no such option, and none that goes by another name."""

    @property
    def key(self) -> str:
        """The path, dotted."""
        return ".".join(self.path)


class EngineKeys(Strict):
    """What one version of a server takes. ``flat`` options hold anything, ``nested`` ones hold the keys listed.

    ``own`` are those that the harness sets itself; ``maybe`` are known too, though not every build of the version need
    have them; ``flags`` are those that a server whose options go into a file takes on its command line alone, and the
    engine of the same list in process not at all; ``renamed`` are names of other versions and servers with the one that
    is meant here. ``dashes``: options are flags, and ``-`` in a name is ``_``. ``kv_fraction`` is one of the memory
    that weights leave free, or of all.
    """

    product: str
    servers: list[str]
    version: str | None
    source: str
    commit: Annotated[str, Field(pattern="^[0-9a-f]{40}$")] | None
    as_of: datetime.date
    dashes: bool
    own: list[str]
    flat: list[str]
    nested: dict[str, list[str]]
    maybe: list[str] = Field(default_factory=list)
    flags: list[str] = Field(default_factory=list)
    meanings: dict[MeaningName, Meaning]
    kv_fraction_of: Literal["free_memory", "all_memory"]
    renamed: dict[str, str] = Field(default_factory=dict)
    choices: dict[str, list[str]] = Field(default_factory=dict)
    renamed_values: dict[str, dict[str, str]] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _every_name_is_known(self) -> EngineKeys:
        named = [*self.own, *self.renamed.values(), *self.choices, *self.renamed_values]
        named += [meaning.key for meaning in self.meanings.values()]
        unknown = sorted({key for key in named if not self.known(key)})
        if unknown:
            raise ValueError(f"{self.name}: names that are in no list: {unknown}")
        return self

    @property
    def name(self) -> str:
        """For people: what it is, and its version."""
        return self.product if self.version is None else f"{self.product} {self.version}"

    def is_of(self, version: str | None) -> bool:
        """Whether it is the list of this version, ``1.2.1`` being a ``1.2``."""
        if version is None or self.version is None:
            return version == self.version
        return version == self.version or version.startswith(f"{self.version}.")

    def known(self, key: str) -> bool:
        """Whether the server has an option of this dotted name."""
        above, _, last = self._plain(key).rpartition(".")
        if self._plain(key) in (*self.maybe, *self.flags):
            return True
        if not above:
            return last in self.flat or last in self.nested
        if above in self.nested:
            return last in self.nested[above]
        return self.known(above)  # a flat option holds anything

    def siblings(self, key: str) -> list[str]:
        """The names known at the place of a dotted key, sorted."""
        above, _, _ = self._plain(key).rpartition(".")
        if above:
            beside = [name.removeprefix(f"{above}.") for name in self.maybe if name.startswith(f"{above}.")]
            return sorted([*self.nested.get(above, []), *beside])
        top = [name for name in self.nested if "." not in name]
        return sorted([*self.flat, *self.flags, *top, *(name for name in self.maybe if "." not in name)])

    def meaning(self, options: Mapping[str, Any], name: MeaningName) -> Any:  # noqa: ANN401 - options hold anything
        """What the options say of ``name``, or what the server takes where they say nothing. None: no such option."""
        meaning = self.meanings.get(name)
        if meaning is None:
            return None
        value = self._said(options, meaning.key)
        if value is _ABSENT or value is None:
            return meaning.default
        return not value if meaning.inverted else value

    def says(self, options: Mapping[str, Any], name: MeaningName) -> bool:
        """Whether the options say anything of ``name`` themselves."""
        meaning = self.meanings.get(name)
        return meaning is not None and self._said(options, meaning.key) not in (_ABSENT, None)

    def key_of(self, name: MeaningName) -> str | None:
        """The dotted option that says ``name``; None where the server has none."""
        meaning = self.meanings.get(name)
        return None if meaning is None else meaning.key

    def problems(self, options: Mapping[str, Any]) -> Iterator[KeyProblem]:
        """The options that the server does not know or does not take, in the order they stand."""
        yield from self._problems(options, (), ())

    def _problems(
        self, options: Mapping[str, Any], path: tuple[str, ...], plain: tuple[str, ...]
    ) -> Iterator[KeyProblem]:
        for raw, value in options.items():
            here = (*path, str(raw))
            key = ".".join((*plain, self._plain(str(raw))))
            if "." in str(raw) or not self.known(key):  # a dot is ours, to name what lies deeper
                yield self._unknown(here, key)
            elif key in self.own:
                mend = "remove it: checkpoint and launch say it"
                yield KeyProblem(here, f"the harness sets the option {key!r} of {self.name} itself", (), mend)
            elif key in self.nested and isinstance(value, Mapping):
                yield from self._problems(value, here, tuple(key.split(".")))
            else:
                yield from self._value(here, key, value)

    def _unknown(self, path: tuple[str, ...], key: str) -> KeyProblem:
        what = f"{self.name} has no option {'.'.join(path)!r}"
        if key in self.renamed:
            return KeyProblem(path, what, (self.renamed[key],), f"write {self.renamed[key]}")
        known = self.siblings(key)
        near = difflib.get_close_matches(key.rpartition(".")[2], known, n=_NEAREST, cutoff=0.5)
        mend = f"did you mean {near[0]!r}?" if near else None
        return KeyProblem(path, what, tuple(near or (known if len(known) <= _FEW else ())), mend, unknown=True)

    def _value(self, path: tuple[str, ...], key: str, value: object) -> Iterator[KeyProblem]:
        if key in self.nested and value is not None:
            what = f"{'.'.join(path)!r} of {self.name} is a mapping, not {value!r}"
            yield KeyProblem(path, what, tuple(sorted(self.nested[key])), None)
        allowed = self.choices.get(key)
        if allowed is None or value is None or str(value) in allowed:
            return
        what = f"{'.'.join(path)!r} of {self.name} cannot be {value!r}"
        now = self.renamed_values.get(key, {}).get(str(value))
        near = difflib.get_close_matches(str(value), allowed, n=1, cutoff=0.5)
        mend = f"write {now}" if now else f"did you mean {near[0]!r}?" if near else None
        yield KeyProblem(path, what, tuple(allowed), mend)

    def _said(self, options: Mapping[str, Any], key: str) -> object:
        node: object = options
        for part in key.split("."):
            if not isinstance(node, Mapping):
                return _ABSENT
            found = [value for name, value in node.items() if self._plain(str(name)) == part]
            if not found:
                return _ABSENT
            node = found[0]
        return node

    def _plain(self, key: str) -> str:
        return key.replace("-", "_") if self.dashes else key


def versions(server: str) -> list[str | None]:
    """The versions of a server that there are lists for. UnknownName for a server without one."""
    found = [keys.version for keys in lists() if server in keys.servers]
    if not found:
        raise UnknownName("server", server, {name for keys in lists() for name in keys.servers})
    return found


@functools.cache
def load(server: str, version: str | None) -> EngineKeys:
    """The list of a server's version, ``1.2.1`` being a ``1.2``. UnknownName where there is none."""
    known = versions(server)
    for keys in lists():
        if server in keys.servers and keys.is_of(version):
            return keys
    raise UnknownName(f"version of {server}", str(version), [str(name) for name in known])


def load_or_older(server: str, version: str | None) -> EngineKeys:
    """The list of a server's version, or the newest of an older one: what options mean changes slowly.

    Not for saying that an option is unknown. UnknownName where there is neither.
    """
    try:
        return load(server, version)
    except UnknownName:
        wanted = _numbers(version)
        older = [keys for keys in lists() if server in keys.servers and () < _numbers(keys.version) <= wanted]
        if not older:
            raise
        return max(older, key=lambda keys: _numbers(keys.version))


def _numbers(version: str | None) -> tuple[int, ...]:
    """The numbers that a version begins with, ``1.4.0rc1`` being 1, 4."""
    found = itertools.takewhile(str.isdecimal, (version or "").split("."))
    return tuple(map(int, found))


@functools.cache
def lists() -> tuple[EngineKeys, ...]:
    """All lists there are, by file name."""
    package = "harness.rules.engine_keys"
    names = sorted(file.name for file in importlib.resources.files(package).iterdir() if file.name.endswith(".yaml"))
    return tuple(EngineKeys.model_validate(packaged.read(package, name)) for name in names)
