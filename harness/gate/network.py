"""The network division: what the description of a system says of its network, and what the log calls the SUT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from harness.gate import network_rules as R  # noqa: N812 - a namespace of constants
from harness.gate.findings import Finding, Severity
from harness.gate.index import TreeIndex, Unreadable
from harness.gate.row_layout import RowPlace
from harness.gate.tree_rules import SYSTEM_NETWORK
from harness.rules import RulePack

NETWORK = "network"
"""The division."""
FIELD = "is_network"
_YES = "true"


def check_network(system: Mapping[str, Any], path: PurePosixPath, division: str, pack: RulePack) -> Iterator[Finding]:
    """What a description in the folder of ``division`` says of a network that it must not, or does not that it must."""
    said = system.get(FIELD)
    if said is not None and not isinstance(said, str):
        yield SYSTEM_NETWORK.broken(path, f"{FIELD} is {said!r}, which is no text: the official checker breaks on it")
        return
    if division == NETWORK and not is_network(system):
        yield R.MODE.broken(path, f"{FIELD} is {said!r}" if FIELD in system else f"no {FIELD}", f"{FIELD}: {_YES}")
    elif division == "closed" and is_network(system):
        yield R.MODE.broken(path, f"{FIELD} is {said!r}", f"no {FIELD}")
    elif division != NETWORK and said is not None:
        yield SYSTEM_NETWORK.broken(path, f"{FIELD} is {said!r}", severity=Severity.REVIEW)
    if said:  # whatever it says, even false
        wanted = pack.system_fields.network_required
        lacking = [field for field in wanted.value if field not in system]
        if lacking:
            yield R.FIELD.broken(path, "no field " + ", ".join(lacking), source=wanted.source)


def is_network(system: Mapping[str, Any]) -> bool:
    """Whether a description says that its system is reached over a network, as the official checker reads it."""
    said = system.get(FIELD)
    return isinstance(said, str) and said.lower() == _YES


def check_sut_name(
    index: TreeIndex, place: RowPlace, log: PurePosixPath, name: object, pack: RulePack
) -> Iterator[Finding]:
    """What is wrong with the ``name`` of the SUT in the performance ``log`` of a row.

    A report without such a name, as the endpoints client's, has the name None and cannot be of a network's system.
    """
    try:
        described = index.read_object(place.folder.parents[3] / "systems" / f"{place.system}.json")
    except Unreadable:
        return  # told where the description is checked
    holds = pack.network_sut_name_holds
    if is_network(described) and not (isinstance(name, str) and holds.value in name):
        found = "no name of the SUT" if name is None else f"the SUT is called {name!r}"
        yield R.SUT.broken(log, found, f"a name with {holds.value!r} in it", source=holds.source)
