"""The accelerators, as NVIDIA's management library tells them; and the one place that says that there are none."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.machine.facts import Fact, Facts, Unreadable, counted, gib

KEYS = (
    "accelerators_per_node",
    "accelerator_model_name",
    "accelerator_memory_capacity",
    "accelerator_frequency",
    "accelerator_host_interconnect",
    "accelerator_interconnect",
    "accelerator_interconnect_topology",
    "accelerator_memory_configuration",
    "accelerator_on-chip_memories",
)
NOT_APPLICABLE = "N/A"
DEVICES = Path("/dev")

_NOT_TOLD = "NVML does not tell it"
_NVML_DEVICES = "nvidia*"


class _NoDriver(Unreadable):
    """There is no driver to ask."""


@dataclass(frozen=True, slots=True)
class Device:
    """One accelerator; None for what its driver would not tell. ``nvlinks`` counts the links that are up."""

    model: str
    uuid: str
    memory_bytes: int | None
    max_sm_mhz: int | None
    pcie_generation: int | None
    pcie_width: int | None
    c2c: bool
    nvlinks: int
    nvlink_version: str | None
    mig: bool
    ecc: bool | None = None

    @property
    def name(self) -> str:
        """The model, and a word where it is split into instances."""
        return f"{self.model} (MIG mode)" if self.mig else self.model


@dataclass(frozen=True, slots=True)
class Accelerators:
    """All accelerators of the node, and the software below them (``NVIDIA driver``, ``CUDA driver API``).

    ``ecc`` is whether each has error correction on; None for one that does not tell.
    """

    facts: Facts
    count: int
    uuids: tuple[str, ...] = ()
    software: tuple[tuple[str, str], ...] = ()
    ecc: tuple[bool | None, ...] = ()


def read_accelerators(devices: Path = DEVICES, library: str = "pynvml") -> Accelerators:
    """What accelerators there are. Never raises: what nobody could read is None with its reason.

    Only where the driver's library is absent or counts none, and no device file of it exists, is the machine one
    without accelerators: "0", and N/A for all that accelerators have.
    """
    present = sorted(path.name for path in devices.glob(_NVML_DEVICES))
    try:
        found, software = _ask(importlib.import_module(library))
    except ImportError:
        return _unread(present, f"the Python module {library} is not installed")
    except _NoDriver as error:
        return _unread(present, str(error)) if present else _none(f"{error}, and there is no {devices}/{_NVML_DEVICES}")
    except Unreadable as error:
        return _unread(present, str(error))
    if found:
        return Accelerators(
            facts_of(found),
            len(found),
            tuple(device.uuid for device in found),
            software,
            tuple(device.ecc for device in found),
        )
    if present:
        return _unread(present, "NVML counts no device")
    return _none(f"NVML counts no device, and there is no {devices}/{_NVML_DEVICES}")


def facts_of(devices: list[Device]) -> Facts:
    """Facts under the official keys, of at least one device."""
    source = "NVML"

    def of_all(value: Callable[[Device], str | None]) -> Fact:
        told = [text for text in map(value, devices) if text is not None]
        if len(told) < len(devices):
            return Fact(None, _NOT_TOLD)
        return Fact(told[0] if len(set(told)) == 1 else counted(told), source)

    return {
        "accelerators_per_node": Fact(len(devices), f"{source}: nvmlDeviceGetCount"),
        "accelerator_model_name": of_all(lambda d: d.name),
        "accelerator_memory_capacity": of_all(lambda d: None if d.memory_bytes is None else gib(d.memory_bytes)),
        "accelerator_frequency": of_all(lambda d: None if d.max_sm_mhz is None else f"{d.max_sm_mhz} MHz (maximum)"),
        "accelerator_host_interconnect": of_all(_host_link),
        "accelerator_interconnect": _between(devices, source),
        "accelerator_interconnect_topology": Fact(None, _NOT_TOLD),
        "accelerator_memory_configuration": Fact(None, _NOT_TOLD),
        "accelerator_on-chip_memories": Fact(None, _NOT_TOLD),
    }


def _host_link(device: Device) -> str | None:
    if device.c2c:
        return "NVLink-C2C"
    if device.pcie_generation is None or device.pcie_width is None:
        return None
    return f"PCIe Gen{device.pcie_generation} x{device.pcie_width}"


def _between(devices: list[Device], source: str) -> Fact:
    linked = [device for device in devices if device.nvlinks]
    if not linked:
        if len(devices) == 1:
            return Fact("none (one accelerator)", f"{source}: one device, no NVLink up")
        return Fact("PCIe", f"{source}: no NVLink up")
    names = [f"NVLink {d.nvlink_version}, {d.nvlinks} links" if d.nvlink_version else "NVLink" for d in linked]
    return Fact(names[0] if len(set(names)) == 1 and len(linked) == len(devices) else counted(names), source)


def _none(source: str) -> Accelerators:
    """A machine without accelerators."""
    values = {key: "0" if key == "accelerators_per_node" else NOT_APPLICABLE for key in KEYS}
    return Accelerators({key: Fact(value, source) for key, value in values.items()}, 0)


def _unread(present: list[str], reason: str) -> Accelerators:
    """Device files without a driver that answers: their count is all that is known."""
    count = sum(name.removeprefix("nvidia").isdigit() for name in present)
    facts = {key: Fact(None, reason) for key in KEYS}
    if count:
        facts["accelerators_per_node"] = Fact(count, f"/dev/nvidia0 to nvidia{count - 1} ({reason})")
    return Accelerators(facts, count)


def _ask(nvml: Any) -> tuple[list[Device], tuple[tuple[str, str], ...]]:  # noqa: ANN401 - an untyped module
    """All devices, and driver versions. Raises Unreadable where the library or its driver does not answer."""
    with driver(nvml):
        devices = [_device(nvml, nvml.nvmlDeviceGetHandleByIndex(i)) for i in range(nvml.nvmlDeviceGetCount())]
        cuda = told_by(nvml, nvml.nvmlSystemGetCudaDriverVersion)
        software = [("NVIDIA driver", str(nvml.nvmlSystemGetDriverVersion()))]
        if cuda is not None:
            software.append(("CUDA driver API", f"{cuda // 1000}.{cuda % 1000 // 10}"))
        return devices, tuple(software)


@contextmanager
def driver(nvml: Any) -> Iterator[None]:  # noqa: ANN401 - an untyped module
    """The driver's library, asked meanwhile. Raises Unreadable where it, or the driver, does not answer."""
    try:
        nvml.nvmlInit()
    except (nvml.NVMLError_LibraryNotFound, nvml.NVMLError_DriverNotLoaded) as error:
        raise _NoDriver(f"NVML: {error}") from None
    except nvml.NVMLError as error:
        raise Unreadable(f"NVML: {error}") from None
    try:
        yield
    except nvml.NVMLError as error:
        raise Unreadable(f"NVML: {error}") from None
    finally:
        nvml.nvmlShutdown()


