from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.config import Project
from harness.errors import ConfigError, MissingError, UnknownName
from harness.runs.plan import Selection, notes, plan
from tests.harness_process import ROOT
from tests.runs.made_legs import AGENTIC, PACK

SYSTEM = {"system_name": "a", "number_of_nodes": 1, "cooling": None, "host_networking_topology": None}
SCENARIOS: dict[str, Any] = {"Server": {"target_qps": 4}, "Offline": {"target_qps": 10}}

SCRIPTED: dict[str, Any] = {"kind": "scripted"}


def add_system(
    project: Project, name: str, scenarios: dict[str, Any] = SCENARIOS, engine: dict[str, Any] = SCRIPTED
) -> None:
    folder = project.systems / name
    folder.mkdir(parents=True)
    (folder / "system.yaml").write_text(yaml.safe_dump(SYSTEM))
    content = {"engine": engine, "scenarios": scenarios}
    (folder / "gpt-oss-120b.yaml").write_text(yaml.safe_dump(content))


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.chdir(tmp_path)
    made = Project(tmp_path / "project")
    add_system(made, "BOX")
    return made


def names(project: Project, **selection: Any) -> list[str]:
    return [leg.name for leg in plan(project, Selection(**selection), PACK)]


def test_offline_goes_first_and_performance_before_accuracy(project: Project) -> None:
    assert names(project) == [
        "BOX/gpt-oss-120b/Offline/performance",
        "BOX/gpt-oss-120b/Offline/accuracy",
        "BOX/gpt-oss-120b/Server/performance",
        "BOX/gpt-oss-120b/Server/accuracy",
    ]


def test_the_order_asked_for_is_not_the_order_run(project: Project) -> None:
    backwards = {"scenarios": ["Server", "Offline"], "legs": ["accuracy", "performance"]}
    assert names(project, **backwards) == names(project)


def test_a_name_said_twice_is_run_once(project: Project) -> None:
    assert names(project, scenarios=["Server", "Server"], legs=["accuracy"] * 2, systems=["BOX", "BOX"]) == [
        "BOX/gpt-oss-120b/Server/accuracy"
    ]


def test_a_variant_takes_the_place_of_the_benchmarks_own_file(project: Project) -> None:
    guess = {"rate": "unmeasured", "times": {"another_engine": {"value": 7.0, "source": "a paper"}}}
    content = {"engine": SCRIPTED, "scenarios": {"Offline": {"target_qps": guess}}}
    (project.systems / "BOX" / "gpt-oss-120b.other.yaml").write_text(yaml.safe_dump(content))
    legs = plan(project, Selection(variant="other"), PACK)
    assert [leg.name for leg in legs] == ["BOX/gpt-oss-120b/Offline/performance", "BOX/gpt-oss-120b/Offline/accuracy"]
    said = "target_qps of Offline: unmeasured, first guess 7 (another_engine) = 7.00 samples/s"
    assert notes(legs) == [f"BOX/gpt-oss-120b/Offline: {said}"]
    with pytest.raises(UnknownName, match="unknown variant of gpt-oss-120b"):
        plan(project, Selection(variant="othr"), PACK)


def test_a_system_is_done_before_the_next(project: Project) -> None:
    add_system(project, "CRATE")
    legs = plan(project, Selection(systems=["CRATE", "BOX"], test_run=True), PACK)
    assert [leg.system for leg in legs] == ["CRATE"] * 4 + ["BOX"] * 4
    assert {leg.mode for leg in legs} == {"PerformanceOnly", "AccuracyOnly"}
    assert all(leg.test_run for leg in legs)


def test_of_several_systems_one_must_be_named(project: Project) -> None:
    add_system(project, "CRATE")
    with pytest.raises(ConfigError) as caught:
        plan(project, Selection(), PACK)
    assert caught.value.expected == "one of BOX, CRATE"
    assert caught.value.mend == "add --systems=<system>"


@pytest.mark.parametrize(
    ("selection", "near"),
    [
        ({"systems": ["BOXX"]}, "BOX"),
        ({"benchmarks": ["gpt-oss-20b"]}, "gpt-oss-120b"),
        ({"scenarios": ["offline"]}, "Offline"),
        ({"legs": ["performances"]}, "performance"),
        ({"legs": ["TEST7"]}, "TEST07"),
    ],
)
def test_names_that_are_not_known(project: Project, selection: dict[str, Any], near: str) -> None:
    with pytest.raises(UnknownName) as caught:
        plan(project, Selection(**selection), PACK)
    assert caught.value.mend == f"did you mean {near!r}?"


