"""Servers for legs: started, found, or somebody else's; asked what they are in each case."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness.benchmarks.gpt_oss_120b import vocab
from harness.config.engines import HttpEngine
from harness.engines.launch.fleet import running
from harness.engines.launch.supervisor import below
from harness.errors import ConfigError, EngineDied, MissingError
from harness.events import ignore
from harness.runs.server_state import STATE, read_state, state_of
from harness.runs.servers import UNSEEN, digest_of, gpus_each, http_settings, server_plans, serving
from tests.engines.launch.made import Notes, fake_plan, free_ports
from tests.harness_process import living, wait_until
from tests.runs.fake_servers import fake_http_engine


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HARNESS_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("TIKTOKEN_ENCODINGS_BASE", str(tmp_path / "vocabulary"))
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "results" / "S" / "gpt-oss-120b"


class TestStarted:
    def test_what_is_told_of_them(self, tmp_path: Path, folder: Path) -> None:
        engine = fake_http_engine(tmp_path, replicas=2)
        with serving(engine, name="S/gpt-oss-120b", folder=folder, observer=ignore) as up:
            first = engine.launch.port
            assert up.endpoints == (("0", f"http://127.0.0.1:{first}"), ("1", f"http://127.0.0.1:{first + 1}"))
            assert (up.server, up.model, up.ending()) == ("trtllm-serve", "gpt-oss-120b", None)
            info = up.info
            assert (info.kind, info.vocab_size, info.max_total_tokens, info.slots) == ("http", 201_088, 35_840, 128)
            assert info.versions == {"trtllm-serve": "1.2.1"}
            assert info.replicas == ("0", "1")
            assert info.not_submittable == ()
            assert info.settings["options"] == engine.options
            assert info.checkpoint is not None
            assert (info.checkpoint.name, info.checkpoint.weight_data_type) == ("openai/gpt-oss-120b", "mxfp4")
            assert up.fleet is not None
            pids = [pid for leader in up.fleet.pids for pid in below(leader)]
            assert len(pids) == 2
            settings = http_settings(up, engine)
            assert json.loads(json.dumps(settings)) == settings | {"info": json.loads(json.dumps(settings["info"]))}
            assert settings["endpoints"] == [{"name": name, "url": url} for name, url in up.endpoints]
        assert not living(pids)
        assert (folder / "server-1.yaml").read_text().startswith("max_batch_size: 64\n")

    def test_its_environment(self, tmp_path: Path, folder: Path) -> None:
        first, second = server_plans(fake_http_engine(tmp_path, replicas=2), folder, make=True)
        assert (first.environment["CUDA_VISIBLE_DEVICES"], second.environment["CUDA_VISIBLE_DEVICES"]) == ("0", "1")
        assert first.environment["TIKTOKEN_ENCODINGS_BASE"] == str(tmp_path / "vocabulary")
        assert first.environment["XDG_CACHE_HOME"] == str(tmp_path / "cache" / "servers" / "xdg")

    @pytest.mark.parametrize("stubborn", [True, False])
    def test_in_a_container(self, tmp_path: Path, folder: Path, stubborn: bool) -> None:
        """A docker that writes the id it was asked to and runs what stands behind the image."""
        engine = fake_http_engine(tmp_path, *(["--ignores-term"] if stubborn else []))
        told = tmp_path / "told"
        docker = tmp_path / "bin" / "docker"
        docker.write_text(
            f"""#!/bin/sh
