"""What an entry claims of its weights, engine and accelerators, held against its other texts and its manifest."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from harness.gate import claim_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.claim_words import contradicts, engines_named, low_precision, says_full_precision, says_widened
from harness.gate.findings import Finding, Severity
from harness.gate.index import TreeIndex, Unreadable
from harness.gate.row_layout import RowPlace
from harness.rules import RulePack

_TEXTS_OF_WEIGHTS = ("starting_weights_filename", "weight_transformations")
_TEXTS_OF_ENGINE = ("framework", "sw_notes", "other_software_stack")
_NAME_THE_ENGINE = ("framework", "sw_notes")
"""The stack may hold what another benchmark of the system runs on."""


@dataclass(frozen=True, slots=True)
class _Ran:
    """What is told of the runs of one system: engine kinds, packages with versions, accelerators found.

    The manifest tells all of it, an endpoints client's configuration at most the kind.
    """

    kinds: frozenset[str]
    versions: frozenset[tuple[str, str]]
    accelerators: frozenset[int]

    @property
    def names(self) -> set[str]:
        """What the engines may be called by."""
        return {*self.kinds, *(package for package, _ in self.versions)}


def check_claims(
    index: TreeIndex,
    submitter: PurePosixPath,
    manifest: Mapping[str, Any] | None,
    rows: Iterable[RowPlace],
    pack: RulePack,
) -> Iterator[Finding]:
    """The claims of all rows and systems in a submitter's folder."""
    places = list(rows)
    for place in places:
        yield from _weights(index, place, pack)
    for system in dict.fromkeys(place.system for place in places):
        path = submitter / "systems" / f"{system}.json"
        described = _object(index, path)
        if described is None:
            continue  # told where the description is checked
        apis = (_api(index, place, pack) for place in places if place.system == system)
        ran = _ran(manifest, system, frozenset(api for api in apis if engines_named(api)))
        if ran.kinds:
            yield from _engine(described, path, ran)
        elif manifest is not None:
            found = f"the manifest does not tell which engine the runs of {system} had: not checked"
            yield R.ENGINE.broken(path, found, severity=Severity.NOTE)
        yield from _accelerators(described, path, ran)


def _weights(index: TreeIndex, place: RowPlace, pack: RulePack) -> Iterator[Finding]:
    path = place.folder / pack.layouts.loadgen.files["measurements"].value
    measurements = _object(index, path) or {}
    claimed = measurements.get("weight_data_types")
    if not isinstance(claimed, str) or not says_full_precision(claimed):
        return
    if says_widened(str(measurements.get("weight_transformations"))):
        return  # weights that came in fewer bits and ran in more: both are told
    told = {where: low_precision(text) for where, text in _texts_of_weights(index, place, measurements, pack)}
    against = [f"{where} says {', '.join(words)}" for where, words in told.items() if words]
    if against:
        yield R.WEIGHTS.broken(path, f"weight_data_types {claimed}, and {'; '.join(against)}")


def _texts_of_weights(
    index: TreeIndex, place: RowPlace, measurements: Mapping[str, Any], pack: RulePack
) -> Iterator[tuple[str, str]]:
    for key in _TEXTS_OF_WEIGHTS:
        yield key, str(measurements.get(key, ""))
    readme = pack.layouts.loadgen.files["readme"].value
    with contextlib.suppress(Unreadable):  # told among the files of the row
        yield readme, index.read_text(place.folder / readme)
    name, config = _client_config(index, place, pack)
    yield name, _text(config, "model_params", "name")


def _client_config(index: TreeIndex, place: RowPlace, pack: RulePack) -> tuple[str, object]:
    """The configuration of an endpoints row by its file's name; None where there is none that can be read."""
    layout = pack.layouts.endpoints
    names = layout.files["config"].value if layout is not None else []
    for name in [names] if isinstance(names, str) else names:
        if index.has_content(place.folder / name):
            with contextlib.suppress(Unreadable):  # told where the layout is checked
                return name, index.read_yaml(place.folder / name)
    return "", None


def _api(index: TreeIndex, place: RowPlace, pack: RulePack) -> str:
    """The interface by which the endpoints client spoke to the server: some are one engine's own."""
    return _text(_client_config(index, place, pack)[1], "endpoint_config", "api_type")


def _text(config: object, group: str, key: str) -> str:
    """A text of a configuration, two keys deep; empty where there is none."""
    inner = config.get(group) if isinstance(config, dict) else None
    value = inner.get(key) if isinstance(inner, dict) else None
    return value if isinstance(value, str) else ""


def _engine(described: Mapping[str, Any], path: PurePosixPath, ran: _Ran) -> Iterator[Finding]:
    texts = {key: str(described.get(key) or "") for key in _TEXTS_OF_ENGINE}
    what = ", ".join(sorted(f"{package} {version}" for package, version in ran.versions) or sorted(ran.kinds))
    own = engines_named(" ; ".join(ran.names))
    others = {name for key in _NAME_THE_ENGINE for name in engines_named(texts[key])} - own
    if own and others:
        yield R.ENGINE.broken(path, f"it names {', '.join(sorted(others))}, the runs had {what}")
    elif own and own.isdisjoint(engines_named(" ; ".join(texts.values()))):
        yield R.ENGINE.broken(path, f"framework {texts['framework']!r} does not name what the runs had: {what}")
    for package, version in sorted(ran.versions):
        for key, text in texts.items():
            told = contradicts(text, package, version)
            if told:
                yield R.ENGINE.broken(path, f"{key} says {package} {told}, the runs had {version}")


def _accelerators(described: Mapping[str, Any], path: PurePosixPath, ran: _Ran) -> Iterator[Finding]:
    """A machine is a node or the whole system: who counted from one node may have seen either."""
    a_node, nodes = _number(described.get("accelerators_per_node")), _number(described.get("number_of_nodes"))
    if a_node is None or nodes is None:
        return  # told where the description is checked
    for count in sorted(ran.accelerators - {a_node, a_node * nodes}):
        yield R.ACCELERATORS.broken(path, f"{a_node} accelerators in each of {nodes} nodes, the runs found {count}")


def _ran(manifest: Mapping[str, Any] | None, system: str, apis: frozenset[str]) -> _Ran:
    """``apis`` are interfaces that tell an engine."""
    legs = [leg for row in _objects(manifest, "rows") if row.get("system") == system for leg in _objects(row, "legs")]
    engines = [leg["engine"] for leg in legs if isinstance(leg.get("engine"), dict)]
    versions = [engine["versions"] for engine in engines if isinstance(engine.get("versions"), dict)]
    counts = [leg.get("accelerators") for leg in legs]
    return _Ran(
        kinds=apis | {kind for engine in engines if isinstance(kind := engine.get("kind"), str)},
        versions=frozenset((str(package), str(version)) for some in versions for package, version in some.items()),
        accelerators=frozenset(n for n in counts if isinstance(n, int) and not isinstance(n, bool)),
    )


def _objects(holder: Mapping[str, Any] | None, key: str) -> list[dict[str, Any]]:
    value = holder.get(key) if holder is not None else None
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _object(index: TreeIndex, path: PurePosixPath) -> dict[str, Any] | None:
    try:
        return index.read_object(path)
    except Unreadable:
        return None


def _number(value: object) -> int | None:
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
