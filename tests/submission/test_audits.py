from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from harness.cli.main import main
from harness.env import MLPERF_INFERENCE_DIR
from harness.errors import ConfigError, MissingError, Refused, UnknownName
from harness.gate import check_tree
from harness.ledger.hashes import sha256
from harness.ledger.record import Fingerprint, State, Verdict
from harness.ledger.store import ResultsStore
from harness.rules import load
from harness.submission import official, package
from harness.submission.manifest import NAME, read_manifest, strangers_in
from harness.submission.truncate import file_audit
from tests.gate.made_audits import AUDITS, TEXTS
from tests.submission.fake_clone import make_clone
from tests.submission.made_up import BENCHMARK, SCENARIOS, add_closed, add_run, audit, invalid, machine, submission
from tests.submission.real_clone import CLONE, needs_clone

PACK = load("v6.1")
CLOSED = submission(division="closed")
OFFLINE = submission(division="closed", scenarios=["Offline"])


@pytest.fixture
def store(project, loadgen_runs) -> ResultsStore:
    """Both rows of a closed result, complete."""
    store = ResultsStore(project.root / "results")
    add_closed(store, loadgen_runs)
    return store


@pytest.fixture
def pack_up(project, store, names, tmp_path):
    def run(entries=OFFLINE, *, demonstration=False, **options):
        return package(
            store, project, entries, tmp_path / "out",
            demonstration=demonstration, pack=PACK, names=names, **options,
        )  # fmt: skip

    return run


def row(report, scenario="Offline", home="closed/Example") -> Path:
    return report.out / home / "results/box" / BENCHMARK / scenario


def run_of(store, leg, scenario="Offline"):
    return store.latest_finished("box", BENCHMARK, scenario, leg)


def fail(store, loadgen_runs, leg, value, **changed):
    """A newer attempt of an Offline audit that failed with this value."""
    text = TEXTS[leg].replace("TEST PASS", "TEST FAIL").replace("pass: True", "pass: False")
    verdict = invalid("AUDIT-VERDICT", "no line TEST PASS").model_copy(update={"loadgen": "VALID"})
    made = {"verdict": verdict, "audit": audit(leg, value=value), "verdict_text": text, **changed}
    return add_run(store, loadgen_runs, "Offline", leg, **made)


# --- what is laid out -------------------------------------------------------------------------------------------


def test_layout(pack_up, store):
    report = pack_up(CLOSED)
    for scenario in SCENARIOS:
        for name, rules in AUDITS.items():
            folder = row(report, scenario) / name
            assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == {
                "performance/run_1/mlperf_log_detail.txt",
                "performance/run_1/mlperf_log_summary.txt",
                "accuracy/mlperf_log_accuracy.json",
                "accuracy/accuracy.txt",
                rules.verdict_file.value,
            }
            run = run_of(store, name, scenario)
            for log in ("mlperf_log_detail.txt", "mlperf_log_summary.txt"):
                assert (folder / "performance/run_1" / log).read_bytes() == (run.logs / log).read_bytes()
            verdict = rules.verdict_file.value
            assert (folder / verdict).read_bytes() == (run.folder / verdict).read_bytes()
            whole = run.logs / "mlperf_log_accuracy.json"
            assert (folder / "accuracy/accuracy.txt").read_bytes() == f"hash={sha256(whole)}\n".encode()
            assert (folder / "accuracy/mlperf_log_accuracy.json").stat().st_size == 4096 + 7 + 4096


def test_the_manifest_tells_of_the_audits(pack_up, store, loadgen_runs):
    add_run(store, loadgen_runs, "Offline", "TEST07")
    report = pack_up()
    manifest = read_manifest(report.out / "closed/Example" / NAME)
    (entry,) = manifest.rows
    assert [(leg.leg, leg.attempt, leg.attempts_total) for leg in entry.legs] == [
        ("performance", 1, 1), ("accuracy", 1, 1), ("TEST07", 2, 2), ("TEST09", 1, 1),
    ]  # fmt: skip
    assert {leg.fingerprint for leg in entry.legs} == {entry.fingerprint}
    hashes = {Path(t.path).parts[-3]: t.sha256_full for t in manifest.truncated}
    for leg in ("TEST07", "TEST09"):
        assert hashes[leg] == sha256(run_of(store, leg).logs / "mlperf_log_accuracy.json")
    origins = {entry.path: entry.origin for entry in manifest.files}
    verdict = f"results/box/{BENCHMARK}/Offline/TEST07/verify_accuracy.txt"
    assert origins[verdict] == f"run box/{BENCHMARK}/Offline/TEST07#2 verify_accuracy.txt"
    assert strangers_in(report.out) == []


