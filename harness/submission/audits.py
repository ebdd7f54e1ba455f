"""An audit of a row as it is filed: its verdict as the run wrote it, its accuracy log truncated once."""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from harness.env import MLPERF_INFERENCE_DIR
from harness.errors import Refused
from harness.gate.audit_verdict import check_verdict
from harness.gate.findings import Severity
from harness.ledger.store import ACCURACY, StoredRun
from harness.rules import RulePack
from harness.rules.audits import AuditRules
from harness.submission import official
from harness.submission.official import Clone
from harness.submission.truncate import FiledAccuracy, file_audit


@dataclass(frozen=True, slots=True)
class FiledAudit:
    """``files`` to write, and ``notes`` on who verified and truncated. The verdict is filed as the run wrote it."""

    files: FiledAccuracy
    notes: tuple[str, ...]


def file_audit_leg(run: StoredRun, clone: Clone | None, pack: RulePack, scratch: Path) -> FiledAudit:
    """What is filed of an audit's run.

    Refused where the verdict's text and the run's record differ, and where the reference truncates to other bytes.
    """
    record, log = run.record, run.logs / ACCURACY
    rules = pack.benchmark(record.id.benchmark).audit_rules[record.id.leg]
    _check_verdict(run, rules)
    files = file_audit(log, pack)
    by = "nobody" if record.audit is None else record.audit.verifier
    verified = f"{record.id}: {record.note or f'verified by {by}'}"
    if clone is None:
        note = f"{record.id}: truncated by the harness ({MLPERF_INFERENCE_DIR.name} is not set)"
        return FiledAudit(files, (verified, note))
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        theirs = official.truncate(clone, log, None, Path(folder) / "truncation", record.id.leg)
    official.cross_check(files, *theirs, where=log)
    note = f"{record.id}: truncated by the reference at {clone.commit}, the harness's bytes agree"
    return FiledAudit(files, (verified, note))


def _check_verdict(run: StoredRun, rules: AuditRules) -> None:
    """The text is what a reader believes, the record what decided that the audit may be filed."""
    path, told = run.folder / rules.verdict_file.value, run.record.audit
    found = list(check_verdict(path.read_text(encoding="utf-8", errors="replace"), PurePosixPath(path.name), rules))
    failed = [finding for finding in found if finding.severity is Severity.REJECT]
    if told is not None and told.passed and failed:
        raise Refused(
            f"the run's record tells the verdict {told}",
            where=path,
            expected=f"what its text says: {failed[0].found}",
            mend="run the audit again; results are never mended by hand",
        )
