"""From a configuration to processes that serve."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from harness.config.models import HttpEngine, ScriptedEngine
from harness.engines.address import lanes_before
from harness.errors import EngineDied, RunBroke
from harness.events import Event, Note
from harness.runs import engine_up as engine_up_module
from harness.runs import servers
from harness.runs.engine_up import asked, engine_up, http_members

SETTINGS: dict[str, object] = {
    "server": "trtllm-serve",
    "model": "m",
    "endpoints": [{"name": "0", "url": "http://127.0.0.1:1"}],
    "connections": 100,
    "info": {},
}


@pytest.mark.parametrize(
    ("replicas", "processes", "each"), [(1, 1, 100), (1, 3, 34), (4, 1, 100), (4, 2, 100), (2, 4, 50)]
)
def test_connections_to_a_replica_are_shared_by_the_processes_that_reach_it(
    replicas: int, processes: int, each: int
) -> None:
    members = http_members(SETTINGS, lanes_before(replicas, processes))
    assert len(members) == processes
    assert [member.spec.settings["connections"] for member in members] == [each] * processes
    assert [member.spec.settings["stream"] for member in members] == list(range(processes))  # their seeds differ


def test_a_scripted_engine_is_one_process(tmp_path: Path) -> None:
    config = ScriptedEngine(kind="scripted", slots=3)
    nobody: Any = SimpleNamespace()
    with engine_up(config, nobody, (), name="BOX/b", work=tmp_path, observer=lambda _: None) as group:
        assert (group.info.kind, group.info.slots) == ("scripted", 3)
        assert group.logs == (tmp_path / "engine.log",)
        assert group.ending() is None


def test_clients_before_servers_carry_what_the_servers_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The servers' info, their reasons not to submit and how they ended reach whoever holds the engine."""
    endpoints = [{"name": name, "url": f"http://127.0.0.1:{port}"} for name, port in (("0", 1), ("1", 2))]
    info = {
        "kind": "http",
        "vocab_size": 10,
        "max_total_tokens": 20,
        "slots": 6,
        "checkpoint": None,
        "versions": {"vllm": "0.32"},
        "settings": {},
        "not_submittable": ["stand-in checkpoint"],
        "replicas": ["0", "1"],
    }
    entered: list[str] = []
    told: list[str | None] = [None]

    @contextmanager
    def serving(engine: HttpEngine, **_: object) -> Iterator[Any]:
        entered.append("up")
        yield SimpleNamespace(ending=lambda: told[0])
        entered.append("down")

    monkeypatch.setattr(servers, "serving", serving)
    monkeypatch.setattr(
        servers,
        "http_settings",
        lambda *_: {"server": "vllm", "model": "m", "endpoints": endpoints, "connections": 8, "info": info},
    )
    config = HttpEngine.model_validate(
        {
            "kind": "http",
            "server": "vllm",
            "version": "0.32",
            "checkpoint": {"name": "m", "path": "/m", "weight_data_type": "bf16"},
            "replicas": 2,
            "clients": {"processes": 2},
        }
    )
    notes: list[Event] = []
    nobody: Any = SimpleNamespace()
    with engine_up(config, nobody, (), name="BOX/b", work=tmp_path, observer=notes.append) as group:
        assert entered == ["up"]
        assert group.info.replicas == ("0", "1")
        assert group.info.slots == 6
        assert group.info.not_submittable == ("stand-in checkpoint",)
        assert [lane.process for lane in group.address.lanes] == [0, 1]
        told[0] = "vllm 1 was ended by SIGKILL"
        assert group.ending() == "vllm 1 was ended by SIGKILL"
    assert entered == ["up", "down"]
    assert [note.text for note in notes if isinstance(note, Note)] == ["BOX/b: 2 replicas answer; client processes: 2"]


def test_servers_end_where_the_clients_cannot_start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entered: list[str] = []

    @contextmanager
    def serving(engine: HttpEngine, **_: object) -> Iterator[Any]:
        try:
            yield SimpleNamespace(ending=lambda: None)
        finally:
            entered.append("down")

    def broken(*_: object, **__: object) -> None:
        raise EngineDied("no memory")

    monkeypatch.setattr(servers, "serving", serving)
    monkeypatch.setattr(servers, "http_settings", lambda *_: SETTINGS)
    monkeypatch.setattr(engine_up_module, "start_group", broken)
    config = HttpEngine.model_validate({"kind": "http", "server": "torch", "checkpoint": {"make": "tiny-gpt-oss"}})
    nobody: Any = SimpleNamespace()
    with (
        pytest.raises(EngineDied, match="no memory"),
        engine_up(config, nobody, (), name="BOX/b", work=tmp_path, observer=lambda _: None),
    ):
        pass
    assert entered == ["down"]


class Group:
    """An engine whose server is found to have ended at the ``seen``-th look."""

    logs = (Path("engine.log"),)

    def __init__(self, seen: int) -> None:
        self.closed = False
        self._left = seen

    def connect(self) -> Group:
        return self

    def close(self) -> None:
        self.closed = True

    def ending(self) -> str | None:
        self._left -= 1
        return None if self._left >= 0 else "torch 0 was ended by SIGKILL"


@pytest.mark.parametrize(("seen", "error"), [(3, EngineDied("it refuses connections")), (0, RunBroke("status 500"))])
def test_what_breaks_before_a_run_is_told_with_what_has_ended(seen: int, error: RunBroke) -> None:
    group: Any = Group(seen)
    with pytest.raises(type(error)) as caught, asked(group):
        raise error
    assert caught.value.what == f"torch 0 was ended by SIGKILL\n  what was seen: {error.what}"
    assert caught.value.mend == "see engine.log, and what the server logs"
    assert group.closed


def test_what_breaks_before_a_run_while_all_lives() -> None:
    group: Any = Group(1)
    with pytest.raises(RunBroke) as caught, asked(group):
        raise RunBroke("status 500", expected="200", mend="ask again")
    assert str(caught.value) == "status 500\n  expected: 200\n  mend: ask again"
    assert group.closed