def test_the_readme_tells_of_the_audits(pack_up, store, loadgen_runs):
    add_run(store, loadgen_runs, "Offline", "TEST07")
    readme = (row(pack_up()) / "README.md").read_text()
    assert "TEST07 PASS, exact_match 61.616 (at least 60.698), verified by mlcommons/inference @ bbb" in readme
    assert "TEST09 PASS, mean_output_tokens 1300.000 (1150.38 to 1406.02)" in readme
    assert "- TEST07: attempt 2 is filed, of 2\n- TEST09: attempt 1 is filed, of 1\n" in readme
    assert "TEST07, 990 rows" in readme


def test_open_has_no_audits(pack_up):
    report = pack_up(submission(scenarios=["Offline"]))
    assert not list(report.out.rglob("TEST0*"))
    assert "| Audits | none |" in (row(report, home="open/Example") / "README.md").read_text()


# --- what is refused --------------------------------------------------------------------------------------------


def test_audits_that_were_not_run(project, loadgen_runs, names, tmp_path):
    store = ResultsStore(project.root / "results")
    for leg in ("performance", "accuracy", "TEST09"):
        add_run(store, loadgen_runs, "Offline", leg)
    add_run(store, loadgen_runs, "Offline", "TEST07", state=State.BROKEN)
    options = {"pack": PACK, "names": names}
    with pytest.raises(Refused, match=r"closed needs the audit TEST07: .* no finished run \(1 attempts\)") as caught:
        package(store, project, OFFLINE, tmp_path / "out", demonstration=False, **options)
    assert caught.value.exit_code == 1
    assert 'make run_audit_test07 RUN_ARGS="--systems=box' in caught.value.mend
    assert "TEST09" not in str(caught.value)
    assert not (tmp_path / "out").exists()
    report = package(store, project, OFFLINE, tmp_path / "out", demonstration=True, **options)
    assert "closed needs the audit TEST07" in (report.out / "closed/Demonstration/DEMONSTRATION").read_text()
    assert [path.name for path in report.out.rglob("TEST0*")] == ["TEST09"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"fingerprint": Fingerprint.of({"system": "box", "scenario": "Offline"})}, "not run alike: versions.harness"),
        ({"machine": machine("1" * 64, host_memory_capacity="1 GiB")}, "different machines: host_memory_capacity"),
    ],
)
def test_an_audit_of_another_configuration(pack_up, store, loadgen_runs, changed, why):
    add_run(store, loadgen_runs, "Offline", "TEST09", **changed)
    with pytest.raises(Refused, match=why) as caught:
        pack_up()
    assert "run_audit_test09" in caught.value.mend
    report = pack_up(submission(scenarios=["Offline"]), demonstration=True)
    assert [path.name for path in report.out.rglob("TEST0*")] == ["TEST07"]
    assert any("TEST09 is not laid out" in note and why in note for note in report.notes)


