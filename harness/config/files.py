"""Where the user's files lie, and what is in them by name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from harness.config.extends import Layered
from harness.config.models import BenchmarkFile, SubmissionFile, SystemFile
from harness.config.plain_yaml import read_yaml
from harness.config.yaml_files import read_model, read_model_and_places
from harness.errors import ConfigError, UnknownName

_STRICTEST_FIRST: Final = ("closed", "network", "open")


@dataclass(frozen=True, slots=True)
class Project:
    """The folder a submitter works in: ``systems/``, ``measurements/``, ``submission.yaml``."""

    root: Path

    @property
    def systems(self) -> Path:
        """The folder with one sub-folder a system."""
        return self.root / "systems"

    def system_names(self) -> list[str]:
        """The systems there are, by name. ConfigError where this is no project's folder."""
        if not self.systems.is_dir():
            raise ConfigError("there is no systems/ folder here", where=self.root, mend="run from the project's folder")
        return sorted(p.parent.name for p in self.systems.glob("*/system.yaml"))

    def benchmark_names(self, system: str) -> list[str]:
        """The benchmarks a system has a file for."""
        stems = self._stems(system)
        return sorted(stem for stem in stems if _parted(stem, stems) is None)

    def variant_names(self, system: str, benchmark: str) -> list[str]:
        """The other engines that a benchmark may run on there: ``<benchmark>.<variant>.yaml`` beside its own file."""
        stems = self._stems(system)
        parted = (_parted(stem, stems) for stem in stems)
        return sorted(found[1] for found in parted if found is not None and found[0] == benchmark)

    def system(self, name: str) -> SystemFile:
        """A system's own file; UnknownName with the nearest where there is none."""
        return self.system_and_places(name)[0]

    def system_and_places(self, name: str) -> tuple[SystemFile, Layered]:
        """The same, with the file and line of each value."""
        return read_model_and_places(self._folder(name) / "system.yaml", SystemFile, self.root)

    def benchmark(self, system: str, benchmark: str, variant: str | None = None) -> BenchmarkFile:
        """How a benchmark runs on a system; UnknownName with the nearest where the system has no such file."""
        return self.benchmark_and_places(system, benchmark, variant)[0]

    def benchmark_and_places(
        self, system: str, benchmark: str, variant: str | None = None
    ) -> tuple[BenchmarkFile, Layered]:
        """The same, with the file and line of each value."""
        return read_model_and_places(self.benchmark_path(system, benchmark, variant), BenchmarkFile, self.root)

    def benchmark_path(self, system: str, benchmark: str, variant: str | None = None) -> Path:
        """The file of a benchmark on a system, or that of a variant of it. UnknownName where there is none."""
        known = self.benchmark_names(system)
        if benchmark not in known:
            raise UnknownName("benchmark", benchmark, known, where=self._folder(system))
        if variant is None:
            return self._folder(system) / f"{benchmark}.yaml"
        variants = self.variant_names(system, benchmark)
        if variant not in variants:
            raise UnknownName(f"variant of {benchmark}", variant, variants, where=self._folder(system))
        return self._folder(system) / f"{benchmark}.{variant}.yaml"

    def submission(self, path: Path | None = None) -> SubmissionFile:
        """The entries; each must name a system and benchmark that exist."""
        path = path or self.root / "submission.yaml"
        file = read_model(path, SubmissionFile, self.root)
        for entry in file.entries:
            if entry.benchmark not in self.benchmark_names(entry.system):
                raise UnknownName("benchmark", entry.benchmark, self.benchmark_names(entry.system), where=path)
        return file

    def division(self, system: str, benchmark: str) -> str | None:
        """The strictest division that a benchmark on a system is entered in; None where submission.yaml enters it in
        none, or is not there.
        """
        path = self.root / "submission.yaml"
        if not path.is_file():
            return None
        entered = {
            entry.division
            for entry in self.submission(path).entries
            if (entry.system, entry.benchmark) == (system, benchmark)
        }
        return next((division for division in _STRICTEST_FIRST if division in entered), None)

    def measurements(self, benchmark: str) -> Mapping[str, Any]:
        """``measurements/<benchmark>/measurements.yaml`` as plain data; empty where there is none."""
        path = self.root / "measurements" / benchmark / "measurements.yaml"
        data = read_yaml(path)[0] if path.is_file() else None
        return data if isinstance(data, dict) else {}

    def _stems(self, system: str) -> set[str]:
        return {path.stem for path in self._folder(system).glob("*.yaml") if path.name != "system.yaml"}

    def _folder(self, system: str) -> Path:
        known = self.system_names()
        if system not in known:
            raise UnknownName("system", system, known, where=self.systems)
        return self.systems / system


def _parted(stem: str, stems: Collection[str]) -> tuple[str, str] | None:
    """A variant's file name as benchmark and variant; None for a benchmark's own, which may have points in it."""
    benchmark, _, variant = stem.rpartition(".")
    return (benchmark, variant) if benchmark in stems and variant else None
