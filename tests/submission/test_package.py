from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from harness.errors import ConfigError, MissingError, Refused
from harness.events import StepProgress, ignore
from harness.ledger.hashes import source_sha256
from harness.ledger.record import Ecc, Fingerprint, Result, State
from harness.rules import load
from harness.submission import package
from harness.submission.manifest import NAME, read_manifest, strangers_in
from tests.gate.full_length import MEAN
from tests.submission.made_up import BENCHMARK, add_run, invalid, machine, make_project, submission

PACK = load("v6.1")


@pytest.fixture
def pack_up(project, store, names, tmp_path):
    """Packages the store's runs as the entries say."""

    def run(entries=None, *, demonstration=False, out=None, pack=PACK, observe=ignore):
        return package(
            store,
            project,
            entries or submission(),
            out or tmp_path / "out",
            demonstration=demonstration,
            pack=pack,
            names=names,
            observe=observe,
        )

    return run


def files(root: Path) -> set[str]:
    return {path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()}


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_layout(pack_up, store):
    report = pack_up()
    root = report.out / "open" / "Example"
    assert {path.name for path in root.iterdir()} == {"systems", "src", "documentation", "results", NAME}
    assert files(root / "documentation") == {"calibration.md", "bandwidth.md"}
    assert files(root / "systems") == {"box.json"}
    for scenario in ("Offline", "Server"):
        folder = root / "results" / "box" / BENCHMARK / scenario
        assert files(folder) == {
            "measurements.json",
            "README.md",
            "user.conf",
            "performance/run_1/mlperf_log_detail.txt",
            "performance/run_1/mlperf_log_summary.txt",
            "accuracy/mlperf_log_detail.txt",
            "accuracy/mlperf_log_summary.txt",
            "accuracy/mlperf_log_accuracy.json",
            "accuracy/accuracy.txt",
        }
    assert not [path for path in report.out.rglob("*") if path.name.startswith(".") or path.is_symlink()]
    assert not list(report.out.parent.glob(".out.*"))


def test_how_far_it_is_is_told(pack_up):
    told = []
    report = pack_up(observe=told.append)
    steps = [event for event in told if isinstance(event, StepProgress)]
    assert steps[0] == StepProgress("laying out", 0, len(report.rows), "rows")
    assert steps[-1] == StepProgress("laying out", len(report.rows), len(report.rows), "rows")


def test_logs_are_byte_for_byte_and_the_originals_as_they_were(pack_up, store):
    before = {path: sha256(path) for path in store.root.rglob("*") if path.is_file()}
    report = pack_up()
    assert {path: sha256(path) for path in store.root.rglob("*") if path.is_file()} == before
    filed = report.out / "open/Example/results/box" / BENCHMARK / "Server"
    run = store.latest_finished("box", BENCHMARK, "Server", "performance")
    for name in ("mlperf_log_detail.txt", "mlperf_log_summary.txt"):
        assert (filed / "performance/run_1" / name).read_bytes() == (run.logs / name).read_bytes()
    assert (filed / "user.conf").read_bytes() == (run.folder / "user.conf").read_bytes()


def test_the_accuracy_log_is_cut_and_its_hash_kept(pack_up, store):
    report = pack_up()
    root = report.out / "open/Example"
    run = store.latest_finished("box", BENCHMARK, "Offline", "accuracy")
    whole = run.logs / "mlperf_log_accuracy.json"
    accuracy = root / "results/box" / BENCHMARK / "Offline/accuracy"
    cut = (accuracy / "mlperf_log_accuracy.json").read_bytes()
    assert len(cut) == 4096 + 7 + 4096
    assert whole.read_bytes().startswith(cut[:4096])
    assert whole.read_bytes().endswith(cut[-4096:])
    lines = (accuracy / "accuracy.txt").read_text().splitlines()
    assert lines[0].startswith("Scored by the harness")
    assert lines[-1] == f"hash={sha256(whole)}"
    (entry,) = [t for t in read_manifest(root / NAME).truncated if "/Offline/" in t.path]
    assert (entry.sha256_full, entry.bytes_full) == (sha256(whole), whole.stat().st_size)