@pytest.mark.parametrize(
    ("leg", "value", "said"),
    [("TEST07", 60.606, "TEST07 FAIL, exact_match 60.606"), ("TEST09", 8.0, "TEST09 FAIL, mean_output_tokens 8.000")],
)
def test_a_failed_audit_is_for_demonstrations(pack_up, store, loadgen_runs, leg, value, said):
    fail(store, loadgen_runs, leg, value)
    with pytest.raises(Refused, match=said):
        pack_up()
    report = pack_up(demonstration=True)
    home = report.out / "closed/Demonstration"
    assert said in (home / "DEMONSTRATION").read_text()
    filed = row(report, home="closed/Demonstration")
    assert said in (filed / "README.md").read_text()
    assert "TEST FAIL" in (filed / leg / AUDITS[leg].verdict_file.value).read_text().splitlines()
    assert said in json.loads((home / "systems/box.json").read_text())["sw_notes"]


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"verdict": invalid("AUDIT-COVERAGE", "989 rows")}, r"TEST07 run INVALID \(AUDIT-COVERAGE 989 rows\)"),
        ({"verdict": Verdict(valid=False, loadgen="VALID", findings=[])}, "TEST07 run INVALID"),
        ({"verdict": Verdict(valid=True, loadgen="INVALID", findings=[])}, "TEST07 run INVALID"),
        ({"audit": None}, "nobody verified the audit"),
        ({"not_submittable": ["stand-in data set"]}, "stand-in data set"),
    ],
)
def test_an_audit_that_may_not_be_filed(pack_up, store, loadgen_runs, changed, why):
    add_run(store, loadgen_runs, "Offline", "TEST07", **changed)
    with pytest.raises(Refused, match=why):
        pack_up()


def test_a_deviation_of_an_audit_is_one_of_the_row(pack_up, store, loadgen_runs):
    add_run(store, loadgen_runs, "Offline", "TEST07", deviations=["output cap of the TEST07 leg 32 tokens"])
    with pytest.raises(Refused, match="closed allows no deviation: output cap of the TEST07 leg"):
        pack_up()


@pytest.mark.parametrize("leg", AUDITS)
def test_a_verdict_that_the_record_contradicts(pack_up, store, loadgen_runs, leg):
    text = TEXTS[leg].replace("TEST PASS", "TEST FAIL")
    add_run(store, loadgen_runs, "Offline", leg, verdict_text=text)
    with pytest.raises(Refused, match="record tells the verdict PASS") as caught:
        pack_up()
    assert "no line TEST PASS" in caught.value.expected


@pytest.mark.parametrize("name", ["verify_accuracy.txt", "logs/mlperf_log_accuracy.json", "logs/mlperf_log_detail.txt"])
def test_a_file_that_changed_since_the_audit(pack_up, store, name):
    path = run_of(store, "TEST07").folder / name
    path.write_text(path.read_text() + "\n")
    with pytest.raises(Refused, match="not what the run wrote"):
        pack_up()


def test_a_verdict_that_is_gone(pack_up, store):
    (run_of(store, "TEST09").folder / "verify_output_len.txt").unlink()
    with pytest.raises(MissingError, match="a file of the run is gone"):
        pack_up()


def test_the_hash_of_a_log_that_was_truncated_before_is_not_taken(store, tmp_path):
    whole = run_of(store, "TEST09").logs / "mlperf_log_accuracy.json"
    cut = tmp_path / "mlperf_log_accuracy.json"
    cut.write_bytes(file_audit(whole, PACK).log)
    with pytest.raises(Refused, match="truncated before"):
        file_audit(cut, PACK)


# --- attempts that are asked for --------------------------------------------------------------------------------


def test_an_older_attempt_is_filed_where_it_is_named(pack_up, store, loadgen_runs):
    fail(store, loadgen_runs, "TEST07", 60.606)
    first = f"box/{BENCHMARK}/Offline/TEST07#1"
    with pytest.raises(Refused) as caught:
        pack_up()
    assert f"--attempts={first}" in caught.value.mend
    report = pack_up(attempts=[first])
    (entry,) = read_manifest(report.out / "closed/Example" / NAME).rows
    assert {leg.leg: (leg.attempt, leg.attempts_total, leg.named) for leg in entry.legs} == {
        "performance": (1, 1, None), "accuracy": (1, 1, None), "TEST07": (1, 2, True), "TEST09": (1, 1, None),
    }  # fmt: skip
    readme = (row(report) / "README.md").read_text()
    assert "TEST07: attempt 1 is filed, of 2, asked for by its number" in readme
    assert f"`make submission ARGS=--attempts={first}`" in readme.replace("'", "")