def test_a_benchmark_that_the_round_does_not_have(project: Project) -> None:
    (project.systems / "BOX" / "gpt-5.yaml").write_text((project.systems / "BOX" / "gpt-oss-120b.yaml").read_text())
    with pytest.raises(UnknownName, match="unknown benchmark 'gpt-5'"):
        plan(project, Selection(), PACK)


def test_a_scenario_that_the_round_does_not_have(project: Project) -> None:
    add_system(project, "CRATE", {"SingleStream": {"target_qps": 1}})
    with pytest.raises(UnknownName, match="unknown scenario 'SingleStream'"):
        plan(project, Selection(systems=["CRATE"]), PACK)


def test_the_rounds_duration_cannot_be_shortened(project: Project) -> None:
    least = PACK.min_duration_ms.value
    add_system(project, "CRATE", {"Offline": {"target_qps": 1, "min_duration_ms": least - 1}})
    with pytest.raises(ConfigError) as caught:
        plan(project, Selection(systems=["CRATE"]), PACK)
    assert f"is {least - 1}, the round demands {least}" in caught.value.what
    assert "--test_run" in (caught.value.mend or "")


def test_the_rounds_sample_count_cannot_be_lowered(project: Project) -> None:
    least = PACK.benchmark("gpt-oss-120b").datasets["performance"].value
    add_system(project, "CRATE", {"Offline": {"target_qps": 1, "min_query_count": least - 1}})
    with pytest.raises(ConfigError, match=f"is {least - 1}, the round demands {least}"):
        plan(project, Selection(systems=["CRATE"]), PACK)


def add_agentic(project: Project, scenarios: dict[str, Any], **more: Any) -> None:
    content = {"engine": SCRIPTED, "scenarios": scenarios, **more}
    (project.systems / "BOX" / f"{AGENTIC}.yaml").write_text(yaml.safe_dump(content))


def test_trajectories_have_the_rounds_scenario_and_two_for_analysis(project: Project) -> None:
    server = {"target_qps": 4, "target_latency_ms": 90_000}
    add_agentic(project, {"SingleStream": {"target_qps": 1}, "Offline": {"target_qps": 9}, "Server": server})
    legs = names(project, benchmarks=[AGENTIC], legs=["performance"])
    assert [name.split("/")[2] for name in legs] == ["Offline", "Server", "SingleStream"]


@pytest.mark.parametrize(
    ("scenarios", "more", "what", "where"),
    [
        ({"Server": {"target_qps": 4}}, {}, "has no target latency", "scenarios.Server.target_latency_ms"),
        (
            {"Offline": {"target_qps": 4, "target_latency_ms": 9}},
            {},
            "holds no latency to a limit there",
            "scenarios.Offline.target_latency_ms",
        ),
        (
            {"SingleStream": {"target_qps": 4, "target_latency_ms": 9}},
            {},
            "holds no latency to a limit there",
            "scenarios.SingleStream.target_latency_ms",
        ),
    ],
)
def test_latencies_of_trajectories_that_are_missing_or_mean_nothing(
    project: Project, scenarios: dict[str, Any], more: dict[str, Any], what: str, where: str
) -> None:
    add_agentic(project, scenarios, **more)
    with pytest.raises(ConfigError, match=what) as caught:
        plan(project, Selection(benchmarks=[AGENTIC]), PACK)
    assert caught.value.where == f"systems/BOX/{AGENTIC}.yaml: {where}"


