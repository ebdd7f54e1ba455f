from __future__ import annotations

import json

from harness.submission.manifest import EngineEntry, LegEntry, MadeBy, Manifest, RowEntry, read_manifest
from tests.submission.made_up import add_run

OLD_LEG = {"leg": "performance", "attempt": 1, "attempts_total": 2, "run": "box/b/Offline/performance#1"}


def manifest(leg: LegEntry) -> Manifest:
    row = RowEntry(
        division="open", system="box", benchmark="b", scenario="Offline",
        fingerprint="f", legs=[leg], not_submittable=[], deviations=[],
    )  # fmt: skip
    return Manifest(
        round="v6.1", demonstration=False, made_by=MadeBy(harness="1"),
        files=[], rows=[row], truncated=[], findings=[],
    )  # fmt: skip


def test_a_leg_tells_what_it_ran_with(store, loadgen_runs):
    record = add_run(store, loadgen_runs, "Offline", "performance").record
    leg = LegEntry.of("performance", record, 3)
    assert (leg.leg, leg.run, leg.attempt, leg.attempts_total) == ("performance", str(record.id), record.id.attempt, 3)
    assert leg.engine == EngineEntry(kind="torch", versions={"torch": "2.13.0"})
    assert leg.fingerprint == record.fingerprint.digest
    assert leg.accelerators == record.machine.accelerators


def test_what_a_leg_tells_comes_back(store, loadgen_runs, tmp_path):
    made = manifest(LegEntry.of("performance", add_run(store, loadgen_runs, "Offline", "performance").record, 1))
    (tmp_path / "MANIFEST.json").write_text(made.text())
    assert read_manifest(tmp_path / "MANIFEST.json") == made


def test_a_manifest_that_does_not_tell_is_still_one(tmp_path):
    made = manifest(LegEntry.model_validate(OLD_LEG))
    assert json.loads(made.text())["rows"][0]["legs"] == [OLD_LEG]  # nothing is made up for what it did not tell
    (tmp_path / "MANIFEST.json").write_text(made.text())
    assert read_manifest(tmp_path / "MANIFEST.json") == made
