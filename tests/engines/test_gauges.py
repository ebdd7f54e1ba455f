"""How full an engine is, asked while somebody else holds it."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.engines import gauges
from harness.engines.gauges import ask, gauges_path, together
from harness.engines.group import Member, start_group
from harness.engines.scripted import ScriptedCore
from harness.engines.scripted_settings import ScriptedSettings
from harness.engines.slots import SlotTable
from harness.engines.start import EngineSpec
from harness.events import Occupancy
from tests.engines.test_scripted import requests
from tests.engines.test_slots import requests_of

SLOW = {"slots": 2, "length": 4, "first_token": {"mean_s": 60.0}}


def test_slots_and_what_waits_for_them() -> None:
    table = SlotTable(slots=2, max_total_tokens=40, vocab_size=50, prefill_chunk=8)
    assert table.occupancy() == Occupancy(0, 0, 0.0)
    table.submit(requests_of([[1, 2, 3], [4, 5, 6, 8], [9] * 6], cap=4))
    assert table.occupancy() == Occupancy(0, 3, 0.0)
    table.admit()
    assert table.occupancy() == Occupancy(2, 1, 0.0)  # nothing was read yet
    plan = table.plan()
    assert plan is not None
    table.settle(plan, plan.chosen_slots * 0 + 1, 1)
    assert table.occupancy() == Occupancy(2, 1, 7 / 80)
    table.drop([0])
    assert table.occupancy() == Occupancy(1, 1, 4 / 80)
    table.clear()
    assert table.occupancy() == Occupancy(0, 0, 0.0)


def test_a_script_has_as_many_at_work_as_it_has_slots() -> None:
    core = ScriptedCore(ScriptedSettings.parse(SLOW), clock=lambda: 0)
    core.submit(requests([0] * 5))
    assert core.gauges() == Occupancy(2, 3)
    core.cancel()
    assert core.gauges() == Occupancy(0, 0)


def test_an_engine_says_so_while_a_client_holds_it(tmp_path: Path) -> None:
    members = [Member(EngineSpec("scripted", SLOW))] * 2
    with start_group(members, log=tmp_path / "engine.log", timeout_s=60) as group:
        assert group.occupancy() == Occupancy(0, 0)
        client = group.connect()
        client.submit(requests([0] * 10))
        deadline = time.monotonic() + 20
        while group.occupancy() != Occupancy(4, 6):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        client.close()
        sockets = [process.socket for process in group.processes]
        assert all(gauges_path(path).exists() for path in sockets)
    assert group.occupancy() is None  # it has ended
    assert not any(gauges_path(path).exists() for path in sockets)


@contextmanager
def saying(path: Path, said: bytes | None) -> Iterator[None]:
    """Someone who answers so at the place of an engine's gauges; None never does."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(gauges_path(path)))
    listener.listen(1)

    def run() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(said or b"")

    thread = threading.Thread(target=run) if said is not None else None
    if thread is not None:
        thread.start()
    try:
        yield
    finally:
        if thread is not None:
            thread.join()
        listener.close()


@pytest.mark.parametrize(
    ("said", "told"),
    [
        (b'{"running": 1, "waiting": null, "kv_cache": 0.5}', Occupancy(1, None, 0.5)),
        (b"null", None),
        (b"", None),
        (b"{", None),
        (b"\xff", None),
        (b"[1]", None),
        (b'{"running": 1}', None),
        (b'{"running": 1, "waiting": 2, "kv_cache": 3, "more": 4}', None),
    ],
)
def test_what_is_no_answer_tells_nothing(tmp_path: Path, said: bytes, told: Occupancy | None) -> None:
    with saying(tmp_path / "socket", said):
        assert ask(tmp_path / "socket", 5.0) == told


def test_one_that_computes_is_not_waited_for(tmp_path: Path) -> None:
    with saying(tmp_path / "socket", None):
        began = time.monotonic()
        assert ask(tmp_path / "socket", 0.05) is None
        assert time.monotonic() - began < 5


def test_nobody_there(tmp_path: Path) -> None:
    assert ask(tmp_path / "socket", 1.0) is None


def test_an_asker_that_has_gone_disturbs_nobody(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "gauges"))
        listener.listen(2)
        listener.setblocking(False)
        gauges.answer(listener, Occupancy(1, 2))  # nobody came
        with socket.socket(socket.AF_UNIX) as asker:
            asker.connect(str(tmp_path / "gauges"))
        gauges.answer(listener, Occupancy(1, 2))


@pytest.mark.parametrize(
    ("each", "whole"),
    [
        ([], None),
        ([None], None),
        ([Occupancy(1, 2, 0.5), None], None),
        ([Occupancy()], None),
        ([Occupancy(1, 2, 0.5), Occupancy(3, 4, 1.0)], Occupancy(4, 6, 0.75)),
        ([Occupancy(1, None, 0.5), Occupancy(3, 4, None)], Occupancy(4, None, None)),
    ],
)
def test_replicas_are_one_engine_as_far_as_all_tell(each: list[Occupancy | None], whole: Occupancy | None) -> None:
    assert together(each) == whole