@pytest.mark.parametrize(
    ("change", "what", "where"),
    [
        ({"agentic": {"repeats": 2}}, "gpt-oss-120b replays no trajectories", "agentic"),
        (
            {"scenarios": {"Server": {"target_qps": 4, "target_latency_ms": 9}}},
            "the target latency of gpt-oss-120b is the round's",
            "scenarios.Server.target_latency_ms",
        ),
    ],
)
def test_what_is_said_of_trajectories_is_refused_where_there_are_none(
    project: Project, change: dict[str, Any], what: str, where: str
) -> None:
    content = {"engine": SCRIPTED, "scenarios": SCENARIOS} | change
    (project.systems / "BOX" / "gpt-oss-120b.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(ConfigError, match=what) as caught:
        plan(project, Selection(), PACK)
    assert caught.value.where == f"systems/BOX/gpt-oss-120b.yaml: {where}"


def test_a_folder_that_is_no_project(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no systems/ folder"):
        plan(Project(tmp_path), Selection(), PACK)


@pytest.mark.parametrize("where", [".", "project"])
def test_a_stray_audit_config_stops_everything(project: Project, tmp_path: Path, where: str) -> None:
    (tmp_path / where / "audit.config").write_text("")
    with pytest.raises(ConfigError, match=r"stray audit\.config") as caught:
        plan(project, Selection(), PACK)
    assert caught.value.where is not None
    assert caught.value.where.endswith("audit.config")


# -- audits ------------------------------------------------------------------------------------------------------------

ALL = ["performance", "accuracy", "TEST07", "TEST09"]


@pytest.fixture
def audited(project: Project) -> Project:
    """The project with the audits' settings as the repository has them."""
    shutil.copytree(ROOT / "compliance", project.root / "compliance")
    return project


def test_audits_come_after_the_legs_that_they_audit(audited: Project) -> None:
    assert names(audited, legs=ALL[::-1]) == [
        f"BOX/gpt-oss-120b/{scenario}/{leg}" for scenario in ("Offline", "Server") for leg in ALL
    ]


def test_audits_run_only_where_they_are_named(audited: Project) -> None:
    assert {name.rpartition("/")[2] for name in names(audited)} == {"performance", "accuracy"}


def test_an_audit_has_the_rounds_settings_and_both_hashes(audited: Project) -> None:
    audits = {leg.leg: leg for leg in plan(audited, Selection(legs=["TEST07", "TEST09"]), PACK)}
    for test, rules in PACK.benchmark("gpt-oss-120b").audit_rules.items():
        leg = audits[test]
        assert leg.audit is not None
        assert leg.audit_rules == rules
        assert leg.mode == "PerformanceOnly"
        assert leg.audit.approved_sha256 == rules.config.sha256.value
        assert leg.audit.content == (audited.root / leg.audit.name).read_bytes()
    assert audits["TEST07"].which == "TEST07"
    assert audits["TEST09"].which == "performance"


def test_audits_without_their_settings(project: Project) -> None:
    with pytest.raises(MissingError, match="settings of TEST07 cannot be read") as caught:
        names(project, legs=["TEST07"])
    assert "compliance/" in (caught.value.mend or "")


def test_a_benchmark_that_the_round_does_not_audit(audited: Project) -> None:
    content = {"engine": SCRIPTED, "scenarios": SCENARIOS}
    (audited.systems / "BOX" / "qwen3-vl-235b-a22b.yaml").write_text(yaml.safe_dump(content))
    assert {leg.benchmark for leg in plan(audited, Selection(legs=["TEST07"]), PACK)} == {"gpt-oss-120b"}
    for named in (["qwen3-vl-235b-a22b"], ["gpt-oss-120b", "qwen3-vl-235b-a22b"]):
        with pytest.raises(ConfigError, match=r"the round v6\.1 has no audit TEST07 of qwen3-vl-235b-a22b"):
            plan(audited, Selection(benchmarks=named, legs=["TEST07"]), PACK)
    (audited.systems / "BOX" / "gpt-oss-120b.yaml").unlink()
    with pytest.raises(ConfigError, match="has no audit TEST07 or TEST09 of any of these benchmarks"):
        plan(audited, Selection(legs=["TEST07", "TEST09"]), PACK)
    assert len(plan(audited, Selection(), PACK)) == 2 * len(SCENARIOS)


def test_scenarios_that_share_an_engine_run_one_after_the_other(audited: Project) -> None:
    own = {"kind": "scripted", "slots": 4}
    add_system(
        audited,
        "CRATE",
        {
            "Interactive": {"target_qps": 2, "engine": own},
            "Server": {"target_qps": 4},
            "Offline": {"target_qps": 10},
        },
    )
    legs = plan(audited, Selection(systems=["CRATE"], legs=ALL), PACK)
    assert [leg.scenario for leg in legs] == ["Offline"] * 4 + ["Server"] * 4 + ["Interactive"] * 4
    engines = [leg.engine for leg in legs]
    assert sum(one != other for one, other in itertools.pairwise(engines)) == 1
    assert engines[-1].slots == 4


# -- engines -----------------------------------------------------------------------------------------------------------


def served(project: Project, **options: object) -> None:
    """CRATEx2: two servers of one GPU each."""
    engine = {
        "kind": "http",
        "server": "trtllm-serve",
        "version": "1.2",
        "checkpoint": {"name": "openai/gpt-oss-120b", "path": "/models/g", "weight_data_type": "mxfp4"},
        "replicas": 2,
        "options": {"max_seq_len": 35840, **options},
    }
    add_system(project, "CRATEx2", engine=engine)


def enter(project: Project, *divisions: str) -> None:
    entries = [
        {
            "division": division,
            "category": "datacenter",
            "availability": "available",
            "system": "CRATEx2",
            "benchmark": "gpt-oss-120b",
            "scenarios": ["Offline"],
        }
        for division in divisions
    ]
    text = {"round": "v6.1", "submitter": None, "entries": entries}
    (project.root / "submission.yaml").write_text(yaml.safe_dump(text))


def test_an_engine_is_checked_before_anything_starts(project: Project) -> None:
    served(project, max_batch_siz=4)
    with pytest.raises(UnknownName) as caught:
        plan(project, Selection(systems=["CRATEx2"]), PACK)
    assert caught.value.mend == "did you mean 'max_batch_size'?"
    assert (caught.value.where or "").startswith(str(project.systems / "CRATEx2" / "gpt-oss-120b.yaml:"))


def test_what_was_calculated_goes_with_the_leg(project: Project) -> None:
    served(project)
    legs = plan(project, Selection(systems=["CRATEx2"]), PACK)
    assert legs[0].engine_notes[0] == "GPUs: 2 replicas x tensor 1 x pipeline 1 x context 1 = 2 GPUs"
    assert "memory: not checked, system.yaml does not say accelerator_memory_capacity" in legs[0].engine_notes
    assert legs[0].stands_in_for is None
    lines = notes(legs)
    assert lines[0] == "CRATEx2/gpt-oss-120b/Offline: GPUs: 2 replicas x tensor 1 x pipeline 1 x context 1 = 2 GPUs"
    assert len(lines) == len(set(lines)) == 2 * len(legs[0].engine_notes), "each scenario once, whatever its legs"


@pytest.mark.parametrize("divisions", [("closed",), ("open", "closed"), ("network", "open")])
def test_closed_holds_where_any_entry_is_closed(project: Project, divisions: tuple[str, ...]) -> None:
    served(project)
    enter(project, *divisions)
    with pytest.raises(ConfigError, match="prefix reuse is on where"):
        plan(project, Selection(systems=["CRATEx2"]), PACK)


def test_open_is_told_alone(project: Project) -> None:
    served(project)
    enter(project, "open")
    legs = plan(project, Selection(systems=["CRATEx2"]), PACK)
    assert [note for note in legs[0].engine_notes if note.startswith("prefix reuse is on")]


def test_what_measurements_declare_is_held_against_the_checkpoint(project: Project) -> None:
    served(project)
    folder = project.root / "measurements" / "gpt-oss-120b"
    folder.mkdir(parents=True)
    (folder / "measurements.yaml").write_text("engines: {http: {weight_data_types: fp8}}\n")
    with pytest.raises(ConfigError, match="weight_data_type is mxfp4, measurements"):
        plan(project, Selection(systems=["CRATEx2"]), PACK)


def test_a_stand_in_is_planned_short_and_says_for_what(project: Project) -> None:
    served(project)
    legs = plan(project, Selection(systems=["CRATEx2"], stand_in=True), PACK)
    assert {leg.stands_in_for for leg in legs} == {"trtllm-serve"}
    assert all(leg.test_run for leg in legs)
    engine = legs[0].engine
    assert engine.kind == "http"
    assert (engine.server, engine.replicas) == ("torch", 2)
    assert legs[0].engine_notes[0].startswith("GPUs: 2"), "what is written is what is checked"


def test_a_stand_in_does_not_excuse_what_is_written(project: Project) -> None:
    served(project, tensor_parallel_size=4)
    with pytest.raises(ConfigError, match="the engine takes 8 GPUs"):
        plan(project, Selection(systems=["CRATEx2"], stand_in=True), PACK)


def test_a_stand_in_of_nothing_is_a_short_run(project: Project) -> None:
    legs = plan(project, Selection(stand_in=True), PACK)
    assert {leg.stands_in_for for leg in legs} == {None}
    assert all(leg.test_run for leg in legs)