def test_the_manifest_knows_every_file_and_its_origin(pack_up):
    report = pack_up()
    root = report.out / "open/Example"
    manifest = read_manifest(root / NAME)
    assert {entry.path for entry in manifest.files} == files(root) - {NAME}
    assert all(sha256(root / entry.path) == entry.sha256 for entry in manifest.files)
    origins = {entry.path: entry.origin for entry in manifest.files}
    log = f"results/box/{BENCHMARK}/Server/performance/run_1/mlperf_log_detail.txt"
    assert origins[log] == f"run box/{BENCHMARK}/Server/performance#1 logs/mlperf_log_detail.txt"
    assert "said in systems/box/system.yaml" in origins["systems/box.json"]
    assert "host_memory_configuration" in origins["systems/box.json"]
    assert manifest.demonstration is False
    (row,) = [row for row in manifest.rows if row.scenario == "Server"]
    assert [(leg.leg, leg.attempt, leg.attempts_total) for leg in row.legs] == [
        ("performance", 1, 1),
        ("accuracy", 1, 1),
    ]
    assert strangers_in(report.out) == []


def test_the_description_is_in_the_rounds_order(pack_up):
    system = json.loads((pack_up().out / "open/Example/systems/box.json").read_text())
    assert list(system) == PACK.system_fields.required.value
    assert (system["submitter"], system["division"], system["status"]) == ("Example", "open", "rdi")
    assert system["accelerators_per_node"] == "0"
    assert system["hw_notes"] == ""


def test_measurements_say_what_ran(pack_up):
    folder = pack_up().out / "open/Example/results/box" / BENCHMARK / "Offline"
    assert json.loads((folder / "measurements.json").read_text()) == {
        "input_data_types": "int32",
        "retraining": "No",
        "starting_weights_filename": f"tiny (sha256 {'ab' * 32})",
        "weight_data_types": "bf16",
        "weight_transformations": "none but the cast to float32, in which the engine computes",
    }


def test_the_readme_tells_how_and_how_often(pack_up, store, loadgen_runs):
    add_run(store, loadgen_runs, "Offline", "performance", deviations=["output cap of the performance leg 32 tokens"])
    readme = (pack_up().out / "open/Example/results/box" / BENCHMARK / "Offline/README.md").read_text()
    assert "MLPerf Open" in readme
    assert "not verified by MLCommons Association" in readme
    assert "python -m harness run_harness --systems=box" in readme
    assert "performance: attempt 2 is filed, of 2" in readme
    assert "output cap of the performance leg 32 tokens" in readme
    assert f"{MEAN * 12792 / 601:g} Tokens/s" in readme
    assert f"performance, 6396 rows, sha256 {'cd' * 32}; accuracy, 4395 rows" in readme
    assert "laid out with `make submission`" in readme
    assert "| aime25 | 240 | 144 |" in readme
    assert "DEMONSTRATION" not in readme


def test_the_source_is_there_without_caches(pack_up, project):
    (project.root / "systems/box/.token").write_text("hf_" + "a" * 30)
    root = pack_up().out / "open/Example/src" / BENCHMARK / "torch"
    found = files(root)
    assert {"harness/submission/package.py", "harness/rules/v6.1.yaml", "systems/box/system.yaml", "Makefile"} <= found
    assert "measurements/bandwidth.template.md" in found
    assert {path for path in found if path.startswith("systems/_bases")} == {"systems/_bases/gpt-oss-120b.cpu.yaml"}
    assert not [path for path in found if "__pycache__" in path or "/." in path]