def test_an_attempt_of_an_open_row(pack_up, store, loadgen_runs):
    add_run(store, loadgen_runs, "Offline", "performance")
    report = pack_up(submission(scenarios=["Offline"]), attempts=[f"box/{BENCHMARK}/Offline/performance#1"])
    (packed,) = report.rows
    assert [(leg.leg, leg.attempt, leg.attempts_total) for leg in packed.legs] == [
        ("performance", 1, 2), ("accuracy", 1, 1),
    ]  # fmt: skip
    with pytest.raises(ConfigError, match="of no leg that is filed"):  # open files no audit
        pack_up(submission(scenarios=["Offline"]), attempts=[f"box/{BENCHMARK}/Offline/TEST07#1"])


def test_what_is_not_as_good_is_not_offered(pack_up, store, loadgen_runs):
    other = Fingerprint.of({"system": "other"})
    add_run(store, loadgen_runs, "Offline", "performance", verdict=invalid())
    add_run(store, loadgen_runs, "Offline", "performance", fingerprint=other)
    add_run(store, loadgen_runs, "Offline", "performance", verdict=invalid())
    with pytest.raises(Refused) as caught:
        pack_up()
    assert "--attempts" in caught.value.mend
    assert "performance#1" in caught.value.mend
    assert not any(f"performance#{n}" in caught.value.mend for n in (2, 3))


def test_an_attempt_of_another_configuration_is_not_made_right_by_its_name(pack_up, store, loadgen_runs):
    other = Fingerprint.of({"system": "other"})
    run = add_run(store, loadgen_runs, "Offline", "accuracy", fingerprint=other)
    add_run(store, loadgen_runs, "Offline", "accuracy")
    with pytest.raises(Refused, match="not run alike"):
        pack_up(attempts=[str(run.record.id)])


def test_names_of_attempts_that_cannot_be_meant(pack_up, store, loadgen_runs):
    row_of = f"box/{BENCHMARK}"
    with pytest.raises(UnknownName, match="unknown run"):
        pack_up(attempts=[f"{row_of}/Offline/TEST07#9"])
    with pytest.raises(ConfigError, match="of no leg that is filed"):
        pack_up(attempts=[f"{row_of}/Server/TEST07#1"])
    add_run(store, loadgen_runs, "Offline", "TEST07", state=State.INTERRUPTED)
    with pytest.raises(ConfigError, match="it is interrupted"):
        pack_up(attempts=[f"{row_of}/Offline/TEST07#2"])
    add_run(store, loadgen_runs, "Offline", "TEST07")
    with pytest.raises(ConfigError, match="two attempts are named for one leg"):
        pack_up(attempts=[f"{row_of}/Offline/TEST07#1", f"{row_of}/Offline/TEST07#3"])


def test_the_verb_takes_names_of_attempts(project, store, loadgen_runs, monkeypatch, capsys):
    monkeypatch.chdir(project.root)
    (project.root / "submission.yaml").write_text(yaml.safe_dump(CLOSED.model_dump()))
    assert main(["submission", "--out=first"]) == 0
    fail(store, loadgen_runs, "TEST07", 60.606)
    assert main(["submission", "--out=second"]) == 1
    assert "TEST07 FAIL, exact_match 60.606" in " ".join(capsys.readouterr().err.split())
    assert main(["submission", "--out=second", f"--attempts=box/{BENCHMARK}/Offline/TEST07#1"]) == 0
    assert "TEST07 1 of 2" in capsys.readouterr().out
    verdict = f"closed/Example/results/box/{BENCHMARK}/Offline/TEST07/verify_accuracy.txt"
    assert (project.root / "second" / verdict).read_bytes() == (project.root / "first" / verdict).read_bytes()
    assert main(["check_submission", "--input=second"]) == 0


# --- the gate and the reference ---------------------------------------------------------------------------------


def test_the_gate_has_nothing_against_a_closed_tree(pack_up):
    report = check_tree(pack_up(CLOSED).out, PACK)
    assert [str(finding) for finding in report.findings if finding.severity.value == "reject"] == []
    assert len(report.rows) == 2


def test_the_references_truncation_of_an_audit_is_the_cross_check(pack_up, tmp_path, monkeypatch):
    monkeypatch.setenv(MLPERF_INFERENCE_DIR.name, str(make_clone(tmp_path / "clone")))
    notes = pack_up().notes
    for leg in AUDITS:
        assert any(f"{leg}#1: truncated by the reference" in note for note in notes)
        assert any(f"{leg}#1: verified by mlcommons/inference @" in note for note in notes)


