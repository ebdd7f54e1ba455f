"""Whether memory corrected its errors while runs were made, where the round demands it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

from harness.gate.findings import Finding, Rule, Severity, rule
from harness.gate.index import TreeIndex, Unreadable
from harness.gate.row_layout import RowPlace
from harness.ledger.record import Ecc, RunRecord
from harness.rules import RulePack

ECC = rule(
    "SYS-ECC",
    Severity.REJECT,
    "error correction on in the host's memory and the accelerators' in every run",
    mend="turn it on (the host's in its firmware, accelerators' with nvidia-smi -e 1 and a reset; see make doctor), "
    "and run the legs again; or enter the result in open",
    source="policies/inference_rules.adoc ECC (closed and network, datacenter; the checker does not look)",
)
UNKNOWN = rule(
    "SYS-ECC-UNKNOWN",
    Severity.REVIEW,
    "error correction that was read as on when each leg started",
    mend="run make doctor as root where the servers run and mend what it could not read; what no program reads there "
    "say in hw_notes, with who says so",
    source=ECC.source,
)
_PARTS = {"host": "the host's memory", "accelerators": "the accelerators' memory"}


def off_in(ecc: Ecc | None) -> list[str]:
    """The memories that were read as not correcting, in words, each with its source."""
    read = {} if ecc is None else {"host": ecc.host, "accelerators": ecc.accelerators}
    sources = {} if ecc is None else ecc.sources
    return [f"{_PARTS[part]}: off ({sources.get(part, 'no source')})" for part, on in read.items() if on is False]


def forbidden(record: RunRecord, division: str, category: str, pack: RulePack) -> list[str]:
    """Why a run may not be filed in a division and category for the errors of its memory."""
    if not pack.error_correction.value.holds(division, category):
        return []
    return [f"{ECC.id} {text}" for text in off_in(record.ecc)]


def check_run_memory(record: RunRecord, pack: RulePack) -> Iterator[Finding]:
    """What a run is not worth in closed, told before anybody enters it: a question then, since open takes it."""
    rules = pack.benchmarks.get(record.id.benchmark)
    if rules is None or pack.error_correction.value.category not in rules.categories.value:
        return
    for text in off_in(record.ecc):
        yield _broken(ECC, "run.json", text, pack, severity=Severity.REVIEW)


def told_before(record: RunRecord, pack: RulePack) -> Iterator[str]:
    """The same in lines for people, before a run is paid for."""
    for finding in check_run_memory(record, pack):
        yield f"{record.id}: {finding.found}; closed refuses what is measured so ({finding.rule}): see make doctor"


def check_error_correction(
    index: TreeIndex,
    submitter: PurePosixPath,
    manifest: Mapping[str, Any] | None,
    rows: Iterable[RowPlace],
    pack: RulePack,
) -> Iterator[Finding]:
    """What the manifest tells of each system's runs, where the rule holds. A tree without a manifest tells nothing."""
    if manifest is None:
        return
    for division, system in dict.fromkeys((place.division, place.system) for place in rows):
        path = submitter / "systems" / f"{system}.json"
        described = _description(index, path)
        if pack.error_correction.value.holds(division, str(described.get("system_type", ""))):
            yield from _system(path, _legs(manifest, system), _has_accelerators(described), pack)


def _system(path: PurePosixPath, legs: list[Mapping[str, Any]], accelerated: bool, pack: RulePack) -> Iterator[Finding]:
    told = [leg["ecc"] for leg in legs if isinstance(leg.get("ecc"), dict)]
    if len(told) < len(legs):
        found = f"the manifest does not tell of {len(legs) - len(told)} of {len(legs)} legs: not checked"
        yield _broken(UNKNOWN, path, found, pack, severity=Severity.NOTE)
    for part, words in _PARTS.items():
        read = [ecc.get(part) for ecc in told]
        why = next((text for ecc in told if ecc.get(part) is not True for text in [_source(ecc, part)]), "")
        if False in read:
            yield _broken(ECC, path, f"{words}: off in {read.count(False)} of {len(legs)} legs{why}", pack)
        elif any(on is not True for on in read) and (part == "host" or accelerated):
            yield _broken(UNKNOWN, path, f"{words}: not known{why}", pack)


def _broken(broken: Rule, path: object, found: str, pack: RulePack, severity: Severity | None = None) -> Finding:
    return broken.broken(path, found, severity=severity, source=pack.error_correction.source)


def _source(ecc: Mapping[str, Any], part: str) -> str:
    sources = ecc.get("sources")
    text = sources.get(part) if isinstance(sources, dict) else None
    return f" ({text})" if isinstance(text, str) else ""


def _legs(manifest: Mapping[str, Any], system: str) -> list[Mapping[str, Any]]:
    rows = manifest.get("rows")
    return [
        leg
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, dict) and row.get("system") == system and isinstance(row.get("legs"), list)
        for leg in row["legs"]
        if isinstance(leg, dict)
    ]


def _description(index: TreeIndex, path: PurePosixPath) -> Mapping[str, Any]:
    try:
        return index.read_object(path)
    except Unreadable:
        return {}  # told where the description is checked


def _has_accelerators(described: Mapping[str, Any]) -> bool:
    return str(described.get("accelerators_per_node", "0")).strip() not in ("", "0")