def test_the_source_has_the_variants_of_the_benchmark_and_what_they_build_on(pack_up, project):
    (project.root / "systems/_bases/other.yaml").write_text("extends: gpt-oss-120b.cpu.yaml\nseed: 3\n")
    variant = "extends: ../_bases/other.yaml\nengine: {kind: torch}\n"
    (project.root / f"systems/box/{BENCHMARK}.other.yaml").write_text(variant)
    found = files(pack_up().out / "open/Example/src" / BENCHMARK / "torch")
    assert {f"systems/box/{BENCHMARK}.other.yaml", "systems/_bases/other.yaml"} <= found


# --- what is refused --------------------------------------------------------------------------------------------


def test_a_leg_that_was_not_run(project, names, tmp_path, loadgen_runs):
    from harness.ledger.store import ResultsStore

    store = ResultsStore(project.root / "results")
    add_run(store, loadgen_runs, "Offline", "performance")
    add_run(store, loadgen_runs, "Offline", "accuracy", state=State.BROKEN)
    with pytest.raises(MissingError) as caught:
        package(
            store,
            project,
            submission(scenarios=["Offline"]),
            tmp_path / "out",
            demonstration=True,
            pack=PACK,
            names=names,
        )
    assert "--test_mode=AccuracyOnly" in str(caught.value)
    assert "1 attempts" in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_legs_that_were_not_run_alike_show_what_differs(pack_up, store, loadgen_runs):
    other = Fingerprint.of({"system": "box", "scenario": "Server", "versions.harness": "0.2.0"})
    add_run(store, loadgen_runs, "Server", "accuracy", fingerprint=other)
    with pytest.raises(Refused) as caught:
        pack_up(demonstration=True)
    assert 'versions.harness: "0.1.0" and "0.2.0"' in str(caught.value)
    assert "scenario" not in caught.value.what.replace("versions.harness", "")


def test_legs_differ_where_python_calls_them_equal(pack_up, store, loadgen_runs):
    add_run(store, loadgen_runs, "Offline", "performance", fingerprint=Fingerprint.of({"eager": False}))
    add_run(store, loadgen_runs, "Offline", "accuracy", fingerprint=Fingerprint.of({"eager": 0}))
    with pytest.raises(Refused, match="eager: false and 0"):
        pack_up()


def test_a_digest_does_not_stand_for_other_keys(pack_up, store, loadgen_runs):
    one = Fingerprint.of({"seed": 1})
    add_run(store, loadgen_runs, "Offline", "performance", fingerprint=one)
    add_run(
        store,
        loadgen_runs,
        "Offline",
        "accuracy",
        fingerprint=one.model_copy(update={"keys": {"seed": 2}}).model_dump(),
    )
    with pytest.raises(Refused, match="seed: 1 and 2"):
        pack_up()


def test_legs_of_different_machines(pack_up, store, loadgen_runs):
    add_run(store, loadgen_runs, "Server", "accuracy", machine=machine("1" * 64, host_processor_core_count=4))
    with pytest.raises(Refused, match="different machines: host_processor_core_count: 2 and 4"):
        pack_up(demonstration=True)


def test_rows_of_one_system_on_different_machines(pack_up, store, loadgen_runs):
    for leg in ("performance", "accuracy"):
        add_run(store, loadgen_runs, "Server", leg, machine=machine("1" * 64))
    with pytest.raises(Refused, match="runs of box were made on different machines"):
        pack_up()


def test_a_system_that_changed_between_rows(pack_up, store, loadgen_runs):
    for leg in ("performance", "accuracy"):
        add_run(store, loadgen_runs, "Server", leg, machine=machine(operating_system="Debian 13"))
    with pytest.raises(Refused, match="operating_system: 'Debian 1"):
        pack_up()


def test_invalid_runs(pack_up, store, loadgen_runs):
    add_run(store, loadgen_runs, "Server", "performance", verdict=invalid())
    with pytest.raises(Refused, match="performance run INVALID"):
        pack_up()