echo "$@" >> {told}
test "$1" = run || exit 0
while [ "$1" != img ]; do test "$1" = --cidfile && printf 0123abcd > "$2"; shift; done
shift
exec "$@"
"""
        )
        docker.chmod(0o755)
        content = engine.model_dump()
        content["launch"]["prefix"] = ["docker", "run", "--rm", "--gpus", '"device={gpus}"', "img"]
        engine = HttpEngine.model_validate(content)
        plans = server_plans(engine, folder, make=True)
        with running(plans, ready_s=60, observer=ignore, grace_s=0.3 if stubborn else 20):
            assert (folder / "server-0.cid").read_text() == "0123abcd"
        lines = told.read_text().splitlines()
        assert f"--volume {folder}:{folder}" in lines[0]
        assert "--env FAKE_WORDS" in lines[0]
        assert '--rm --gpus "device=0" img trtllm-serve' in lines[0]
        assert lines[1:] == ["rm --force 0123abcd"]
        assert not (folder / "server-0.cid").exists()

    def test_a_death_in_mid_run(self, tmp_path: Path, folder: Path) -> None:
        engine = fake_http_engine(tmp_path, "--dies-when", tmp_path / "now")
        with serving(engine, name="x", folder=folder, observer=ignore) as up:
            (tmp_path / "now").touch()
            wait_until(up.ending, "the end of the server")
            assert "ended with status 7" in str(up.ending())

    def test_what_is_kept_of_a_servers_own_account(self, tmp_path: Path, folder: Path) -> None:
        metrics = json.dumps([{"kvCacheStats": {"maxNumBlocks": 10, "tokensPerBlock": 32}}])
        with serving(fake_http_engine(tmp_path, "--metrics", metrics), name="x", folder=folder, observer=ignore) as up:
            assert up.info.settings["told"] == {"kv_cache_blocks": 10, "kv_cache_tokens": 320}

    def test_a_death_before(self, tmp_path: Path, folder: Path) -> None:
        engine = fake_http_engine(tmp_path, "--never-healthy", "--dies-after", 0.1)
        with (
            pytest.raises(EngineDied, match="the last words"),
            serving(engine, name="x", folder=folder, observer=ignore),
        ):
            pytest.fail("it was never healthy")

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("--version", "1.3.0"), "has version 1.3.0, the configuration says 1.2"),
            (("--max-model-len", 2048), "has max_model_len 2048, the configuration says 35840"),
        ],
    )
    def test_not_what_was_asked_for(
        self, tmp_path: Path, folder: Path, words: tuple[object, ...], message: str
    ) -> None:
        engine = fake_http_engine(tmp_path, *words)
        with pytest.raises(ConfigError, match=message), serving(engine, name="x", folder=folder, observer=ignore):
            pytest.fail("another server than asked for")

    def test_a_checkpoint_that_is_not_there_is_told_before_anything_starts(self, tmp_path: Path, folder: Path) -> None:
        checkpoint = {"name": "x", "path": str(tmp_path / "nowhere"), "weight_data_type": "mxfp4"}
        engine = fake_http_engine(tmp_path, checkpoint=checkpoint)
        with pytest.raises(MissingError, match="there is no such checkpoint"):
            serving(engine, name="x", folder=folder, observer=ignore).__enter__()
        assert not folder.exists()

    def test_weights_out_of_sight_are_a_reason_not_to_submit(self, tmp_path: Path, folder: Path) -> None:
        """As in a container, of which the fake's wrapper is one."""
        engine = fake_http_engine(tmp_path)
        content = engine.model_dump()
        content["checkpoint"]["path"] = "/inside/gpt-oss-120b"
        content["launch"]["prefix"] = ["env"]
        engine = HttpEngine.model_validate(content)
        with serving(engine, name="x", folder=folder, observer=ignore) as up:
            assert up.info.not_submittable == (UNSEEN,)
            assert (up.info.checkpoint, up.info.vocab_size, up.info.max_total_tokens) == (None, 0, 35_840)

    def test_nothing_says_how_long(self, tmp_path: Path, folder: Path) -> None:
        engine = fake_http_engine(tmp_path, options={})
        (tmp_path / "models" / "gpt-oss-120b" / "config.json").write_text('{"vocab_size": 5}')
        with (
            pytest.raises(ConfigError, match="nothing says how many tokens"),
            serving(engine, name="x", folder=folder, observer=ignore),
        ):
            pytest.fail("of unknown length")

    def test_the_checkpoint_says_how_long(self, tmp_path: Path, folder: Path) -> None:
        engine = fake_http_engine(tmp_path, options={"max_batch_size": 3})
        with serving(engine, name="x", folder=folder, observer=ignore) as up:
            assert (up.info.max_total_tokens, up.info.slots) == (131_072, 3)

    def test_a_vocabulary_is_handed_on_only_where_there_is_one(
        self, tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.delenv("TIKTOKEN_ENCODINGS_BASE")

        def find() -> Path:
            raise MissingError("none")

        monkeypatch.setattr(vocab, "find", find)
        (plan,) = server_plans(fake_http_engine(tmp_path), folder, make=True)
        assert "TIKTOKEN_ENCODINGS_BASE" not in plan.environment


class TestGpusEach:
    @pytest.mark.parametrize(
        ("changes", "count"),
        [
            ({"options": {}}, 1),
            ({"options": {"tensor_parallel_size": 4, "pipeline_parallel_size": 2}}, 8),
            ({"options": {"tensor_parallel_size": None}}, 1),
            ({"server": "vllm", "version": "0.32", "options": {"tensor-parallel-size": 2, "data_parallel_size": 2}}, 4),
            ({"server": "sglang", "version": "0.5", "options": {"tp_size": 8}}, 8),
        ],
    )
    def test_it_is_what_the_options_say(self, tmp_path: Path, changes: dict[str, Any], count: int) -> None:
        assert gpus_each(fake_http_engine(tmp_path, **changes)) == count

    def test_torch_takes_none(self, tmp_path: Path) -> None:
        torch = {"server": "torch", "version": None, "checkpoint": {"make": "tiny-gpt-oss"}, "options": {}}
        assert gpus_each(fake_http_engine(tmp_path, **torch)) == 0


class TestSomebodyElses:
    @pytest.fixture
    def url(self, tmp_path: Path) -> Iterator[str]:
        plan = fake_plan(tmp_path, free_ports(), "--model", "gpt-oss-120b")
        with running([plan], ready_s=60, observer=ignore):
            yield plan.url

    def test_are_asked(self, tmp_path: Path, folder: Path, url: str) -> None:
        engine = fake_http_engine(tmp_path, endpoints=[url])
        notes = Notes()
        with serving(engine, name="S/b", folder=folder, observer=notes) as up:
            assert (up.endpoints, up.model, up.fleet) == ((("0", url),), "gpt-oss-120b", None)
            assert up.ending() is None
        assert notes.lines == [f"S/b: asking the trtllm-serve servers at {url}"]
        assert not folder.exists()

    def test_are_not_there(self, tmp_path: Path, folder: Path) -> None:
        engine = fake_http_engine(tmp_path, endpoints=[f"http://127.0.0.1:{free_ports()}"])
        with pytest.raises(MissingError, match="no healthy trtllm-serve at"):
            serving(engine, name="x", folder=folder, observer=ignore).__enter__()

    def test_serve_nothing(self, tmp_path: Path, folder: Path, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
        from harness.engines.launch import probe

        monkeypatch.setattr(probe, "_entries", lambda _: [])
        engine = fake_http_engine(tmp_path, endpoints=[url])
        with pytest.raises(ConfigError, match="does not say which model"):
            serving(engine, name="x", folder=folder, observer=ignore).__enter__()


class TestKeptRunning:
    """What ``run_llm_server`` leaves in servers.json."""

    @pytest.fixture
    def engine(self, tmp_path: Path) -> HttpEngine:
        return fake_http_engine(tmp_path)

    def test_are_found_and_left_alone(self, engine: HttpEngine, folder: Path) -> None:
        with serving(engine, name="x", folder=folder, observer=ignore) as kept:
            assert kept.fleet is not None
            with state_of(folder, digest_of(engine), kept.endpoints, kept.fleet.pids):
                clients = {"processes": 1, "connections": 7}
                same = HttpEngine.model_validate(engine.model_dump() | {"clients": clients})
                notes = Notes()
                with serving(same, name="S/b", folder=folder, observer=notes) as up:
                    assert (up.endpoints, up.model, up.fleet) == (kept.endpoints, kept.model, None)
                    assert up.info == kept.info
                    assert up.ending() is None
                assert notes.lines == [f"S/b: the servers that run_llm_server (process {os.getpid()}) started are used"]
                assert kept.ending() is None
            assert not (folder / STATE).exists()

    def test_their_death_is_told(self, engine: HttpEngine, folder: Path) -> None:
        with serving(engine, name="x", folder=folder, observer=ignore) as kept:
            assert kept.fleet is not None
            with (
                state_of(folder, digest_of(engine), kept.endpoints, kept.fleet.pids),
                serving(engine, name="x", folder=folder, observer=ignore) as up,
            ):
                kept.fleet.stop()
                assert str(up.ending()).startswith(f"server 0 ({kept.endpoints[0][1]}) has gone")

    def test_another_configuration_is_refused(self, engine: HttpEngine, folder: Path) -> None:
        other = HttpEngine.model_validate(engine.model_dump() | {"options": {"max_batch_size": 1}})
        with serving(engine, name="x", folder=folder, observer=ignore) as kept:
            assert kept.fleet is not None
            with (
                state_of(folder, digest_of(engine), kept.endpoints, kept.fleet.pids),
                pytest.raises(MissingError, match="serves another configuration than this one"),
            ):
                serving(other, name="x", folder=folder, observer=ignore).__enter__()

    def test_the_note_of_a_starter_that_is_gone_does_not_count(self, engine: HttpEngine, folder: Path) -> None:
        folder.mkdir(parents=True)
        with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as gone:
            with state_of(folder, digest_of(engine), [("0", "http://127.0.0.1:1")], [gone.pid]):
                text = (folder / STATE).read_text()
                assert read_state(folder) is not None
            gone.kill()
        (folder / STATE).write_text(text)
        assert read_state(folder) is None

    def test_servers_that_outlive_their_starter_for_a_moment_do_not_count(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        with state_of(folder, "d", [("0", "u")], [os.getpid()]):
            state = read_state(folder)
            assert state is not None and state.ending() is None
            content = json.loads((folder / STATE).read_text())
        content["starter_started"] -= 1
        (folder / STATE).write_text(json.dumps(content))
        assert read_state(folder) is None
        gone = dataclasses.replace(state, starter_started=state.starter_started - 1)
        assert gone.ending() == f"run_llm_server (process {os.getpid()}) has gone, and its servers go with it"

    def test_a_later_process_of_the_same_number_is_another(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        with state_of(folder, "d", [("0", "u")], [os.getpid()]):
            content = json.loads((folder / STATE).read_text())
        content["servers"][0]["started"] -= 1
        (folder / STATE).write_text(json.dumps(content))
        assert read_state(folder) is None

    @pytest.mark.parametrize(
        "text", ["", "{", "[]", '{"servers": []}', '{"servers": [{}], "starter": 1, "digest": ""}']
    )
    def test_a_damaged_note(self, folder: Path, text: str) -> None:
        folder.mkdir(parents=True)
        (folder / STATE).write_text(text)
        assert read_state(folder) is None

    def test_digests(self, engine: HttpEngine) -> None:
        content = engine.model_dump()
        for change in ({"options": {}}, {"replicas": 2}, {"launch": content["launch"] | {"port": 1}}):
            assert digest_of(HttpEngine.model_validate(content | change)) != digest_of(engine)
        assert digest_of(HttpEngine.model_validate(content | {"clients": {"connections": 3}})) == digest_of(engine)
