"""The whole check: which parts are asked, what stands in the report, what becomes of parts that cannot be."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from harness.cli import check_gpu
from harness.errors import ConfigError
from harness.events import Event, Note, ignore
from harness.runs.gpu_check import served
from harness.runs.gpu_check.check import Check
from harness.runs.gpu_check.legs import LegSize
from harness.runs.gpu_check.report import Report, Status, failed, few, not_asked, passed
from harness.runs.gpu_check.settings import CheckSettings
from tests.engines.trtllm_double import make_checkpoint
from tests.runs.gpu_check.completions_server import VOCABULARY, Manners, serving

no_library = pytest.mark.skipif(find_spec("tensorrt_llm") is not None, reason="TensorRT-LLM is installed here")


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Connections that idle for less than a second, and a cache of the test's own."""
    monkeypatch.setattr(served, "KEEP_ALIVE_S", 0.2)
    monkeypatch.setattr(served, "_PATIENCE_S", 0.5)
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))


@pytest.fixture
def settings(tmp_path: Path) -> CheckSettings:
    return CheckSettings(
        server="trtllm-serve",
        checkpoint=make_checkpoint(tmp_path / "some-model", vocab_size=VOCABULARY),
        out=tmp_path / "out",
        data_dir=tmp_path / "data",
    )


def outcomes(report: Report) -> dict[str, str]:
    return {f"{each.where}: {each.name}": each.outcome.status.value for each in report.findings}


def seen(report: Report, name: str) -> str:
    return next(each.outcome.seen for each in report.findings if each.name == name)