def test_a_verdict_that_its_findings_contradict(pack_up, store, loadgen_runs):
    add_run(store, loadgen_runs, "Offline", "performance", verdict=invalid().model_copy(update={"valid": True}))
    with pytest.raises(Refused, match="performance run INVALID"):
        pack_up()


def test_source_that_did_not_make_the_runs_is_told(pack_up, store, loadgen_runs):
    ran = {"harness": "0.1.0", "harness_source": source_sha256()}
    for leg in ("performance", "accuracy"):
        add_run(store, loadgen_runs, "Server", leg, versions=ran)
    told = [note for note in pack_up().notes if note.startswith("src/ is not what made")]
    assert [note.partition(".")[0] for note in told] == [f"src/ is not what made box/{BENCHMARK}/Offline/performance#1"]


def test_a_result_that_loadgen_did_not_log(pack_up, store, loadgen_runs):
    wrong = Result(key="result_tokens_per_second", value=99999.0, units="Tokens/s")
    add_run(store, loadgen_runs, "Offline", "performance", result=wrong)
    with pytest.raises(Refused, match="tells the result"):
        pack_up()


def test_a_run_without_hashes(pack_up, store, loadgen_runs):
    add_run(store, loadgen_runs, "Offline", "performance", hashes={})
    with pytest.raises(Refused, match="has no hash of a file"):
        pack_up()


@pytest.mark.parametrize(
    "name", ["../evil", "a/b", ".", "..", "Ünï", "x\ny", " x", "x ", "-x", "a\0b", "Demonstration"]
)
def test_a_submitter_that_is_no_folder_of_its_own(pack_up, tmp_path, name):
    before = files(tmp_path)
    with pytest.raises(ConfigError, match="cannot be the name of its folder"):
        pack_up(submission(name))
    assert files(tmp_path) == before


def test_a_submitter_with_blanks(pack_up):
    assert (pack_up(submission("Ex Ample Inc")).out / "open" / "Ex Ample Inc" / NAME).is_file()


def test_runs_that_may_not_be_filed(pack_up, store, loadgen_runs):
    add_run(store, loadgen_runs, "Server", "accuracy", not_submittable=["stand-in data set"])
    with pytest.raises(Refused, match="stand-in data set"):
        pack_up()


def test_a_newer_short_run_does_not_hide_a_full_one(pack_up, store, loadgen_runs):
    short = {"test_run": True, "not_submittable": ["short run (--test_run)"]}
    add_run(store, loadgen_runs, "Server", "performance", **short)
    report = pack_up()
    (row,) = [row for row in report.rows if row.scenario == "Server"]
    assert (row.legs[0].attempt, row.legs[0].attempts_total) == (1, 2)


def test_closed_allows_no_deviation(pack_up, store, loadgen_runs):
    for scenario in ("Offline", "Server"):
        for leg in ("performance", "accuracy"):
            add_run(store, loadgen_runs, scenario, leg, deviations=["output cap 32"])
    with pytest.raises(Refused, match="closed allows no deviation: output cap 32"):
        pack_up(submission(division="closed", benchmark=BENCHMARK), pack=without_audits())
    assert pack_up().rows  # open takes them


def test_closed_allows_no_prefix_reuse(pack_up, store, loadgen_runs):
    engine = {
        "kind": "http",
        "server": "trtllm-serve",
        "version": "1.2",
        "checkpoint": {"name": "openai/gpt-oss-120b", "path": "/models/g", "weight_data_type": "mxfp4"},
    }
    for scenario in ("Offline", "Server"):
        for leg in ("performance", "accuracy"):
            config = {"engine": engine, "scenarios": {scenario: {"target_qps": 5}}}
            add_run(store, loadgen_runs, scenario, leg, config=config)
    with pytest.raises(Refused, match="ENG-PREFIX-REUSE prefix reuse is on where kv_cache_config"):
        pack_up(submission(division="closed", benchmark=BENCHMARK), pack=without_audits())
    assert pack_up().rows  # open takes them


