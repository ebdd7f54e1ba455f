"""The texts of a submission, made from the templates in ``measurements/`` and from what runs recorded of themselves."""

from __future__ import annotations

import shlex
import string
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from harness.clients.endpoints.config import LEG as CLIENT_LEG
from harness.config.models import SystemFile
from harness.config.yaml_files import read_model
from harness.errors import ConfigError
from harness.ledger.record import AccuracyEcho, RunRecord
from harness.machine.describe import Value
from harness.rules import ImageRules, RulePack
from harness.rules.values import LayoutName
from harness.submission.legs import Leg
from harness.submission.rows import Row
from harness.submission.source import SOURCE_KEY, source_note

LABEL = "DEMONSTRATION, not a submission"
UNVERIFIED = "Result not verified by MLCommons Association."

_NONE = "none"
_OTHERWISE = "otherwise"
_UNSEEN = "not read: it lay where the harness could not look"
_UNTOLD = "not told"


README_TEMPLATES: Mapping[LayoutName, str] = {
    "loadgen": "README.template.md",
    "endpoints": "README.endpoints.template.md",
}
"""The template of a row's README.md, by its layout."""


class MeasurementsFile(BaseModel):
    """``measurements/<benchmark>/measurements.yaml``: templates of measurements.json, by engine kind."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    every_engine: dict[str, str]
    engines: dict[str, dict[str, str]]
    calibration: dict[str, str] = Field(default_factory=dict)
    """How published checkpoints were calibrated, by name; ``otherwise`` is said of all others."""


@dataclass(frozen=True, slots=True)
class Texts:
    """The templates below one ``measurements/`` folder."""

    root: Path

    def measurements(self, record: RunRecord, pack: RulePack) -> dict[str, str]:
        """What measurements.json says of a run. ConfigError: no template for its engine, or a field is left out."""
        path, file = self._measurements_file(record)
        kind = record.engine.kind
        if kind not in file.engines:
            raise ConfigError(
                f"there is no template for the engine {kind!r}",
                where=path,
                expected="one of " + ", ".join(sorted(file.engines)),
                mend=f"add engines.{kind} with what its runs do to the weights",
            )
        templates = {**file.every_engine, **file.engines[kind]}
        wanted = pack.measurements_fields.value
        if lacking := [field for field in wanted if not templates.get(field)]:
            raise ConfigError("fields are left out: " + ", ".join(lacking), where=path, mend="add them")
        names = _weights(record)
        return {field: fill(templates[field], names, path) for field in wanted}

    def calibration(self, record: RunRecord, measurements: Mapping[str, str], pack: RulePack) -> str:
        """How the weights of one system's benchmark came to their data type, and with which rows of its data set."""
        path, file = self._measurements_file(record)
        rules = pack.benchmark(record.id.benchmark)
        rows = rules.calibration_rows if isinstance(rules, ImageRules) else None
        names = {
            **_weights(record),
            **measurements,
            "benchmark": record.id.benchmark,
            "system": record.id.system,
            "calibration_rows": ", ".join(map(str, rows.value)) if rows is not None else _NONE,
            "calibration_rules": rows.source.partition(" (")[0] if rows is not None else _NONE,
        }
        said = file.calibration.get(names["checkpoint"], file.calibration.get(_OTHERWISE, _NONE))
        names["calibration"] = fill(said, names, path)
        return self._filled(PurePosixPath(record.id.benchmark) / "calibration.md", names)

    def _measurements_file(self, record: RunRecord) -> tuple[Path, MeasurementsFile]:
        path = self.root / record.id.benchmark / "measurements.yaml"
        return path, read_model(path, MeasurementsFile)

    def bandwidth(self, name: str, system: SystemFile, fields: Mapping[str, Value]) -> str:
        """How data reaches a system. Where nobody said it, the text says so."""
        statement = system.bandwidth or "Nobody has stated or measured how data reaches this machine, or how fast."
        names = {**fields, "system": name, "statement": statement}
        return self._filled(PurePosixPath("bandwidth.template.md"), names)

    def readme(
        self,
        row: Row,
        fields: Mapping[str, Value],
        source: PurePosixPath,
        *,
        demonstration: bool,
        accuracy: str,
        more: Mapping[str, str] | None = None,
    ) -> str:
        """README.md of one scenario. ``accuracy`` is what the filed accuracy.txt comes to, ``more`` are names of the
        benchmark's own.
        """
        performance = row.performance.record
        names = {
            **_weights(performance),
            "benchmark": row.entry.benchmark,
            "entry": row.entry.folder,
            "scenario": row.scenario,
            "system_name": fields["system_name"],
            "label": label(row.entry.division, row.marks, demonstration=demonstration),
            "round": performance.round,
            "division": row.entry.division,
            "category": row.entry.category,
            "result": _result(performance),
            "loadgen_verdict": _loadgen(performance),
            "client": _client(performance),
            "verdict": "; ".join(f"{leg} run {_verdict(found.record)}" for leg, found in row.legs.items()),
            "accuracy": accuracy,
            "audits": "; ".join(_audit(name, leg.record) for name, leg in row.audits.items()) or "none",
            "engine": _engine(performance),
            "versions": _versions(performance),
            "captured_at": performance.machine.captured_at,
            "unverified": UNVERIFIED,
            "source": str(source),
            "source_note": source_note(performance.versions.get(SOURCE_KEY)),
            "datasets": "; ".join(dict.fromkeys(_dataset(leg.record) for leg in row.legs.values())),
            "packaged": _packaged(row, demonstration=demonstration),
            "commands": "\n".join(dict.fromkeys(f"    {_command(leg.record)}" for leg in row.legs.values())),
            "attempts": "\n".join(f"- {_attempt(name, leg)}" for name, leg in row.legs.items()),
            "deviations": _list(row.deviations, "None."),
            "subsets": _subsets(row.accuracy.record.accuracy),
            **(more or {}),
        }
        template = PurePosixPath(row.entry.benchmark) / README_TEMPLATES[row.layout]
        return self._filled(template, {key: _cell(value) for key, value in names.items()})

    def _filled(self, template: PurePosixPath, names: Mapping[str, Any]) -> str:
        path = self.root / template
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigError(f"a template cannot be read: {error.strerror}", where=path) from None
        return fill(text, names, path)


