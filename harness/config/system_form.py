"""Writes into a ``system.yaml``: what was found, and a line with what is expected for all that nobody has said.

The file stays the person's: comments, order and everything that was said in it are as they were.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import yaml

from harness.errors import ConfigError

Value: TypeAlias = str | int
Edit: TypeAlias = tuple[int, int, str]

HEAD = """\
# What only a person can say of this machine; what can be read off it is captured when a leg starts.
# null means that nobody has said it: a submission is refused until somebody does.
"""
EXPECTED: Mapping[str, str] = {
    "system_name": "the name that is published, e.g. Example server (8x B200-SXM-180GB)",
    "number_of_nodes": "machines that serve together, e.g. 1",
    "cooling": "air, liquid, passive, ...",
    "host_networking_topology": "how hosts are joined, e.g. Ethernet on a switch; of one machine: N/A, one machine",
    "host_processor_model_name": "e.g. AMD EPYC 9575F",
    "host_processors_per_node": "sockets, e.g. 2",
    "host_processor_core_count": "cores of one socket, e.g. 64",
    "host_processor_frequency": "e.g. 3.3 GHz (base), 5.0 GHz (boost)",
    "host_processor_caches": "e.g. L3 256 MiB",
    "host_memory_capacity": "of one node, e.g. 2 TiB",
    "host_networking": "kind and rate of the links, e.g. InfiniBand NDR 400 Gb/s",
    "host_network_card_count": "e.g. 8x 400 Gb/s InfiniBand, 1x 100 GbE",
    "host_memory_configuration": "modules, e.g. 32x 64 GB DDR5 5600 MT/s (dmidecode tells root)",
    "host_storage_type": "e.g. NVMe SSD",
    "host_storage_capacity": "disks and their sizes, e.g. 2x 1.9 TB, 8x 3.84 TB",
    "host_processor_interconnect": "between sockets, e.g. xGMI, UPI, NVLink-C2C; may stay empty",
    "accelerators_per_node": "e.g. 8",
    "accelerator_model_name": "e.g. NVIDIA B200-SXM-180GB",
    "accelerator_memory_capacity": "of one accelerator, e.g. 180 GB",
    "accelerator_frequency": "e.g. 1965 MHz (maximum); may stay empty",
    "accelerator_host_interconnect": "e.g. PCIe Gen5 x16, NVLink-C2C",
    "accelerator_interconnect": "between accelerators, e.g. 18x 5th Gen NVLink",
    "accelerator_interconnect_topology": "e.g. all-to-all through NVLink switches; may stay empty",
    "accelerator_memory_configuration": "e.g. HBM3e",
    "framework": "what computes, with versions, e.g. TensorRT-LLM 1.2.1, CUDA 13.0",
    "operating_system": "e.g. Ubuntu 24.04, kernel 6.8.0",
    "other_software_stack": "drivers and libraries, e.g. NVIDIA driver 580.95, NCCL 2.27",
    "hw_notes": "what else a reader must know of the hardware",
    "sw_notes": "what else a reader must know of the software",
    "system_type_detail": "may stay empty",
    "bandwidth": "how data reaches the machine and how fast, e.g. one 100 GbE link, iperf3 94 Gb/s; closed asks for it",
}
"""What a value looks like, by key of the file."""

SOURCES = "sources"

_ONE_LINE = 1 << 30


@dataclass(frozen=True, slots=True)
class Form:
    """What is to stand in a file: ``values`` nobody has said, where they are from, and the keys a person is to fill."""

    values: Mapping[str, Value]
    sources: Mapping[str, str]
    wanted: Collection[str]

    def __post_init__(self) -> None:
        if unknown := {*self.values, *self.wanted} - set(EXPECTED):
            raise ValueError(f"not keys of a system file: {', '.join(sorted(unknown))}")
        if set(self.sources) - set(self.values) or set(self.wanted) & set(self.values):
            raise ValueError("a source is of a value, and what has a value is no longer wanted")


def filled(text: str, form: Form, where: object) -> str:
    """``text`` of a system file, or "" for one that is not there yet, with the form in it.

    Nothing that was said changes. Raises ConfigError where the file is not one ``key: value`` a line.
    """
    root = yaml.compose(text, Loader=yaml.SafeLoader) if text.strip() else None
    entries = {str(key.value): node for key, node in root.value} if isinstance(root, yaml.MappingNode) else {}
    eol = "\r\n" if "\r\n" in text else "\n"
    edits, added = _in_place(text, entries, form)
    more_edits, more_added = _sources(text, entries.get(SOURCES), form.sources, eol)
    whole = _applied(text or HEAD, [*edits, *more_edits])
    if added or more_added:
        whole += "" if whole.endswith("\n") else eol
        whole += "".join(f"{line}{eol}" for line in [*added, *more_added])
    if not _reads_back(text, whole, form):
        raise ConfigError(
            "the file cannot be added to", where=where, expected="one `key: value` a line", mend="write it so"
        )
    return whole


def _in_place(text: str, entries: Mapping[str, yaml.Node], form: Form) -> tuple[list[Edit], list[str]]:
    """Edits of lines that are there, and the lines that have to be added, in the order of :data:`EXPECTED`."""
    edits: list[Edit] = []
    added: list[str] = []
    for key, expected in EXPECTED.items():
        node = entries.get(key)
        if key in form.values:
            line = _line(key, form.values[key])
            if node is None:
                added.append(line)
            else:
                edits.append(_valued(node, line.removeprefix(f"{key}:")))
        elif key in form.wanted:
            if node is None:
                added.append(f"{key}: null  # {expected}")
            elif _is_bare(text, node):
                edits.append((node.end_mark.index, node.end_mark.index, f"  # {expected}"))
    return edits, added


def _line(key: str, value: Value) -> str:
    """``key: value`` as YAML has it, on one line."""
    return str(yaml.safe_dump({key: value}, width=_ONE_LINE, allow_unicode=True)).rstrip("\n")


def _valued(node: yaml.Node, value: str) -> Edit:
    """``value``, which begins with a blank, in the place of a null; the null may have no letters."""
    start, end = node.start_mark.index, node.end_mark.index
    return start, end, value if start == end else value.removeprefix(" ")


def _is_bare(text: str, node: yaml.Node) -> bool:
    """Whether the node has no value, and nothing but it stands on the rest of its line."""
    rest = text[node.end_mark.index :].partition("\n")[0]
    return isinstance(node, yaml.ScalarNode) and (not node.value or node.tag.endswith(":null")) and not rest.strip()


def _sources(text: str, node: yaml.Node | None, sources: Mapping[str, str], eol: str) -> tuple[list[Edit], list[str]]:
    """Edits, or lines to add, that name where the values are from. ``node`` are the sources that are there."""
    if not sources:
        return [], []
    lines = [_line(key, said) for key, said in sources.items()]
    if node is None:
        return [], [f"{SOURCES}:", *(f"  {line}" for line in lines)]
    if not isinstance(node, yaml.MappingNode):
        return [], []  # which does not read back
    if node.flow_style:
        flow = str(yaml.safe_dump(dict(sources), width=_ONE_LINE, allow_unicode=True, default_flow_style=True))
        at = node.end_mark.index - 1
        return [(at, at, (", " if node.value else "") + flow.strip()[1:-1])], []
    first, last = node.value[0][0], node.value[-1][1]
    indented = [" " * first.start_mark.column + line for line in lines]
    at = last.end_mark.index
    if last.end_mark.column == 0:  # a block of text ends where the next line begins
        return [(at, at, "".join(f"{line}{eol}" for line in indented))], []
    at += len(text[at:].partition("\n")[0].rstrip("\r"))
    return [(at, at, "".join(f"{eol}{line}" for line in indented))], []


def _applied(text: str, edits: list[Edit]) -> str:
    for start, end, replacement in sorted(edits, reverse=True):
        text = text[:start] + replacement + text[end:]
    return text


def _reads_back(before: str, after: str, form: Form) -> bool:
    """Whether the file now says what is meant: all that it said before, and the form."""
    try:
        old, new = yaml.safe_load(before), yaml.safe_load(after)
    except yaml.YAMLError:
        return False
    old = {} if old is None else old
    if not isinstance(old, dict) or any(old.get(key) not in (None, "") for key in form.values):
        return False
    meant = {**dict.fromkeys(form.wanted), **old, **form.values}
    if form.sources:
        there = old.get(SOURCES, {})
        if not isinstance(there, dict):
            return False
        meant[SOURCES] = {**there, **form.sources}
    return bool((new or {}) == meant)