def without_audits():
    """The round, had it no audits for this benchmark."""
    rules = PACK.benchmarks[BENCHMARK]
    audits = rules.audits.model_copy(update={"value": []})
    return PACK.model_copy(update={"benchmarks": {BENCHMARK: rules.model_copy(update={"audits": audits})}})


def test_closed_wants_memory_that_corrects_its_errors(pack_up, store, loadgen_runs):
    off = Ecc(host=False, sources={"host": "dmidecode"})
    for scenario in ("Offline", "Server"):
        for leg in ("performance", "accuracy"):
            add_run(store, loadgen_runs, scenario, leg, ecc=off)
    with pytest.raises(Refused, match=r"SYS-ECC the host's memory: off \(dmidecode\)"):
        pack_up(submission(division="closed", benchmark=BENCHMARK), pack=without_audits())
    folder = pack_up(submission(benchmark=BENCHMARK)).out / "open/Example"
    told = json.loads((folder / NAME).read_text())["rows"][0]["legs"][0]["ecc"]
    assert told == {"host": False, "sources": {"host": "dmidecode"}}  # the gate reads it there


def test_closed_wants_the_bandwidth_said(store, names, tmp_path):
    project = make_project(tmp_path / "unsaid", bandwidth=None)
    closed = submission(division="closed")
    with pytest.raises(Refused, match=r"system\.yaml: bandwidth"):
        package(store, project, closed, tmp_path / "out", demonstration=False, pack=without_audits(), names=names)
    out = package(store, project, closed, tmp_path / "out", demonstration=True, pack=PACK, names=names).out
    folder = out / "closed/Demonstration"
    assert "bandwidth of box is unknown" in (folder / "DEMONSTRATION").read_text()
    assert "Nobody has stated or measured" in (folder / "documentation/bandwidth.md").read_text()


def test_both_divisions_at_once(pack_up):
    entries = [*submission().entries, *submission(division="closed", scenarios=["Offline"]).entries]
    report = pack_up(submission().model_copy(update={"entries": entries}), demonstration=True)
    assert sorted(path.name for path in report.out.iterdir()) == ["closed", "open"]
    assert strangers_in(report.out) == []
    for division in ("closed", "open"):
        root = report.out / division / "Demonstration"
        assert json.loads((root / "systems/box.json").read_text())["division"] == division
        assert {row.division for row in read_manifest(root / NAME).rows} == {division}


def test_one_system_in_both_categories(pack_up):
    offline = submission(scenarios=["Offline"]).entries
    server = submission(scenarios=["Server"], category="edge").entries
    both = submission().model_copy(update={"entries": [*offline, *server]})
    system = json.loads((pack_up(both).out / "open/Example/systems/box.json").read_text())
    assert system["system_type"] == "datacenter,edge"
    server = submission(scenarios=["Server"], availability="preview").entries
    with pytest.raises(ConfigError, match="preview and as rdi"):
        pack_up(submission().model_copy(update={"entries": [*offline, *server]}))


def test_a_row_that_is_entered_twice(pack_up):
    with pytest.raises(ConfigError, match="entered twice: open/box/gpt-oss-120b/Offline"):
        pack_up(submission(scenarios=["Offline", "Server", "Offline"]))


def test_what_nobody_said_is_named_with_its_mend(store, names, tmp_path):
    project = make_project(tmp_path / "unsaid", cooling=None, host_memory_configuration=None)
    with pytest.raises(Refused) as caught:
        package(store, project, submission(None), tmp_path / "out", demonstration=False, pack=PACK, names=names)
    text = str(caught.value)
    assert "edit submission.yaml: submitter" in text
    assert "edit systems/box/system.yaml: cooling" in text
    assert "edit systems/box/system.yaml: host_memory_configuration" in text


def test_a_log_that_changed_since_the_run(pack_up, store):
    run = store.latest_finished("box", BENCHMARK, "Server", "performance")
    with (run.logs / "mlperf_log_detail.txt").open("a") as file:
        file.write("\n")
    with pytest.raises(Refused, match="not what the run wrote"):
        pack_up()