def told_by(nvml: Any, function: Any, *args: Any) -> Any:  # noqa: ANN401 - an untyped module
    """The function's answer, or None where this device or driver has none."""
    try:
        return function(*args)
    except nvml.NVMLError:
        return None


def _device(nvml: Any, handle: Any) -> Device:  # noqa: ANN401 - an untyped module
    memory = told_by(nvml, nvml.nvmlDeviceGetMemoryInfo, handle)
    c2c = told_by(nvml, nvml.nvmlDeviceGetC2cModeInfoV, handle)
    mig = told_by(nvml, nvml.nvmlDeviceGetMigMode, handle)
    ecc = told_by(nvml, nvml.nvmlDeviceGetEccMode, handle)
    links = [i for i in range(nvml.NVML_NVLINK_MAX_LINKS) if told_by(nvml, nvml.nvmlDeviceGetNvLinkState, handle, i)]
    return Device(
        model=str(nvml.nvmlDeviceGetName(handle)),
        uuid=str(nvml.nvmlDeviceGetUUID(handle)),
        memory_bytes=None if memory is None else int(memory.total),
        max_sm_mhz=told_by(nvml, nvml.nvmlDeviceGetMaxClockInfo, handle, nvml.NVML_CLOCK_SM),
        pcie_generation=told_by(nvml, nvml.nvmlDeviceGetMaxPcieLinkGeneration, handle),
        pcie_width=told_by(nvml, nvml.nvmlDeviceGetMaxPcieLinkWidth, handle),
        c2c=c2c is not None and bool(c2c.isC2cEnabled),
        nvlinks=len(links),
        nvlink_version=_nvlink_version(nvml, told_by(nvml, nvml.nvmlDeviceGetNvLinkVersion, handle, links[0]))
        if links
        else None,
        mig=mig is not None and bool(mig[0]),
        ecc=None if ecc is None else bool(ecc[0]),
    )


def _nvlink_version(nvml: Any, code: int | None) -> str | None:  # noqa: ANN401 - an untyped module
    """NVML numbers the versions in order of appearance; its constants' names say which is which."""
    prefix = "NVML_NVLINK_VERSION_"
    names = {getattr(nvml, name): name.removeprefix(prefix) for name in dir(nvml) if name.startswith(prefix)}
    name = names.get(code, "INVALID")
    return None if name == "INVALID" else name.replace("_", ".")
