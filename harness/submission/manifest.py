"""MANIFEST.json: what is in a submitter's folder, byte for byte, where each file came from, and which runs made it."""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath

from pydantic import BaseModel, ConfigDict, ValidationError

from harness.ledger import hashes
from harness.ledger.record import Ecc, RunRecord

NAME = "MANIFEST.json"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class MadeBy(_Strict):
    """The program that made the tree."""

    harness: str


class FileEntry(_Strict):
    """One file: path below the submitter's folder, sha256, and ``run <id> <file>``, ``generated`` or a source file."""

    path: str
    sha256: str
    origin: str


class EngineEntry(_Strict):
    """The engine of a run: its kind, and the packages that computed, with versions."""

    kind: str
    versions: dict[str, str]


class LegEntry(_Strict):
    """Which attempt of a leg was filed, of how many, and what it ran with (None in manifests that do not tell).

    ``accelerators`` is how many were found on the machine when the leg started, ``reasoning_effort`` that of the
    prompts, ``ecc`` whether memory corrected its errors then. ``named`` is whether the attempt was asked for by its id;
    else it is the newest.
    """

    leg: str
    attempt: int
    attempts_total: int
    run: str
    fingerprint: str | None = None
    engine: EngineEntry | None = None
    accelerators: int | None = None
    ecc: Ecc | None = None
    reasoning_effort: str | None = None
    named: bool | None = None

    @classmethod
    def of(
        cls,
        leg: str,
        record: RunRecord,
        attempts_total: int,
        *,
        reasoning_effort: str | None = None,
        named: bool | None = None,
    ) -> LegEntry:
        """The entry of the attempt that is filed for a leg."""
        return cls(
            leg=leg,
            attempt=record.id.attempt,
            attempts_total=attempts_total,
            run=str(record.id),
            fingerprint=record.fingerprint.digest,
            engine=EngineEntry(kind=record.engine.kind, versions=record.engine.versions),
            accelerators=record.machine.accelerators,
            ecc=record.ecc,
            reasoning_effort=reasoning_effort,
            named=named,
        )


class RowEntry(_Strict):
    """One result row: the fingerprint that its legs share, and all that speaks against filing it."""

    division: str
    system: str
    benchmark: str
    scenario: str
    fingerprint: str
    legs: list[LegEntry]
    not_submittable: list[str]
    deviations: list[str]


class TruncatedEntry(_Strict):
    """An accuracy log that was truncated: hash and size of the whole one."""

    path: str
    sha256_full: str
    bytes_full: int


class SecretEntry(_Strict):
    """A hit of the search for secrets, masked."""

    path: str
    line: int
    kind: str
    masked: str


class Manifest(_Strict):
    """The whole of it. It lists every file of the submitter's folder but itself."""

    round: str
    demonstration: bool
    made_by: MadeBy
    files: list[FileEntry]
    rows: list[RowEntry]
    truncated: list[TruncatedEntry]
    findings: list[SecretEntry]

    def text(self) -> str:
        """As it is written; what is not told is left out."""
        return json.dumps(self.model_dump(mode="json", exclude_none=True), indent=1, sort_keys=False) + "\n"


def read_manifest(path: Path) -> Manifest | None:
    """The manifest at ``path``; None where it is none that this program wrote."""
    try:
        return Manifest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError, ValueError):
        return None


def strangers_in(tree: Path) -> list[str]:
    """What in a tree is not just as its manifests say: added, changed or missing files, by path. Empty: it is ours."""
    manifests = sorted(tree.glob(f"*/*/{NAME}"))
    if not manifests:
        return [f"{tree.name}: no {NAME} in it"]
    known = {path.relative_to(tree).as_posix() for path in manifests}
    wrong: list[str] = []
    for path in manifests:
        manifest = read_manifest(path)
        if manifest is None:
            wrong.append(f"{path.relative_to(tree)}: not a manifest")
            continue
        for entry in manifest.files:
            file = path.parent / entry.path
            if ".." in PurePosixPath(entry.path).parts or not file.is_relative_to(path.parent):
                wrong.append(f"{entry.path}: not in the tree")
                continue
            known.add(file.relative_to(tree).as_posix())
            if file.is_symlink() or not file.is_file():
                wrong.append(f"{file.relative_to(tree)}: missing")
            elif hashes.sha256(file) != entry.sha256:
                wrong.append(f"{file.relative_to(tree)}: changed")
    present = {path.relative_to(tree).as_posix() for path in tree.rglob("*") if not path.is_dir() or path.is_symlink()}
    return wrong + [f"{path}: added" for path in sorted(present - known)]