@pytest.mark.parametrize("name", ["logs/mlperf_log_accuracy.json", "accuracy.txt"])
def test_an_accuracy_file_that_changed_or_is_gone(pack_up, store, name):
    run = store.latest_finished("box", BENCHMARK, "Server", "accuracy")
    with (run.folder / name).open("a") as file:
        file.write("\n")
    with pytest.raises(Refused, match="not what the run wrote"):
        pack_up()
    (run.folder / name).unlink()
    with pytest.raises(MissingError, match="gone"):
        pack_up()


def test_a_round_that_is_not_the_packs(pack_up):
    with pytest.raises(ConfigError):
        pack_up(submission().model_copy(update={"round": "v9"}))


# --- demonstrations ---------------------------------------------------------------------------------------------


def test_a_demonstration_says_so_everywhere(store, names, tmp_path, loadgen_runs):
    project = make_project(tmp_path / "unsaid", cooling=None, hw_notes="a box")
    add_run(store, loadgen_runs, "Server", "performance", verdict=invalid(), not_submittable=["stand-in checkpoint"])
    report = package(store, project, submission(None), tmp_path / "out", demonstration=True, pack=PACK, names=names)
    root = report.out / "open" / "Demonstration"
    assert [path.name for path in (report.out / "open").iterdir()] == ["Demonstration"]
    system = json.loads((root / "systems/box.json").read_text())
    assert system["submitter"] == "Demonstration"
    assert system["cooling"] == "unknown (demonstration)"
    note = (root / "DEMONSTRATION").read_text()
    readme = (root / "results/box" / BENCHMARK / "Server/README.md").read_text()
    for text in (note, readme, system["hw_notes"], system["sw_notes"]):
        assert "DEMONSTRATION, not a submission" in text
        assert "stand-in checkpoint" in text
        assert "INVALID" in text
    assert system["hw_notes"].endswith(". a box")
    assert '"' not in system["hw_notes"]
    assert "cooling" in note
    offline = (root / "results/box" / BENCHMARK / "Offline/README.md").read_text()
    assert "DEMONSTRATION" in offline
    manifest = read_manifest(root / NAME)
    assert manifest.demonstration
    (row,) = [row for row in manifest.rows if row.scenario == "Server"]
    assert "stand-in checkpoint" in row.not_submittable
    assert report.unknown == ("box: cooling: nobody has said it; edit systems/box/system.yaml: cooling",)


def test_a_demonstration_cannot_show_a_number_as_unknown(pack_up, store, loadgen_runs):
    for scenario in ("Offline", "Server"):
        for leg in ("performance", "accuracy"):
            add_run(store, loadgen_runs, scenario, leg, machine=machine(accelerators_per_node=None))
    with pytest.raises(Refused, match="accelerators_per_node"):
        pack_up(demonstration=True)


# --- secrets ----------------------------------------------------------------------------------------------------


def test_names_in_a_log_are_findings_and_the_log_stays_as_it_is(pack_up, store, loadgen_runs):
    run = add_run(store, loadgen_runs, "Server", "performance", text="from buildhost7 10.1.2.3 in /home/zaphod/runs\n")
    report = pack_up()
    log = f"results/box/{BENCHMARK}/Server/performance/run_1/mlperf_log_detail.txt"
    in_log = [finding for finding in report.findings if finding.path == log]
    assert {finding.kind for finding in in_log} == {"host name", "address", "home folder", "user name"}
    assert not any(secret in finding.masked for finding in in_log for secret in ("buildhost7", "10.1.2.3", "zaphod"))
    lines = (run.logs / "mlperf_log_detail.txt").read_text().count("\n")
    assert {finding.line for finding in in_log} == {lines}
    filed = report.out / "open/Example" / log
    assert filed.read_bytes() == (run.logs / "mlperf_log_detail.txt").read_bytes()


