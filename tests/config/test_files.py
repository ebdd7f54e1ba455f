"""Systems, benchmark files and entries by name, and the invariants that stop bad ones before anything is started."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness.config import Project
from harness.config.models import UnmeasuredRate
from harness.errors import ConfigError, UnknownName
from harness.rules import load

REPOSITORY = Path(__file__).parents[2]
SCRIPTED: dict[str, Any] = {"engine": {"kind": "scripted"}, "scenarios": {"Offline": {"target_qps": 5}}}
SYSTEM: dict[str, Any] = {"system_name": "a", "number_of_nodes": 1, "cooling": None, "host_networking_topology": None}
ENTRY: dict[str, Any] = {
    "division": "open",
    "category": "datacenter",
    "availability": "rdi",
    "system": "BOX",
    "benchmark": "gpt-oss-120b",
    "scenarios": ["Offline"],
}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    folder = tmp_path / "systems" / "BOX"
    folder.mkdir(parents=True)
    write(folder / "system.yaml", SYSTEM)
    write(folder / "gpt-oss-120b.yaml", SCRIPTED)
    return Project(tmp_path)


def write(path: Path, content: object) -> None:
    path.write_text(yaml.safe_dump(content))


def write_benchmark(project: Project, **changes: object) -> None:
    write(project.systems / "BOX" / "gpt-oss-120b.yaml", SCRIPTED | changes)


def refused_benchmark(project: Project, **changes: object) -> ConfigError:
    write_benchmark(project, **changes)
    with pytest.raises(ConfigError) as caught:
        project.benchmark("BOX", "gpt-oss-120b")
    return caught.value


def test_the_names_there_are(project: Project) -> None:
    (project.systems / "not-a-system").mkdir()
    assert project.system_names() == ["BOX"]
    assert project.benchmark_names("BOX") == ["gpt-oss-120b"]


def test_a_variant_is_a_file_beside_the_benchmarks_own(project: Project) -> None:
    folder = project.systems / "BOX"
    write(folder / "gpt-oss-120b.slow.yaml", {"extends": "gpt-oss-120b.yaml", "seed": 7})
    write(
        folder / "qwen3.6-27b.yaml", SCRIPTED
    )  # a point in its name makes no variant of a benchmark that is not there
    assert project.benchmark_names("BOX") == ["gpt-oss-120b", "qwen3.6-27b"]
    assert project.variant_names("BOX", "gpt-oss-120b") == ["slow"]
    assert project.variant_names("BOX", "qwen3.6-27b") == []
    assert project.benchmark("BOX", "gpt-oss-120b").seed == 0
    assert project.benchmark("BOX", "gpt-oss-120b", "slow").seed == 7
    with pytest.raises(UnknownName, match="unknown variant of gpt-oss-120b 'slo'") as caught:
        project.benchmark("BOX", "gpt-oss-120b", "slo")
    assert caught.value.mend == "did you mean 'slow'?"


UNMEASURED: dict[str, Any] = {
    "rate": "unmeasured",
    "times": {"another_engine": {"value": 100.0, "source": "a paper"}, "gain": {"value": 3.0, "source": "ours"}},
    "over": {"loss": {"value": 2.0, "source": "ours"}},
}


def test_a_rate_that_nobody_has_measured_is_guessed_by_arithmetic_that_is_shown(project: Project) -> None:
    write_benchmark(project, scenarios={"Offline": {"target_qps": UNMEASURED}})
    rate = project.benchmark("BOX", "gpt-oss-120b").scenarios["Offline"].target_qps
    assert isinstance(rate, UnmeasuredRate)
    assert rate.guess == 150
    assert rate.arithmetic == "100 (another_engine) x 3 (gain) / 2 (loss) = 150.00 samples/s"


@pytest.mark.parametrize(
    "changes",
    [
        {"rate": "measured"},
        {"times": {}},
        {"times": {"guess": {"value": 100.0}}},  # without a source it is a number like any other
        {"times": {"guess": {"value": 0.0, "source": "a paper"}}},
    ],
)
def test_a_guess_without_its_reasons_is_refused(project: Project, changes: dict[str, Any]) -> None:
    refused_benchmark(project, scenarios={"Offline": {"target_qps": UNMEASURED | changes}})


def test_every_system_of_the_repository_resolves() -> None:
    project = Project(REPOSITORY)
    pack = load("v6.1")
    assert "CPU-torch" in project.system_names()
    for system in project.system_names():
        assert project.system(system).number_of_nodes >= 1
        assert project.benchmark_names(system)
        for benchmark in project.benchmark_names(system):
            for scenario in project.benchmark(system, benchmark).scenarios:
                assert pack.benchmark(benchmark).scenario(scenario)
    assert project.submission().round == pack.round


def test_a_system_that_is_not_there(project: Project) -> None:
    with pytest.raises(UnknownName) as caught:
        project.system("BOXX")
    assert caught.value.mend == "did you mean 'BOX'?"
    assert caught.value.expected == "one of BOX"


def test_a_benchmark_that_the_system_has_no_file_for(project: Project) -> None:
    with pytest.raises(UnknownName) as caught:
        project.benchmark("BOX", "gpt-oss-120")
    assert caught.value.mend == "did you mean 'gpt-oss-120b'?"
    assert str(project.systems / "BOX") == caught.value.where


@pytest.mark.parametrize("name", ["..", "../systems/BOX", "", "."])
def test_a_name_is_no_path(project: Project, name: str) -> None:
    with pytest.raises(UnknownName):
        project.system(name)
    with pytest.raises(UnknownName):
        project.benchmark("BOX", name)


def test_a_folder_that_is_no_project(tmp_path: Path) -> None:
    for ask in (Project(tmp_path).system_names, lambda: Project(tmp_path).system("BOX")):
        with pytest.raises(ConfigError, match="no systems/ folder") as caught:
            ask()
        assert caught.value.mend == "run from the project's folder"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"engine": {"kind": "script"}}, "scripted"),
        ({"engine": {"kind": "scripted", "slot": 1}}, "slots"),
        ({"engine": {"kind": "scripted", "slots": 0}}, "greater than or equal to 1"),
        ({"engine": {"kind": "scripted", "right": {"aime25": 1.5}}}, "less than or equal to 1"),
        ({"engine": {"kind": "torch", "checkpoint": {"make": "tiny-gpt-os"}}}, "tiny-gpt-oss"),
        ({"scenarios": {}}, "at least 1 item"),
        ({"scenarios": {"Offline": {"target_qps": 0}}}, "greater than 0"),
        ({"scenarios": {"Offline": {"target_qps": 1e13}}}, "less than or equal to 1000000000"),
        ({"scenarios": {"Offline": {"target_qps": float("inf")}}}, "finite"),
        ({"scenarios": {"Offline": {"target_qps": True}}}, "target_qps"),
        ({"scenarios": {"Offline": {"target_qps": "5"}}}, "target_qps"),
        ({"scenarios": {"Offline": {"target_qps": {"warmup_share": 2}}}}, "less than or equal to 1.5"),
        ({"scenarios": {"Offline": {"target_qps": {"warmup_shar": 1}}}}, "did you mean 'warmup_share'?"),
        ({"scenarios": {"Offline": {"target_qps": {}}}}, "target_qps"),
        ({"scenarios": {"Offline": {"target_qps": "fast"}}}, "'scenarios.Offline.target_qps': Input should be a valid"),
        ({"scenarios": {"Offline": {"target_qps": 5, "min_duration": 7}}}, "min_duration_ms"),
        ({"output_caps": {"performance": 1}}, "greater than or equal to 2"),
        ({"watchdog_s": 0}, "greater than 0"),
        ({"agentic": {"repeats": 0}}, "greater than or equal to 1"),
        ({"agentic": {"repeats": 10**9}}, "less than or equal to"),
        ({"agentic": {"salt": "foo"}}, "'upstream' or 'run'"),
        ({"agentic": {"max_concurrency": 0}}, "greater than or equal to 1"),
        ({"agentic": {"chat_template_kwargs": {"day": date(2026, 1, 1)}}}, "'day' is datetime.date(2026, 1, 1)"),
        ({"agentic": {"chat_template_kwargs": {"share": float("nan")}}}, "'share' is nan, which no JSON can say"),
        ({"agentic": {"chat_template_kwargs": {"a": {1: 2}}}}, "'a' is {1: 2}, which no JSON can say"),
        ({"agentic": {"chat_template_kwargs": {"a": 2**80}}}, "which no JSON can say"),
        ({"agentic": {"chat_template_kwargs": {"a": b"b"}}}, "'a' is b'b', which no JSON can say"),
        ({"seed": 1.5}, "integer"),
    ],
)
def test_what_a_benchmark_file_may_not_say(project: Project, changes: dict[str, Any], said: str) -> None:
    error = refused_benchmark(project, **changes)
    assert said in str(error)
    assert "gpt-oss-120b.yaml:" in (error.where or "")


def test_offline_cannot_be_a_share_of_itself(project: Project) -> None:
    error = refused_benchmark(project, scenarios={"Offline": {"target_qps": {"offline_share": 0.4}}})
    assert "Offline's own rate" in error.what


def test_offlines_audits_have_no_rate(project: Project) -> None:
    error = refused_benchmark(project, scenarios={"Offline": {"target_qps": 5, "audit_shares": {"TEST07": 0.5}}})
    assert "audit_shares says nothing there" in error.what


@pytest.mark.parametrize("shares", [{"TEST07": 0}, {"TEST07": 1.1}, {"TEST01": 0.5}, {"performance": 0.5}])
def test_shares_that_are_none(project: Project, shares: dict[str, float]) -> None:
    refused_benchmark(project, scenarios={"Server": {"target_qps": 5, "audit_shares": shares}})


def test_a_scenario_may_have_an_engine_of_its_own(project: Project) -> None:
    own = {"kind": "scripted", "slots": 7}
    scenarios = {"Offline": {"target_qps": 5}, "Interactive": {"target_qps": 2, "engine": own}}
    write_benchmark(project, scenarios=scenarios)
    file = project.benchmark("BOX", "gpt-oss-120b")
    assert file.engine_of("Offline") == file.engine
    assert file.engine_of("Interactive") == file.engine.model_copy(update={"slots": 7})


HTTP: dict[str, Any] = {
    "kind": "http",
    "server": "trtllm-serve",
    "version": "1.2",
    "checkpoint": {"name": "openai/gpt-oss-120b", "path": "/models/a", "weight_data_type": "mxfp4"},
    "options": {"max_batch_size": 8, "kv_cache_config": {"dtype": "fp8", "enable_block_reuse": False}},
}


def test_a_scenario_may_differ_in_some_options(project: Project) -> None:
    own = {"stream_interval": 20, "kv_cache_config": {"dtype": "auto"}}
    scenarios = {"Offline": {"target_qps": 5}, "Server": {"target_qps": 2, "engine_options": own}}
    write_benchmark(project, engine=HTTP, scenarios=scenarios)
    file = project.benchmark("BOX", "gpt-oss-120b")
    assert file.engine_of("Offline") == file.engine
    server = file.engine_of("Server")
    assert server.kind == "http"
    assert server.options == {
        "max_batch_size": 8,
        "kv_cache_config": {"dtype": "auto", "enable_block_reuse": False},
        "stream_interval": 20,
    }
    assert server.model_copy(update={"options": HTTP["options"]}) == file.engine


def test_options_are_of_an_engine_that_has_some(project: Project) -> None:
    error = refused_benchmark(project, scenarios={"Server": {"target_qps": 2, "engine_options": {"slots": 7}}})
    assert "Server: an engine of kind scripted has no options" in error.what


def test_a_scenario_may_have_fewer_servers_each_on_more_accelerators(project: Project) -> None:
    scenarios = {"Offline": {"target_qps": 5}, "Interactive": {"target_qps": 2, "replicas": 1}}
    write_benchmark(project, engine=HTTP | {"replicas": 4}, scenarios=scenarios)
    file = project.benchmark("BOX", "gpt-oss-120b")
    counts = [getattr(file.engine_of(scenario), "replicas", None) for scenario in ("Offline", "Interactive")]
    assert counts == [4, 1]


@pytest.mark.parametrize(
    ("engine", "replicas", "said"),
    [
        ({"kind": "scripted"}, 2, "Server: an engine of kind scripted has no replicas"),
        (HTTP | {"launch": {"port": 65535}}, 2, "the last of 2 replicas would listen on port 65536"),
        (HTTP, 0, "greater than or equal to 1"),
    ],
)
def test_replicas_of_a_scenario_that_cannot_be(
    project: Project, engine: dict[str, Any], replicas: int, said: str
) -> None:
    scenarios = {"Server": {"target_qps": 2, "replicas": replicas}}
    assert said in refused_benchmark(project, engine=engine, scenarios=scenarios).what


@pytest.mark.parametrize(
    ("sources", "said"),
    [
        ({"coolin": "a page"}, "'coolin', which is no key"),
        ({"sources": "a page"}, "'sources', which is no key"),
        ({"cooling": "a page"}, "'cooling', which has no value"),
        ({"hw_notes": "a page"}, "'hw_notes', which has no value"),
        ({"system_name": ""}, "at least 1 character"),
    ],
)
def test_a_source_is_of_a_value(project: Project, sources: dict[str, str], said: str) -> None:
    write(project.systems / "BOX" / "system.yaml", SYSTEM | {"sources": sources})
    with pytest.raises(ConfigError) as caught:
        project.system("BOX")
    assert said in caught.value.what


def test_server_may_be_a_share_of_offline(project: Project) -> None:
    write_benchmark(project, scenarios={"Server": {"target_qps": {"offline_share": 0.4}}})
    rate = project.benchmark("BOX", "gpt-oss-120b").scenarios["Server"].target_qps
    assert not isinstance(rate, float)
    assert rate.model_dump() == {"offline_share": 0.4}


def test_a_checkpoint_may_be_a_folder(project: Project) -> None:
    write_benchmark(project, engine={"kind": "torch", "checkpoint": "/models/tiny"})
    engine = project.benchmark("BOX", "gpt-oss-120b").engine
    assert engine.kind == "torch"
    assert engine.checkpoint == Path("/models/tiny")


def test_entries(project: Project) -> None:
    write(project.root / "submission.yaml", {"round": "v6.1", "submitter": None, "entries": [ENTRY]})
    assert project.submission().entries[0].system == "BOX"


@pytest.mark.parametrize(
    ("changes", "error", "said"),
    [
        ({"system": "BOXX"}, UnknownName, "did you mean 'BOX'?"),
        ({"benchmark": "gpt-oss-20b"}, UnknownName, "did you mean 'gpt-oss-120b'?"),
        ({"division": "opened"}, ConfigError, "'closed', 'open' or 'network'"),
        ({"scenarios": []}, ConfigError, "at least 1 item"),
        ({"submiter": "x"}, ConfigError, "unknown key"),
    ],
)
def test_what_an_entry_may_not_say(
    project: Project, changes: dict[str, Any], error: type[ConfigError], said: str
) -> None:
    write(project.root / "submission.yaml", {"round": "v6.1", "submitter": None, "entries": [ENTRY | changes]})
    with pytest.raises(error) as caught:
        project.submission()
    assert said in str(caught.value)


def test_a_submission_file_elsewhere(project: Project, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        project.submission(tmp_path / "other.yaml")
    write(tmp_path / "other.yaml", {"round": "v6.1", "submitter": "Acme", "entries": [ENTRY]})
    assert project.submission(tmp_path / "other.yaml").submitter == "Acme"
