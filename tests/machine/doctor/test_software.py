from __future__ import annotations

import platform
from importlib import metadata
from pathlib import Path

import pytest

from harness.machine.doctor import packages, software
from harness.machine.doctor.needs import Server
from harness.machine.facts import Unreadable
from tests.machine.doctor.made_host import FAIL, NOTHING, OK, UNKNOWN, WARN, asked, made, needing, states

REQUIRES = [
    "mlcommons-loadgen==6.0.17",
    "numpy>=1.26",
    "torch==2.13.0; extra == 'torch'",
    "transformers==5.17.0; extra == 'torch'",
    "openai-harmony==0.0.8; extra == 'gpt-oss'",
]


@pytest.fixture
def installed(monkeypatch):
    """Says what is installed, by package and version."""

    def say(**versions: str) -> None:
        there = {name.replace("_", "-"): version for name, version in versions.items()}

        def version(package: str) -> str:
            try:
                return there[package]
            except KeyError:
                raise metadata.PackageNotFoundError(package) from None

        monkeypatch.setattr(metadata, "version", version)
        monkeypatch.setattr(metadata, "requires", lambda distribution: REQUIRES)

    return say


@pytest.mark.parametrize(
    ("versions", "state", "missing"),
    [
        ({"mlcommons_loadgen": "6.0.17"}, OK, False),
        ({"mlcommons_loadgen": "6.0.16"}, FAIL, False),
        ({"mlcommons_loadgen": "6.0.170"}, FAIL, False),
        ({}, FAIL, True),
    ],
)
def test_loadgen_as_pinned(tmp_path, installed, versions, state, missing):
    installed(**versions)
    found = asked(software.loadgen, made(tmp_path))
    assert (*states(found), found.expected) == (state, missing, "==6.0.17")


def test_loadgen_of_this_environment_is_the_pinned_one(tmp_path: Path) -> None:
    assert states(asked(software.loadgen, made(tmp_path))) == (OK, False)
    assert states(asked(software.python, made(tmp_path))) == (OK, False)


def test_a_harness_that_is_not_installed(tmp_path, monkeypatch):
    monkeypatch.setattr(packages, "DISTRIBUTION", "no-such-distribution")
    for ask in (software.loadgen, software.extras, software.python):
        found = asked(ask, made(tmp_path))
        assert states(found) == (UNKNOWN, False)
        assert "is not installed" in found.source


@pytest.mark.parametrize(("version", "state"), [("3.10.2", OK), ("3.12.9", OK), ("3.13.0", FAIL), ("3.9.7", FAIL)])
def test_pythons(tmp_path, monkeypatch, version, state):
    monkeypatch.setattr(platform, "python_version", lambda: version)
    found = asked(software.python, made(tmp_path))
    assert states(found) == (state, False)
    assert ">=3.10" in found.expected and "<3.13" in found.expected


@pytest.mark.parametrize(
    ("versions", "needed", "state", "missing", "said"),
    [
        ({"torch": "2.13.0+cpu", "transformers": "5.17.0"}, ("torch",), OK, False, "whole: torch"),
        ({"torch": "2.13.0"}, ("torch",), FAIL, True, "transformers==5.17.0 (not installed)"),
        ({"torch": "2.12.0", "transformers": "5.17.0"}, ("torch",), FAIL, True, "torch==2.13.0 (2.12.0)"),
        ({}, ("torch", "gpt-oss"), FAIL, True, "gpt-oss: openai-harmony"),
        ({}, (), OK, False, "whole: none"),
    ],
)
def test_extras_that_are_needed(tmp_path, installed, versions, needed, state, missing, said):
    installed(**versions)
    found = asked(software.extras, made(tmp_path), needing(extras=needed))
    assert states(found) == (state, missing)
    assert said in found.read
    if missing:
        assert found.mend == f"pip install -e '.[{','.join(needed)}]' in the environment that runs this"


def program(folder: Path, name: str, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(text)
    (folder / name).chmod(0o755)


PYTHON_WITH_VLLM = '#!/bin/sh\ntest "$3" = vllm && echo 0.32.1 && exit 0\necho "No package: $3" >&2\nexit 1\n'


@pytest.mark.parametrize(
    ("server", "state", "missing", "said"),
    [
        (Server("vllm", "0.32"), OK, False, "vllm 0.32.1"),
        (Server("vllm", "0.11"), FAIL, False, "vllm 0.32.1"),
        (Server("sglang", "0.5"), FAIL, True, "No package: sglang"),
        (Server("trtllm-serve", "1.2"), FAIL, True, "trtllm-serve is not on PATH"),
        (Server("vllm", "0.32", ("docker", "run")), FAIL, True, "docker is not on PATH"),
        (Server("trtllm-serve", "1.2", ("A=1", "box", "run")), OK, False, "trtllm-serve in a container"),
    ],
)
def test_programs_that_serve(tmp_path, server, state, missing, said):
    program(tmp_path / "bin", "python3", PYTHON_WITH_VLLM)
    program(tmp_path / "bin", "box", "#!/bin/sh\n")
    found = asked(software.engines, made(tmp_path), needing(server=server))
    assert states(found) == (state, missing)
    assert said in found.read


def test_a_script_is_asked_through_its_own_python(tmp_path: Path) -> None:
    program(tmp_path / "own", "python3.12", "#!/bin/sh\necho 1.2.3\n")
    program(tmp_path / "bin", "trtllm-serve", f"#!{tmp_path}/own/python3.12\n")
    found = asked(software.engines, made(tmp_path), needing(server=Server("trtllm-serve", "1.2")))
    assert (*states(found), found.read) == (OK, False, "trtllm-serve 1.2.3")


def test_engines_beside_the_harness_where_none_is_named(tmp_path, installed):
    installed(torch="2.13.0")
    assert asked(software.engines, made(tmp_path)).read == "torch 2.13.0"


def test_clients_of_the_agentic_benchmark(tmp_path, monkeypatch):
    monkeypatch.setattr(software, "bfcl_python", lambda: tmp_path / "absent")
    assert states(asked(software.clients, made(tmp_path), NOTHING)) == (OK, False)
    assert states(asked(software.clients, made(tmp_path), needing(trajectories=True))) == (WARN, False)
    wrong = made(tmp_path, environ={"ENDPOINTS_BIN": str(tmp_path / "nothing")})
    assert states(asked(software.clients, wrong, NOTHING)) == (FAIL, False)
    program(tmp_path, "client", "")
    monkeypatch.setattr(software, "bfcl_python", lambda: tmp_path / "client")
    there = made(tmp_path, environ={"ENDPOINTS_BIN": str(tmp_path / "client")})
    assert states(asked(software.clients, there, needing(trajectories=True))) == (OK, False)


def test_a_program_that_does_not_answer(tmp_path, monkeypatch):
    host = made(tmp_path)
    with pytest.raises(Unreadable, match="is not on PATH"):
        host.output("no-such-program-anywhere")
    program(tmp_path / "bin", "slow", "#!/bin/sh\nexec /bin/sleep 30\n")
    monkeypatch.setattr("harness.machine.doctor.host.COMMAND_TIMEOUT_S", 0.05)
    with pytest.raises(Unreadable, match="does not answer"):
        host.output(str(tmp_path / "bin" / "slow"))


def test_versions() -> None:
    assert packages.numbers("2.13.0+cpu") == (2, 13, 0)
    assert packages.numbers("unknown") == ()
    assert packages.is_one_of("1.2.1", "1.2") and not packages.is_one_of("1.20", "1.2")
    assert packages.satisfied("3.11.7", ">=3.10,<3.13") and not packages.satisfied(None, ">=1")