def test_a_key_in_a_log_stops_the_package(pack_up, store, loadgen_runs, tmp_path):
    key = "hf_" + "Q" * 30
    add_run(store, loadgen_runs, "Server", "performance", text=f"token {key}\n")
    with pytest.raises(Refused, match="key or token") as caught:
        pack_up(demonstration=True)
    assert key not in str(caught.value)
    assert not (tmp_path / "out").exists()


# --- placing ----------------------------------------------------------------------------------------------------


def test_its_own_tree_is_replaced_and_kept(pack_up, tmp_path):
    first = pack_up()
    assert first.previous is None
    second = pack_up()
    assert second.previous == tmp_path / "out.previous-1"
    assert strangers_in(second.previous) == []
    assert pack_up().previous == tmp_path / "out.previous-2"


@pytest.mark.parametrize("change", ["added", "changed", "missing", "foreign", "file"])
def test_what_somebody_else_made_is_not_replaced(pack_up, tmp_path, change):
    out = tmp_path / "out"
    if change == "foreign":
        out.mkdir()
        (out / "thesis.txt").write_text("years of work")
    elif change == "file":
        out.write_text("x")
    else:
        readme = pack_up().out / "open/Example/results/box" / BENCHMARK / "Server/README.md"
        target = readme.with_name("notes.txt") if change == "added" else readme
        if change == "missing":
            target.unlink()
        else:
            target.write_text("mine")
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    with pytest.raises(Refused):
        pack_up()
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    assert not list(tmp_path.glob(".out.*"))


def test_an_empty_folder_is_free(pack_up, tmp_path):
    (tmp_path / "out").mkdir()
    assert pack_up().previous is None


def test_no_space_leaves_nothing_behind(pack_up, tmp_path, monkeypatch):
    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("shutil.copyfile", full)
    with pytest.raises(MissingError, match="No space left"):
        pack_up()
    assert not [path for path in tmp_path.iterdir() if "out" in path.name]


def test_a_disk_that_fills_up_is_named_by_what_was_written(pack_up, tmp_path, monkeypatch):
    def full(source, target):
        raise OSError(28, "No space left on device", str(source), None, str(target))

    monkeypatch.setattr("shutil.copyfile", full)
    with pytest.raises(MissingError) as caught:
        pack_up()
    assert str(tmp_path / ".out.") in caught.value.where
    assert "free space" in caught.value.mend


def test_a_place_that_cannot_be_written_to(pack_up, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(MissingError) as caught:
        pack_up(out=tmp_path / "file" / "out")
    assert "another with --out" in caught.value.mend


@pytest.mark.parametrize("out", [".", ".."])
def test_a_target_without_a_name(pack_up, tmp_path, monkeypatch, out):
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path / "empty")
    with pytest.raises(Refused, match="no name of its own"):
        pack_up(out=Path(out))
    assert not list((tmp_path / "empty").iterdir())


@pytest.mark.parametrize("path", ["/etc/hostname", "../../../../etc/hostname"])
def test_a_manifest_that_leads_out_of_its_tree(pack_up, path):
    manifest = pack_up().out / "open" / "Example" / NAME
    data = json.loads(manifest.read_text())
    data["files"][0]["path"] = path
    manifest.write_text(json.dumps(data))
    with pytest.raises(Refused, match="not in the tree"):
        pack_up()


@pytest.mark.parametrize("before", [True, False])
def test_an_interrupt_between_the_renames_costs_nothing(pack_up, tmp_path, monkeypatch, before):
    out = pack_up().out
    tree = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    rename = Path.rename

    def interrupted(self, target):
        if self == out or before:
            rename(self, target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "rename", interrupted)
        pack_up()
    kept = out if out.exists() else tmp_path / "out.previous-1"
    assert {path: (kept / path.relative_to(out)).read_bytes() for path in tree} == tree
    assert not list(tmp_path.glob(".out.*"))