def official_checker(tree: Path, cwd: Path) -> str:
    program = CLONE / "tools/submission/submission_checker/main.py"
    arguments = ["--input", str(tree), "--version", PACK.round, "--csv", "summary.csv"]
    done = subprocess.run(
        [sys.executable, str(program), *arguments],
        cwd=cwd, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert "SUMMARY: submission looks OK" in done.stderr, done.stderr[-3000:]
    return (cwd / "summary.csv").read_text()


@needs_clone
def test_the_official_checker_accepts_a_closed_tree(pack_up, tmp_path, monkeypatch):
    monkeypatch.setenv(MLPERF_INFERENCE_DIR.name, str(CLONE))
    report = pack_up(CLOSED)
    assert sum("truncated by the reference" in note for note in report.notes) == 2 * (1 + len(AUDITS))
    rows = official_checker(report.out, tmp_path).splitlines()[1:]
    assert len(rows) == 2
    assert all("closed" in row and "83.13" in row for row in rows)


@needs_clone
def test_the_official_checker_accepts_an_open_demonstration_with_audits(pack_up, store, loadgen_runs, tmp_path):
    fail(store, loadgen_runs, "TEST07", 1.0)
    report = pack_up(submission(None), demonstration=True)
    assert len(list(report.out.rglob("TEST0*"))) == 4
    assert len(official_checker(report.out, tmp_path).splitlines()) == 1 + 2


@needs_clone
@pytest.mark.parametrize("size", [4, 4095, 4096, 8192, 10_239, 10_240, 60_000])
def test_the_reference_truncates_an_audit_to_the_same_bytes(tmp_path, size):
    log = tmp_path / "mlperf_log_accuracy.json"
    log.write_bytes((b'{ "seq_id" : 0, "qsl_idx" : 1, "data" : "00", "token_count" : 1 },\n' * 2000)[:size])
    theirs = official.truncate(official.Clone(CLONE, None), log, None, tmp_path / "scratch", "TEST07")
    official.cross_check(file_audit(log, PACK), *theirs, where=log)


def whole_again(tree: Path, store: ResultsStore, scenario: str) -> None:
    """Puts the logs as LoadGen wrote them in place of the truncated ones, and takes the hashes away."""
    for leg, folder in (("accuracy", "accuracy"), *((name, f"{name}/accuracy") for name in AUDITS)):
        run = run_of(store, leg, scenario)
        place = tree / "closed/Example/results/box" / BENCHMARK / scenario / folder
        shutil.copy(run.logs / "mlperf_log_accuracy.json", place)
        if leg == "accuracy":
            shutil.copy(run.folder / "accuracy.txt", place)
        else:
            (place / "accuracy.txt").unlink()


def truncate_tree(tree: Path, backup: Path) -> None:
    program = CLONE / "tools/submission/truncate_accuracy_log.py"
    arguments = ["--input", str(tree), "--submitter", "Example", "--backup", str(backup)]
    subprocess.run([sys.executable, str(program), *arguments], capture_output=True, timeout=120, check=True)


@needs_clone
def test_the_tree_is_the_one_that_the_reference_truncates(pack_up, store, tmp_path):
    ours = pack_up(CLOSED).out
    theirs = shutil.copytree(ours, tmp_path / "theirs")
    for scenario in SCENARIOS:
        whole_again(theirs, store, scenario)
    assert len(strangers_in(theirs)) == len(SCENARIOS) * 2 * (1 + len(AUDITS))  # each log, and the hash beside it
    truncate_tree(theirs, tmp_path / "backup")
    assert strangers_in(theirs) == []


@needs_clone
def test_a_tree_that_is_truncated_once_more_loses_the_hashes_and_the_gate_says_so(pack_up, tmp_path):
    tree = pack_up(CLOSED).out
    truncate_tree(tree, tmp_path / "backup")
    assert {Path(line.partition(": ")[0]).parts[-3] for line in strangers_in(tree)} == set(AUDITS)
    rejects = {finding.rule for finding in check_tree(tree, PACK).findings if finding.severity.value == "reject"}
    assert "AUDIT-HASH" in rejects