def fill(template: str, names: Mapping[str, Any], where: Path) -> str:
    """The template with its $names. ConfigError names one that nothing fills."""
    try:
        return string.Template(template).substitute(names)
    except (KeyError, ValueError) as error:
        raise ConfigError(
            f"a template names what nothing fills: {error}",
            where=where,
            expected="names among " + ", ".join(sorted(names)),
            mend="correct the name, or write $$ for a dollar",
        ) from None


def label(division: str, marks: Sequence[str], *, demonstration: bool) -> str:
    """The first thing a reader must know of a row."""
    if demonstration:
        return f"**{LABEL}.**\n\n" + _list(marks, "Made with --demonstration.")
    return "MLPerf Open." if division == "open" else f"MLPerf, {division} division."


def demonstration_note(reasons: Mapping[str, Sequence[str]]) -> str:
    """The file DEMONSTRATION: why, row by row and system by system."""
    parts = [f"{name}\n" + _list(why, "Made with --demonstration.") for name, why in reasons.items()]
    return f"{LABEL}.\nNothing below this folder may be filed with MLCommons.\n\n" + "\n\n".join(parts) + "\n"


def note(said: str, marks: Sequence[str], *, demonstration: bool) -> str:
    """hw_notes and sw_notes: what a person said, after the label where there is one, without double quotes."""
    if not demonstration:
        return said
    reasons = "; ".join(marks).replace('"', "'") or "made with --demonstration"
    return f"{LABEL}: {reasons}" + (f". {said}" if said else "")


def accuracy_line(echo: AccuracyEcho | None) -> str:
    """An accuracy as one line: the number, or why there is none."""
    if echo is None:
        return "not scored"
    if echo.value is not None:
        return f"{echo.key} {echo.value:.6g}, by {echo.evaluator}"
    unscored = sum(subset.unscored for subset in echo.subsets.values())
    failed = sum(subset.failed for subset in echo.subsets.values())
    why = ", ".join(
        f"{count} samples {state}" for count, state in ((unscored, "unscored"), (failed, "failed")) if count
    )
    asked = sum(subset.samples for subset in echo.subsets.values())
    return f"no {echo.key}: {why or f'only {asked} samples were asked'}; by {echo.evaluator}"