@pytest.fixture
def small_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in data set takes ten seconds to make; what is asked of it here is one prompt."""
    from harness.benchmarks.base import Dataset
    from harness.engines.base import PromptTable

    def make(self: object, data_dir: Path, *, seed: int) -> None:
        (data_dir / "gpt-oss-120b").mkdir(parents=True)

    def dataset(self: object, data_dir: Path, which: Any) -> Dataset:
        return Dataset("small", which, PromptTable.from_lists([[200_008]]), ("a",), (None,), (), stand_in=True)

    monkeypatch.setattr("harness.benchmarks.gpt_oss_120b.benchmark.GptOss120b.make_dataset", make)
    monkeypatch.setattr("harness.benchmarks.gpt_oss_120b.benchmark.GptOss120b.dataset", dataset)


@no_library
@pytest.mark.usefixtures("small_data")
def test_a_server_that_runs_and_an_engine_that_cannot(settings: CheckSettings) -> None:
    notes: list[Event] = []
    with serving(Manners(idle_s=0.4)) as url:
        settings = dataclasses.replace(settings, endpoint=url, options={"stream_interval": 20, "max_seq_len": 200})
        report = Check(settings, ["check"], notes.append).run()
    assert outcomes(report) == {
        "server: starts": "passed",
        "server: memory": "not asked",
        "server: settings": "not asked",
        "server: ids out": "passed",
        "server: workers": "not asked",
        "server: end token": "passed",
        "server: chunks": "passed",
        "server: seeds": "passed",
        "server: usage": "passed",
        "server: unknown field": "passed",
        "server: too long": "passed",
        "server: keep-alive": "passed",
        "server: Offline leg": "not asked",
        "server: Server leg": "not asked",
        "in process: starts": "failed",
    }
    assert "token 200008, this checkpoint 50000" in seen(report, "Offline leg")
    assert "tensorrt_llm cannot be imported" in report.findings[-1].outcome.seen
    told = json.loads((settings.out / "gpu_check.json").read_text())
    assert [each["status"] for each in told["findings"]] == list(outcomes(report).values())
    assert told["facts"]["server"]["versions"] == {"trtllm-serve": "1.2.1"}
    assert told["facts"]["asked"]["options"] == {"stream_interval": 20, "max_seq_len": 200}
    assert {"versions", "command", "accelerators", "machine"} <= set(told["facts"])
    assert any(isinstance(each, Note) and "chunks: passed" in each.text for each in notes)


@no_library
@pytest.mark.usefixtures("small_data")
def test_what_would_not_end_in_time_is_not_begun(settings: CheckSettings) -> None:
    with serving(Manners(idle_s=0.4)) as url:
        hurried = dataclasses.replace(settings, endpoint=url, options={"max_seq_len": 200}, budget_s=5.0)
        report = Check(hurried, ["check"], ignore).run()
    told = outcomes(report)
    assert (told["server: legs"], told["in process: starts"]) == ("not asked", "not asked")
    assert "--budget_s" in seen(report, "legs")


def test_a_server_that_is_not_there_fails_and_the_next_part_is_asked(settings: CheckSettings) -> None:
    with serving(Manners()) as url:
        pass
    gone = dataclasses.replace(settings, endpoint=url, version="1.2", options={"max_seq_len": 200})
    report = Check(gone, ["check"], ignore).run()
    assert list(outcomes(report)) == ["server: starts", "in process: starts"]
    assert report.findings[0].outcome.status is Status.FAILED
    assert "no healthy trtllm-serve" in report.findings[0].outcome.seen


@no_library
@pytest.mark.usefixtures("small_data")
def test_a_version_that_has_no_list_yet_is_read_by_the_one_before(settings: CheckSettings) -> None:
    notes: list[object] = []
    with serving(Manners(idle_s=0.4, version="1.9.0rc2")) as url:
        newer = dataclasses.replace(settings, endpoint=url, options={"max_seq_len": 200})
        report = Check(newer, ["check"], notes.append).run()
    told = outcomes(report)
    assert told["server: starts"] == "passed"
    assert "tensorrt_llm cannot be imported" in report.findings[-1].outcome.seen, "as far as an engine comes here"
    assert report.facts["options_by_list_of"] == "1.3"
    assert any(
        isinstance(each, Note) and "TensorRT-LLM 1.9.0rc2: they are read by that of 1.3" in each.text for each in notes
    )


def test_a_server_that_is_not_what_was_asked_for(settings: CheckSettings) -> None:
    with serving(Manners()) as url:
        other = dataclasses.replace(settings, endpoint=url, version="1.3", parts=("server",))
        report = Check(other, ["check"], ignore).run()
    assert outcomes(report) == {"server: starts": "failed"}
    assert "has version 1.2.1, the configuration says 1.3" in report.findings[0].outcome.seen


def test_no_program_to_start(settings: CheckSettings) -> None:
    report = Check(dataclasses.replace(settings, version="1.2", parts=("server",)), ["check"], ignore).run()
    assert outcomes(report) == {"server: starts": "failed"}
    assert "trtllm-serve" in report.findings[0].outcome.seen


# -- settings and options ----------------------------------------------------------------------------------------------


def test_options_of_ours_and_of_the_user(settings: CheckSettings) -> None:
    own = {"kv_cache_config": {"free_gpu_memory_fraction": 0.5}, "num_postprocess_workers": 2}
    both = dataclasses.replace(settings, options=own, gpus=2, version="1.2")
    served_with = both.http_engine().options
    assert served_with["kv_cache_config"] == {"enable_block_reuse": False, "free_gpu_memory_fraction": 0.5}
    assert (served_with["tensor_parallel_size"], served_with["num_postprocess_workers"]) == (2, 2)
    in_process = both.own_engine()
    assert "num_postprocess_workers" not in in_process.options  # type: ignore[union-attr]
    assert in_process.options["stream_interval"] == 20  # type: ignore[union-attr]


def test_nothing_is_known_of_a_server_of_somebody_else(settings: CheckSettings) -> None:
    assert dataclasses.replace(settings, endpoint="http://h:1").started_with is None


@pytest.mark.parametrize(
    ("change", "says"),
    [({"checkpoint": None}, "trtllm-serve needs a checkpoint"), ({"parts": ("servers",)}, "'servers' is no part")],
)
def test_settings_that_cannot_be_meant(settings: CheckSettings, change: Mapping[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        dataclasses.replace(settings, **change)


@no_library
def test_nobody_knows_the_version(settings: CheckSettings) -> None:
    with pytest.raises(ConfigError, match="nobody says which TensorRT-LLM"):
        settings.http_engine()


def test_a_report_counts_and_lists() -> None:
    report = Report({"a": Status.PASSED})
    assert json.loads(report.to_json()) == {"schema": 1, "facts": {"a": "Status.PASSED"}, "findings": []}
    assert [outcome.status.value for outcome in (passed("x"), failed("x"), not_asked("x"))] == [
        "passed",
        "failed",
        "not asked",
    ]
    assert few([1, 2, 3], 2) == "[1, 2, …]"
    assert few([1]) == "[1]"


# -- the verb ----------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("small_data")
@pytest.mark.parametrize(("manners", "code"), [(Manners(idle_s=0.4), 0), (Manners(idle_s=0.4, ids=False), 1)])
def test_the_verb(
    settings: CheckSettings, manners: Manners, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = tmp_path / "options.yaml"
    options.write_text("max_seq_len: 200\nstream_interval: 20\n")
    with serving(manners) as url:
        words = [f"--checkpoint={settings.checkpoint}", f"--endpoint={url}/", "--parts=server", f"--options={options}"]
        words += [f"--out={settings.out}", f"--data_dir={settings.data_dir}"]
        assert check_gpu.run(words) == code
    printed = capsys.readouterr().out
    assert "keep-alive" in printed
    assert f"{'0' if code == 0 else '6'} failed" in printed
    assert "gpu_check.json" in printed


def test_nothing_passed_is_not_well(settings: CheckSettings) -> None:
    words = [f"--checkpoint={settings.checkpoint}", "--budget_s=0", "--parts=in_process", f"--out={settings.out}"]
    assert check_gpu.run(words) == 1


@pytest.mark.parametrize("content", ["- a\n", "3\n"])
def test_a_file_of_options_that_is_none(settings: CheckSettings, content: str, tmp_path: Path) -> None:
    path = tmp_path / "options.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError, match="no mapping"):
        check_gpu.run([f"--checkpoint={settings.checkpoint}", f"--options={path}", f"--out={settings.out}"])


@pytest.mark.parametrize("words", [["--gpus=0"], ["--port=x"], ["--server=vllm"], ["--parts="]])
def test_options_that_cannot_be_meant(words: list[str]) -> None:
    with pytest.raises(SystemExit):
        check_gpu.run(words)


# -- all of it but the GPU ---------------------------------------------------------------------------------------------


@pytest.mark.e2e
@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.torch
@pytest.mark.harmony
def test_all_of_it_with_the_torch_engine(standin_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.engines.launch.made import free_ports

    monkeypatch.delenv("HARNESS_CACHE_DIR")  # stand-in and digest are those that other tests made
    size = LegSize(output_cap=2, samples=8, min_duration_ms=100, server_queries=8, warmup=8, server_share=0.8)
    settings = CheckSettings(
        server="torch",
        checkpoint=None,
        out=tmp_path / "out",
        data_dir=standin_data,
        port=free_ports(),
        budget_s=3600,
        size=size,
    )
    report = Check(settings, ["check"], ignore).run()
    told = outcomes(report)
    not_on_processors = {
        "server: memory",
        "server: settings",
        "server: workers",
        "in process: memory",
        "in process: settings",
    }
    legs = {f"{where}: {leg} leg" for where in ("server", "in process") for leg in ("Offline", "Server")}
    assert {name for name, status in told.items() if status == "not asked"} == not_on_processors
    assert {name for name, status in told.items() if status == "failed"} <= legs, report.findings
    for leg in ("Offline", "Server"):
        assert "0 failed" in seen(report, f"{leg} leg")
