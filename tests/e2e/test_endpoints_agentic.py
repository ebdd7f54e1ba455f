"""The real endpoints client replays trajectories before a server that answers as it was recorded; BFCL comes after."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from harness import benchmarks
from harness.benchmarks.base import Chats
from harness.benchmarks.qwen3_6_27b.bfcl import standin, table
from harness.benchmarks.qwen3_6_27b.bfcl.requests import body
from harness.benchmarks.qwen3_6_27b.bfcl.scripted import right_reply
from harness.benchmarks.qwen3_6_27b.dataset import read
from harness.clients.endpoints.config import LEG
from harness.clients.endpoints.program import find_program
from harness.env import BFCL_PYTHON, ENDPOINTS_BIN, bfcl_python
from harness.errors import MissingError
from harness.ledger.record import RunRecord, State
from harness.ledger.store import read_record
from harness.rules import TrajectoryRules, load
from tests.doubles.recorded_answers import Fault, Kind, Recorded
from tests.doubles.recorded_server import serving
from tests.harness_process import Ended, ScriptedProject

NAME = "qwen3.6-27b"
ROWS = 24
LONG_S = 1200
PACK = load("v6.1")

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.alone,
    pytest.mark.slow,
    pytest.mark.torch,
    pytest.mark.qwen3vl,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(
        ENDPOINTS_BIN.path() is None or not bfcl_python().is_file(),
        reason=f"{ENDPOINTS_BIN.name} and {BFCL_PYTHON.name} are both wanted (docs/endpoints.md)",
    ),
]


def rules() -> TrajectoryRules:
    found = PACK.benchmark(NAME)
    assert isinstance(found, TrajectoryRules)
    return found


@pytest.fixture(scope="module", autouse=True)
def _a_client_that_scores() -> None:
    layout, told = PACK.layouts.endpoints, rules().endpoints_client
    assert layout is not None
    assert told is not None
    assert told.value.extra is not None
    try:
        find_program(layout).check_extra(told.value.extra, layout)
    except MissingError as error:
        pytest.skip(f"the client at {ENDPOINTS_BIN.name} cannot score BFCL: {error.what}")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    benchmarks.get(NAME, PACK).make_dataset(folder, seed=0, rows=3)
    standin.write(folder / NAME, rules(), seed=0, rows=ROWS)
    return folder


@pytest.fixture(scope="module")
def recorded(data: Path) -> Recorded:
    """The answers to all that is asked: turns as recorded, questions rightly, canaries with a number."""
    chats: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = [
        (body(row), right_reply(row)) for row in table.read(data / NAME, rules()).rows
    ]
    for canary in benchmarks.get(NAME, PACK).canaries(stand_in_checkpoint=True):
        assert isinstance(canary.prompts, Chats)
        chats += [(chat, {"content": "312"}) for chat in canary.prompts]
    return Recorded(read(data / NAME, rules()).trajectories, chats)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[ScriptedProject]:
    system = tmp_path / "systems" / "BOX"
    system.mkdir(parents=True)
    said = {"system_name": "BOX", "number_of_nodes": 1, "cooling": "air", "host_networking_topology": "N/A"}
    (system / "system.yaml").write_text(yaml.safe_dump(said))
    yield ScriptedProject(tmp_path)


def run(project: ScriptedProject, data: Path, url: str) -> tuple[Ended, RunRecord]:
    """The row of the round, over stand-in data, by the client that is installed."""
    content = {
        "engine": {
            "kind": "http",
            "server": "torch",
            "checkpoint": {"make": "tiny-deepseek-v3", "seed": 0, "hidden_size": 64, "layers": 2},
            "options": {"max_total_tokens": 8192},
            "endpoints": [url],
            "clients": {"connections": 1},
        },
        "agentic": {"chat_template_kwargs": {"thinking": False}},
        "scenarios": {"SingleStream": {"target_qps": 1}},
        "warmup": {"requests": 0},
        "watchdog_s": 600,
    }
    (project.folder / "systems" / "BOX" / f"{NAME}.yaml").write_text(yaml.safe_dump(content))
    verb = ("run_harness", "--client=endpoints", f"--benchmarks={NAME}", "--scenarios=SingleStream")
    ended = project.run(*verb, data=data, timeout_s=LONG_S)
    found = sorted(project.results.glob(f"BOX/{NAME}/SingleStream/{LEG}/attempt_01/run.json"))
    assert found, ended.err
    return ended, read_record(found[0])


def test_recorded_answers_are_the_recorded_commands(project: ScriptedProject, data: Path, recorded: Recorded) -> None:
    turns = read(data / NAME, rules()).turns
    with serving(recorded, keep_bodies=True) as server:
        ended, record = run(project, data, server.url)
    assert record.state is State.FINISHED, ended.err
    assert record.verdict is not None
    assert [f for f in record.verdict.findings if f.severity == "reject"] == []
    assert ended.code == 0, ended.err
    assert "check_compliance.py" in ended.err
    assert record.turns is not None
    assert (record.turns.issued, record.turns.answered) == (turns, turns)
    assert record.turn_figures is not None
    assert record.turn_figures.inline_score == 1.0
    assert set(record.turn_figures.issued.values()) == {1}
    assert record.result is not None
    assert (record.result.key, record.result.units) == ("latency.avg", "Latency (ms)")
    assert record.accuracy is not None
    assert sum(subset.correct for subset in record.accuracy.subsets.values()) == ROWS
    assert server.most_under_way == 1
    asked = [each.session for each in server.asked if each.session]
    ids = [each.id for each in read(data / NAME, rules()).trajectories]
    assert list(dict.fromkeys(asked)) == ids  # X-Session-ID names the trajectory, one after the other
    assert all(
        b'"chat_template_kwargs":{"thinking":false}' in each for each in server.bodies if b'"stream":true' in each
    )


def test_a_turn_that_fails_refuses_the_run(project: ScriptedProject, data: Path, recorded: Recorded) -> None:
    with serving(recorded, faults=[Fault(Kind.INTERNAL, 2, times=1)]) as server:
        ended, record = run(project, data, server.url)
    assert record.state is State.FINISHED, ended.err
    assert ended.code == 1
    assert record.verdict is not None
    broken = {f.rule for f in record.verdict.findings if f.severity == "reject"}
    assert broken >= {"EP-FAILED", "HN-EP-ANSWERS", "HN-EP-MEAN"}
    assert record.turns is not None
    assert record.turns.failed == 1
    assert record.turns.skipped > 0
    assert record.turns.turns == read(data / NAME, rules()).turns


@pytest.mark.parametrize("kind", [Kind.CUT, Kind.RESET, Kind.SSE_ERROR, Kind.EMPTY, Kind.NO_FINISH])
def test_what_is_whole_to_the_client_and_is_not(
    project: ScriptedProject, data: Path, recorded: Recorded, kind: Kind
) -> None:
    with serving(recorded, faults=[Fault(kind, 2, times=1)]) as server:
        ended, record = run(project, data, server.url)
    assert (record.state, ended.code) == (State.FINISHED, 1), ended.err
    assert record.verdict is not None
    assert "HN-EP-ANSWERS" in {f.rule for f in record.verdict.findings if f.severity == "reject"}
    assert record.turns is not None
    assert record.turns.failed == 1