def _weights(record: RunRecord) -> dict[str, str]:
    """What ran, as the engine told it; of weights that lie where the harness cannot look, what was configured."""
    configured = _configured_checkpoint(record)
    told = record.engine.checkpoint or configured
    return {
        "checkpoint": str(told.get("name", _NONE)),
        "checkpoint_sha256": str(told.get("sha256", _UNSEEN if configured.get("name") else _NONE)),
        "checkpoint_revision": str(configured.get("revision") or _UNTOLD),
        "weight_data_type": str(told.get("weight_data_type", _NONE)),
        "engine": record.engine.kind,
    }


def _configured_checkpoint(record: RunRecord) -> Mapping[str, Any]:
    """The published checkpoint that the run's configuration names; empty where it names none."""
    scenarios = record.config.get("scenarios")
    own = scenarios.get(record.id.scenario) if isinstance(scenarios, Mapping) else None
    engine = (own.get("engine") if isinstance(own, Mapping) else None) or record.config.get("engine")
    checkpoint = engine.get("checkpoint") if isinstance(engine, Mapping) else None
    return checkpoint if isinstance(checkpoint, Mapping) and "name" in checkpoint else {}


def _result(record: RunRecord) -> str:
    result = record.result
    return "none" if result is None else f"{result.value:g} {result.units} ({result.key})"


def _loadgen(record: RunRecord) -> str:
    return (record.verdict.loadgen if record.verdict is not None else None) or "nothing"


def _client(record: RunRecord) -> str:
    """Who measured: LoadGen, or the endpoints client with its commit, or what tells it from others of its version."""
    version = record.versions.get("endpoints")
    if version is None:
        return f"LoadGen {record.versions.get('mlcommons_loadgen', '')}".strip()
    commit, source = record.versions.get("endpoints_commit"), record.versions.get("endpoints_source")
    which = f"commit {commit}" if commit else f"source sha256 {source}" if source else "commit not told"
    return f"inference-endpoint {version} ({which})"


def _verdict(record: RunRecord) -> str:
    return "VALID" if record.verdict is not None and record.verdict.valid else "INVALID"


def _engine(record: RunRecord) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in record.engine.versions.items())
    return f"{record.engine.kind}" + (f" ({versions})" if versions else "")


def _dataset(record: RunRecord) -> str:
    stand_in = ", a stand-in (made with `make make_dataset`)" if record.dataset.stand_in else ""
    return f"{record.dataset.name}, {record.dataset.rows} rows, sha256 {record.dataset.sha256}{stand_in}"


def _versions(record: RunRecord) -> str:
    return ", ".join(f"{name} {version}" for name, version in record.versions.items())


def _command(record: RunRecord) -> str:
    """The command that started a run; where its program lies on that machine is nobody's matter."""
    program, *rest = record.command or ["make"]
    return shlex.join([PurePosixPath(program).name, *rest])


def _attempt(name: str, leg: Leg) -> str:
    named = ", asked for by its number" if leg.named else ""
    seen = f"; {leg.record.note}" if leg.record.note and name == CLIENT_LEG else ""
    return f"{name}: attempt {leg.record.id.attempt} is filed, of {leg.attempts_total}{named}{seen}"


def _audit(name: str, record: RunRecord) -> str:
    if record.audit is None:
        return f"{name} not verified"
    return f"{name} {record.audit}, verified by {record.audit.verifier}"


def _packaged(row: Row, *, demonstration: bool) -> str:
    named = ",".join(str(leg.record.id) for leg in row.legs.values() if leg.named)
    options = [*(["--demonstration"] if demonstration else []), *([f"--attempts={named}"] if named else [])]
    return f"make submission ARGS={shlex.quote(' '.join(options))}" if options else "make submission"


def _subsets(echo: AccuracyEcho | None) -> str:
    if echo is None:
        return "Not scored."
    lines = [
        "| part | samples | right | wrong | failed | unscored | tokens an answer |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, s in echo.subsets.items():
        counts = (s.samples, s.correct, s.wrong, s.failed, s.unscored, _mean(s.mean_output_tokens))
        lines.append(f"| {name} | " + " | ".join(map(str, counts)) + " |")
    return "\n".join(lines)


def _mean(tokens: float | None) -> str:
    """Answers that are logged as text have no ids to count."""
    return "not counted" if tokens is None else f"{tokens:.1f}"


def _list(texts: Sequence[str], otherwise: str) -> str:
    return "\n".join(f"- {text}" for text in texts) or otherwise


def _cell(value: object) -> str:
    """One line stays one table cell; blocks have their own bars."""
    text = str(value)
    return text if "\n" in text else text.replace("|", "\\|")
